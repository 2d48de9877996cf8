"""Derivatives of the operators."""

import functools

import torch
from torch._C import DispatchKey
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.utils._pytree import tree_leaves, tree_map_only

from ._device import (
    attn_backward_on_device, attn_jvp_backward_on_device, attn_jvp_on_device, attn_on_device,
    attn_out_on_device,
)  # fmt: skip
from ._operators import (
    attn, attn_backward, attn_jvp, attn_jvp_backward, attn_out, call, library, name_arguments,
)  # fmt: skip

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
    """varlen::attn, of which results may be known already."""

    @staticmethod
    def forward(ctx, keyset, results, *arguments):
        # Captures come one by one: autograd looks into no list.
        tensors, ctx.options, captures = arguments[:9], arguments[9:14], arguments[14:]
        *first, seqused_q, q_offset = tensors
        *options, chunk = ctx.options
        arguments = (*first, *options, captures, seqused_q, q_offset, chunk)
        out, lse = results or _forward(attn, attn_on_device, keyset, arguments)
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
        return None, None, dq, dk, dv, None, None, None, dsink, *of_options, *dcaptures


class _Derivative(torch.autograd.Function):
    """An operator of derivatives, whose own are those of `_PULL_BACK`. It is a function of all
    that the operator reads, so that no derivative by any of it is taken for 0."""

    @staticmethod
    def forward(ctx, keyset, results, op, kernel, arguments, *tensors):
        results = results or _forward(op, kernel, keyset, arguments)
        ctx.op, ctx.num_tensors = op, len(tensors)
        # What is saved says which of the arguments it is by its place among them.
        ctx.named = {
            name: _without_tensors(x) for name, x in name_arguments(op, arguments).items()
        }
        ctx.set_materialize_grads(False)
        if op is attn_jvp:
            ctx.save_for_backward(*tensors, *results)
            return results
        ctx.save_for_backward(*tensors)
        *first, of_captures = results
        return *first, *of_captures

    @staticmethod
    def backward(ctx, *cotangents):
        if ctx.op not in _PULL_BACK:
            raise _refusal(ctx.op)
        saved = iter(ctx.saved_tensors)
        named = {name: _with_tensors(x, saved) for name, x in ctx.named.items()}
        names, needs = list(_name_leaves(named)), ctx.needs_input_grad[-ctx.num_tensors :]
        needed = {name for name, is_needed in zip(names, needs, strict=True) if is_needed}
        gradients = _PULL_BACK[ctx.op](named, needed, cotangents, tuple(saved))
        return (None,) * 5 + tuple(gradients.get(name) for name in names)


_TENSOR = object()


def _without_tensors(x):
    """An argument with a mark in place of each tensor."""
    if isinstance(x, (list, tuple)):
        return [_TENSOR] * len(x)
    return _TENSOR if isinstance(x, torch.Tensor) else x


def _with_tensors(x, tensors):
    if isinstance(x, list):
        return [next(tensors) for _ in x]
    return next(tensors) if x is _TENSOR else x


def _name_leaves(named):
    """The tensors among arguments by name, in their order. A capture, and its tangent, has its
    place in its list for a name."""
    for name, x in named.items():
        if isinstance(x, list):
            yield from ((name, i) for i in range(len(x)))
        elif isinstance(x, torch.Tensor):
            yield name


def _name_gradients(results, prefix=""):
    """The results of attn_backward or attn_jvp_backward by the names of what they are by, or of
    its tangents."""
    *first, of_captures = results
    named = {f"{prefix}{name}": x for name, x in zip(("q", "k", "v", "sink"), first)}
    return named | {(f"{prefix}captures", i): x for i, x in enumerate(of_captures)}


def _needs_primals(needed):
    return any(name in ("q", "k", "v", "sink") or name[0] == "captures" for name in needed)


def _fill(value, derivative):
    return torch.zeros_like(value) if derivative is None else derivative


def _set_tangents(named, tangents, of_captures):
    """The arguments of attn_jvp for tangents of q, k, v and sink, and of captures, of which
    some are None. Where rows have no tangent theirs are zeros."""
    given = {f"t{name}": _fill(named[name], tangents[name]) for name in ("q", "k", "v")}
    given["tsink"] = None if named["sink"] is None else tangents["sink"]
    captures = named["captures"] or ()
    if any(tangent is not None for tangent in of_captures):
        given["tcaptures"] = [_fill(*pair) for pair in zip(captures, of_captures)]
    return named | given


