"""No score of the library calls a function of libm: objects for every element type,
forward and gradients, ask for none. In f64 the forward asks for log2, which it takes of
the sum of a query's weights, once for all keys."""

# REQUIRES: venv
# RUN: %python %s

import itertools
import pathlib
import re
import subprocess
import tempfile

import varlen
from varlen import scores

# Every operation of the library's scores; captures of one name are those of one score.
SCORES = [
    scores.compose(scores.compose(scores.capped_alibi(5.0), scores.t5_bias()), scores.dilated(3)),
    scores.compose(
        scores.compose(scores.position_bias(), scores.tree()),
        scores.compose(scores.document(), scores.prefix_lm()),
    ),
]


def symbols(source, *flags):
    """What an object of a module asks for."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.mlir"
        path.write_text(source)
        done = subprocess.run(
            [varlen.find_tool("varlen-opt"), path, "--emit=obj", *flags, "-o", path.with_suffix(".o")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        names = subprocess.run(
            ["llvm-nm", "-u", path.with_suffix(".o")], capture_output=True, text=True, check=True
        )
    return set(re.findall(r"U (\w+)", names.stdout)), done.stderr


KNOWN = {"malloc", "free", "memcpy", "memset", "memmove", "aligned_alloc"}
for make, dtype, score in itertools.product(
    (varlen.text.attn, varlen.text.attn_grad), ("f32", "bf16", "f16", "f64"), SCORES
):
    found, _ = symbols(make(dtype=dtype, heads=2, head_dim=64, score=score))
    called = {name for name in found - KNOWN if not name.startswith("varlen_")}
    allowed = {"log2"} if dtype == "f64" and make is varlen.text.attn else set()
    assert called <= allowed, f"{make.__name__} {dtype} {score.name} calls {called}"

# A function that vectors have no form of is called, and a remark says so.
root = scores.Score("root", lambda type: f"%new = math.cbrt %score : {type}", lambda s, *_: s, None)
found, remarks = symbols(varlen.text.attn(heads=2, head_dim=64, score=root))
assert "cbrtf" in found and "'math.cbrt' has no vector form" in remarks, (found, remarks)
