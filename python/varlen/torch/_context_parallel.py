"""context_parallel: attention of a packed batch whose rows are divided among a process group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.distributed as dist

from ..context_parallel import Plan
from ._autocast import cast
from ._context_calls import Options, Sequences, make_offsets
from ._context_gather import AllGather, AttendByAllGather
from ._context_heads import AttendByHeads, Heads
from ._context_ring import AttendByRing, Ring
from ._exchange import check_agreement
from ._functions import check_optional, check_tensors, read_aux, read_scale, read_score
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
        check: Whether ranks find out first whether they have one plan, shapes and dtypes, and no
            error, by a message of 16 bytes, for which a GPU is waited for.

    Returns:
        out (rows of the rank, Hq, Dv), and lse (Hq, rows of the rank) if it is asked for.

    Raises:
        ValueError: tensors, plan or options that do not go together, on this rank or, with `check`,
            on another one, which is named; ranks that disagree, with what they disagree about.
        RuntimeError: a rank has ended, or the group's timeout is over.
        NotImplementedError: a ring with captures of keys, or with chunk and score.
    """
    if group is not None and dist.get_rank(group) < 0:
        raise ValueError("group: expected one that this process is in, got another one")
    given = query, key, value, plan, group, method, scale, sink, score, captures
    call = problem = None
    try:
        call = _Call.make(*given)
        returns_lse = return_aux is not None and read_aux(return_aux)
    except Exception as error:
        problem = error
    if check:
        # Before what one rank alone finds wrong is raised: others would wait for it.
        device = query.device if isinstance(query, torch.Tensor) else None
        check_agreement(call, problem, group, device)
    if problem is not None:
        raise problem
    out, lse = call.run()
    return (out, lse) if returns_lse else out


class _Call(NamedTuple):
    """A call whose arguments are right, as far as this rank can tell."""

    plan: Plan
    kind: tuple  # of attention: equal where a way is for both
    way: AllGather | Ring | Heads
    tensors: dict[str, torch.Tensor]
    captures: list[torch.Tensor]

    @classmethod
    def make(cls, query, key, value, plan, group, method, scale, sink, score, captures):
        """Raises what is wrong with the arguments."""
        check_tensors(query=query, key=key, value=value)
        check_optional(None, None, None, sink, captures)
        if not isinstance(plan, Plan):
            raise TypeError(
                f"plan: expected a varlen.context_parallel.Plan, got {type(plan).__name__}"
            )
        if method not in _METHODS:
            raise ValueError(f"method: expected one of {', '.join(_METHODS)}, got {method!r}")
        device = query.device.type
        if torch.is_autocast_enabled(device):
            query, key, value = cast(device, query, key, value)
        score_text, captures = read_score(score, captures, query) or ("", [])
        kinds = tuple(score.captures.values()) if score is not None else ()
        window = (-1, -1) if plan.chunk else plan.window
        compute = "f64" if query.dtype is torch.float64 else "f32"
        options = Options(*window, read_scale(scale), score_text, plan.chunk, kinds, compute)
        _check_shapes(query, key, value, plan, group, options, captures)
        tensors = {"q": query, "k": key, "v": value} | ({} if sink is None else {"sink": sink})
        # Ranks have different numbers of rows.
        types = {name: _describe(x.dtype, x.shape[name != "sink" :]) for name, x in tensors.items()}
        for i, x in enumerate(captures):
            rows = options.side(i) is not None
            types[f"captures[{i}]"] = _describe(x.dtype, x.shape[:1] + x.shape[1 + rows :])
        every = *tensors.values(), *captures
        has_gradients = torch.is_grad_enabled() and any(x.requires_grad for x in every)
        # Of these there are sums over ranks.
        shared = [] if sink is None else [sink]
        shared += [x for i, x in enumerate(captures) if options.side(i) is None]
        sums = tuple(has_gradients and x.requires_grad for x in shared)
        kind = method, options, has_gradients, sums, tuple(types.items())
        way = _find_way(plan, group, kind, tensors, captures)
        return cls(plan, kind, way, tensors, captures)

    def signature(self):
        """A text that two calls share if and only if they describe the same."""
        return repr((self.plan.signature(), self.kind))

    def describe(self):
        """What all ranks have in common, by name."""
        plan, (method, options, has_gradients, sums, types) = self.plan, self.kind
        return {
            "cu_seqlens_q": list(plan.cu_seqlens_q), "cu_seqlens_k": list(plan.cu_seqlens_k),
            "q_offset": plan.q_offset, "window": plan.window, "chunk": plan.chunk,
            "ranks": plan.ranks, "method": method, "scale": options.scale, "score": options.score,
            "requires_grad": has_gradients, "requires_grad of a sink and of captures of heads": sums,
            **dict(types),
            "layout": plan.signature(),
        }  # fmt: skip

    def run(self):
        q, k, v = (self.tensors[name] for name in "qkv")
        function = _METHODS[self.kind[0]][1]
        # What is computed has the types of its inputs.
        with torch.autocast(q.device.type, enabled=False):
            return function.apply(self.way, q, k, v, self.tensors.get("sink"), *self.captures)


