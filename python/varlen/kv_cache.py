"""Keys and values of many requests, in pages that they share: which pages a request has, and what
attention needs to know of them.

    cache = varlen.kv_cache.KVCache(k, v)  # pools of pages, of numpy or torch
    step = cache.extend({"first": 5, "second": 1})  # places for 5 tokens and 1
    cache.append(step, new_k, new_v)  # of the 6 tokens
    out = varlen.attn(
        q, cache.k[0], cache.v[0], step.cu_seqlens_q, is_causal=True,
        block_table=step.block_table, seqused_k=step.seqused_k,
    )
    cache.free("first")
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ._arrays import Array, find_library
from ._options import as_integer, show

__all__ = ["KVCache", "OutOfPages", "Step", "quantise"]

# An entry of a table that no request uses.
_NO_PAGE = -1
# Fewer rows of floats assignments copy faster.
_MANY_ROWS = 64
_APPENDED = {"float16", "bfloat16", "float32", "float64"}


# The largest number of a type that quantised rows are of, by its name.
_LARGEST = {"int8": 127.0, "float8_e4m3fn": 448.0}


def quantise(rows: Array, dtype: Any) -> tuple[Array, Array]:
    """Rows (..., D) of floats in fewer bits: numbers of `dtype`, int8 or float8_e4m3fn, and a
    float32 for each row, (...), which they are multiplied by. The largest element of a row
    becomes the largest number of the type; a row of zeros has 1. A row that is not finite
    has a scale that is not."""
    library = _library_of(rows)
    is_torch = library.__name__ == "torch"
    if not is_torch:
        dtype = library.dtype(dtype)
    largest = _LARGEST.get(_name_dtype(dtype))
    if largest is None:
        raise TypeError(f"dtype: expected int8 or float8_e4m3fn, got {dtype}")
    wide = _widen(rows)
    top = wide.abs().amax(-1) if is_torch else abs(wide).max(axis=-1)
    scale = library.where(top == 0, library.ones_like(top), top / largest)
    if is_torch:
        numbers = (wide / scale[..., None]).nan_to_num()
        numbers = numbers.round() if dtype is library.int8 else numbers
        return numbers.clamp(-largest, largest).to(dtype), scale
    with library.errstate(invalid="ignore"):
        numbers = library.nan_to_num(wide / scale[..., None])
    numbers = library.rint(numbers) if dtype == library.int8 else numbers
    return numbers.clip(-largest, largest).astype(dtype), scale


class OutOfPages(RuntimeError):
    """There are fewer free pages than new tokens need. Nothing has changed."""


class Step(NamedTuple):
    """The new tokens of some requests, packed in their order, and all keys that these have."""

    requests: tuple[Hashable, ...]
    cu_seqlens_q: Any  # (N + 1), int32: of the new tokens
    seqused_k: Any  # (N), int32: the keys of each request, the new ones with them
    block_table: Any  # (N, pages), int32
    positions: Any  # (T), int64: of the new tokens in their requests
    pages: Any  # (T), int64: where their keys and values are, by page and row
    rows: Any  # (T), int64
    version: int


class KVCache:
    """Pages for the keys and values of requests.

    Args:
        k, v: Pools of pages, (P, page, Hkv, D) and (P, page, Hkv, Dv), of numpy or torch: one of
            each, or as many as there are layers. What they hold does not matter. A page has the
            same number in all layers.
        k_scale, v_scale: Pools of the scales of rows, (P, page, Hkv), float32, as many as k and
            v: these are of int8 or float8_e4m3fn then, and `append` quantises.

    Attributes:
        k, v, k_scale, v_scale: The pools, by layer; no scales of pools that are not quantised.
        free_pages: How many pages no request has.
    """

    def __init__(
        self,
        k: Array | Sequence[Array],
        v: Array | Sequence[Array],
        k_scale: Array | Sequence[Array] | None = None,
        v_scale: Array | Sequence[Array] | None = None,
    ):
        self.k: tuple[Array, ...] = _as_layers(k)
        self.v: tuple[Array, ...] = _as_layers(v)
        _check_pools(self.k, self.v)
        self.k_scale: tuple[Array, ...] = () if k_scale is None else _as_layers(k_scale)
        self.v_scale: tuple[Array, ...] = () if v_scale is None else _as_layers(v_scale)
        _check_scales("k_scale", self.k_scale, self.k)
        _check_scales("v_scale", self.v_scale, self.v)
        self._library = _library_of(self.k[0])
        count, self._page = self.k[0].shape[:2]
        # The next one that is taken is the last.
        self._free: list[int] = list(range(count))[::-1]
        self._owners = [0] * count
        self._pages: dict[Hashable, list[int]] = {}
        self._lengths: dict[Hashable, int] = {}
        self._version = 0

    @property
    def free_pages(self) -> int:
        return len(self._free)

    @property
    def requests(self) -> tuple[Hashable, ...]:
        """Those that have pages, or have been extended by nothing."""
        return tuple(self._lengths)

    def length(self, request: Hashable) -> int:
        """The number of keys of a request."""
        self._check_known(request)
        return self._lengths[request]

    def extend(self, counts: Mapping[Hashable, int]) -> Step:
        """Takes pages for so many new tokens of each request: all of them, or none. A request that
        is not known is a new one. A page that requests share is copied before one writes to it.

        Raises:
            OutOfPages: there are not enough pages.
            ValueError, TypeError: a count is negative, or no integer.
        """
        if not isinstance(counts, Mapping):
            raise TypeError(f"counts: expected a mapping of requests to integers, got {show(counts)}")
        counts = {request: as_integer("counts", count) for request, count in counts.items()}
        for request, count in counts.items():
            if count < 0:
                raise ValueError(f"counts[{request!r}]: expected 0 or more tokens, got {count}")
        self._check_room(counts)
        for request, count in counts.items():
            pages = self._pages.setdefault(request, [])
            begin = self._lengths.get(request, 0)
            if self._writes_shared(request, count):
                pages[-1] = self._copy_page(pages[-1])
            self._lengths[request] = begin + count
            while len(pages) * self._page < begin + count:
                pages.append(self._take())
        self._version += 1
        return self._make_step(counts)

    def append(self, step: Step, k: Array, v: Array, layer: int = 0) -> None:
        """Writes keys (T, Hkv, D) and values (T, Hkv, Dv) of the new tokens of the last step, of
        the type of the pools, or of any float type for pools with scales.

        Raises:
            ValueError: shapes or types are not those of the pools, or the cache has changed since
                the step.
        """
        if step.version != self._version:
            raise ValueError("step: expected what the last extend has returned, got an older one")
        pools = self.k[layer], self.v[layer]
        for name, x, pool in zip("kv", (k, v), pools):
            wanted = (len(step.pages), *pool.shape[2:])
            is_same = _is_float(x) if self.k_scale else getattr(x, "dtype", None) == pool.dtype
            if type(x) is not type(pool) or not is_same or tuple(x.shape) != wanted:
                expected = _describe(pool, wanted, "of floats" if self.k_scale else None)
                raise ValueError(f"{name}: expected {expected}, got {_describe(x)}")
            if getattr(x, "requires_grad", False) and self._library.is_grad_enabled():
                raise ValueError(f"{name}: expected a tensor that needs no gradient; use torch.no_grad()")
        scales = (self.k_scale[layer], self.v_scale[layer]) if self.k_scale else ()
        is_much = scales or len(step.pages) >= _MANY_ROWS
        are_in_rows = all(map(_is_in_rows, (*pools, *scales, k, v)))
        if is_much and are_in_rows and _is_appendable(k, v, scales):
            return self._append_whole(step, pools, scales, k, v)
        for number, (x, pool) in enumerate(zip((k, v), pools)):
            if scales:
                x, scale = quantise(x, pool.dtype)
                scales[number][step.pages, step.rows] = scale
            pool[step.pages, step.rows] = x

    def _append_whole(self, step, pools, scales, k, v):
        """The same by varlen.append, in one pass over the rows."""
        if self._library.__name__ == "torch":
            from .torch import append
        else:
            from ._append import append
        before = step.seqused_k - (step.cu_seqlens_q[1:] - step.cu_seqlens_q[:-1])
        options = dict(zip(("k_scale", "v_scale"), scales))
        append(*pools, k, v, step.cu_seqlens_q, before, block_table=step.block_table, **options)

    def read(self, request: Hashable, layer: int = 0) -> tuple[Array, Array]:
        """Copies of the keys (length, Hkv, D) and values (length, Hkv, Dv) of a request; of
        quantised ones what they stand for, in float32."""
        self._check_known(request)
        pages, length = self._integers(self._pages[request], "int64"), self._lengths[request]

        def gather(pool):
            return pool[pages].reshape(-1, *pool.shape[2:])[:length]

        rows = [gather(pool) for pool in (self.k[layer], self.v[layer])]
        if not self.k_scale:
            return tuple(rows)
        scales = self.k_scale[layer], self.v_scale[layer]
        return tuple(_widen(x) * gather(scale)[..., None] for x, scale in zip(rows, scales))

    def fork(self, request: Hashable, new: Hashable) -> None:
        """Has a new request begin with the keys of another one, whose pages it shares."""
        self._check_known(request)
        if new in self._lengths:
            raise ValueError(f"expected a request that is not known, got {new!r}")
        self._pages[new] = list(self._pages[request])
        self._lengths[new] = self._lengths[request]
        for page in self._pages[new]:
            self._owners[page] += 1

    def truncate(self, request: Hashable, length: int) -> None:
        """Drops the keys of a request from `length` on, as of drafts that were not taken."""
        known, length = self.length(request), as_integer("length", length)
        if not 0 <= length <= known:
            raise ValueError(f"length: expected 0 to {known}, the keys of the request, got {length}")
        self._lengths[request] = length
        pages = self._pages[request]
        while len(pages) > -(-length // self._page):
            self._give_back(pages.pop())
        self._version += 1

    def free(self, requests: Hashable | Iterable[Hashable]) -> None:
        """Gives the pages of a request back, or of a list of requests."""
        requests = requests if isinstance(requests, list) else [requests]
        for request in requests:
            self._check_known(request)
        for request in dict.fromkeys(requests):
            del self._lengths[request]
            for page in reversed(self._pages.pop(request)):
                self._give_back(page)
        self._version += 1

    def _check_known(self, request):
        if request not in self._lengths:
            raise ValueError(f"expected a request of the cache, got {request!r}")

    def _writes_shared(self, request, count):
        """Whether new tokens come into a page that another request has, too."""
        pages, length = self._pages.get(request), self._lengths.get(request, 0)
        return bool(count and length % self._page and self._owners[pages[-1]] > 1)

    def _check_room(self, counts):
        wanted, shared = 0, {}
        for request, count in counts.items():
            pages = self._pages.get(request, [])
            wanted += max(-(-(self._lengths.get(request, 0) + count) // self._page) - len(pages), 0)
            if self._writes_shared(request, count):
                shared[pages[-1]] = shared.get(pages[-1], 0) + 1
        # The last of its owners writes to a page as it is.
        wanted += sum(min(count, self._owners[page] - 1) for page, count in shared.items())
        if wanted > len(self._free):
            raise OutOfPages(
                f"expected {wanted} free pages for the new tokens of {len(counts)} requests, got "
                f"{len(self._free)} of {len(self._owners)}"
            )

    def _take(self):
        page = self._free.pop()
        self._owners[page] = 1
        return page

    def _give_back(self, page):
        self._owners[page] -= 1
        if not self._owners[page]:
            self._free.append(page)

    def _copy_page(self, page):
        copy = self._take()
        for pool in (*self.k, *self.v, *self.k_scale, *self.v_scale):
            pool[copy] = pool[page]
        self._give_back(page)
        return copy

    def _make_step(self, counts):
        lengths = [self._lengths[request] for request in counts]
        tables = [self._pages[request] for request in counts]
        width = max(map(len, tables), default=0)
        padded = [pages + [_NO_PAGE] * (width - len(pages)) for pages in tables]
        ends, positions, pages = [0], [], []
        for length, count, table in zip(lengths, counts.values(), tables):
            ends.append(ends[-1] + count)
            own = range(length - count, length)
            positions += own
            pages += [table[position // self._page] for position in own]
        rows = [position % self._page for position in positions]
        return Step(
            tuple(counts), self._integers(ends, "int32"), self._integers(lengths, "int32"),
            self._integers(padded, "int32").reshape(len(tables), width),
            *(self._integers(x, "int64") for x in (positions, pages, rows)), self._version,
        )  # fmt: skip

    def _integers(self, numbers, dtype):
        dtype = getattr(self._library, dtype)
        if self._library.__name__ == "torch":
            return self._library.tensor(numbers, dtype=dtype, device=self.k[0].device)
        return self._library.array(numbers, dtype)


def _as_layers(pools):
    return tuple(pools) if isinstance(pools, (list, tuple)) else (pools,)


def _library_of(array):
    """numpy or torch, whose arrays can be written to."""
    name = find_library(array)
    if name == "numpy":
        import numpy

        return numpy
    if name == "torch":
        import torch

        return torch
    raise TypeError(
        f"expected pools of numpy or torch, which can be written to, got {show(type(array))}"
    )


def _widen(array):
    """An array of numpy or torch in float32."""
    return array.float() if find_library(array) == "torch" else array.astype("float32")


def _is_appendable(k, v, scales):
    """Whether varlen.append takes rows of these types, quantised if there are scales."""
    names = {_name_dtype(k.dtype), _name_dtype(v.dtype)}
    return len(names) == 1 and names <= _APPENDED - ({"float64"} if scales else set())


def _is_in_rows(array):
    """Whether numbers of a row are beside each other, as varlen.append wants them."""
    if find_library(array) == "torch":
        return array.stride(-1) == 1 and not array.is_neg()
    return array.strides[-1] == array.itemsize


def _name_dtype(dtype):
    """numpy's name of a type of numpy or torch."""
    return getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")


