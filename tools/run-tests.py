#!/usr/bin/env python3
"""Runs the tests of a build and ends with the line "N passed, N failed".

The suite runs as it is, and a second time with every module sent through the
textual and the bytecode form first. Tests that a machine cannot run count as
neither passed nor failed.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Where the tests read modules with varlen-opt; a round trip adds nothing
# elsewhere.
ROUNDTRIP = ["Dialect", "Conversion", "Interfaces", "Pipelines"]
# As a command, as test/lit.cfg.py has it.
READS_MODULES = re.compile(r"RUN:.*(?<![\w./%-])varlen-opt(?![\w./-])")

PASSED = {"PASS", "FLAKYPASS"}
FAILED = {"FAIL", "XPASS", "UNRESOLVED", "TIMEOUT"}


def run_lit(lit, build, tests, roundtrip):
    """Returns how many tests passed and failed."""
    result = build / ("tests-roundtrip.json" if roundtrip else "tests.json")
    result.unlink(missing_ok=True)
    environment = dict(
        os.environ, VARLEN_BUILD=str(build), VARLEN_ROUNDTRIP=str(int(roundtrip))
    )
    command = [lit, "-v", "-o", result, *tests]
    status = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, check=False
    ).returncode
    try:
        codes = [test["code"] for test in json.loads(result.read_text())["tests"]]
    except (OSError, ValueError) as error:
        print(f"lit ended with status {status} and no result: {error}")
        return 0, 1
    passed = sum(code in PASSED for code in codes)
    failed = sum(code in FAILED for code in codes)
    # A status that the tests do not explain is a failure of its own.
    return passed, failed or int(status != 0)


def roundtrip_tests():
    """Those whose commands read modules with varlen-opt."""
    files = (file for name in ROUNDTRIP for file in (ROOT / "test" / name).rglob("*.*"))
    return sorted(file for file in files if READS_MODULES.search(file.read_text(errors="ignore")))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--lit", default="/usr/lib/llvm-22/bin/lit")
    parser.add_argument(
        "tests",
        nargs="*",
        type=pathlib.Path,
        help="files or folders instead of the whole suite, run once",
    )
    arguments = parser.parse_args()
    build = arguments.build.resolve()

    if arguments.tests:
        runs = [run_lit(arguments.lit, build, arguments.tests, False)]
    else:
        runs = [
            run_lit(arguments.lit, build, [ROOT / "test"], False),
            run_lit(arguments.lit, build, roundtrip_tests(), True),
        ]
    passed, failed = map(sum, zip(*runs))
    print(f"{passed} passed, {failed} failed", flush=True)
    return int(failed != 0 or passed == 0)


if __name__ == "__main__":
    sys.exit(main())
