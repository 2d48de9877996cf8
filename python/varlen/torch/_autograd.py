"""Derivatives of the operators."""

import functools

import torch
from torch._C import DispatchKey
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.utils._pytree import tree_leaves

from ._device import (
    attn_backward_on_device, attn_jvp_on_device, attn_on_device, attn_out_on_device,
)  # fmt: skip
from ._operators import attn, attn_backward, attn_jvp, attn_out, library, name_arguments

_BELOW_AUTOGRAD = torch._C._after_ADInplaceOrView_keyset
# By the bits of a set of keys: whether our kernel is next below autograd. There are
# few such sets, and asking the dispatcher's takes longer than this.
_nothing_between: dict[int, bool] = {}


def _is_next(keyset):
    """Whether our kernel is next below autograd, with nothing between, such as a mode, a
    subclass of Tensor, or functorch."""
    bits = keyset.raw_repr()
    is_next = _nothing_between.get(bits)
    if is_next is None:
        below = keyset & _BELOW_AUTOGRAD
        is_next = below.highestPriorityTypeId() in (DispatchKey.CPU, DispatchKey.CUDA)
        _nothing_between[bits] = is_next
    return is_next


def _below_autograd(op, kernel, keyset, arguments):
    """Goes on below autograd: straight to our kernel where that is next."""
    if _is_next(keyset):
        return kernel(*arguments)
    with torch._C._AutoDispatchBelowAutograd():
        return op.redispatch(keyset & _BELOW_AUTOGRAD, *arguments)


def _apply(function, *arguments):
    """Records a node. What torch.autograd.Function.apply does besides is for functions that
    are called without the dispatcher, which here has taken care of functorch already: each
    of its transforms calls the operator anew, on tensors of its own."""
    apply = super(torch.autograd.Function, function).apply
    if torch._C._are_functorch_transforms_active():
        with enable_single_level_autograd_function():
            return apply(*arguments)
    return apply(*arguments)


def _forward(op, kernel, keyset, arguments):
    """_below_autograd in a Function, which has autograd turned off: for its own level, but
    transforms of functorch that are below have levels of their own."""
    if torch._C._are_functorch_transforms_active():
        with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
            return _below_autograd(op, kernel, keyset, arguments)
    return _below_autograd(op, kernel, keyset, arguments)


class VarlenAttn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, keyset, *arguments):
        # Captures come one by one: autograd looks into no list.
        tensors, ctx.options, captures = arguments[:9], arguments[9:14], arguments[14:]
        *first, seqused_q, q_offset = tensors
        *options, chunk = ctx.options
        arguments = (*first, *options, captures, seqused_q, q_offset, chunk)
        out, lse = _forward(attn, attn_on_device, keyset, arguments)
        ctx.save_for_backward(*tensors, out, lse, *captures)
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx, dout, dlse):
        (
            q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink, seqused_q, q_offset, out, lse,
            *captures,
        ) = ctx.saved_tensors  # fmt: skip
        *options, chunk = ctx.options
        dq, dk, dv, dsink, dcaptures = attn_backward(
            dout, dlse, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, seqused_k, sink,
            *options, captures, seqused_q, q_offset, chunk,
        )  # fmt: skip
        dsink = None if sink is None else dsink
        of_options = (None,) * (2 + len(ctx.options))
        return None, dq, dk, dv, None, None, None, dsink, *of_options, *dcaptures


class _Undifferentiated(torch.autograd.Function):
    """Derivatives that say so where they are differentiated. They are functions of all that
    the operator reads, so that no derivative by any of it is taken for 0."""

    @staticmethod
    def forward(ctx, op, kernel, keyset, arguments, *tensors):
        ctx.op = op
        results = _forward(op, kernel, keyset, arguments)
        if op is not attn_backward:
            return results
        *first, of_captures = results
        return *first, *of_captures

    @staticmethod
    def backward(ctx, *gradients):
        raise _refusal(ctx.op)


def _refusal(op):
    if op is attn_out:
        return NotImplementedError("varlen::attn_out: forward-mode derivatives are not offered")
    return NotImplementedError(f"{op.name()}: second derivatives are not offered")


def _unpack(x):
    """(the value, the tangent) of a tensor; of others themselves and None."""
    return forward_ad.unpack_dual(x) if isinstance(x, torch.Tensor) else (x, None)


def _refuse_tangents(op, *arguments):
    """Without a word PyTorch would take the derivatives for 0."""
    for x in tree_leaves(arguments):
        if _unpack(x)[1] is not None:
            raise _refusal(op)


