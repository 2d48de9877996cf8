"""One attention, or its gradients, as a function of arrays that JAX can batch and
partition."""

import functools
import math
from typing import NamedTuple

import jax
from jax import numpy as jnp
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from .._attention import order_of
from .._axes import HEADS, SEQUENCES, find_axes
from .._row_range import take_row_range
from . import _custom_call


class Operation(NamedTuple):
    """What a custom call computes."""

    name: str  # attn, attn_grad
    operands: tuple[str, ...]  # in the op's order
    options: tuple  # window, chunk, alignment, scale, score

    @property
    def captures(self):
        score = self.options[-1]
        return score.captures if score else {}

    @property
    def results(self):
        if self.name == "attn":
            return "out", "lse"
        names = *(name for name in ("q", "k", "v", "sink") if name in self.operands), *self.captures
        return tuple(f"d{name}" for name in names)

    def axes(self, name):
        """Names of the axes of an operand or a result. Heads may be split: what a kv head and
        its query heads give depends on nothing else."""
        # What has entries of sequences shares no axis that may be split.
        if name in SEQUENCES:
            return (name, "table_pages")[: len(SEQUENCES[name])]
        return find_axes(name, self.captures, "block_table" in self.operands)

    def has_heads(self, name):
        return any(axis in HEADS for axis in self.axes(name))


@functools.cache
def build(operation):
    """The function of the operation's operands that returns a tuple of its results."""
    partitioned = custom_partitioning(functools.partial(_call, operation))
    partitioned.def_partition(
        functools.partial(_partition, operation),
        sharding_rule=functools.partial(_make_sharding_rule, operation),
    )
    batched = jax.custom_batching.custom_vmap(lambda *arrays: partitioned(*arrays))
    batched.def_vmap(functools.partial(_batch, operation))
    return batched


def _call(operation, *arrays):
    given = dict(zip(operation.operands, arrays, strict=True))
    source = _custom_call.prepare(operation.name, given, operation.options)
    results = _result_types(operation, given)
    return tuple(_custom_call.call(operation.name, source, given, operation.options, results))


def _result_types(operation, given):
    """Types of the results for operands, by name."""
    types = {name: jax.typeof(array) for name, array in given.items()}
    if operation.name == "attn_grad":
        return [types[name[1:]] for name in operation.results]
    q, v = types["q"], types["v"]
    rows, heads, _ = q.shape
    # With explicit sharding, types say how rows and heads are split: as those of q.
    mesh, (part, split, _) = q.sharding.mesh, q.sharding.spec

    def of(shape, dtype, *spec):
        sharding = NamedSharding(mesh, PartitionSpec(*spec))
        return q.update(shape=shape, dtype=dtype, weak_type=False, sharding=sharding)

    return [
        of((rows, heads, v.shape[-1]), q.dtype, part, split, None),
        of((heads, rows), _accumulation_type(q.dtype), split, part),
    ]


def _accumulation_type(dtype):
    """What sums of elements of dtype are in."""
    return jnp.dtype(jnp.float64 if dtype == jnp.float64 else jnp.float32)


# Partitioning.


def _make_sharding_rule(operation, mesh, operand_types, result_types):
    """How the split of one array suggests that of others, for Shardy. Where heads share
    kv heads, these have a split of their own: one of both would be of a part of an axis
    of the mesh, where that is more than the kv heads."""
    names = operation.operands + operation.results
    q, k = (operand_types[operation.operands.index(name)] for name in ("q", "k"))
    factors = {"kv_heads": "heads"} if q.shape[1] == k.shape[_find_heads(k)] else {}

    def spell(names):
        return ", ".join(
            " ".join(factors.get(axis, axis) for axis in operation.axes(name)) for name in names
        )

    axes = dict.fromkeys(axis for name in names for axis in operation.axes(name))
    whole = tuple(axis for axis in axes if axis not in (*HEADS, "rows"))
    rule = f"{spell(operation.operands)} -> {spell(operation.results)}"
    return rule, {"need_replication_factors": whole}


def _find_heads(type):
    """The axis of heads of q, k or v."""
    return len(type.shape) - 2


class _Split(NamedTuple):
    """The axes of the mesh that arrays are split over, and how many devices these are."""

    heads: tuple
    rows: tuple  # of q
    head_devices: int
    row_devices: int
    shares_heads: bool  # whether devices have query heads of one kv head, which others have too


def _partition(operation, mesh, operands, results):
    """What each device computes: some heads and some rows of q. Arrays that are split otherwise,
    rows of k and v among them, are gathered before, and split after."""
    types = dict(zip(operation.operands, operands))
    split = _find_split(mesh, types)
    # Gradients by what devices with other rows have, too, are sums over them. Each device keeps
    # some rows of these where it has some of the operand's.
    scattered = {
        f"d{name}": axis
        for name, type in types.items()
        if "kv_rows" in operation.axes(name)
        for axis in [operation.axes(name).index("kv_rows")]
        if split.rows and _names(type.sharding.spec[axis]) == split.rows
        and type.shape[axis] % split.row_devices == 0
    }  # fmt: skip
    call = functools.partial(_call, operation)
    if split.shares_heads:
        call = functools.partial(_call_with_shared_head, operation, split)
    if split.rows:
        call = functools.partial(_call_with_some_rows, operation, split, scattered, types["q"].shape[0])
    of_axes = {"heads": split.heads, "rows": split.rows}
    of_axes["kv_heads"] = () if split.shares_heads else split.heads

    def shard(name):
        axes = operation.axes(name)
        spec = [of_axes.get(axis, ()) for axis in axes]
        if name in scattered:
            spec[scattered[name]] = split.rows
        return NamedSharding(mesh, PartitionSpec(*(x or None for x in spec)))

    return (
        mesh, call, tuple(map(shard, operation.results)),
        tuple(map(shard, operation.operands)),
    )  # fmt: skip


