#!/usr/bin/env python3
"""Runs the tests of a build and ends with the line "N passed, N failed".

Tests that a machine cannot run count as neither passed nor failed. lit starts the longest
tests first, by their times in the last run, or in a fresh build by those in
.lit_test_times.txt of its suite.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITES = [ROOT / "test", ROOT / "executor" / "test"]

# What --quick runs: each pass and operation on its own, and numbers end to end.
QUICK = [
    "executor/test/Transforms",
    *(
        f"test/{folder}"
        for folder in (
            "ABI", "Conversion", "Dialect", "Differentiation", "Import", "Interfaces", "Linalg",
            "Patterns", "Pipelines", "Target", "Integration/conformance.py",
        )
    ),
]  # fmt: skip

PASSED = {"PASS", "FLAKYPASS"}
FAILED = {"FAIL", "XPASS", "UNRESOLVED", "TIMEOUT"}


def run_lit(lit, build, tests, variables):
    """lit's status and the tests of its result."""
    result = build / "tests.json"
    result.unlink(missing_ok=True)
    environment = os.environ | {"VARLEN_BUILD": str(build)} | variables
    status = subprocess.run(
        [lit, "-v", "-o", result, *tests],
        env=environment, stdin=subprocess.DEVNULL, check=False,
    ).returncode  # fmt: skip
    try:
        return status, json.loads(result.read_text())["tests"]
    except (OSError, ValueError) as error:
        print(f"lit ended with status {status} and no result: {error}")
        return status or 1, []


def record(tests):
    """Writes the processor seconds of those that take more than some: the others run last,
    in any order."""
    total = 0
    for suite in SUITES:
        # lit's name of a suite is the folder above, but for the main one.
        name = "varlen" if suite.parent == ROOT else suite.parent.name
        seconds = {
            test["name"].split(" :: ")[1]: test["metrics"]["cpu"]
            for test in tests
            if test["code"] in PASSED and test["name"].startswith(f"{name} :: ")
        }
        total += sum(seconds.values())
        longest = sorted(seconds.items(), key=lambda item: (-round(item[1]), item[0]))
        lines = [f"{time:.0f} {name}\n" for name, time in longest if time >= 3]
        (suite / ".lit_test_times.txt").write_text("".join(lines))
    print(f"{total:.0f} s of processor time")


def print_times(tests):
    """Processor seconds by test, the longest first; those that were not run have none."""
    measured = [test for test in tests if "metrics" in test]
    for test in sorted(measured, key=lambda test: -test["metrics"]["cpu"]):
        print(f"{test['metrics']['cpu']:8.1f} s  {test['name'].split(' :: ')[1]}")
    print(f"{sum(test['metrics']['cpu'] for test in measured):8.1f} s of processor time")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--lit", default="/usr/lib/llvm-22/bin/lit")
    parser.add_argument(
        "--long", action="store_true", help="with those that `make check-all` alone runs"
    )
    parser.add_argument(
        "--record", action="store_true",
        help="measure processor times and write .lit_test_times.txt of the suites",
    )  # fmt: skip
    parser.add_argument(
        "--times", action="store_true", help="print the processor time of each test, in seconds"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--quick", action="store_true", help="passes, and one test of numbers from end to end"
    )
    which.add_argument(
        "tests", nargs="*", default=[], type=pathlib.Path,
        help="files or folders instead of the whole suite",
    )  # fmt: skip
    arguments = parser.parse_args()
    if arguments.record and (arguments.quick or arguments.tests):
        parser.error("--record: expected the whole suite")

    tests = SUITES
    if arguments.quick:
        tests = [ROOT / name for name in QUICK]
    variables = {
        "VARLEN_LONG": str(int(arguments.long)),
        "VARLEN_MEASURE": str(int(arguments.record or arguments.times)),
    }
    status, results = run_lit(
        arguments.lit, arguments.build.resolve(), arguments.tests or tests, variables
    )
    passed = sum(test["code"] in PASSED for test in results)
    # A status that the tests do not explain is a failure of its own.
    failed = sum(test["code"] in FAILED for test in results) or int(status != 0)
    if arguments.record and not failed:
        record(results)
    if arguments.times:
        print_times(results)
    print(f"{passed} passed, {failed} failed", flush=True)
    return int(failed != 0 or passed == 0)


if __name__ == "__main__":
    sys.exit(main())
