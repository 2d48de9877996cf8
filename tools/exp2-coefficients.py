#!/usr/bin/env python3
"""Prints the polynomials of varlen-expand-exp2.

For each degree the polynomial 1 + c1 f + ... + cn f^n that minimises the
largest relative error against 2^f on [-0.5, 0.5], with the constant coefficient
held at exactly 1: then exp2 of an integer is exact, and exp2 of everything that
is clamped to the bottom of the range is exactly 0.

Remez exchange in decimal arithmetic, with one twist: the error is 0 at f = 0
for every choice of coefficients, so what alternates is the error of
(p(f) - 1) / f, and the levelled error changes sign at 0 once more.
"""

import struct
from decimal import Decimal as D, getcontext

getcontext().prec = 50
HALF = D(1) / 2
LN2 = D(2).ln()


def solve(rows):
    """Gaussian elimination on rows of [coefficients..., right-hand side]."""
    n = len(rows)
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(n):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def remez(degree, grid):
    """Coefficients 1..degree and the largest relative error on the grid."""
    points = len(grid)
    # Chebyshev-like start: degree + 1 points, dense at the ends.
    reference = []
    for i in range(degree + 1):
        t = i / degree
        t = t * t * (3 - 2 * t)
        reference.append(grid[round(t * (points - 1))])
    best = None
    for _ in range(20):
        rows = []
        for i, (f, g) in enumerate(reference):
            sign = (-1) ** i * (1 if f > 0 else -1)
            rows.append([f**k / g for k in range(1, degree + 1)] + [D(sign), 1 - 1 / g])
        coefficients = solve(rows)[:degree]

        def error(f, g):
            return (1 + sum(c * f ** (k + 1) for k, c in enumerate(coefficients))) / g - 1

        errors = [error(f, g) for f, g in grid]
        worst = max(map(abs, errors))
        if best is None or worst < best[1]:
            best = (coefficients, worst)
        # One extremum for each run of equal sign of error / f.
        signs = [(e > 0) == (f > 0) for e, (f, _) in zip(errors, grid)]
        extrema, start = [], 0
        for i in range(1, points + 1):
            if i == points or signs[i] != signs[start]:
                extrema.append(max(range(start, i), key=lambda r: abs(errors[r])))
                start = i
        while len(extrema) > degree + 1:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        if len(extrema) < degree + 1 or [grid[i] for i in extrema] == reference:
            break
        reference = [grid[i] for i in extrema]
    return best


def to_f32(value):
    return struct.unpack("f", struct.pack("f", float(value)))[0]


def main():
    count = 2001
    grid = []
    for i in range(count):
        f = HALF * (2 * i - (count - 1)) / (count - 1)
        if f != 0:
            grid.append((f, (f * LN2).exp()))
    for degree, name, rounded in (
        [(d, "f32", to_f32) for d in range(3, 7)] + [(11, "f64", float)]
    ):
        coefficients, worst = remez(degree, grid)
        print(f"// {name}, degree {degree}: {float(worst):.2g} before rounding.")
        print("{" + ", ".join(["1.0"] + [repr(rounded(c)) for c in coefficients]) + "}")


if __name__ == "__main__":
    main()
