#!/usr/bin/env python3
"""Trains the GPT of train_torch.py on packed documents with JAX, once with each way to compute
attention: varlen.jax, jax.nn.dot_product_attention with a mask that keeps documents apart, and
the same of padded documents, on a GPU by cuDNN, too. What differs is one function; parameters
and batches are the same. Prints the losses, the time of a step, attention's part of it (what a
step takes longer than that of the model without attention), and its temporary memory.

--device=cuda trains on the first GPU. --torch also trains
the model in PyTorch with varlen.torch, from the same parameters on the same batches. A way that
fails, as it needs more memory than there is, is a row that says so.
"""

import functools
import os
import pathlib
import sys
import time

import jax
import numpy as np
from jax import numpy as jnp

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from documents import NO_TARGET, VOCABULARY, batches_of, gpt_parser, layer_windows, options_of
from training_record import Record
from varlen.jax import varlen_attn

DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16}
# torch.optim.AdamW's.
BETAS, EPSILON, DECAY = (0.9, 0.999), 1e-8, 1e-2

# A way takes q, k and v (rows, heads, head_dim), the batch, and the number of keys before
# its own that a query sees, -1 for all.


def packed(q, k, v, batch, window):
    return varlen_attn(q, k, v, batch["cu_seqlens"], window=(window, 0))


def masked(q, k, v, batch, window):
    cu_seqlens = batch["cu_seqlens"]
    places = jnp.arange(len(q))
    documents = jnp.searchsorted(cu_seqlens, places, side="right")
    distance = places[:, None] - places
    near = (distance >= 0) & (distance <= (window if window >= 0 else len(q)))
    mask = near & (documents[:, None] == documents)
    return jax.nn.dot_product_attention(q, k, v, mask=mask)


def padded(q, k, v, batch, window, implementation="xla"):
    slots, lengths = batch["slots"], batch["lengths"]
    q, k, v = (x.at[slots].get(mode="fill", fill_value=0) for x in (q, k, v))
    out = jax.nn.dot_product_attention(
        q, k, v, is_causal=True, query_seq_lengths=lengths, key_value_seq_lengths=lengths,
        local_window_size=None if window < 0 else (window, 0), implementation=implementation,
    )  # fmt: skip
    return out.reshape(-1, *out.shape[2:])[batch["places"]]


def add_slots(batch):
    """The batch with what `padded` reads: the row of each place of each document, its
    lengths, and the place of each row. XLA compiles for each shape, so there are multiples of
    256 places, and of two documents or, of many, of an eighth to a quarter of them."""
    lengths = np.diff(batch["cu_seqlens"])
    lengths = lengths[lengths > 0]
    unit = max(2, 1 << (len(lengths) // 8).bit_length())
    count, longest = -(-len(lengths) // unit) * unit, -(-max(lengths) // 256) * 256
    documents = np.repeat(np.arange(len(lengths)), lengths)
    places = documents * longest + batch["positions"]
    # Behind the last row: nothing is read there.
    slots = np.full(count * longest, len(places), np.int32)
    slots[places] = np.arange(len(places))
    slots = slots.reshape(count, longest)
    lengths = np.pad(lengths, (0, count - len(lengths))).astype(np.int32)
    return batch | {"slots": slots, "lengths": lengths, "places": places}


def no_attention(q, k, v, batch, window):
    return v


WAYS = {
    "varlen": packed, "mask": masked, "padded": padded,
    "cudnn": functools.partial(padded, implementation="cudnn"), "rest": no_attention,
}  # fmt: skip
PADDED = {"padded", "cudnn"}
# "rest", the model without attention, is always one.
DEFAULT_WAYS = {"cpu": ["varlen", "mask", "padded"], "cuda": ["varlen", "mask", "padded", "cudnn"]}

# The model. Parameters have the names and shapes that PyTorch gives them.


def parameter_shapes(width, layers):
    shapes = {"embedding.weight": (VOCABULARY, width)}
    for i in range(layers):
        shapes |= {
            f"blocks.{i}.norms.0.weight": (width,),
            f"blocks.{i}.norms.1.weight": (width,),
            f"blocks.{i}.qkv.weight": (3 * width, width),
            f"blocks.{i}.out.weight": (width, width),
            f"blocks.{i}.up.weight": (4 * width, width),
            f"blocks.{i}.down.weight": (width, 4 * width),
        }
    return shapes | {"norm.weight": (width,), "head.weight": (VOCABULARY, width)}


def initial_parameters(options):
    """Norms 1, the embedding normal, matrices uniform within 1 / sqrt(columns), which are
    the distributions that PyTorch draws from."""
    rng = np.random.default_rng(options.seed)
    parameters = {}
    for name, shape in parameter_shapes(options.width, options.layers).items():
        if len(shape) == 1:
            values = np.ones(shape)
        elif name.startswith("embedding"):
            values = rng.standard_normal(shape)
        else:
            values = rng.uniform(-1, 1, shape) / np.sqrt(shape[1])
        parameters[name] = jnp.asarray(values, jnp.float32)
    return parameters


def normalize(x, weight):
    mean = jnp.mean(x * x, -1, keepdims=True)
    return x * jax.lax.rsqrt(mean + jnp.finfo(x.dtype).eps) * weight


def rotate(x, rotation):
    """Rotary positions."""
    cos, sin = (part.astype(x.dtype) for part in rotation)
    a, b = jnp.split(x, 2, axis=2)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], 2)


def compute_loss(parameters, batch, *, attend, windows, head_dim, dtype):
    def linear(name, x):
        return x.astype(dtype) @ parameters[f"{name}.weight"].astype(dtype).T

    half = head_dim // 2
    angles = batch["positions"][:, None] * 10000 ** (-jnp.arange(half) / half)
    rotation = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    x = parameters["embedding.weight"][batch["tokens"]]
    for i, window in enumerate(windows):
        block = f"blocks.{i}"
        rows = linear(f"{block}.qkv", normalize(x, parameters[f"{block}.norms.0.weight"]))
        q, k, v = jnp.split(rows.reshape(len(x), -1, head_dim), 3, axis=1)
        out = attend(rotate(q, rotation), rotate(k, rotation), v, batch, window)
        x = x + linear(f"{block}.out", out.reshape(x.shape))
        up = linear(f"{block}.up", normalize(x, parameters[f"{block}.norms.1.weight"]))
        x = x + linear(f"{block}.down", jnp.square(jax.nn.relu(up)))
    logits = linear("head", normalize(x, parameters["norm.weight"])).astype(jnp.float32)
    counted = batch["targets"] != NO_TARGET
    targets = jnp.where(counted, batch["targets"], 0)
    chances = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[:, None], 1)[:, 0]
    return -jnp.sum(jnp.where(counted, chances, 0)) / jnp.sum(counted)


