"""The operators torch.ops.varlen.attn, attn_out and attn_backward.

Their kernels are registered with the dispatcher by hand: torch.library.custom_op
costs 15 us a call more, several times what the attention of a few rows takes.
"""

import torch
from torch._C import DispatchKey
from torch.autograd import forward_ad

from ..scores import find_score
from . import _kernels

_INPUTS = "Tensor q, Tensor k, Tensor v, "
_OPTIONS = (
    "Tensor cu_seqlens_q, Tensor cu_seqlens_k, Tensor? seqused_k=None, Tensor? sink=None, "
    "int left=-1, int right=-1, float? scale=None, str score='', Tensor[]? captures=None"
)
_library = torch.library.Library("varlen", "DEF")
for _schema in (
    f"attn({_INPUTS}{_OPTIONS}) -> (Tensor out, Tensor lse)",
    f"attn_out(Tensor(a!) out, {_INPUTS}{_OPTIONS}) -> Tensor lse",
    f"attn_backward(Tensor? dout, Tensor? dlse, {_INPUTS}Tensor out, Tensor lse, {_OPTIONS}) "
    "-> (Tensor dq, Tensor dk, Tensor dv, Tensor dsink, Tensor[] dcaptures)",
):
    # Strides of results follow from those of q, k and v.
    _tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
    _library.define(_schema, tags=_tags)
# The overloads: to find them by their packets takes longer than most of a call.
attn = torch.ops.varlen.attn.default
attn_out = torch.ops.varlen.attn_out.default
attn_backward = torch.ops.varlen.attn_backward.default


# CPU kernels. The fake kernels below make results of the same shapes and strides.


def _geometry(q, k, v, cu_seqlens_q, seqused_k, sink, left, right, scale, score):
    """The arguments of _kernels.forward."""
    try:
        _, heads, head_dim = q.shape
        _, kv_heads, _ = k.shape
        _, _, value_dim = v.shape
    except ValueError:
        raise ValueError(
            "expected q, k and v of rank 3 (rows, heads, head_dim), got shapes "
            f"{tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}"
        ) from None
    return (
        q.dtype, cu_seqlens_q.dtype, heads, kv_heads, head_dim, value_dim, left, right,
        scale, seqused_k is not None, sink is not None, score,
    )  # fmt: skip


def new_results(q, v):
    """out and lse. Strides of out are q's where the shapes agree: q with its heads
    first gives such an out."""
    value_dim = v.shape[2]
    if q.shape[2] == value_dim:
        return torch.empty_like(q), new_lse(q)
    return q.new_empty((*q.shape[:2], value_dim)), new_lse(q)


def new_lse(q):
    rows, heads, _ = q.shape
    dtype = q.dtype
    if dtype is torch.float32 or dtype is torch.float64:
        return q.new_empty(heads, rows)  # a tuple of extents takes longer, and so does a dtype
    return q.new_empty(heads, rows, dtype=torch.float32)


def _operands(first, seqused_k, sink, captures):
    """With those after `first` that are given."""
    if seqused_k is not None:
        first.append(seqused_k)
    if sink is not None:
        first.append(sink)
    if captures:
        first += captures
    return first


def attn_cpu(
    q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None,
):  # fmt: skip
    geometry = _geometry(q, k, v, cu_seqlens_q, seqused_k, sink, left, right, scale, score)
    kernel = _kernels.forward(*geometry)
    results = out, lse = new_results(q, v)
    first = [q, k, v, cu_seqlens_q, cu_seqlens_k]
    kernel([*_operands(first, seqused_k, sink, captures), out, lse])
    return results


def attn_out_cpu(
    out, q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None,
):  # fmt: skip
    geometry = _geometry(q, k, v, cu_seqlens_q, seqused_k, sink, left, right, scale, score)
    kernel = _kernels.forward(*geometry)
    lse = new_lse(q)
    first = [q, k, v, cu_seqlens_q, cu_seqlens_k]
    kernel([*_operands(first, seqused_k, sink, captures), out, lse])
    return lse


def _new_gradients(q, k, v, sink, captures):
    dsink = q.new_empty(0) if sink is None else torch.empty_like(sink)
    dcaptures = [torch.empty_like(capture) for capture in captures or ()]
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), dsink, dcaptures


