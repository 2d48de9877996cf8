"""Products of matrices in numpy's longest float, for golden results of f64 inputs.

numpy's own loop takes eighty times as long for them as BLAS does in f64. So each factor is cut
into slices of w bits, integers times a unit of each row of the left factor and of each
column of the right one: a = a_0 2^-w + a_1 2^-2w + ... A product of two slices is a sum of n
integers of 2 w bits each: at most 53 bits, if w is small enough, so that f64 rounds none of
its terms, in whatever order BLAS adds them (Ozaki, Ogita, Oishi and Rump, 2012). Only the
sum over slices is rounded, in the longest float.
"""

import numpy as np

_BITS = np.finfo(np.float64).nmant + 1
_LONG_BITS = np.finfo(np.longdouble).nmant + 1


def matmul(a, b):
    """a @ b, sliced where that is faster."""
    long = a.dtype == np.longdouble and min(*a.shape, b.shape[1]) >= 16
    if long and np.isfinite(a).all() and np.isfinite(b).all():
        return sliced(a, b)
    return a @ b


def sliced(a, b):
    """a @ b of numbers in the longest float, not empty. It is off by no more than n times
    the largest of a row times the largest of a column, in the last place of that."""
    terms = a.shape[1]
    count, width = _slicing(terms)
    a, a_unit = _slices(a, count, width)
    b, b_unit = _slices(b.T, count, width)
    left, right = np.concatenate(a, axis=1), np.concatenate(b[::-1], axis=1)
    # Products of slices i and j have one unit where i + j is the same, and are one product
    # of longer rows. Those with i + j >= count are beyond the last place, and so is what f64
    # rounds off the sum of all but the first.
    total = np.zeros(1)
    for order in reversed(range(count)):
        first, last = (count - 1 - order) * terms, (order + 1) * terms
        if order == 0:
            total = total.astype(np.longdouble)
        total = total * 2.0**-width + left[:, :last] @ right[:, first:].T
    total *= a_unit * np.longdouble(2.0 ** (-2 * width))
    total *= b_unit.T
    return total


def _slicing(terms):
    """How many slices of how many bits each, for sums of so many terms."""
    for count in range(2, _LONG_BITS):
        width = (_BITS - int(np.ceil(np.log2(count * terms)))) // 2
        if count * width >= _LONG_BITS + 2:
            return count, width
    raise ValueError(f"{terms} terms are too many")


def _slices(rows, count, width):
    """The slices in f64, and what each row has to be multiplied by."""
    most = np.maximum(rows.max(axis=1, keepdims=True), -rows.min(axis=1, keepdims=True))
    exponents = np.frexp(most)[1]
    exponents = np.maximum(exponents, -16000)  # whose inverse is a number
    one = np.longdouble(1)
    rest = rows * np.ldexp(one, -exponents)  # less than 1
    # In two numbers of f64; where the lower one is not 0, the upper one is exact.
    upper = rest.astype(np.float64)
    lower = (rest - upper).astype(np.float64)
    slices = []
    for i in range(count):
        upper *= 2.0**width
        lower *= 2.0**width
        slices.append(np.rint(upper))
        upper -= slices[-1]
        if i == 1:
            upper += lower  # Now it has room for both.
            lower[:] = 0
    return slices, np.ldexp(one, exponents)
