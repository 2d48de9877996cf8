"""How far rounding may take attention and its gradients from the golden results.

The rule of python/varlen/tolerance.py measures by what plain attention in the same
type gets wrong. That says nothing where plain attention overflows, and little of a
sequence of few rows, on which it may be exact by luck. Here the errors of each step
are added up from the inputs: scores are off by the rounding of their products, which
makes weights off by a factor of exp of that, but never more than 1; and so on.
Of n roundings sqrt(n) add up.

All are bounds of one query head of one sequence, in a precise float type.
"""

import dataclasses

import numpy
import varlen

# For the accumulation type: the largest relative error of rounding, and the largest
# logit of docs/limits.md.
UNIT = {numpy.float32: 2.0**-24, numpy.float64: 2.0**-53}
LARGEST_LOGIT = {numpy.float32: 2.0**125, numpy.float64: 2.0**1021}
# For each type: what a number is off by that is rounded to 0 or to a subnormal one,
# and the largest number that surely is one after rounding.
SMALLEST = {"f64": 2.0**-1022, "f32": 2.0**-126, "f16": 2.0**-25, "bf16": 2.0**-126}
LARGEST = {"f64": 2.0**1023, "f32": 2.0**127, "f16": 65504.0, "bf16": 2.0**127}
# Roundings that do not depend on extents: exp2, rescaling.
FEW = 10
# What an exponential may be off by that need not be more exact than the type it is
# rounded to: docs/reference/VarlenPasses.md, varlen-expand-exp2 of degree 4.
EXPONENTIAL = {"f64": 0.0, "f32": 0.0, "f16": 2.9e-6, "bf16": 2.9e-6}


def accumulation_type(dtype):
    return numpy.float64 if dtype == "f64" else numpy.float32


def _sum_error(terms, unit):
    """The relative error of a sum of so many products."""
    return (numpy.sqrt(terms) + 4) * unit


@dataclasses.dataclass
class Forward:
    """Bounds of `out` and `lse`, and what the gradients need: the weights, what
    these may be off by, and the values they have without rounding."""

    out: numpy.ndarray
    lse: numpy.ndarray
    weights: numpy.ndarray
    weight_error: numpy.ndarray
    sink_weights: numpy.ndarray
    sink_error: numpy.ndarray
    # Whether scores are within the limits of the op.
    in_range: bool


def forward(q, k, v, seen, sink, scale, dtype):
    """`sink` is a logit or -inf."""
    compute = accumulation_type(dtype)
    unit, smallest = UNIT[compute], SMALLEST[dtype]
    place = varlen.tolerance.EPSILON[dtype]
    size = numpy.where(seen, abs(q) @ abs(k).T, 0)
    logits = numpy.where(seen, scale * (q @ k.T), -numpy.inf)
    columns = numpy.c_[logits, numpy.full(len(q), sink)]
    top = columns.max(axis=1, initial=-numpy.inf)
    top = numpy.where(numpy.isneginf(top), 0, top)
    with numpy.errstate(under="ignore"):
        weights = numpy.exp(columns - top[:, None])
    total = weights.sum(axis=1)
    total = numpy.where(total == 0, 1, total)
    weights /= total[:, None]
    largest = abs(numpy.where(numpy.isneginf(columns), 0, columns)).max(axis=1)

    # What the logits of a row may be off by, and so their weights.
    off = scale * _sum_error(q.shape[1], unit) * size.max(axis=1, initial=0)
    off += 4 * unit * largest
    count = seen.sum(axis=1)
    rounding = _sum_error(count, unit) + FEW * unit
    with numpy.errstate(under="ignore"):
        # A weight may be 0 here and large there.
        logarithm = columns - (top + numpy.log(total))[:, None]
        most = numpy.exp(numpy.minimum(logarithm + 2 * off[:, None], 0))
        least = weights * numpy.exp(-2 * off[:, None])
        weight_error = numpy.maximum(most - weights, weights - least)
        weight_error += weights * (place + rounding[:, None]) + smallest
    weight_error[:, :-1][~seen] = 0
    keys, keys_error = weights[:, :-1], weight_error[:, :-1]
    wanted = keys @ v
    out = keys_error @ abs(v) + place * abs(wanted) + smallest
    lse = off + rounding * (1 + abs(top) + numpy.log1p(count)) + EXPONENTIAL[dtype]
    peak = float(largest.max(initial=0))
    return Forward(
        out=out, lse=lse, weights=keys, weight_error=keys_error,
        sink_weights=weights[:, -1], sink_error=weight_error[:, -1],
        in_range=bool(
            size.max(initial=0) < LARGEST["f64" if compute == numpy.float64 else "f32"]
            and peak < LARGEST_LOGIT[compute]
        ),
    )  # fmt: skip


