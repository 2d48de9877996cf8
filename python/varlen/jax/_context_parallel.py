"""Context parallelism within jax.shard_map: attention of a batch whose rows are divided among the
devices of an axis of the mesh."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from ..context_parallel import Plan, Rows
from ..scores import Score
from ._attention import varlen_attn

_METHODS = ("all_gather", "ring", "all_to_all")


class Sizes(NamedTuple):
    """Extents of arrays of a plan. The arrays of any batch may be larger than it needs, so that
    batches share a compiled program."""

    rows: int  # of q on a device
    key_rows: int  # of k and v on a device
    sequences: int  # local ones
    keys: int  # of a local attention


class Calls(NamedTuple):
    """Local attentions: for each one cu_seqlens, offsets, and where its keys are among rows that
    a device has."""

    cu_seqlens_q: Any  # (devices, sequences + 1)
    cu_seqlens_k: Any  # (devices, calls, sequences + 1)
    q_offset: Any  # (devices, calls, sequences)
    keys: Any  # (devices, calls, keys)


class Shards(NamedTuple):
    """A plan as arrays, data of a compiled program, whose first axis are devices; what is not an
    array of rows of a device is behind all rows. `shard_map` takes them with P(axis)."""

    rows: Any  # (devices, rows): where rows of q are in the batch
    key_rows: Any  # (devices, key_rows)
    order: Any  # (devices, rows of the batch): where rows are among those of all devices
    key_order: Any
    cu_seqlens: Any  # (devices, 2, sequences of the batch + 1)
    q_offset: Any  # (devices, sequences of the batch)
    calls: Calls


def shard_plan(plan: Plan, method: str = "all_gather", sizes: Sizes | None = None) -> Shards:
    """What `context_parallel` takes of a plan, in numpy's arrays. Raises ValueError where `sizes`
    are too small; None: what the plan needs."""
    _check_method(method)
    ranks = range(plan.ranks)
    of_ranks = [_find_calls(plan, rank, method) for rank in ranks]
    needed = Sizes(
        max(map(plan.num_rows, ranks)), max(map(plan.num_key_rows, ranks)),
        max(len(queries) for queries, _ in of_ranks),
        max(
            (sum(k.end - k.begin for k in x) for _, calls in of_ranks for x, _ in calls), default=0
        ),
    )  # fmt: skip
    sizes = sizes or needed
    for name, have, want in zip(Sizes._fields, sizes, needed):
        if have < want:
            raise ValueError(f"sizes.{name}: expected {want} or more, got {have}")
    key_places = _find_places(plan.own_keys, plan.ranks, sizes.key_rows)
    calls = [
        _make_calls(plan, queries, calls, sizes, key_places, method) for queries, calls in of_ranks
    ]
    cu = np.array([plan.cu_seqlens_q, plan.cu_seqlens_k], np.int32)
    offset = np.zeros(cu.shape[1] - 1, np.int32) if plan.q_offset is None else _clamp(plan.q_offset)

    def every(x):
        return np.broadcast_to(x, (plan.ranks, *x.shape))

    def rows_of(find, size, total):
        rows = np.full((plan.ranks, size), total, np.int32)
        for rank in ranks:
            own = [row for part in find(rank) for row in part]
            rows[rank, : len(own)] = own
        order = np.zeros(total, np.int32)
        for rank in ranks:
            own = rows[rank][rows[rank] < total]
            order[own] = rank * size + np.arange(len(own))
        return rows, every(order)

    rows, order = rows_of(plan.rows, sizes.rows, plan.cu_seqlens_q[-1])
    key_rows, key_order = rows_of(plan.key_rows, sizes.key_rows, plan.cu_seqlens_k[-1])
    return Shards(
        rows, key_rows, order, key_order, every(cu), every(offset),
        Calls(*(np.stack(x) for x in zip(*calls))),
    )  # fmt: skip


def _check_method(method):
    if method not in _METHODS:
        raise ValueError(f"method: expected one of {', '.join(_METHODS)}, got {method!r}")


def _find_calls(plan, rank, method):
    """The rank's chunks as rows of q, and for each call its keys and the steps around the ring
    after which they are there."""
    chunks = [c for c in plan.chunks[rank] if c.begin < c.end]
    queries = [Rows(c.sequence, c.begin, c.end) for c in chunks]
    if method == "all_gather":
        return queries, [([Rows(c.sequence, c.key_begin, c.key_end) for c in chunks], 0)]
    if method == "all_to_all":
        return [], []
    # As many calls in each step on all ranks: these run one program.
    most = max(len(plan.ring_calls(r, s)) for r in range(plan.ranks) for s in range(plan.ranks))
    calls = []
    for step in range(plan.ranks):
        found = plan.ring_calls(rank, (rank - step) % plan.ranks)
        found += [[Rows(0, 0, 0)] * len(queries)] * (most - len(found))
        calls += [(keys, step) for keys in found]
    return queries, calls


def _find_places(own, ranks, size):
    """Where rows are among those of all ranks: a function of rows."""
    places = {}
    for rank in range(ranks):
        at = rank * size
        for rows in own(rank):
            places.setdefault(rows.sequence, []).append((rows.begin, rows.end, at))
            at += rows.end - rows.begin

    def find(wanted):
        index = np.empty(wanted.end - wanted.begin, np.int32)
        for begin, end, at in places.get(wanted.sequence, ()):
            first, last = max(begin, wanted.begin), min(end, wanted.end)
            if first < last:
                index[first - wanted.begin : last - wanted.begin] = at + np.arange(
                    first - begin, last - begin
                )
        return index

    return find


def _make_calls(plan, queries, calls, sizes, find, method):
    count = sizes.sequences

    def cumulate(parts):
        ends = [0, *itertools.accumulate(x.size for x in parts)]
        return np.pad(np.array(ends, np.int32), (0, count + 1 - len(ends)), mode="edge")

    behind = plan.ranks * sizes.key_rows
    cu_k, offsets, keys = [], [], []
    for parts, _ in calls:
        cu_k.append(cumulate(parts))
        found = _clamp([plan.shift(q.sequence) + q.end - k.end for q, k in zip(queries, parts)])
        offsets.append(np.pad(found, (0, count - len(found))))
        places = [find(k) for k in parts if k.begin < k.end]
        places = np.concatenate(places) if places else np.empty(0, np.int32)
        if method == "ring":
            # Within the rows of the rank that they are of.
            places = places % sizes.key_rows if sizes.key_rows else places
            places = np.pad(places, (0, sizes.keys - len(places)), constant_values=sizes.key_rows)
        else:
            places = np.pad(places, (0, sizes.keys - len(places)), constant_values=behind)
        keys.append(places)
    shape = (len(calls), -1)
    return (
        cumulate(queries), np.reshape(np.array(cu_k, np.int32), (len(calls), count + 1)),
        np.reshape(np.array(offsets, np.int32), (len(calls), count)),
        np.reshape(np.array(keys, np.int32), shape if calls else (0, sizes.keys)),
    )  # fmt: skip


def _clamp(offsets):
    return np.clip(np.array(offsets, np.int64), -(2**31) + 1, 2**31 - 1).astype(np.int32)


def shard_rows(x: jax.typing.ArrayLike, rows: jax.typing.ArrayLike) -> jax.Array:
    """Rows of devices (devices, rows, ...) of a batch (rows, ...); zeros where a device has fewer.
    `rows` are those of Shards."""
    return jnp.take(jnp.asarray(x), rows, axis=0, mode="fill", fill_value=0)


def context_parallel(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    shards: Shards,
    axis_name: str,
    *,
    method: str = "all_gather",
    window: tuple[int, int] = (-1, -1),
    scale: float | None = None,
    sink: jax.Array | None = None,
    score: Score | None = None,
    captures: Sequence[jax.Array] = (),
    return_lse: bool = False,
) -> Any:
    """Attention within shard_map over an axis of the mesh that rows are divided over.

    Args:
        q: (rows of a device, Hq, D); k, v: (key rows of a device, Hkv, D or Dv).
        shards: The result of `shard_plan(plan, method)`, split over the axis: in shard_map their first
            axis is 1.
        axis_name: An axis of the mesh; it has as many devices as the plan has ranks.
        method: As in shard_plan. "all_gather": all keys and values on all devices; "ring": they
            go around, and parts are merged by lse; "all_to_all": each device computes some heads.
        window: As in the plan.
        scale, sink, score, captures: As of varlen_attn; sinks and captures of heads are the same
            on all devices. Captures of rows are not offered.
        return_lse: Also return lse, (Hq, rows of a device).

    Returns:
        out (rows of a device, Hq, Dv), 0 in rows that belong to no sequence, or (out, lse). It is
        differentiable; sums over devices are in an order of XLA's.
    """
    _check_method(method)
    local = jax.tree.map(lambda x: x[0], shards)
    if any(of not in ("head", "head_table") for of in (score.captures.values() if score else ())):
        raise NotImplementedError("context_parallel: captures of rows are not offered in JAX")
    options = {"window": window, "scale": scale, "score": score, "return_lse": True}
    if method == "all_to_all":
        out, lse = _attend_heads(q, k, v, local, axis_name, sink, captures, options)
    elif method == "all_gather":
        every = [jax.lax.all_gather(x, axis_name, tiled=True) for x in (k, v)]
        out, lse = _attend_call(q, every, local.calls, 0, sink, captures, options)
    else:
        if score is not None:
            raise NotImplementedError("context_parallel: a score with a ring is not offered in JAX")
        out, lse = _attend_ring(q, k, v, local.calls, axis_name, sink, options)
    return (out, lse) if return_lse else out


def _pick(x, index):
    return jnp.take(x, index, axis=0, mode="fill", fill_value=0)


def _attend_call(q, kv, calls, number, sink, captures, options):
    k, v = (_pick(x, calls.keys[number]) for x in kv)
    return varlen_attn(
        q, k, v, calls.cu_seqlens_q, calls.cu_seqlens_k[number], q_offset=calls.q_offset[number],
        sink=sink, captures=captures, **options,
    )  # fmt: skip


def _attend_ring(q, k, v, calls, axis_name, sink, options):
    devices = jax.lax.axis_size(axis_name)
    in_step = calls.keys.shape[0] // devices
    forward = [(i, (i + 1) % devices) for i in range(devices)]
    kv, state = (k, v), None
    for step in range(devices):
        # Under way while this step is computed, as nothing of it depends on the other.
        following = kv
        if step + 1 < devices:
            following = tuple(jax.lax.ppermute(x, axis_name, forward) for x in kv)
        for i in range(in_step):
            own_sink = sink if state is None else None
            part = _attend_call(q, kv, calls, step * in_step + i, own_sink, (), options)
            out = part[0].astype(part[1].dtype)
            state = (out, part[1]) if state is None else _merge(*state, out, part[1])
        kv = following
    out, lse = state
    return out.astype(q.dtype), lse


def _merge(out, lse, more, more_lse):
    """Attention over two sets of keys, with gradients where neither has a key."""
    least = jnp.maximum(lse, more_lse)
    base = jnp.where(jnp.isneginf(least), 0, least)

    def weigh(x):
        none = jnp.isneginf(x)
        return jnp.where(none, 0, jnp.exp(jnp.where(none, 0, x) - base))

    weights = [weigh(x) for x in (lse, more_lse)]
    total = weights[0] + weights[1]
    safe = jnp.where(total == 0, 1, total)
    both = jnp.where(total == 0, -jnp.inf, base + jnp.log(safe))
    first, second = ((w / safe).T[..., None] for w in weights)
    return out * first + more * second, both


def _attend_heads(q, k, v, local, axis_name, sink, captures, options):
    devices = jax.lax.axis_size(axis_name)
    heads, kv_heads = q.shape[1], k.shape[1]
    if heads % devices or (kv_heads % devices and devices % kv_heads):
        raise ValueError(
            "all_to_all: expected heads that divide by the devices, and kv heads that do or divide "
            f"them, got {heads} heads, {kv_heads} kv heads and {devices} devices"
        )
    if kv_heads % devices:
        # A kv head on each device that has query heads of it.
        k, v = (jnp.repeat(x, devices // kv_heads, axis=1) for x in (k, v))

    def gather_rows(x, order):
        x = jax.lax.all_to_all(x, axis_name, 1, 0, tiled=True)
        return jnp.take(x, order, axis=0)

    def gather_heads(x, order, size):
        rows = jnp.zeros((devices * size, *x.shape[1:]), x.dtype).at[order].set(x)
        return jax.lax.all_to_all(rows, axis_name, 0, 1, tiled=True)

    def own(x):
        share = heads // devices
        return jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index(axis_name) * share, share)

    cu_q, cu_k = local.cu_seqlens
    out, lse = varlen_attn(
        gather_rows(q, local.order), gather_rows(k, local.key_order),
        gather_rows(v, local.key_order), cu_q, cu_k, q_offset=local.q_offset,
        sink=None if sink is None else own(sink), captures=[own(x) for x in captures], **options,
    )  # fmt: skip
    size = q.shape[0]
    out = gather_heads(out, local.order, size)
    lse = gather_heads(lse.T, local.order, size).T
    # Rows that are no rows of the batch.
    is_row = local.rows < local.order.shape[0]
    return out, jnp.where(is_row, lse, -jnp.inf)
