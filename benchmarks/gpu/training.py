"""The training examples on the GPU: a GPT on packed documents, once with each way to compute
attention; what a run prints and its record are the row."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import rehearsal

HERE = pathlib.Path(__file__).resolve().parent
# 12 layers of width 768 on 32768 tokens a step, with nanochat's windows.
MODEL = ["--tokens=32768", "--width=768", "--layers=12", "--windows=SSSL", "--dtype=bf16"]
RUNS = {
    "torch, heads of 64": ["train_torch.py", "--head-dim=64", "--steps=12"],
    "torch, heads of 128": ["train_torch.py", "--head-dim=128", "--steps=12"],
    "jax, heads of 64": ["train_jax.py", "--head-dim=64", "--steps=8"],
}
SMALL = ["--steps=1", "--tokens=60", "--width=32", "--head-dim=16", "--layers=1"]


def _command(name, out):
    script, *options = RUNS[name]
    path = HERE / "examples" / script
    if rehearsal.FOLDER:
        options = [*SMALL, *(["--device=cpu"] if "--device" in path.read_text() else [])]
    else:
        options = [*MODEL, *options, "--device=cuda"]
    # A record comes with pictures.
    if importlib.util.find_spec("matplotlib"):
        options.append(f"--out={out}")
    return [sys.executable, str(path), *options]


def _record(out):
    path = out / "record.json"
    return json.loads(path.read_text()) if path.exists() else None


def _run(name, out, seconds):
    """How a run ends, the last lines that it prints, and those of its errors."""
    try:
        done = subprocess.run(
            _command(name, out), capture_output=True, text=True, check=False, timeout=seconds,
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
            outcome, lines, problems = _run(name, pathlib.Path(folder), max(10, log.left() - 2))
            record = _record(pathlib.Path(folder))
        log.add("training", name, outcome=outcome, said=lines, problems=problems, record=record)
        print(f"{outcome}: {name}", *lines, *problems, sep="\n  ", flush=True)
    return 0
