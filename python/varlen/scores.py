"""Scores and masks of attention: what a score region of varlen.attn computes, as MLIR
text and, independent of the compiler, in numpy.

A score is a function of the scaled product s of a query and a key, of their positions
among the keys of their sequence, and of captures: numbers of each head (arrays Hq) or
of each query of each head (Hq x Tq). docs/scores.md shows each of these.
"""

import dataclasses
import functools
import hashlib
import itertools
import re
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Score:
    """`text(type)` is the body of the region on %score, %query, %key and the captures
    by name, for a float type, which ends with the values %new, the score, and, if it
    hides keys, %visible. `value(s, query, key, *captures)` is the new score and
    `derivatives`, of the same arguments, its derivatives by s and by each capture, None
    for a score that stays as it is; `visible(query, key, *captures)` says which keys are
    visible, None that all are. Positions and captures broadcast with s.

    A score is compiled once for as long as it is the same object."""

    name: str
    text: Callable[[str], str]
    value: Callable | None
    derivatives: Callable | None
    # What each capture has a number of: "head" or "query".
    captures: dict[str, str] = dataclasses.field(default_factory=dict)
    visible: Callable | None = None
    # Says what it computes: scores of one key are the same, in any process.
    key: str = dataclasses.field(init=False)

    def __post_init__(self):
        text = f"{tuple(self.captures.items())} {self.region('f32')} {self.region('f64')}"
        key = hashlib.sha256(text.encode()).hexdigest()[:32]
        object.__setattr__(self, "key", key)
        _SCORES.setdefault(key, self)

    def region(self, compute):
        """The region for scores of type `compute`, f32 or f64."""
        arguments = [f"%score: {compute}", "%query: i32", "%key: i32"]
        arguments += [f"%{name}: {compute}" for name in self.captures]
        lines = "\n".join(f"    {line.strip()}" for line in self.text(compute).split("\n"))
        values, types = "%new" if self.value else "%score", compute
        if self.visible:
            values, types = f"{values}, %visible", f"{types}, i1"
        return (
            f"score ({', '.join(arguments)}) {{\n{lines}\n"
            f"    varlen.yield {values} : {types}\n  }}"
        )


# All of them: who knows only the key, as an operator of PyTorch, may ask at any time.
_SCORES = {}


def find_score(key):
    """The score of a key. Raises ValueError if this process has made none."""
    if key not in _SCORES:
        raise ValueError(f"score: expected the key of a score of this process, got '{key}'")
    return _SCORES[key]


def _literal(number):
    """As MLIR reads it: with a point."""
    text = repr(float(number))
    return text if "." in text else text.replace("e", ".0e")


@functools.cache
def softcap(cap):
    """cap * tanh(s / cap): scores stay within a bound (Bello et al., 2017; Gemma 2)."""
    return Score(
        "softcap",
        lambda type: f"""%cap = arith.constant {_literal(cap)} : {type}
            %inverse = arith.constant {_literal(1 / cap)} : {type}
            %x = arith.mulf %score, %inverse : {type}
            %t = math.tanh %x : {type}
            %new = arith.mulf %t, %cap : {type}""",
        lambda s, query, key: cap * np.tanh(s / cap),
        lambda s, query, key: [1 - np.tanh(s / cap) ** 2],
    )


@functools.cache
def alibi():
    """s - slope * |query - key|: the farther, the less (Press et al., 2021)."""
    return Score(
        "alibi",
        lambda type: f"""%ahead = arith.subi %key, %query : i32
            %x = arith.sitofp %ahead : i32 to {type}
            %distance = math.absf %x : {type}
            %y = arith.mulf %slopes, %distance : {type}
            %new = arith.subf %score, %y : {type}""",
        lambda s, query, key, slopes: s - slopes * np.abs(key - query),
        lambda s, query, key, slopes: [np.ones_like(s), -np.abs(key - query) + 0 * s],
        {"slopes": "head"},
    )


@functools.cache
def gains():
    """s * gain of each head: a temperature that is learned."""
    return Score(
        "gains",
        lambda type: f"%new = arith.mulf %score, %gains : {type}",
        lambda s, query, key, gains: s * gains,
        lambda s, query, key, gains: [gains + 0 * s, s],
        {"gains": "head"},
    )


@functools.cache
def query_gains():
    """s * gain of each query of each head: scores that depend on a length, say."""
    return dataclasses.replace(gains(), name="query_gains", captures={"gains": "query"})


@functools.cache
def query_alibi():
    """alibi with a slope for each query of each head."""
    return dataclasses.replace(alibi(), name="query_alibi", captures={"slopes": "query"})


