# RUN: %python %s
"""DTensors: two processes have half of the heads each, with the bits of one that has all; or rows,
as many as they have."""

import torch
import torch.distributed as dist
from device import ON_CUDA, skip
from packed import fails, offsets
from paged import to_pages
from ranks import run_ranks
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.utils.flop_counter import FlopCounterMode

from varlen import scores
from varlen.torch import AuxRequest, varlen_attn, varlen_attn_out

LSE = AuxRequest(lse=True)
PROCESSES = 2


def attend(q, k, v, cu_q, cu_k, sink, slopes, *others):
    options = {"score": scores.alibi(), "captures": [slopes]} if slopes is not None else {}
    return varlen_attn(
        q, k, v, cu_q, cu_k, enable_gqa=True, return_aux=LSE, sink=sink, window_size=(4, 0),
        **options,
    )  # fmt: skip


def check(mesh, kv_heads, placements, wanted, has_slopes=True):
    """Results and gradients for q, k, v, sink and slopes that are placed so."""
    torch.manual_seed(0)
    shapes = (20, 4, 32), (24, kv_heads, 32), (24, kv_heads, 16), (4,), (4,)
    tensors = [torch.randn(shape) for shape in shapes]
    cu = offsets([7, 13]), offsets([9, 15])
    placed = [offset_placed(mesh, x) for x in cu]

    def run(leaves, cu):
        q, k, v, sink, slopes = leaves
        out, lse = attend(q, k, v, *cu, sink, slopes if has_slopes else None)
        (out.square().sum() + lse.sin().sum()).backward()
        return out, lse

    alone = [x.clone().requires_grad_() for x in tensors]
    results = run(alone, cu)
    leaves = [
        distribute_tensor(x, mesh, [placement]).requires_grad_()
        for x, placement in zip(tensors, placements, strict=True)
    ]
    found = run(leaves, placed)
    assert found[0].placements == (wanted,), found[0].placements
    for x, y in zip(results, found):
        assert torch.equal(x, y.full_tensor())
    for x, y in zip(alone, leaves):
        if x.grad is not None:
            assert torch.equal(x.grad, y.grad.full_tensor())
    if wanted == Shard(1):
        # No process has computed what another one has.
        assert found[0].to_local().shape == (20, 4 // PROCESSES, 16)
    return leaves, placed


def check_rows(mesh, kinds, dtype=torch.float32, capture="", rows=21, key_rows=25, **options):
    """Results and gradients where q has rows of its own on each process, and others are placed as
    `kinds` of q, k, v, sink and the capture, if there is one."""
    torch.manual_seed(0)
    extents = {"H": 4, "Q": rows, "K": key_rows, "M": 5}
    tensors = [
        torch.randn(shape, dtype=dtype) for shape in ((rows, 4, 32), (key_rows, 2, 32), (key_rows, 2, 16))
    ]
    tensors += [torch.randn(4)] + ([torch.randn([extents[x] for x in capture])] if capture else [])
    # A sequence on both processes, an empty one, and rows behind the last.
    entries = {
        "cu_seq_q": [0, 3, 17, 17, 18], "cu_seq_k": [0, 9, 20, 22, 24],
        "seqused_q": [2, 13, 0, 1], "seqused_k": [9, 10, 2, 2], "q_offset": [0, 1, 0, -(2**31)],
    }  # fmt: skip
    if rows < 18:
        entries |= {"cu_seq_q": [0, 0, rows, rows, rows], "seqused_q": [0, rows, 0, 0]}
    entries = {name: torch.tensor(x, dtype=torch.int32) for name, x in entries.items()}

    def run(leaves, entries):
        q, k, v, sink, *captures = leaves
        out, lse = varlen_attn(
            q, k, v, **entries, enable_gqa=True, return_aux=LSE, sink=sink, captures=captures, **options
        )
        (out.float().square().sum() + lse.nan_to_num(neginf=0).sin().sum()).backward()
        return out.detach(), lse.detach(), *(x.grad for x in leaves)

    wanted = run([x.clone().requires_grad_() for x in tensors], entries)
    leaves = [
        distribute_tensor(x, mesh, list(kind)).requires_grad_()
        for x, kind in zip(tensors, kinds, strict=True)
    ]
    found = run(leaves, {name: offset_placed(mesh, x) for name, x in entries.items()})
    assert found[0].placements == found[2].placements == leaves[0].placements, found[0].placements
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype is torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-5}
    for x, y in zip(wanted, found):
        torch.testing.assert_close(y.full_tensor(), x, **tolerance)
    for x in leaves:
        # As a leaf is split over rows, so is its gradient.
        assert x.grad.dtype == x.dtype and not any(p.is_partial() for p in x.grad.placements)
        assert x.placements[0] != Shard(0) or x.grad.placements[0] == Shard(0)
    return found


def check_row_errors(mesh):
    """What is wrong in the whole batch is not hidden by a part of it."""
    q, k = (distribute_tensor(torch.randn(rows, 2, 16), mesh, [Shard(0)]) for rows in (21, 25))
    good = offset_placed(mesh, torch.tensor([0, 9, 20], dtype=torch.int32))
    for cu, used, message in (
        ([0, 9, 22], [9, 11], "cu_seqlens_q[2] = 22"), ([0, 9, 8], [9, 0], "cu_seqlens_q[2] = 8"),
        ([0, 9, 20], [9, 12], "seqused_q[1] = 12"), ([0, 9, 20], [-1, 0], "seqused_q[0] = -1"),
    ):  # fmt: skip
        cu, used = (offset_placed(mesh, torch.tensor(x, dtype=torch.int32)) for x in (cu, used))
        fails(ValueError, message, lambda: varlen_attn(q, k, k, cu, good, seqused_q=used))


