#!/usr/bin/env python3
"""Runs the Python tests of a folder without lit, on a machine that has no build.

    run_scripts.py FOLDER --device=cuda --jobs=2 --json=results.jsonl

Each test is a process of its own, with a time limit; VARLEN_TEST_DEVICE tells it the device.
Tests with a line REQUIRES need a build, and are left to lit. The others run by `python test.py`
with the arguments of their first RUN line, whose %t is in a folder of their own. A test has passed where it exits with 0, unless its last line begins with
"skipped". Each result is a line on stdout and one in the file of --json, written when the
test ends; --resume runs only the tests that this file does not have. The exit status is 1
where a test failed, or none passed.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

# The last is a stand-in that a folder's Inputs/fake_device.py has, on a machine without a GPU.
DEVICES = ("cpu", "cuda", "fake-cuda")
# How much of a failed test's output its record has.
TAIL = 4000


def find_tests(folder, names):
    """The scripts of a folder that have a RUN line and need no build; if there are names,
    those alone."""
    tests = []
    for path in sorted(folder.glob("*.py")):
        text = path.read_text()
        if re.search(r"^# RUN:", text, re.M) and not re.search(r"^# REQUIRES:", text, re.M):
            tests.append(path)
    if unknown := set(names) - {path.stem for path in tests}:
        raise SystemExit(
            f"expected tests of {', '.join(path.stem for path in tests)}, "
            f"got {', '.join(sorted(unknown))}"
        )
    return [path for path in tests if not names or path.stem in names]


def find_arguments(path, folder):
    """The arguments of the first RUN line, with files in a folder."""
    found = re.search(r"^# RUN: %python %s([^|>\n]*)", path.read_text(), re.M)
    return found[1].replace("%t", f"{folder}/{path.stem}").split() if found else []


def run_test(path, device, limit):
    """The record of one test."""
    with tempfile.TemporaryDirectory() as folder:
        return _run_test([sys.executable, path, *find_arguments(path, folder)], path, device, limit)


def _run_test(command, path, device, limit):
    begin = time.monotonic()
    environment = {**os.environ, "VARLEN_TEST_DEVICE": device.removeprefix("fake-")}
    inputs = path.parent / "Inputs"
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(inputs), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    if device == "fake-cuda":
        command.insert(1, inputs / "fake_device.py")
        driver = pathlib.Path(os.environ["VARLEN_BUILD"]) / "lib" / "fake-cuda"
        environment["LD_LIBRARY_PATH"] = str(driver)
    try:
        process = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit, check=False,
        )  # fmt: skip
        code, output = process.returncode, process.stdout
    except subprocess.TimeoutExpired as error:
        code, output = None, error.stdout or b""
    output = output.decode(errors="replace").strip()
    last = output.rpartition("\n")[2]
    status = "timeout" if code is None else "failed" if code else "passed"
    if status == "passed" and last.startswith("skipped"):
        status = "skipped"
    record = {
        "test": path.stem, "device": device, "status": status,
        "seconds": round(time.monotonic() - begin, 1),
    }  # fmt: skip
    if status != "passed":
        record |= {"code": code, "output": output[-TAIL:]}
    return record


def read_records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def describe(record):
    line = f"{record['status']}: {record['test']} ({record['seconds']} s)"
    if record["status"] == "skipped":
        return f"{line}: {record['output'].rpartition(chr(10))[2]}"
    return f"{line}\n{record['output']}" if "output" in record else line


def main(folder=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    if folder is None:
        parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("tests", nargs="*", help="names without .py; none: all")
    parser.add_argument("--device", choices=DEVICES, default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="tests that run at once")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one test")
    parser.add_argument("--json", type=pathlib.Path, help="where a line for each test goes")
    parser.add_argument("--resume", action="store_true", help="go on where --json ends")
    arguments = parser.parse_intermixed_args()
    if arguments.device == "fake-cuda" and "VARLEN_BUILD" not in os.environ:
        parser.error("--device=fake-cuda: expected VARLEN_BUILD to name a build, for its driver")
    if arguments.resume and not arguments.json:
        parser.error("--resume: expected --json, too")
    tests = find_tests(folder or arguments.folder, arguments.tests)
    records = []
    if arguments.json:
        if arguments.resume and arguments.json.exists():
            records = read_records(arguments.json)
        else:
            arguments.json.write_text("")
    done = {(record["test"], record["device"]) for record in records}
    waiting = [path for path in tests if (path.stem, arguments.device) not in done]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = [pool.submit(run_test, path, arguments.device, arguments.limit) for path in waiting]
        for run in concurrent.futures.as_completed(runs):
            record = run.result()
            records.append(record)
            print(describe(record), flush=True)
            if arguments.json:
                with arguments.json.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    counts = {name: 0 for name in ("passed", "skipped", "failed", "timeout")}
    for record in records:
        counts[record["status"]] += 1
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return int(counts["passed"] == 0 or counts["failed"] + counts["timeout"] > 0)


if __name__ == "__main__":
    sys.exit(main())
