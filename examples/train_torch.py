#!/usr/bin/env python3
"""Trains a GPT on packed documents with PyTorch, once with each way to compute attention. What
differs is one function; parameters and batches are the same. Prints the losses, the time of a
step and of a forward pass, attention's part of both, and on a GPU a step's memory.

    train_torch.py --dtype=bf16 --windows=SSSL --flex            # small, on a CPU
    train_torch.py --device=cuda --dtype=bf16 --windows=SSSL --layers=12 --width=768 \\
        --head-dim=128 --tokens=32768 --corpus=python --longest=2048 --steps=200 --rate=3e-4

FlexAttention has no gradients on a CPU: --flex adds it to the forward passes there. A way that
fails, as it needs more memory than there is, is a row that says so.
"""

import functools
import pathlib
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from documents import NO_TARGET, VOCABULARY, batches_of, gpt_parser, layer_windows, options_of
from training_record import Record
from varlen.torch import varlen_attn

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}

# A way takes the cu_seqlens of a batch, on the device, and the lengths of its documents, which
# the host knows. It does what depends on these alone, and returns the function that layers call
# with q, k and v (rows, heads, head_dim) and the number of keys before its own that a query
# sees, -1 for all.


def packed(cu_seqlens, lengths):
    def attend(q, k, v, window):
        return varlen_attn(q, k, v, cu_seqlens, cu_seqlens, window_size=(window, 0))

    return attend


def flash(cu_seqlens, lengths):
    """PyTorch's own function of that name, by FlashAttention 2; it has no kernels for a CPU."""
    from torch.nn import attention
    from torch.nn.attention import varlen

    longest = max(lengths)

    def attend(q, k, v, window):
        with attention.sdpa_kernel(attention.SDPBackend.FLASH_ATTENTION):
            return varlen.varlen_attn(
                q, k, v, cu_seqlens, cu_seqlens, longest, longest, window_size=(window, 0)
            )

    return attend


def window_mask(length, window, device):
    return torch.ones(length, length, dtype=torch.bool, device=device).tril().triu(-window)


def causal(q, k, v, window, masks):
    """scaled_dot_product_attention of (batch, heads, rows, head_dim). It knows no windows:
    one that hides something is a mask, made by `masks`."""
    length = q.shape[2]
    if window < 0 or window >= length - 1:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=masks(length, window, q.device))


def each_document(cu_seqlens, lengths):
    masks = functools.cache(window_mask)

    def attend(q, k, v, window):
        parts = zip(*(x.transpose(0, 1)[None].split(lengths, 2) for x in (q, k, v)))
        out = torch.cat([causal(*part, window, masks) for part in parts], 2)
        return out[0].transpose(0, 1)

    return attend


def padded(cu_seqlens, lengths):
    device = cu_seqlens.device
    filled = torch.arange(max(lengths), device=device) < torch.tensor(lengths, device=device)[:, None]
    # Rows and columns of what is filled, so that the host need not count them again.
    places = filled.nonzero(as_tuple=True)
    masks = functools.cache(window_mask)

    def attend(q, k, v, window):
        rows = []
        for x in (q, k, v):
            row = x.new_zeros(*filled.shape, *x.shape[1:])
            row[places] = x
            rows.append(row.transpose(1, 2))
        # No query of a document sees the padding after it.
        return causal(*rows, window, masks).transpose(1, 2)[places]

    return attend


def flex(cu_seqlens, lengths):
    flex_attention, create_block_mask = compiled_flex()
    device, rows = cu_seqlens.device, sum(lengths)
    documents = torch.repeat_interleave(cu_seqlens.diff(), output_size=rows)

    @functools.cache
    def block_mask(window):
        # A tensor, so that another window does not compile again.
        limit = torch.tensor(rows if window < 0 else window, device=device)

        def visible(batch, head, query, key):
            near = (query >= key) & (query - key <= limit)
            return near & (documents[query] == documents[key])

        return create_block_mask(visible, None, None, rows, rows, device=device)

    def attend(q, k, v, window):
        heads = (x.transpose(0, 1)[None] for x in (q, k, v))
        return flex_attention(*heads, block_mask=block_mask(window))[0].transpose(0, 1)

    return attend


@functools.cache
def compiled_flex():
    from torch.nn.attention import flex_attention as module

    return torch.compile(module.flex_attention), torch.compile(module.create_block_mask)


def no_attention(cu_seqlens, lengths):
    return lambda q, k, v, window: v


