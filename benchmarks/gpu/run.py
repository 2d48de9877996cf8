#!/usr/bin/env python3
"""Runs the queue of parts.py on this machine's GPU, each part in a process of its own.

    python3 run.py --minutes=8 --out=results

Writes rows as they come (rows.jsonl), what is printed (log.txt), the state of the GPU every
250 ms (clocks.csv) and a summary (summary.txt, printed, too). A second call with the same
folder goes on where the first ended. The exit status is 1 if something was wrong.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# Where the modules of the parts and of the tests are; the wheel's are before them.
MODULES = [
    HERE / name for name in ("", "test/Integration/Inputs", "test/Package/Inputs/launcher",
                             "test/python", "test/Python/Inputs")
]  # fmt: skip
sys.path[:0] = map(str, MODULES)

import parts
import rows
import summary

# How a part's process ends: all is done; something is left, as the time was; the GPU can no
# longer be used by it, and it is to be started again.
DONE, LATE, BROKEN = 0, 3, 7
# A part that is started again this often has done what it can.
MOST_STARTS = 6


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=8, help="the most it takes")
    parser.add_argument(
        "--out", type=pathlib.Path, default=HERE / "results", help="where results go"
    )
    parser.add_argument(
        "--earlier", type=pathlib.Path, help="results of an earlier call, to go on with"
    )
    parser.add_argument("--only", default="", help="names of parts, with commas")
    parser.add_argument("--labels", default="", help="a regular expression on labels")
    parser.add_argument("--peers", default="", help="a regular expression on peers")
    parser.add_argument("--list", action="store_true", help="print the queue only")
    parser.add_argument(
        "--rehearse", action="store_true", help="without a GPU, with a build's tools"
    )
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    return parser.parse_args()


# ===----------------------------------------------------------------------===#
# A part's process
# ===----------------------------------------------------------------------===#


def run_part(arguments):
    log = rows.Log(arguments.out / "rows.jsonl", arguments.part, arguments.seconds)
    (part,) = parts.find([arguments.part])
    left = part.run(log, arguments)
    sys.stdout.flush()
    # Nothing that is left of a context may hang the exit.
    os._exit(left if left == BROKEN else LATE if left else DONE)


# ===----------------------------------------------------------------------===#
# The queue
# ===----------------------------------------------------------------------===#


def install(folder, target, check=True):
    """Unpacks the wheels of a folder, without a network; returns where they are."""
    wheels = sorted(folder.glob("*.whl"))
    if wheels and not target.exists():
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
             "--no-compile", "--no-cache-dir", "--disable-pip-version-check", "--target",
             target, *wheels], check=check,
        )  # fmt: skip
    return target


def make_environment(arguments):
    """The results of all parts."""
    environment = {
        **os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1",
        "VARLEN_CACHE_DIR": str(HERE / "cache"),
    }  # fmt: skip
    path = [
        install(HERE / "wheels", HERE / "site"),
        install(HERE / "peers", HERE / "peers/site", check=False),
        *MODULES,
    ]
    cuda = [p for p in map(pathlib.Path, ("/usr/local/cuda/bin",)) if p.is_dir()]
    environment["PATH"] = os.pathsep.join(map(str, [HERE / "site/bin", environment["PATH"], *cuda]))
    environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
    if arguments.rehearse:
        environment["PYTHONPATH"] += os.pathsep + os.environ.get("PYTHONPATH", "")
        import rehearsal

        rehearsal.prepare(arguments.out.resolve() / "rehearsal", environment)
    return environment


def watch(process, path, stall, seconds):
    """Waits for a part's process: its exit status, or why it was ended."""
    end = time.monotonic() + seconds
    size, changed = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(0.1)
        now = time.monotonic()
        if path.exists() and path.stat().st_size != size:
            size, changed = path.stat().st_size, now
        if now > end or now > changed + stall:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "time limit" if now > end else f"no row for {stall:.0f} s"
    return process.returncode


def supervise(arguments, part, seconds, environment, output):
    """Runs a part to its end, over processes that break; how it has ended."""
    path = arguments.out / "rows.jsonl"
    # A rehearsal shares its machine, and loses no GPU's time.
    slack = 10 if arguments.rehearse else 1
    seconds, stall = min(seconds, part.seconds * slack), part.stall * slack
    begin = time.monotonic()
    for _ in range(MOST_STARTS):
        left = seconds - (time.monotonic() - begin)
        if left < 1:
            return "time limit"
        command = [
            sys.executable, HERE / "run.py", f"--part={part.name}", f"--seconds={left:.0f}",
            f"--out={arguments.out}", f"--labels={arguments.labels}", f"--peers={arguments.peers}",
            *(["--rehearse"] if arguments.rehearse else []),
        ]  # fmt: skip
        # A part has processes of its own: all of them end with it.
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env=environment, start_new_session=True,
        )  # fmt: skip
        # It should end by itself; the grace is for what is under way.
        status = watch(process, path, stall, left + 8)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if status == DONE:
            return "done"
        if status == LATE or status == "time limit":
            return "time limit"
        if isinstance(status, int) and 0 < status != BROKEN:
            return f"failed with status {status}"
        how = f"ended by signal {-status}" if isinstance(status, int) and status < 0 else status
        print(f"{part.name}: started again ({how})", file=output, flush=True)
    return "broken"


def start_clocks(path, environment):
    """Has the state of the GPU written every 250 ms."""
    command = [
        "nvidia-smi", "--query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu",
        "--format=csv,noheader,nounits", "--loop-ms=250",
    ]  # fmt: skip
    if not shutil.which("nvidia-smi", path=environment["PATH"]):
        return None
    if shutil.which("stdbuf"):
        command = ["stdbuf", "-oL", *command]
    with path.open("a") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL, env=environment)


def run_queue(arguments):
    begin = time.monotonic()
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "rows.jsonl"
    if arguments.earlier and not path.exists():
        shutil.copy(arguments.earlier / "rows.jsonl", path)
    environment = make_environment(arguments)
    finished = {
        r["label"] for r in rows.read(path) if r["kind"] == "part" and r["outcome"] == "done"
    }
    queue = [
        part
        for part in parts.find(arguments.only.split(",") if arguments.only else [])
        if part.name not in finished
    ]
    with (arguments.out / "log.txt").open("a") as output:
        clocks = start_clocks(arguments.out / "clocks.csv", environment)
        try:
            for part in queue:
                # What is printed at the end has to be made, too.
                left = 60 * arguments.minutes - (time.monotonic() - begin) - 8
                if left < 5:
                    break
                log = rows.Log(path, part.name, 0)
                print(f"=== {part.name}: {part.what}", file=output, flush=True)
                at = time.monotonic()
                outcome = supervise(arguments, part, left, environment, output)
                took = time.monotonic() - at
                log.add("part", part.name, outcome=outcome, seconds=round(took, 1))
                print(f"{part.name}: {outcome}, {took:.0f} s", flush=True)
        finally:
            if clocks:
                clocks.kill()
    text = summary.make(rows.read(path), arguments.out / "clocks.csv")
    (arguments.out / "summary.txt").write_text(text)
    print(text, end="", flush=True)
    return int(summary.is_wrong(rows.read(path)))


def main():
    arguments = parse()
    if arguments.list:
        for part in (*parts.PARTS, *parts.OTHERS):
            print(f"{part.name:12} {part.seconds:4.0f} s  {part.what}")
        return 0
    if arguments.part:
        return run_part(arguments)
    return run_queue(arguments)


if __name__ == "__main__":
    sys.exit(main())
