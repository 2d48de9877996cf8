"""varlen-decompose-attn against results that can be written down."""

# RUN: %around-code %python %s

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
from attention import INF, NAN, Batch, Kind, Tensor, call, compile_library, function

FULL, CAUSAL = Kind(scale=1.0), Kind(scale=1.0, right=0)
kinds = {
    "full": FULL,
    "causal": CAUSAL,
    "causal_top_left": Kind(scale=1.0, right=0, top_left=True),
    "causal_offset": Kind(scale=1.0, right=0, q_offset=True),
    "window": Kind(scale=1.0, left=1, right=0),
    "sink": Kind(scale=1.0, sink=True),
    "used": Kind(scale=1.0, seqused_q=True, seqused_k=True),
    "default_scale": Kind(),
}
library = compile_library(
    "".join(function(name, kind) for name, kind in kinds.items()),
    "varlen-decompose-attn,canonicalize,cse",
)


def batch(q, k, v, cu_q=None, cu_k=None, **more):
    """One head, head_dim 1, value dim 1; one sequence unless cu is given."""

    def column(values):
        return Tensor("f32", (len(values), 1, 1), values)

    def integers(values):
        return Tensor("i32", (len(values),), values)

    cu_q, cu_k = cu_q or [0, len(q)], cu_k or [0, len(k)]
    more = {
        name: Tensor("f32", (1,), x) if name == "sink" else integers(x)
        for name, x in more.items()
    }
    return Batch(column(q), column(k), column(v), integers(cu_q), integers(cu_k), **more)


def expect(name, operands, out, lse):
    results = call(library, name, kinds[name], operands)
    for what, got, wanted in zip(("out", "lse"), results, (out, lse)):
        close = [g == w or abs(g - w) < 1e-6 * (1 + abs(w)) for g, w in zip(got.values, wanted)]
        if len(got.values) != len(wanted) or not all(close):
            raise SystemExit(f"{name}: {what} is {got.values}, expected {wanted}")


log = math.log

# One key: its value, whatever the score; lse is the score.
expect("full", batch([2], [3], [7]), [7], [6])
# Equal scores: the mean; lse = score + log(keys).
expect("full", batch([0, 1], [4] * 3, [1, 2, 6]), [3, 3], [log(3), 4 + log(3)])
# The same with a score that no float exponential survives.
expect("full", batch([100], [100] * 2, [1, 3]), [2], [10000 + log(2)])
# Two sequences, and one between them that has no keys.
expect(
    "full",
    batch([0, 5, 0], [1, 2, 3], [1, 3, 8], [0, 1, 2, 3], [0, 2, 2, 3]),
    [2, 0, 8],
    [log(2), -INF, 0],
)
# One that has no queries, and no sequence at all with rows of no sequence.
expect("full", batch([0], [1, 2], [NAN, 8], [0, 0, 1], [0, 1, 2]), [8], [0])
expect("full", batch([NAN], [INF], [NAN], [0], [0]), [0], [-INF])
expect("full", batch([], [], [], [0], [0]), [], [])

# Causal with weights 1, 1/2, 1/4: the means of v = 1, 2, 4 over one, two and
# three keys.
thirds = [0, -log(2), -2 * log(2)]
means = [1, 2 / 1.5, 3 / 1.75]
sums = [0, log(1.5), log(1.75)]
expect("causal", batch([1] * 3, thirds, [1, 2, 4]), means, sums)
# Fewer queries than keys: the last query is at the last key, or the first the
# first.
expect("causal", batch([1] * 2, thirds, [1, 2, 4]), means[1:], sums[1:])
expect("causal_top_left", batch([1] * 2, thirds, [1, 2, 4]), means[:2], sums[:2])
# More queries than keys: the first ones see nothing.
expect("causal", batch([1] * 3, thirds[:2], [1, 2]), [0] + means[:2], [-INF] + sums[:2])
expect(
    "causal_top_left",
    batch([1] * 3, thirds[:2], [1, 2]),
    means[:2] + means[1:2],
    sums[:2] + sums[1:2],
)
# Rows 1 and 2 of the first case, alone: two rows of three end at offset 0.
expect("causal_offset", batch([1] * 2, thirds, [1, 2, 4], q_offset=[0]), means[1:], sums[1:])
# Its rows 0 and 1: they end one row early.
expect("causal_offset", batch([1] * 2, thirds, [1, 2, 4], q_offset=[-1]), means[:2], sums[:2])
# Offsets beyond every key, on either side.
least, most = -(2**31), 2**31 - 1
expect("causal_offset", batch([1], thirds, [1, 2, 4], q_offset=[most]), means[2:], sums[2:])
expect("causal_offset", batch([1], thirds, [1, 2, 4], q_offset=[least]), [0], [-INF])
# The key before and the key itself: a NaN outside the window does not matter.
expect("window", batch([0], [NAN, 1, 2], [INF, 1, 3]), [2], [log(2)])

# A sink of 0 beside one score of 0: half of it; alone, it is the whole softmax.
expect("sink", batch([0], [1], [2], sink=[0]), [1], [log(2)])
expect("sink", batch([0], [], [], sink=[3]), [0], [3])
expect("sink", batch([0], [], [], sink=[-INF]), [0], [-INF])
# Rows of no sequence have no sink either.
expect("sink", batch([0] * 2, [1], [2], cu_q=[0, 1], sink=[0]), [1, 0], [log(2), -INF])

# Only the rows in use count.
expect(
    "used",
    batch([0, NAN, 0], [1, NAN, 1], [1, NAN, 5], [0, 2, 3], [0, 2, 3], seqused_q=[1, 1], seqused_k=[1, 0]),
    [1, 0, 0],
    [0, -INF, -INF],
)

# Without a scale it is 1 / sqrt(head_dim): 1/2 for four.
four = Batch(
    Tensor("f32", (1, 1, 4), [1] * 4),
    Tensor("f32", (1, 1, 4), [3] * 4),
    Tensor("f32", (1, 1, 1), [5]),
    Tensor("i32", (2,), [0, 1]),
    Tensor("i32", (2,), [0, 1]),
)
expect("default_scale", four, [5], [6])
# Query heads share the key head of their group.
grouped = Batch(
    Tensor("f32", (1, 4, 1), [1] * 4),
    Tensor("f32", (1, 2, 1), [2, 3]),
    Tensor("f32", (1, 2, 1), [5, 7]),
    Tensor("i32", (2,), [0, 1]),
    Tensor("i32", (2,), [0, 1]),
)
expect("full", grouped, [5, 5, 7, 7], [2, 2, 3, 3])
