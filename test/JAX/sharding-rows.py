# RUN: %python %s
"""varlen_attn under plain jit on several devices with some rows of q each: keys and values are
gathered, gradients of these summed, and results are those of one device."""

import re

from Inputs.device import need

import jax
import numpy as np
from checks import cumulate, normal, raises
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from varlen import scores
from varlen.jax import varlen_attn

P = PartitionSpec
rng = np.random.default_rng(0)
need(4)
# A sequence on all devices, an empty one, and rows behind the last.
LENGTHS, ROWS = (3, 13, 0, 2), 20
CU = cumulate(*LENGTHS)


def make(heads, kv_heads, *captures, rows=ROWS, key_rows=ROWS):
    """Arrays of q, k, v, a sink, captures ("H" for heads, "Q" and "K" for rows), and cotangents of
    out and lse."""
    extents = {"H": heads, "Q": rows, "K": key_rows, "M": 5}
    shapes = [(rows, heads, 16), (key_rows, kv_heads, 16), (key_rows, kv_heads, 8), (heads,)]
    shapes += [tuple(extents[x] for x in capture) for capture in captures]
    shapes += [(rows, heads, 8), (heads, rows)]
    return [normal(rng, "f32", *shape) for shape in shapes]


def everything(arrays, entries, **options):
    """out, lse and all gradients."""
    *inputs, dout, dlse = arrays

    def attend(q, k, v, sink, *captures):
        return varlen_attn(
            q, k, v, **entries, sink=sink, captures=captures, return_lse=True, **options
        )

    results, differentiate = jax.vjp(attend, *inputs)
    return *results, *differentiate((dout, dlse))


def specs(captures, rows, heads=None, key_rows=None):
    axes = {"H": heads, "Q": rows, "K": key_rows, "M": None}
    where = [P(rows, heads), P(key_rows), P(key_rows), P(heads)]
    return where + [P(*(axes[x] for x in c)) for c in captures] + [P(rows, heads), P(heads, rows)]


def check(mesh, arrays, where, entries=None, refuses="$^", **options):
    """Compares with one device, on programs in which no text matches `refuses`. Returns the shapes
    of the parts of results."""
    entries = {"cu_seqlens_q": CU} if entries is None else entries
    wanted = everything(arrays, entries, **options)
    placed = [jax.device_put(x, NamedSharding(mesh, spec)) for x, spec in zip(arrays, where)]
    whole = {name: jax.device_put(x, NamedSharding(mesh, P())) for name, x in entries.items()}
    compiled = jax.jit(lambda a, e: everything(a, e, **options)).lower(placed, whole).compile()
    got = compiled(placed, whole)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
    text = compiled.as_text()
    assert not re.search(refuses, text), text
    return [x.sharding.shard_shape(x.shape) for x in got]


for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = jax.make_mesh((4,), ("rows",), axis_types=(kind,))
    # Gradients of keys come back as keys are split; q is never gathered.
    arrays = make(4, 2)
    shapes = check(
        mesh, arrays, specs((), "rows", key_rows="rows"), window=(5, 0), refuses=r"\[20,4,"
    )
    assert shapes == [(5, 4, 8), (4, 5), (5, 4, 16), (5, 2, 16), (5, 2, 8), (4,)]

mesh = jax.make_mesh((4,), ("rows",), axis_types=(AxisType.Auto,))
# All devices have keys: nothing but these gradients is sent.
shapes = check(mesh, arrays, specs((), "rows"), is_causal=True, refuses="all-gather")
assert shapes[2:5] == [(5, 4, 16), (20, 2, 16), (20, 2, 8)]
# More keys than queries, with slots that are used in part and offsets, aligned at either end.
entries = {
    "cu_seqlens_q": CU, "cu_seqlens_k": cumulate(9, 13, 1, 4), "seqused_q": np.int32([2, 11, 0, 2]),
    "seqused_k": np.int32([9, 12, 1, 3]), "q_offset": np.int32([1, -2, 0, 2**31 - 1]),
}  # fmt: skip
arrays = make(2, 2, key_rows=28)
for alignment in ("bottom_right", "top_left"):
    check(
        mesh, arrays, specs((), "rows", key_rows="rows"), entries, window=(4, 2), alignment=alignment
    )
# Scores read positions, and numbers of heads, of queries and of keys.
check(
    mesh, make(2, 1, "HQM"), specs(("HQM",), "rows", key_rows="rows"), score=scores.position_bias()
)
check(mesh, make(2, 1, "HK"), specs(("HK",), "rows", key_rows="rows"), score=scores.key_bias())
check(mesh, make(2, 1, "H"), specs(("H",), "rows"), score=scores.alibi(), chunk=4)
# Eighteen rows are not for four devices: these compute all.
arrays = make(2, 2, rows=18, key_rows=18)
check(mesh, arrays, specs((), None), is_causal=True, refuses="all-")

# Rows and heads, where two devices share a kv head; rows over two axes.
mesh = jax.make_mesh((2, 2), ("rows", "heads"), axis_types=(AxisType.Auto,) * 2)
shapes = check(mesh, make(4, 1), specs((), "rows", "heads", "rows"), is_causal=True)
assert shapes[:3] == [(10, 2, 8), (2, 10), (10, 2, 16)]
shapes = check(mesh, make(4, 2), specs((), ("rows", "heads")), is_causal=True)
assert shapes[0] == (5, 4, 8)

# What is wrong in the whole batch is not hidden by a part of it.
mesh = jax.make_mesh((4,), ("rows",), axis_types=(AxisType.Auto,))
q, k, v = (jax.device_put(x, NamedSharding(mesh, P("rows"))) for x in make(2, 2)[:3])
attend = jax.jit(lambda cu, used: varlen_attn(q, k, v, cu, CU, is_causal=True, seqused_q=used))
USED = np.int32(LENGTHS)
for cu, used, message in (
    ([0, 3, 16, 16, 21], USED, "cu_seqlens_q[4] = 21"),
    ([0, 3, 2, 16, 18], USED, "cu_seqlens_q[2] = 2"),
    ([1, 3, 16, 16, 18], USED, "cu_seqlens_q[0] = 1"),
    (CU, [3, 14, 0, 2], "seqused_q[1] = 14"),
    (CU, [3, -1, 0, 2], "seqused_q[1] = -1"),
):  # fmt: skip
    raises(
        jax.errors.JaxRuntimeError, message,
        lambda: jax.block_until_ready(attend(np.int32(cu), np.int32(used))),
    )  # fmt: skip
