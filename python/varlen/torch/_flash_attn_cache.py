"""flash_attn_with_kvcache: attention to a cache, to which new keys and values may be appended."""

import torch

from .._options import as_flag, as_integer
from ._append import append_op
from ._flash_attn import flash_attn_varlen_func
from ._flash_attn_dense import check_rank
from ._functions import check_dense, read_sides
from ._rotary import check_rotary, rotate

_INTEGERS = (torch.int32, torch.int64)
_LARGEST_INT32 = torch.iinfo(torch.int32).max
# So many new keys and values an operator of ours writes faster than indexed assignments do.
_FEW_ROWS = 64


def flash_attn_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: torch.Tensor | None = None,
    v: torch.Tensor | None = None,
    rotary_cos: torch.Tensor | None = None,
    rotary_sin: torch.Tensor | None = None,
    cache_seqlens: int | torch.Tensor | None = None,
    cache_batch_idx: torch.Tensor | None = None,
    cache_leftpad: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: torch.Tensor | None = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
    *,
    page_table: torch.Tensor | None = None,
    attention_chunk: int = 0,
    learnable_sink: torch.Tensor | None = None,
    s_aux: torch.Tensor | None = None,
):
    """flash-attn's function of that name, on tensors of the CPU or all on one CUDA device. Nothing
    has a gradient. On a GPU a call waits for the lengths and the table, to say what is wrong with
    them before it writes.

    Args:
        q: (N, Sq, Hq, D).
        k_cache, v_cache: (M, Sc, Hkv, D) and (M, Sc, Hkv, Dv), or with a block_table (P, page,
            Hkv, D) and (P, page, Hkv, Dv), of any strides.
        k, v: (N, Snew, Hkv, D) and (N, Snew, Hkv, Dv): are written into the cache behind the keys
            of each sequence, and belong to them then.
        rotary_cos, rotary_sin: (positions, dimensions / 2), of a float type: turn q, and k before
            it is written. q is at the place of the first new key, and where it is causal or has
            a window each query at its own. Beside k and v.
        cache_seqlens: (N), int32, or an integer: how many rows of the cache a sequence has, with
            its pads and without the new ones. None: all that there are.
        cache_batch_idx: (N), int32 or int64: the place of each sequence in the cache, if not its own.
        cache_leftpad: (N), int32 or int64: how many rows at the beginning are no keys.
        block_table, page_table: (N, pages), int32: pages of each sequence; two names of one thing.
        softmax_scale, causal, window_size, softcap, alibi_slopes, attention_chunk, learnable_sink,
            s_aux: as of `flash_attn_varlen_func`.
        num_splits: not needed: results never depend on it.

    Returns:
        out (N, Sq, Hq, Dv), with `return_softmax_lse` (out, lse), lse (N, Hq, Sq).

    Raises:
        TypeError, ValueError: what does not go together, is out of range, or would be written
            twice. Then nothing has been written.
        NotImplementedError: gradients.
    """
    if block_table is not None and page_table is not None:
        raise ValueError("expected block_table or page_table, two names of one thing, got both")
    table = page_table if block_table is None else block_table
    check_dense(q=q, k_cache=k_cache, v_cache=v_cache)
    _check_tensors(
        q, q=q, k_cache=k_cache, v_cache=v_cache, k=k, v=v, rotary_cos=rotary_cos,
        rotary_sin=rotary_sin, cache_batch_idx=cache_batch_idx, cache_leftpad=cache_leftpad,
        block_table=table, alibi_slopes=alibi_slopes, learnable_sink=learnable_sink, s_aux=s_aux,
    )  # fmt: skip
    _check_shapes(q, k_cache, v_cache, k, v, cache_seqlens)
    (batch, rows), new_rows = q.shape[:2], 0 if k is None else k.shape[1]
    table, name = _find_pages(q, table, cache_batch_idx)
    capacity = table.shape[1] * k_cache.shape[1]
    before = _read_lengths("cache_seqlens", cache_seqlens, q, capacity - new_rows)
    used = before + new_rows
    _check_pages(name, table, used, k_cache)
    table = table.to(torch.int32)
    pads = None if cache_leftpad is None else _read_pads(cache_leftpad, used, q)
    places_k = None if k is None else _place(table, before, new_rows, k_cache.shape[1])
    # A query without a mask is turned as the first new key is.
    is_local = as_flag("causal", causal) or max(read_sides(window_size)) >= 0
    places = torch.arange(rows, device=q.device) * is_local
    check_rotary(rotary_cos, rotary_sin, q, k, before, places)
    rotary_interleaved = as_flag("rotary_interleaved", rotary_interleaved)

    def turn(x, positions):
        if rotary_cos is None:
            return x
        return rotate(x, rotary_cos, rotary_sin, before[:, None] + positions, rotary_interleaved)

    def attend(q):
        pages = k_cache, v_cache, table, used
        if pads is not None:
            pages = _skip_pads(*pages, pads)
        pages_k, pages_v, block_table, seqused_k = pages
        cu_seqlens_q = torch.arange(batch + 1, dtype=torch.int32, device=q.device) * rows
        return flash_attn_varlen_func(
            q.flatten(0, 1), pages_k, pages_v, cu_seqlens_q, None, softmax_scale=softmax_scale,
            causal=causal, window_size=window_size, softcap=softcap, alibi_slopes=alibi_slopes,
            return_attn_probs=True, block_table=block_table, seqused_k=seqused_k.to(torch.int32),
            attention_chunk=attention_chunk, learnable_sink=learnable_sink, s_aux=s_aux,
        )  # fmt: skip

    def write():
        new = k.flatten(0, 1), v.flatten(0, 1)
        # One pass over the keys; a few that are not turned an assignment copies faster.
        is_much = rotary_cos is not None or batch * new_rows >= _FEW_ROWS
        is_taken = is_much and all(x.stride(-1) == 1 and not x.is_neg() for x in (k_cache, v_cache))
        if is_taken and _has_own_pages(table, before, used, k_cache):
            cu_seqlens = torch.arange(batch + 1, dtype=torch.int32, device=q.device) * new_rows
            rotary = () if rotary_cos is None else (rotary_cos, rotary_sin, rotary_interleaved)
            return append_op(k_cache, v_cache, *new, cu_seqlens, before.int(), table, *rotary)
        _check_apart(*places_k, k_cache.shape[1])
        k_cache[places_k] = turn(k, torch.arange(new_rows, device=q.device)).flatten(0, 1)
        v_cache[places_k] = new[1]

    with torch.no_grad():
        q = turn(q, places)
        if k is None:
            out, lse, _ = attend(q)
        else:
            with _Written((k_cache, v_cache), places_k, write):
                out, lse, _ = attend(q)
    out = out.unflatten(0, (batch, rows))
    return (out, lse.unflatten(1, (batch, rows)).transpose(0, 1)) if return_softmax_lse else out


