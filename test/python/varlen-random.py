# RUN: %python %s
"""The generator gives what varlen-run gives, bit for bit, and a normal
distribution."""

import numpy as np

import varlen
from varlen import dtypes, random

names = ("f32", "bf16", "f16", "f64")
size = 200003
arguments = ", ".join(
    f'%{t}: tensor<?x{t}> {{varlen.name = "{t}"}}' for t in names
)
types = ", ".join(f"tensor<?x{t}>" for t in names)
results = ", ".join(f'tensor<?x{t}> {{varlen.name = "{t}"}}' for t in names)
module = f"""
func.func @f({arguments}) -> ({results}) {{
  return {", ".join("%" + t for t in names)} : {types}
}}
"""
PIPELINE = (
    "one-shot-bufferize{bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map},"
    "convert-func-to-llvm,finalize-memref-to-llvm,reconcile-unrealized-casts"
)
for seed in (0, 7):
    got = varlen.run(
        module, random=seed, pipeline=PIPELINE, extent={f"{t}:0": size for t in names}
    )
    for t in names:
        made = random.normal(seed, t, (size,), t)
        same = got[t].view(np.uint8) == made.view(np.uint8)
        assert same.all(), f"{t}: {np.count_nonzero(~same)} bytes differ"

values = random.normal(3, "x", (1000, 1000), "f64")
assert abs(values.mean()) < 4e-3
assert abs(values.std() - 1) < 4e-3
assert abs((values**4).mean() - 3) < 3e-2
assert abs((values < -1).mean() - 0.158655) < 2e-3
assert abs((values[:, 0::2] * values[:, 1::2]).mean()) < 4e-3
# Independent of shape; different for another seed or name.
assert (random.normal(3, "x", (1000001,), "f64")[:-1] == values.ravel()).all()
for other in (random.normal(4, "x", (1000,)), random.normal(3, "y", (1000,))):
    correlation = np.corrcoef(dtypes.widen(other), values.ravel()[:1000])[0, 1]
    assert abs(correlation) < 0.15, correlation