def _names(split):
    """Axes of the mesh as a part of a PartitionSpec has them."""
    return split if isinstance(split, tuple) else (split,) if split else ()


def _find_split(mesh, types):
    """How heads are to be split, as those of q are, or of k, where it is possible, and rows: as
    those of q are, in equal parts."""
    heads, kv_heads = (types[name].shape[_find_heads(types[name])] for name in ("q", "k"))

    def count(axes):
        return math.prod(mesh.shape[axis] for axis in axes)

    rows = _names(types["q"].sharding.spec[0])
    if types["q"].shape[0] % count(rows):
        rows = ()
    for name in ("q", "k"):
        placed = types[name].sharding.spec[_find_heads(types[name])]
        split = tuple(x for x in _names(placed) if x not in rows)
        devices = count(split)
        share = devices % kv_heads == 0 and heads % devices == 0
        if split and (kv_heads % devices == 0 or share):
            return _Split(split, rows, devices, count(rows), kv_heads % devices != 0)
    return _Split((), rows, 1, count(rows), False)


def _call_with_some_rows(operation, split, scattered, total, *arrays):
    """The call where the device has some rows of q, and all of k and v."""
    given = dict(zip(operation.operands, arrays))
    rows = given["q"].shape[0]
    first = jax.lax.axis_index(split.rows).astype(given["cu_seqlens_q"].dtype) * rows
    is_top_left = operation.options[2] == "top_left"
    given |= take_row_range(jnp, given, first, rows, total, is_top_left=is_top_left)
    order = order_of(operation.name, operation.captures)
    local = operation._replace(operands=tuple(name for name in order if name in given))
    given = [given[name] for name in local.operands]
    if split.shares_heads:
        results = _call_with_shared_head(local, split, *given)
    else:
        results = _call(local, *given)
    return tuple(
        x if "rows" in operation.axes(name) else _sum_over(x, split.rows, scattered.get(name))
        for name, x in zip(operation.results, results)
    )


def _sum_over(part, axes, scattered=None):
    """The sum over devices, of which each keeps some extents of axis `scattered`."""
    wide = part.astype(_accumulation_type(part.dtype))
    if scattered is None:
        return jax.lax.psum(wide, axes).astype(part.dtype)
    found = jax.lax.psum_scatter(wide, axes, scatter_dimension=scattered, tiled=True)
    return found.astype(part.dtype)


def _call_with_shared_head(operation, split, *arrays):
    """_call where k and v are whole and the device has some query heads of one of their
    heads."""
    given = dict(zip(operation.operands, arrays))
    axis = _find_heads(given["k"])
    kv_heads = given["k"].shape[axis]
    head = jax.lax.axis_index(split.heads) // (split.head_devices // kv_heads)
    for name in ("k", "v"):
        given[name] = jax.lax.dynamic_slice_in_dim(given[name], head, 1, axis=axis)
    results = dict(zip(operation.results, _call(operation, *given.values())))
    for name in ("dk", "dv") if operation.name == "attn_grad" else ():
        part = results[name]
        whole = jnp.zeros((part.shape[0], kv_heads, part.shape[2]), part.dtype)
        whole = jax.lax.dynamic_update_slice_in_dim(whole, part, head, 1)
        results[name] = _sum_over(whole, split.heads)
    return tuple(results.values())


# Batching.


def _batch(operation, size, is_batched, *arrays):
    batched = dict(zip(operation.operands, is_batched))
    given = dict(zip(operation.operands, arrays))
    if size == 0:
        return _batch_nothing(operation, batched, given)
    if any(batched[name] for name in given if not operation.has_heads(name)):
        return _batch_one_by_one(operation, size, batched, given)
    return _batch_as_heads(operation, size, batched, given)


def _batch_nothing(operation, batched, given):
    """There is no example, and no call: the results have the shapes of one, none of them."""
    example = [
        jax.ShapeDtypeStruct(x.shape[1:] if batched[name] else x.shape, x.dtype)
        for name, x in given.items()
    ]
    types = jax.eval_shape(build(operation), *example)
    return tuple(jnp.zeros((0, *x.shape), x.dtype) for x in types), (True,) * len(types)


def _batch_one_by_one(operation, size, batched, given):
    """Sequences differ: there is a call for each."""
    call = build(operation)

    def one(own):
        return call(*(own.get(name, array) for name, array in given.items()))

    results = jax.lax.map(one, {name: x for name, x in given.items() if batched[name]})
    return results, (True,) * len(results)


def _batch_as_heads(operation, size, batched, given):
    """The sequences are the same: more heads in one call."""
    arrays = []
    for name, array in given.items():
        if operation.has_heads(name):
            if not batched[name]:
                array = jnp.broadcast_to(array, (size, *array.shape))
            array = _merge_heads(operation, name, array)
        arrays.append(array)
    results = [
        _split_heads(operation, name, array, size)
        for name, array in zip(operation.results, build(operation)(*arrays))
    ]
    return tuple(results), (True,) * len(results)


def _head_axis(operation, name):
    return next(i for i, axis in enumerate(operation.axes(name)) if axis in HEADS)


def _merge_heads(operation, name, array):
    """The first axis becomes part of that of heads."""
    axis = _head_axis(operation, name)
    array = jnp.moveaxis(array, 0, axis)
    shape = array.shape
    return array.reshape(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])


def _split_heads(operation, name, array, size):
    """The opposite of _merge_heads."""
    axis = _head_axis(operation, name)
    shape = array.shape
    array = array.reshape(*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :])
    return jnp.moveaxis(array, axis, 0)
