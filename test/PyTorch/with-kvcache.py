# RUN: %python %s
# RUN: %if long %{ %python %s --cases=1000 --seed=1 %}
"""flash_attn_with_kvcache against the definition in float64, each sequence on its own: over the
parameters of flash-attn's own test, each value and some of their combinations. The cache is what
it was but for new rows, and after an error it is what it was."""

import argparse
import math
import random

import torch
from device import IS_FAKE, ON_CUDA, of_device, settle
from packed import TOLERANCE, fails

from varlen.torch import flash_attn_with_kvcache

PARAMETERS = {
    "dtype": of_device(*TOLERANCE),
    "seqlen": [(1, 40), (1, 300), (3, 128), (5, 37), (40, 64), (16, 16)],  # of q, of the cache
    "dim": [(16, 16), (32, 24)],
    "heads": [(6, 6), (6, 1), (6, 2)],
    "new": [0, 1, "as q", 9],
    "cache": ["slots", "batch_idx", "leftpad", "batch_idx leftpad", "pages 16", "pages 5", "pages 16 leftpad"],
    "causal": [False, True],
    "window": [(-1, -1), (9, 3), (-1, 2), (7, -1)],
    "rotary": [0, 0.5, 1],
    "interleaved": [False, True],
    "softcap": [0.0, 4.0],
    "slopes": [None, 1, 2],
    "sink": [False, True],
    "lengths": ["tensor", "integer"],
    "splits": [0, 1, 4],
}  # fmt: skip
BATCH, PLACES = 3, 5


def turn(x, cos, sin, positions, interleaved):
    """(rows, heads, head_dim) at positions, as complex numbers, on the CPU."""
    device, size = x.device, cos.shape[1]
    x, cos, sin, positions = (y.cpu() for y in (x, cos, sin, positions))
    first = x[..., 0 : 2 * size : 2] if interleaved else x[..., :size]
    second = x[..., 1 : 2 * size : 2] if interleaved else x[..., size : 2 * size]
    angle = torch.complex(cos.double(), sin.double())[positions][:, None]
    turned = torch.complex(first, second) * angle
    out = x.clone()
    if interleaved:
        out[..., 0 : 2 * size : 2], out[..., 1 : 2 * size : 2] = turned.real, turned.imag
    else:
        out[..., :size], out[..., size : 2 * size] = turned.real, turned.imag
    return out.to(device)


