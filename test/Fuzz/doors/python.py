"""Arguments of the functions of varlen, varlen.torch and varlen.jax.

A case is a call with some of its arguments replaced: by the same numbers in another layout,
by others, by what is no array. What the call means with them is computed by the definition in
f64 (Inputs/python_meaning.py): then results and gradients are right, or it is refused by an
error of ours, of one line. Cases run in a process that begins again after one that ends it.
"""

import json
import os
import pathlib
import sys

import tool

WORKER = pathlib.Path(__file__).resolve().parents[1] / "Inputs" / "python_worker.py"
ROUND = 60
# For a whole round; the worker itself stops a case that takes long.
SECONDS = 1800


def run_some(session, numbers):
    """Runs cases until one ends the process. Returns those that are left."""
    environment = dict(
        tool.ENVIRONMENT, VARLEN_BUILD=str(session.build),
        VARLEN_CACHE_DIR=str(session.work / "cache"), JAX_PLATFORMS="cpu", OPENBLAS_NUM_THREADS="1",
    )  # fmt: skip
    command = [sys.executable, WORKER, session.seed, numbers[0], len(numbers)]
    outcome = session.execute(
        command, seconds=SECONDS, memory=None, env=environment, cwd=session.work
    )
    running = None
    for line in map(json.loads, outcome.stdout.splitlines()):
        if "case" in line:
            running = line["case"]
            continue
        if "failed" in line:
            session.fail(line["failed"], number=running)
        else:
            session.note(line["done"])
        numbers, running = numbers[1:], None
    if not numbers:
        return numbers
    if running is None:
        raise RuntimeError(f"the worker has ended before a case: {outcome.excerpt()}")
    session.fail(
        outcome.crash() or f"the process has ended with {outcome.status}", outcome, number=running
    )
    return numbers[1:]


def run(session):
    os.makedirs(session.work / "cache", exist_ok=True)
    for numbers in session.batches(ROUND):
        while numbers:
            numbers = run_some(session, numbers)
