"""Attention as a custom call of XLA: a primitive of JAX. What a platform needs is done where
the call is lowered for that platform: compilation, and the workspace of kernels."""

import ctypes

import jax
from jax import numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import mlir

from .. import _attention, _library
from .._arrays import COMMON_NAMES, ELEMENTS, Description
from .._extents import check_extents
from . import _ffi

# Operands that every custom call has. Others are named by its attribute `operands`.
_NUM_REQUIRED = {"attn": 5, "attn_grad": 8, "attn_jvp": 8, "attn_jvp_grad": 13}
_ELEMENTS = {name: element for element, name in COMMON_NAMES.items()}
_DLPACK = {element: kind for kind, element in reversed(ELEMENTS.items())}
# XLA aligns its buffers to fewer bytes than kernels want of a workspace; the handler takes the
# part that is aligned.
_WORKSPACE_SLACK = 255

# Its parameters: the types of results, the text of the function, and attributes that the pass
# varlen-import-stablehlo reads.
_call_p = Primitive("varlen_call")
_call_p.multiple_results = True


@_call_p.def_abstract_eval
def _result_types(*operands, results, **parameters):
    return list(results)


@_call_p.def_impl
def _run(*operands, **parameters):
    """Under jax.disable_jit."""
    with jax.disable_jit(False):
        return jax.jit(lambda *x: _call_p.bind(*x, **parameters))(*operands)


def _lower_on_cpu(ctx, *operands, operation, source, attributes, results):
    _ffi.provide_function(source)
    return _lower(ctx, operands, operation, source, attributes)


def _lower_on_cuda(ctx, *operands, operation, source, attributes, results):
    types = *ctx.avals_in, *ctx.avals_out
    q = ctx.avals_out[0]  # or its gradient, which is of the same dtype
    if q.dtype == jnp.float64:
        raise TypeError("q: expected elements of f16, bf16, f32 on a CUDA device, got f64")
    for type in types:
        if not all(isinstance(extent, int) for extent in type.shape):
            raise NotImplementedError(
                "varlen_attn: expected static shapes on CUDA devices, as the size of a workspace "
                f"follows from them, got {type.shape}"
            )
    target = _ffi.find_target()
    if target is None:
        raise NotImplementedError(
            "varlen_attn: expected a CUDA device of JAX, as kernels are compiled for it, got none"
        )
    size = _workspace_size(_ffi.provide_kernels(source, target), types)
    workspace = jax.core.ShapedArray((size + _WORKSPACE_SLACK,), jnp.dtype("uint8"))
    ctx = ctx.replace(avals_out=[*ctx.avals_out, workspace])
    return _lower(ctx, operands, operation, source, (("chip", target.chip), *attributes))[:-1]


def _lower_elsewhere(ctx, *operands, **parameters):
    raise NotImplementedError(
        "varlen_attn: expected CPUs or CUDA devices, got a program for "
        + ", ".join(ctx.module_context.platforms)
    )


def _lower(ctx, operands, operation, source, attributes):
    rule = jax.ffi.ffi_lowering(_ffi.TARGETS[operation])
    return rule(ctx, *operands, source=source, **dict(attributes))


mlir.register_lowering(_call_p, _lower_on_cpu, platform="cpu")
mlir.register_lowering(_call_p, _lower_on_cuda, platform="cuda")
mlir.register_lowering(_call_p, _lower_elsewhere)


def _workspace_size(launcher, types):
    """Bytes of device memory for the kernels, for operands and results of these types."""
    extents, tensors = [], []
    for type in types:
        extents.append((ctypes.c_int64 * len(type.shape))(*type.shape))
        tensors.append(
            _library.Tensor(
                None, _library.CUDA, 0, len(type.shape), *_DLPACK[_ELEMENTS[str(type.dtype)]], 1,
                ctypes.addressof(extents[-1]),
            )
        )  # fmt: skip
    return launcher.workspace_size(tensors)


def prepare(operation, operands, options, compiles=True):
    """The text of a function for operands, by name. Raises what is wrong with them, which the
    compiler says in part, unless that is left to where the call is lowered."""
    descriptions = {}
    for name, array in operands.items():
        element = _ELEMENTS.get(str(array.dtype))
        if element is None:
            raise TypeError(
                f"{name}: expected elements of {', '.join(_ELEMENTS)}, got {array.dtype}"
            )
        descriptions[name] = Description(element, array.shape)
    quantised = operation == "attn"
    source = _attention.make_source(operation, descriptions, *options, quantised=quantised)
    captures = options[-1].captures if options[-1] else {}
    check_extents({name: x.shape for name, x in descriptions.items()}, captures)
    if compiles:
        _ffi.provide(source, descriptions["q"].element)
    return source


def call(operation, source, operands, options, results):
    """The results of a custom call on operands, by name in the op's order. `results`
    are their types, `options` are window, chunk, alignment, scale and score."""
    window, chunk, alignment, scale, _ = options
    attributes = {"top_left": alignment == "top_left"}
    if chunk is None:
        attributes |= {"window_left": window[0], "window_right": window[1]}
    else:
        attributes["chunk"] = chunk
    if scale is not None:
        attributes["scale"] = float(scale)
    # In pages there is no cu_seqlens_k.
    if optional := list(operands)[_NUM_REQUIRED[operation] - ("block_table" in operands) :]:
        attributes["operands"] = ",".join(optional)
    return _call_p.bind(
        *operands.values(), operation=operation, source=source,
        attributes=tuple(attributes.items()), results=tuple(results),
    )  # fmt: skip