def update(parameters, gradients, moments, count, rate):
    """AdamW."""
    first, second = (
        jax.tree.map(lambda m, g: beta * m + (1 - beta) * g**power, moment, gradients)
        for beta, power, moment in zip(BETAS, (1, 2), moments)
    )
    unbias_first, unbias_second = (1 / (1 - beta**count) for beta in BETAS)

    def move(parameter, m, v):
        step = unbias_first * m / (jnp.sqrt(unbias_second * v) + EPSILON)
        return parameter - rate * (step + DECAY * parameter)

    return jax.tree.map(move, parameters, first, second), (first, second)


class Learner:
    """A model that learns with one way to compute attention."""

    def __init__(self, name, parameters, options):
        loss = functools.partial(
            compute_loss, attend=WAYS[name], head_dim=options.head_dim, dtype=DTYPES[options.dtype],
            windows=layer_windows(options.windows, options.layers, options.context),
        )  # fmt: skip

        @functools.partial(jax.jit, donate_argnums=0)
        def step(state, batch):
            parameters, moments, count = state
            value, gradients = jax.value_and_grad(loss)(parameters, batch)
            count = count + 1
            return value, (*update(parameters, gradients, moments, count, options.rate), count)

        self.prepare = add_slots if name in PADDED else lambda batch: batch
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        # Copies: a step writes over the state before it.
        self.state = jax.tree.map(jnp.copy, (parameters, (zeros, zeros), jnp.zeros(())))
        self.program, self.executables = step, {}

    def step(self, batch):
        """The loss, the seconds that the step took, without those of compilation, and the bytes
        of its temporary memory."""
        batch = jax.device_put(self.prepare(batch))
        shapes = tuple(rows.shape for rows in batch.values())
        if shapes not in self.executables:
            self.executables[shapes] = self.program.lower(self.state, batch).compile()
        executable = self.executables[shapes]
        jax.block_until_ready(batch)
        begin = time.perf_counter()
        loss, self.state = executable(self.state, batch)
        jax.block_until_ready(self.state)
        seconds = time.perf_counter() - begin
        return float(loss), seconds, executable.memory_analysis().temp_size_in_bytes


class TorchLearner:
    """The model of train_torch.py, with varlen.torch."""

    def __init__(self, options):
        import train_torch

        self.learner = train_torch.Learner(train_torch.packed, options, options.device)

    def parameters(self):
        state = self.learner.model.state_dict()
        return {name: jnp.array(tensor.cpu().numpy()) for name, tensor in state.items()}

    def step(self, batch):
        return self.learner.step(self.learner.take(batch))


def measure(options, record):
    """Notes losses, seconds and memory of all steps, by way. They take turns with each batch:
    a machine that changes its speed changes it for all."""
    learners = {"torch": TorchLearner(options)} if options.torch else {}
    given = learners["torch"].parameters() if options.torch else initial_parameters(options)
    names = [*(options.ways or DEFAULT_WAYS[options.device]), "rest"]
    learners |= {name: Learner(name, given, options) for name in names}
    for batch in batches_of(options):
        if record.is_over():
            break
        for name, learner in [*learners.items()]:
            record.measure("step", name, lambda learner=learner: learner.step(batch))
            if record.has_failed("step", name):
                del learners[name]
        record.write()
    return names


def main():
    parser = gpt_parser(__doc__, DTYPES, list(WAYS)[:-1])
    parser.add_argument("--device", choices=DEFAULT_WAYS, default="cpu", help="of JAX, the first of that kind")
    parser.add_argument("--torch", action="store_true", help="compare with PyTorch")
    options = options_of(parser, list(WAYS)[:-1])
    # JAX looks for no other devices, and shares a GPU's memory with PyTorch.
    jax.config.update("jax_platforms", options.device)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", str(not options.torch).lower())
    settings = {key: str(value) for key, value in vars(options).items() if key != "out"}
    settings |= {"jax": jax.__version__, "threads": len(os.sched_getaffinity(0))}
    if options.device == "cuda":
        settings["gpu"] = jax.devices()[0].device_kind
    record = Record(settings, options.out, options.minutes, apart={"torch"})
    names = measure(options, record)
    record.report("step", "varlen")
    return int(all(record.has_failed("step", name) for name in names))


if __name__ == "__main__":
    sys.exit(main())
