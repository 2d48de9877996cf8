"""Which probabilities dropout keeps: a pure function of (seed, sequence, head, query, key).

Each query of each head has a generator of its own, SplitMix (Steele, Lea and Flood, 2014) on
words of 32 bits with the finalizer `_mix` (Wellons, "Prospecting for hash functions": constants
21f0aaad and 735a2d97, shifts 16, 15 and 15; a bias of 0.107 by his measure). Its state begins at
`start` and grows by `gamma`, an odd number, from key to key. Both are hashes of the seed, the
sequence, the query and the head:

    hash(word) = _mix(... _mix(_mix(word ^ seed[31:0]) ^ seed[63:32]) ^ sequence ^ ...)
    start = hash(0x3c6ef372), gamma = hash(0x1b873593) | 1
    word(key) = _mix(start + key * gamma), without the last shift
    kept if word(key), as a signed number, is not below `threshold(rate)`

Words travel as numbers of f32 that are neither NaN, infinite, 0 nor subnormal, so that nothing
on the way changes them: bit 30 of both is 0 and bit 29 is 1.

Arrays are of any library with operators on int32 that wrap around: numpy, torch, jax.
"""

import numbers
import reprlib

# Bits that make a word a normal number of f32.
_CLEARED, _SET = ~(3 << 29), 1 << 29
_START, _GAMMA = 0x3C6EF372, 0x1B873593


def _mix(x):
    """The finalizer: a bijection of words."""
    x = (x ^ (x >> 16 & 0xFFFF)) * 0x21F0AAAD
    x = (x ^ (x >> 15 & 0x1FFFF)) * 0x735A2D97
    return x ^ (x >> 15 & 0x1FFFF)


def row_words(low, high, sequence, query, head):
    """(start, gamma) of queries, int32: from words of the seed, the number of the sequence of
    each row, its own number in that, (T,), and the numbers of heads, (H, 1)."""

    def hash(word):
        for part in (low, high, sequence, query, head):
            word = _mix(part ^ word)
        return word & _CLEARED | _SET

    return hash(_START), hash(_GAMMA) | 1


def words_of(seed):
    """The low and the high word of a seed, an integer of 64 bits with or without a sign."""
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral):
        raise TypeError(f"seed: expected an integer, got {reprlib.repr(seed)}")
    if not -(1 << 63) <= seed < 1 << 64:
        raise ValueError(f"seed: expected an integer of 64 bits, got {reprlib.repr(seed)}")
    return tuple((int(seed) >> shift & 0xFFFFFFFF ^ 1 << 31) - (1 << 31) for shift in (0, 32))


def check_rate(name, rate):
    """The rate as a number, 0 or more and less than 1."""
    if isinstance(rate, bool) or not isinstance(rate, numbers.Real):
        raise TypeError(f"{name}: expected a number, got {reprlib.repr(rate)}")
    if not 0 <= rate < 1:
        raise ValueError(f"{name}: expected a number from 0 to less than 1, got {reprlib.repr(rate)}")
    return float(rate)


def threshold(rate):
    """The least word that is kept, a signed number of 32 bits: words are kept with the
    probability 1 - rate, rounded to a multiple of 2^-32 above 0."""
    return min(round(rate * (1 << 32)), (1 << 32) - 1) - (1 << 31)


def number_rows(library, cu_seqlens, rows, sequence_ids):
    """The number of the sequence of each of `rows`, and the row's own number in it, (T,), by
    functions of a library; any for rows behind the last sequence. `rows` counts from 0, of the
    type of cu_seqlens. The number of a sequence is its place in the batch, or that of
    `sequence_ids`, (N,)."""
    count = cu_seqlens.shape[0] - 1
    sequence = library.searchsorted(cu_seqlens[1:], rows, side="right")
    sequence = library.clip(sequence, 0, max(count - 1, 0))
    query = rows - cu_seqlens[sequence]
    if sequence_ids is not None and count:
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
    """A score and its captures, with dropout behind it."""
    from . import scores  # which has the generator from here

    dropout = scores.dropout(rate)
    score = scores.compose(score, dropout) if score is not None else dropout
    return score, (*captures, *words)
