# REQUIRES: openmpi
# RUN: %python %s %t varlen-opt
"""Attention and its gradients that sharding-propagation, shard-partition and convert-shard-to-mpi have
divided, on two processes of MPI: what they compute together is what one computes."""

import ctypes.util
import pathlib
import subprocess
import sys

import numpy as np

from varlen import attn, attn_grad, safetensors

PROCESSES, ROWS = 2, 12
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
PIPELINE = (
    "builtin.module(func.func(sharding-propagation,shard-partition),canonicalize,cse,"
    "convert-shard-to-mpi,canonicalize,cse,symbol-dce)"
)
# On a grid of processes, of which each gets its rows of q and dout, and all of k and v.
MODULE = f"""
module attributes {{dlti.map = #dlti.map<"MPI:Implementation" = "OpenMPI">}} {{
shard.grid @grid(shape = {PROCESSES}) {{sym_visibility = "private"}}
func.func @attend(%q: tensor<12x4x16xf32> {{varlen.name = "q"}}, %k: tensor<12x2x16xf32> {{varlen.name = "k"}},
                  %v: tensor<12x2x8xf32> {{varlen.name = "v"}}, %cu: tensor<4xi32> {{varlen.name = "cu"}},
                  %sink: tensor<4xf32> {{varlen.name = "sink"}},
                  %dout: tensor<12x4x8xf32> {{varlen.name = "dout"}})
    -> (tensor<12x4x8xf32> {{varlen.name = "out"}}, tensor<4x12xf32> {{varlen.name = "lse"}},
        tensor<12x4x16xf32> {{varlen.name = "dq"}}, tensor<12x2x16xf32> {{varlen.name = "dk"}},
        tensor<12x2x8xf32> {{varlen.name = "dv"}}, tensor<4xf32> {{varlen.name = "dsink"}}) {{
  %rows = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %q0 = shard.shard %q to %rows : tensor<12x4x16xf32>
  %q1 = shard.shard %q0 to %rows annotate_for_users : tensor<12x4x16xf32>
  %out, %lse = varlen.attn %q1, %k, %v, %cu, %cu sink(%sink) {{mask = #varlen.mask<causal>}}
      : (tensor<12x4x16xf32>, tensor<12x2x16xf32>, tensor<12x2x8xf32>, tensor<4xi32>, tensor<4xi32>,
         tensor<4xf32>) -> (tensor<12x4x8xf32>, tensor<4x12xf32>)
  %dq, %dk, %dv, %dsink = varlen.attn_grad %dout, %q1, %k, %v, %out, %lse, %cu, %cu sink(%sink)
      {{mask = #varlen.mask<causal>}}
      : (tensor<12x4x8xf32>, tensor<12x4x16xf32>, tensor<12x2x16xf32>, tensor<12x2x8xf32>,
         tensor<12x4x8xf32>, tensor<4x12xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xf32>)
      -> (tensor<12x4x16xf32>, tensor<12x2x16xf32>, tensor<12x2x8xf32>, tensor<4xf32>)
  return %out, %lse, %dq, %dk, %dv, %dsink : tensor<12x4x8xf32>, tensor<4x12xf32>,
      tensor<12x4x16xf32>, tensor<12x2x16xf32>, tensor<12x2x8xf32>, tensor<4xf32>
}}
}}
"""


def run(folder, opt, arrays, error=None):
    """The results of each process, or that it ends with an error."""
    source, module = folder / "attn.mlir", folder / "attn-mpi.mlir"
    source.write_text(MODULE)
    subprocess.run([*opt, source, f"--pass-pipeline={PIPELINE}", "-o", module], check=True)
    # Begins MPI, and fits OpenMPI to the calls that MLIR makes.
    library, source = folder / "mpi_for_mlir.so", EXAMPLES / "mpi_for_mlir.c"
    subprocess.run(["mpicc", "-Wall", "-Werror", "-shared", "-fPIC", source, "-o", library], check=True)
    for rank in range(PROCESSES):
        own = {name: np.split(arrays[name], PROCESSES)[rank] for name in ("q", "dout")}
        safetensors.write(folder / f"in{rank}.safetensors", arrays | own)
    # The symbols of MPI are global before the program looks for them.
    preload = f"{library} {ctypes.util.find_library('mpi')}"
    rank = "$OMPI_COMM_WORLD_RANK"
    command = f"varlen-run {module} in{rank}.safetensors -o out{rank}.safetensors"
    result = subprocess.run(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(PROCESSES), "sh", "-c",
         f"LD_PRELOAD='{preload}' exec {command}"],
        cwd=folder, check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if error:
        assert result.returncode and error in result.stderr, result.stderr
        return None
    assert result.returncode == 0, result.stderr
    return [safetensors.read(folder / f"out{rank}.safetensors") for rank in range(PROCESSES)]


def main(folder, *opt):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    # A sequence that is on both processes, an empty one, and rows behind the last.
    arrays = {"cu": np.array([0, 8, 8, 11], np.int32), "sink": normal(4)}
    arrays |= {"q": normal(ROWS, 4, 16), "k": normal(ROWS, 2, 16), "v": normal(ROWS, 2, 8)}
    arrays["dout"] = normal(ROWS, 4, 8)
    q, k, v, cu, sink, dout = (arrays[name] for name in ("q", "k", "v", "cu", "sink", "dout"))
    # What is wrong in the whole batch is not hidden by a part of it.
    wrong = arrays | {"cu": np.array([0, 8, 8, 13], np.int32)}
    run(folder, opt, wrong, "cu_seqlens_q must end at or before the last row of q")
    parts = run(folder, opt, arrays)
    out, lse = attn(q, k, v, cu, is_causal=True, sink=sink, return_lse=True)
    gradients = attn_grad(dout, q, k, v, out, lse, cu, is_causal=True, sink=sink)
    dq, *sums = gradients
    for name, dim, whole in (("out", 0, out), ("lse", 1, lse), ("dq", 0, dq)):
        found = np.concatenate([x[name] for x in parts], dim)
        np.testing.assert_allclose(found, whole, rtol=1e-5, atol=1e-5)
    for name, whole in zip(("dk", "dv", "dsink"), sums, strict=True):
        for part in parts:
            np.testing.assert_allclose(part[name], whole, rtol=1e-5, atol=1e-5)


main(*sys.argv[1:])
