#!/usr/bin/env python3
"""Trains the language model of train.mlir on packed documents, wholly in varlen-run:
the gradient is made by varlen-differentiate, the optimiser and the loop over the
steps are in the module too.

The documents are paragraphs of this repository's pages. With PyTorch at hand the
same model is trained there from the same parameters on the same batches, and the
losses are compared step by step.
"""

import argparse
import json
import math
import pathlib
import sys
import time

import numpy as np

EXAMPLES = pathlib.Path(__file__).resolve().parent
ROOT = EXAMPLES.parent
sys.path.insert(0, str(ROOT / "python"))
import varlen
from documents import NO_TARGET, make_batches

# Extents of train.mlir.
WIDTH, HEADS, KV_HEADS, HEAD_DIM, HIDDEN, VOCABULARY, LAYERS = 64, 4, 2, 16, 176, 256, 2
SHAPES = {
    "embedding": (VOCABULARY, WIDTH),
    "norms": (2 * LAYERS + 1, WIDTH),
    "qkv": (LAYERS, WIDTH, (HEADS + 2 * KV_HEADS) * HEAD_DIM),
    "out": (LAYERS, HEADS * HEAD_DIM, WIDTH),
    "gate": (LAYERS, WIDTH, HIDDEN),
    "up": (LAYERS, WIDTH, HIDDEN),
    "down": (LAYERS, HIDDEN, WIDTH),
}
RATE, BETAS = 3e-3, (0.9, 0.99)


def weigh(batch, dtype):
    """A batch as @loss wants it: weights in place of targets that do not count."""
    counts = batch["targets"] != NO_TARGET
    weights = (counts / max(counts.sum(), 1)).astype(dtype)
    return batch | {"targets": np.where(counts, batch["targets"], 0), "weights": weights}


def stacked_batches(steps, tokens, dtype, seed):
    """`steps` batches of paragraphs, stacked, as @train wants them."""
    batches = [
        weigh(batch, dtype) for batch in make_batches(steps, tokens, seed, separator=b"\n\n")
    ]
    return {key: np.stack([batch[key] for batch in batches]) for key in batches[0]}


def initial_parameters(dtype, seed):
    """One vector: norms 1, matrices normal with variance 1 / rows (a tenth of that
    for what is added to the residual stream)."""
    rng = np.random.default_rng(seed)
    parts = []
    for name, shape in SHAPES.items():
        scale = {"embedding": 0.1, "out": 0.3, "down": 0.3}.get(name, 1)
        if name != "embedding":
            scale /= math.sqrt(shape[-2])
        values = np.ones(shape) if name == "norms" else scale * rng.standard_normal(shape)
        parts.append(values.ravel())
    return np.concatenate(parts).astype(dtype)


def split_parameters(vector):
    """Views of the vector, by name."""
    parts, at = {}, 0
    for name, shape in SHAPES.items():
        parts[name] = vector[at : at + math.prod(shape)].reshape(shape)
        at += math.prod(shape)
    return parts


def compile_model(dtype):
    """train.mlir in that type, with the backward function of @loss."""
    text = (EXAMPLES / "train.mlir").read_text()
    if dtype == np.float64:
        text = text.replace("f32", "f64").replace("0xFF800000", "0xFFF0000000000000")
    return varlen.call(
        "varlen-opt", "--inline",
        "--varlen-differentiate=function=loss wrt=params with-results", text=text,
    )  # fmt: skip


def train(module, parameters, batches, figures, **flags):
    inputs = {
        "params": parameters,
        "first_moment": np.zeros_like(parameters),
        "second_moment": np.zeros_like(parameters),
        "learning_rate": np.array(RATE, parameters.dtype),
        **batches,
    }
    return varlen.run(module, inputs, entry="train", figures=figures, **flags)


def check_isolation(module, parameters, batch):
    """Changes the second document; returns whether the losses of all others, and no
    more, are the same bit for bit."""
    def losses(tokens, targets):
        inputs = {"params": parameters, **batch, "tokens": tokens, "targets": targets}
        return varlen.run(module, inputs, entry="losses")["losses"]

    if np.diff(batch["cu_seqlens"])[1:2].sum() == 0:
        raise SystemExit("expected a batch of two documents: more --tokens or --steps")
    begin, end = batch["cu_seqlens"][1:3]
    tokens, targets = batch["tokens"].copy(), batch["targets"].copy()
    tokens[begin:end] = (tokens[begin:end] + 1) % VOCABULARY
    targets[begin : end - 1] = tokens[begin + 1 : end]
    before, after = losses(batch["tokens"], batch["targets"]), losses(tokens, targets)
    inside = np.zeros(len(tokens), bool)
    inside[begin:end] = True
    same = before == after
    return bool(same[~inside].all() and not same[inside & (batch["weights"] > 0)].any())


