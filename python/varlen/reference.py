"""What varlen.attn and varlen.attn_grad mean, written from their definitions and
independent of the compiler: attention of each sequence on its own, in a precise
float type.

Arguments are those of the op. `window` is (left, right), -1 = open, (-1, 0) is
causal, or the size of a chunk; `alignment` is "bottom_right" or "top_left". `score` is
one of `varlen.scores`, `captures` its arrays: Hq or Hq x Tq, tables Hq x M or Hq x Tq x M,
or Hq x Tk of keys.
"""

import numpy as np

from . import dtypes
from .scores import Table


def visible(lq, lk, window=(-1, -1), alignment="bottom_right", offset=0):
    """Which of lk keys each of lq queries sees: a bool array lq x lk."""
    # Of any size: Python's integers do not overflow.
    first_key = diagonal(lq, lk, alignment, offset)
    if isinstance(window, int):
        seen = np.zeros((lq, lk), bool)
        for i in range(lq):
            first = (i + first_key) // window * window
            seen[i, max(first, 0) : max(i + first_key + 1, 0)] = True
        return seen
    left, right = (int(side) for side in window)
    keys = np.arange(lk, dtype=np.int32)

    def limits(distance):
        """The key so far from each query. Those beyond all keys are as good as the next."""
        places = [min(max(i + first_key + distance, -1), lk) for i in range(lq)]
        return np.array(places, np.int32).reshape(lq, 1)

    seen = np.ones((lq, lk), bool)
    if left >= 0:
        seen &= keys >= limits(-left)
    if right >= 0:
        seen &= keys <= limits(right)
    return seen


def sequences(cu_q, cu_k, seqused_q=None, seqused_k=None, q_offset=None):
    """For each sequence (first query row, queries, first key row, keys, offset)."""
    for s in range(len(cu_q) - 1):
        q0, k0 = int(cu_q[s]), int(cu_k[s])
        lq = int(cu_q[s + 1]) - q0 if seqused_q is None else int(seqused_q[s])
        lk = int(cu_k[s + 1]) - k0 if seqused_k is None else int(seqused_k[s])
        yield q0, lq, k0, lk, 0 if q_offset is None else int(q_offset[s])


def visible_pairs(
    cu_q, cu_k, *, seqused_q=None, seqused_k=None, q_offset=None,
    window=(-1, -1), alignment="bottom_right",
):  # fmt: skip
    """The number of (query, key) pairs that the masks of a batch let through."""
    return sum(
        int(visible(lq, lk, window, alignment, offset).sum())
        for _, lq, _, lk, offset in sequences(cu_q, cu_k, seqused_q, seqused_k, q_offset)
    )


class Scores:
    """What the score makes of scaled products, for some queries of a head of a sequence
    and some of its keys."""

    def __init__(self, score, captures, head, q0, rows, keys, part, diagonal):
        self.score, self.captures, self.places = score, [], []
        if score is None:
            return
        farthest = (1 << 30) - 1  # Where an offset leaves queries that it moves farther.
        query = np.arange(rows.start, rows.stop, dtype=object) + diagonal
        self.positions = (
            np.clip(query, -farthest, farthest).astype(np.int64)[:, None],
            np.arange(part.start, part.stop)[None, :],
        )
        # Where the array of each capture has what these queries read.
        queries = slice(q0 + rows.start, q0 + rows.stop)
        places = {"query": (head, queries), "key": (head, keys), "head": (head,)}
        self.places = [places[of.removesuffix("_table")] for of in score.captures.values()]
        self.captures = []
        for of, capture, place in zip(score.captures.values(), captures, self.places):
            own = capture[place]
            self.captures.append(
                Table(own) if of.endswith("table") else own[:, None] if of == "query" else own
            )

    def of(self, products):
        if self.score is None or self.score.value is None:
            return products
        return self.score.value(products, *self.positions, *self.captures)

    def seen(self, seen):
        """Those of `seen` that the score does not hide."""
        if self.score is None or self.score.visible is None:
            return seen
        return seen & self.score.visible(*self.positions, *self.captures)

    def pull_back(self, products, dscores):
        """The cotangents of the products and of each query's captures."""
        if self.score is None or self.score.value is None:
            return dscores, [np.zeros(1) for _ in self.captures]
        by_product, *by_captures = self.score.derivatives(
            products, *self.positions, *self.captures
        )

        def weigh(by):
            # No score where a key is hidden.
            return np.where(dscores == 0, 0, dscores * by)

        sums = [
            capture.sum_at([(index, weigh(part)) for index, part in by])
            if isinstance(capture, Table) else weigh(by).sum(axis=1)
            for capture, by in zip(self.captures, by_captures)
        ]  # fmt: skip
        return weigh(by_product), sums

    def add(self, dcaptures, sums):
        """Adds what queries give, as pull_back returns it, to the gradients of captures."""
        for dcapture, place, of_queries in zip(dcaptures, self.places, sums):
            if dcapture[place].ndim < of_queries.ndim:
                of_queries = np.sum(of_queries, axis=0)
            dcapture[place] += of_queries


