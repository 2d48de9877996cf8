#!/usr/bin/env python3
"""Trains a small GPT on packed documents with PyTorch on the CPU, once with each way to
compute attention: varlen.torch, scaled_dot_product_attention of each document, and of
the documents padded to the longest one. What differs is one function; parameters and
batches are the same. Prints the losses, the time of a step and of a forward pass, and
attention's part of both.

FlexAttention has no gradients on a CPU: --flex adds it to the forward passes.
"""

import functools
import json
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from documents import NO_TARGET, VOCABULARY, gpt_parser, layer_windows, make_batches
from training_record import describe, note, summarize
from varlen.torch import varlen_attn

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}

# A way takes the cu_seqlens of a batch, does what depends on these alone, and returns the
# function that layers call with q, k and v (rows, heads, head_dim) and the number of keys
# before its own that a query sees, -1 for all.


def packed(cu_seqlens):
    def attend(q, k, v, window):
        return varlen_attn(q, k, v, cu_seqlens, cu_seqlens, window_size=(window, 0))

    return attend


def window_mask(length, window):
    return torch.ones(length, length, dtype=torch.bool).tril().triu(-window)


def causal(q, k, v, window, masks):
    """scaled_dot_product_attention of (batch, heads, rows, head_dim). It knows no windows:
    one that hides something is a mask, made by `masks`."""
    length = q.shape[2]
    if window < 0 or window >= length - 1:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=masks(length, window))


def each_document(cu_seqlens):
    lengths = [length for length in cu_seqlens.diff().tolist() if length]
    masks = functools.cache(window_mask)

    def attend(q, k, v, window):
        parts = zip(*(x.transpose(0, 1)[None].split(lengths, 2) for x in (q, k, v)))
        out = torch.cat([causal(*part, window, masks) for part in parts], 2)
        return out[0].transpose(0, 1)

    return attend


def padded(cu_seqlens):
    lengths = cu_seqlens.diff()
    lengths = lengths[lengths > 0]
    filled = torch.arange(int(lengths.max())) < lengths[:, None]
    masks = functools.cache(window_mask)

    def attend(q, k, v, window):
        rows = []
        for x in (q, k, v):
            row = x.new_zeros(*filled.shape, *x.shape[1:])
            row[filled] = x
            rows.append(row.transpose(1, 2))
        # No query of a document sees the padding after it.
        return causal(*rows, window, masks).transpose(1, 2)[filled]

    return attend


def flex(cu_seqlens):
    flex_attention, create_block_mask = compiled_flex()
    rows = int(cu_seqlens[-1])
    documents = torch.repeat_interleave(cu_seqlens.diff())

    @functools.cache
    def block_mask(window):
        # A tensor, so that another window does not compile again.
        limit = torch.tensor(rows if window < 0 else window)

        def visible(batch, head, query, key):
            near = (query >= key) & (query - key <= limit)
            return near & (documents[query] == documents[key])

        return create_block_mask(visible, None, None, rows, rows, device="cpu")

    def attend(q, k, v, window):
        heads = (x.transpose(0, 1)[None] for x in (q, k, v))
        return flex_attention(*heads, block_mask=block_mask(window))[0].transpose(0, 1)

    return attend


@functools.cache
def compiled_flex():
    from torch.nn.attention import flex_attention as module

    return torch.compile(module.flex_attention), torch.compile(module.create_block_mask)


def no_attention(cu_seqlens):
    return lambda q, k, v, window: v


WAYS = {"varlen": packed, "each document": each_document, "padded": padded}


class Block(nn.Module):
    def __init__(self, width, head_dim, window):
        super().__init__()
        self.head_dim, self.window = head_dim, window
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x, rotation, attend):
        rows = self.qkv(self.norms[0](x)).unflatten(1, (-1, self.head_dim))
        q, k, v = rows.chunk(3, 1)
        out = attend(rotate(q, rotation), rotate(k, rotation), v, self.window)
        x = x + self.out(out.flatten(1))
        return x + self.down(F.relu(self.up(self.norms[1](x))).square())


