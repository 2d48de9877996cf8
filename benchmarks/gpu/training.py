"""The training examples on the GPU: a GPT on packed documents, once with each way to compute
attention; what a run prints and its record are the row."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import rehearsal

HERE = pathlib.Path(__file__).resolve().parent
# 12 layers of width 768 on 32768 tokens a step, with nanochat's windows; it has a share of the
# time, not a number of steps.
MODEL = [
    "--tokens=32768", "--width=768", "--layers=12", "--windows=SSSL", "--dtype=bf16",
    "--longest=2048", "--rate=3e-4", "--steps=200", "--device=cuda",
]  # fmt: skip
RUNS = {
    "torch, heads of 64": ["train_torch.py", "--head-dim=64"],
    "torch, heads of 128": ["train_torch.py", "--head-dim=128"],
    "jax, heads of 64": ["train_jax.py", "--head-dim=64"],
}
SMALL = ["--steps=1", "--tokens=60", "--width=32", "--head-dim=16", "--layers=1", "--device=cpu"]


def _command(name, out, seconds):
    script, *options = RUNS[name]
    options = SMALL if rehearsal.FOLDER else [*MODEL, *options]
    # What is before the first step and after the last one takes time, too.
    minutes = max(0.1, (seconds - 12) / 60)
    more = ["--corpus=python", f"--minutes={minutes:.2f}", f"--out={out}"]
    return [sys.executable, str(HERE / "examples" / script), *options, *more]


def _record(out):
    path = out / "record.json"
    return json.loads(path.read_text()) if path.exists() else None


def _run(name, out, seconds):
    """How a run ends, the last lines that it prints, and those of its errors."""
    try:
        done = subprocess.run(
            _command(name, out, seconds), capture_output=True, text=True, check=False, timeout=seconds,
            cwd=HERE / "examples",
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode(errors="replace").splitlines()
        return "no end", said[-12:], ["its time was over"]
    problems = done.stderr.strip().splitlines()[-6:] if done.returncode else []
    return "wrong" if done.returncode else "right", done.stdout.strip().splitlines()[-12:], problems


def main(log, arguments):
    names = [
        name for name in list(RUNS)[: 1 if rehearsal.FOLDER else None]
        if re.search(arguments.labels, name) and not log.done("training", name)
    ]  # fmt: skip
    for i, name in enumerate(names):
        if log.left() < 20:
            return len(names) - i
        with tempfile.TemporaryDirectory() as folder:
            # What is left is for all runs that are.
            seconds = max(20, (log.left() - 2) / (len(names) - i))
            outcome, lines, problems = _run(name, pathlib.Path(folder), seconds)
            record = _record(pathlib.Path(folder))
        log.add("training", name, outcome=outcome, said=lines, problems=problems, record=record)
        print(f"{outcome}: {name}", *lines, *problems, sep="\n  ", flush=True)
    return 0
