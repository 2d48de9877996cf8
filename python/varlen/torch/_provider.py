"""Varlen as the provider "VARLEN" of torch.nn.attention's registry.

While it is active, the operators behind torch.nn.attention.varlen have kernels for CPU
tensors. Those of other devices, and autograd, stay as they are.
"""

import torch
from torch.library import Library

from . import _ops
from ._functions import read_scale, read_window, refuse_pages

_NAME = "VARLEN"


def install():
    """Registers the provider. `torch.nn.attention.activate_flash_attention_impl("VARLEN")`
    then makes torch.nn.attention.varlen run on Varlen for CPU tensors, and
    `restore_flash_attention_impl()` ends that."""
    from torch.nn.attention import register_flash_attention_impl

    register_flash_attention_impl(_NAME, register_fn=_activate)


def _activate():
    return _Handle()


class _Handle:
    """The active provider; the registry calls remove()."""

    def __init__(self):
        # It takes a second to import.
        from torch.nn.attention import varlen as upstream

        _keep_backward()
        self._library = Library("torch_attn", "IMPL")
        self._library.impl("_varlen_attn", _varlen_attn, "CPU")
        self._library.impl("_varlen_attn_out", _varlen_attn_out, "CPU")
        self._changes = [
            _FakeOnCPU(upstream._varlen_attn, _varlen_attn_fake),
            _FakeOnCPU(upstream._varlen_attn_out, _varlen_attn_out_fake),
            _LseWithoutGradient(upstream._varlen_attn),
        ]

    def remove(self):
        self._library = None
        for change in self._changes:
            change.remove()
        self._changes = []


class _FakeOnCPU:
    """A fake kernel for CPU tensors in place of PyTorch's, which takes for granted that
    Dv is D and that lse is float32."""

    def __init__(self, op, fake):
        self._op, self._previous = op, op._abstract_fn

        @op.register_fake
        def either(*args, **kwargs):
            # All on the meta device has been PyTorch's before.
            on_cpu = any(x.device.type == "cpu" for x in args if isinstance(x, torch.Tensor))
            return (fake if on_cpu else self._previous)(*args, **kwargs)

    def remove(self):
        self._op.register_fake(self._previous)


class _LseWithoutGradient:
    """Autograd of CPU tensors for which lse needs no gradient, as the operator's backward
    formula takes none. Before torch 2.15 lse says that it has one, which is then lost."""

    def __init__(self, op):
        self._op = op
        self._backward, self._previous = op._backward_fn, op._setup_context_fn
        op.register_autograd(self._backward, setup_context=self._set_up)

    def _set_up(self, ctx, inputs, output):
        self._previous(ctx, inputs, output)
        _, lse, rng_state = output
        if lse.device.type == "cpu":
            ctx.mark_non_differentiable(lse, rng_state)

    def remove(self):
        self._op.register_autograd(self._backward, setup_context=self._previous)


_backward_library = None


def _keep_backward():
    """Registers the backward kernel, for good: results that were computed while the
    provider was active can be differentiated after it was removed."""
    global _backward_library
    if _backward_library is None:
        _backward_library = Library("torch_attn", "IMPL")
        _backward_library.impl("_varlen_attn_backward", _varlen_attn_backward, "CPU")


def _varlen_attn(
    query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False, scale=None,
    window_size=None, enable_gqa=False, seqused_k=None, block_table=None, num_splits=None,
    backend=None,
):  # fmt: skip
    refuse_pages(cu_seq_k, block_table)
    out, lse = _ops.attn_cpu(
        query, key, value, cu_seq_q, cu_seq_k, seqused_k, None,
        *read_window(is_causal, window_size), read_scale(scale),
    )  # fmt: skip
    return out, lse, _rng_state(query)


def _varlen_attn_out(
    out, query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False, scale=None,
    window_size=None, enable_gqa=False, seqused_k=None, block_table=None, num_splits=None,
    backend=None,
):  # fmt: skip
    refuse_pages(cu_seq_k, block_table)
    return _ops.attn_out_cpu(
        out, query, key, value, cu_seq_q, cu_seq_k, seqused_k, None,
        *read_window(is_causal, window_size), read_scale(scale),
    )  # fmt: skip


def _varlen_attn_fake(
    query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False, scale=None,
    window_size=None, enable_gqa=False, seqused_k=None, block_table=None, num_splits=None,
    backend=None,
):  # fmt: skip
    refuse_pages(cu_seq_k, block_table)
    results = _ops.attn_fake(query, key, value, cu_seq_q, cu_seq_k, seqused_k)
    return *results, _rng_state(query)


def _varlen_attn_out_fake(
    out, query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False, scale=None,
    window_size=None, enable_gqa=False, seqused_k=None, block_table=None, num_splits=None,
    backend=None,
):  # fmt: skip
    refuse_pages(cu_seq_k, block_table)
    return _ops.attn_out_fake(out, query, key, value, cu_seq_q, cu_seq_k, seqused_k)


def _varlen_attn_backward(
    grad_out, query, key, value, out, lse, cu_seq_q, cu_seq_k, max_q, max_k, is_causal,
    rng_state, scale=None, window_size=None, backend=None,
):  # fmt: skip
    return _ops.attn_backward_cpu(
        grad_out, None, query, key, value, out, lse, cu_seq_q, cu_seq_k, None, None,
        *read_window(is_causal, window_size), scale,
    )[:3]  # fmt: skip


def _rng_state(query):
    """What dropout would be drawn from."""
    return torch.zeros(2, dtype=torch.uint64, device=query.device)
