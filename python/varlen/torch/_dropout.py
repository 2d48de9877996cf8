"""Dropout of an attention: the words of its generator, made where the queries are."""

import torch

from .._dropout import add_score, check_range, number_rows, row_words, words_of
from ._functions import check_dense, check_lists, check_number


def add_dropout(score, captures, rate, seed, sequence_ids, query, name, cu_seqlens):
    """The score and its captures with dropout, if there is some. Without a seed it is drawn
    from PyTorch's generator of the device."""
    check_number("dropout_p", rate)
    check_range("dropout_p", rate)
    if rate == 0:
        return score, captures
    check_lists(query, name, cu_seqlens, sequence_ids)
    mesh = getattr(query, "device_mesh", None)  # of a DTensor
    if mesh is not None and seed is None:
        raise ValueError(
            "seed: expected an integer or a tensor beside dropout_p of DTensors, as processes may "
            "draw different ones, got None"
        )
    # All words on each device; attention uses those of its heads and rows.
    cu_seqlens, seed, sequence_ids = map(_gather, (cu_seqlens, seed, sequence_ids))
    cu_seqlens = cu_seqlens.contiguous()  # or searchsorted warns
    rows = torch.arange(query.size(0), dtype=cu_seqlens.dtype, device=query.device)
    numbered = number_rows(torch, cu_seqlens, rows, sequence_ids)
    heads = torch.arange(query.size(1), device=query.device)[:, None]
    numbered = [x.to(torch.int32) for x in (*numbered, heads)]
    words = row_words(*_read_seed(seed, query.device), *numbered)
    dtype = torch.float64 if query.dtype is torch.float64 else torch.float32
    words = words.view(torch.float32).to(dtype)
    if mesh is not None:
        from torch.distributed.tensor import DTensor, Replicate

        words = DTensor.from_local(words, mesh, [Replicate()] * mesh.ndim, run_check=False)
    return add_score(score, captures, rate, words)


def _gather(x):
    """All of a DTensor, and what is none as it is."""
    return x.full_tensor() if hasattr(x, "full_tensor") else x


def _read_seed(seed, device):
    """The low and the high word of a seed."""
    if seed is None:
        seed = torch.randint(-(2**63), 2**63 - 1, (), device=device)
    if isinstance(seed, torch.Tensor):
        check_dense(seed=seed)
        if seed.is_meta and device.type != "meta":
            raise ValueError(f"seed: expected a tensor with a number, got one on {seed.device}")
        if seed.dtype is not torch.int64 or seed.numel() != 1:
            raise ValueError(
                f"seed: expected an integer or a tensor of one torch.int64, got {seed.dtype} of "
                f"shape {tuple(seed.shape)}"
            )
        seed = seed.to(device).reshape(1)
        return (seed << 32 >> 32).to(torch.int32), (seed >> 32).to(torch.int32)
    # A tensor of each, so that a graph is one for all seeds that are tensors.
    return [torch.full((1,), word, dtype=torch.int32, device=device) for word in words_of(seed)]
