"""flash_attn_varlen_func, for programs that were written for flash-attn."""

import torch

from ._functions import read_scale, read_window, refuse_pages


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
    dtypes are. `deterministic` changes nothing: everything is. `return_attn_probs`
    returns (out, lse, None): lse (Hq, Tq), and no probabilities, as there are none
    without dropout. Raises NotImplementedError for dropout, softcap, alibi_slopes and
    block_table."""
    offered = {
        "dropout_p": dropout_p == 0,
        "softcap": softcap == 0,
        "alibi_slopes": alibi_slopes is None,
    }
    for name, is_offered in offered.items():
        if not is_offered:
            raise NotImplementedError(f"{name}: Varlen offers no such attention")
    refuse_pages(cu_seqlens_k, block_table)
    out, lse = torch.ops.varlen.attn(
        q, k, v, cu_seqlens_q, cu_seqlens_k, None, None,
        *read_window(causal, window_size), read_scale(softmax_scale),
    )  # fmt: skip
    return (out, lse, None) if return_attn_probs else out
