"""What varlen.attn, varlen.attn_grad and varlen.attn_jvp mean, written from their definitions and
independent of the compiler: attention of each sequence on its own, in a precise
float type.

Arguments are those of the op. `window` is (left, right), -1 = open, (-1, 0) is
causal, or the size of a chunk; `alignment` is "bottom_right" or "top_left". `score` is
one of `varlen.scores`, `captures` its arrays: Hq or Hq x Tq, tables Hq x M or Hq x Tq x M,
or Hq x Tk of keys.
"""

import numpy as np

from . import dtypes, kv_cache
from .products import matmul
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
        """The pairs of `seen` that the score does not hide."""
        if self.score is None or self.score.visible is None:
            return seen
        return seen & self.score.visible(*self.positions, *self.captures)

    def factors(self, weights, rounded=lambda values: values):
        """Weights, or cotangents of them, times what the score multiplies weights by."""
        if self.score is None or self.score.factor is None:
            return weights
        factors = self.score.factor(*self.positions, *self.captures)
        with np.errstate(invalid="ignore"):
            return rounded(weights * factors.astype(weights.dtype))

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

    def push_forward(self, products, tproducts, tcaptures):
        """The tangents of scores, from those of products and of arrays of captures."""
        if self.score is None or self.score.value is None:
            return tproducts
        by_product, *by_captures = self.score.derivatives(
            products, *self.positions, *self.captures
        )
        scores = by_product * tproducts
        kinds = self.score.captures.values() if tcaptures else ()
        for of, tangents, place, by in zip(kinds, tcaptures, self.places, by_captures):
            own = tangents[place]
            if of.endswith("table"):
                own = Table(own)
                scores = scores + sum(part * own(index) for index, part in by)
            else:
                scores = scores + by * (own[:, None] if of == "query" else own)
        return scores

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
    with np.errstate(invalid="ignore", over="ignore"):
        sums = matmul(weights, values)
    if np.isfinite(sums).all():
        return sums
    rows = [w[w != 0] @ values[w != 0] for w in weights]
    return np.array(rows, weights.dtype).reshape(len(weights), values.shape[1])


def _softmax(scores, seen, sink):
    """The weights and the log of the denominator, each row on its own."""
    if not seen.all():
        scores = np.where(seen, scores, -np.inf)
    columns = scores if sink is None else np.c_[scores, np.full(len(scores), sink)]
    top = columns.max(axis=1, initial=-np.inf, keepdims=True)
    top = np.where(np.isneginf(top), 0, top)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = _exp(columns - top)
        total = weights.sum(axis=1, keepdims=True)
        weights = weights[:, : scores.shape[1]] / np.where(total == 0, 1, total)
        if not np.isfinite(total).all():
            # A row of NaN, too, has no weight for what it does not see.
            weights = np.where(seen, weights, 0)
        return weights, (top + np.log(total))[:, 0]


def _exp(exponents):
    """e^x for x <= 0, in place. In f64 what is 0 beside the 1 of the largest score is exactly
    0: numpy takes 10 times as long for exp(-inf), 80 times where a result is subnormal."""
    if exponents.dtype != np.float64:
        return np.exp(exponents, out=exponents)
    least = -700.0
    nothing = exponents < least
    np.exp(np.maximum(exponents, least, out=exponents), out=exponents)
    exponents[nothing] = 0
    return exponents


