#!/usr/bin/env python3
"""Checks compiled kernels on this machine's GPU, then times them beside PyTorch.

    python run.py [--seconds 570]

Prints a table and writes results.json: what the machine is, one object for each
batch that was checked and one for each that was timed. The exit status is 1 if a
result was wrong. Needs numpy, ml_dtypes, PyTorch for the second half, and a CUDA driver.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import check
import functions
import plan
import rows

# Of a part that has left the GPU unusable: it is started again without what did.
BROKEN = 7


def parts(arguments):
    """(name, share of the time that is left) of what there is to do."""
    if not arguments.speed and not arguments.tune:
        yield "check", 0.4 if arguments.check is None else 1.0
    if not arguments.check:
        yield "tune" if arguments.tune else "speed", 1.0


def check_runtime():
    """Runs the tests of the runtime library on this machine's driver."""
    done = subprocess.run([HERE / "varlen-cuda-test"], timeout=120, check=False)
    print(f"runtime library: {'right' if done.returncode == 0 else 'WRONG'}", flush=True)
    return done.returncode


def supervise(arguments, out):
    """Runs each part in a process of its own: one that breaks the GPU for itself
    leaves the others alone."""
    begin = time.monotonic()
    status = 0
    environment = dict(os.environ)
    if arguments.device == "executor":
        # Its state of a thread is where only a program's own libraries have room.
        environment["GLIBC_TUNABLES"] = "glibc.rtld.optional_static_tls=131072"
    if arguments.device == "cuda" and not arguments.speed and not arguments.tune:
        # Whatever it does to its context, the next process has another.
        status = check_runtime()
    for part, share in parts(arguments):
        for _ in range(4):
            left = arguments.seconds - (time.monotonic() - begin)
            command = [
                sys.executable, __file__, f"--part={part}", f"--only={arguments.only}",
                f"--device={arguments.device}", f"--seconds={share * left:.0f}",
                f"--out={out}", f"--peers={arguments.peers}",
            ]  # fmt: skip
            code = subprocess.run(command, check=False, env=environment).returncode
            if code < 0:
                print(f"{part}: ended by signal {-code}", flush=True)
            if code != BROKEN and code >= 0:
                break
        status = status or code
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=570, help="the most it takes")
    parser.add_argument("--only", default="", help="a regular expression on labels")
    parser.add_argument("--check", action="store_true", default=None, help="only check")
    parser.add_argument("--speed", action="store_true", help="only time")
    parser.add_argument("--tune", action="store_true", help="time other schedules")
    parser.add_argument("--peers", default="", help="a regular expression on peers")
    parser.add_argument("--list", action="store_true", help="print the labels only")
    parser.add_argument("--device", default="cuda", help="cuda, or what the kit is for")
    parser.add_argument("--out", type=pathlib.Path, default="results.json")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.list:
        for item in [*plan.checked(), *plan.timed()]:
            if re.search(arguments.only, item.label):
                print(item.label)
        return 0

    scratch = arguments.out.with_suffix(".jsonl")
    if not arguments.part:
        scratch.unlink(missing_ok=True)
        status = supervise(arguments, arguments.out)
        objects = rows.read(scratch)
        kept = [row for row in objects if row["kind"] not in ("begin", "end")]
        text = ",\n".join(json.dumps(row) for row in kept)
        arguments.out.write_text(f"[\n{text}\n]\n")
        scratch.unlink(missing_ok=True)
        print(f"{len(kept)} rows: {arguments.out}")
        return int(status != 0)

    log = rows.Log(scratch, arguments.seconds)
    try:
        if arguments.part == "check":
            return check.main(HERE, log, arguments.device, arguments.only)
        import speed

        tuning = arguments.part == "tune"
        code = speed.main(HERE, log, arguments.only, arguments.peers, tuning)
    except functions.Error as error:
        print(f"{arguments.part}: {error}")
        log.add(kind="info", label=arguments.part, problem=str(error))
        return 1
    if code == BROKEN:
        # Nothing that is left of the context may hang the exit.
        sys.stdout.flush()
        os._exit(BROKEN)
    return code


if __name__ == "__main__":
    sys.exit(main())
