"""Rotary position embedding, of both layouts."""

import torch

from ._results import accumulation_dtype


def rotate(x, cos, sin, positions, interleaved):
    """x (..., heads, head_dim) at `positions` (...), of which the first dimensions of a head, twice
    as many as cos and sin (positions, dimensions) have, are turned in pairs: neighbours where
    `interleaved`, else one of each half. Computed in float32, of float64 in float64."""
    wide = accumulation_dtype(x.dtype)
    cos, sin = (table[positions].to(wide).unsqueeze(-2) for table in (cos, sin))
    size = 2 * cos.shape[-1]
    turned = x[..., :size].to(wide)
    if interleaved:
        first, second = turned[..., ::2], turned[..., 1::2]
    else:
        first, second = turned.chunk(2, -1)
    pairs = first * cos - second * sin, first * sin + second * cos
    turned = torch.stack(pairs, -1).flatten(-2) if interleaved else torch.cat(pairs, -1)
    return torch.cat([turned.to(x.dtype), x[..., size:]], -1)


def check_rotary(cos, sin, q, k, before, places):
    """That tables of the embedding are there for q at `before` (N) + `places`, and for k behind."""
    if cos is None and sin is None:
        return
    if cos is None or sin is None or k is None:
        raise ValueError("expected rotary_cos and rotary_sin beside k and v, or none of them")
    wanted = cos.dim() == 2 and cos.shape == sin.shape and cos.is_floating_point()
    if not wanted or not sin.is_floating_point() or 2 * cos.shape[1] > q.shape[-1]:
        raise ValueError(
            "expected rotary_cos and rotary_sin of a float type and of one shape (positions, at most "
            f"{q.shape[-1] // 2}), got {cos.dtype} {tuple(cos.shape)} and {sin.dtype} {tuple(sin.shape)}"
        )
    behind = max(k.shape[1], int(places.max()) + 1 if len(places) else 0)
    needed = int(before.max()) + behind if len(before) else 0
    if cos.shape[0] < needed:
        raise ValueError(
            f"rotary_cos: expected at least {needed} positions, those of all queries and new keys, "
            f"got {cos.shape[0]}"
        )