def _describe(dtype, extents):
    return f"{str(dtype).removeprefix('torch.')} {tuple(extents)}"


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
        if side := options.side(i):
            if x.dim() < 2 or x.shape[1] != rows[side]:
                raise ValueError(
                    f"captures[{i}]: expected numbers of the {rows[side]} rows that the plan gives "
                    f"rank {rank}, got shape {tuple(x.shape)}"
                )
    heads, kv_heads = query.shape[1], key.shape[1]
    if not kv_heads or heads % kv_heads:
        raise ValueError(
            f"expected query heads to be a multiple of kv heads, got {heads} and {kv_heads}"
        )


def _find_way(plan, group, kind, tensors, captures):
    """What is sent and computed: once for each plan and kind of attention, whose types are checked
    by an attention without a row."""
    group = group or dist.group.WORLD
    q, k, v = (tensors[name] for name in "qkv")
    method, options, *_ = kind
    key = kind, q.device, group
    way = plan.ways.get(key)
    if way is None:
        heads, kv_heads = q.shape[1], k.shape[1]
        sizes = (heads, kv_heads) if method == "all_to_all" else (heads // kv_heads,)
        way = _METHODS[method][0](plan, group, options, *sizes, q.device)
        none = make_offsets([], q.device)
        start = none.new_zeros(1)
        no_rows = [x if options.side(i) is None else x[:, :0] for i, x in enumerate(captures)]
        with torch.no_grad(), torch.autocast(q.device.type, enabled=False):
            options.attend(
                q[:0], k[:0], v[:0], Sequences(start, start, none), tensors.get("sink"), no_rows
            )
        plan.ways[key] = way
    return way


def shard_rows(x: torch.Tensor, plan: Plan, rank: int, *, of_keys: bool = False) -> torch.Tensor:
    """The rank's rows of a tensor whose first dimension the rows of the batch are, of q or of k
    and v. What is in no sequence is left out. Gradients go back. Raises ValueError where the plan has
    no such rank, or rows that the tensor has not."""
    if not 0 <= rank < plan.ranks:
        raise ValueError(f"rank: expected one of the {plan.ranks} of the plan, got {rank}")
    rows = (plan.cu_seqlens_k if of_keys else plan.cu_seqlens_q)[-1]
    if x.dim() == 0 or x.shape[0] < rows:
        raise ValueError(
            f"x: expected the {rows} rows of the batch, or more, got shape {tuple(x.shape)}"
        )
    ranges = plan.key_rows(rank) if of_keys else plan.rows(rank)
    return x.index_select(0, make_index(ranges, x.device))


def unshard_rows(
    x: torch.Tensor, plan: Plan, group: dist.ProcessGroup | None = None
) -> torch.Tensor:
    """All rows of q's side, in the order of the batch, on each rank: the opposite of shard_rows.
    It has no gradient."""
    counts, rank = [plan.num_rows(rank) for rank in range(plan.ranks)], dist.get_rank(group)
    if len(counts) != dist.get_world_size(group):
        raise ValueError(
            f"plan: expected one for the {dist.get_world_size(group)} ranks of the group, got one for "
            f"{plan.ranks}"
        )
    if x.dim() == 0 or x.shape[0] != counts[rank]:
        raise ValueError(
            f"x: expected the {counts[rank]} rows that the plan gives rank {rank}, got shape "
            f"{tuple(x.shape)}"
        )
    # As many from each, which all backends have.
    most = max(counts)
    own = x.new_zeros(most, *x.shape[1:])
    own[: x.shape[0]] = x.detach()
    every = [torch.empty_like(own) for _ in counts]
    dist.all_gather(every, own, group=group)
    rows = torch.cat([part[:n] for part, n in zip(every, counts)])
    order = make_index(plan.all_rows(), x.device)
    return torch.empty_like(rows).index_copy_(0, order, rows)