def _is_float(array):
    name = _name_dtype(getattr(array, "dtype", ""))
    return name.startswith(("float", "bfloat")) and name not in _LARGEST


def _check_scales(name, scales, pools):
    """That there is a scale of each row, or none, and pools that have some."""
    is_quantised = _name_dtype(pools[0].dtype) in _LARGEST
    if not scales and not is_quantised:
        return
    if len(scales) != len(pools) or not is_quantised:
        raise ValueError(
            f"{name}: expected one for each layer of pools of int8 or float8_e4m3fn, and none of "
            f"others, got {len(scales)} for {len(pools)} of {_name_dtype(pools[0].dtype)}"
        )
    for layer, (scale, pool) in enumerate(zip(scales, pools)):
        wanted = tuple(pool.shape[:3])
        is_float = _name_dtype(getattr(scale, "dtype", "")) == "float32"
        if type(scale) is not type(pool) or tuple(scale.shape) != wanted or not is_float:
            expected = _describe(pool, wanted, "float32")
            raise ValueError(f"{name}[{layer}]: expected {expected}, got {_describe(scale)}")


def _describe(array, shape=None, dtype=None):
    library = find_library(array)
    dtype = dtype or _name_dtype(getattr(array, "dtype", "no dtype"))
    shape = tuple(getattr(array, "shape", ())) if shape is None else shape
    return f"an array of {library}, {dtype} and shape {shape}"


def _check_pools(k, v):
    if not k or len(k) != len(v):
        raise ValueError(f"expected k and v of as many layers, one or more, got {len(k)} and {len(v)}")
    for name, pools in (("k", k), ("v", v)):
        for layer, pool in enumerate(pools):
            _library_of(pool)
            if len(pool.shape) != 4 or pool.shape[1] < 1:
                raise ValueError(
                    f"{name}[{layer}]: expected a pool of shape (pages, rows, heads, head_dim), with "
                    f"rows in a page, got shape {tuple(pool.shape)}"
                )
            same = k[0].shape[:2], type(k[0]), k[0].dtype
            if (pool.shape[:2], type(pool), pool.dtype) != same or pool.shape[2] != k[layer].shape[2]:
                wanted = (*k[0].shape[:2], k[layer].shape[2], pool.shape[3])
                raise ValueError(
                    f"{name}[{layer}]: expected {_describe(k[0], wanted)}, got {_describe(pool)}"
                )
