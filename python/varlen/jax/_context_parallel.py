"""Context parallelism within jax.shard_map: attention of a batch whose rows are divided among the
devices of an axis of the mesh."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from .._attention import add_captures
from .._row_range import find_sequences
from .._score import count_from
from ..context_parallel import Plan, Rows, clamp_offsets
from ..scores import Score, chunked, parse
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
    begins: Any  # (devices, calls, sequences): the place of the first key in its sequence
    keys: Any  # (devices, calls, keys)


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["rows", "key_rows", "order", "key_order", "cu_seqlens", "q_offset", "calls"],
    meta_fields=["method", "ranks", "window", "chunk", "has_score"],
)
@dataclasses.dataclass(frozen=True)
class Shards:
    """A plan as arrays, data of a compiled program, whose first axis are devices; what is not an
    array of rows of a device is behind all rows. `shard_map` takes them with P(axis). The method and
    the mask are constants of the program."""

    rows: Any  # (devices, rows): where rows of q are in the batch
    key_rows: Any  # (devices, key_rows)
    order: Any  # (devices, rows of the batch): where rows are among those of all devices
    key_order: Any
    cu_seqlens: Any  # (devices, 2, sequences of the batch + 1)
    q_offset: Any  # (devices, sequences of the batch)
    calls: Calls
    method: str
    ranks: int
    window: tuple[int, int]
    chunk: int | None
    has_score: bool


def shard_plan(
    plan: Plan, method: str = "all_gather", sizes: Sizes | None = None, *, has_score: bool = False
) -> Shards:
    """What `context_parallel` takes of a plan, in numpy's arrays.

    Args:
        plan: For as many ranks as there are devices.
        method: "all_gather": all keys and values on all devices; "ring": they go around, and parts
            are merged by lse; "all_to_all": each device computes some heads.
        sizes: Extents of the arrays; None: what the plan needs.
        has_score: Whether the attention has a score. It reads positions: an all-gather then has
            keys from the first of a sequence on.

    Raises:
        ValueError: `sizes` that are too small, an unknown method, a plan aligned at "top_left".
        NotImplementedError: a ring with a score, or chunks, and sequences of more than 2^24 keys.
    """
    if method not in _METHODS:
        raise ValueError(f"method: expected one of {', '.join(_METHODS)}, got {method!r}")
    plan.check_alignment()
    if method == "ring" and (has_score or plan.chunk):
        plan.check_ring_score()
    ranks = range(plan.ranks)
    of_ranks = [_find_calls(plan, rank, method, has_score) for rank in ranks]
    needed = Sizes(
        max(map(plan.num_rows, ranks)), max(map(plan.num_key_rows, ranks)),
        max(len(queries) for queries, _ in of_ranks),
        max((sum(k.size for k in keys) for _, calls in of_ranks for keys in calls), default=0),
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
    offset = _make_offsets(plan.q_offset or [0] * (cu.shape[1] - 1))

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
        Calls(*(np.stack(x) for x in zip(*calls))), method, plan.ranks,
        plan.window, plan.chunk, has_score,
    )  # fmt: skip


def _find_calls(plan, rank, method, has_score):
    """The rank's chunks as rows of q, and for each call its keys."""
    chunks = [c for c in plan.chunks[rank] if c.begin < c.end]
    queries = [Rows(c.sequence, c.begin, c.end) for c in chunks]
    if method == "all_gather":
        # Positions that a score or chunks depend on stay as they are.
        multiple = plan.chunk or 1
        begins = [0 if has_score else c.key_begin // multiple * multiple for c in chunks]
        return queries, [[Rows(c.sequence, x, c.key_end) for c, x in zip(chunks, begins)]]
    if method == "all_to_all":
        return [], []
    # As many calls in each step on all ranks: these run one program.
    most = max(len(plan.ring_calls(r, s)) for r in range(plan.ranks) for s in range(plan.ranks))
    calls = []
    for step in range(plan.ranks):
        found = plan.ring_calls(rank, (rank - step) % plan.ranks)
        calls += found + [[Rows(0, 0, 0)] * len(queries)] * (most - len(found))
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

    # Behind all rows that there are where places are of.
    behind = sizes.key_rows if method == "ring" else plan.ranks * sizes.key_rows
    cu_k, offsets, begins, keys = [], [], [], []
    for parts in calls:
        cu_k.append(cumulate(parts))
        found = [plan.shift(q.sequence) + q.end - k.end for q, k in zip(queries, parts)]
        offsets.append(np.pad(_make_offsets(found), (0, count - len(found))))
        first = np.array([k.begin for k in parts], np.int32)
        begins.append(np.pad(first, (0, count - len(first))))
        places = [find(k) for k in parts if k.begin < k.end]
        places = np.concatenate(places) if places else np.empty(0, np.int32)
        if method == "ring" and sizes.key_rows:
            # Within the rows of the rank that they are of.
            places = places % sizes.key_rows
        keys.append(np.pad(places, (0, sizes.keys - len(places)), constant_values=behind))

    def stack(lists, extent):
        return np.reshape(np.array(lists, np.int32), (len(calls), extent))

    return (
        cumulate(queries), stack(cu_k, count + 1), stack(offsets, count), stack(begins, count),
        stack(keys, sizes.keys),
    )  # fmt: skip


def _make_offsets(offsets):
    return np.array(clamp_offsets(offsets), np.int32)


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
    scale: float | None = None,
    sink: jax.Array | None = None,
    score: Score | None = None,
    captures: Sequence[jax.Array] = (),
    return_lse: bool = False,
) -> Any:
    """Attention within shard_map over an axis of the mesh that rows are divided over.

    Args:
        q: (rows of a device, Hq, D); k, v: (key rows of a device, Hkv, D or Dv).
        shards: The result of `shard_plan`, split over the axis: in shard_map their first axis is 1.
            They have the method and the mask.
        axis_name: An axis of the mesh; it has as many devices as the plan has ranks.
        scale, sink, score: As of varlen_attn; a sink is the same on all devices.
        captures: Of heads the same on all devices; of queries (Hq, rows of a device) or tables
            (Hq, rows of a device, M), of keys (Hq, key rows of a device).
        return_lse: Also return lse, (Hq, rows of a device).

    Returns:
        out (rows of a device, Hq, Dv), 0 in rows that belong to no sequence, or (out, lse). It is
        differentiable; sums over devices are in an order of XLA's.

    Raises:
        ValueError: shards of another number of devices, or made for an attention without a score
            where there is one; extents that are not those of the shards; heads that all_to_all
            cannot divide.
        NotImplementedError: a ring with captures of keys, or with a chunk and a score.
    """
    if not isinstance(shards, Shards):
        raise TypeError(f"shards: expected those of shard_plan, got {type(shards).__name__}")
    _check_shards(q, k, v, shards, axis_name, score)
    add_captures({}, score, captures)  # for what it checks
    local = jax.tree.map(lambda x: x[0], shards)
    options = {"window": shards.window, "chunk": shards.chunk, "scale": scale, "return_lse": True}
    if shards.chunk:
        del options["window"]
    attend = {"all_gather": _attend_all, "ring": _attend_ring, "all_to_all": _attend_heads}
    out, lse = attend[shards.method](
        q, k, v, local, axis_name, options | {"sink": sink, "score": score, "captures": captures}
    )
    return (out, lse) if return_lse else out


