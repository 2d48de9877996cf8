"""context_parallel: attention of a packed batch whose rows are divided among a process group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from ..context_parallel import Plan
from ._context_calls import Options
from ._context_gather import AllGather, AttendByAllGather
from ._context_heads import AttendByHeads, Heads
from ._context_ring import AttendByRing, Ring
from ._exchange import check_agreement
from ._functions import check_optional, check_tensors, read_scale, read_score
from ._local_rows import make_index

if TYPE_CHECKING:
    from torch.nn.attention.varlen import AuxRequest

    from ..scores import Score

_METHODS = {
    "all_gather": (AllGather, AttendByAllGather),
    "ring": (Ring, AttendByRing),
    "all_to_all": (Heads, AttendByHeads),
}


def context_parallel(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    plan: Plan,
    group: dist.ProcessGroup | None = None,
    *,
    method: str = "all_gather",
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    sink: torch.Tensor | None = None,
    score: Score | None = None,
    captures: Sequence[torch.Tensor] = (),
    check: bool = True,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Attention over a packed batch of which each rank of a group has some rows.

    All ranks call it, and its gradients, in the same order, with one plan. docs/context-parallel.md
    says which method is for what.

    Args:
        query: (rows of the rank, Hq, D), those of `plan.rows(rank)` one after the other, as
            `shard_rows` gives them.
        key, value: (rows of the rank, Hkv, D or Dv), those of `plan.key_rows(rank)`. Hq is a
            multiple of Hkv.
        plan: `varlen.context_parallel.plan(...)` of the batch for as many ranks as the group has;
            it has the window, chunk and q_offset. Its alignment is "bottom_right".
        group: None is the default group.
        method: "all_gather": the bits of one process, forward and backward, on CPUs. "ring":
            the least memory; sent while parts are computed, which are merged by lse.
            "all_to_all": each rank computes some heads.
        return_aux, scale, score: As of varlen_attn.
        sink: (Hq,), the same on all ranks. Its gradient on a rank is a part: the sum over ranks is
            the gradient, as of every parameter that all ranks have. So are those of captures of
            heads.
        captures: Of heads the same on all ranks; of queries or keys with the rank's rows.
        check: Whether ranks find out first whether they have one plan, shapes and dtypes, by a
            message of 24 bytes, for which a GPU is waited for.

    Returns:
        out (rows of the rank, Hq, Dv), and lse (Hq, rows of the rank) if it is asked for.

    Raises:
        ValueError: tensors, plan or options that do not go together; ranks that disagree, with
            what they disagree about.
        RuntimeError: a rank has ended, or the group's timeout is over.
        NotImplementedError: a ring with captures of keys, or with chunk and score.
    """
    check_tensors(query=query, key=key, value=value)
    check_optional(None, None, None, sink, captures)
    if not isinstance(plan, Plan):
        raise TypeError(f"plan: expected a varlen.context_parallel.Plan, got {type(plan).__name__}")
    if method not in _METHODS:
        raise ValueError(f"method: expected one of {', '.join(_METHODS)}, got {method!r}")
    score_text, captures = read_score(score, captures, query) or ("", [])
    kinds = tuple(score.captures.values()) if score is not None else ()
    window = (-1, -1) if plan.chunk else plan.window
    compute = "f64" if query.dtype is torch.float64 else "f32"
    options = Options(*window, read_scale(scale), score_text, plan.chunk, kinds, compute)
    if check:
        # Before what one rank alone may find wrong: others would wait for it.
        tensors = {"q": query, "k": key, "v": value} | ({} if sink is None else {"sink": sink})
        kind = repr((method, options, sink is not None and sink.requires_grad))
        check_agreement(plan, kind, tensors, group)
    _check_shapes(query, key, value, plan, group, options, captures)
    way = _find_way(plan, group, method, options, query, key)
    function = _METHODS[method][1]
    out, lse = function.apply(way, query, key, value, sink, *captures)
    return (out, lse) if return_aux is not None and return_aux.lse else out


def _check_shapes(query, key, value, plan, group, options, captures):
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if plan.ranks != size:
        raise ValueError(
            f"plan: expected one for the {size} ranks of the group, got one for {plan.ranks}"
        )
    plan.check_alignment()
    if not query.dim() == key.dim() == value.dim() == 3:
        shapes = [tuple(x.shape) for x in (query, key, value)]
        raise ValueError(
            "expected q, k and v of rank 3 (rows, heads, head_dim), got shapes "
            f"{shapes[0]}, {shapes[1]} and {shapes[2]}"
        )
    rows = {"q": plan.num_rows(rank), "k": plan.num_key_rows(rank)}
    for name, x, wanted in (
        ("query", query, rows["q"]), ("key", key, rows["k"]), ("value", value, rows["k"])
    ):  # fmt: skip
        if x.shape[0] != wanted:
            raise ValueError(
                f"{name}: expected the {wanted} rows that the plan gives rank {rank}, got "
                f"{x.shape[0]}"
            )
    for i, x in enumerate(captures):
        side = options.side(i)
        if side and x.shape[1] != rows[side]:
            raise ValueError(
                f"captures[{i}]: expected numbers of the {rows[side]} rows that the plan gives "
                f"rank {rank}, got {x.shape[1]}"
            )
    heads, kv_heads = query.shape[1], key.shape[1]
    if not kv_heads or heads % kv_heads:
        raise ValueError(
            f"expected query heads to be a multiple of kv heads, got {heads} and {kv_heads}"
        )


def _find_way(plan, group, method, options, query, key):
    """What is sent and computed: once for each plan and kind of attention."""
    heads, kv_heads = query.shape[1], key.shape[1]
    group = group or dist.group.WORLD
    kind = method, options, heads, kv_heads, query.device, group
    way = plan.ways.get(kind)
    if way is None:
        sizes = (heads, kv_heads) if method == "all_to_all" else (heads // kv_heads,)
        way = plan.ways[kind] = _METHODS[method][0](plan, group, options, *sizes, query.device)
    return way


def shard_rows(x: torch.Tensor, plan: Plan, rank: int, *, of_keys: bool = False) -> torch.Tensor:
    """The rank's rows of a tensor whose first dimension the rows of the batch are, of q or of k
    and v. What is in no sequence is left out. Gradients go back."""
    ranges = plan.key_rows(rank) if of_keys else plan.rows(rank)
    return x.index_select(0, make_index(ranges, x.device))


def unshard_rows(
    x: torch.Tensor, plan: Plan, group: dist.ProcessGroup | None = None
) -> torch.Tensor:
    """All rows of q's side, in the order of the batch, on each rank: the opposite of shard_rows.
    It has no gradient."""
    counts = [plan.num_rows(rank) for rank in range(plan.ranks)]
    # As many from each, which all backends have.
    most = max(counts)
    own = x.new_zeros(most, *x.shape[1:])
    own[: x.shape[0]] = x.detach()
    every = [torch.empty_like(own) for _ in counts]
    dist.all_gather(every, own, group=group)
    rows = torch.cat([part[:n] for part, n in zip(every, counts)])
    order = make_index(plan.all_rows(), x.device)
    return torch.empty_like(rows).index_copy_(0, order, rows)
