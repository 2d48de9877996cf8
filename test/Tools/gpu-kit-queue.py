# REQUIRES: venv
# RUN: rm -rf %t && mkdir %t && %python %s %t %varlen-src/benchmarks/gpu
"""The queue of the GPU kit: parts that crash, hang, fail, break the GPU for themselves or run out
of time are named, and stop no other part; a second call goes on where the first ended. The
same of workers that answer labels."""

import os
import pathlib
import shutil
import subprocess
import sys
import time

folder, source = map(pathlib.Path, sys.argv[1:3])
for name in ("run.py", "rows.py", "summary.py", "farm.py"):
    shutil.copy(source / name, folder)

(folder / "parts.py").write_text("""
import dataclasses, os, signal, time

@dataclasses.dataclass
class Part:
    name: str
    seconds: float
    stall: float
    what: str = ""

    def run(self, log, arguments):
        return globals()[self.name](log)

def fine(log):
    log.add("check", "one", outcome="right")
    return 0

def crashing(log):
    os.kill(os.getpid(), signal.SIGSEGV)

def hanging(log):
    time.sleep(60)

def failing(log):
    raise SystemExit("expected a tool, got none")

def breaking(log):
    # What had ended the process is left out the next time.
    labels = [label for label in "abc" if (label, "peer") not in log.unfinished()]
    for label in labels:
        if log.done("row", label):
            continue
        try:
            with log.attempt(label, "peer"):
                if label == "b":
                    raise ValueError
                log.add("row", label)
        except ValueError:
            return 7
    return 0

def slow(log):
    for i in range(100):
        if log.left() < 0:
            return 100 - i
        if not log.done("row", str(i)):
            log.add("row", str(i))
            time.sleep(0.4)
    return 0

PARTS = [
    Part("crashing", 10, 5), Part("hanging", 4, 0.5), Part("failing", 5, 5), Part("breaking", 9, 5),
    Part("slow", 1.5, 5), Part("fine", 5, 5),
]
OTHERS = []

def find(names):
    return [part for part in PARTS if not names or part.name in names]
""")
sys.path.insert(0, str(folder))
import rows


def run(*options):
    """The outcomes of a call, by part."""
    out = folder / "results"
    before = len(rows.read(out / "rows.jsonl"))
    done = subprocess.run(
        [sys.executable, folder / "run.py", f"--out={out}", "--minutes=2", *options],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    new = [row for row in rows.read(out / "rows.jsonl")[before:] if row["kind"] == "part"]
    return done, {row["label"]: row["outcome"] for row in new}, rows.read(out / "rows.jsonl")


done, outcomes, written = run()
assert outcomes == {
    "crashing": "broken", "hanging": "time limit", "failing": "failed with status 1",
    "breaking": "done", "slow": "time limit", "fine": "done",
}, (outcomes, done)  # fmt: skip
assert done.returncode == 1
assert [row["label"] for row in written if row["kind"] == "row" and row["part"] == "breaking"] == [
    "a",
    "c",
]
log = (folder / "results/log.txt").read_text()
assert "expected a tool, got none" in log
assert (
    "crashing: started again (ended by signal 11)" in log
    and "hanging: started again (no row for 0 s)" in log
)
first = [row["label"] for row in written if row["part"] == "slow" and row["kind"] == "row"]
assert 0 < len(first) < 20, first

# What is done does not run again, and what ran out of time has nothing twice.
done, outcomes, written = run("--only=fine,breaking,slow")
assert set(outcomes) == {"slow"}, outcomes
labels = [row["label"] for row in written if row["part"] == "slow" and row["kind"] == "row"]
assert len(labels) == len(set(labels)) > len(first), labels
# A cut line is no row.
path = folder / "results/rows.jsonl"
path.write_text(path.read_text()[:-10])
assert len(rows.read(path)) == len(path.read_text().splitlines()) - 1

# Workers.
import farm

(folder / "worker.py").write_text("""
import os, sys, time
import farm
for line in sys.stdin:
    label = line.strip()
    if label == "crash":
        os._exit(9)
    if label == "hang":
        time.sleep(60)
    print("a line of a worker", flush=True)
    farm.answer(outcome="right", pid=os.getpid())
""")
answers = {}
labels = ["a", "crash", "b", "hang", "c", "d"]
left = time.monotonic() + 60
late = farm.run(
    [sys.executable, folder / "worker.py"], labels, 2, 3, lambda: left - time.monotonic(),
    answers.__setitem__, {**os.environ, "PYTHONPATH": str(folder)},
)  # fmt: skip
assert late == [] and set(answers) == set(labels), answers
assert answers["crash"] == {
    "outcome": "crashed",
    "problems": ["the process has ended with status 9"],
}
assert answers["hang"] == {"outcome": "no end", "problems": ["no end within 3 s"]}
assert all(answers[label]["outcome"] == "right" for label in "abcd")
assert farm.run(["false"], labels, 2, 3, lambda: 0, answers.__setitem__) == labels