def _hidden_as_0(seen, values):
    return values if seen.all() else np.where(seen, values, 0)


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
    return _packed(
        _Golden(q), q, k, v, cu_q, cu_k, seqused_q, seqused_k, q_offset, sink, window,
        alignment, scale, score, captures,
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
    return _packed(
        _Rounded(q), q, k, v, cu_q, cu_k, seqused_q, seqused_k, q_offset, sink, window,
        alignment, scale, score, captures,
    )  # fmt: skip


def attention_and_gradients(
    dout, q, k, v, cu_q, cu_k, *, dlse=None, seqused_q=None, seqused_k=None,
    q_offset=None, sink=None, window=(-1, -1), alignment="bottom_right", scale=None,
    score=None, captures=(),
):  # fmt: skip
    """What `attention` returns, and the golden (dq, dk, dv, dsink, and of each capture) for
    the cotangents of (out, lse), in the same types; dsink is None without a sink. A dlse
    of None is 0."""
    steps = _Golden(q)
    forward = _no_keys(q, v, steps.compute)
    return forward, _packed_gradients(
        steps, forward, dout, q, k, v, cu_q, cu_k, dlse, seqused_q, seqused_k, q_offset, sink,
        window, alignment, scale, score, captures,
    )  # fmt: skip


def gradients(dout, q, k, v, cu_q, cu_k, **options):
    """The gradients alone."""
    return attention_and_gradients(dout, q, k, v, cu_q, cu_k, **options)[1]


def plain_gradients(
    dout, q, k, v, cu_q, cu_k, *, dlse=None, seqused_q=None, seqused_k=None,
    q_offset=None, sink=None, window=(-1, -1), alignment="bottom_right", scale=None,
    score=None, captures=(),
):  # fmt: skip
    """The same, computed step by step in the inputs' own type as `plain` is: what
    differentiating the steps of an attention that is not fused gives."""
    return _packed_gradients(
        _Rounded(q), None, dout, q, k, v, cu_q, cu_k, dlse, seqused_q, seqused_k, q_offset,
        sink, window, alignment, scale, score, captures,
    )  # fmt: skip


def tangents(
    tq, tk, tv, q, k, v, cu_q, cu_k, *, tsink=None, tcaptures=(), seqused_q=None,
    seqused_k=None, q_offset=None, sink=None, window=(-1, -1), alignment="bottom_right",
    scale=None, score=None, captures=(),
):  # fmt: skip
    """The golden tangents of (out, lse) along those of q, k, v, sink and captures, in the types
    of `attention`. Without tcaptures, or a tsink, these are 0."""
    return _packed_tangents(
        _Golden(q), tq, tk, tv, q, k, v, cu_q, cu_k, tsink, tcaptures, seqused_q, seqused_k,
        q_offset, sink, window, alignment, scale, score, captures,
    )  # fmt: skip


def plain_tangents(
    tq, tk, tv, q, k, v, cu_q, cu_k, *, tsink=None, tcaptures=(), seqused_q=None,
    seqused_k=None, q_offset=None, sink=None, window=(-1, -1), alignment="bottom_right",
    scale=None, score=None, captures=(),
):  # fmt: skip
    """The same, computed step by step in the inputs' own type as `plain` is: what the forward
    mode makes of the steps of an attention that is not fused."""
    return _packed_tangents(
        _Rounded(q), tq, tk, tv, q, k, v, cu_q, cu_k, tsink, tcaptures, seqused_q, seqused_k,
        q_offset, sink, window, alignment, scale, score, captures,
    )  # fmt: skip


class _Golden:
    """The steps of a head in a precise type, for some queries of a sequence."""

    def __init__(self, q):
        self.compute = np.longdouble if dtypes.name_of(q) == "f64" else np.float64

    def factor(self, values, scale):
        """What the products of queries and keys are products of."""
        return values

    def products(self, q, k, scale):
        return scale * matmul(q, k.T)

    def attend(self, q, k, v, seen, sink, scale, scored):
        with np.errstate(invalid="ignore"):
            scores = scored.of(self.products(q, k, scale))
        weights, lse = _softmax(scores, scored.seen(seen), sink)
        return _weighted_sum(scored.factors(weights), v), lse

    def differentiate(self, dout, dlse, q, k, v, seen, sink, scale, scored):
        """(out, lse), dq of these queries, and what they add to dk, dv, dsink and the
        gradients of captures, before `sums`."""
        seen = scored.seen(seen)
        with np.errstate(invalid="ignore"):
            products = self.products(q, k, scale)
            scores = scored.of(products)
        weights, lse = _softmax(scores, seen, sink)
        kept = scored.factors(weights)
        out = _weighted_sum(kept, v)
        delta = (dout * out).sum(axis=1) - dlse
        with np.errstate(invalid="ignore"):
            dweights = scored.factors(matmul(dout, v.T))
            dscores = _hidden_as_0(seen, weights * (dweights - delta[:, None]))
            dproducts, dcaptures = scored.pull_back(products, dscores)
        return (
            (out, lse),
            scale * _weighted_sum(dproducts, k),
            _weighted_sum(dproducts.T, q),
            _weighted_sum(kept.T, dout),
            _sink_gradient(sink, lse, delta),
            dcaptures,
        )

    def sums(self, dk, dv, dsink, scale):
        return scale * dk, dv, dsink

    def push_forward(self, values, tangents, seen, sink, tsink, scale, scored, tcaptures):
        """The tangents of out and lse of these queries, for (q, k, v) and their tangents."""
        (q, k, v), (tq, tk, tv) = values, tangents
        seen = scored.seen(seen)
        with np.errstate(invalid="ignore"):
            products = self.products(q, k, scale)
            tproducts = self.products(tq, k, scale) + self.products(q, tk, scale)
            scores, ts = scored.of(products), scored.push_forward(products, tproducts, tcaptures)
        weights, lse = _softmax(scores, seen, sink)
        ts = _hidden_as_0(seen, ts)
        tlse = (weights * ts).sum(axis=1) + _sink_weight(sink, lse) * tsink
        kept = scored.factors(weights)
        change = _hidden_as_0(seen, kept * (ts - tlse[:, None]))
        return _weighted_sum(change, v) + _weighted_sum(kept, tv), tlse


class _Rounded:
    """The same with every result rounded to the type of the inputs."""

    def __init__(self, q):
        self.name = dtypes.name_of(q)
        self.compute = np.float64 if self.name == "f64" else np.float32

    def rounded(self, values):
        return dtypes.round_to(values, self.name, self.compute)

    def factor(self, values, scale):
        # Half of the scale on either factor keeps both in a 16-bit type's range.
        with np.errstate(invalid="ignore", over="ignore"):
            return self.rounded(values * self.compute(np.sqrt(scale)))

    def products(self, q, k):
        with np.errstate(invalid="ignore", over="ignore"):
            return self.rounded(q @ k.T)

    def scores(self, products, scored):
        if scored.score is None:
            return products
        with np.errstate(invalid="ignore", over="ignore"):
            return self.rounded(scored.of(products))

    def attend(self, q, k, v, seen, sink, scale, scored):
        scores = self.scores(self.products(q, k), scored)
        weights, lse = _softmax(scores, scored.seen(seen), sink)
        weights = scored.factors(self.rounded(weights), self.rounded)
        return self.rounded(_weighted_sum(weights, v)), lse

    def differentiate(self, dout, dlse, q, k, v, seen, sink, scale, scored):
        seen = scored.seen(seen)
        products = self.products(q, k)
        weights, lse = _softmax(self.scores(products, scored), seen, sink)
        weights = self.rounded(weights)
        kept = scored.factors(weights, self.rounded)
        dweights = scored.factors(self.products(dout, v), self.rounded)
        dweights = _hidden_as_0(seen, dweights)
        # As a softmax is differentiated: by what it returned, rounded.
        delta = (weights * dweights).sum(axis=1) - dlse
        dscores = self.rounded(weights * (dweights - delta[:, None]))
        with np.errstate(invalid="ignore", over="ignore"):
            dproducts, dcaptures = scored.pull_back(products, dscores)
        if scored.score is not None:
            dproducts = self.rounded(dproducts)
        return (
            None,
            self.factor(self.rounded(_weighted_sum(dproducts, k)), scale),
            _weighted_sum(dproducts.T, q),
            _weighted_sum(kept.T, dout),
            _sink_gradient(sink, lse, delta, self.rounded),
            dcaptures,
        )

    def sums(self, dk, dv, dsink, scale):
        return self.factor(self.rounded(dk), scale), self.rounded(dv), self.rounded(dsink)

    def push_forward(self, values, tangents, seen, sink, tsink, scale, scored, tcaptures):
        (q, k, v), (tq, tk, tv) = values, tangents
        seen = scored.seen(seen)
        products = self.products(q, k)
        ts = self.rounded(self.products(tq, k) + self.products(q, tk))
        if scored.score is not None:
            ts = self.rounded(scored.push_forward(products, ts, tcaptures))
        ts = _hidden_as_0(seen, ts)
        weights, lse = _softmax(self.scores(products, scored), seen, sink)
        weights = self.rounded(weights)
        # As a softmax is differentiated: by what it returned, rounded.
        tlse = (weights * ts).sum(axis=1) + self.rounded(_sink_weight(sink, lse)) * tsink
        change = scored.factors(self.rounded(weights * (ts - tlse[:, None])), self.rounded)
        kept = scored.factors(weights, self.rounded)
        out = self.rounded(_weighted_sum(_hidden_as_0(seen, change), v))
        return self.rounded(out + self.rounded(_weighted_sum(kept, tv))), tlse


def _sink_weight(sink, lse):
    """The probability of the sink in each row."""
    if sink is None or np.isneginf(sink):
        return np.zeros(lse.shape, lse.dtype)
    return np.exp(sink - lse)


def _sink_gradient(sink, lse, delta, rounded=lambda values: values):
    return -(rounded(_sink_weight(sink, lse)) * delta).sum()


def _by_head(rows, compute):
    """Rows by head, so that those of a head are one matrix."""
    return dtypes.widen(rows.swapaxes(0, 1), compute)


def _packed_gradients(
    steps, forward, dout, q, k, v, cu_q, cu_k, dlse, seqused_q, seqused_k, q_offset, sink,
    window, alignment, scale, score, captures,
):  # fmt: skip
    """The gradients; (out, lse) go to `forward`, unless it is None."""
    compute = steps.compute
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
        parts = list(_parts(lq, seen))
        queries, keys = slice(q0, q0 + lq), slice(k0, k0 + lk)
        dout_s, q_s = (_by_head(x[queries], compute) for x in (dout, q))
        k_s, v_s = (_by_head(x[keys], compute) for x in (k, v))
        q_s, k_s = (steps.factor(x, scale) for x in (q_s, k_s))
        for h in range(heads):
            logit = None if sink is None else compute(dtypes.widen(sink)[h])
            kv = h // group
            sums = [np.zeros((lk, x.shape[2]), compute) for x in (k, v)]
            total = compute(0)
            for rows, part in parts:
                scored = Scores(
                    score, captures, h, q0, rows, keys, part, diagonal(lq, lk, alignment, offset)
                )
                attended, dq[queries, h][rows], to_k, to_v, to_sink, to_captures = (
                    steps.differentiate(
                        dout_s[h, rows], dlse[h, queries][rows], q_s[h, rows],
                        k_s[kv, part], v_s[kv, part], seen[rows, part], logit, scale, scored,
                    )
                )  # fmt: skip
                if forward is not None:
                    out, lse = forward
                    out[queries, h][rows], lse[h, queries][rows] = attended
                scored.add(dcaptures, to_captures)
                sums[0][part] += to_k
                sums[1][part] += to_v
                total += to_sink
            to_k, to_v, to_sink = steps.sums(*sums, total, scale)
            dk[keys, kv] += to_k
            dv[keys, kv] += to_v
            if dsink is not None:
                dsink[h] += to_sink
    return dq, dk, dv, dsink, *dcaptures


def _packed(
    steps, q, k, v, cu_q, cu_k, seqused_q, seqused_k, q_offset, sink, window, alignment,
    scale, score, captures,
):  # fmt: skip
    compute = steps.compute
    captures = [dtypes.widen(capture, compute) for capture in captures]
    heads, dim = q.shape[1:]
    group = heads // k.shape[1]
    scale = _scale(scale, q, dim, compute)
    out, lse = _no_keys(q, v, compute)
    batch = sequences(cu_q, cu_k, seqused_q, seqused_k, q_offset)
    for q0, lq, k0, lk, offset in batch:
        seen = visible(lq, lk, window, alignment, offset)
        parts = list(_parts(lq, seen))
        queries, keys = slice(q0, q0 + lq), slice(k0, k0 + lk)
        q_s = steps.factor(_by_head(q[queries], compute), scale)
        k_s = steps.factor(_by_head(k[keys], compute), scale)
        v_s = _by_head(v[keys], compute)
        for h in range(heads):
            logit = None if sink is None else compute(dtypes.widen(sink)[h])
            kv = h // group
            for rows, part in parts:
                scored = Scores(
                    score, captures, h, q0, rows, keys, part, diagonal(lq, lk, alignment, offset)
                )
                out[queries, h][rows], lse[h, queries][rows] = steps.attend(
                    q_s[h, rows], k_s[kv, part], v_s[kv, part], seen[rows, part],
                    logit, scale, scored,
                )  # fmt: skip
    return out, lse


def _packed_tangents(
    steps, tq, tk, tv, q, k, v, cu_q, cu_k, tsink, tcaptures, seqused_q, seqused_k, q_offset,
    sink, window, alignment, scale, score, captures,
):  # fmt: skip
    compute = steps.compute
    captures = [dtypes.widen(capture, compute) for capture in captures]
    tcaptures = [dtypes.widen(tangent, compute) for tangent in tcaptures]
    heads, dim = q.shape[1:]
    group = heads // k.shape[1]
    scale = _scale(scale, q, dim, compute)
    tout, tlse = np.zeros((len(q), heads, v.shape[2]), compute), np.zeros((heads, len(q)), compute)
    for q0, lq, k0, lk, offset in sequences(cu_q, cu_k, seqused_q, seqused_k, q_offset):
        seen = visible(lq, lk, window, alignment, offset)
        parts = list(_parts(lq, seen))
        queries, keys = slice(q0, q0 + lq), slice(k0, k0 + lk)
        q_s, tq_s = (steps.factor(_by_head(x[queries], compute), scale) for x in (q, tq))
        k_s, tk_s = (steps.factor(_by_head(x[keys], compute), scale) for x in (k, tk))
        v_s, tv_s = (_by_head(x[keys], compute) for x in (v, tv))
        for h in range(heads):
            logit = None if sink is None else compute(dtypes.widen(sink)[h])
            # A sink of -inf has no part in anything, and so has its tangent.
            has_tangent = tsink is not None and not np.isneginf(logit)
            tlogit = compute(dtypes.widen(tsink)[h]) if has_tangent else compute(0)
            kv = h // group
            for rows, part in parts:
                scored = Scores(
                    score, captures, h, q0, rows, keys, part, diagonal(lq, lk, alignment, offset)
                )
                tout[queries, h][rows], tlse[h, queries][rows] = steps.push_forward(
                    (q_s[h, rows], k_s[kv, part], v_s[kv, part]),
                    (tq_s[h, rows], tk_s[kv, part], tv_s[kv, part]),
                    seen[rows, part], logit, tlogit, scale, scored, tcaptures,
                )  # fmt: skip
    return tout, tlse


def _no_keys(q, v, compute):
    """(out, lse) of rows that see nothing."""
    tokens, heads = q.shape[:2]
    out = np.zeros((tokens, heads, v.shape[2]), compute)
    return out, np.full((heads, tokens), -np.inf, compute)


def turn(x, cos, sin, positions, interleaved):
    """x, rows x heads x head_dim, turned by a rotary embedding: the first 2R numbers of a head
    are R complex numbers, which are multiplied by cos + i sin of the row's position. `cos`
    and `sin` are positions x R; neighbours are a number if `interleaved`, else one of each half.
    In f64."""
    x, size = np.asarray(x, np.float64).copy(), cos.shape[1]
    halves = slice(0, size), slice(size, 2 * size)
    if interleaved:
        halves = slice(0, 2 * size, 2), slice(1, 2 * size, 2)
    angles = np.asarray(cos, np.float64) + 1j * np.asarray(sin, np.float64)
    turned = (x[..., halves[0]] + 1j * x[..., halves[1]]) * angles[positions][:, None]
    x[..., halves[0]], x[..., halves[1]] = turned.real, turned.imag
    return x


def append(
    k_cache, v_cache, k, v, cu_seqlens, seqused_k, *, block_table=None, cos=None, sin=None,
    interleaved=False, k_scale=None, v_scale=None,
):  # fmt: skip
    """What varlen.append makes of caches, and of scales if there are some: copies of them with the
    new rows. Turned keys are rounded once."""
    k_cache, v_cache, page = k_cache.copy(), v_cache.copy(), k_cache.shape[1]
    scales = () if k_scale is None else (k_scale.copy(), v_scale.copy())
    for s, used in enumerate(seqused_k):
        rows = np.arange(cu_seqlens[s], cu_seqlens[s + 1])
        positions = int(used) + np.arange(len(rows))
        own_k = k[rows] if cos is None else turn(k[rows], cos, sin, positions, interleaved)
        pages = s if block_table is None else block_table[s][positions // page]
        at = pages, positions % page
        if scales:
            for cache, scale, x in zip((k_cache, v_cache), scales, (own_k, v[rows])):
                cache[at], scale[at] = kv_cache.quantise(x, cache.dtype)
            continue
        k_cache[at] = own_k.astype(k.dtype)
        v_cache[at] = v[rows]
    return k_cache, v_cache, *scales
