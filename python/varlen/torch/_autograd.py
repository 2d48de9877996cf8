"""Derivatives of the operators."""

import torch
from torch._C import DispatchKey
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.utils._pytree import tree_leaves

from ._device import attn_backward_on_device, attn_on_device, attn_out_on_device
from ._operators import attn, attn_backward, attn_out, library

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


class VarlenAttnGradients(torch.autograd.Function):
    """Gradients that say so where they are differentiated. They are functions of all that
    the operator reads, so that no derivative by any of it is taken for 0."""

    @staticmethod
    def forward(ctx, keyset, arguments, *tensors):
        *first, of_captures = _forward(attn_backward, attn_backward_on_device, keyset, arguments)
        return *first, *of_captures

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError("varlen::attn_backward: second derivatives are not offered")


def _refuse_tangents(*arguments):
    """Without a word PyTorch would take the derivatives for 0."""
    for x in tree_leaves(arguments):
        if isinstance(x, torch.Tensor) and forward_ad.unpack_dual(x).tangent is not None:
            raise NotImplementedError("varlen::attn: forward-mode derivatives are not offered")


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
        _refuse_tangents(q, k, v, sink, captures)
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
        _refuse_tangents(*arguments)
    if torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments):
        raise RuntimeError(
            "varlen::attn_out: expected tensors that need no gradient, as there is none "
            "for a given out; use torch.no_grad() or detach()"
        )
    # `out` is written to: autograd notices where it was saved for a backward pass.
    if not arguments[0].is_inference():
        torch.autograd.graph.increment_version(arguments[0])
    return _below_autograd(attn_out, attn_out_on_device, keyset, arguments)


def _attn_backward_autograd(keyset, *arguments):
    if forward_ad._current_level >= 0:
        _refuse_tangents(*arguments)
    if not (torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments)):
        return _below_autograd(attn_backward, attn_backward_on_device, keyset, arguments)
    tensors = [x for x in tree_leaves(arguments) if isinstance(x, torch.Tensor)]
    dq, dk, dv, dsink, *of_captures = _apply(VarlenAttnGradients, keyset, arguments, *tensors)
    return dq, dk, dv, dsink, of_captures


library.impl("attn", _attn_autograd, "Autograd", with_keyset=True)
library.impl("attn_out", _attn_out_autograd, "Autograd", with_keyset=True)
library.impl("attn_backward", _attn_backward_autograd, "Autograd", with_keyset=True)
