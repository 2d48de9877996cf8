"""Varlen as the provider "VARLEN" of torch.nn.attention's registry.

While it is active, the operators behind torch.nn.attention.varlen have kernels for tensors of
the devices that were chosen. Operators of other devices, and autograd, stay as they are. Operators
that a version of PyTorch does not have are left out.
"""

from collections.abc import Collection

import torch
from torch.library import Library

from .._options import show
from . import _ops
from ._functions import read_pages, read_scale, read_window

_NAME = "VARLEN"
# FlashAttention's operator of PyTorch that writes to `out`, which newer versions have.
_INTO = "_flash_attention_forward_no_dropout_inplace"
# Dispatch keys of types of devices.
_KEYS = {"cpu": "CPU", "cuda": "CUDA"}


def install(devices=None):
    """Registers the provider. `torch.nn.attention.activate_flash_attention_impl("VARLEN")`
    then makes torch.nn.attention.varlen run on Varlen for tensors of these types of devices,
    "cpu" and "cuda", and `restore_flash_attention_impl()` ends that. `devices` is one of them
    or several; None: those that this build of PyTorch has."""
    from torch.nn.attention import register_flash_attention_impl

    if devices is None:
        devices = _KEYS if torch.cuda._is_compiled() else ("cpu",)
    chosen = [devices] if isinstance(devices, str) else devices
    wrong = None if isinstance(chosen, Collection) else TypeError
    if not wrong and (not chosen or any(x not in list(_KEYS) for x in chosen)):
        wrong = ValueError
    if wrong:
        raise wrong(f"devices: expected some of {', '.join(_KEYS)}, got {show(devices)}")
    devices = tuple(chosen)
    register_flash_attention_impl(_NAME, register_fn=lambda: _Handle(devices))


class _Handle:
    """The active provider; the registry calls remove()."""

    def __init__(self, devices):
        # It takes a second to import.
        from torch.nn.attention import varlen as upstream

        self._library = Library("torch_attn", "IMPL")
        self._changes = [_Autograd(upstream._varlen_attn, devices)]
        for name, (kernel, fake) in _OPERATORS.items():
            op = getattr(upstream, name, None)
            if op is None:
                continue
            for device in devices:
                self._library.impl(name, kernel, _KEYS[device])
            if fake:
                self._changes.append(_Fake(op, fake, devices))
        self._aten = Library("aten", "IMPL")
        if hasattr(torch.ops.aten, _INTO):
            for device in devices:
                self._aten.impl(_INTO, _flash_attention_forward_into, _KEYS[device])

    def remove(self):
        self._library = self._aten = None
        for change in reversed(self._changes):
            change.remove()
        self._changes = []


class _Fake:
    """A fake kernel for tensors of these devices in place of PyTorch's, which takes for
    granted that Dv is D and that lse is float32."""

    def __init__(self, op, fake, devices):
        self._op, self._previous = op, op._abstract_fn

        @op.register_fake
        def either(*args, **kwargs):
            # All on the meta device has been PyTorch's before.
            is_ours = any(x.device.type in devices for x in args if isinstance(x, torch.Tensor))
            return (fake if is_ours else self._previous)(*args, **kwargs)

    def remove(self):
        self._op.register_fake(self._previous)


class _Autograd:
    """Autograd of tensors of these devices. lse needs no gradient, as the operator's backward
    formula takes none: before torch 2.15 it says that it has one, which is then lost. What is
    recorded is differentiated by our kernels, also after the provider was removed; what was
    recorded before or is afterwards, by PyTorch's."""

    def __init__(self, op, devices):
        self._op, self._devices = op, devices
        self._backward, self._previous = op._backward_fn, op._setup_context_fn
        if not hasattr(self._backward, "_varlen_previous"):
            self._backward = _choose_backward(self._backward)
        op.register_autograd(self._backward, setup_context=self._set_up)

    def _set_up(self, ctx, inputs, output):
        self._previous(ctx, inputs, output)
        out, lse, rng_state = output
        if lse.device.type in self._devices:
            ctx.mark_non_differentiable(lse, rng_state)
            query, key, value, cu_seq_q, cu_seq_k = inputs[:5]
            is_causal, scale, window_size = inputs[7:10]
            ctx.save_for_backward(query, key, value, out, lse, cu_seq_q, cu_seq_k)
            ctx.varlen_options = *read_window(is_causal, window_size), scale

    def remove(self):
        self._op.register_autograd(self._backward, setup_context=self._previous)


