"""What varlen-lower-attn-to-gpu leaves to a host, in the executor: the reference's
attention and gradients, before the host's bufferization and after it."""

# REQUIRES: venv
# RUN: %python %s %S/Inputs

import concurrent.futures
import pathlib
import sys

import numpy as np

import varlen
from varlen import dtypes, reference, scores, tolerance

INPUTS = pathlib.Path(sys.argv[1])
BUFFERIZE = (
    "one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map}"
)
# The host's kernels and its own code, after which there is none of upstream's allocations.
REST = (
    "convert-bufferization-to-memref,varlen-kernels-to-nvvm{format=mlir},convert-nvvm-to-executor,"
    "varlen-launches-to-llvm{format=mlir},varlen-use-device-memory"
)
CU = np.array([0, 0, 21, 22, 55], "i4")
ROWS = 57
rng = np.random.default_rng(5)


def draw(heads):
    return dtypes.narrow(rng.standard_normal((ROWS, heads, 32)).astype("f4"), "bf16")


def run(name, inputs, passes):
    pipeline = f"builtin.module({','.join([*passes, REST])})"
    return varlen.run(INPUTS / name, inputs, device="sim:sm_80", pipeline=pipeline, sim_runs=2)


def check(label, found, dout, q, k, v, **given):
    given |= {"window": (-1, 0)}
    forward = [f(q, k, v, CU, CU, **given) for f in (reference.attention, reference.plain)]
    backward = [
        f(dout, q, k, v, CU, CU, **given) for f in (reference.gradients, reference.plain_gradients)
    ]
    for name, golden, plain in zip(("out", "lse"), *forward, strict=True):
        tolerance.check(found[name], golden, plain, "bf16", f"{label}: {name}")
    names = ["dq", "dk", "dv", None, *(["dslopes"] if "score" in given else [])]
    for name, golden, plain in zip(names, *backward, strict=True):
        if name:
            tolerance.check(found[name], golden, plain, "bf16", f"{label}: {name}", gradient=True)


def before():
    inputs = {"dout": draw(2), "q": draw(2), "k": draw(1), "v": draw(1)}
    slopes = np.array([0.5, 0.125], "f4")
    passes = ["varlen-lower-attn-to-gpu{chip=sm_80 dense-tensors}", BUFFERIZE]
    given = {**inputs, "cu_seqlens": CU, "slopes": slopes}
    found = run("gpu-before.mlir", given, passes)
    check("before", found, **inputs, score=scores.alibi(), captures=[slopes])


def after():
    qkv, dout = draw(4), draw(2)
    outputs = {
        "out": np.zeros_like(dout), "lse": np.zeros((2, ROWS), "f4"), "dqkv": np.zeros_like(qkv)
    }  # fmt: skip
    given = {"qkv": qkv.copy(), "dout": dout, "cu_seqlens": CU, **outputs}
    found = run("gpu-after.mlir", given, ["varlen-lower-attn-to-gpu{chip=sm_80}"])
    # The host's kernels run before and after attention.
    q = dtypes.narrow(2 * dtypes.widen(qkv[:, :2]), "bf16")
    assert np.array_equal(found["qkv"][:, :2], q)
    found["lse"] = -found["lse"]
    found |= {"dq": found["dqkv"][:, :2], "dk": found["dqkv"][:, 2:3], "dv": found["dqkv"][:, 3:]}
    check("after", found, dout, q, qkv[:, 2:3], qkv[:, 3:])


if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case in [pool.submit(before), pool.submit(after)]:
            case.result()