def attend(q, k, v, case, slopes, sink):
    """(out, lse) of one sequence, in float64."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = torch.einsum("ihd,jhd->hij", q, k) / math.sqrt(q.shape[2])
    if case["softcap"]:
        scores = case["softcap"] * torch.tanh(scores / case["softcap"])
    distance = torch.arange(len(k)) - (torch.arange(len(q)) + len(k) - len(q))[:, None]
    if slopes is not None:
        scores = scores - slopes.double()[:, None, None] * distance.abs()
    left, right = case["window"]
    right = 0 if case["causal"] else right
    hidden = torch.zeros_like(distance, dtype=torch.bool)
    hidden |= (distance < -left) & (left >= 0)
    hidden |= (distance > right) & (right >= 0)
    scores = scores.masked_fill(hidden, -math.inf)
    if sink is not None:
        scores = torch.cat([scores, sink.double()[:, None, None].expand(-1, len(q), 1)], 2)
    lse = torch.logsumexp(scores, 2)
    weights = torch.exp(scores - lse.masked_fill(lse == -math.inf, 0)[..., None])[..., : len(k)]
    return torch.einsum("hij,jhd->ihd", weights, v), lse


class Cache:
    """A cache of some layout, NaN where no sequence has a row, and where the rows of each are."""

    def __init__(self, case, draw, before, new):
        (_, capacity), (dim, value_dim), (_, kv_heads) = case["seqlen"], case["dim"], case["heads"]
        words = case["cache"].split()
        self.options, self.before = {}, before
        if "pages" in words:
            page = int(words[1])
            width = -(-(capacity + new) // page)
            shape = BATCH * width + 2, page
            pages = torch.randperm(shape[0])[: BATCH * width]
            table = pages.view(BATCH, width).to(torch.int32)
            self.options["block_table"] = table
            self.rows = [(table[s].long()[:, None] * page + torch.arange(page)).flatten() for s in range(BATCH)]
        else:
            shape = PLACES, capacity + new
            places = torch.arange(BATCH)
            if "batch_idx" in words:
                places = torch.randperm(PLACES)[:BATCH]
                self.options["cache_batch_idx"] = places.to(torch.int32)
            self.rows = [places[s] * shape[1] + torch.arange(shape[1]) for s in range(BATCH)]
        self.pads = [0] * BATCH
        if "leftpad" in words:
            self.pads = [draw.randint(0, length) for length in before]
            self.options["cache_leftpad"] = torch.tensor(self.pads, dtype=torch.int32)
        dtype = case["dtype"]
        self.k = torch.full((*shape, kv_heads, dim), math.nan, dtype=dtype)
        self.v = torch.full((*shape, kv_heads, value_dim), math.nan, dtype=dtype)
        for s, length in enumerate(before):
            for x in (self.k, self.v):
                own = self.rows[s][self.pads[s] : length]
                x.flatten(0, 1)[own] = torch.randn(len(own), *x.shape[2:]).to(dtype)

    def read(self, x, s, end):
        return x.flatten(0, 1)[self.rows[s][self.pads[s] : end]]


def check(case, draw):
    dtype, (rows, capacity), (dim, value_dim) = case["dtype"], case["seqlen"], case["dim"]
    heads, kv_heads = case["heads"]
    new = rows if case["new"] == "as q" else case["new"]
    before = [capacity] * BATCH if case["lengths"] == "integer" else [draw.randint(0, capacity) for _ in range(BATCH)]
    cache = Cache(case, draw, before, new)
    options = dict(cache.options)
    options["cache_seqlens"] = before[0] if case["lengths"] == "integer" else torch.tensor(before, dtype=torch.int32)
    q = torch.randn(BATCH, rows, heads, dim).to(dtype)
    if new:
        options["k"] = torch.randn(BATCH, new, kv_heads, dim).to(dtype)
        options["v"] = torch.randn(BATCH, new, kv_heads, value_dim).to(dtype)
    size = int(case["rotary"] * dim) // 2
    if size and new:
        angle = torch.rand(capacity + max(new, rows), size) * 6
        options |= {"rotary_cos": angle.cos().to(dtype), "rotary_sin": angle.sin().to(dtype)}
        options["rotary_interleaved"] = case["interleaved"]
    slopes = sink = None
    if case["slopes"]:
        slopes = torch.rand(*[BATCH][: case["slopes"] - 1], heads, dtype=torch.float64 if dtype == torch.float64 else torch.float32)
    if case["sink"]:
        sink = torch.randn(heads).to(dtype)
    wanted_k, wanted_v = cache.k.clone(), cache.v.clone()
    out, lse = flash_attn_with_kvcache(
        q, cache.k, cache.v, causal=case["causal"], window_size=case["window"], softcap=case["softcap"],
        alibi_slopes=slopes, s_aux=sink, num_splits=case["splits"], return_softmax_lse=True, **options,
    )  # fmt: skip

    for s, length in enumerate(before):
        own_q, end = q[s].double(), length + new
        if new:
            k = options["k"][s].double()
            if "rotary_cos" in options:
                tables = options["rotary_cos"], options["rotary_sin"]
                k = turn(k, *tables, length + torch.arange(new), case["interleaved"])
                is_local = case["causal"] or case["window"] != (-1, -1)
                places = length + torch.arange(rows) * is_local
                own_q = turn(own_q, *tables, places, case["interleaved"]).to(dtype).double()
            at = cache.rows[s][length:end]
            found = cache.k.flatten(0, 1)[at]
            assert (found.double() - k).abs().max() <= TOLERANCE[dtype] * 4, case
            wanted_k.flatten(0, 1)[at] = found
            wanted_v.flatten(0, 1)[at] = options["v"][s]
        k, v = (cache.read(x, s, end).double() for x in (wanted_k, wanted_v))
        wanted = attend(own_q, k, v, case, slopes[s] if case["slopes"] == 2 else slopes, sink)
        for name, x, y in zip(("out", "lse"), (out[s], lse[s]), wanted):
            infinite = torch.isinf(y)
            assert torch.equal(torch.isinf(x), infinite), (name, case)
            error = (x.double() - y)[~infinite].abs().max().item() if not infinite.all() else 0
            bound = TOLERANCE[dtype] * max(1, y[~infinite].abs().max().item() if not infinite.all() else 0)
            assert error <= bound, (name, error, bound, case)
    assert cache.k.equal(wanted_k) or torch.equal(cache.k.nan_to_num(7), wanted_k.nan_to_num(7)), case
    assert torch.equal(cache.v.nan_to_num(7), wanted_v.nan_to_num(7)), case


def check_errors():
    """After each the cache is what it was."""
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 2, 8), torch.randn(2, 3, 2, 6)
    k_cache, v_cache = torch.randn(4, 10, 2, 8), torch.randn(4, 10, 2, 6)
    kept = k_cache.clone(), v_cache.clone()
    cos = torch.randn(13, 4)
    used = torch.tensor([4, 7], dtype=torch.int32)
    table = torch.tensor([[1, 0], [2, 3]], dtype=torch.int32)

    def refuse(kind, words, **changed):
        given = {"q": q, "k_cache": k_cache, "v_cache": v_cache, "k": k, "v": v, "cache_seqlens": used}
        fails(kind, words, lambda: flash_attn_with_kvcache(**given | changed))
        assert torch.equal(k_cache, kept[0]) and torch.equal(v_cache, kept[1]), words

    for words, changed in (
        ("expected k and v, or neither, got one of them", {"v": None}),
        ("expected cache_seqlens beside k and v", {"cache_seqlens": None}),
        ("cache_seqlens[1] = 8: expected 0 to 7", {"cache_seqlens": used + 1}),
        ("cache_seqlens[0] = -1: expected 0 to 7", {"cache_seqlens": -1}),
        ("cache_seqlens: expected a tensor of torch.int32 or torch.int64 and shape (2,)", {"cache_seqlens": used[:1]}),
        ("k: expected no more rows than the cache has, which is 1 too few", {"k": torch.randn(2, 11, 2, 8), "v": torch.randn(2, 11, 2, 6)}),
        ("k: expected a tensor of torch.float32 and shape (2, 3, 2, 8), got one of torch.float64", {"k": k.double()}),
        ("v: expected a tensor of torch.float32 and shape (2, 3, 2, 6), got", {"v": v[:, :2]}),
        ("k_cache: expected a tensor of torch.float32, as q is", {"k_cache": k_cache.double(), "k": None, "v": None}),
        ("expected k_cache and v_cache of the same rows and heads", {"v_cache": v_cache[:, :9]}),
        ("q: expected a tensor of rank 4 (batch, rows, heads, head_dim)", {"q": q[0]}),
        ("cache_batch_idx[1] = 4: expected 0 to 3, the places of k_cache", {"cache_batch_idx": torch.tensor([0, 4])}),
        ("cache_batch_idx[0] = 4294967296: expected", {"cache_batch_idx": torch.tensor([2**32, 0])}),
        ("expected new rows in places of their own, got several in row 4 of 2 in k_cache", {"cache_batch_idx": torch.tensor([2, 2]), "cache_seqlens": 4}),
        ("q: expected a batch of at most 1, the places of k_cache, got 2", {"k_cache": k_cache[:1], "v_cache": v_cache[:1]}),
        ("expected block_table or cache_batch_idx, got both", {"block_table": table, "cache_batch_idx": used}),
        ("expected block_table or page_table, two names", {"block_table": table, "page_table": table}),
        ("block_table: expected a tensor of torch.int32 and shape (2, pages), got", {"block_table": table.long()}),
        ("block_table[0, 1] = 9: expected 0 to 3, the pages of k_cache", {"block_table": torch.tensor([[1, 9], [2, 3]], dtype=torch.int32), "cache_seqlens": 8}),
        ("cache_leftpad[1] = 11: expected 0 to 10", {"cache_leftpad": torch.tensor([0, 11])}),
        ("cache_leftpad[1] = 7: expected 0 to 6, the rows that the sequence has", {"cache_leftpad": torch.tensor([0, 7]), "cache_seqlens": 3}),
        ("expected rotary_cos and rotary_sin beside k and v", {"rotary_cos": cos}),
        ("expected rotary_cos and rotary_sin beside k and v", {"rotary_cos": cos, "rotary_sin": cos, "k": None, "v": None}),
        ("expected rotary_cos and rotary_sin of a float type", {"rotary_cos": cos, "rotary_sin": cos[:, :2]}),
        ("rotary_cos: expected at least 10 positions", {"rotary_cos": cos[:9], "rotary_sin": cos[:9]}),
        # What only the attention finds, when the rows have been written.
        ("softcap: expected 0 or more", {"softcap": -1.0}),
        ("scale must be greater than 0", {"softmax_scale": 0.0}),
        ("alibi_slopes: expected a tensor of torch.float32", {"alibi_slopes": torch.ones(3)}),
        ("window_size must have length 2", {"window_size": (1, 2, 3)}),
    ):  # fmt: skip
        refuse(ValueError, words, **changed)
    if ON_CUDA:
        refuse(ValueError, "k: expected a tensor on cuda:0, as q is, got one on cpu", k=k.cpu())
        refuse(ValueError, "cache_seqlens: expected a tensor on cuda:0, as q is", cache_seqlens=used.cpu())
    refuse(TypeError, "window_size: expected two integers (left, right), got 5", window_size=5)
    refuse(TypeError, "cache_seqlens: expected integers, got 1.5", cache_seqlens=1.5)
    refuse(TypeError, "cache_leftpad: expected a torch.Tensor, got a list", cache_leftpad=[0, 0])
    words = "expected a tensor that needs no gradient, as there is none of a cache"
    refuse(NotImplementedError, f"q: {words}", q=q.clone().requires_grad_())
    refuse(NotImplementedError, f"k: {words}", k=k.clone().requires_grad_())
    # Without new rows all of the cache counts, unless cache_seqlens says less.
    whole = flash_attn_with_kvcache(q, k_cache, v_cache)
    assert torch.equal(whole, flash_attn_with_kvcache(q, k_cache, v_cache, cache_seqlens=10))


def main():
    parser = argparse.ArgumentParser()
    # Each of them compiles kernels, which the fake driver's machine does twice.
    parser.add_argument("--cases", type=int, default=3 if IS_FAKE else 21)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    torch.manual_seed(arguments.seed)
    # The values of each parameter in turn, in another order each time.
    left = {name: [] for name in PARAMETERS}
    for _ in range(arguments.cases):
        for name, values in PARAMETERS.items():
            left[name] = left[name] or draw.sample(values, len(values))
        check({name: values.pop() for name, values in left.items()}, draw)
    check_errors()
    settle()
    print(f"{arguments.cases} cases")


if __name__ == "__main__":
    main()