def _push_forward(keyset, arguments):
    """The results with their tangents, where some operand has one; else None."""
    named = name_arguments(attn, arguments)
    pairs = {name: _unpack(named[name]) for name in ("q", "k", "v", "sink")}
    captures = [_unpack(x) for x in named["captures"] or ()]
    if all(tangent is None for _, tangent in (*pairs.values(), *captures)):
        return None
    if named.pop("block_table") is not None:
        refuse_gradient_of_pages()
    values = {name: value for name, (value, _) in pairs.items()}
    values["captures"] = [value for value, _ in captures]

    def fill(value, tangent):
        return torch.zeros_like(value) if tangent is None else tangent

    # Where rows have no tangent theirs are zeros: those of the operator all have one.
    tangents = {f"t{name}": fill(*pairs[name]) for name in ("q", "k", "v")}
    tangents["tsink"] = pairs["sink"][1]
    if any(tangent is not None for _, tangent in captures):
        tangents["tcaptures"] = [fill(*pair) for pair in captures]
    named |= values
    order = [argument.name for argument in attn_jvp._schema.arguments]
    both = named | {"tcaptures": None} | tangents
    out, lse, tout, tlse = attn_jvp(*(both[name] for name in order))
    if out.requires_grad:
        # The tangents' operator has no derivatives, the attention has.
        out, lse = _attn_autograd(keyset, *named.values())
    return forward_ad.make_dual(out, tout), forward_ad.make_dual(lse, tlse)


def refuse_gradient_of_pages():
    raise NotImplementedError(
        "varlen::attn: block_table is an inference-only parameter: expected tensors that need no "
        "gradient, as keys in pages have none; use torch.no_grad() or detach()"
    )


def _attn_autograd(
    keyset, q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None, seqused_q=None, q_offset=None,
    chunk=None, block_table=None,
):  # fmt: skip
    if forward_ad._current_level >= 0:
        duals = _push_forward(keyset, (
            q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink, left, right, scale, score,
            captures, seqused_q, q_offset, chunk, block_table,
        ))  # fmt: skip
        if duals is not None:
            return duals
    if torch.is_grad_enabled() and (
        q.requires_grad
        or k.requires_grad
        or v.requires_grad
        or (sink is not None and sink.requires_grad)
        or (captures and any(capture.requires_grad for capture in captures))
    ):
        if block_table is not None:
            refuse_gradient_of_pages()
        return _apply(
            VarlenAttn, keyset, q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink, seqused_q,
            q_offset, left, right, scale, score, chunk, *(captures or ()),
        )  # fmt: skip
    arguments = (
        q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink, left, right, scale, score,
        captures, seqused_q, q_offset, chunk, block_table,
    )  # fmt: skip
    return _below_autograd(attn, attn_on_device, keyset, arguments)


def _attn_out_autograd(keyset, *arguments):
    if forward_ad._current_level >= 0:
        _refuse_tangents(attn_out, *arguments)
    if torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments):
        raise RuntimeError(
            "varlen::attn_out: expected tensors that need no gradient, as there is none "
            "for a given out; use torch.no_grad() or detach()"
        )
    # `out` is written to: autograd notices where it was saved for a backward pass.
    if not arguments[0].is_inference():
        torch.autograd.graph.increment_version(arguments[0])
    return _below_autograd(attn_out, attn_out_on_device, keyset, arguments)


def _derivative_autograd(op, kernel, keyset, *arguments):
    """Of attn_backward or attn_jvp."""
    if forward_ad._current_level >= 0:
        _refuse_tangents(op, *arguments)
    if not (torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments)):
        return _below_autograd(op, kernel, keyset, arguments)
    tensors = [x for x in tree_leaves(arguments) if isinstance(x, torch.Tensor)]
    results = _apply(_Undifferentiated, op, kernel, keyset, arguments, *tensors)
    if op is attn_jvp:
        return results
    dq, dk, dv, dsink, *of_captures = results
    return dq, dk, dv, dsink, of_captures


library.impl("attn", _attn_autograd, "Autograd", with_keyset=True)
library.impl("attn_out", _attn_out_autograd, "Autograd", with_keyset=True)
for _op, _kernel in ((attn_backward, attn_backward_on_device), (attn_jvp, attn_jvp_on_device)):
    _differentiate = functools.partial(_derivative_autograd, _op, _kernel)
    library.impl(_op._opname, _differentiate, "Autograd", with_keyset=True)
