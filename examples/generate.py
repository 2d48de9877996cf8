#!/usr/bin/env python3
"""Generates tokens for many requests at once with a small transformer on a CPU: requests come and
go between steps, prompts are computed in the same call as single tokens of others, and keys and
values are in pages that requests share. One that finds no page gives its own back, and is
computed again later.

The same by a padded cache and scaled_dot_product_attention, in slots of the longest request.
Tokens are compared with those of a pass over whole sequences, without a cache. Weights are random.

    generate.py --requests=64 --dtype=bf16 --layers=8 --width=512
"""

import argparse
import pathlib
import random
import sys
import time

import torch
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from varlen.kv_cache import KVCache, OutOfPages
from varlen.torch import varlen_attn

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
VOCABULARY = 256


class Transformer:
    """Layers of grouped attention with a rotary embedding, and of two products."""

    def __init__(self, options):
        self.heads, self.kv_heads = options.heads, options.kv_heads
        self.layers, self.head_dim = options.layers, options.width // options.heads
        width, dtype = options.width, DTYPES[options.dtype]
        rows = (self.heads + 2 * self.kv_heads) * self.head_dim

        def weight(out, into):
            return (torch.randn(out, into) / into**0.5).to(dtype)

        self.embedding = torch.randn(VOCABULARY, width).to(dtype)
        self.weights = [
            [weight(rows, width), weight(width, width), weight(4 * width, width), weight(width, 4 * width)]
            for _ in range(self.layers)
        ]
        frequencies = 10000.0 ** -torch.arange(0, 1, 2 / self.head_dim)
        angles = torch.outer(torch.arange(float(options.longest)), frequencies)
        self.cos, self.sin = (x.to(dtype)[:, None] for x in (angles.cos(), angles.sin()))

    def rotate(self, x, positions):
        first, second = x.chunk(2, -1)
        cos, sin = self.cos[positions], self.sin[positions]
        return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)

    def __call__(self, tokens, positions, rows, attend):
        """The most likely token behind each of `rows` of the packed tokens. `attend` takes a
        layer and its q, k and v (rows, heads, head_dim)."""
        x = self.embedding[tokens]
        width = x.shape[1:]
        for layer, (qkv, out, up, down) in enumerate(self.weights):
            heads = (F.rms_norm(x, width) @ qkv.T).unflatten(1, (-1, self.head_dim))
            q, k, v = heads.split([self.heads, self.kv_heads, self.kv_heads], 1)
            q, k = self.rotate(q, positions), self.rotate(k, positions)
            x = x + attend(layer, q, k, v).flatten(1) @ out.T
            x = x + F.gelu(F.rms_norm(x, width) @ up.T) @ down.T
        return (F.rms_norm(x[rows], width) @ self.embedding.T).argmax(1)


class Paged:
    """The cache of varlen.kv_cache."""

    def __init__(self, model, options):
        shape = options.pages, options.page, model.kv_heads, model.head_dim
        dtype = DTYPES[options.dtype]
        k, v = ([torch.zeros(shape, dtype=dtype) for _ in range(model.layers)] for _ in "kv")
        self.cache = KVCache(k, v)

    def length(self, request):
        return self.cache.length(request) if request in self.cache.requests else 0

    def free(self, request):
        self.cache.free(request)

    def begin(self, counts):
        """The positions of new tokens, and a function for `Transformer`."""
        cache, step = self.cache, self.cache.extend(counts)

        def attend(layer, q, k, v):
            cache.append(step, k, v, layer)
            return varlen_attn(
                q, cache.k[layer], cache.v[layer], step.cu_seqlens_q, None, is_causal=True,
                enable_gqa=True, seqused_k=step.seqused_k, block_table=step.block_table,
            )  # fmt: skip

        return step.positions, attend