@dataclasses.dataclass
class Gradients:
    """Bounds of dq and of what a query head adds to dk, dv and dsink. Infinite
    where what a result is made of may overflow."""

    dq: numpy.ndarray
    dk: numpy.ndarray
    dv: numpy.ndarray
    dsink: float


def gradients(of, dout, dlse, out, q, k, v, seen, scale, dtype):
    """`of` are the bounds of the forward, `out` is its result without rounding."""
    compute = accumulation_type(dtype)
    unit, smallest = UNIT[compute], SMALLEST[dtype]
    place, largest = varlen.tolerance.EPSILON[dtype], LARGEST[dtype]
    accumulated = LARGEST["f64" if compute == numpy.float64 else "f32"]
    weights, weight_error = of.weights, of.weight_error

    dweights = dout @ v.T
    dweights_size = abs(dout) @ abs(v).T
    delta = (dout * out).sum(axis=1) - dlse
    delta_size = (abs(dout) * abs(out)).sum(axis=1) + abs(dlse)
    # delta is computed from the out that is given, which is rounded.
    delta_error = (abs(dout) * of.out).sum(axis=1)
    delta_error += _sum_error(v.shape[1], unit) * delta_size
    slope = dweights - delta[:, None]
    slope_error = _sum_error(v.shape[1], unit) * dweights_size + delta_error[:, None]
    slope_error += 2 * unit * abs(slope)
    dscores = weights * slope
    dscores_error = weight_error * (abs(slope) + slope_error) + weights * slope_error
    dscores_error += place * abs(dscores) + smallest
    dscores_error[~seen] = 0
    dscores_size = abs(dscores) + dscores_error

    def product(weights, error, values):
        """The error of weights @ values, without that of rounding the result."""
        size = (abs(weights) + error) @ abs(values)
        bound = error @ abs(values) + _sum_error(weights.shape[1], unit) * size
        return numpy.where(size < accumulated, bound, numpy.inf), weights @ values

    def finish(bound, values):
        return bound + (place + 4 * unit) * abs(values) + smallest

    fits = dscores_size.max(initial=0) < largest and (
        max(dweights_size.max(initial=0), delta_size.max(initial=0)) < accumulated
    )
    with numpy.errstate(invalid="ignore"):
        dq, dq_value = product(dscores, dscores_error, k)
        dk, dk_value = product(dscores.T, dscores_error.T, q)
        dv, dv_value = product(weights.T, weight_error.T, dout)
        dsink = of.sink_error @ (abs(delta) + delta_error)
        dsink += of.sink_weights @ (delta_error + _sum_error(len(q), unit) * abs(delta))
        dq, dk = finish(scale * dq, scale * dq_value), finish(scale * dk, scale * dk_value)
    if not fits:
        dq[:], dk[:] = numpy.inf, numpy.inf
    if not delta_size.max(initial=0) < accumulated:
        dsink = numpy.inf
    return Gradients(dq, dk, finish(dv, dv_value), float(dsink) + smallest)