def attn_backward_cpu(
    dout, dlse, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None,
):  # fmt: skip
    geometry = _geometry(q, k, v, cu_seqlens_q, seqused_k, sink, left, right, scale, score)
    if dout is None:
        dout = torch.zeros_like(out)
    dq, dk, dv, dsink, dcaptures = _new_gradients(q, k, v, sink, captures)
    kernel = _kernels.backward(dlse is not None, *geometry)
    first = [dout, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k]
    if dlse is not None:
        first.append(dlse)
    results = (dq, dk, dv) if sink is None else (dq, dk, dv, dsink)
    kernel([*_operands(first, seqused_k, sink, captures), *results, *dcaptures])
    return dq, dk, dv, dsink, dcaptures


_library.impl("attn", attn_cpu, "CPU")
_library.impl("attn_out", attn_out_cpu, "CPU")
_library.impl("attn_backward", attn_backward_cpu, "CPU")


# CUDA kernels: the same operands and results, by name.


def _launch(operation, given, captures, options, results):
    from .. import _cuda

    left, right, scale, score = options
    score = find_score(score) if score else None
    given |= zip(score.captures if score else (), captures or ())
    given = {name: x for name, x in given.items() if x is not None}
    given = {name: _kernels.with_unit_stride(x) for name, x in given.items()}
    _cuda.run(given, operation, ((left, right), None, "bottom_right", scale, score), results)


def _attend_cuda(
    out, lse, q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None,
):  # fmt: skip
    given = {
        "q": q, "k": k, "v": v, "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k,
        "seqused_k": seqused_k, "sink": sink,
    }  # fmt: skip
    options = left, right, scale, score
    _launch("attn", given, captures, options, {"out": out, "lse": lse})


def attn_cuda(q, k, v, *arguments, **options):
    results = out, lse = new_results(q, v)
    _attend_cuda(out, lse, q, k, v, *arguments, **options)
    return results


def attn_out_cuda(out, q, *arguments, **options):
    written, lse = _kernels.with_unit_stride(out), new_lse(q)
    _attend_cuda(written, lse, q, *arguments, **options)
    if written is not out:
        out.copy_(written)
    return lse


def attn_backward_cuda(
    dout, dlse, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None,
):  # fmt: skip
    gradients = dq, dk, dv, dsink, dcaptures = _new_gradients(q, k, v, sink, captures)
    given = {
        "dout": torch.zeros_like(out) if dout is None else dout, "q": q, "k": k, "v": v,
        "out": out, "lse": lse, "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k,
        "dlse": dlse, "seqused_k": seqused_k, "sink": sink,
    }  # fmt: skip
    results = {"dq": dq, "dk": dk, "dv": dv}
    if sink is not None:
        results["dsink"] = dsink
    results |= {f"dcapture{i}": x for i, x in enumerate(dcaptures)}
    options = left, right, scale, score
    _launch("attn_grad", given, captures, options, results)
    return gradients


_library.impl("attn", attn_cuda, "CUDA")
_library.impl("attn_out", attn_out_cuda, "CUDA")
_library.impl("attn_backward", attn_backward_cuda, "CUDA")


# Fake kernels.


@torch.library.register_fake("varlen::attn", lib=_library)
def _attn_fake(q, k, v, *args, **kwargs):
    return new_results(q, v)


@torch.library.register_fake("varlen::attn_out", lib=_library)
def _attn_out_fake(out, q, *args, **kwargs):
    return new_lse(q)


@torch.library.register_fake("varlen::attn_backward", lib=_library)
def _attn_backward_fake(
    dout, dlse, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None,
):  # fmt: skip
    return _new_gradients(q, k, v, sink, captures)


# Autograd.

_BELOW_AUTOGRAD = torch._C._after_ADInplaceOrView_keyset
# By the bits of a set of keys: whether the CPU's kernel is next below autograd. There are
# few such sets, and asking the dispatcher's takes longer than this.
_nothing_between: dict[int, bool] = {}


def _is_next(keyset):
    """Whether the CPU's kernel is next below autograd, with nothing between, such as a
    mode, a subclass of Tensor, or functorch."""
    bits = keyset.raw_repr()
    is_next = _nothing_between.get(bits)
    if is_next is None:
        below = keyset & _BELOW_AUTOGRAD
        is_next = below.highestPriorityTypeId() == DispatchKey.CPU
        _nothing_between[bits] = is_next
    return is_next


