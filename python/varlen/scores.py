"""Scores and masks of attention: what a score region of varlen.attn computes, as MLIR
text and, independent of the compiler, in numpy.

A score is a function of the scaled product s of a query and a key, of their positions
among the keys of their sequence, and of captures: numbers of each head (arrays Hq) or
of each query of each head (Hq x Tq), or tables, a row of M numbers of each (Hq x M,
Hq x Tq x M) or a number of each key (Hq x Tk), in which an index looks up. docs/scores.md
shows each of these.
"""

import bisect
import dataclasses
import functools
import itertools
import numbers
import operator
import re
import sys

from . import _dropout
from . import _numpy as np
from ._arrays import refuse_masked
from ._score import CAPTURES, Score, Table, _Text, find_score, parse
from ._show import show

# Functions that make scores, by name.
LIBRARY = {}


def _library(function):
    """A function that makes scores: of the same arguments the same one, which pickles as
    this call."""

    @functools.cache
    def find(*args, **kwargs):
        args = [_find(x) for x in args]
        kwargs = {name: _find(x) for name, x in kwargs.items()}
        score = function(*args, **kwargs)
        parts = [x for x in (*args, *kwargs.values()) if isinstance(x, Score)]
        if all(part.made_by for part in parts):
            object.__setattr__(score, "made_by", (make, tuple(args), kwargs))
        return score

    def call(*args, **kwargs):
        return find(*args, **kwargs)

    # As torch.compiler.assume_constant_result does, which takes numbers and texts: a score
    # is a constant of a graph.
    call._dynamo_marked_constant = True

    @functools.wraps(function)
    def make(*args, **kwargs):
        kwargs = {name: _concrete(x) for name, x in kwargs.items()}
        return call(*[_concrete(x) for x in args], **kwargs)

    LIBRARY[function.__name__] = make
    return make


def _concrete(x):
    """What says the same to `find`: of a score its texts, and of a number, where torch.compile
    has a symbol for one that changes, its value."""
    if isinstance(x, Score):
        return (_SCORE, *x.texts)
    torch = sys.modules.get("torch")
    if type(x) in (int, float) and torch and torch.compiler.is_compiling():
        return torch.fx.experimental.symbolic_shapes.guard_scalar(x)
    return x


_SCORE = "a score, by its texts"


def _find(x):
    """The opposite of _concrete."""
    return find_score(*x[1:]) if type(x) is tuple and x[:1] == (_SCORE,) else x


def _check_integer(name, value, least, most=2**31 - 1):
    if not isinstance(value, numbers.Integral) or not least <= value <= most:
        raise ValueError(f"{name}: expected an integer from {least} to {most}, got {value!r}")
    return int(value)


def _literal(number):
    """As MLIR reads it: with a point."""
    text = repr(float(number))
    return text if "." in text else text.replace("e", ".0e")


@_library
def softcap(cap):
    """cap * tanh(s / cap): scores stay within a bound (Bello et al., 2017; Gemma 2)."""
    # Its inverse is a number of f32, too.
    if not isinstance(cap, numbers.Real) or not 2.0**-126 <= cap <= 2.0**126:
        raise ValueError(
            f"softcap: expected a positive number from 2^-126 to 2^126, got {cap!r}"
        )
    cap = float(cap)
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


@_library
def alibi():
    """s - slope * |query - key|: the farther, the less (Press et al., 2021)."""

    def distance(s, query, key):
        # In the scores' type, as in the text: numpy takes the product of a float of 32
        # bits and an integer to 64.
        return np.abs(key - query).astype(s.dtype)

    return Score(
        "alibi",
        lambda type: f"""%ahead = arith.subi %key, %query : i32
            %x = arith.sitofp %ahead : i32 to {type}
            %distance = math.absf %x : {type}
            %y = arith.mulf %slopes, %distance : {type}
            %new = arith.subf %score, %y : {type}""",
        lambda s, query, key, slopes: s - slopes * distance(s, query, key),
        lambda s, query, key, slopes: [np.ones_like(s), 0 * s - distance(s, query, key)],
        {"slopes": "head"},
    )