class Padded:
    """Slots of the longest request, and scaled_dot_product_attention: a call for each prompt, and
    one for the single tokens of all slots, in which the query heads of a kv head are rows."""

    def __init__(self, model, options):
        # As many slots as have the memory of all pages, and one at least.
        self.rows = options.longest
        count = max(options.pages * options.page // self.rows, 1)
        shape = count, model.kv_heads, self.rows, model.head_dim
        dtype = DTYPES[options.dtype]
        self.k, self.v = ([torch.zeros(shape, dtype=dtype) for _ in range(model.layers)] for _ in "kv")
        self.unused, self.slots, self.lengths = list(range(count))[::-1], {}, [0] * count

    def length(self, request):
        return self.lengths[self.slots[request]] if request in self.slots else 0

    def free(self, request):
        slot = self.slots.pop(request)
        self.lengths[slot] = 0
        self.unused.append(slot)

    def begin(self, counts):
        if len(counts.keys() - self.slots.keys()) > len(self.unused):
            raise OutOfPages("no slot is free")
        begins, row = {}, 0
        for request, count in counts.items():
            if request not in self.slots:
                self.slots[request] = self.unused.pop()
            slot = self.slots[request]
            begins[request] = row, self.lengths[slot], slot
            self.lengths[slot] += count
            row += count
        positions = torch.cat(
            [torch.arange(before, before + counts[x]) for x, (_, before, _) in begins.items()]
        )
        singles = [x for x, count in counts.items() if count == 1]
        rows, _, slots = torch.tensor([begins[x] for x in singles]).view(-1, 3).T
        active, longest = max(slots.tolist(), default=-1) + 1, max(self.lengths)
        mask = torch.arange(longest) < torch.tensor(self.lengths[:active])[:, None]

        def attend(layer, q, k, v):
            k_cache, v_cache = self.k[layer], self.v[layer]
            out = torch.empty_like(q)
            heads, kv_heads = q.shape[1], k.shape[1]
            for request, (row, before, slot) in begins.items():
                own = slice(row, row + counts[request])
                for cache, x in ((k_cache, k), (v_cache, v)):
                    cache[slot, :, before : before + counts[request]] = x[own].transpose(0, 1)
                if counts[request] > 1:
                    # Nothing is before a prompt.
                    parts = (x[own].transpose(0, 1)[None] for x in (q, k, v))
                    result = F.scaled_dot_product_attention(*parts, is_causal=True, enable_gqa=True)
                    out[own] = result[0].transpose(0, 1)
            if singles:
                grouped = q.new_zeros(active, kv_heads, heads // kv_heads, q.shape[2])
                grouped[slots] = q[rows].unflatten(1, (kv_heads, -1))
                result = F.scaled_dot_product_attention(
                    grouped, k_cache[:active, :, :longest], v_cache[:active, :, :longest],
                    attn_mask=mask[:, None, None],
                )
                out[rows] = result[slots].flatten(1, 2)
            return out

        return positions, attend


class Request:
    def __init__(self, number, arrival, prompt, wanted):
        self.number, self.arrival, self.wanted = number, arrival, wanted
        self.prompt, self.tokens = prompt, list(prompt)

    @property
    def is_done(self):
        return len(self.tokens) - len(self.prompt) >= self.wanted


def make_requests(options):
    draw, requests = random.Random(options.seed), []
    for number in range(options.requests):
        # Some long prompts, many short ones.
        most = options.longest // 2 if number % 4 == 0 else options.longest // 8
        prompt = [draw.randrange(VOCABULARY) for _ in range(draw.randint(2, max(most, 2)))]
        wanted = draw.randint(1, max(options.longest // 8, 1))
        requests.append(Request(number, draw.randint(0, options.requests), prompt, wanted))
    return sorted(requests, key=lambda request: request.arrival)


class Server:
    """Steps of all requests that have room in a cache."""

    def __init__(self, model, cache):
        self.model, self.cache = model, cache
        self.running, self.waiting = [], []
        self.now = self.tokens = self.preempted = 0

    def begin(self):
        """The new tokens of each request, and what the cache has for them. Those that came first
        stay; the last ones wait where there is no room."""
        while self.running:
            counts = {x.number: len(x.tokens) - self.cache.length(x.number) for x in self.running}
            try:
                return counts, *self.cache.begin(counts)
            except OutOfPages:
                last = self.running.pop()
                self.waiting.insert(0, last)
                if self.cache.length(last.number):
                    self.cache.free(last.number)
                    self.preempted += 1
        raise OutOfPages("expected pages for one request at least")

    def step(self):
        counts, positions, attend = self.begin()
        tokens = [t for x in self.running for t in x.tokens[len(x.tokens) - counts[x.number] :]]
        rows = torch.tensor([counts[x.number] for x in self.running]).cumsum(0) - 1
        found = self.model(torch.tensor(tokens), positions, rows, attend)
        for request, token in zip(self.running, found.tolist()):
            request.tokens.append(token)
            if request.is_done:
                self.cache.free(request.number)
        self.tokens += len(self.running)
        self.running = [x for x in self.running if not x.is_done]

    def run(self, requests, admit):
        """All requests; `admit` new ones are tried in a step at most, so that a step is not long."""
        coming = list(requests)
        while coming or self.waiting or self.running:
            while coming and coming[0].arrival <= self.now:
                self.waiting.append(coming.pop(0))
            new, self.waiting = self.waiting[:admit], self.waiting[admit:]
            self.running += new
            if self.running:
                self.step()
            self.now += 1


@torch.inference_mode()
def compare(model, requests):
    """How many tokens a pass over whole sequences does not choose, of how many."""
    wrong = total = 0
    for request in requests:
        tokens, begin = request.tokens[:-1], len(request.prompt) - 1
        cu = torch.tensor([0, len(tokens)], dtype=torch.int32)

        def attend(layer, q, k, v):
            return varlen_attn(q, k, v, cu, cu, is_causal=True, enable_gqa=True)

        rows = torch.arange(begin, len(tokens))
        found = model(torch.tensor(tokens), torch.arange(len(tokens)), rows, attend)
        wrong += sum(x != y for x, y in zip(found.tolist(), request.tokens[begin + 1 :]))
        total += len(rows)
    return wrong, total


@torch.inference_mode()
def measure(name, kind, model, options):
    requests = make_requests(options)
    server = Server(model, kind(model, options))
    begin = time.perf_counter()
    server.run(requests, options.admit)
    seconds = time.perf_counter() - begin
    print(
        f"{name}: {server.tokens / seconds:.0f} tokens/s, {server.tokens} tokens in {server.now} steps, "
        f"{server.preempted} requests computed again",
        flush=True,
    )
    wrong, total = compare(model, requests)
    print(f"{name}: {wrong} of {total} tokens differ from those of whole sequences", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name, default in (
        ("requests", 32), ("layers", 4), ("width", 256), ("heads", 8), ("kv-heads", 2), ("longest", 1024),
        ("pages", 256), ("page", 64), ("admit", 2), ("seed", 0), ("threads", torch.get_num_threads()),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each way, in turns")
    options = parser.parse_args()
    if options.pages * options.page < options.longest:
        parser.error(f"--pages: expected room for one request of {options.longest} tokens")
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    model = Transformer(options)
    wrong = 0
    for _ in range(options.repeat):
        wrong += measure("varlen, pages", Paged, model, options)
        wrong += measure("SDPA, padded", Padded, model, options)
    # In 16 bits likely tokens are often equally likely.
    return int(wrong > 0 and options.dtype == "f32")


if __name__ == "__main__":
    sys.exit(main())