def _below_autograd(op, kernel, keyset, arguments):
    """Goes on below autograd: straight to the CPU's kernel where that is next."""
    if _is_next(keyset):
        return kernel(*arguments)
    with torch._C._AutoDispatchBelowAutograd():
        return op.redispatch(keyset & _BELOW_AUTOGRAD, *arguments)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, keyset, *arguments):
        # Captures come one by one: autograd looks into no list.
        tensors, ctx.options, captures = arguments[:7], arguments[7:11], arguments[11:]
        arguments = (*tensors, *ctx.options, captures)
        out, lse = _below_autograd(attn, attn_cpu, keyset, arguments)
        ctx.save_for_backward(*tensors, out, lse, *captures)
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx, dout, dlse):
        q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink, out, lse, *captures = (
            ctx.saved_tensors
        )
        dq, dk, dv, dsink, dcaptures = attn_backward(
            dout, dlse, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, seqused_k, sink,
            *ctx.options, captures,
        )  # fmt: skip
        dsink = None if sink is None else dsink
        return None, dq, dk, dv, None, None, None, dsink, None, None, None, None, *dcaptures


def _refuse_tangents(*tensors):
    """Without a word PyTorch would take the derivatives for 0."""
    for tensor in tensors:
        if tensor is not None and forward_ad.unpack_dual(tensor).tangent is not None:
            raise NotImplementedError("varlen::attn: forward-mode derivatives are not offered")


def _attn_autograd(
    keyset, q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None,
    left=-1, right=-1, scale=None, score="", captures=None,
):  # fmt: skip
    if forward_ad._current_level >= 0:
        _refuse_tangents(q, k, v, sink, *(captures or ()))
    if torch.is_grad_enabled() and (
        q.requires_grad
        or k.requires_grad
        or v.requires_grad
        or (sink is not None and sink.requires_grad)
        or (captures and any(capture.requires_grad for capture in captures))
    ):
        return _Attention.apply(
            keyset, q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink,
            left, right, scale, score, *(captures or ()),
        )  # fmt: skip
    arguments = (
        q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, sink, left, right, scale, score,
        captures,
    )  # fmt: skip
    return _below_autograd(attn, attn_cpu, keyset, arguments)


def _attn_out_autograd(keyset, *arguments):
    if torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments):
        raise RuntimeError(
            "varlen::attn_out: expected tensors that need no gradient, as there is none "
            "for a given out; use torch.no_grad() or detach()"
        )
    # `out` is written to: autograd notices where it was saved for a backward pass.
    if not arguments[0].is_inference():
        torch.autograd.graph.increment_version(arguments[0])
    return _below_autograd(attn_out, attn_out_cpu, keyset, arguments)


def _attn_backward_autograd(keyset, *arguments):
    gradients = _below_autograd(attn_backward, attn_backward_cpu, keyset, arguments)
    if torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments):
        message = "varlen::attn_backward: second derivatives are not offered"
        *first, of_captures = gradients
        gradients = [*first, *of_captures]
        for gradient in gradients:
            gradient.requires_grad_()
        gradients = torch._C._functions.DelayedError(message, len(gradients))(*gradients)
        return *gradients[: len(first)], list(gradients[len(first) :])
    return gradients


_library.impl("attn", _attn_autograd, "Autograd", with_keyset=True)
_library.impl("attn_out", _attn_out_autograd, "Autograd", with_keyset=True)
_library.impl("attn_backward", _attn_backward_autograd, "Autograd", with_keyset=True)


# Autocast, to what scaled_dot_product_attention is cast to.


_CAST = (torch.float32, torch.float16, torch.bfloat16)


def _attn_autocast(device, key):
    without = torch._C.DispatchKeySet(key)

    def attend(q, k, v, *arguments):
        dtype = torch.get_autocast_dtype(device)
        q, k, v = (x.to(dtype) if x.dtype in _CAST else x for x in (q, k, v))
        with torch._C._ExcludeDispatchKeyGuard(without):
            return attn(q, k, v, *arguments)

    return attend


_library.impl("attn", _attn_autocast("cpu", DispatchKey.AutocastCPU), "AutocastCPU")
_library.impl("attn", _attn_autocast("cuda", DispatchKey.AutocastCUDA), "AutocastCUDA")
