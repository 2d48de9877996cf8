"""Which probabilities dropout keeps: a pure function of (seed, sequence, head, query, key).

Each query of each head has a word of 32 bits, and each of its keys has

    word(key) = mix(row ^ key * 0x9e3779b9), without the last shift

which is kept if it, as a signed number, is not below `threshold(rate)`. `mix` is a finalizer of
words of 32 bits (Wellons, "Prospecting for hash functions": constants 21f0aaad and 735a2d97,
shifts 16, 15 and 15; a bias of 0.107 by his measure), and keys are counted in steps of the
golden ratio, as in SplitMix (Steele, Lea and Flood, 2014). The word of a query is a hash:

    row = mix(mix(mix(mix(mix(0x3c6ef372 ^ seed[31:0]) ^ seed[63:32]) ^ sequence) ^ query) ^ head)

but for bit 29, which is the opposite of bit 30: so words travel as numbers of f32 that are
neither NaN, infinite, 0 nor subnormal, and nothing on the way changes them. Two queries have one
mask with the probability 2^-31.

Arrays are of any library with operators on int32 that wrap around: numpy, torch, jax.
"""

import numbers
from collections.abc import Sequence

from ._row_range import find_sequences
from ._show import show

# What the word of a query begins with.
_START = 0x3C6EF372
# The word of a key: steps of the counter, as a signed number, shifts and factors.
STEP, SHIFTS, FACTORS = 0x9E3779B9 - (1 << 32), (16, 15), (0x21F0AAAD, 0x735A2D97)


def mix_word(x):
    """The finalizer, but for its last shift."""
    for shift, factor in zip(SHIFTS, FACTORS):
        x = (x ^ (x >> shift & (1 << 32 - shift) - 1)) * factor
    return x


def _mix(x):
    """The finalizer: a bijection of words."""
    x = mix_word(x)
    return x ^ (x >> 15 & 0x1FFFF)


def row_words(low, high, sequence, query, head):
    """The word of each query of each head, (H, T), int32: from words of the seed, the number of
    the sequence of each row, its own number in that, (T,), and the numbers of heads, (H, 1)."""
    word = _START
    for part in (low, high, sequence, query, head):
        word = _mix(part ^ word)
    return word & ~(1 << 29) | (~word >> 1 & 1 << 29)


def words_of(seed):
    """The low and the high word of a seed, an integer of 64 bits with or without a sign."""
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral):
        raise TypeError(f"seed: expected an integer, got {show(seed)}")
    if not -(1 << 63) <= seed < 1 << 64:
        raise ValueError(f"seed: expected an integer of 64 bits, got {show(seed)}")
    words = (int(seed) >> shift & 0xFFFFFFFF for shift in (0, 32))
    return tuple((word ^ 1 << 31) - (1 << 31) for word in words)


def check_rate(name, rate):
    """The rate as a number, 0 or more and less than 1."""
    if isinstance(rate, bool) or not isinstance(rate, numbers.Real):
        raise TypeError(f"{name}: expected a number, got {show(rate)}")
    check_range(name, rate)
    return float(rate)


def check_range(name, rate):
    """That a number, which may be a symbol of a compiler, is a rate."""
    if not 0 <= rate < 1:
        raise ValueError(f"{name}: expected a number from 0 to less than 1, got {show(rate)}")


def threshold(rate):
    """The least word that is kept, a signed number of 32 bits."""
    return min(round(rate * (1 << 32)), (1 << 32) - 1) - (1 << 31)


def keep_probability(rate):
    """The probability with which words are kept: 1 - rate, rounded to a multiple of 2^-32 above
    0. What is kept is divided by this, so that it has no bias at any rate."""
    return ((1 << 31) - threshold(rate)) / (1 << 32)


def number_rows(library, cu_seqlens, rows, sequence_ids):
    """The number of the sequence of each of `rows`, and the row's own number in it, (T,), by
    functions of a library; any for rows behind the last sequence. `rows` counts from 0, of the
    type of cu_seqlens. The number of a sequence is its place in the batch, or that of
    `sequence_ids`, (N,)."""
    sequence = find_sequences(library, cu_seqlens, rows)
    query = rows - cu_seqlens[sequence]
    if sequence_ids is not None and sequence_ids.shape[0]:
        sequence = sequence_ids[sequence]
    return sequence, query


def check_sequences(name, cu_seqlens, is_integer, sequence_ids, are_integers):
    """That numbers of rows follow from these."""
    shape = tuple(cu_seqlens.shape)
    if len(shape) != 1 or shape == (0,) or not is_integer:
        raise ValueError(
            f"{name}: expected integers, as many as there are sequences and one, got "
            f"{cu_seqlens.dtype} of shape {shape}"
        )
    if sequence_ids is None:
        return
    if tuple(sequence_ids.shape) != (shape[0] - 1,) or not are_integers:
        raise ValueError(
            f"sequence_ids: expected {shape[0] - 1} integers, one for each sequence, got "
            f"{sequence_ids.dtype} of shape {tuple(sequence_ids.shape)}"
        )


def add_score(score, captures, rate, words):
    """A score and its captures, with dropout behind it; `words` as floats."""
    from . import scores  # which has the generator from here
    from ._options import check_score

    check_score(score)
    names = score.names if score is not None else ()
    if not isinstance(captures, Sequence) or isinstance(captures, (str, bytes)):
        raise TypeError(f"captures: expected a sequence, got {show(captures)}")
    # Without the words, which the caller has not given.
    if len(names) != len(captures):
        raise ValueError(
            f"captures: expected {len(names)} ({', '.join(names)}), got {len(captures)}"
        )
    dropout = scores.dropout(rate)
    score = scores.compose(score, dropout) if score is not None else dropout
    return score, (*captures, words)
