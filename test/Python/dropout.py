# RUN: %python %s
"""Dropout: the mask that attention applies beside the formula of the documentation, values and
gradients beside the reference, finite differences, what the mask depends on, its statistics,
which a generator without its finalizer fails, and errors."""

import itertools

import numpy
import varlen
from varlen import _dropout, scores

rng = numpy.random.default_rng(0)
MASK = 0xFFFFFFFF


def formula(seed, sequence, head, query, key):
    """The word of a key, as docs/attn.md has it, in integers of Python."""

    def mix(x):
        x = ((x ^ x >> 16) * 0x21F0AAAD) & MASK
        x = ((x ^ x >> 15) * 0x735A2D97) & MASK
        return x ^ x >> 15

    row = 0x3C6EF372
    for part in (seed & MASK, seed >> 32 & MASK, sequence, query, head):
        row = mix(row ^ part)
    row = row & ~(1 << 29) | (~row >> 30 & 1) << 29
    state = row ^ key * 0x9E3779B9 & MASK
    state = ((state ^ state >> 16) * 0x21F0AAAD) & MASK
    state = ((state ^ state >> 15) * 0x735A2D97) & MASK
    return (state ^ 1 << 31) - (1 << 31)


def masks_of(lengths, heads, rate, seed, keys=40, **options):
    """Which of the keys each query keeps: out of equal probabilities and one-hot values, of
    heads x queries x keys for each sequence."""
    cu = numpy.cumsum([0, *lengths]).astype("i4")
    cu_k = numpy.arange(len(lengths) + 1, dtype="i4") * keys
    q = numpy.zeros((cu[-1], heads, 8), "f4")
    k = rng.standard_normal((cu_k[-1], heads, 8)).astype("f4")
    v = numpy.repeat(numpy.tile(numpy.eye(keys, dtype="f4"), (len(lengths), 1))[:, None], heads, 1)
    out = varlen.attn(q, k, v, cu, cu_k, dropout_p=rate, seed=seed, **options)
    kept = numpy.where(out > 0, 1, 0)
    assert numpy.allclose(out, kept / (keys * (1 - rate)), rtol=1e-5, atol=0)
    return [kept[a:b].swapaxes(0, 1) for a, b in itertools.pairwise(cu)]


# Sequences whose tiles are computed in either way, of one row and of none.
LENGTHS, HEADS, SEED = [3, 0, 130, 1], 3, 0x89ABCDEF01234567
masks = masks_of(LENGTHS, HEADS, 0.3, SEED)
least = _dropout.threshold(0.3)
for sequence, mask in enumerate(masks):
    places = itertools.product(*map(range, mask.shape))
    wanted = [formula(SEED, sequence, *place) >= least for place in places]
    assert (mask == numpy.array(wanted).reshape(mask.shape)).all(), sequence

# A sequence that keeps its number keeps its mask: in another batch, alone, on other threads,
# and with a sign of the seed.
for number, mask in enumerate(masks):
    (alone,) = masks_of(
        [len(mask[0])], HEADS, 0.3, SEED - 2**64, sequence_ids=numpy.array([number])
    )
    assert (alone == mask).all()
for threads in (1, 2):
    again = masks_of(LENGTHS, HEADS, 0.3, SEED, num_threads=threads)
    assert all((a == b).all() for a, b in zip(masks, again))
assert (masks_of([130], HEADS, 0.3, SEED + 1)[0] != masks[2]).any()
assert all((mask == 1).all() for mask in masks_of(LENGTHS, HEADS, 1e-12, SEED))
# The low 32 bits of an id count.
(alone,) = masks_of([130], HEADS, 0.3, SEED, sequence_ids=numpy.array([2 - 2**32]))
assert (alone == masks[2]).all()

# At any rate the factor times the part of the words that are kept is 1: of a key with the
# greatest word, which is kept always.
word, multiplicative = MASK >> 1, [pow(x, -1, 1 << 32) for x in _dropout.FACTORS]
for shift, inverse in zip(reversed(_dropout.SHIFTS), reversed(multiplicative)):
    word = word * inverse & MASK
    word ^= word >> shift ^ word >> 2 * shift
row = numpy.array([1.0], "f4")
key = (word ^ int(row.view("i4")[0])) * pow(_dropout.STEP, -1, 1 << 32) & MASK
for rate in (0.0, 1e-12, 0.3, 0.5, 1 - 1e-9, 1 - 3e-10, 1 - 2.0**-53):
    factor = scores.dropout(rate).factor(None, numpy.array([key], "u4").view("i4"), row)
    kept = 2**31 - _dropout.threshold(rate)  # of 2^32 words
    assert kept >= 1 and factor == 2**32 / kept, rate