@functools.cache
def compose(first, second):
    """second of what first makes of a score, where both see the key. Their captures, those
    of first before those of second, have different names."""
    if common := first.captures.keys() & second.captures.keys():
        raise ValueError(f"expected captures of different names, got '{min(common)}' twice")
    count = len(first.captures)

    def text(type):
        kept = {"score", "query", "key", *first.captures}
        after = second.text(type)
        suffix = next(
            f"_{i}" for i in itertools.count() if not re.search(rf"_{i}\b", after)
        )  # fmt: skip
        before = re.sub(
            r"%(\w+)", lambda m: m[0] + ("" if m[1] in kept else suffix), first.text(type)
        )
        if first.value and second.value:
            after = re.sub(r"%score\b", f"%new{suffix}", after)
        elif first.value:
            before = re.sub(rf"%new{suffix}\b", "%new", before)
        if first.visible and second.visible:
            after = re.sub(r"%visible\b", f"%also{suffix}", after)
            after += f"\n%visible = arith.andi %visible{suffix}, %also{suffix} : i1"
        elif first.visible:
            before = re.sub(rf"%visible{suffix}\b", "%visible", before)
        return f"{before}\n{after}"

    def of_first(s, query, key, captures):
        return first.value(s, query, key, *captures[:count]) if first.value else s

    def value(s, query, key, *captures):
        s = of_first(s, query, key, captures)
        return second.value(s, query, key, *captures[count:]) if second.value else s

    def derivatives(s, query, key, *captures):
        def of(score, s, captures):
            if score.value is None:
                return [np.ones_like(s), *(np.zeros_like(s) for _ in captures)]
            return score.derivatives(s, query, key, *captures)

        inner = of(first, s, captures[:count])
        outer, *others = of(second, of_first(s, query, key, captures), captures[count:])
        return [*(outer * x for x in inner), *others]

    def visible(query, key, *captures):
        seen = [
            score.visible(query, key, *mine)
            for score, mine in ((first, captures[:count]), (second, captures[count:]))
            if score.visible
        ]
        return functools.reduce(np.logical_and, seen)

    changes = first.value or second.value
    return Score(
        f"{second.name} of {first.name}", text, value if changes else None,
        derivatives if changes else None, first.captures | second.captures,
        visible if first.visible or second.visible else None,
    )  # fmt: skip


@functools.cache
def capped_alibi(cap):
    """softcap of alibi of gains: a score with a capture of either kind."""
    linear = compose(query_gains(), alibi())
    return dataclasses.replace(compose(linear, softcap(cap)), name="capped_alibi")


# -- Masks ---------------------------------------------------------------------


def _mask(name, text, visible, captures=()):
    """A score that is what it was, where a key is visible."""
    return Score(name, text, None, None, dict(captures), visible)


@functools.cache
def causal():
    """key <= query; canonicalization makes `#varlen.mask<causal>` of it."""
    return _mask(
        "causal",
        lambda type: "%visible = arith.cmpi sle, %key, %query : i32",
        lambda query, key: key <= query,
    )


@functools.cache
def sliding_window(left, right):
    """-left <= key - query <= right; canonicalization makes a window of it."""
    return _mask(
        "sliding_window",
        lambda type: f"""%ahead = arith.subi %key, %query : i32
            %left = arith.constant {-left} : i32
            %right = arith.constant {right} : i32
            %begun = arith.cmpi sge, %ahead, %left : i32
            %before = arith.cmpi sle, %ahead, %right : i32
            %visible = arith.andi %begun, %before : i1""",
        lambda query, key: (key - query >= -left) & (key - query <= right),
    )


@functools.cache
def dilated(step):
    """Every `step`-th key before the query, and the query's own (Beltagy et al., 2020)."""
    return _mask(
        "dilated",
        lambda type: f"""%behind = arith.subi %query, %key : i32
            %step = arith.constant {step} : i32
            %rest = arith.remsi %behind, %step : i32
            %none = arith.constant 0 : i32
            %on = arith.cmpi eq, %rest, %none : i32
            %causal = arith.cmpi sge, %behind, %none : i32
            %visible = arith.andi %on, %causal : i1""",
        lambda query, key: ((query - key) % step == 0) & (key <= query),
    )


@functools.cache
def chunked(size):
    """The keys of a query's chunk up to its own (Llama 4)."""
    return _mask(
        "chunked",
        lambda type: f"""%size = arith.constant {size} : i32
            %of_query = arith.floordivsi %query, %size : i32
            %of_key = arith.floordivsi %key, %size : i32
            %same = arith.cmpi eq, %of_query, %of_key : i32
            %causal = arith.cmpi sle, %key, %query : i32
            %visible = arith.andi %same, %causal : i1""",
        lambda query, key: (query // size == key // size) & (key <= query),
    )


@functools.cache
def prefix_lm():
    """Keys of a prefix, of a length that each query knows, and causal behind it
    (Raffel et al., 2020)."""
    return _mask(
        "prefix_lm",
        lambda type: f"""%position = arith.sitofp %key : i32 to {type}
            %inside = arith.cmpf olt, %position, %prefix : {type}
            %causal = arith.cmpi sle, %key, %query : i32
            %visible = arith.ori %inside, %causal : i1""",
        lambda query, key, prefix: (key < prefix) | (key <= query),
        {"prefix": "query"},
    )
