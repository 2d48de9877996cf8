"""A score of attention as data: its text, which is what operators, custom calls and files
carry, and what a Python program knows of it.

The text is MLIR: what `varlen.attn` has behind the types of its other operands, the types
of captures and the score region.

    captures(%slopes: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %slopes: f32) {
      ...
      varlen.yield %new : f32
    }

Without captures it begins with `score`. docs/scores.md says what a region may do.
"""

import dataclasses
import functools
import itertools
import re
import weakref
from collections.abc import Callable

from . import _numpy as np

# What a capture may be of, and the extents of its array.
CAPTURES = {
    "head": ("heads",), "query": ("heads", "rows"),
    "head_table": ("heads", "entries"), "query_table": ("heads", "rows", "entries"),
    "key_table": ("heads", "kv_rows"),
}  # fmt: skip
_NUMBERS = ("head", "query")
# Types of the accumulation, which scores are of.
COMPUTE = ("f32", "f64")
# Names that a function around an attention has for something else.
_TAKEN = frozenset((
    "q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k", "q_offset",
    "sink", "out", "lse", "dout", "dlse", "dq", "dk", "dv", "dsink", "score", "query", "key",
    "tq", "tk", "tv", "tsink", "tout", "tlse", "dtout", "dtlse",
))  # fmt: skip


class Table:
    """A row of a table for some queries, M or queries x M: a function of an index, which
    is clamped."""

    def __init__(self, entries):
        # Without a key nothing is looked up.
        none = np.zeros((*entries.shape[:-1], 1), entries.dtype)
        self.entries = entries if entries.shape[-1] else none

    def clamp(self, index):
        return np.clip(index, 0, self.entries.shape[-1] - 1)

    def __call__(self, index):
        index = self.clamp(index)
        if self.entries.ndim == 1:
            return self.entries[index]
        return self.entries[np.arange(len(self.entries))[:, None], index]

    def sum_at(self, terms):
        """What terms, pairs of an index and numbers, add to the rows of queries."""
        shape = np.broadcast_shapes((1, 1), *(number.shape for _, number in terms))
        sums = np.zeros((shape[0], self.entries.shape[-1]), self.entries.dtype)
        rows = np.broadcast_to(np.arange(shape[0])[:, None], shape)
        for index, number in terms:
            np.add.at(sums, (rows, np.broadcast_to(self.clamp(index), shape)), number)
        return sums


@dataclasses.dataclass(frozen=True, eq=False)
class Score:
    """`text(type)` is the body of the region on %score, %query, %key and the captures
    by name, for a float type, which ends with the values %new, the score, and, if it
    hides keys, %visible. `value(s, query, key, *captures)` is the new score and
    `derivatives`, of the same arguments, its derivatives by s and by each capture, None
    for a score that stays as it is; `visible(query, key, *captures)` says which keys are
    visible, None that all are; `factor(query, key, *captures)` is what probabilities are
    multiplied by after the softmax, %factor in the text, None for 1, and has no derivative by
    captures. Positions and captures broadcast with s. A capture that is
    a table is a `Table` there, and its derivative a list of pairs: an index, and the
    derivative by the entry that is looked up.

    `texts` are the whole text for scores of f32 and of f64, all that other processes and
    compilers get. Pickled, a score of `varlen.scores` is the call that made
    it, and one of your own its texts, which `parse` reads."""

    name: str
    text: Callable[[str], str]
    value: Callable | None
    derivatives: Callable | None
    # What each capture has a number of, "head" or "query", or as a table a row of:
    # "head_table" or "query_table", or "key_table", a number of each key of the sequence.
    captures: dict[str, str] = dataclasses.field(default_factory=dict)
    visible: Callable | None = None
    factor: Callable | None = None
    texts: tuple[str | None, ...] = dataclasses.field(init=False)
    # Of captures.
    names: tuple[str, ...] = dataclasses.field(init=False)
    # The call that made it, of the library: a function and its arguments.
    made_by: tuple | None = dataclasses.field(init=False, default=None)

    def __post_init__(self):
        for capture, of in self.captures.items():
            if of not in CAPTURES:
                raise ValueError(
                    f"{capture}: expected a capture of one of {', '.join(CAPTURES)}, got {of!r}"
                )
        _check_gradients(self.captures)
        object.__setattr__(self, "texts", tuple(map(self._write, COMPUTE)))
        object.__setattr__(self, "names", tuple(self.captures))
        _scores.setdefault(self.texts, self)

    def _write(self, compute):
        prefix = ""
        if self.captures:
            captures = ", ".join(
                f"%{name}: tensor<{'?x' * len(CAPTURES[of])}{compute}>"
                for name, of in self.captures.items()
            )
            prefix = f"captures({captures}) "
        return prefix + self._write_region(compute)

    def _write_region(self, compute):
        arguments = [f"%score: {compute}", "%query: i32", "%key: i32"]
        types = {
            "head": compute, "query": compute, "key_table": f"!varlen.table<{compute}, keys>",
        }  # fmt: skip
        arguments += [
            f"%{name}: {types.get(of, f'!varlen.table<{compute}>')}"
            for name, of in self.captures.items()
        ]
        lines = "\n".join(f"    {line.strip()}" for line in self.text(compute).split("\n"))
        values, types = "%new" if self.value else "%score", compute
        if self.visible:
            values, types = f"{values}, %visible", f"{types}, i1"
        if self.factor:
            values, types = f"{values}, %factor", f"{types}, {compute}"
        return (
            f"score ({', '.join(arguments)}) {{\n{lines}\n"
            f"    varlen.yield {values} : {types}\n  }}"
        )

    def written(self, compute):
        """The text for scores of type `compute`, f32 or f64. Raises ValueError if it has none
        for it."""
        text = self.texts[COMPUTE.index(compute)]
        if text is None:
            raise ValueError(f"score: expected a text for scores of {compute}, got another one")
        return text

    def region(self, compute):
        """The region alone, with its name."""
        return _CAPTURES.sub("", self.written(compute))

    def __copy__(self):
        return self  # nothing changes it

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        if self.made_by:
            function, arguments, options = self.made_by
            return functools.partial(function, **options), arguments
        return _restore, (self.name, *filter(None, self.texts))


