"""Other functions of flash-attn, on flash_attn_varlen_func: of tensors with a batch dimension,
of packed projections, and of padding. Parameters are in flash-attn's order."""

import torch
import torch.nn.functional as F

from ._flash_attn import flash_attn_varlen_func
from ._functions import check_layouts, check_tensors


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    attention_chunk: int = 0,
    learnable_sink: torch.Tensor | None = None,
    s_aux: torch.Tensor | None = None,
):
    """q (N, Sq, Hq, D), k (N, Sk, Hkv, D) and v (N, Sk, Hkv, Dv): out (N, Sq, Hq, Dv), with
    `return_attn_probs` (out, lse, None), lse (N, Hq, Sq)."""
    check_tensors(q=q, k=k, v=v)
    for name, x in (("q", q), ("k", k), ("v", v)):
        check_rank(name, x, "batch, rows, heads, head_dim")
        if x.shape[0] != q.shape[0]:
            raise ValueError(f"{name}: expected a batch of {q.shape[0]}, as q is, got {x.shape[0]}")
    if k.shape[1] != v.shape[1]:
        raise ValueError(f"expected k and v of as many rows, got {k.shape[1]} and {v.shape[1]}")
    batch, rows = q.shape[:2]
    cu_seqlens_q, cu_seqlens_k = (
        torch.arange(batch + 1, dtype=torch.int32, device=q.device) * x.shape[1] for x in (q, k)
    )
    out, lse, _ = flash_attn_varlen_func(
        *(x.flatten(0, 1) for x in (q, k, v)), cu_seqlens_q, cu_seqlens_k, rows, k.shape[1],
        dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic,
        True, attention_chunk=attention_chunk, learnable_sink=learnable_sink, s_aux=s_aux,
    )  # fmt: skip
    out = out.unflatten(0, (batch, rows))
    if not return_attn_probs:
        return out
    return out, lse.unflatten(1, (batch, rows)).transpose(0, 1), None


def flash_attn_kvpacked_func(
    q: torch.Tensor,
    kv: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
):
    """`flash_attn_func` of kv (N, Sk, 2, Hkv, D)."""
    return flash_attn_func(
        q, *_unpack("kv", kv, 2, "batch, rows"), dropout_p, softmax_scale, causal, window_size,
        softcap, alibi_slopes, deterministic, return_attn_probs,
    )  # fmt: skip


def flash_attn_qkvpacked_func(
    qkv: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
):
    """`flash_attn_func` of qkv (N, S, 3, H, D)."""
    return flash_attn_func(
        *_unpack("qkv", qkv, 3, "batch, rows"), dropout_p, softmax_scale, causal, window_size,
        softcap, alibi_slopes, deterministic, return_attn_probs,
    )  # fmt: skip


def flash_attn_varlen_kvpacked_func(
    q: torch.Tensor,
    kv: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
):
    """`flash_attn_varlen_func` of kv (Tk, 2, Hkv, D)."""
    return flash_attn_varlen_func(
        q, *_unpack("kv", kv, 2, "rows"), cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
        dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic,
        return_attn_probs,
    )  # fmt: skip


def flash_attn_varlen_qkvpacked_func(
    qkv: torch.Tensor,
    cu_seqlens: torch.Tensor,
    max_seqlen: int | None = None,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
):
    """`flash_attn_varlen_func` of qkv (T, 3, H, D)."""
    return flash_attn_varlen_func(
        *_unpack("qkv", qkv, 3, "rows"), cu_seqlens, cu_seqlens, max_seqlen, max_seqlen,
        dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic,
        return_attn_probs,
    )  # fmt: skip


def unpad_input(
    hidden_states: torch.Tensor,
    attention_mask: torch.Tensor,
    unused_mask: torch.Tensor | None = None,
):
    """The rows of a padded batch (N, S, ...) that have a token, by masks (N, S) of bool or
    integers: what is not 0 is a token, in `unused_mask` alone a row that is kept and does not
    count. As flash-attn's function it waits for the device.

    Returns (rows (T, ...), indices (T) of them among all N * S, cu_seqlens (N + 1) int32, the
    length of the longest sequence, seqused (N) int32)."""
    check_tensors(hidden_states=hidden_states)
    counted = kept = _read_mask("attention_mask", attention_mask, hidden_states)
    if unused_mask is not None:
        kept = counted | _read_mask("unused_mask", unused_mask, hidden_states)
    lengths = kept.sum(1, dtype=torch.int32)
    indices = kept.flatten().nonzero().flatten()
    return (
        hidden_states.flatten(0, 1).index_select(0, indices), indices,
        F.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0)),
        int(lengths.max()) if len(lengths) else 0, counted.sum(1, dtype=torch.int32),
    )  # fmt: skip


def _read_mask(name, mask, hidden_states):
    """The mask as one of bool."""
    check_tensors(**{name: mask})
    if mask.dim() != 2 or mask.shape != hidden_states.shape[:2]:
        raise ValueError(
            f"{name}: expected the first two extents of hidden_states, "
            f"{tuple(hidden_states.shape[:2])}, got shape {tuple(mask.shape)}"
        )
    if mask.is_floating_point() or mask.is_complex():
        raise ValueError(f"{name}: expected a tensor of bool or integers, got one of {mask.dtype}")
    return mask != 0


def pad_input(
    hidden_states: torch.Tensor, indices: torch.Tensor, batch: int, seqlen: int
) -> torch.Tensor:
    """What `unpad_input` undoes: rows (T, ...) in a batch (batch, seqlen, ...), and 0 elsewhere."""
    check_tensors(hidden_states=hidden_states, indices=indices)
    padded = hidden_states.new_zeros(batch * seqlen, *hidden_states.shape[1:])
    return padded.index_copy(0, indices, hidden_states).unflatten(0, (batch, seqlen))


def _unpack(name, x, count, rows):
    """The parts of a projection, which has them in front of its heads."""
    check_tensors(**{name: x})
    axes = f"{rows}, {count}, heads, head_dim"
    check_rank(name, x, axes)
    if x.shape[-3] != count:
        raise ValueError(
            f"{name}: expected {count} parts, of a shape ({axes}), got shape {tuple(x.shape)}"
        )
    return x.unbind(-3)


def check_rank(name, x, axes):
    check_layouts(**{name: x})
    rank = axes.count(",") + 1
    if x.dim() != rank:
        raise ValueError(
            f"{name}: expected a tensor of rank {rank} ({axes}), got shape {tuple(x.shape)}"
        )
