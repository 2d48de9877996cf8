# RUN: %python %s
"""The reference against closed forms, and against a scalar loop."""

import math

import numpy as np

from varlen import dtypes, random, reference, tolerance


def close(got, expected, bound=1e-13):
    error = tolerance.max_error(np.asarray(got), np.asarray(expected))
    assert error <= bound, f"{error}: got {got}, expected {expected}"


def inputs(lengths, heads=1, kv_heads=1, dim=4, value_dim=None, lengths_k=None):
    """f64 inputs, so that everything below can be compared tightly."""
    lengths_k = lengths if lengths_k is None else lengths_k
    value_dim = dim if value_dim is None else value_dim
    cu_q, cu_k = (np.cumsum([0, *n]) for n in (lengths, lengths_k))
    q = random.normal(1, "q", (cu_q[-1], heads, dim), "f64")
    k = random.normal(1, "k", (cu_k[-1], kv_heads, dim), "f64")
    v = random.normal(1, "v", (cu_k[-1], kv_heads, value_dim), "f64")
    return q, k, v, cu_q, cu_k


# Equal scores: the mean of the values, lse = log(keys).
q, k, v, cu_q, cu_k = inputs([3, 0, 5])
out, lse = reference.attention(0 * q, k, v, cu_q, cu_k)
close(out[:3], np.broadcast_to(v[:3].mean(axis=0), (3, 1, 4)))
close(out[3:], np.broadcast_to(v[3:].mean(axis=0), (5, 1, 4)))
close(lse[0], [math.log(3)] * 3 + [math.log(5)] * 5)

# Causal on equal scores: running means. One key: its value exactly.
out, lse = reference.attention(0 * q, k, v, cu_q, cu_k, window=(-1, 0))
close(out[3:, 0], v[3:, 0].cumsum(axis=0) / np.arange(1, 6)[:, None])
close(out[0], v[0], 0)
# A window of the key itself: v itself, lse = scale * q.k.
out, lse = reference.attention(q, k, v, cu_q, cu_k, window=(0, 0), scale=0.25)
close(out, v, 0)
close(lse[0], 0.25 * (q * k).sum(axis=2)[:, 0])

# Alignment: 2 queries, 5 keys.
q, k, v, cu_q, cu_k = inputs([2], lengths_k=[5])
seen = reference.visible(2, 5, (-1, 0))
assert seen.tolist() == [[True] * 4 + [False], [True] * 5]
seen = reference.visible(2, 5, (-1, 0), "top_left")
assert seen.tolist() == [[True] + [False] * 4, [True] * 2 + [False] * 3]
assert reference.visible(2, 5, (1, 1), "top_left", offset=2).tolist() == [
    [False, True, True, True, False],
    [False, False, True, True, True],
]
# Bounds and offsets of 64 bits do not overflow, and may cancel.
huge = 2**63 - 1
assert reference.visible(2, 5, (huge, huge), offset=-huge - 1).tolist() == [
    [True, True, True, False, False],
    [True, True, True, True, False],
]
assert reference.visible(2, 5, (huge, huge), "top_left", offset=huge - 7).all()
assert not reference.visible(2, 5, (0, huge), offset=huge).any()
assert not reference.visible(2, 5, (huge - 5, 0), offset=-huge).any()
assert reference.visible(2, 5, (-1, -1), offset=huge).all()
# 5 queries, 2 keys, bottom right: the first 3 queries see nothing.
assert reference.visible(5, 2, (-1, 0)).sum(axis=1).tolist() == [0, 0, 0, 1, 2]
assert reference.visible_pairs([0, 5], [0, 2], window=(-1, 0)) == 3
assert reference.visible_pairs([0, 5, 9], [0, 2, 6], seqused_k=[2, 1]) == 14

