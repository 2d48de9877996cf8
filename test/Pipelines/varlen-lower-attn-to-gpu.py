"""What varlen-lower-attn-to-gpu leaves to a host, in the executor: the reference's
attention and gradients, before the host's bufferization and after it."""

# REQUIRES: venv
# RUN: env PYTHONPATH=%varlen-src/python:%S/Inputs %python %s

import concurrent.futures

import numpy as np

import lowered
import varlen
from varlen import dtypes

# The host's kernels, its own code and its allocations.
HOST = (
    "convert-bufferization-to-memref,varlen-kernels-to-nvvm{format=mlir},convert-nvvm-to-executor,"
    "varlen-launches-to-llvm{format=mlir},varlen-use-device-memory"
)


def run(module, inputs, passes):
    pipeline = f"builtin.module({passes},{HOST})"
    return varlen.run(module, inputs, device="sim:sm_80", pipeline=pipeline, sim_runs=2)


def before():
    passes = f"varlen-lower-attn-to-gpu{{chip=sm_80 dense-tensors}},{lowered.BUFFERIZE}"
    lowered.check_before(lambda module, inputs: run(module, inputs, passes))


def after():
    qkv, dout = lowered.draw(4, 2)
    outputs = {
        "out": np.zeros_like(dout), "lse": np.zeros((2, len(qkv)), "f4"), "dqkv": np.zeros_like(qkv)
    }  # fmt: skip
    given = {"qkv": qkv, "dout": dout, "cu_seqlens": lowered.CU, **outputs}
    found = run(lowered.INPUTS / "gpu-after.mlir", given, "varlen-lower-attn-to-gpu{chip=sm_80}")
    # The host's kernels run before and after attention.
    q = dtypes.narrow(2 * dtypes.widen(qkv[:, :2]), "bf16")
    assert np.array_equal(found["qkv"][:, :2], q)
    found["lse"] = -found["lse"]
    found |= {"dq": found["dqkv"][:, :2], "dk": found["dqkv"][:, 2:3], "dv": found["dqkv"][:, 3:]}
    lowered.check("after", found, dout, q, qkv[:, 2:3], qkv[:, 3:])


if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case in [pool.submit(before), pool.submit(after)]:
            case.result()