def rotate(x, rotation):
    """Rotary positions."""
    cos, sin = (part.to(x.dtype) for part in rotation)
    a, b = x.chunk(2, 2)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], 2)


class GPT(nn.Module):
    """Windows are those of the layers."""

    def __init__(self, width, head_dim, windows):
        super().__init__()
        self.head_dim = head_dim
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width, head_dim, window) for window in windows)
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens, positions, attend):
        half = self.head_dim // 2
        angles = positions[:, None] * 10000 ** (-torch.arange(half) / half)
        rotation = angles.cos()[:, None], angles.sin()[:, None]
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, rotation, attend)
        return self.head(self.norm(x))


def compute_loss(model, batch, way, dtype):
    with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
        logits = model(batch["tokens"], batch["positions"], way(batch["cu_seqlens"]))
    return F.cross_entropy(logits.float(), batch["targets"].long(), ignore_index=NO_TARGET)


class Learner:
    """A model that learns with one way to compute attention."""

    def __init__(self, way, options):
        torch.manual_seed(options.seed)
        windows = layer_windows(options.windows, options.layers, options.context)
        self.model = GPT(options.width, options.head_dim, windows)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.way, self.dtype = way, DTYPES[options.dtype]

    def step(self, batch):
        """The loss, and the seconds that the step took."""
        begin = time.perf_counter()
        loss = compute_loss(self.model, batch, self.way, self.dtype)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item(), time.perf_counter() - begin

    @torch.no_grad()
    def evaluate(self, batch, way):
        """The loss with any way, and the seconds that it took."""
        begin = time.perf_counter()
        loss = compute_loss(self.model, batch, way, self.dtype).item()
        return loss, time.perf_counter() - begin


def measure(options):
    """Losses and seconds of all steps, and of forward passes of the model that was trained
    with varlen.torch, by way. The ways take turns with each batch: a machine that changes
    its speed changes it for all. "rest" is the model without attention."""
    learners = {name: Learner(way, options) for name, way in WAYS.items()}
    learners["rest"] = Learner(no_attention, options)
    forward_ways = {**WAYS, **({"flex": flex} if options.flex else {}), "rest": no_attention}
    record = {"step": {}, "forward": {}}

    for batch in make_batches(options.steps, options.tokens, options.seed):
        batch = {key: torch.from_numpy(rows) for key, rows in batch.items()}
        for name, learner in learners.items():
            note(record["step"], name, *learner.step(batch))
        for name, way in forward_ways.items():
            note(record["forward"], name, *learners["varlen"].evaluate(batch, way))
    for entries in record.values():
        summarize(entries)
    return record


def report(record):
    """Prints what there is to know of a record."""
    for kind, entries in record.items():
        for name, entry in entries.items():
            if name != "rest":
                print(describe(kind, name, entry))
        reference = entries["each document"]["losses"]
        difference = max(
            abs(a - b) / b
            for name, entry in entries.items() if name != "rest"
            for a, b in zip(entry["losses"], reference)
        )  # fmt: skip
        print(f"{kind}: largest relative difference of a loss to each document's: {difference:.1e}")


def main():
    parser = gpt_parser(__doc__, DTYPES)
    parser.add_argument("--flex", action="store_true", help="also time FlexAttention's forward; needs a C++ compiler")
    parser.add_argument("--out", type=pathlib.Path, help="a folder for record.json and pictures")
    options = parser.parse_args()
    record = measure(options)
    report(record)
    if options.out:
        import training_picture

        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / "record.json"
        settings = {key: str(value) for key, value in vars(options).items() if key != "out"}
        settings |= {"torch": torch.__version__, "threads": torch.get_num_threads()}
        path.write_text(json.dumps({"settings": settings, **record}))
        training_picture.draw([path], options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