def offset_placed(mesh, x):
    return distribute_tensor(x, mesh, [Replicate()] * mesh.ndim)


def check_pages(mesh):
    """Keys in pages, with heads or rows of q on each process."""
    torch.manual_seed(0)
    lengths = [9, 15]
    q, k, v = (torch.randn(shape) for shape in ((21, 4, 32), (24, 2, 32), (24, 2, 16)))
    k, v, table, used = to_pages(k, v, lengths, 4)
    whole = [Replicate()]
    for splits in (([Shard(1)], [Shard(2)]), ([Shard(1)], whole), ([Shard(0)], whole), (whole, [Shard(2)])):
        placed = [
            distribute_tensor(x, mesh, placement)
            for x, placement in ((q, splits[0]), (k, splits[1]), (v, splits[1]), (offsets([7, 13]), whole), (used, whole), (table, whole))
        ]  # fmt: skip

        def attend(q, k, v, cu, used, table):
            return varlen_attn(
                q, k, v, cu, None, is_causal=True, enable_gqa=True, seqused_k=used, block_table=table
            )

        found = attend(*placed)
        assert torch.equal(found.full_tensor(), attend(q, k, v, offsets([7, 13]), used, table))
        wanted = Shard(0) if splits[0] == [Shard(0)] else Shard(1)
        assert found.placements == (wanted,)


def work(rank, path):
    torch.set_num_threads(1)
    if ON_CUDA:
        torch.cuda.set_device(rank)
    backend = "nccl" if ON_CUDA else "gloo"
    dist.init_process_group(backend, init_method=f"file://{path}", rank=rank, world_size=PROCESSES)
    mesh = dist.device_mesh.init_device_mesh("cuda" if ON_CUDA else "cpu", (PROCESSES,))
    heads = [Shard(1)] * 3 + [Shard(0)] * 2
    (q, k, v, sink, _), cu = check(mesh, 2, heads, Shard(1))
    check(mesh, 4, [Shard(1), *[Replicate()] * 4], Shard(1), has_slopes=False)
    check(mesh, 2, [Replicate(), Shard(1), *[Replicate()] * 3], Shard(1))
    # A kv head is not split: all is computed by both.
    check(mesh, 1, [Shard(1), Replicate(), Replicate(), Shard(0), Shard(0)], Replicate())

    rows, whole = (Shard(0),), (Replicate(),)
    # Twenty-one rows are eleven and ten.
    found = check_rows(mesh, [rows] * 3 + [whole], window_size=(4, 0))
    assert found[0].to_local().shape == (11 - dist.get_rank(), 4, 16)
    check_rows(mesh, [rows, whole, rows, rows], torch.bfloat16)
    of_scores = {"HQM": scores.position_bias(), "HK": scores.key_bias(), "H": scores.alibi()}
    for capture, score in of_scores.items():
        check_rows(mesh, [rows] * 3 + [whole] * 2, capture=capture, score=score)
    # Dropout: the mask of one process, where rows are split and where heads are.
    drops = {"dropout_p": 0.3, "seed": torch.tensor(5)}
    check_rows(mesh, [rows] * 3 + [whole], window_size=(4, 0), **drops)
    check_rows(mesh, [(Shard(1),)] * 3 + [rows], **drops)
    fails(
        ValueError, "seed: expected an integer or a tensor beside dropout_p of DTensors",
        lambda: varlen_attn(q, k, v, *cu, enable_gqa=True, dropout_p=0.3),
    )  # fmt: skip
    # A process without a row.
    check_rows(mesh, [rows] * 3 + [whole], rows=1, key_rows=24, window_size=(4, 0))
    # Over rows and heads.
    both = dist.device_mesh.init_device_mesh("cuda" if ON_CUDA else "cpu", (PROCESSES, 1))
    check_rows(both, [(Shard(0), Shard(1))] * 3 + [(Replicate(), Shard(0))], window_size=(4, 0))
    check_row_errors(mesh)
    if not ON_CUDA:
        check_pages(mesh)

    with torch.no_grad():
        out = distribute_tensor(torch.zeros(20, 4, 16), mesh, [Shard(1)])
        result = varlen_attn_out(out, q, k, v, *cu, enable_gqa=True)
        assert result is out
        assert torch.equal(out, varlen_attn(q, k, v, *cu, enable_gqa=True))
        whole = distribute_tensor(torch.zeros(20, 4, 16), mesh, [Replicate()])
        fails(
            ValueError, "out: expected a DTensor with placements [Shard(dim=1)]",
            lambda: varlen_attn_out(whole, q, k, v, *cu, enable_gqa=True),
        )  # fmt: skip
    fails(
        TypeError, "cu_seqlens_q: expected a DTensor, as other tensors are, got a Tensor",
        lambda: varlen_attn(q, k, v, offsets([7, 13]), cu[1], enable_gqa=True),
    )  # fmt: skip
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        varlen_attn(q, k, v, *cu, enable_gqa=True)
    assert counter.get_total_flops() == 2 * (7 * 9 + 13 * 15) * 4 * (32 + 16)
    dist.destroy_process_group()


if __name__ == "__main__":
    if ON_CUDA and torch.cuda.device_count() < PROCESSES:
        skip(f"expected {PROCESSES} GPUs, got {torch.cuda.device_count()}")
    run_ranks(PROCESSES, work)
