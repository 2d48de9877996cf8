"""Extents of dimensions: integers, and polynomials in those that are known at run time.

Two extents are the same if their polynomials are, so B * S rows are known to be the
rows of B sequences of S tokens without looking at a number.
"""

from __future__ import annotations

import operator


class Extent:
    """A polynomial with integer coefficients that is no constant; arithmetic gives an
    int where the symbols cancel. A monomial is a sorted tuple of symbols."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[tuple[str, ...], int]):
        self.terms = terms

    @staticmethod
    def symbol(name: str) -> Extent:
        return Extent({(name,): 1})

    def __eq__(self, other):
        return isinstance(other, Extent) and self.terms == other.terms

    def __hash__(self):
        return hash(frozenset(self.terms.items()))

    def __add__(self, other):
        terms = dict(self.terms)
        for monomial, factor in _terms(other).items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return _make(terms)

    def __mul__(self, other):
        terms: dict[tuple[str, ...], int] = {}
        for left, a in self.terms.items():
            for right, b in _terms(other).items():
                monomial = tuple(sorted(left + right))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return _make(terms)

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self):
        parts = []
        for monomial, factor in sorted(self.terms.items(), key=lambda t: (not t[0], t[0])):
            factors = [*([str(factor)] if factor != 1 or not monomial else []), *monomial]
            parts.append(" * ".join(factors))
        return " + ".join(parts)


def _terms(value):
    return value.terms if isinstance(value, Extent) else {(): operator.index(value)}


def _make(terms):
    terms = {monomial: factor for monomial, factor in terms.items() if factor}
    if set(terms) <= {()}:
        return terms.get((), 0)
    return Extent(terms)


def product(extents):
    result = 1
    for extent in extents:
        result = extent * result
    return result


def divide(dividend, divisor):
    """The exact quotient; None where there is none, or none is known."""
    if dividend == divisor:
        return 1
    terms = _terms(divisor)
    if len(terms) != 1:
        return None
    ((symbols, factor),) = terms.items()
    if factor == 0:
        return None
    quotient = {}
    for monomial, coefficient in _terms(dividend).items():
        rest = list(monomial)
        for symbol in symbols:
            if symbol not in rest:
                return None
            rest.remove(symbol)
        if coefficient % factor:
            return None
        quotient[tuple(rest)] = coefficient // factor
    return _make(quotient)
