"""Mutations of modules and of bytes."""

import random
import re

INTEGER = re.compile(r"(?<![\w.%#@!^])-?\d+(?![\w.])")
# An extent in front of an x, in a type.
EXTENT = re.compile(r"(?:(?<=[<x])|(?<=<\[))(?:\d+|\?)(?=x)")
FLOAT = re.compile(r"-?\d+\.\d*(?:[eE][-+]?\d+)?|0x[0-9A-Fa-f]{4,16}")
ELEMENT = re.compile(r"\b(?:bf16|f16|f32|f64|i1|i8|i32|i64|index)\b")
VALUE = re.compile(r"%[\w]+(?:#\d+)?")
NAME = re.compile(r"(?<![\w%#@!])[a-z_]\w*(?:\.\w+)+")
KEYWORD = re.compile(
    r"\b(?:bottom_right|top_left|causal|full|copy|pairs|kq|qk|tensor|memref|vector|"
    r"parallel|reduction|row|col|eq|ne|slt|sle|sgt|sge|oeq|one|olt|ogt)\b"
)
ATTRIBUTE = re.compile(r"[\w.]+ = [^,{}<>]+(?:<[^<>]*>)?(?:, )?")
BRACKET = re.compile(r"[\[\](){}<>]")

INTEGERS = [
    0, 1, -1, 2, 3, 7, 15, 16, 33, 64, 255, 1000, 4096, 65536, 2**28, 2**31 - 1,
    2**31, 2**32, 2**61, 2**62, 2**63 - 1, -(2**63), 2**64 - 1,
]  # fmt: skip
EXTENTS = ["?", "0", "1", "2", "3", "8", "16", "17", "100000", str(2**31), str(2**62)]
FLOATS = [
    "0.0", "-0.0", "1.0", "-1.0", "1.0e38", "1.0e300", "1.0e-45", "0x7FC00000",
    "0x7F800000", "0xFF800000", "0x7FF0000000000000", "0x7FF8000000000000",
]  # fmt: skip
ELEMENTS = [
    "bf16", "f16", "f32", "f64", "f8E4M3FN", "i1", "i8", "i32", "i64", "index",
    "complex<f32>", "vector<4xf32>", "none", "i65536",
]  # fmt: skip


def make_random(seed):
    return random.Random(seed)


def replace(rng, source, pattern, choose):
    """Replaces one match of a pattern."""
    matches = list(pattern.finditer(source))
    if not matches:
        return source
    match = rng.choice(matches)
    return source[: match.start()] + choose(match[0]) + source[match.end() :]


def choose_integer(rng, old):
    if rng.random() < 0.5:
        return str(rng.choice(INTEGERS))
    return str(int(old) + rng.choice([-8, -1, 1, 8, 16]))


def swap_values(rng, source):
    """Exchanges two values of one line, or puts another value of the module."""
    lines = source.split("\n")
    some = [n for n, line in enumerate(lines) if len(VALUE.findall(line)) > 1]
    if not some:
        return source
    number = rng.choice(some)
    line = lines[number]
    first, second = sorted(
        rng.sample(list(VALUE.finditer(line)), 2), key=lambda match: match.start()
    )
    if rng.random() < 0.5:
        other = rng.choice(VALUE.findall(source))
        line = line[: second.start()] + other + line[second.end() :]
    else:
        line = (
            line[: first.start()]
            + second[0]
            + line[first.end() : second.start()]
            + first[0]
            + line[second.end() :]
        )
    lines[number] = line
    return "\n".join(lines)


def change_lines(rng, source, other):
    """Drops, repeats, moves or brings a line."""
    lines = source.split("\n")
    number = rng.randrange(len(lines))
    kind = rng.choice(["drop", "repeat", "swap", "bring"])
    if kind == "drop":
        del lines[number]
    elif kind == "repeat":
        lines.insert(number, lines[number])
    elif kind == "swap":
        second = rng.randrange(len(lines))
        lines[number], lines[second] = lines[second], lines[number]
    else:
        lines.insert(number, rng.choice(other.split("\n")))
    return "\n".join(lines)


def change_operand(rng, source):
    """Drops or repeats one operand, or one type, of a list."""
    match = list(re.finditer(r"(?<=[(, ])([%\w<>?#]+)(, |(?=[) ]))", source))
    if not match:
        return source
    match = rng.choice(match)
    new = "" if rng.random() < 0.5 else f"{match[1]}, {match[0]}"
    return source[: match.start()] + new + source[match.end() :]


def change_character(rng, source):
    at = rng.randrange(len(source))
    return source[:at] + rng.choice(["", "x", "\0", "\xff", '"']) + source[at + 1 :]


def mutate_once(rng, source, other):
    kinds = [
        (6, lambda: replace(rng, source, INTEGER, lambda old: choose_integer(rng, old))),
        (6, lambda: replace(rng, source, EXTENT, lambda _: rng.choice(EXTENTS))),
        (2, lambda: replace(rng, source, FLOAT, lambda _: rng.choice(FLOATS))),
        (4, lambda: replace(rng, source, ELEMENT, lambda _: rng.choice(ELEMENTS))),
        (4, lambda: swap_values(rng, source)),
        (4, lambda: change_lines(rng, source, other)),
        (2, lambda: change_operand(rng, source)),
        (2, lambda: replace(
            rng, source, KEYWORD, lambda old: rng.choice(KEYWORD.findall(source)))),
        (2, lambda: replace(
            rng, source, NAME, lambda old: rng.choice(NAME.findall(source + other)))),
        (2, lambda: replace(rng, source, ATTRIBUTE, lambda _: "")),
        (1, lambda: replace(rng, source, BRACKET, lambda _: "")),
        (1, lambda: change_character(rng, source)),
        (1, lambda: source[: rng.randrange(len(source))]),
    ]  # fmt: skip
    weights, changes = zip(*kinds)
    return rng.choices(changes, weights)[0]()


def rename_types(rng, source):
    """The same change to all types that are written alike: a module that is
    consistent gets past the parser more often."""
    types = re.findall(r"(?:tensor|memref|vector)<[^<>]*>", source)
    if not types:
        return source
    old = rng.choice(types)
    new = replace(rng, old, EXTENT, lambda _: rng.choice(EXTENTS))
    if rng.random() < 0.5:
        new = replace(rng, old, ELEMENT, lambda _: rng.choice(ELEMENTS))
    return source.replace(old, new)


def mutate_module(rng, source, other):
    """Some changes to a module's text; `other` is one to take parts from."""
    for _ in range(rng.choice([1, 1, 1, 1, 2, 3])):
        if not source:
            return source
        if rng.random() < 0.2:
            source = rename_types(rng, source)
        else:
            source = mutate_once(rng, source, other)
    return source


def mutate_bytes(rng, data):
    """Flips bits, or changes, drops or repeats bytes."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        at = rng.randrange(len(data))
        kind = rng.choice(["bit", "bit", "byte", "drop", "repeat", "end"])
        if kind == "bit":
            data[at] ^= 1 << rng.randrange(8)
        elif kind == "byte":
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFE, 0xFF])
        elif kind == "drop" and len(data) > 1:
            del data[at]
        elif kind == "repeat":
            data[at:at] = data[at : at + rng.randrange(1, 9)]
        elif len(data) > 8 and rng.random() < 0.1:
            del data[at + 1 :]
    return bytes(data)