def _choose_backward(previous):
    """PyTorch's backward formula, and ours for what was recorded while the provider was
    active."""

    def backward(ctx, grad_out, *others):
        options = getattr(ctx, "varlen_options", None)
        if options is None:
            return previous(ctx, grad_out, *others)
        gradients = _ops.attn_backward(
            grad_out, None, *ctx.saved_tensors, None, None, *options
        )  # fmt: skip
        return *gradients[:3], *[None] * (len(ctx.needs_input_grad) - 3)

    backward._varlen_previous = previous
    return backward


def _varlen_attn(
    query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False, scale=None,
    window_size=None, enable_gqa=False, seqused_k=None, block_table=None, num_splits=None,
    backend=None,
):  # fmt: skip
    cu_seq_k = read_pages(cu_seq_k, seqused_k, block_table)
    out, lse = _ops.attn_on_device(
        query, key, value, cu_seq_q, cu_seq_k, seqused_k, None,
        *read_window(is_causal, window_size), read_scale(scale), block_table=block_table,
    )  # fmt: skip
    return out, lse, _rng_state(query)


def _varlen_attn_out(
    out, query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False, scale=None,
    window_size=None, enable_gqa=False, seqused_k=None, block_table=None, num_splits=None,
    backend=None,
):  # fmt: skip
    cu_seq_k = read_pages(cu_seq_k, seqused_k, block_table)
    return _ops.attn_out_on_device(
        out, query, key, value, cu_seq_q, cu_seq_k, seqused_k, None,
        *read_window(is_causal, window_size), read_scale(scale), block_table=block_table,
    )  # fmt: skip


def _varlen_attn_fake(
    query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False, scale=None,
    window_size=None, enable_gqa=False, seqused_k=None, block_table=None, num_splits=None,
    backend=None,
):  # fmt: skip
    cu_seq_k = read_pages(cu_seq_k, seqused_k, block_table)
    results = _ops.attn_fake(
        query, key, value, cu_seq_q, cu_seq_k, seqused_k, block_table=block_table
    )
    return *results, _rng_state(query)


def _varlen_attn_out_fake(
    out, query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False, scale=None,
    window_size=None, enable_gqa=False, seqused_k=None, block_table=None, num_splits=None,
    backend=None,
):  # fmt: skip
    cu_seq_k = read_pages(cu_seq_k, seqused_k, block_table)
    return _ops.attn_out_fake(
        out, query, key, value, cu_seq_q, cu_seq_k, seqused_k, block_table=block_table
    )


def _varlen_attn_backward(
    grad_out, query, key, value, out, lse, cu_seq_q, cu_seq_k, max_q, max_k, is_causal,
    rng_state, scale=None, window_size=None, backend=None,
):  # fmt: skip
    return _ops.attn_backward_on_device(
        grad_out, None, query, key, value, out, lse, cu_seq_q, cu_seq_k, None, None,
        *read_window(is_causal, window_size), scale,
    )[:3]  # fmt: skip


def _flash_attention_forward_into(
    out, query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal,
    return_debug_mask, *, scale=None, window_size_left=None, window_size_right=None,
    seqused_k=None, alibi_slopes=None, block_table=None, num_splits=None,
):  # fmt: skip
    """What PyTorch's own _varlen_attn_out calls, and programs that have no autograd."""
    refused = {
        "dropout_p": dropout_p, "return_debug_mask": return_debug_mask,
        "alibi_slopes": alibi_slopes is not None,
    }  # fmt: skip
    for name, is_given in refused.items():
        if is_given:
            raise NotImplementedError(f"aten::{_INTO}: VARLEN has no {name}")
    if cum_seq_q is None:
        raise NotImplementedError(
            f"aten::{_INTO}: expected sequences packed by cum_seq_q for VARLEN, got None"
        )
    sides = [-1 if side is None else side for side in (window_size_left, window_size_right)]
    return _varlen_attn_out(
        out, query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, is_causal, scale, sides,
        seqused_k=seqused_k, block_table=block_table, num_splits=num_splits,
    )  # fmt: skip


def _rng_state(query):
    """What dropout would be drawn from."""
    return torch.zeros(2, dtype=torch.uint64, device=query.device)


# By name: kernels, and fake kernels in place of PyTorch's.
_OPERATORS = {
    "_varlen_attn": (_varlen_attn, _varlen_attn_fake),
    "_varlen_attn_out": (_varlen_attn_out, _varlen_attn_out_fake),
    "_varlen_attn_backward": (_varlen_attn_backward, None),
}
