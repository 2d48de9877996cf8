"""Loops of kernels as text, to keep what was measured: the compiler goes on, and a measurement
is of the machine code that it was made with.

One instruction is NAME(OPERANDS):STALL with sN, rN (the scoreboards that it sets and reads with)
and wM (bits of those that it waits for), `!` where it is never executed, and a count in front of
equal ones. Modifiers of arithmetic are left out.
"""

import itertools
import json
import re

import sass

# Whose modifiers say what the instruction takes.
_WHOLE = {"wgmma", "shared", "barrier", "wait", "exp2", "copy"}


def _token(x):
    name = x.name if x.kind in _WHOLE or x.name.startswith("IMAD.MOV") else x.name.split(".")[0]
    text = name + (f"({x.operands})" if x.operands else "") + f":{x.stall}"
    text += f"s{x.sets}" if x.sets is not None else ""
    text += f"r{x.reads}" if x.reads is not None else ""
    text += f"w{x.waits:x}" if x.waits else ""
    return text + ("!" if x.predicate == "@!PT" else "")


_TOKEN = re.compile(
    r"(?:(\d+)\*)?([A-Z][\w.]*)(?:\((.*)\))?:(\d+)(?:s(\d))?(?:r(\d))?(?:w([0-9a-f]+))?(!?)"
)


def write(body):
    runs = ((token, len(list(same))) for token, same in itertools.groupby(map(_token, body)))
    return "; ".join(token if count == 1 else f"{count}*{token}" for token, count in runs)


def read(text):
    body = []
    for part in text.split("; "):
        found = _TOKEN.fullmatch(part)
        if not found:
            raise ValueError(f"expected an instruction NAME(OPERANDS):STALL, got '{part}'")
        count, name, operands, stall, sets, reads, waits, never = found.groups()
        one = sass.Instruction(
            name, operands or "", "@!PT" if never else "", int(stall),
            None if sets is None else int(sets), None if reads is None else int(reads),
            int(waits or "0", 16),
        )  # fmt: skip
        body += [one] * int(count or 1)
    return body


def load(path):
    """Rows of a file with one JSON object a line."""
    return [json.loads(line) for line in path.read_text().splitlines()]
