"""An attention, or a derivative of one, as a primitive of JAX that can be batched and
partitioned. `_derivatives` has its derivatives."""

import functools
import math
from typing import NamedTuple

import jax
from jax import numpy as jnp
from jax.api_util import debug_info
from jax.experimental.custom_partitioning import custom_partitioning
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.extend.linear_util import wrap_init
from jax.interpreters import batching, mlir, partial_eval
from jax.sharding import NamedSharding, PartitionSpec

from .._attention import order_of
from .._axes import HEADS, SCALES, SEQUENCES, find_axes
from .._row_range import take_row_range
from . import _custom_call


class Operation(NamedTuple):
    """What is computed:

    attn: out and lse.
    attn_grad: the gradient by each operand of attn that has one, from dout, dlse, out and lse.
    attn_jvp: out, lse and their tangents, from those of operands.
    attn_tangents: the tangents alone, a linear function of those of operands. out and lse are
        operands that only its transpose, attn_grad, reads.
    attn_jvp_grad: the gradient of what attn_jvp returns, by each operand of attn that has one.
        dtout and dtlse are the cotangents of tout and tlse, dout and dlse those of out and lse.

    A tangent and a cotangent that are not there are 0."""

    name: str
    operands: tuple[str, ...]  # in order
    options: tuple  # window, chunk, alignment, scale, score
    scale_ranks: tuple = ()  # of k_scale and v_scale, which say what their numbers are of

    @property
    def captures(self):
        score = self.options[-1]
        return score.captures if score else {}

    @property
    def differentiable(self):
        """The operands of attn that have derivatives."""
        return *(name for name in ("q", "k", "v", "sink") if name in self.operands), *self.captures

    @property
    def results(self):
        if self.name in ("attn_grad", "attn_jvp_grad"):
            return tuple(f"d{name}" for name in self.differentiable)
        names = "out", "lse", "tout", "tlse"
        return {"attn": names[:2], "attn_jvp": names, "attn_tangents": names[2:]}[self.name]

    @property
    def tangents(self):
        """The operands that are tangents."""
        if self.name in ("attn", "attn_grad"):
            return ()
        return tuple(x for name in self.differentiable if (x := f"t{name}") in self.operands)

    def axes(self, name):
        """Names of the axes of an operand or a result. Heads may be split: what a kv head and
        its query heads give depends on nothing else."""
        # What has entries of sequences shares no axis that may be split.
        if name in SEQUENCES:
            return (name, "table_pages")[: len(SEQUENCES[name])]
        rank = dict(zip((x for x in SCALES if x in self.operands), self.scale_ranks)).get(name)
        return find_axes(name, self.captures, "block_table" in self.operands, rank)

    def has_heads(self, name):
        return any(axis in HEADS for axis in self.axes(name))


# Its parameters: the operation, and the jaxpr of its call, in which JAX finds that the call is
# partitioned.
attn_p = Primitive("varlen_attn")
attn_p.multiple_results = True


def apply(name, given, options):
    """The results, by name, of an operation on operands by name."""
    operation = make_operation(name, given, options)
    results = _bind(operation, *(given[x] for x in operation.operands))
    return dict(zip(operation.results, results))


def make_operation(name, given, options):
    """The operation for operands of these names."""
    score = options[-1]
    call = _CALLS.get(name, name)
    order = *order_of(call, score.captures if score else ()), "out", "lse"
    ranks = tuple(len(given[x].shape) for x in SCALES if x in given)
    return Operation(name, tuple(dict.fromkeys(x for x in order if x in given)), options, ranks)


# The op that computes it, where it has another name.
_CALLS = {"attn_tangents": "attn_jvp"}


def _bind(operation, *arrays):
    return attn_p.bind(*arrays, **make_parameters(operation, map(jax.typeof, arrays)))


def make_parameters(operation, types):
    """The primitive's, for types of operands. Raises what is wrong with these."""
    types = tuple(types)
    call = _partition_call(operation)
    info = debug_info("varlen_attn", call, types, {})
    jaxpr, _, consts = partial_eval.trace_to_jaxpr_dynamic(wrap_init(call, debug_info=info), types)
    return {"operation": operation, "call": ClosedJaxpr(jaxpr, consts)}


@attn_p.def_impl
def _run(*arrays, operation, call):
    """Under jax.disable_jit."""
    with jax.disable_jit(False):
        return jax.jit(functools.partial(_bind, operation))(*arrays)


@attn_p.def_abstract_eval
def _infer_types(*types, operation, call):
    return call.out_avals


mlir.register_lowering(
    attn_p,
    mlir.lower_fun(lambda *arrays, operation, call: jaxpr_as_fun(call)(*arrays), multiple_results=True),
)


@functools.cache
def _partition_call(operation):
    """The function of the operation's operands that returns a tuple of its results."""
    partitioned = custom_partitioning(functools.partial(_call, operation))
    partitioned.def_partition(
        functools.partial(_partition, operation),
        sharding_rule=functools.partial(_make_sharding_rule, operation),
    )
    return partitioned


def _complete(operation, given):
    """The name of the op and its operands by name: what it has to have and is not there is zeros,
    and what only transposes read is left out."""
    name = _CALLS.get(operation.name, operation.name)
    required = dict(_REQUIRED.get(name, ()))
    if name == "attn_jvp_grad":  # which has gradients of captures that have tangents
        required |= {f"t{x}": x for x in operation.captures}
    zeros = {x: jnp.zeros_like(given[like]) for x, like in required.items() if x not in given}
    given = given | zeros
    return name, {x: given[x] for x in order_of(name, operation.captures) if x in given}


