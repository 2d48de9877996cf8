"""Cases of the door `python`, one after the other, in a process that may die of one: a line
tells of each when it begins, and one when it is over.

python_worker.py SEED FIRST COUNT
"""

import faulthandler
import json
import linecache
import os
import pathlib
import random
import signal
import sys
import traceback
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "test/Fuzz"), str(ROOT / "test/Fuzz/Inputs")]

# pylint: disable=wrong-import-position
import doors.importers  # (finds the other modules)
import numpy as np
import torch

# What is not written shows: arrays begin as NaN, or as numbers that are no index.
_empty = np.empty


def _poisoned(shape, dtype=float, **options):
    array = _empty(shape, dtype, **options)
    array.view(np.uint8).fill(0xFF) if array.size and array.ndim else None
    return array


import jax
import python_calls
import python_meaning as meaning
from python_arguments import ANY, REFUSED, SAME, to_numpy

# Limits of a case: on the clock, where it waits for ever, and of CPU time.
SECONDS, CPU_SECONDS = 900, 120
PACKAGE = str(ROOT / "python" / "varlen")
UPSTREAM = "torch/nn/attention/varlen.py"
ERRORS = (ValueError, TypeError, NotImplementedError)
MAX_MESSAGE = 500


class Wrong(Exception):
    """What is wrong with a call."""


def check_refusal(error, values_are_wrong):
    """That an error is one of ours, of one line."""
    message = str(error)
    if isinstance(error, jax.errors.JaxRuntimeError):
        if not values_are_wrong or "INVALID_ARGUMENT: " not in message:
            raise Wrong(f"an error while it runs: {message}")
        return
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(frame.filename, frame.lineno).strip()
    if frame.filename.endswith(UPSTREAM):
        return  # PyTorch's own checks come first.
    ours = frame.filename.startswith(PACKAGE)
    if type(error) not in ERRORS or not ours or not line.startswith("raise"):
        place = f"{frame.filename}:{frame.lineno}"
        raise Wrong(f"no error of ours: {type(error).__name__}: {message}\n  {place}: {line}")
    if "\n" in message or not 10 < len(message) < MAX_MESSAGE:
        raise Wrong(f"expected a line that says what is wrong, got {message[:2000]!r}")


def find_meaning(surface, changes):
    """The call that is meant, what is wrong with it or None, whether that is in values only,
    whether it may be refused all the same, and whether results are open."""
    call = surface.call = surface.call.copy()
    may_refuse = any(change.may_refuse for change in changes)
    if any(change.meaning is REFUSED for change in changes):
        return "an argument that has no meaning", False, may_refuse, True
    is_open = any(change.meaning is ANY for change in changes)
    try:
        for change in changes:
            if callable(change.meaning):
                change.meaning(call)
        if "block_table" not in call.given:
            call.given.setdefault("cu_seqlens_k", call.given["cu_seqlens_q"])
    except ValueError as error:
        return str(error), False, may_refuse, True
    broken, of_values = meaning.find_broken(call)
    if is_open:
        return None, of_values, True, True
    window, chunk = call.options["window"], call.options["chunk"]
    if not broken and chunk is not None and window != (-1, -1):
        broken = "window and chunk"
    if not broken and meaning.has_open_meaning(call):
        return None, of_values, True, True
    is_open = not broken and meaning.largest_logit(call) > meaning.MAX_LOGIT
    return broken, of_values, may_refuse, is_open


def run_case(seed, number):
    """Runs a case. Returns words for the summary; raises Wrong."""
    rng = random.Random(f"python {seed} {number}")
    numbers = np.random.default_rng(rng.getrandbits(64))
    kind = rng.choice(python_calls.SURFACES)
    surface = kind(rng, numbers)
    changes, what = [], []
    for name, change in draw_changes(rng, surface):
        changes.append(change)
        how = "" if not isinstance(change.meaning, str) else f" ({change.meaning})"
        what.append(f"{name}={describe(change.value)}{how}")
    label = f"{kind.__doc__.split(':')[0].splitlines()[0]} {surface.case}; {'; '.join(what)}"
    try:
        return judge(surface, changes)
    except Wrong as wrong:
        raise Wrong(f"{label}\n  {wrong}") from None


def draw_changes(rng, surface):
    """Changes of some arguments, each of another one, by name. The change of is_causal is the
    last: what it means depends on the window."""
    changes = {}
    count = rng.choice((0, 1, 1, 1, 1, 2))
    while len(changes) < count:
        before = dict(surface.arguments)
        change, name = surface.change(rng)
        argument = "captures" if name in surface.call.captures else name
        if argument in changes:
            surface.arguments = before
        else:
            changes[argument] = name, change
    return sorted(changes.values(), key=lambda change: change[0] == "is_causal")


def describe(value):
    if isinstance(value, (np.ndarray, torch.Tensor, jax.Array)):
        try:
            return f"{type(value).__name__}{tuple(value.shape)} {value.dtype}"
        except RuntimeError:
            return type(value).__name__  # nested: it has no shape
    return f"{type(value).__name__} {value!r}"[:80]


def judge(surface, changes):
    broken, of_values, may_refuse, is_open = find_meaning(surface, changes)
    of_values = of_values or is_open
    try:
        results = surface.forward()
    except Exception as error:  # pylint: disable=broad-except
        check_refusal(error, of_values)
        if not broken and not may_refuse:
            raise Wrong(f"refused: {type(error).__name__}: {error}") from None
        return "refused"
    without_values = isinstance(surface, python_calls.Meta)
    # XLA leaves out calls whose results have no elements, and their checks.
    is_empty = isinstance(surface, python_calls.Jax) and not any(x.size for x in results.values())
    if broken and not ((without_values or is_empty) and of_values):
        raise Wrong(f"accepted, in spite of {broken}")
    if is_open or without_values or broken:
        return "accepted"
    cotangents = surface.call.dout.shape == tuple(results["out"].shape)
    if surface.call.dlse is not None:
        cotangents = cotangents and surface.call.dlse.shape == tuple(results["lse"].shape)
    try:
        # Cotangents are those of the call before it was changed.
        results |= surface.backward(results) if cotangents else {}
    except Exception as error:  # pylint: disable=broad-except
        raise Wrong(
            f"gradients: {type(error).__name__}: {error}\n{traceback.format_exc()}"
        ) from None
    wanted, allowed = meaning.golden(surface.call, len(results) > 2)
    for name, array in results.items():
        if wrong := meaning.difference(name, to_numpy(array), wanted[name], allowed[name]):
            raise Wrong(wrong)
    return "right"


def main():
    seed, first, count = map(int, sys.argv[1:])
    np.empty = _poisoned
    # torch.empty, too, is full of NaN then.
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(2)
    warnings.simplefilter("ignore")
    faulthandler.enable()
    # Says where it is, and ends the process.
    faulthandler.register(signal.SIGPROF, chain=True)
    for number in range(first, first + count):
        print(json.dumps({"case": number}), flush=True)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            line = {"done": run_case(seed, number)}
        except Wrong as wrong:
            line = {"failed": str(wrong)}
        except Exception:  # pylint: disable=broad-except
            line = {"failed": f"the door itself: {traceback.format_exc()}"}
        print(json.dumps(line), flush=True)
    faulthandler.cancel_dump_traceback_later()
    # What XLA's threads still do is no part of a case.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
