# RUN: %python %s %t.mlir
# RUN: varlen-opt %t.mlir --allow-unregistered-dialect --varlen-import-stablehlo | FileCheck %s
"""Exported functions run in a process that has not traced them, and are attention to the
compiler too."""

import pathlib
import subprocess
import sys
import tempfile

from Inputs.device import IS_CUDA

import jax
import numpy as np
import varlen
from checks import cumulate, normal
from jax import export
from jax import numpy as jnp

from varlen.jax import _ffi, varlen_attn

rng = np.random.default_rng(0)
cu, used = cumulate(5, 0, 12, 1), np.array([4, 0, 12, 0], np.int32)
q, k, v = (normal(rng, "f32", 18, heads, 16) for heads in (4, 2, 2))
sink = normal(rng, "f32", 4)


# CHECK: varlen.attn {{.*}} seqused_k(%{{.*}}) sink(%{{.*}}) {mask = #varlen.mask<window = (6, 0), top_left>, scale = 2.500000e-01 : f32}
# CHECK-SAME: -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
# CHECK: varlen.attn_grad {{.*}} dlse(%{{.*}}) seqused_k(%{{.*}}) sink(%{{.*}}) {mask = #varlen.mask<window = (6, 0), top_left>, scale = 2.500000e-01 : f32}
# CHECK-NOT: custom_call
def gradients(q, k, v, cu, used, sink):
    def loss(q, k, v, sink):
        out, lse = varlen_attn(
            q, k, v, cu, window=(6, 0), alignment="top_left", scale=0.25, seqused_k=used,
            sink=sink, return_lse=True,
        )  # fmt: skip
        return (out**2).sum() + jnp.where(jnp.isfinite(lse), lse, 0).sum()

    return jax.grad(loss, (0, 1, 2, 3))(q, k, v, sink)


arguments = q, k, v, cu, used, sink


def save(path):
    # Rows of any number; for a GPU, as many as there are.
    (rows,) = export.symbolic_shape("18" if IS_CUDA else "rows")
    types = [
        jax.ShapeDtypeStruct((rows if x.shape[0] == 18 else x.shape[0], *x.shape[1:]), x.dtype)
        for x in arguments
    ]
    allowed = [export.DisabledSafetyCheck.custom_call(f"varlen.{x}") for x in ("attn", "attn_grad")]
    exported = export.export(jax.jit(gradients), disabled_checks=allowed)(*types)
    path.write_bytes(exported.serialize(vjp_order=0))
    return jax.jit(gradients).lower(*types).compiler_ir("stablehlo")


def count_programs():
    return len(varlen._cache._kept) + _ffi._find_kernels.cache_info().currsize


def load(path):
    exported = export.deserialize(bytearray(path.read_bytes()))
    got = exported.call(*arguments)
    # Nothing was traced: the handler has compiled.
    assert not count_programs()
    assert all(map(np.array_equal, got, gradients(*arguments)))
    assert count_programs()


if len(sys.argv) > 2:
    load(pathlib.Path(sys.argv[2]))
else:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "exported"
        module = save(path)
        subprocess.run([sys.executable, __file__, "load", path], check=True)
    if len(sys.argv) > 1:
        text = module.operation.get_asm(print_generic_op_form=True)
        pathlib.Path(sys.argv[1]).write_text(text)