# Cotangents and tangents that ops have to have, and what they are like.
_ROWS = {"tq": "q", "tk": "k", "tv": "v"}
_REQUIRED = {"attn_grad": {"dout": "out"}, "attn_jvp": _ROWS, "attn_jvp_grad": {"dtout": "out", **_ROWS}}


def _call(operation, *arrays):
    given = dict(zip(operation.operands, arrays, strict=True))
    name, operands = _complete(operation, given)
    # attn has had the same operands, and for gradients no tangents are computed, nor second
    # derivatives where only first ones are used.
    compiles = name in ("attn", "attn_grad")
    source = _custom_call.prepare(name, operands, operation.options, compiles)
    given = {name: jax.typeof(x) for name, x in given.items()}
    types = _result_types(operation, given)
    if operation.name == "attn_tangents":
        types = _result_types(operation._replace(name="attn"), given) + types
    results = _custom_call.call(name, source, operands, operation.options, types)
    return tuple(results[-len(operation.results) :])


def _result_types(operation, types):
    """Types of the results for those of operands, by name."""
    if operation.name in ("attn_grad", "attn_jvp_grad"):
        return [types[name[1:]] for name in operation.results]
    q, v = types["q"], types["v"]
    rows, heads, _ = q.shape
    # With explicit sharding, types say how rows and heads are split: as those of q.
    mesh, (part, split, _) = q.sharding.mesh, q.sharding.spec

    def of(shape, dtype, *spec):
        sharding = NamedSharding(mesh, PartitionSpec(*spec))
        return q.update(shape=shape, dtype=dtype, weak_type=False, sharding=sharding)

    out = of((rows, heads, v.shape[-1]), q.dtype, part, split, None)
    lse = of((heads, rows), _accumulation_type(q.dtype), split, part)
    return [out if name.endswith("out") else lse for name in operation.results]


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
    local = make_operation(operation.name, given, operation.options)
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
    kv_heads = given["k"].shape[_find_heads(given["k"])]
    head = jax.lax.axis_index(split.heads) // (split.head_devices // kv_heads)
    for name, x in given.items():
        axes = operation.axes(name)
        if "kv_heads" in axes:
            axis = axes.index("kv_heads")
            given[name] = jax.lax.dynamic_slice_in_dim(x, head, 1, axis=axis)
    results = dict(zip(operation.results, _call(operation, *given.values())))
    for name in {"dk", "dv"}.intersection(results):
        part = results[name]
        whole = jnp.zeros((part.shape[0], kv_heads, part.shape[2]), part.dtype)
        whole = jax.lax.dynamic_update_slice_in_dim(whole, part, head, 1)
        results[name] = _sum_over(whole, split.heads)
    return tuple(results.values())


# Batching.


def _batch(arrays, axes, *, operation, call):
    batched = {name: axis is not None for name, axis in zip(operation.operands, axes)}
    given = {
        name: x if axis is None else jnp.moveaxis(x, axis, 0)
        for name, x, axis in zip(operation.operands, arrays, axes)
    }
    size = next(x.shape[0] for name, x in given.items() if batched[name])
    if size == 0:
        results = _batch_nothing(operation, batched, given)
    elif any(batched[name] for name in given if not operation.has_heads(name)):
        results = _batch_one_by_one(operation, batched, given)
    else:
        results = _batch_as_heads(operation, size, batched, given)
    results, mapped = dict(zip(operation.results, results)), dict.fromkeys(operation.results, 0)
    if operation.name == "attn_jvp" and not any(
        batched[name] for name in given if name not in operation.tangents
    ):
        # Values, which depend on no tangent, are those of every example.
        values = {name: results[name][0] for name in ("out", "lse")} if size else apply(
            "attn", _without_tangents(operation, given), operation.options
        )  # fmt: skip
        results |= values
        mapped |= dict.fromkeys(values)
    return list(results.values()), list(mapped.values())


batching.primitive_batchers[attn_p] = _batch


def _without_tangents(operation, given):
    return {name: x for name, x in given.items() if name not in operation.tangents}


def _batch_nothing(operation, batched, given):
    """There is no example, and no call: the results have the shapes of one, none of them."""
    example = [
        jax.ShapeDtypeStruct(x.shape[1:] if batched[name] else x.shape, x.dtype)
        for name, x in given.items()
    ]
    types = jax.eval_shape(functools.partial(_bind, operation), *example)
    return [jnp.zeros((0, *x.shape), x.dtype) for x in types]


def _batch_one_by_one(operation, batched, given):
    """Sequences differ: there is a call for each."""

    def one(own):
        return _bind(operation, *(own.get(name, array) for name, array in given.items()))

    return jax.lax.map(one, {name: x for name, x in given.items() if batched[name]})


def _batch_as_heads(operation, size, batched, given):
    """The sequences are the same: more heads in one call."""
    arrays = []
    for name, array in given.items():
        if operation.has_heads(name):
            if not batched[name]:
                array = jnp.broadcast_to(array, (size, *array.shape))
            array = _merge_heads(operation, name, array)
        arrays.append(array)
    return [
        _split_heads(operation, name, array, size)
        for name, array in zip(operation.results, _bind(operation, *arrays))
    ]


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