def _check_gradients(captures):
    """That no capture has the name that a derivative of another one has in programs."""
    for prefix, derivative in (("d", "gradient"), ("t", "tangent")):
        for name in captures:
            if f"{prefix}{name}" in captures:
                raise ValueError(
                    f"captures: expected names that no {derivative} has, got '{prefix}{name}', "
                    f"which is the {derivative} of '{name}'"
                )


# Scores with a definition in numpy, of this process, by their texts.
_scores = weakref.WeakValueDictionary()


def find_score(*texts):
    """The score of these texts."""
    return _scores.get(texts) or _restore("text", *filter(None, texts))


# -- From text -------------------------------------------------------------------

_NAME = r"%([A-Za-z_]\w*)"
_CAPTURE = re.compile(rf"{_NAME}\s*:\s*tensor<((?:(?:\?|\d+)x){{1,3}})(f32|f64)>")
_ARGUMENT = re.compile(
    rf"{_NAME}\s*:\s*(?:(f32|f64|i32)|!varlen\.table<\s*(f32|f64)\s*(,\s*keys\s*)?>)"
)
_CAPTURES = re.compile(r"^\s*captures\s*\([^()]*\)\s*")
_HEAD = re.compile(r"\s*(?:captures\s*\(([^()]*)\)\s*)?score\s*\(([^()]*)\)\s*(?=\{)")
# What ends a region, begins another one or hides both.
_MARK = re.compile(r"[{}]|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|\"")


def _wanted(what, got):
    got = got if len(got) <= 60 else got[:60] + "..."
    return ValueError(f"score: expected {what}, got {got!r}")


def _read_list(pattern, what, text):
    """The matches of a pattern with commas between them."""
    found, at = [], 0
    while text[at:].strip():
        match = pattern.match(text, at + len(text[at:]) - len(text[at:].lstrip()))
        if not match:
            raise _wanted(what, text[at:].strip())
        found.append(match)
        rest = text[match.end() :].lstrip()
        if rest and (not rest.startswith(",") or not rest[1:].strip()):
            raise _wanted(f"{what} and a comma between two of them", rest)
        at = len(text) - len(rest) + 1 if rest else len(text)
    return found


def _check_body(text):
    """That the text is one region: its braces are closed at the end, and not before."""
    depth = 0
    for mark in _MARK.finditer(text):
        token = mark[0]
        if token == '"':
            raise _wanted("strings that end", text[mark.start() :])
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth == 0 and token == "}":
            if rest := text[mark.end() :].strip():
                raise _wanted("nothing behind the region", rest)
            return
    raise _wanted("a region that ends with a brace", text[-60:])