def _pull_back_gradients(named, needed, cotangents, _):
    """Of attn_backward: for cotangents t of the gradients J^T y, <t, J^T y> = <y, J t>. So the
    cotangents of y are tangents along t, those of the operands gradients of these tangents. out
    and lse follow from the operands, and have none."""
    if all(x is None for x in cotangents):
        return {}
    of_sink, of_captures = cotangents[3], cotangents[4:]
    tangents = dict(zip(("q", "k", "v"), cotangents)) | {"sink": of_sink}
    named = _set_tangents(named, tangents, of_captures)
    dout, dlse = named["dout"], named["dlse"]
    out, lse, tout, tlse = call(attn_jvp, named)
    gradients = {"dout": tout, "dlse": tlse}
    if _needs_primals(needed):
        named |= {"out": out, "lse": lse, "tout": tout, "tlse": tlse, "dtout": dout, "dtlse": dlse}
        of_primals = call(attn_jvp_backward, named | {"dout": None, "dlse": None})
        gradients |= _name_gradients(of_primals)
    return gradients


def _pull_back_tangents(named, needed, cotangents, results):
    """Of attn_jvp: J t is linear in t, whose cotangents are gradients of the attention."""
    dout, dlse, dtout, dtlse = cotangents
    if all(x is None for x in cotangents):
        return {}
    named |= dict(zip(("out", "lse", "tout", "tlse"), results))
    if dtout is None and dtlse is None:
        return _name_gradients(call(attn_backward, named | {"dout": dout, "dlse": dlse}))
    gradients = {}
    if any(name[0] == "tcaptures" or name in ("tq", "tk", "tv", "tsink") for name in needed):
        of_tangents = call(attn_backward, named | {"dout": dtout, "dlse": dtlse})
        gradients |= _name_gradients(of_tangents, "t")
    if _needs_primals(needed):
        given = {"dout": dout, "dlse": dlse, "dtout": dtout, "dtlse": dtlse}
        gradients |= _name_gradients(call(attn_jvp_backward, named | given))
    return gradients


_PULL_BACK = {attn_backward: _pull_back_gradients, attn_jvp: _pull_back_tangents}


def _refusal(op):
    if op is attn_out:
        return NotImplementedError("varlen::attn_out: forward-mode derivatives are not offered")
    what = "tangents of tangents" if op is attn_jvp else "third derivatives"
    return NotImplementedError(f"{op.name()}: {what} are not offered")


def _unpack(x):
    """(the value, the tangent) of a tensor; of others themselves and None."""
    return forward_ad.unpack_dual(x) if isinstance(x, torch.Tensor) else (x, None)


def _refuse_tangents(op, *arguments):
    """Without a word PyTorch would take the derivatives for 0."""
    for x in tree_leaves(arguments):
        if _unpack(x)[1] is not None:
            raise _refusal(op)


def _take_tangents(named):
    """Takes the tangents of q, k, v, sink and captures out of the arguments of an operator, and
    returns its arguments with those of attn_jvp; None if there is no tangent."""
    pairs = {name: _unpack(named[name]) for name in ("q", "k", "v", "sink")}
    captures = [_unpack(x) for x in named["captures"] or ()]
    named |= {name: value for name, (value, _) in pairs.items()}
    named["captures"] = [value for value, _ in captures]
    tangents = {name: tangent for name, (_, tangent) in pairs.items()}
    of_captures = [tangent for _, tangent in captures]
    if all(tangent is None for tangent in (*tangents.values(), *of_captures)):
        return None
    return _set_tangents(named, tangents, of_captures)


def _record_dual(function, keyset, results, *arguments):
    """Records a node of a function of operands with tangents, of which the results are known. Its
    backward has to read the tangents, too, as others may be computed forward through it."""
    results = tree_map_only(torch.Tensor, torch.Tensor.detach, results)
    with forward_ad._set_fwd_grad_enabled(False):
        return _apply(function, keyset, results, *arguments)


