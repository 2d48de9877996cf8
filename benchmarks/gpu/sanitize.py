"""NVIDIA's compute-sanitizer on a sample of kernels: accesses out of bounds (memcheck), races
in shared memory (racecheck), reads of memory that nothing has written (initcheck)."""

import concurrent.futures
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys

import check
import farm
import plan
import rehearsal

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ("memcheck", "racecheck", "initcheck")
# The seconds that one tool may take for one batch; how many run at once.
LIMIT, JOBS = 55 * rehearsal.SLACK, 6


def run(tool, label):
    """The row of a batch under a tool."""
    command = [
        "compute-sanitizer", "--tool", tool, "--print-limit=5", "--launch-timeout=60",
        sys.executable, HERE / "check.py",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, input=label + "\n", capture_output=True, text=True, timeout=LIMIT,
            check=False, env=check.worker_environment(),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"outcome": "no end", "problems": [f"no end within {LIMIT} s"]}
    lines = done.stdout.splitlines()
    answers = [json.loads(x.removeprefix(farm.MARK)) for x in lines if x.startswith(farm.MARK)]
    found = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", done.stdout)
    said = [x.removeprefix("========= ") for x in lines if x.startswith("=========")]
    if not found or not answers:
        return {"outcome": "failed", "problems": (said or done.stderr.splitlines())[-5:]}
    problems = said[:12] if int(found[-1]) else answers[0]["problems"]
    is_right = not int(found[-1]) and answers[0]["outcome"] == "right"
    return {
        "outcome": "right" if is_right else "wrong",
        "reports": int(found[-1]),
        "problems": problems,
    }


def main(log, arguments):
    if not shutil.which("compute-sanitizer"):
        raise SystemExit("expected compute-sanitizer on the path, got none")
    items = [item.label for item in plan.sanitized() if re.search(arguments.labels, item.label)]
    # All tools on the first kernels before any on the next.
    work = [
        (tool, label) for label, tool in itertools.product(items, TOOLS)
        if not log.done("sanitize", f"{tool}: {label}")
    ]  # fmt: skip
    late = 0

    def answer(pair):
        if log.left() < 10:
            return pair, None
        return pair, run(*pair)

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for (tool, label), row in pool.map(answer, work):
            if row is None:
                late += 1
                continue
            log.add("sanitize", f"{tool}: {label}", **row)
            print(f"{row['outcome']}: {tool}: {label}", *row["problems"], sep="\n  ", flush=True)
    return late