WAYS = {
    "varlen": packed, "flash": flash, "flex": flex, "each document": each_document,
    "padded": padded, "rest": no_attention,
}  # fmt: skip
# "rest", the model without attention, is always one.
DEFAULT_WAYS = {
    "cpu": ["varlen", "each document", "padded"], "cuda": ["varlen", "flash", "flex", "padded"]
}
# What losses are compared with: the first that there is.
REFERENCES = ("each document", "padded", "flex", "flash")


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
        angles = positions[:, None] * 10000 ** (-torch.arange(half, device=positions.device) / half)
        rotation = angles.cos()[:, None], angles.sin()[:, None]
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, rotation, attend)
        return self.head(self.norm(x))


def compute_loss(model, batch, way, dtype):
    attend = way(batch["cu_seqlens"], batch["lengths"])
    with torch.autocast(batch["tokens"].device.type, dtype, enabled=dtype != torch.float32):
        logits = model(batch["tokens"], batch["positions"], attend)
    return F.cross_entropy(logits.float(), batch["targets"].long(), ignore_index=NO_TARGET)


def timed(device, compute):
    """The loss that `compute` returns, the seconds that it took, and on a GPU the bytes that it
    had at most, those before it apart."""
    is_cuda = device.type == "cuda"
    if is_cuda:
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.synchronize(device)
    begin = time.perf_counter()
    loss = compute().item()
    if not is_cuda:
        return loss, time.perf_counter() - begin
    torch.cuda.synchronize(device)
    seconds = time.perf_counter() - begin
    return loss, seconds, torch.cuda.max_memory_allocated(device) - before


class Learner:
    """A model that learns with one way to compute attention."""

    def __init__(self, way, options, device="cpu"):
        torch.manual_seed(options.seed)
        windows = layer_windows(options.windows, options.layers, options.context)
        self.device = torch.device(device)
        self.model = GPT(options.width, options.head_dim, windows).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.rate)
        self.way, self.dtype = way, DTYPES[options.dtype]

    def take(self, batch):
        """A batch of make_batches, on the device; the host keeps the lengths of documents."""
        lengths = [length for length in np.diff(batch["cu_seqlens"]).tolist() if length]
        rows = {key: torch.from_numpy(rows).to(self.device) for key, rows in batch.items()}
        return rows | {"lengths": lengths}

    def step(self, batch):
        """The loss, the seconds that the step took, and on a GPU its memory."""

        def compute():
            loss = compute_loss(self.model, batch, self.way, self.dtype)
            loss.backward()
            self.optimizer.step()
            # Not with the next step, whose memory is counted from its beginning.
            self.optimizer.zero_grad()
            return loss.detach()

        return timed(self.device, compute)

    @torch.no_grad()
    def evaluate(self, batch, way):
        """The same of a forward pass, with any way."""
        return timed(self.device, lambda: compute_loss(self.model, batch, way, self.dtype))


def measure(options, record):
    """Notes losses, seconds and memory of all steps, and of forward passes of the model that
    was trained with the first way. The ways take turns with each batch: a machine that
    changes its speed changes it for all. "rest" is the model without attention."""
    names = [*(options.ways or DEFAULT_WAYS[options.device.type]), "rest"]
    learners = {name: Learner(WAYS[name], options, options.device) for name in names}
    first = learners[names[0]]
    forward = dict.fromkeys([*names[:-1], *(["flex"] if options.flex else []), "rest"])
    for batch in batches_of(options):
        if record.is_over():
            break
        batch = first.take(batch)
        for name, learner in [*learners.items()]:
            record.measure("step", name, lambda learner=learner: learner.step(batch))
            if record.has_failed("step", name):
                del learners[name]
        for name in forward:
            record.measure("forward", name, lambda name=name: first.evaluate(batch, WAYS[name]))
        record.write()
    return names


def main():
    parser = gpt_parser(__doc__, DTYPES, list(WAYS)[:-1])
    parser.add_argument("--device", type=torch.device, default="cpu", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--flex", action="store_true", help="also time FlexAttention's forward; needs a C++ compiler")
    options = options_of(parser, list(WAYS)[:-1])
    if options.device.type not in DEFAULT_WAYS:
        parser.error(f"--device: expected cpu or cuda, got {options.device}")
    settings = {key: str(value) for key, value in vars(options).items() if key != "out"}
    settings |= {"torch": torch.__version__, "threads": torch.get_num_threads()}
    if options.device.type == "cuda":
        settings["gpu"] = torch.cuda.get_device_name(options.device)
    record = Record(settings, options.out, options.minutes)
    names = measure(options, record)
    for kind, entries in record.kinds.items():
        done = [name for name in REFERENCES if entries.get(name, {}).get("losses")]
        record.report(kind, done[0] if done else names[0])
    if options.out:
        try:
            import training_picture
        except ImportError as error:
            print(f"no pictures: {error}")
        else:
            training_picture.draw([record.path], options.out)
    return int(all(record.has_failed("step", name) for name in names))


if __name__ == "__main__":
    sys.exit(main())
