"""The tests of varlen.torch or of varlen.jax on the GPU, each a process of its own."""

import concurrent.futures
import os
import pathlib
import re

import rehearsal
import run_scripts

HERE = pathlib.Path(__file__).resolve().parent
# The seconds that one test may take; how many run at once.
LIMIT, JOBS = 100 * rehearsal.SLACK, 4


def run(folder, log, arguments, rehearsed, environment=None):
    """Runs the tests of a folder; in a rehearsal those of `rehearsed`, on the CPU."""
    # Modules beside the tests: those of the two folders have the same names.
    modules = f"{HERE / 'test' / folder / 'Inputs'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    os.environ.update({"PYTHONPATH": modules, **(environment or {})})
    device = "cpu" if rehearsal.FOLDER else "cuda"
    tests = [
        path for path in run_scripts.find_tests(HERE / "test" / folder, rehearsed if rehearsal.FOLDER else [])
        if re.search(arguments.labels, path.stem) and not log.done("test", path.stem)
    ]  # fmt: skip
    late = 0

    def answer(path):
        if log.left() < 8:
            return path, None
        return path, run_scripts.run_test(path, device, max(5, min(LIMIT, log.left() - 2)))

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        futures = [pool.submit(answer, path) for path in tests]
        for future in concurrent.futures.as_completed(futures):
            path, record = future.result()
            if record is None:
                late += 1
                continue
            log.add("test", path.stem, **record)
            print(run_scripts.describe(record), flush=True)
    return late
