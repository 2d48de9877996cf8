"""What varlen-lower-attn-to-cpu leaves to a host: the reference's attention and
gradients, with destinations and a score, before the host's bufferization and after it,
to the bit those of varlen-to-cpu."""

# REQUIRES: venv
# RUN: env PYTHONPATH=%varlen-src/python:%S/Inputs %python %s

import functools

import numpy as np

import lowered
import varlen

HOST = (
    "convert-linalg-to-loops,convert-vector-to-scf,expand-strided-metadata,lower-affine,"
    "convert-scf-to-cf,convert-vector-to-llvm{enable-x86vector},convert-to-llvm,reconcile-unrealized-casts"
)
BUFFERIZE = f"{lowered.BUFFERIZE},buffer-deallocation-pipeline,convert-bufferization-to-memref"

if __name__ == "__main__":
    for passes in (f"varlen-lower-attn-to-cpu,{BUFFERIZE}", f"{BUFFERIZE},varlen-lower-attn-to-cpu"):
        pipeline = f"builtin.module({passes},{HOST})"
        given, found = lowered.check_before(functools.partial(varlen.run, pipeline=pipeline))
        whole = varlen.run(lowered.INPUTS / "before.mlir", given)
        for name, value in whole.items():
            assert np.array_equal(found[name], value), name