def make_torch_loss():
    """@loss in PyTorch, of the vector of parameters and a batch."""
    import torch
    from torch.nn import functional as F

    def rms_norm(x, weight):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight

    def rotate(x, positions):
        half = HEAD_DIM // 2
        rates = torch.exp2(torch.arange(half, dtype=x.dtype) * (-math.log2(10000) / half))
        angle = (positions[:, None].to(x.dtype) * rates)[:, None, :]
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def attention(x, p, layer, positions, cu):
        rows = len(x)
        q, k, v = (x @ p["qkv"][layer]).split(
            [HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM], -1
        )
        q = rotate(q.view(rows, HEADS, HEAD_DIM), positions).transpose(0, 1)
        k = rotate(k.view(rows, KV_HEADS, HEAD_DIM), positions).transpose(0, 1)
        v = v.view(rows, KV_HEADS, HEAD_DIM).transpose(0, 1)
        # Document by document, as there is no packed attention on a CPU.
        parts = [
            F.scaled_dot_product_attention(
                q[None, :, i:j], k[None, :, i:j], v[None, :, i:j], is_causal=True, enable_gqa=True
            )[0]
            for i, j in zip(cu, cu[1:])
            if j > i
        ]
        return torch.cat(parts, 1).transpose(0, 1).reshape(rows, -1) @ p["out"][layer]

    def loss(vector, batch):
        p = split_parameters(vector)
        positions = torch.from_numpy(batch["positions"])
        x = p["embedding"][torch.from_numpy(batch["tokens"]).long()]
        for layer in range(LAYERS):
            y = rms_norm(x, p["norms"][2 * layer])
            x = x + attention(y, p, layer, positions, batch["cu_seqlens"].tolist())
            y = rms_norm(x, p["norms"][2 * layer + 1])
            x = x + (F.silu(y @ p["gate"][layer]) * (y @ p["up"][layer])) @ p["down"][layer]
        logits = rms_norm(x, p["norms"][2 * LAYERS]) @ p["embedding"].T
        losses = F.cross_entropy(logits, torch.from_numpy(batch["targets"]).long(), reduction="none")
        return (losses * torch.from_numpy(batch["weights"])).sum()

    return loss


def train_torch(parameters, batches):
    """The same in PyTorch; returns the loss of each step, and the seconds of all."""
    import torch

    loss = make_torch_loss()
    vector = torch.from_numpy(parameters.copy()).requires_grad_()
    optimizer = torch.optim.Adam([vector], lr=RATE, betas=BETAS, eps=1e-8)
    values, begin = [], time.perf_counter()
    for step in range(len(batches["tokens"])):
        optimizer.zero_grad()
        value = loss(vector, {key: rows[step] for key, rows in batches.items()})
        value.backward()
        optimizer.step()
        values.append(value.item())
    return np.array(values), time.perf_counter() - begin


def plot(path, ours, theirs):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(
        2, 1, sharex=True, figsize=(7, 5), height_ratios=[3, 1], layout="constrained"
    )
    above.plot(ours, label="varlen", linewidth=1)
    above.set_ylabel("cross entropy (nats per byte)")
    below.set_xlabel("step")
    below.set_ylabel("difference")
    if theirs is not None:
        above.plot(theirs, "--", label="PyTorch", linewidth=1)
        below.semilogy(np.maximum(np.abs(ours - theirs), 1e-9), linewidth=1)
    above.legend()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--tokens", type=int, default=512, help="tokens in a batch")
    parser.add_argument("--dtype", choices=["f32", "f64"], default="f32")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--torch", action="store_true", help="compare with PyTorch")
    parser.add_argument("--out", type=pathlib.Path, help="folder for loss.json and loss.png")
    arguments = parser.parse_args()

    dtype = varlen.dtypes.by_name[arguments.dtype]
    batches = stacked_batches(arguments.steps, arguments.tokens, dtype, arguments.seed)
    parameters = initial_parameters(dtype, arguments.seed)
    module, figures = compile_model(dtype), {}
    results = train(module, parameters, batches, figures, threads=arguments.threads)
    losses = results["losses"].astype(np.float64)
    # A batch differs from the next: the ends are means over a few.
    few = max(1, min(20, arguments.steps // 4))
    print(f"{arguments.steps} steps of {arguments.tokens} tokens, {len(parameters)} parameters")
    print(f"compiled in {figures['compile_ms'] / 1e3:.1f} s, trained in {figures['ms_median'] / 1e3:.1f} s")
    print(f"loss: {losses[:few].mean():.3f} in the first {few} steps, {losses[-few:].mean():.3f} in the last")

    # The one with most documents.
    most = np.count_nonzero(np.diff(batches["cu_seqlens"]), axis=1).argmax()
    batch = {key: rows[most] for key, rows in batches.items()}
    isolated = check_isolation(module, results["params"], batch)
    print(f"a changed document leaves the losses of the others {'the same' if isolated else 'NOT THE SAME'}")
    theirs = None
    if arguments.torch:
        theirs, seconds = train_torch(parameters, batches)
        difference = np.abs(losses - theirs) / np.abs(theirs)
        steps = arguments.steps / 1e3
        print(f"a step takes {figures['ms_median'] / 1e3 / steps:.1f} ms, with PyTorch {seconds / steps:.1f} ms")
        print(
            f"PyTorch's losses: largest relative difference {difference.max():.1e},"
            f" {difference[:few].max():.1e} in the first {few} steps"
        )
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        record = {"varlen": losses.tolist(), "torch": None if theirs is None else theirs.tolist()}
        (arguments.out / "loss.json").write_text(json.dumps(record))
        plot(arguments.out / "loss.png", losses, theirs)
    fell = losses[-few:].mean() < losses[:few].mean()
    return 0 if isolated and fell else 1


if __name__ == "__main__":
    sys.exit(main())