# Rows without a key: out 0, lse -inf; with a sink lse = sink. Rows past the batch
# and past seqused: -inf even so.
q, k, v, cu_q, cu_k = inputs([5, 2], lengths_k=[2, 2])
q = np.concatenate([q, q[:1]])
options = {"window": (-1, 0), "seqused_q": [5, 1]}
out, lse = reference.attention(q, k, v, cu_q, cu_k, **options)
assert (out[:3] == 0).all() and np.isneginf(lse[0, :3]).all()
assert (out[6:] == 0).all() and np.isneginf(lse[0, 6:]).all()
assert np.isfinite(lse[0, 3:6]).all()
out, lse = reference.attention(q, k, v, cu_q, cu_k, sink=np.array([0.5]), **options)
assert (out[:3] == 0).all() and (lse[0, :3] == 0.5).all()
assert np.isneginf(lse[0, 6:]).all()

# A sink is one more key of value 0: q = k = 1, v = 2, sink 0: out = 2 e / (1 + e).
one = np.ones((1, 1, 1))
out, lse = reference.attention(one, one, 2 * one, [0, 1], [0, 1], sink=np.array([0.0]))
close(out[0, 0, 0], 2 * math.e / (1 + math.e))
close(lse[0, 0], math.log(1 + math.e))

