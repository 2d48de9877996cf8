# RUN: %python %s
"""A cache in pages against lists of the rows of each request: requests that come and go in any
order, pages that they share, and errors that change nothing. With numpy and, where it is there,
with torch."""

import random

import numpy as np

import varlen
from varlen.kv_cache import KVCache, OutOfPages

try:
    import torch
except ImportError:
    torch = None

PAGES, PAGE, HEADS, DIM, VALUE_DIM, LAYERS = 9, 4, 2, 8, 12, 2


def expect(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), (words, str(error))
    else:
        raise AssertionError(f"expected {kind.__name__}: {words}")


def make_pools(library, dim):
    if library is np:
        return [np.full((PAGES, PAGE, HEADS, dim), np.nan, "f4") for _ in range(LAYERS)]
    return [torch.full((PAGES, PAGE, HEADS, dim), torch.nan) for _ in range(LAYERS)]


def draw(library, numbers, rows, dim):
    x = numbers.standard_normal((rows, HEADS, dim)).astype("f4")
    return x if library is np else torch.from_numpy(x)


def check_random(library):
    """Steps against rows in lists; all of them are attended to in one call a step."""
    choose, numbers = random.Random(0), np.random.default_rng(0)
    cache = KVCache(make_pools(library, DIM), make_pools(library, VALUE_DIM))
    kept, out_of_pages, forks = {}, 0, 0
    for turn in range(300):
        known = list(kept)
        action = choose.random()
        if known and action < 0.1:
            request = choose.choice(known)
            cache.free(request)
            del kept[request]
        elif known and action < 0.2:
            request = choose.choice(known)
            length = choose.randint(0, cache.length(request))
            cache.truncate(request, length)
            kept[request] = [(k[:length], v[:length]) for k, v in kept[request]]
        elif known and action < 0.3:
            request = choose.choice(known)
            cache.fork(request, turn)
            kept[turn] = list(kept[request])
            forks += 1
        else:
            asked = choose.sample(known, min(len(known), 2)) + [turn] * choose.randint(0, 1)
            counts = {request: choose.randint(0, 6) for request in asked}
            before = cache.free_pages
            try:
                step = cache.extend(counts)
            except OutOfPages as error:
                assert "free pages for the new tokens of" in str(error) and cache.free_pages == before
                out_of_pages += 1
                continue
            extend(library, cache, kept, step, counts, numbers)
        for request, layers in kept.items():
            for layer, rows in enumerate(layers):
                assert all(map(same, cache.read(request, layer), rows))
        assert set(kept) == set(cache.requests)
    assert out_of_pages > 5 and forks > 5
    cache.free(list(kept))
    assert cache.free_pages == PAGES and not cache.requests


def same(x, y):
    return np.array_equal(np.asarray(x), np.asarray(y))


def extend(library, cache, kept, step, counts, numbers):
    total = sum(counts.values())
    assert step.requests == tuple(counts) and step.cu_seqlens_q[-1] == total
    for request in counts:
        kept.setdefault(request, [(draw(library, numbers, 0, DIM), draw(library, numbers, 0, VALUE_DIM))] * LAYERS)
    ends = step.cu_seqlens_q.tolist()
    for layer in range(LAYERS):
        k, v = draw(library, numbers, total, DIM), draw(library, numbers, total, VALUE_DIM)
        cache.append(step, k, v, layer)
        for i, request in enumerate(counts):
            rows = slice(ends[i], ends[i + 1])
            layers = kept[request] = list(kept[request])
            layers[layer] = tuple(
                library.concatenate([old, new[rows]]) for old, new in zip(layers[layer], (k, v))
            )
    for i, request in enumerate(counts):
        length = len(kept[request][0][0])
        assert step.seqused_k[i] == length == cache.length(request)
        own = step.positions[ends[i] : ends[i + 1]].tolist()
        assert own == list(range(length - counts[request], length))
    if not counts:
        return
    q = draw(library, numbers, total, DIM)
    out = varlen.attn(
        q, cache.k[1], cache.v[1], step.cu_seqlens_q, is_causal=True,
        block_table=step.block_table, seqused_k=step.seqused_k,
    )  # fmt: skip
    rows = [library.concatenate([kept[x][1][i] for x in counts]) for i in range(2)]
    lengths = [len(kept[x][0][0]) for x in counts]
    cu_k = library.asarray(np.cumsum([0, *lengths]).astype("i4"))
    assert same(out, varlen.attn(q, *rows, step.cu_seqlens_q, cu_k, is_causal=True))