def _read_captures(declared, arguments, compute):
    """What each capture is of: from the type of its argument and its rank."""
    captures = {}
    if len(declared) != len(arguments):
        raise ValueError(
            f"score: expected the types of {len(arguments)} captures, one for each argument "
            f"of the region, got {len(declared)}"
        )
    for (name, extents, element), (argument, number, entry, keys) in zip(declared, arguments):
        if name != argument:
            raise _wanted(f"the capture %{argument}, as the argument of the region", f"%{name}")
        if name in _TAKEN or name in captures:
            raise ValueError(f"captures: expected names that no operand has, got '{name}'")
        if {element, number or entry} != {compute}:
            raise _wanted(f"%{name} of {compute}, as the score is", number or entry or element)
        rank = extents.count("x")
        if extents != "?x" * rank:
            raise _wanted(
                f"%{name}: tensor<{'?x' * rank}{element}>, as a score is for all heads and lengths",
                f"tensor<{extents}{element}>",
            )
        options = _NUMBERS if number else ("key_table",) if keys else ("head_table", "query_table")
        of = next((of for of in options if len(CAPTURES[of]) == rank), None)
        if of is None:
            ranks = " or ".join(str(len(CAPTURES[option])) for option in options)
            raise ValueError(
                f"score: expected %{name}, of which the region has "
                f"{'a number' if number else 'a table'}, to be a tensor of rank {ranks}, "
                f"got {rank}"
            )
        captures[name] = of
    _check_gradients(captures)
    return captures


def _parse(text):
    """The type of the scores, and what captures are of, by name."""
    head = _HEAD.match(text)
    if not head:
        raise _wanted("the MLIR text of a score, [captures (...)] score (...) {...}", text)
    declared = _read_list(_CAPTURE, "captures as %name: tensor<?xf32>", head[1] or "")
    arguments = _read_list(_ARGUMENT, "arguments as %name: f32", head[2])
    types = [match[2] for match in arguments[:3]]
    if len(types) < 3 or types[0] not in COMPUTE or types[1:] != ["i32", "i32"]:
        raise _wanted("a score of f32 or f64, and the positions of a query and a key, of i32", head[2])
    _check_body(text[head.end() :])
    captures = _read_captures(
        [match.groups() for match in declared], [match.groups() for match in arguments[3:]],
        types[0],
    )  # fmt: skip
    return types[0], captures


def _without_definition(*arguments):
    raise NotImplementedError(
        "expected a score with its definition in numpy, got one that came as text"
    )


class _Text(Score):
    """A score of which there is nothing but text."""

    def __post_init__(self):
        pass


def _make(name, *texts):
    """A score of texts for different types of scores."""
    parsed = {}
    for text in texts:
        compute, captures = _parse(text)
        parsed[compute] = text
    unknown = _without_definition
    score = _Text(name, unknown, unknown, unknown, captures, unknown, unknown)
    object.__setattr__(score, "texts", tuple(map(parsed.get, COMPUTE)))
    object.__setattr__(score, "names", tuple(captures))
    return score


@functools.lru_cache(maxsize=1024)
def _restore(name, *texts):
    """A score that was pickled, twice the same."""
    return _make(name, *texts)


_known: dict[str, Score] = {}  # by their texts


def parse(text):
    """The score of a text. The operations of its region are those of docs/scores.md, which
    its compilation checks; nothing of it runs before. Raises ValueError where the text is
    not that of one score, and TypeError for what is no text."""
    if type(text) is not str:
        raise TypeError(f"score: expected the MLIR text of a score, got {text!r}")
    score = _known.get(text)
    if score is None:
        score = _known[text] = _make("text", text)
    return score


# -- Of parts of the keys --------------------------------------------------------


def count_from(text):
    """The text of a score that counts positions from a number of each query on, one more capture,
    the last: with a part of the keys of its sequence a key then has the position that it has among
    all."""
    compute, _ = _parse(text)
    head = _HEAD.match(text)
    captures, arguments = head.groups()
    query, key = (match[1] for match in itertools.islice(_ARGUMENT.finditer(arguments), 1, 3))
    body = text[head.end() :].lstrip().removeprefix("{")
    begins, of_all = _find_name("key_begins", text), _find_name("of_all", text)
    for name in (query, key):
        body = re.sub(rf"%{name}\b", f"%{of_all}_{name}", body)
    captures = f"{captures}, " if captures and captures.strip() else ""
    return f"""captures({captures}%{begins}: tensor<?x?x{compute}>) score ({arguments}, %{begins}: {compute}) {{
    %{of_all} = arith.fptosi %{begins} : {compute} to i32
    %{of_all}_{query} = arith.addi %{query}, %{of_all} : i32
    %{of_all}_{key} = arith.addi %{key}, %{of_all} : i32{body}"""


def for_each_query(text):
    """The text of a score whose captures that are numbers of heads have one for each query of a
    head: gradients by these are the terms that the gradients by the others sum."""
    _, captures = _parse(text)
    head = _HEAD.match(text)
    if not head[1]:
        return text
    begin, end = head.span(1)

    def widen(match):
        name, extents, element = match.groups()
        return f"%{name}: tensor<{'?x' if captures[name] == 'head' else ''}{extents}{element}>"

    return text[:begin] + _CAPTURE.sub(widen, text[begin:end]) + text[end:]


def _find_name(name, text):
    """A name that no value of the text begins with."""
    while f"%{name}" in text:
        name += "_"
    return name