def close(got, wanted, bound):
    assert got.shape == wanted.shape
    got, wanted = (numpy.asarray(x, "f8") for x in (got, wanted))
    assert abs(got - wanted).max() <= bound * max(1, abs(wanted).max()), abs(got - wanted).max()


def draw(dtype, *shape):
    return rng.standard_normal(shape).astype(dtype)


# Values and gradients, with what else an attention may have.
cu, cu_k = numpy.array([0, 5, 5, 140, 141], "i4"), numpy.array([0, 70, 90, 230, 233], "i4")
slopes = rng.uniform(0.1, 0.5, 4)
CASES = [
    ("f4", {}), ("f4", {"window": (-1, 0), "sink": rng.standard_normal(4)}),
    ("f4", {"score": scores.alibi(), "captures": [slopes]}), ("f2", {"window": (100, 0)}),
    ("f8", {"score": scores.compose(scores.alibi(), scores.causal()), "captures": [slopes]}),
]  # fmt: skip
for dtype, options in CASES:
    compute = "f8" if dtype == "f8" else "f4"
    options = {
        name: [c.astype(compute) for c in x] if name == "captures"
        else x.astype(compute) if name == "sink" else x
        for name, x in options.items()
    }  # fmt: skip
    q, dout = draw(dtype, 143, 4, 32), draw(dtype, 143, 4, 24)
    k, v = draw(dtype, 240, 2, 32), draw(dtype, 240, 2, 24)
    given = {"dropout_p": 0.4, "seed": 7, **options}
    out, lse = varlen.attn(q, k, v, cu, cu_k, return_lse=True, **given)
    same = varlen.attn(q, k, v, cu, cu_k, return_lse=True, **options)[1]
    assert (lse == same).all()
    got = varlen.attn_grad(dout, q, k, v, out, lse, cu, cu_k, **given)
    score = scores.dropout(0.4)
    score = scores.compose(options["score"], score) if "score" in options else score
    words = scores.dropout_words(7, cu, 4, 143, dtype=compute)
    options |= {"score": score, "captures": [*options.get("captures", ()), words]}
    wanted = varlen.reference.gradients(dout, q, k, v, cu, cu_k, **options)
    bound = {"f2": 4e-3, "f4": 2e-5, "f8": 1e-13}[dtype]
    close(out, varlen.reference.attention(q, k, v, cu, cu_k, **options)[0], bound)
    for found, golden in zip(got, [x for x in wanted if x is not None], strict=True):
        close(found, golden, 4 * bound)
    assert (got[-1] == 0).all()  # Words have no derivative.

# Finite differences, in one direction of all operands.
q, dout = draw("f8", 9, 2, 4), draw("f8", 9, 2, 3)
k, v = draw("f8", 11, 1, 4), draw("f8", 11, 1, 3)
cu, given = numpy.array([0, 4, 9], "i4"), {"dropout_p": 0.5, "seed": 3, "window": (4, 1)}
cu_k = numpy.array([0, 6, 11], "i4")
out, lse = varlen.attn(q, k, v, cu, cu_k, return_lse=True, **given)
got = varlen.attn_grad(dout, q, k, v, out, lse, cu, cu_k, **given)
ways = [draw("f8", *x.shape) for x in (q, k, v)]
ahead, behind = (
    (varlen.attn(*(x + t * w for x, w in zip((q, k, v), ways)), cu, cu_k, **given) * dout).sum()
    for t in (1e-5, -1e-5)
)
slope = sum((g * w).sum() for g, w in zip(got, ways))
assert abs((ahead - behind) / 2e-5 - slope) <= 1e-8 * max(1, abs(slope))


# -- Statistics ------------------------------------------------------------------


def deviations(kept, probability):
    """Of what a fair mask, of heads x sequences x queries x keys, has on average: in units of
    the standard deviation of each."""
    x = (kept - probability) / numpy.sqrt(probability * (1 - probability))
    yield "frequency", x.sum() / numpy.sqrt(x.size)
    for axis, name in enumerate(("heads", "sequences", "queries", "keys")):
        others = tuple(a for a in range(4) if a != axis)
        square = (x.sum(axis=others) ** 2).sum() * x.shape[axis] / x.size
        yield f"chi-square of {name}", (square - x.shape[axis]) / numpy.sqrt(2 * x.shape[axis])

    def product(*offsets):
        most = numpy.max(offsets, axis=0)
        parts = [
            x[tuple(slice(o, n - m + o) for o, m, n in zip(offset, most, x.shape))]
            for offset in offsets
        ]
        terms = numpy.multiply.reduce(parts)
        return terms.sum() / numpy.sqrt(terms.size)

    origin = (0, 0, 0, 0)
    pairs = [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (1, 1, 1, 1), (0, 0, 1, 1), (0, 0, 8, 0)]
    pairs += [(0, 0, 0, 1 << n) for n in range(8)]
    for pair in pairs:
        yield f"{pair} of {origin}", product(origin, pair)
    for step in (1, 2, 3, 5, 8):
        places = [(0, 0, 0, n * step) for n in range(4)]
        yield f"three keys, {step} apart", product(*places[:3])
        yield f"four keys, {step} apart", product(*places)
    for axis in range(3):
        other = tuple(int(a == axis) for a in range(4))
        square = [origin, (0, 0, 0, 1), other, (*other[:3], 1)]
        yield f"a square of keys and axis {axis}", product(*square)