def diagonal(lq, lk, alignment, offset):
    """The position of query 0 among the keys."""
    return (lk - lq if alignment == "bottom_right" else 0) + int(offset)


def _parts(lq, seen):
    """Rows of a sequence that are computed together, as many as a cache holds,
    and the keys that they see: pairs of slices."""
    step = max(1, (1 << 17) // max(seen.shape[1], 1))
    for first in range(0, lq, step):
        rows = slice(first, min(first + step, lq))
        columns = np.flatnonzero(seen[rows].any(axis=0))
        keys = slice(columns[0], columns[-1] + 1) if len(columns) else slice(0, 0)
        yield rows, keys


def _weighted_sum(weights, values):
    """weights @ values, with no part of a value whose weight is 0."""
    if np.isfinite(values).all():
        return weights @ values
    rows = [w[w != 0] @ values[w != 0] for w in weights]
    return np.array(rows, weights.dtype).reshape(len(weights), values.shape[1])


def _softmax(scores, seen, sink):
    """The weights and the log of the denominator, each row on its own."""
    scores = np.where(seen, scores, -np.inf)
    columns = scores if sink is None else np.c_[scores, np.full(len(scores), sink)]
    top = columns.max(axis=1, initial=-np.inf, keepdims=True)
    top = np.where(np.isneginf(top), 0, top)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.exp(columns - top)
        total = weights.sum(axis=1, keepdims=True)
        weights = weights[:, : scores.shape[1]] / np.where(total == 0, 1, total)
        # A row of NaN, too, has no weight for what it does not see.
        return np.where(seen, weights, 0), (top + np.log(total))[:, 0]


def _scale(scale, q, dim, compute):
    """The op's scale: an attribute of f64 beside f64, else of f32; its default is not
    rounded."""
    if scale is None:
        return compute(1) / np.sqrt(compute(dim))
    return compute(scale if dtypes.name_of(q) == "f64" else np.float32(scale))


def attention(
    q, k, v, cu_q, cu_k, *, seqused_q=None, seqused_k=None, q_offset=None,
    sink=None, window=(-1, -1), alignment="bottom_right", scale=None, score=None,
    captures=(),
):  # fmt: skip
    """The golden (out, lse): in f64, for f64 inputs in numpy's longest float."""
    compute = np.longdouble if dtypes.name_of(q) == "f64" else np.float64
    return _packed(
        lambda *tile: _golden(*tile, compute),
        q, k, v, cu_q, cu_k, seqused_q, seqused_k, q_offset, sink, window, alignment,
        scale, compute, score, captures,
    )  # fmt: skip


def plain(
    q, k, v, cu_q, cu_k, *, seqused_q=None, seqused_k=None, q_offset=None,
    sink=None, window=(-1, -1), alignment="bottom_right", scale=None, score=None,
    captures=(),
):  # fmt: skip
    """(out, lse) of the same attention computed step by step in the inputs' own
    type: every product's and the softmax's result is rounded to it, and sums
    accumulate in f32. What a framework does without a fused kernel; its error is
    the yardstick of the tolerance rule."""
    name = dtypes.name_of(q)
    compute = np.float64 if name == "f64" else np.float32
    return _packed(
        lambda *tile: _stepwise(*tile, name, compute),
        q, k, v, cu_q, cu_k, seqused_q, seqused_k, q_offset, sink, window, alignment,
        scale, compute, score, captures,
    )  # fmt: skip


def _golden(q, k, v, seen, sink, scale, scored, compute):
    seen = scored.seen(seen)
    with np.errstate(invalid="ignore"):
        scores = scored.of(scale * (q @ k.T))
    weights, lse = _softmax(scores, seen, sink)
    return _weighted_sum(weights, v), lse


def _stepwise(q, k, v, seen, sink, scale, scored, name, compute):
    seen = scored.seen(seen)

    def rounded(values):
        return dtypes.round_to(values, name, compute)

    # Half of the scale on either factor keeps both in a 16-bit type's range.
    root = compute(np.sqrt(scale))
    with np.errstate(invalid="ignore", over="ignore"):
        scores = rounded(rounded(q * root) @ rounded(k * root).T)
        if scored.score is not None:
            scores = rounded(scored.of(scores))
    weights, lse = _softmax(scores, seen, sink)
    return rounded(_weighted_sum(rounded(weights), v)), lse


def gradients(
    dout, q, k, v, cu_q, cu_k, *, dlse=None, seqused_q=None, seqused_k=None,
    q_offset=None, sink=None, window=(-1, -1), alignment="bottom_right", scale=None,
    score=None, captures=(),
):  # fmt: skip
    """The golden (dq, dk, dv, dsink, and of each capture) for the cotangents of
    (out, lse), in the same types as `attention`; dsink is None without a sink. A dlse
    of None is 0."""
    compute = np.longdouble if dtypes.name_of(q) == "f64" else np.float64
    return _packed_gradients(
        lambda *tile: _golden_gradients(*tile, compute), _golden_sums,
        dout, q, k, v, cu_q, cu_k, dlse, seqused_q, seqused_k, q_offset, sink, window,
        alignment, scale, compute, score, captures,
    )  # fmt: skip


def plain_gradients(
    dout, q, k, v, cu_q, cu_k, *, dlse=None, seqused_q=None, seqused_k=None,
    q_offset=None, sink=None, window=(-1, -1), alignment="bottom_right", scale=None,
    score=None, captures=(),
):  # fmt: skip
    """The same, computed step by step in the inputs' own type as `plain` is: what
    differentiating the steps of an attention that is not fused gives."""
    name = dtypes.name_of(q)
    compute = np.float64 if name == "f64" else np.float32
    return _packed_gradients(
        lambda *tile: _stepwise_gradients(*tile, name, compute),
        lambda *sums: _stepwise_sums(*sums, name, compute),
        dout, q, k, v, cu_q, cu_k, dlse, seqused_q, seqused_k, q_offset, sink, window,
        alignment, scale, compute, score, captures,
    )  # fmt: skip


# dq of some queries of a sequence, and what they add to dk, dv and dsink before
# these are scaled and rounded; that is what _..._sums do.


def _golden_gradients(dout, dlse, q, k, v, seen, sink, scale, scored, compute):
    seen = scored.seen(seen)
    with np.errstate(invalid="ignore"):
        products = scale * (q @ k.T)
        weights, lse = _softmax(scored.of(products), seen, sink)
        dweights = dout @ v.T
    delta = (dout * _weighted_sum(weights, v)).sum(axis=1) - dlse
    with np.errstate(invalid="ignore"):
        dscores = np.where(seen, weights * (dweights - delta[:, None]), 0)
        dproducts, dcaptures = scored.pull_back(products, dscores)
    return (
        scale * _weighted_sum(dproducts, k),
        _weighted_sum(dproducts.T, q),
        _weighted_sum(weights.T, dout),
        _sink_gradient(sink, lse, delta),
        dcaptures,
    )


def _golden_sums(dk, dv, dsink, scale):
    return scale * dk, dv, dsink


def _stepwise_gradients(
    dout, dlse, q, k, v, seen, sink, scale, scored, name, compute
):  # fmt: skip
    seen = scored.seen(seen)

    def rounded(values):
        return dtypes.round_to(values, name, compute)

    root = compute(np.sqrt(scale))
    with np.errstate(invalid="ignore", over="ignore"):
        scaled_q, scaled_k = rounded(q * root), rounded(k * root)
        products = rounded(scaled_q @ scaled_k.T)
        scores = products if scored.score is None else rounded(scored.of(products))
        weights, lse = _softmax(scores, seen, sink)
        weights = rounded(weights)
        dweights = np.where(seen, rounded(dout @ v.T), 0)
    # As a softmax is differentiated: by what it returned, rounded.
    delta = (weights * dweights).sum(axis=1) - dlse
    dscores = rounded(weights * (dweights - delta[:, None]))
    with np.errstate(invalid="ignore", over="ignore"):
        dproducts, dcaptures = scored.pull_back(products, dscores)
    if scored.score is not None:
        dproducts = rounded(dproducts)
    return (
        rounded(root * rounded(_weighted_sum(dproducts, scaled_k))),
        _weighted_sum(dproducts.T, scaled_q),
        _weighted_sum(weights.T, dout),
        _sink_gradient(sink, lse, delta, rounded),
        dcaptures,
    )


def _stepwise_sums(dk, dv, dsink, scale, name, compute):
    def rounded(values):
        return dtypes.round_to(values, name, compute)

    root = compute(np.sqrt(scale))
    return rounded(root * rounded(dk)), rounded(dv), rounded(dsink)


def _sink_gradient(sink, lse, delta, rounded=lambda values: values):
    if sink is None or np.isneginf(sink):
        return 0
    return -(rounded(np.exp(sink - lse)) * delta).sum()


def _packed_gradients(
    differentiate, finish, dout, q, k, v, cu_q, cu_k, dlse, seqused_q, seqused_k, q_offset,
    sink, window, alignment, scale, compute, score, captures,
):  # fmt: skip
    captures = [dtypes.widen(capture, compute) for capture in captures]
    heads, dim = q.shape[1:]
    group = heads // k.shape[1]
    scale = _scale(scale, q, dim, compute)
    dlse = np.zeros((heads, len(q)), compute) if dlse is None else dtypes.widen(dlse, compute)
    dq, dk, dv = (np.zeros(x.shape, compute) for x in (q, k, v))
    dsink = None if sink is None else np.zeros(heads, compute)
    dcaptures = [np.zeros(capture.shape, compute) for capture in captures]
    for q0, lq, k0, lk, offset in sequences(cu_q, cu_k, seqused_q, seqused_k, q_offset):
        seen = visible(lq, lk, window, alignment, offset)
        queries, keys = slice(q0, q0 + lq), slice(k0, k0 + lk)
        dout_s, q_s = (dtypes.widen(x[queries], compute) for x in (dout, q))
        k_s, v_s = (dtypes.widen(x[keys], compute) for x in (k, v))
        for h in range(heads):
            logit = None if sink is None else compute(dtypes.widen(sink)[h])
            kv = h // group
            sums = [np.zeros((lk, x.shape[2]), compute) for x in (k, v)]
            total = compute(0)
            for rows, part in _parts(lq, seen):
                scored = Scores(
                    score, captures, h, q0, rows, keys, part, diagonal(lq, lk, alignment, offset)
                )
                dq[queries, h][rows], to_k, to_v, to_sink, to_captures = differentiate(
                    dout_s[rows, h], dlse[h, queries][rows], q_s[rows, h],
                    k_s[part, kv], v_s[part, kv], seen[rows, part], logit, scale, scored,
                )  # fmt: skip
                scored.add(dcaptures, to_captures)
                sums[0][part] += to_k
                sums[1][part] += to_v
                total += to_sink
            to_k, to_v, to_sink = finish(*sums, total, scale)
            dk[keys, kv] += to_k
            dv[keys, kv] += to_v
            if dsink is not None:
                dsink[h] += to_sink
    return dq, dk, dv, dsink, *dcaptures


def _packed(
    attend, q, k, v, cu_q, cu_k, seqused_q, seqused_k, q_offset, sink, window,
    alignment, scale, compute, score, captures,
):  # fmt: skip
    captures = [dtypes.widen(capture, compute) for capture in captures]
    tq, heads, dim = q.shape
    group = heads // k.shape[1]
    scale = _scale(scale, q, dim, compute)
    out = np.zeros((tq, heads, v.shape[2]), compute)
    lse = np.full((heads, tq), -np.inf, compute)
    batch = sequences(cu_q, cu_k, seqused_q, seqused_k, q_offset)
    for q0, lq, k0, lk, offset in batch:
        seen = visible(lq, lk, window, alignment, offset)
        queries, keys = slice(q0, q0 + lq), slice(k0, k0 + lk)
        q_s = dtypes.widen(q[queries], compute)
        k_s, v_s = (dtypes.widen(x[keys], compute) for x in (k, v))
        for h in range(heads):
            logit = None if sink is None else compute(dtypes.widen(sink)[h])
            kv = h // group
            for rows, part in _parts(lq, seen):
                scored = Scores(
                    score, captures, h, q0, rows, keys, part, diagonal(lq, lk, alignment, offset)
                )
                out[queries, h][rows], lse[h, queries][rows] = attend(
                    q_s[rows, h], k_s[part, kv], v_s[part, kv], seen[rows, part],
                    logit, scale, scored,
                )  # fmt: skip
    return out, lse
