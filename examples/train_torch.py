#!/usr/bin/env python3
"""Trains a small GPT on packed documents with PyTorch on the CPU, once with each way to
compute attention: varlen.torch, scaled_dot_product_attention of each document, and of
the documents padded to the longest one. What differs is one function; parameters and
batches are the same. Prints the losses and the time that a step takes.

The documents are sections of this repository's pages, as bytes.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from varlen.torch import varlen_attn


def packed(q, k, v, cu_seqlens):
    return varlen_attn(q, k, v, cu_seqlens, cu_seqlens, is_causal=True)


def each_document(q, k, v, cu_seqlens):
    ends = cu_seqlens.tolist()
    parts = [
        F.scaled_dot_product_attention(
            *(x[begin:end].transpose(0, 1)[None] for x in (q, k, v)), is_causal=True
        )[0]
        for begin, end in zip(ends, ends[1:])
    ]
    return torch.cat(parts, 1).transpose(0, 1)


def padded(q, k, v, cu_seqlens):
    lengths = cu_seqlens.diff()
    filled = torch.arange(lengths.max()) < lengths[:, None]
    rows = []
    for x in (q, k, v):
        row = x.new_zeros(*filled.shape, *x.shape[1:])
        row[filled] = x
        rows.append(row.transpose(1, 2))
    # No query of a document sees the padding after it.
    out = F.scaled_dot_product_attention(*rows, is_causal=True)
    return out.transpose(1, 2)[filled]


WAYS = {"varlen": packed, "each document": each_document, "padded": padded}


class Block(nn.Module):
    def __init__(self, width, head_dim, attend):
        super().__init__()
        self.head_dim, self.attend = head_dim, attend
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x, rotation, cu_seqlens):
        rows = self.qkv(self.norms[0](x)).unflatten(1, (-1, self.head_dim))
        q, k, v = rows.chunk(3, 1)
        out = self.attend(rotate(q, rotation), rotate(k, rotation), v, cu_seqlens)
        x = x + self.out(out.flatten(1))
        return x + self.down(F.relu(self.up(self.norms[1](x))).square())


def rotate(x, rotation):
    """Rotary positions."""
    cos, sin = (part.to(x.dtype) for part in rotation)
    a, b = x.chunk(2, 2)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], 2)


class GPT(nn.Module):
    def __init__(self, width, head_dim, layers, attend):
        super().__init__()
        self.head_dim = head_dim
        self.embedding = nn.Embedding(256, width)
        self.blocks = nn.ModuleList(Block(width, head_dim, attend) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, 256, bias=False)

    def forward(self, tokens, positions, cu_seqlens):
        half = self.head_dim // 2
        angles = positions[:, None] * 10000 ** (-torch.arange(half) / half)
        rotation = angles.cos()[:, None], angles.sin()[:, None]
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, rotation, cu_seqlens)
        return self.head(self.norm(x))


def read_documents():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [
        part for page in pages for part in page.read_bytes().split(b"\n## ") if len(part) > 1
    ]


def make_batches(steps, tokens, generator):
    """Packed documents in random order; the last of a batch is cut. The successor of
    each byte is its target, -100 (none) for the last of a document."""
    documents = read_documents()
    for _ in range(steps):
        parts, rows = [], 0
        for i in torch.randperm(len(documents), generator=generator).repeat(100):
            parts.append(torch.tensor(list(documents[i][: tokens - rows])))
            rows += len(parts[-1])
            if rows == tokens:
                break
        targets = [torch.cat([part[1:], torch.tensor([-100])]) for part in parts]
        cu_seqlens = torch.tensor([0, *map(len, parts)]).cumsum(0).int()
        positions = torch.cat([torch.arange(len(part)) for part in parts])
        yield torch.cat(parts), positions, cu_seqlens, torch.cat(targets)


def train(attend, options):
    """The loss of each step, and the seconds that it took."""
    torch.manual_seed(options.seed)
    model = GPT(options.width, options.head_dim, options.layers, attend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[options.dtype]
    losses, seconds = [], []
    generator = torch.Generator().manual_seed(options.seed)
    for *batch, targets in make_batches(options.steps, options.tokens, generator):
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            loss = F.cross_entropy(model(*batch).float(), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    return losses, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in {
        "steps": 20, "tokens": 4096, "width": 256, "head-dim": 64, "layers": 4, "seed": 0
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--out", type=pathlib.Path, help="a file for losses and times, JSON")
    options = parser.parse_args()
    record = {}
    for name, attend in WAYS.items():
        losses, seconds = train(attend, options)
        record[name] = {"losses": losses, "seconds": seconds}
        # The first steps also compile and allocate.
        step = statistics.median(seconds[2:] or seconds)
        print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f}, {step * 1e3:.0f} ms a step")
    ours, theirs = (record[name]["losses"] for name in ("varlen", "each document"))
    difference = max(abs(a - b) / b for a, b in zip(ours, theirs))
    print(f"largest relative difference of a loss to each document's: {difference:.1e}")
    if options.out:
        options.out.write_text(json.dumps(record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
