# RUN: %python %s
"""Scores in calls with arrays: values and gradients beside the reference, errors, and
no compilation for a score that is there already."""

import numpy
import varlen
from varlen import scores

rng = numpy.random.default_rng(0)
HEADS, ROWS = 4, 90


def draw(*shape):
    return rng.standard_normal(shape).astype("f4")


q, k, v, dout = (draw(ROWS, heads, 32) for heads in (HEADS, 2, 2, HEADS))
cu = numpy.array([0, 30, 30, 88], "i4")
slopes = rng.uniform(0.1, 0.5, HEADS).astype("f4")
gains = rng.uniform(0.5, 1.5, (HEADS, ROWS)).astype("f4")
score = scores.capped_alibi(5.0)
given = {"score": score, "captures": [gains, slopes]}


def close(got, wanted):
    assert got.shape == wanted.shape and got.dtype == numpy.float32
    assert abs(got - wanted).max() <= 1e-4 * max(1, abs(wanted).max())


out, lse = varlen.attn(q, k, v, cu, is_causal=True, return_lse=True, **given)
golden, golden_lse = varlen.reference.attention(q, k, v, cu, cu, window=(-1, 0), **given)
close(out, golden)
used = slice(0, 88)
close(lse[:, used], golden_lse[:, used])

found = varlen.attn_grad(dout, q, k, v, out, lse, cu, is_causal=True, **given)
wanted = varlen.reference.gradients(dout, q, k, v, cu, cu, window=(-1, 0), **given)
wanted = [array for array in wanted if array is not None]
assert len(found) == len(wanted) == 5
for got, golden in zip(found, wanted):
    close(got, golden)
assert (found[3][:, 88:] == 0).all()

# The same object, so the same code.
assert scores.capped_alibi(5.0) is score
# A mask of a region is that mask, to the bit.
by_region = varlen.attn(q, k, v, cu, score=scores.causal())
assert (by_region == varlen.attn(q, k, v, cu, is_causal=True)).all()


def refused(error, message, **options):
    try:
        varlen.attn(q, k, v, cu, **options)
    except error as raised:
        assert message in str(raised), raised
    else:
        raise AssertionError(f"expected {error.__name__}: {message}")


refused(ValueError, "captures: expected 2 arrays (gains, slopes), got 0", score=score)
refused(ValueError, "captures: expected 0 arrays (), got 1", captures=[slopes])
refused(
    ValueError, "gains: expected an array of rank 2 (heads, rows), got shape (4,)",
    score=score, captures=[slopes, slopes],
)  # fmt: skip
refused(
    ValueError, "expected capture compatible with 'tensor<4xf32>', got 'tensor<3xf32>'",
    score=score, captures=[gains, slopes[:3]],
)  # fmt: skip
refused(
    ValueError, "a capture has 80 rows: expected 90, as many as q",
    score=score, captures=[numpy.ascontiguousarray(gains[:, :80]), slopes],
)  # fmt: skip
refused(
    TypeError, "slopes: expected elements of f32, f64, got i32",
    score=score, captures=[gains, slopes.astype("i4")],
)  # fmt: skip