# GQA: heads of a group share keys, and a sequence alone equals one in a batch.
q, k, v, cu_q, cu_k = inputs([4, 3], heads=6, kv_heads=2, value_dim=3)
out, lse = reference.attention(q, k, v, cu_q, cu_k, window=(2, 0))
for h in range(6):
    kv = slice(h // 3, h // 3 + 1)
    for begin, end in ((0, 4), (4, 7)):
        rows, n = slice(begin, end), [0, end - begin]
        alone, lse_alone = reference.attention(
            q[rows, h : h + 1], k[rows, kv], v[rows, kv], n, n, window=(2, 0)
        )
        close(out[rows, h : h + 1], alone)
        close(lse[h : h + 1, rows], lse_alone)
assert out.shape == (7, 6, 3)

# NaN and infinity behind the mask and in a neighbour do not count.
q, k, v, cu_q, cu_k = inputs([4, 3])
clean = reference.attention(q, k, v, cu_q, cu_k, window=(-1, 0))
for bad in (np.nan, np.inf):
    k2, v2 = k.copy(), v.copy()
    k2[3:], v2[3:] = bad, bad
    for plain in (reference.attention, reference.plain):
        out, lse = plain(q, k2, v2, cu_q, cu_k, window=(-1, 0))
        close(out[:3], clean[0][:3])
        close(lse[0, :3], clean[1][0, :3])
    assert np.isnan(out[4:]).all()

# Softmax at large scores does not overflow.
out, lse = reference.attention(1e4 * q, k, v, cu_q, cu_k)
assert np.isfinite(out).all() and np.isfinite(lse).all()

# Weights that are nothing beside the largest one, subnormal or 0.
far = -np.array([0.0, 690, 705, 720, 744, 760, 1e6], np.float32).reshape(-1, 1, 1)
one, value = np.ones((1, 1, 1), np.float32), np.full_like(far, 1e30)
value[0] = 1
for last in range(1, 8):
    arguments = (one, far[:last], value[:last], [0, 1], [0, last])
    assert reference.attention(*arguments, scale=1.0)[0].item() == 1
    assert reference.attention(*arguments, scale=1.0)[1].item() == 0

# A scalar loop, written differently: exponentials of differences.
q, k, v, cu_q, cu_k = inputs([3, 6], heads=2, lengths_k=[5, 2], dim=3)
sink = np.array([0.3, -0.2])
out, lse = reference.attention(q, k, v, cu_q, cu_k, window=(1, 1), sink=sink)
for s in range(2):
    lq, lk = (int(cu[s + 1] - cu[s]) for cu in (cu_q, cu_k))
    for i in range(lq):
        for h in range(2):
            row = q[cu_q[s] + i, h]
            total, sums = math.exp(sink[h]), np.zeros(3)
            for j in range(lk):
                if abs(j - i - (lk - lq)) > 1:
                    continue
                weight = math.exp(row @ k[cu_k[s] + j, 0] / math.sqrt(3))
                total += weight
                sums += weight * v[cu_k[s] + j, 0]
            close(out[cu_q[s] + i, h], sums / total)
            close(lse[h, cu_q[s] + i], math.log(total))

# The plain attention has errors of its type's size, no more and no less.
for name, low, high in (("f32", 1e-9, 1e-5), ("f16", 1e-5, 1e-2), ("bf16", 1e-4, 5e-2)):
    cu = np.array([0, 40])
    q, k, v = (random.normal(2, x, (40, 1, 16), name) for x in "qkv")
    golden = reference.attention(q, k, v, cu, cu)
    plain = reference.plain(q, k, v, cu, cu)
    for a, b in zip(golden, plain):
        assert low < tolerance.max_error(b, a) < high, name
    assert golden[0].dtype == np.float64 and dtypes.name_of(q) == name

# Gradients against differences of the attention, in every direction at once.
q, k, v, cu_q, cu_k = inputs([3, 0, 5], heads=4, kv_heads=2, value_dim=3, lengths_k=[4, 2, 3])
sink = random.normal(1, "sink", (4,), "f64")
dout = random.normal(3, "dout", (8, 4, 3), "f64")
dlse = random.normal(3, "dlse", (4, 8), "f64")
for options in ({}, {"window": (-1, 0)}, {"window": (1, 1), "alignment": "top_left", "scale": 0.5}):
    for sinks in (None, sink):

        def loss(q, k, v, sink=None):
            out, lse = reference.attention(q, k, v, cu_q, cu_k, sink=sink, **options)
            finite = np.isfinite(lse)
            return (dout * out).sum() + (dlse[finite] * lse[finite]).sum()

        operands = [q, k, v] + ([] if sinks is None else [sinks])
        found = reference.gradients(
            dout, q, k, v, cu_q, cu_k, dlse=dlse, sink=sinks, **options
        )
        assert (found[3] is None) == (sinks is None)
        for which, (operand, gradient) in enumerate(zip(operands, found)):
            step = 2.0**-20 * random.normal(4, f"step{which}", operand.shape, "f64")
            up, down = list(operands), list(operands)
            up[which], down[which] = operand + step, operand - step
            change = loss(*up) - loss(*down)
            close(float((gradient * (up[which] - down[which])).sum() - change), 0.0, 1e-15)

# They are 0 where there is nothing to see, and no NaN of a neighbour is in them.
q, k, v, cu_q, cu_k = inputs([5, 2], lengths_k=[2, 2])
dout = random.normal(3, "dout", q.shape, "f64")
clean = reference.gradients(dout, q, k, v, cu_q, cu_k, window=(-1, 0))
assert (clean[0][:3] == 0).all() and (clean[0][3:] != 0).any()
for how in (reference.gradients, reference.plain_gradients):
    dirty = [x.copy() for x in (dout, q, k, v)]
    for x, rows in zip(dirty, (slice(5, 7), slice(5, 7), slice(2, 4), slice(2, 4))):
        x[rows] = np.nan
    found = how(*dirty, cu_q, cu_k, window=(-1, 0))
    for got, wanted, rows in zip(found, clean, (5, 2, 2)):
        close(got[:rows], wanted[:rows])

# The plain gradients have errors of their type's size.
for name, low, high in (("f32", 1e-9, 1e-4), ("f16", 1e-5, 5e-2), ("bf16", 1e-4, 5e-1)):
    cu = np.array([0, 40])
    operands = [random.normal(2, x, (40, 1, 16), name) for x in ("dout", "q", "k", "v")]
    golden = reference.gradients(*operands, cu, cu)
    plain = reference.plain_gradients(*operands, cu, cu)
    for a, b in zip(golden[:3], plain[:3]):
        assert low < tolerance.max_error(b, a) < high, name