@_library
def gains():
    """s * gain of each head: a temperature that is learned."""
    return Score(
        "gains",
        lambda type: f"%new = arith.mulf %score, %gains : {type}",
        lambda s, query, key, gains: s * gains,
        lambda s, query, key, gains: [gains + 0 * s, s],
        {"gains": "head"},
    )


@_library
def query_gains():
    """s * gain of each query of each head: scores that depend on a length, say."""
    return dataclasses.replace(gains(), name="query_gains", captures={"gains": "query"})


@_library
def query_alibi():
    """alibi with a slope for each query of each head."""
    return dataclasses.replace(alibi(), name="query_alibi", captures={"slopes": "query"})


@_library
def compose(first, second):
    """second of what first makes of a score, where both see the key. Their captures, those
    of first before those of second, have different names."""
    for score in (first, second):
        if not isinstance(score, Score):
            raise TypeError(f"compose: expected two scores, got {score!r}")
        if isinstance(score, _Text):
            raise NotImplementedError(
                "compose: expected scores with their definitions in numpy, got one that came as text"
            )
    if common := first.captures.keys() & second.captures.keys():
        raise ValueError(f"expected captures of different names, got '{min(common)}' twice")
    count = len(first.captures)

    def text(type):
        kept = {"score", "query", "key", *first.captures}
        after = second.text(type)
        names = " ".join((after, *first.captures))
        suffix = next(
            f"_{i}" for i in itertools.count() if not re.search(rf"_{i}\b", names)
        )  # fmt: skip
        before = re.sub(
            r"%(\w+)", lambda m: m[0] + ("" if m[1] in kept else suffix), first.text(type)
        )
        # Values of second may have the names of captures of first; those of results stay.
        taken = first.captures.keys() - {"new", "visible", "factor"}
        after = re.sub(r"%(\w+)", lambda m: m[0] + (suffix if m[1] in taken else ""), after)
        if first.value and second.value:
            after = re.sub(r"%score\b", f"%new{suffix}", after)
        elif first.value:
            before = re.sub(rf"%new{suffix}\b", "%new", before)
        if first.visible and second.visible:
            after = re.sub(r"%visible\b", f"%also{suffix}", after)
            after += f"\n%visible = arith.andi %visible{suffix}, %also{suffix} : i1"
        elif first.visible:
            before = re.sub(rf"%visible{suffix}\b", "%visible", before)
        if first.factor and second.factor:
            after = re.sub(r"%factor\b", f"%more{suffix}", after)
            after += f"\n%factor = arith.mulf %factor{suffix}, %more{suffix} : {type}"
        elif first.factor:
            before = re.sub(rf"%factor{suffix}\b", "%factor", before)
        return f"{before}\n{after}"

    def of_first(s, query, key, captures):
        return first.value(s, query, key, *captures[:count]) if first.value else s

    def value(s, query, key, *captures):
        s = of_first(s, query, key, captures)
        return second.value(s, query, key, *captures[count:]) if second.value else s

    def derivatives(s, query, key, *captures):
        def of(score, s, captures):
            if score.value is None:
                return [
                    np.ones_like(s),
                    *([] if isinstance(c, Table) else np.zeros_like(s) for c in captures),
                ]
            return score.derivatives(s, query, key, *captures)

        def times(outer, inner):
            if isinstance(inner, list):
                return [(index, outer * x) for index, x in inner]
            return outer * inner

        inner = of(first, s, captures[:count])
        outer, *others = of(second, of_first(s, query, key, captures), captures[count:])
        return [*(times(outer, x) for x in inner), *others]

    def combine(function, operation):
        """What both say of keys, or one that has a say."""
        functions = getattr(first, function), getattr(second, function)
        if not any(functions):
            return None

        def both(query, key, *captures):
            own = captures[:count], captures[count:]
            said = [of(query, key, *mine) for of, mine in zip(functions, own) if of]
            return functools.reduce(operation, said)

        return both

    changes = first.value or second.value
    return Score(
        f"{second.name} of {first.name}", text, value if changes else None,
        derivatives if changes else None, first.captures | second.captures,
        combine("visible", operator.and_), combine("factor", operator.mul),
    )  # fmt: skip


