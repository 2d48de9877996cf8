# RUN: %python %s
"""Products in the longest float, cut into slices for BLAS, against sums of fractions and
against numpy's own."""

from fractions import Fraction

import numpy as np

from varlen import products

rng = np.random.default_rng(1)
LAST = Fraction(1, 2 ** (np.finfo(np.longdouble).nmant + 1))


def fraction(value):
    mantissa, exponent = np.frexp(value)
    upper = int(np.ldexp(mantissa, 32))
    lower = int(np.ldexp(np.ldexp(mantissa, 32) - upper, 32))
    return Fraction((upper << 32) + lower) * Fraction(2) ** (int(exponent) - 64)


def errors(product, a, b):
    """By the largest of a row, that of a column and the number of terms, in last places."""
    a, b = np.vectorize(fraction, [object])(a), np.vectorize(fraction, [object])(b)
    most = np.abs(a).max(axis=1, keepdims=True) * np.abs(b).max(axis=0) * a.shape[1]
    error = np.abs(np.vectorize(fraction, [object])(product) - a @ b)
    return float((error / np.where(most == 0, 1, most)).max() / LAST)


def draw(*shape):
    """Numbers of 64 bits: an f64 has 53."""
    upper, lower = rng.standard_normal((2, *shape))
    return upper.astype(np.longdouble) + lower * np.longdouble(2.0**-54)


for rows, terms, columns in ((3, 1, 4), (2, 5, 3), (7, 64, 5), (3, 1000, 2), (1, 30000, 1)):
    a, b = draw(rows, terms), draw(terms, columns)
    assert (a != a.astype(np.float64)).any()
    wide = a * np.exp(5 * draw(rows, terms))  # of all sizes
    units = np.longdouble(10.0) ** rng.integers(-900, 900, (rows, 1))
    for left in (a, a.astype(np.float64).astype(np.longdouble), wide, wide * units, 0 * a):
        got = products.sliced(left, b)
        assert got.dtype == np.longdouble and got.shape == (rows, columns)
        error = errors(got, left, b)
        assert error <= 2, f"{rows} x {terms} x {columns}: {error}"
        # Strides do not matter.
        assert (products.sliced(left.T.copy().T, b.T.copy().T) == got).all()

# Sums of f64, and none, and what is not finite.
a, b = draw(16, 20), draw(20, 17)
assert (products.matmul(a, b) == products.sliced(a, b)).all()
narrow = a.astype(np.float64), b.astype(np.float64)
assert (products.matmul(*narrow) == narrow[0] @ narrow[1]).all()
assert products.matmul(a[:, :0], b[:0]).tolist() == [[0] * 17] * 16
assert products.matmul(a[:0], b).shape == (0, 17)
a[1, 2] = np.inf
with np.errstate(invalid="ignore"):
    infinite = np.isinf(products.matmul(a, b)).all(axis=1)
assert np.flatnonzero(infinite).tolist() == [1]
