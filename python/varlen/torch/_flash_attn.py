"""flash_attn_varlen_func, for programs that were written for flash-attn."""

import torch

from .. import scores
from . import _ops
from ._functions import read_scale, read_score, read_window, refuse_pages


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
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
    block_table: torch.Tensor | None = None,
):
    """flash-attn's function of that name on `varlen_attn`, which says what shapes and
    dtypes are. `softcap` bounds the scaled products, to softcap * tanh(s / softcap); 0 does
    not. `alibi_slopes`, (Hq) or (N, Hq), float32: slope * |i - j| is taken off a score, of
    positions i and j counted from the end of a sequence. `deterministic` changes nothing:
    everything is. `return_attn_probs` returns (out, lse, None): lse (Hq, Tq), and no
    probabilities, as there are none without dropout. Raises NotImplementedError for dropout
    and block_table."""
    if dropout_p != 0:
        raise NotImplementedError("dropout_p: Varlen offers no such attention")
    refuse_pages(cu_seqlens_k, block_table)
    out, lse = _ops.attn(
        q, k, v, cu_seqlens_q, cu_seqlens_k, None, None,
        *read_window(causal, window_size), read_scale(softmax_scale),
        *_read_score(softcap, alibi_slopes, q, cu_seqlens_q),
    )  # fmt: skip
    return (out, lse, None) if return_attn_probs else out


def _read_score(softcap, slopes, q, cu_seqlens_q):
    """The text of a score and its captures; nothing if there is none."""
    if not softcap >= 0:
        raise ValueError(f"softcap: expected 0 or more, got {softcap}")
    if slopes is None:
        return read_score(_find_score(softcap, 0), [], q) if softcap else ()
    if slopes.dim() not in (1, 2):
        raise ValueError(
            "alibi_slopes: expected a tensor of rank 1 (heads) or 2 (sequences, heads), got "
            f"shape {tuple(slopes.shape)}"
        )
    rank = slopes.dim()
    if rank == 2:
        count = cu_seqlens_q.size(0) - 1
        if slopes.size(0) != count or count == 0:
            raise ValueError(
                f"alibi_slopes: expected those of {count} sequences, one or more, got shape "
                f"{tuple(slopes.shape)}"
            )
        # Of each query, those of its sequence; of rows behind the last one any.
        rows = torch.arange(q.size(0), device=q.device, dtype=cu_seqlens_q.dtype)
        sequence = torch.searchsorted(cu_seqlens_q[1:].contiguous(), rows, right=True)
        slopes = slopes.t()[:, sequence.clamp(max=count - 1)]
    return read_score(_find_score(softcap, rank), [slopes], q)


def _find_score(softcap, rank):
    """The score for slopes of that rank; 0: there are none."""
    alibi = scores.query_alibi() if rank == 2 else scores.alibi() if rank else None
    if not softcap:
        return alibi
    cap = scores.softcap(softcap)
    # The bias is added to what softcap makes of the product, as in flash-attn.
    return scores.compose(cap, alibi) if rank else cap