@_library
def capped_alibi(cap):
    """softcap of alibi of gains: a score with a capture of either kind."""
    linear = compose(query_gains(), alibi())
    return dataclasses.replace(compose(linear, softcap(cap)), name="capped_alibi")


# -- Tables --------------------------------------------------------------------


def _t5_bounds(buckets, max_distance):
    """The distances at which a bucket begins that is not of one distance, exactly:
    those from e = buckets / 2 on with distance >= e (max_distance / e)^(i / (buckets - e))."""
    exact = buckets // 2
    steps = buckets - exact
    bounds = []
    for i in range(1, steps):
        least = max_distance**i * exact ** (steps - i)
        # max_distance itself is one, and i of bounds only grow.
        distances = range(bounds[-1] if bounds else exact, max_distance + 1)
        bounds.append(distances[bisect.bisect_left(distances, least, key=lambda n: n**steps)])
    return bounds


@_library
def t5_bias(buckets=32, max_distance=128, bidirectional=True):
    """s + bias[bucket of key - query], trained: buckets of one distance each, then of
    distances that grow up to max_distance (Raffel et al., 2020). Half of them are of keys
    ahead; without `bidirectional` these are as near as the query's own."""
    buckets = _check_integer("t5_bias: buckets", buckets, 2, 4096)
    max_distance = _check_integer("t5_bias: max_distance", max_distance, 1)
    half = buckets // 2 if bidirectional else buckets
    if half < 2 or max_distance <= half // 2:
        raise ValueError(
            f"t5_bias: expected 2 buckets a side and a max_distance that is larger than "
            f"{half // 2}, half of those, got {buckets} and {max_distance}"
        )
    bounds = _t5_bounds(half, max_distance)

    def text(type):
        lines = [
            "%behind = arith.subi %query, %key : i32",
            "%zero = arith.constant 0 : i32",
            f"%exact = arith.constant {half // 2} : i32",
        ]
        if bidirectional:
            lines += [
                "%ahead = arith.subi %key, %query : i32",
                "%distance = arith.maxsi %behind, %ahead : i32",
                "%is_ahead = arith.cmpi sgt, %ahead, %zero : i32",
                f"%side = arith.constant {half} : i32",
                "%first = arith.select %is_ahead, %side, %zero : i32",
            ]
        else:
            lines += [
                "%distance = arith.maxsi %behind, %zero : i32",
                "%first = arith.addi %zero, %zero : i32",
            ]
        lines += [
            "%small = arith.minsi %distance, %exact : i32",
            "%bucket0 = arith.addi %first, %small : i32",
        ]
        for i, bound in enumerate(bounds):
            lines += [
                f"%bound{i} = arith.constant {bound} : i32",
                f"%reached{i} = arith.cmpi sge, %distance, %bound{i} : i32",
                f"%one{i} = arith.extui %reached{i} : i1 to i32",
                f"%bucket{i + 1} = arith.addi %bucket{i}, %one{i} : i32",
            ]
        return "\n".join([
            *lines, f"%b = varlen.lookup %bias[%bucket{len(bounds)}] : !varlen.table<{type}>",
            f"%new = arith.addf %score, %b : {type}",
        ])  # fmt: skip

    def bucket(query, key):
        distance = np.abs(key - query) if bidirectional else np.maximum(query - key, 0)
        first = np.where(key > query, half, 0) if bidirectional else 0
        return first + np.minimum(distance, half // 2) + sum(distance >= n for n in bounds)

    return Score(
        "t5_bias", text,
        lambda s, query, key, bias: s + bias(bucket(query, key)),
        lambda s, query, key, bias: [np.ones_like(s), [(bucket(query, key), np.ones_like(s))]],
        {"bias": "head_table"},
    )  # fmt: skip


@_library
def position_bias():
    """s + bias[query, key]: a bias of each pair, of as many keys as the longest sequence."""
    return Score(
        "position_bias",
        lambda type: f"""%b = varlen.lookup %bias[%key] : !varlen.table<{type}>
            %new = arith.addf %score, %b : {type}""",
        lambda s, query, key, bias: s + bias(key),
        lambda s, query, key, bias: [np.ones_like(s), [(key, np.ones_like(s))]],
        {"bias": "query_table"},
    )  # fmt: skip


@_library
def key_bias():
    """s + bias[key]: a bias of each key that all queries of a head share, trained."""
    return Score(
        "key_bias",
        lambda type: f"""%b = varlen.lookup %bias[%key] : !varlen.table<{type}, keys>
            %new = arith.addf %score, %b : {type}""",
        lambda s, query, key, bias: s + bias(key),
        lambda s, query, key, bias: [np.ones_like(s), [(key, np.ones_like(s))]],
        {"bias": "key_table"},
    )


# -- Masks ---------------------------------------------------------------------


def _mask(name, text, visible, captures=()):
    """A score that is what it was, where a key is visible."""
    return Score(name, text, None, None, dict(captures), visible)


@_library
def causal():
    """key <= query; canonicalization makes `#varlen.mask<causal>` of it."""
    return _mask(
        "causal",
        lambda type: "%visible = arith.cmpi sle, %key, %query : i32",
        lambda query, key: key <= query,
    )


@_library
def sliding_window(left, right):
    """-left <= key - query <= right; canonicalization makes a window of it."""
    left = _check_integer("sliding_window: left", left, 0)
    right = _check_integer("sliding_window: right", right, 0)
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


@_library
def dilated(step):
    """Every `step`-th key before the query, and the query's own (Beltagy et al., 2020)."""
    step = _check_integer("dilated: step", step, 1)
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


@_library
def chunked(size):
    """The keys of a query's chunk up to its own (Llama 4)."""
    size = _check_integer("chunked: size", size, 1)
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


@_library
def document():
    """The keys of a query's document, of several in one sequence: from the first, begin,
    to before end, of which both are numbers of each query."""
    return _mask(
        "document",
        lambda type: f"""%at = arith.sitofp %key : i32 to {type}
            %begun = arith.cmpf oge, %at, %begin : {type}
            %open = arith.cmpf olt, %at, %end : {type}
            %visible = arith.andi %begun, %open : i1""",
        lambda query, key, begin, end: (key >= begin) & (key < end),
        {"begin": "query", "end": "query"},
    )


@_library
def key_padding():
    """Keys whose number in `used` is not 0."""
    return _mask(
        "key_padding",
        lambda type: f"""%flag = varlen.lookup %used[%key] : !varlen.table<{type}, keys>
            %no = arith.constant 0.0 : {type}
            %visible = arith.cmpf une, %flag, %no : {type}""",
        lambda query, key, used: used(key) != 0,
        {"used": "key_table"},
    )


@_library
def packed_documents():
    """Keys of a query's document, by the number of the document of each row: query i is row
    i of the sequence, as it is where queries and keys are of the same tokens."""
    return _mask(
        "packed_documents",
        lambda type: f"""%of_query = varlen.lookup %ids[%query] : !varlen.table<{type}, keys>
            %of_key = varlen.lookup %ids[%key] : !varlen.table<{type}, keys>
            %visible = arith.cmpf oeq, %of_query, %of_key : {type}""",
        lambda query, key, ids: ids(query) == ids(key),
        {"ids": "key_table"},
    )


@_library
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


@_library
def tree():
    """A query's own key and those before it as far as its row of flags has them: flag d,
    not 0, says that the query sees the key d before its own, the last one of all keys that
    are farther, too. So a tree of drafts, of which a parent comes before its children, sees
    what it continues and its ancestors (Miao et al., 2024); `tree_flags` makes the flags."""
    return _mask(
        "tree",
        lambda type: f"""%behind = arith.subi %query, %key : i32
            %flag = varlen.lookup %flags[%behind] : !varlen.table<{type}>
            %no = arith.constant 0.0 : {type}
            %marked = arith.cmpf une, %flag, %no : {type}
            %causal = arith.cmpi sle, %key, %query : i32
            %visible = arith.andi %marked, %causal : i1""",
        lambda query, key, flags: (flags(query - key) != 0) & (key <= query),
        {"flags": "query_table"},
    )


# -- Factors of probabilities --------------------------------------------------


@_library
def dropout(rate):
    """Probabilities that are 0 with the probability `rate`, a multiple of 2^-32, and others over
    1 - rate (Srivastava et al., 2014); lse is as without. The capture is a word of the generator of
    each query (`varlen._dropout`), which `dropout_words` makes of a seed."""
    rate = _dropout.check_rate("dropout: rate", rate)
    bound, scale = _dropout.threshold(rate), 1 / _dropout.keep_probability(rate)

    def text(type):
        lines, word = [], "%dropout_words"
        if type != "f32":
            lines.append(f"%narrow = arith.truncf {word} : {type} to f32")
            word = "%narrow"
        lines.append(f"""%row = arith.bitcast {word} : f32 to i32
            %step = arith.constant {_dropout.STEP} : i32
            %counter = arith.muli %key, %step : i32
            %state0 = arith.xori %row, %counter : i32""")
        for i, (shift, factor) in enumerate(zip(_dropout.SHIFTS, _dropout.FACTORS)):
            lines.append(f"""%shift{i} = arith.constant {shift} : i32
            %high{i} = arith.shrui %state{i}, %shift{i} : i32
            %mixed{i} = arith.xori %state{i}, %high{i} : i32
            %prime{i} = arith.constant {factor} : i32
            %state{i + 1} = arith.muli %mixed{i}, %prime{i} : i32""")
        lines.append(f"""%bound = arith.constant {bound} : i32
            %kept = arith.cmpi sge, %state{len(_dropout.SHIFTS)}, %bound : i32
            %none = arith.constant 0.0 : {type}
            %more = arith.constant {_literal(scale)} : {type}
            %factor = arith.select %kept, %more, %none : {type}""")
        return "\n".join(lines)

    def factor(query, key, words):
        row = words.astype(np.float32).view(np.int32)
        words = _dropout.mix_word(row ^ key.astype(np.int32) * np.int32(_dropout.STEP))
        return np.where(words >= bound, scale, 0.0)

    return Score("dropout", text, None, None, {"dropout_words": "query"}, factor=factor)


def dropout_words(seed, cu_seqlens_q, heads, rows, sequence_ids=None, dtype="float32"):
    """The capture of `dropout`, an array (heads, rows): a function of the seed, of 64 bits, of
    the sequence, its place in the batch or what `sequence_ids`, (N), says, of the number of
    the row in its sequence, and of the head. So a sequence keeps its mask in another batch if
    it keeps its number."""
    cu = _as_numpy("cu_seqlens_q", cu_seqlens_q)
    ids = None if sequence_ids is None else _as_numpy("sequence_ids", sequence_ids)
    is_integer = [x is not None and x.dtype.kind in "iu" for x in (cu, ids)]
    _dropout.check_sequences("cu_seqlens_q", cu, is_integer[0], ids, is_integer[1])
    numbered = _dropout.number_rows(np, cu, np.arange(rows, dtype=cu.dtype), ids)
    numbered = [x.astype(np.int32) for x in (*numbered, np.arange(heads)[:, None])]
    seed = [np.full(1, word, np.int32) for word in _dropout.words_of(seed)]
    return _dropout.row_words(*seed, *numbered).view(np.float32).astype(dtype)


def _as_numpy(name, array):
    try:
        refuse_masked(array)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    try:
        return np.asarray(array)
    except Exception:  # pylint: disable=broad-except
        # Each library refuses by its own words what is on a device, is traced or has no numbers.
        raise TypeError(
            f"{name}: expected an array in memory of the CPU, got {show(array)}"
        ) from None


def tree_flags(parents):
    """Rows of flags for `tree`, n x (n + 1), of drafts whose parents are given by number:
    smaller than their own, and negative for those that continue what is before all."""
    flags = np.zeros((len(parents), len(parents) + 1), np.float32)
    flags[:, -1] = 1
    for draft, parent in enumerate(parents):
        if parent >= draft:
            raise ValueError(
                f"parents: expected numbers before their own, got {parent} for {draft}"
            )
        ancestor = draft
        while ancestor >= 0:
            flags[draft, draft - ancestor] = 1
            ancestor = parents[ancestor]
        flags[draft, draft + 1 :] = 1
    return flags


__all__ = [
    "CAPTURES", "LIBRARY", "Score", "Table", "dropout_words", "parse", "tree_flags", *LIBRARY,
]  # fmt: skip