def worst(words_to_kept):
    """The largest deviation, and what it is of."""
    found = []
    for seed, rate in ((0, 0.1), (1, 0.5), (2, 0.9)):
        heads, count, rows, keys = 4, 3, 64, 512
        cu = numpy.arange(count + 1) * rows
        words = scores.dropout_words(seed, cu, heads, count * rows)[..., None]
        kept = words_to_kept(words, numpy.arange(keys)[None, None], rate)
        kept = kept.reshape(heads, count, rows, keys)
        found += deviations(kept.astype("f8"), 1 - rate)
    return max((abs(deviation), of) for of, deviation in found)


def fair(words, key, rate):
    return scores.dropout(rate).factor(None, key, words) > 0


def without_finalizer(words, key, rate):
    state = words.view(numpy.int32) ^ key.astype("i4") * numpy.int32(_dropout.STEP)
    return state >= _dropout.threshold(rate)


def one_mask_of_heads(words, key, rate):
    return fair(numpy.broadcast_to(words[:1], words.shape), key, rate)


# Of some hundred deviations the largest one of a fair mask is below 4.5; chi-squares of few
# numbers have longer tails.
size, of = worst(fair)
assert size <= 5.5, (size, of)
for bad in (without_finalizer, one_mask_of_heads):
    size, of = worst(bad)
    assert size >= 30, (bad.__name__, size, of)


# -- Errors ----------------------------------------------------------------------

class Refusing:
    """As an array of a device, or one that is traced."""

    __repr__ = lambda self: "<Refusing>"

    def __array__(self, *args, **options):
        raise RuntimeError("no numbers")


q, k, v = draw("f4", 9, 2, 4), draw("f4", 11, 1, 4), draw("f4", 11, 1, 3)
REFUSED = [
    (ValueError, "dropout_p: expected a number from 0 to less than 1, got 1", {"dropout_p": 1}),
    (ValueError, "dropout_p: expected a number from 0", {"dropout_p": -0.1}),
    (ValueError, "dropout_p: expected a number from 0", {"dropout_p": float("nan")}),
    (TypeError, "dropout_p: expected a number, got 'x'", {"dropout_p": "x"}),
    (TypeError, "dropout_p: expected a number, got True", {"dropout_p": True}),
    (ValueError, "seed: expected an integer beside dropout_p, got None", {"seed": None}),
    (TypeError, "seed: expected an integer, got 1.0", {"seed": 1.0}),
    # What takes several lines to print, in one.
    (TypeError, "seed: expected an integer, got array([[0, 0]..., dtype=int32)", {"seed": numpy.zeros((2, 2), "i4")}),
    (TypeError, "dropout_p: expected a number, got array([[0, 0]..., dtype=int32)",
     {"dropout_p": numpy.zeros((2, 2), "i4")}),
    (TypeError, "sequence_ids: expected an array in memory of the CPU, got <Refusing>",
     {"sequence_ids": Refusing()}),
    (TypeError, "sequence_ids: expected an array without a mask",
     {"sequence_ids": numpy.ma.masked_array(numpy.arange(2), [True, False])}),
    (ValueError, "seed: expected an integer of 64 bits, got 18446744073709551616", {"seed": 2**64}),
    (
        ValueError,
        "sequence_ids: expected 2 integers, one for each sequence, got int64 of shape (3,)",
        {"sequence_ids": numpy.arange(3)},
    ),
    (
        ValueError, "captures: expected 1 arrays (slopes), got 0",
        {"score": scores.alibi(), "dropout_p": 0},
    ),
]  # fmt: skip
for error, message, options in REFUSED:
    try:
        varlen.attn(q, k, v, cu, cu_k, **{"dropout_p": 0.1, "seed": 0, **options})
    except error as raised:
        assert message in str(raised), raised
    else:
        raise AssertionError(f"expected {error.__name__}: {message}")
# Nothing is dropped, and there is no score.
without = varlen.attn(q, k, v, cu, cu_k)
assert (varlen.attn(q, k, v, cu, cu_k, dropout_p=0, seed=1) == without).all()
