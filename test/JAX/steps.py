# RUN: %python %s
"""Training steps as programs have them: layers in a scan, recomputed in the backward pass; state
that is donated; sequences that differ from step to step; memory that does. On a GPU the
program is a command buffer, which XLA replays and updates: without one it has the same bits."""

import os
import pathlib
import subprocess
import sys
import tempfile

COMMAND_BUFFERS = "--xla_gpu_graph_min_graph_size=1"
NO_COMMAND_BUFFERS = "--xla_gpu_enable_command_buffer="
is_child = len(sys.argv) > 1
flags = NO_COMMAND_BUFFERS if is_child else COMMAND_BUFFERS
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"
from Inputs.device import IS_CUDA

import jax
import numpy as np
from checks import cumulate, normal
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from varlen.jax import varlen_attn

P = PartitionSpec
ROWS, HEADS, KV_HEADS, DIM, LAYERS = 70, 4, 2, 32, 3
WIDTH, QKV = HEADS * DIM, (HEADS + 2 * KV_HEADS) * DIM
rng = np.random.default_rng(0)
# As many sequences each time, some of them empty; rows behind the last.
batches = [
    cumulate(*lengths)
    for lengths in ([70, 0, 0], [1, 40, 20], [0, 64, 5], [33, 33, 4], [9, 0, 1], [64, 1, 5])
]


def make_state():
    weights = {
        "qkv": normal(rng, "f32", LAYERS, WIDTH, QKV) / 12,
        "out": normal(rng, "f32", LAYERS, WIDTH, WIDTH) / 12,
        "sink": normal(rng, "f32", LAYERS, HEADS),
    }
    return jax.tree.map(jnp.asarray, weights)


def layer(x, weights, cu):
    rows = (x @ weights["qkv"]).astype(jnp.bfloat16).reshape(ROWS, -1, DIM)
    q, k, v = jnp.split(rows, (HEADS, HEADS + KV_HEADS), axis=1)
    out = varlen_attn(q, k, v, cu, window=(20, 0), sink=weights["sink"])
    return x + out.reshape(ROWS, WIDTH).astype(jnp.float32) @ weights["out"]


def loss_in_scan(state, x, cu):
    body = jax.checkpoint(lambda x, weights: (layer(x, weights, cu), None))
    return (jax.lax.scan(body, x, state)[0] ** 2).mean()


def loss_in_line(state, x, cu):
    for i in range(LAYERS):
        x = layer(x, jax.tree.map(lambda stack, i=i: stack[i], state), cu)
    return (x**2).mean()


def make_step(loss):
    def step(state, x, cu):
        value, gradients = jax.value_and_grad(loss)(state, x, cu)
        return value, jax.tree.map(lambda w, g: w - 0.05 * g, state, gradients)

    return step


def train(step, state, place=jnp.asarray):
    """Losses, and the last state. Inputs of all steps live, so they lie elsewhere each time."""
    losses, inputs = [], []
    for cu in batches:
        inputs.append((place(x), place(cu)))
        value, state = step(state, *inputs[-1])
        losses.append(value)
    return [np.asarray(value) for value in jax.tree.leaves((losses, state))]


x = normal(rng, "f32", ROWS, WIDTH)
state = make_state()


def copy():
    return jax.tree.map(jnp.copy, state)


donating = jax.jit(make_step(loss_in_scan), donate_argnums=0)
results = train(donating, copy())
assert all(np.isfinite(x).all() for x in results)
if is_child:
    np.savez(sys.argv[1], *results)
    sys.exit()
assert all(map(np.array_equal, results, train(donating, copy())))
for a, b in zip(results, train(jax.jit(make_step(loss_in_line)), copy()), strict=True):
    np.testing.assert_allclose(a, b, rtol=2e-2, atol=2e-3)

# The same program in a mesh of one device, heads split.
mesh = Mesh(np.array(jax.devices()[:1]), ("heads",))
specs = {"qkv": P(), "out": P(None, "heads"), "sink": P(None, "heads")}
place = lambda array, spec=P(): jax.device_put(array, NamedSharding(mesh, spec))
on_mesh = train(donating, {name: place(w, specs[name]) for name, w in copy().items()}, place)
for a, b in zip(results, on_mesh, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)

# No step leaves memory behind. A CPU does not count its own.
if IS_CUDA:
    device, inputs = jax.devices()[0], (jnp.asarray(x), jnp.asarray(batches[1]))
    current, used = copy(), set()
    for i in range(60):
        _, current = donating(current, *inputs)
        jax.block_until_ready(current)
        if i >= 10:
            used.add(device.memory_stats()["bytes_in_use"])
    assert len(used) == 1, used

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "results.npz"
    subprocess.run([sys.executable, __file__, path], check=True)
    with np.load(path) as others:
        assert all(map(np.array_equal, results, others.values()))