class _Written:
    """New rows are in the cache; what was there comes back where the body fails."""

    def __init__(self, caches, places, write):
        self._caches, self._places, self._write = caches, places, write

    def __enter__(self):
        self._old = [cache[self._places] for cache in self._caches]
        self._write()

    def __exit__(self, kind, error, traceback):
        if kind is not None:
            for cache, old in zip(self._caches, self._old):
                cache[self._places] = old


def _check_tensors(query, **named):
    named = {name: x for name, x in named.items() if x is not None}
    check_dense(**named)
    for name, x in named.items():
        if x.device != query.device:
            raise ValueError(
                f"{name}: expected a tensor on {query.device}, as q is, got one on {x.device}"
            )
        if torch.is_grad_enabled() and x.requires_grad:
            raise NotImplementedError(
                f"{name}: expected a tensor that needs no gradient, as there is none of a cache; "
                "use torch.no_grad() or detach()"
            )


def _check_shapes(q, k_cache, v_cache, k, v, cache_seqlens):
    if (k is None) != (v is None):
        raise ValueError("expected k and v, or neither, got one of them")
    if k is not None and cache_seqlens is None:
        raise ValueError("expected cache_seqlens beside k and v, which are written behind them, got None")
    named = {"q": q, "k_cache": k_cache, "v_cache": v_cache}
    for name, x in named.items():
        check_rank(name, x, "batch, rows, heads, head_dim")
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        if cache.dtype != q.dtype:
            raise ValueError(f"{name}: expected a tensor of {q.dtype}, as q is, got one of {cache.dtype}")
    if k_cache.shape[:3] != v_cache.shape[:3] or k_cache.shape[3] != q.shape[3]:
        raise ValueError(
            "expected k_cache and v_cache of the same rows and heads, and k_cache of q's head_dim, got "
            f"shapes {tuple(k_cache.shape)} and {tuple(v_cache.shape)}, and q of {tuple(q.shape)}"
        )
    if k is None:
        return
    rows = k.shape[1] if k.dim() == 4 else "rows"
    for name, x, cache in (("k", k, k_cache), ("v", v, v_cache)):
        wanted = (q.shape[0], rows, *cache.shape[2:])
        if tuple(x.shape) != wanted or x.dtype != cache.dtype:
            raise ValueError(
                f"{name}: expected a tensor of {cache.dtype} and shape {wanted}, got one of {x.dtype} "
                f"and shape {tuple(x.shape)}"
            )