def _check_shards(q, k, v, shards, axis_name, score):
    devices, sizes = jax.lax.axis_size(axis_name), (shards.rows.shape, shards.key_rows.shape)
    if shards.ranks != devices:
        raise ValueError(
            f"shards: expected a plan for the {devices} devices of {axis_name!r}, got one for "
            f"{shards.ranks}"
        )
    if sizes[0][0] != 1:
        raise ValueError(
            f"shards: expected to be split over {axis_name!r}, as by P({axis_name!r}) of in_specs, "
            f"got those of {sizes[0][0]} devices"
        )
    for name, x, rows in (("q", q, sizes[0][1]), ("k", k, sizes[1][1]), ("v", v, sizes[1][1])):
        if x.shape[:1] != (rows,):
            raise ValueError(f"{name}: expected the {rows} rows of a device, got shape {x.shape}")
    if score is not None and not shards.has_score:
        raise ValueError("shards: expected those of shard_plan(..., has_score=True) with a score")


def _pick(x, index, axis=0):
    return jnp.take(x, index, axis=axis, mode="fill", fill_value=0)


def _of_keys(score):
    """For each capture whether it has a number of each key."""
    return [of == "key_table" for of in score.captures.values()] if score else []


def _attend_call(q, k, v, calls, number, options):
    k, v = (_pick(x, calls.keys[number]) for x in (k, v))
    return varlen_attn(
        q, k, v, calls.cu_seqlens_q, calls.cu_seqlens_k[number], q_offset=calls.q_offset[number],
        **options,
    )  # fmt: skip


