"""A transformer block and its gradients on a GPU, in the executor: the results of the
same functions for a CPU, without a hazard; and ptxas, where there is one, spills no
register of their kernels."""

# REQUIRES: venv
# RUN: %python %s %S/Inputs/gpu-block.mlir

import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import varlen
from varlen import tools

TOLERANCE = 2e-5
SHAPES = {"norm1": (64,), "qkv": (64, 128), "out": (64, 64), "norm2": (64,),
          "gate": (64, 96), "up": (64, 96), "down": (96, 64)}  # fmt: skip
# An empty sequence, one of one token, and more tokens than a tile has.
LENGTHS = (0, 70, 1, 9)

rng = np.random.default_rng(23)
values = {"x": rng.standard_normal((sum(LENGTHS), 64))}
for name, shape in SHAPES.items():
    values[name] = rng.standard_normal(shape) / np.sqrt(shape[0])
values["dy"] = rng.standard_normal(values["x"].shape)
values = {name: value.astype(np.float32) for name, value in values.items()}
values["cu_seqlens"] = np.cumsum((0, *LENGTHS)).astype(np.int32)

block = tools.call("varlen-opt", sys.argv[1], "--inline", "--symbol-dce")
gradients = tools.call(
    "varlen-opt", "--varlen-differentiate=function=block", "--inline", text=block
)
failed = 0
for text, entry in [(block, "block"), (gradients, "block_vjp")]:
    mine = {name: value for name, value in values.items() if name != "dy" or entry != "block"}
    expected = varlen.run(text, mine, entry=entry)
    results = varlen.run(text, mine, entry=entry, device="sim:sm_80", sim_runs=2)
    for name, want in expected.items():
        error = np.max(np.abs(results[name] - want)) / np.max(np.abs(want))
        if not error <= TOLERANCE:
            print(f"FAIL {entry}: '{name}' is off by {error:.1e}, wanted {TOLERANCE:.0e}")
            failed += 1

if shutil.which("ptxas"):
    with tempfile.TemporaryDirectory() as folder:
        command = [tools.find_tool("varlen-opt"), "--emit=cubin", "--report", "-o", f"{folder}/block.cubin"]
        done = subprocess.run(command, input=gradients, capture_output=True, text=True, check=False)
    kernels = re.findall(r"(\w+) uses \d+ registers", done.stderr)
    print(len(kernels), "kernels")
    if done.returncode or not kernels or "spill" in done.stderr:
        print(done.stderr)
        failed += 1
sys.exit(failed != 0)