def check_errors(library):
    cache = KVCache(make_pools(library, DIM)[0], make_pools(library, VALUE_DIM)[0])
    numbers = np.random.default_rng(0)
    old = cache.extend({"a": 5})
    step = cache.extend({"b": 6})
    k, v = draw(library, numbers, 6, DIM), draw(library, numbers, 6, VALUE_DIM)
    cache.append(step, k, v)
    for kind, words, call in (
        (ValueError, "step: expected what the last extend has returned", lambda: cache.append(old, k[:5], v[:5])),
        (ValueError, "k: expected an array of", lambda: cache.append(step, k[1:], v[1:])),
        (ValueError, "v: expected an array of", lambda: cache.append(step, k, v[..., 1:])),
        (ValueError, "v: expected an array of", lambda: cache.append(step, k, [1])),
        (OutOfPages, "expected 24 free pages for the new tokens of 1 requests, got 5 of 9", lambda: cache.extend({"a": 99})),
        (ValueError, "counts['a']: expected 0 or more tokens, got -1", lambda: cache.extend({"b": 1, "a": -1})),
        (TypeError, "counts: expected integers, got 1.5", lambda: cache.extend({"a": 1.5})),
        (TypeError, "counts: expected a mapping of requests", lambda: cache.extend(["a"])),
        (ValueError, "expected a request of the cache, got 'c'", lambda: cache.free(["a", "c"])),
        (ValueError, "expected a request of the cache, got 'c'", lambda: cache.read("c")),
        (ValueError, "expected a request that is not known, got 'b'", lambda: cache.fork("a", "b")),
        (ValueError, "length: expected 0 to 5, the keys of the request, got 6", lambda: cache.truncate("a", 6)),
    ):  # fmt: skip
        expect(kind, words, call)
    assert cache.free_pages == 5 and cache.length("a") == 5 and same(cache.read("b")[0], k)
    pools = make_pools(library, DIM)
    for kind, words, k, v in (
        (ValueError, "expected k and v of as many layers, one or more, got 2 and 1", pools, pools[0]),
        (ValueError, "expected k and v of as many layers, one or more, got 0 and 0", [], []),
        (ValueError, "v[0]: expected a pool of shape (pages, rows, heads, head_dim)", pools[0], pools[0][0]),
        (ValueError, "k[0]: expected a pool of shape", pools[0][:, :0], pools[0][:, :0]),
        (ValueError, "v[0]: expected an array of", pools[0], pools[0][:, 1:]),
        (ValueError, "v[0]: expected an array of", pools[0], pools[0][:, :, 1:]),
        (TypeError, "expected pools of numpy or torch, which can be written to", [[1]], [[1]]),
    ):  # fmt: skip
        expect(kind, words, lambda: KVCache(k, v))


def check_apart(library):
    """Many rows into pools that varlen.append does not take, whose numbers are apart."""
    k, v = (draw(library, np.random.default_rng(3), 150, DIM) for _ in "kv")
    wide = [library.zeros((20, 8, HEADS, 2 * DIM), dtype=k.dtype) for _ in "kv"]
    for pools in (wide, [x[..., ::2] for x in wide]):
        cache = KVCache(*(x[..., :DIM] for x in pools))
        cache.append(cache.extend({"a": 150}), k, v)
        assert all(map(same, cache.read("a"), (k, v)))
    # Quantised rows of two types.
    pools = [library.zeros((20, 8, HEADS, DIM), dtype=library.int8) for _ in "kv"]
    scales = [library.zeros((20, 8, HEADS), dtype=library.float32) for _ in "kv"]
    cache = KVCache(*pools, *scales)
    cache.append(cache.extend({"a": 150}), library.asarray(k, dtype=library.float64), v)
    assert all(abs(x - y).max() < 0.03 for x, y in zip(cache.read("a"), (k, v)))


for library in filter(None, (np, torch)):
    check_random(library)
    check_apart(library)
    check_errors(library)
if torch:
    cache = KVCache(*(make_pools(torch, DIM)[0] for _ in "kv"))
    x = torch.ones(1, HEADS, DIM, requires_grad=True)
    step = cache.extend({0: 1})
    expect(ValueError, "k: expected a tensor that needs no gradient", lambda: cache.append(step, x, x))