def _attend_all(q, k, v, local, axis_name, options):
    k, v = (jax.lax.all_gather(x, axis_name, tiled=True) for x in (k, v))

    def gather(x):
        every = jax.lax.all_gather(x, axis_name, axis=1, tiled=True)
        return _pick(every, local.calls.keys[0], 1)

    of_keys = _of_keys(options["score"])
    options["captures"] = [
        gather(x) if is_of_keys else x
        for x, is_of_keys in zip(options["captures"], of_keys, strict=True)
    ]
    return _attend_call(q, k, v, local.calls, 0, options)


def _attend_ring(q, k, v, local, axis_name, options):
    devices, calls = jax.lax.axis_size(axis_name), local.calls
    in_step = calls.keys.shape[0] // devices
    forward = [(i, (i + 1) % devices) for i in range(devices)]
    sink = options.pop("sink")
    add_begins = _count_from_begins(q, calls, options)
    kv, state = (k, v), None
    for step in range(devices):
        # Under way while this step is computed, as nothing of it depends on the other.
        following = kv
        if step + 1 < devices:
            following = tuple(jax.lax.ppermute(x, axis_name, forward) for x in kv)
        for i in range(step * in_step, (step + 1) * in_step):
            own_sink = sink if state is None else None
            part = _attend_call(q, *kv, calls, i, add_begins(i) | {"sink": own_sink})
            out = part[0].astype(part[1].dtype)
            state = (out, part[1]) if state is None else _merge(*state, out, part[1])
        kv = following
    out, lse = state
    return out.astype(q.dtype), lse


def _count_from_begins(q, calls, options):
    """The options of each call of a ring, whose score counts positions from where the keys of
    the call begin."""
    score, chunk = options["score"], options.pop("chunk")
    if any(_of_keys(score)):
        raise NotImplementedError(
            "context_parallel: a ring has parts of the keys, which a score with numbers of keys "
            'cannot look up; the method "all_gather" offers it'
        )
    if chunk and score:
        raise NotImplementedError(
            "context_parallel: expected chunk or score with a ring, got both; the method "
            '"all_gather" offers it'
        )
    if not score and not chunk:
        return lambda number: options
    compute = jnp.float64 if q.dtype == jnp.float64 else jnp.float32
    score = score or chunked(chunk)
    text = count_from(score.written("f64" if compute == jnp.float64 else "f32"))
    options = options | {"score": parse(text)}
    rows = jnp.arange(q.shape[0], dtype=calls.cu_seqlens_q.dtype)
    sequence = find_sequences(jnp, calls.cu_seqlens_q, rows)

    def add_begins(number):
        begins = _pick(calls.begins[number], sequence).astype(compute)
        begins = jnp.broadcast_to(begins, (q.shape[1], len(rows)))
        return options | {"captures": [*options["captures"], begins]}

    return add_begins


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


def _attend_heads(q, k, v, local, axis_name, options):
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

    def gather_rows(x, order, heads=1, rows=0):
        x = jax.lax.all_to_all(x, axis_name, heads, rows, tiled=True)
        return jnp.take(x, order, axis=rows)

    def gather_heads(x, order, size):
        rows = jnp.zeros((devices * size, *x.shape[1:]), x.dtype).at[order].set(x)
        return jax.lax.all_to_all(rows, axis_name, 0, 1, tiled=True)

    def own(x):
        share = heads // devices
        return jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index(axis_name) * share, share)

    def take_capture(x, of):
        if of == "key_table":
            return gather_rows(x, local.key_order, 0, 1)
        return gather_rows(x, local.order, 0, 1) if of.startswith("query") else own(x)

    score, sink = options["score"], options["sink"]
    kinds = score.captures.values() if score else ()
    options["captures"] = [take_capture(*x) for x in zip(options["captures"], kinds, strict=True)]
    options["sink"] = None if sink is None else own(sink)
    cu_q, cu_k = local.cu_seqlens
    out, lse = varlen_attn(
        gather_rows(q, local.order), gather_rows(k, local.key_order),
        gather_rows(v, local.key_order), cu_q, cu_k, q_offset=local.q_offset, **options,
    )  # fmt: skip
    size = q.shape[0]
    out = gather_heads(out, local.order, size)
    lse = gather_heads(lse.T, local.order, size).T
    # Rows that are no rows of the batch.
    is_row = local.rows < local.order.shape[0]
    return out, jnp.where(is_row, lse, -jnp.inf)
