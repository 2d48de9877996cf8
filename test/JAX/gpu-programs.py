# RUN: %python %s
"""What XLA's compiler makes of attention for a GPU, which it need not have: both passes become
part of a command buffer, and heads are split over four GPUs. It is in the package
jax-cuda13-plugin (or 12); without it there is nothing to test."""

import os
import pathlib
import re
import tempfile

dump = tempfile.TemporaryDirectory()
flags = f"--xla_dump_to={dump.name} --xla_gpu_graph_min_graph_size=1"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"
from Inputs.device import skip

import jax
import numpy as np
from jax import numpy as jnp
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from varlen._launcher import Target
from varlen.jax import _ffi, varlen_attn

P = PartitionSpec
# The driver that this asks for need not be there.
os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
jax.config.update("jax_platforms", "cuda,cpu")


def describe_gpus(count):
    """So many H100s."""
    target = pathlib.Path(__file__).with_name("Inputs") / "h100.pbtxt"
    return topologies.get_topology_desc(
        platform="cuda", topology_name="h100", target_config=target.read_text(),
        topology=f"1x1x{count}",
    ).devices  # fmt: skip


def loss(q, k, v, cu):
    out, lse = varlen_attn(q, k, v, cu, is_causal=True, return_lse=True)
    return (out.astype(jnp.float32) ** 2).sum() + jax.nn.sigmoid(lse).sum()


def compile_for(devices):
    """Both passes, with heads split over devices."""
    mesh = Mesh(np.array(devices), ("heads",))
    rows = jax.ShapeDtypeStruct((512, 8, 64), jnp.bfloat16, sharding=NamedSharding(mesh, P(None, "heads")))
    cu = jax.ShapeDtypeStruct((9,), jnp.int32, sharding=NamedSharding(mesh, P()))
    traced = jax.jit(jax.value_and_grad(loss, (0, 1, 2))).trace(rows, rows, rows, cu)
    return traced.lower(lowering_platforms=("cuda",)).compile().as_text()


def find_custom_calls(text):
    return re.findall(r"custom-call\(.*custom_call_target=\"(varlen\.\w+)\"", text)


try:
    devices = describe_gpus(1)
except Exception as error:  # of whatever kind: there is no plugin, or it is of another version
    skip(f"no compiler of XLA for GPUs: {str(error).splitlines()[0]}")
_ffi.find_target = lambda: Target("sm_90a", 0)

assert sorted(find_custom_calls(compile_for(devices))) == ["varlen.attn", "varlen.attn_grad"]
(thunks,) = pathlib.Path(dump.name).glob("*thunk_sequence_after_thunk_passes.txt")
lines = thunks.read_text().splitlines()
calls = [line for line in lines if "kCustomCall" in line]
# What a command buffer has is indented below it.
assert any("kCommandBuffer" in line for line in lines), "\n".join(lines)
assert len(calls) == 2 and all(line.startswith(" ") for line in calls), "\n".join(lines)

text = compile_for(describe_gpus(4))
assert len(find_custom_calls(text)) == 2 and "bf16[512,2,64]" in text
assert "all-gather" not in text and "all-to-all" not in text
