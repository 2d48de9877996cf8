# RUN: rm -rf %t && mkdir %t && %python %s %t
"""run_scripts.py: what becomes of tests that pass, fail, skip, hang or need a build; its
records; going on where it ended."""

import json
import pathlib
import subprocess
import sys

folder = pathlib.Path(sys.argv[1])
TESTS = {
    "right": "import os; assert os.environ['VARLEN_TEST_DEVICE'] == 'cuda'; print('fine')",
    "wrong": "print('before'); raise ValueError('expected 1, got 2')",
    "without": "print('a line'); print('skipped: no CUDA device')",
    "endless": "import time; print('begun', flush=True); time.sleep(60)",
}
# Not in one piece, or lit would take them for this test's.
RUN, REQUIRES = "# RU" + "N: %python %s\n", "# REQUIRE" + "S: package\n"


def write(name, body, head=RUN):
    (folder / f"{name}.py").write_text(f"{head}{body}\n")


for name, body in TESTS.items():
    write(name, body)
# What is behind the script in its RUN line; %t is a file that may be made.
writer = "import sys; assert sys.argv[1] == '--to', sys.argv; open(sys.argv[2], 'w').close()"
write("writing", writer, RUN[:-1] + " --to %t.txt | FileCheck %s\n")
write("build", "raise ValueError", REQUIRES + RUN)
write("module", "raise ValueError", "")
runner = pathlib.Path(__file__).with_name("run_scripts.py")


def run(*arguments):
    command = [sys.executable, runner, folder, "--device=cuda", *arguments]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    return process.returncode, process.stdout + process.stderr


def read():
    lines = path.read_text().splitlines()
    return {record["test"]: record for record in map(json.loads, lines)}


path = folder / "results.jsonl"
code, output = run("--jobs=2", "--limit=10", f"--json={path}")
assert code == 1 and output.endswith("2 passed, 1 skipped, 1 failed, 1 timeout\n"), output
records = read()
assert {name: record["status"] for name, record in records.items()} == {
    "right": "passed", "wrong": "failed", "without": "skipped", "endless": "timeout",
    "writing": "passed",
}  # fmt: skip
assert "before" in output and "ValueError: expected 1, got 2" in output
assert "skipped: no CUDA device" in output
assert records["endless"]["output"] == "begun"

# Nothing of what has ended runs again.
path.write_text("".join(json.dumps(records[name]) + "\n" for name in ("right", "wrong", "endless")))
write("right", "raise ValueError")
code, output = run("--resume", f"--json={path}")
assert code == 1 and set(read()) == {*TESTS, "writing"}, output
assert "skipped: without" in output and "wrong" not in output, output

write("right", TESTS["right"])
assert run("right", "without")[0] == 0
# Where all skip, nothing was tested.
assert run("without")[0] == 1
code, output = run("module")
assert code == 1 and "expected tests of endless, right, without, writing, wrong, got module" in output, output
code, output = run("--resume")
assert code == 2 and "--resume: expected --json, too" in output, output