def _find_pages(q, table, cache_batch_idx):
    """The cache as pages: (table, the name that it has for the caller). Without a table a place
    in the cache is a page."""
    batch = len(q)
    if table is None:
        name, table = "cache_batch_idx", cache_batch_idx
        if table is None:
            name, table = "q", torch.arange(batch, device=q.device)
        _check_integers(name if cache_batch_idx is not None else "batch", table, (batch,))
        # Whose numbers need not fit into the type of a table before they are checked.
        return table[:, None], name
    if cache_batch_idx is not None:
        raise ValueError("expected block_table or cache_batch_idx, got both")
    if table.dtype != torch.int32 or table.dim() != 2 or table.shape[0] != batch:
        raise ValueError(
            f"block_table: expected a tensor of torch.int32 and shape ({batch}, pages), got one of "
            f"{table.dtype} and shape {tuple(table.shape)}"
        )
    return table, "block_table"


def _check_integers(name, x, shape):
    if x.dtype not in _INTEGERS or tuple(x.shape) != shape:
        raise ValueError(
            f"{name}: expected a tensor of torch.int32 or torch.int64 and shape {shape}, got one of "
            f"{x.dtype} and shape {tuple(x.shape)}"
        )


def _read_lengths(name, lengths, q, most):
    """Numbers of rows (N), int64, from 0 to `most`."""
    if most < 0:
        raise ValueError(f"k: expected no more rows than the cache has, which is {-most} too few")
    batch = len(q)
    if lengths is None:
        return torch.full((batch,), most, device=q.device)
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.full((batch,), as_integer(name, lengths), device=q.device)
    _check_tensors(q, **{name: lengths})
    _check_integers(name, lengths, (batch,))
    wrong = (lengths < 0) | (lengths > most)
    if wrong.any():
        i = int(wrong.nonzero()[0])
        raise ValueError(
            f"{name}[{i}] = {int(lengths[i])}: expected 0 to {most}, the rows that the cache has for "
            "the sequence, without those of k"
        )
    return lengths.long()


def _read_pads(pads, used, q):
    """Numbers of rows (N), int64, of those that each sequence has."""
    _check_tensors(q, cache_leftpad=pads)
    _check_integers("cache_leftpad", pads, used.shape)
    wrong = (pads < 0) | (pads > used)
    if wrong.any():
        i = int(wrong.nonzero()[0])
        raise ValueError(
            f"cache_leftpad[{i}] = {int(pads[i])}: expected 0 to {int(used[i])}, the rows that the "
            "sequence has in the cache"
        )
    return pads.long()


def _check_pages(name, table, used, k_cache):
    """That entries of the table that sequences use are pages of the cache."""
    pages, rows = k_cache.shape[:2]
    is_used = torch.arange(table.shape[1], device=table.device) * rows < used[:, None]
    wrong = is_used & ((table < 0) | (table >= pages))
    if not wrong.any():
        return
    i, slot = wrong.nonzero()[0].tolist()
    if name == "q":
        raise ValueError(f"q: expected a batch of at most {pages}, the places of k_cache, got {len(table)}")
    index = f"[{i}, {slot}]" if name == "block_table" else f"[{i}]"
    what = "pages" if name == "block_table" else "places"
    raise ValueError(
        f"{name}{index} = {int(table[i, slot])}: expected 0 to {pages - 1}, the {what} of k_cache"
    )


def _place(table, before, new_rows, rows):
    """(pages, rows) of the new rows of all sequences."""
    positions = before[:, None] + torch.arange(new_rows, device=table.device)
    return table.gather(1, positions // rows).long().flatten(), (positions % rows).flatten()


def _has_own_pages(table, before, used, k_cache):
    """Whether new rows of each entry of the table go to a page of its own, as append wants."""
    rows = k_cache.shape[1]
    first = torch.arange(table.shape[1], device=table.device) * rows
    pages = table[(first + rows > before[:, None]) & (first < used[:, None])]
    return len(pages.unique()) == len(pages)


def _check_apart(pages, row, rows):
    """That no two new rows have one place."""
    places, count = (pages * rows + row).unique(return_counts=True)
    if (count > 1).any():
        place = int(places[count > 1][0])
        raise ValueError(
            "expected new rows in places of their own, got several in row "
            f"{place % rows} of {place // rows} in k_cache"
        )


def _skip_pads(k_cache, v_cache, table, used, pads):
    """Pages of one row, of which a sequence has those behind its pads. A cache whose rows are not
    all at one distance is copied."""
    pages, rows = k_cache.shape[:2]
    if pages * rows > _LARGEST_INT32:
        raise ValueError(
            f"k_cache: expected at most {_LARGEST_INT32} rows beside cache_leftpad, got {pages * rows}"
        )

    def count(size):
        return torch.arange(size, device=table.device)

    each = (table.long()[..., None] * rows + count(rows)).flatten(1)
    behind = (count(each.shape[1]) + pads[:, None]).clamp(max=max(each.shape[1] - 1, 0))
    # Entries that are not used may be any number.
    table = each.gather(1, behind).clamp(-1, _LARGEST_INT32).to(torch.int32)
    caches = (x.reshape(pages * rows, 1, *x.shape[2:]) for x in (k_cache, v_cache))
    return *caches, table, used - pads
