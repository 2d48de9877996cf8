"""Scores of attention: what a score region of varlen.attn computes, as MLIR text and,
independent of the compiler, in numpy.

A score is a function of the scaled product s of a query and a key, of their positions
among the keys of their sequence, and of captures: numbers of each head (arrays Hq) or
of each query of each head (Hq x Tq). docs/scores.md shows each of these.
"""

import dataclasses
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Score:
    """`text(type)` is the body of the region on %score, %query, %key and the captures
    by name, for a float type, up to its last value, %new. `value(s, query, key,
    *captures)` is the new score and `derivatives`, of the same arguments, its
    derivatives by s and by each capture; positions and captures broadcast with s."""

    name: str
    text: Callable[[str], str]
    value: Callable
    derivatives: Callable
    # What each capture has a number of: "head" or "query".
    captures: dict[str, str] = dataclasses.field(default_factory=dict)

    def region(self, compute):
        """The region for scores of type `compute`, f32 or f64."""
        arguments = [f"%score: {compute}", "%query: i32", "%key: i32"]
        arguments += [f"%{name}: {compute}" for name in self.captures]
        lines = "\n".join(f"    {line.strip()}" for line in self.text(compute).split("\n"))
        return f"score ({', '.join(arguments)}) {{\n{lines}\n    varlen.yield %new : {compute}\n  }}"


def softcap(cap):
    """cap * tanh(s / cap): scores stay within a bound (Bello et al., 2017; Gemma 2)."""
    return Score(
        "softcap",
        lambda type: f"""%cap = arith.constant {float(cap)} : {type}
            %inverse = arith.constant {1 / float(cap)!r} : {type}
            %x = arith.mulf %score, %inverse : {type}
            %t = math.tanh %x : {type}
            %new = arith.mulf %t, %cap : {type}""",
        lambda s, query, key: cap * np.tanh(s / cap),
        lambda s, query, key: [1 - np.tanh(s / cap) ** 2],
    )


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


def gains():
    """s * gain of each head: a temperature that is learned."""
    return Score(
        "gains",
        lambda type: f"%new = arith.mulf %score, %gains : {type}",
        lambda s, query, key, gains: s * gains,
        lambda s, query, key, gains: [gains + 0 * s, s],
        {"gains": "head"},
    )


def query_gains():
    """s * gain of each query of each head: scores that depend on a length, say."""
    return dataclasses.replace(gains(), name="query_gains", captures={"gains": "query"})


def capped_alibi(cap):
    """softcap of alibi of gains: a score with a capture of either kind."""

    def inner(s, query, key, slopes, gains):
        return s * gains - slopes * np.abs(key - query)

    def derivatives(s, query, key, slopes, gains):
        slope = 1 - np.tanh(inner(s, query, key, slopes, gains) / cap) ** 2
        return [slope * gains, -slope * np.abs(key - query), slope * s]

    return Score(
        "capped_alibi",
        lambda type: f"""%ahead = arith.subi %key, %query : i32
            %x = arith.sitofp %ahead : i32 to {type}
            %distance = math.absf %x : {type}
            %y = arith.mulf %slopes, %distance : {type}
            %gained = arith.mulf %score, %gains : {type}
            %sum = arith.subf %gained, %y : {type}
            %cap = arith.constant {float(cap)} : {type}
            %quotient = arith.divf %sum, %cap : {type}
            %t = math.tanh %quotient : {type}
            %new = arith.mulf %t, %cap : {type}""",
        lambda s, *rest: cap * np.tanh(inner(s, *rest) / cap),
        derivatives,
        {"slopes": "head", "gains": "query"},
    )
