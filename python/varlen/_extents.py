"""Extents of an attention's tensors that have to agree, for hosts that do not wait for what
kernels find: rules, and what is said where one is broken, in the words of the runtime."""

from __future__ import annotations

from typing import NamedTuple

from .scores import CAPTURES

# Those that types leave open: the dimension, and the tensor whose rows they are.
_ROWS = {
    "dout": (0, "q"), "out": (0, "q"), "lse": (1, "q"), "dlse": (1, "q"), "dq": (0, "q"),
    "v": (0, "k"), "dk": (0, "k"), "dv": (0, "k"),
}  # fmt: skip
_ROWS_OF_CAPTURES = {"rows": "q", "kv_rows": "k"}
_OF_SEQUENCES = ("seqused_q", "seqused_k", "q_offset")


class Rule(NamedTuple):
    """Extent `dim` of the tensor is extent 0 of another, less `fewer`. Tensors are places in
    the list of names."""

    tensor: int
    dim: int
    of: int
    fewer: int
    words: str  # with {got} and {wanted}


def find_rules(names, num_operands, captures=None):
    """The rules for tensors of these names, the first of which are operands. `captures`: what
    a score has something of, by name."""
    places = {name: i for i, name in enumerate(names)}
    rules = []

    def add(name, dim, of, words, fewer=0):
        if places[name] >= num_operands:
            words = "{name}: expected extent {dim} to be {wanted}, as {of} has, got {got}"
        words = words.replace("{name}", name).replace("{of}", of).replace("{dim}", str(dim))
        rules.append(Rule(places[name], dim, places[of], fewer, words))

    for name in names:
        if name in _ROWS:
            add(name, *_ROWS[name], "{name} has {got} rows: expected {wanted}, as many as {of}")
        elif name == "cu_seqlens_k":
            add(
                name, 0, "cu_seqlens_q",
                "{of} has {wanted} entries and {name} {got}: expected the same number",
            )  # fmt: skip
        elif name in _OF_SEQUENCES:
            add(
                name, 0, "cu_seqlens_q",
                "{name} has {got} entries: expected {wanted}, one for each sequence of {of}", 1,
            )  # fmt: skip
        elif captures and name in captures:
            for dim, extent in enumerate(CAPTURES[captures[name]]):
                if extent in _ROWS_OF_CAPTURES:
                    of = _ROWS_OF_CAPTURES[extent]
                    add(name, dim, of, "{name} has {got} rows: expected {wanted}, as many as {of}")
    return rules


def check_extents(shapes, captures):
    """That extents of operands, shapes by name, agree as far as they are numbers. Raises
    ValueError."""
    names = list(shapes)
    for rule in find_rules(names, len(names), captures):
        got = shapes[names[rule.tensor]][rule.dim]
        rows = shapes[names[rule.of]][0]
        if isinstance(got, int) and isinstance(rows, int) and got != rows - rule.fewer:
            refuse(rule, got, rows - rule.fewer)


def refuse(rule, got, wanted):
    raise ValueError(rule.words.format(got=got, wanted=wanted))
