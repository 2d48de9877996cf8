# RUN: %python %s %t
"""varlen.run: from arrays to arrays, and tools' messages as exceptions."""

import os
import pathlib
import sys

import numpy as np

import varlen
from varlen import random, reference, text, tolerance

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)

lengths = [9, 0, 40, 1]
cu = np.cumsum([0, *lengths]).astype(np.int32)
for dtype in ("f32", "bf16"):
    q, k, v = (random.normal(1, x, (50, 2, 32), dtype) for x in "qkv")
    inputs = {"q": q, "k": k, "v": v, "cu_seqlens_q": cu, "cu_seqlens_k": cu}
    module = text.attn(dtype=dtype, heads=2, head_dim=32, window=(-1, 0))
    figures = {}
    results = varlen.run(module, inputs, threads=2, repeat=3, figures=figures)
    arguments = (q, k, v, cu, cu)
    golden = reference.attention(*arguments, window=(-1, 0))
    plain = reference.plain(*arguments, window=(-1, 0))
    for name, g, p in zip(("out", "lse"), golden, plain):
        tolerance.check(results[name], g, p, dtype, f"{dtype} {name}")
    pairs = reference.visible_pairs(cu, cu, window=(-1, 0))
    assert figures["useful_flops"] == 2 * 2 * (32 + 32) * pairs
    assert figures["threads"] == 2 and len(figures["ms_all"]) == 3

    # The same numbers without a file, and from a file of text.
    (folder / "module.mlir").write_text(module)
    again = varlen.run(folder / "module.mlir", random=1, lengths=lengths)
    for name in ("out", "lse"):
        assert again[name].shape == results[name].shape, name
        assert again[name].tobytes() == results[name].tobytes(), name

# Several inputs, of one compilation.
first = {"q": q[:9], "k": k[:9], "v": v[:9], "cu_seqlens_q": cu[:2], "cu_seqlens_k": cu[:2]}
one, whole = varlen.run(module, [first, inputs])
assert one["out"].shape == (9, 2, 32)
assert one["out"].tobytes() == results["out"][:9].tobytes()
assert whole["lse"].tobytes() == results["lse"].tobytes()
try:
    varlen.run(module, [])
except ValueError as error:
    assert "at least one" in str(error), error
else:
    raise AssertionError("no input was accepted")

try:
    varlen.run(module, {"q": q})
except varlen.Error as error:
    assert "no tensor 'k'" in str(error), error
else:
    raise AssertionError("a missing tensor was accepted")

os.environ["VARLEN_BUILD"] = str(folder)
try:
    varlen.find_tool("varlen-opt")
except FileNotFoundError as error:
    assert str(folder / "bin") in str(error), error
else:
    raise AssertionError("a tool was found where there is none")