def _pair(values, tangents):
    """Values with their tangents."""
    if isinstance(values, (list, tuple)):
        return [_pair(*both) for both in zip(values, tangents, strict=True)]
    return forward_ad.make_dual(values, tangents)


def _push_forward(arguments):
    """The results of attn and their tangents, where some operand has one; else None."""
    named = _take_tangents(name_arguments(attn, arguments))
    if named is None:
        return None
    if named["block_table"] is not None:
        refuse_gradient_of_pages()
    out, lse, tout, tlse = call(attn_jvp, named)
    return (out, lse), (tout, tlse)


def _push_gradients_forward(arguments):
    """The results of attn_backward and their tangents; None if no operand has one. As second
    derivatives are symmetric, tangents of J^T y along t and ty are the gradients of J t for y,
    and J^T ty."""
    named = name_arguments(attn_backward, arguments)
    # out and lse follow from q, k and v, and their tangents from those.
    pairs = {name: _unpack(named[name]) for name in ("dout", "dlse", "out", "lse")}
    named |= {name: value for name, (value, _) in pairs.items()}
    tdout, tdlse = pairs["dout"][1], pairs["dlse"][1]
    with_tangents = _take_tangents(named)
    if with_tangents is None and tdout is None and tdlse is None:
        return None
    gradients = call(attn_backward, named)
    if with_tangents is None:
        tangents = call(attn_backward, named | {"dout": tdout, "dlse": tdlse})
    else:
        results = call(attn_jvp, with_tangents)
        with_tangents |= dict(zip(("out", "lse", "tout", "tlse"), results))
        with_tangents |= {"dtout": named["dout"], "dtlse": named["dlse"]}
        tangents = call(attn_jvp_backward, with_tangents | {"dout": tdout, "dlse": tdlse})

    return gradients, tangents


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
    arguments = (
        q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink, left, right, scale, score,
        captures, seqused_q, q_offset, chunk, block_table,
    )  # fmt: skip
    results = tangents = None
    if forward_ad._current_level >= 0:
        results, tangents = _push_forward(arguments) or (None, None)
    if torch.is_grad_enabled() and (
        q.requires_grad
        or k.requires_grad
        or v.requires_grad
        or (sink is not None and sink.requires_grad)
        or (captures and any(capture.requires_grad for capture in captures))
    ):
        if block_table is not None:
            refuse_gradient_of_pages()
        given = (
            q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink, seqused_q, q_offset, left, right,
            scale, score, chunk, *(captures or ()),
        )  # fmt: skip
        if results is None:
            return _apply(VarlenAttn, keyset, None, *given)
        results = _record_dual(VarlenAttn, keyset, results, *given)
    if results is not None:
        return tuple(_pair(results, tangents))
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
    """Of attn_backward, attn_jvp or attn_jvp_backward."""
    results = tangents = None
    if forward_ad._current_level >= 0:
        if op is attn_backward:
            results, tangents = _push_gradients_forward(arguments) or (None, None)
        else:
            _refuse_tangents(op, *arguments)
    if torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments):
        tensors = [x for x in tree_leaves(arguments) if isinstance(x, torch.Tensor)]
        given = op, kernel, arguments, *tensors
        if results is None:
            recorded = _apply(_Derivative, keyset, None, *given)
        else:
            recorded = _record_dual(_Derivative, keyset, results, *given)
        if op is attn_jvp:
            return recorded
        dq, dk, dv, dsink, *of_captures = recorded
        results = dq, dk, dv, dsink, of_captures
    elif results is None:
        return _below_autograd(op, kernel, keyset, arguments)
    return results if tangents is None else tuple(_pair(results, tangents))


library.impl("attn", _attn_autograd, "Autograd", with_keyset=True)
library.impl("attn_out", _attn_out_autograd, "Autograd", with_keyset=True)
for _op, _kernel in (
    (attn_backward, attn_backward_on_device), (attn_jvp, attn_jvp_on_device),
    (attn_jvp_backward, attn_jvp_backward_on_device),
):  # fmt: skip
    _differentiate = functools.partial(_derivative_autograd, _op, _kernel)
    library.impl(_op._opname, _differentiate, "Autograd", with_keyset=True)
