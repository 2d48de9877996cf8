# RUN: %python %s %t
"""Sequence lists that are wrong: one line that names the list, the index and the
value, and no output file."""

import pathlib
import re
import sys

import numpy as np

import varlen
from varlen import safetensors, text

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
module = folder / "module.mlir"

GOOD = {"cu_seqlens_q": [0, 3, 7], "cu_seqlens_k": [0, 4, 6],
        "seqused_q": [3, 2], "seqused_k": [0, 2]}  # fmt: skip
BAD = [
    ({"cu_seqlens_q": [1, 3, 7]}, "cu_seqlens_q[0] = 1: cu_seqlens must start at 0"),
    (
        {"cu_seqlens_q": [0, 7, 3]},
        "cu_seqlens_q[2] = 3 is smaller than cu_seqlens_q[1] = 7: "
        "cu_seqlens must not decrease",
    ),
    (
        {"cu_seqlens_k": [0, 4, -6]},
        "cu_seqlens_k[2] = -6 is smaller than cu_seqlens_k[1] = 4: "
        "cu_seqlens must not decrease",
    ),
    (
        {"cu_seqlens_k": [0, 4, 9]},
        "cu_seqlens_k[2] = 9 is larger than the 8 rows of k: "
        "cu_seqlens must end within them",
    ),
    (
        {"seqused_q": [3, -1]},
        "seqused_q[1] = -1: expected 0 to 4, the length of the sequence's slot in "
        "cu_seqlens_q",
    ),
    (
        {"seqused_k": [5, 0]},
        "seqused_k[0] = 5: expected 0 to 4, the length of the sequence's slot in "
        "cu_seqlens_k",
    ),
]
tensors = {
    "q": np.ones((8, 2, 16), np.float32),
    "k": np.ones((8, 1, 16), np.float32),
    "v": np.ones((8, 1, 16), np.float32),
    # The programs of gradients.
    "dout": np.ones((8, 2, 16), np.float32),
    "out": np.ones((8, 2, 16), np.float32),
    "lse": np.ones((2, 8), np.float32),
    "dlse": np.ones((2, 8), np.float32),
}


def lines_of(error):
    """Without those that say how long a slow machine has taken."""
    return [x for x in str(error).splitlines() if not re.search(r", \d+ s$", x)]


def make(function, index, **options):
    if function == text.attn_grad:
        options["dlse"] = True
    module.write_text(
        function(heads=2, kv_heads=1, head_dim=16, seqused_q=True, seqused_k=True,
                 index=index, **options)
    )  # fmt: skip


def run(lists, index):
    dtype = {"i32": np.int32, "i64": np.int64}[index]
    lists = {key: np.array(value, dtype) for key, value in lists.items()}
    safetensors.write(folder / "in", {**tensors, **lists})
    varlen.call("varlen-run", module, folder / "in", "-o", folder / "out")


for function, index in (
    (text.attn, "i32"), (text.attn, "i64"), (text.attn_grad, "i32"),
):  # fmt: skip
    make(function, index)
    (folder / "out").unlink(missing_ok=True)
    run(GOOD, index)
    (folder / "out").unlink()
    for change, message in BAD:
        try:
            run({**GOOD, **change}, index)
        except varlen.Error as error:
            assert lines_of(error) == [f"error: {message}"], error
        else:
            raise AssertionError(f"accepted: {change}")
        assert not (folder / "out").exists()

# Lists of the wrong length, and tensors that must agree.
good = dict(tensors)
OTHER = [
    (
        {"cu_seqlens_q": [0, 3, 7, 7]},
        "cu_seqlens_q has 4 entries and cu_seqlens_k 3: expected the same number",
    ),
    (
        {"cu_seqlens_q": [], "cu_seqlens_k": []},
        "cu_seqlens_q is empty: expected at least 1 entry, the 0 it starts with",
    ),
    (
        {"seqused_q": [3]},
        "seqused_q has 1 entries: expected 2, one for each sequence of cu_seqlens_q",
    ),
    (
        {"seqused_k": [0, 2, 0]},
        "seqused_k has 3 entries: expected 2, one for each sequence of cu_seqlens_q",
    ),
    (
        {"k": np.ones((9, 1, 16), np.float32)},
        "argument 'v' has 8 key rows and 'k' 9: expected the same number",
    ),
    (
        {"v": np.ones((5, 1, 16), np.float32)},
        "argument 'v' has 5 key rows and 'k' 8: expected the same number",
    ),
]
GRADIENTS = [
    (
        {name: np.ones(shape, np.float32)},
        f"argument '{name}' has 7 query rows and 'q' 8: expected the same number",
    )
    for name, shape in (
        ("dout", (7, 2, 16)), ("out", (7, 2, 16)), ("lse", (2, 7)), ("dlse", (2, 7)),
    )
]  # fmt: skip


def check_cases(cases):
    global tensors
    good = dict(tensors)
    for change, message in cases:
        tensors = {**good, **{k: v for k, v in change.items() if k in good}}
        lists = {**GOOD, **{k: v for k, v in change.items() if k in GOOD}}
        try:
            run(lists, "i64")
        except varlen.Error as error:
            assert lines_of(error) == [f"error: {message}"], error
        else:
            raise AssertionError(f"accepted: {list(change)}")
        assert not (folder / "out").exists()
    tensors = good


make(text.attn, "i64")
check_cases(OTHER)
make(text.attn_grad, "i64")
check_cases(OTHER + GRADIENTS)

# Buffers for results are arguments like others.
make(text.attn_grad, "i64", buffers=True)
good = dict(tensors)
tensors |= {f"d{key}": tensors[key] for key in ("q", "k", "v")}
run(GOOD, "i64")
(folder / "out").unlink()
check_cases(
    [
        (
            {"dv": np.ones((9, 1, 16), np.float32)},
            "argument 'dv' has 9 key rows and 'k' 8: expected the same number",
        )
    ]
)
tensors = good

# Extents that only run time knows.
module.write_text(
    text.attn(heads=None, kv_heads=None, head_dim=None, v_head_dim=16, sink=True)
)
shapes = {"q": (8, 4, 16), "k": (8, 2, 16), "v": (8, 2, 16), "sink": (4,)}
lists = {"cu_seqlens_q": [0, 8], "cu_seqlens_k": [0, 8]}


def run_shapes(change):
    global tensors
    sizes = {**shapes, **change}
    tensors = {name: np.ones(shape, np.float32) for name, shape in sizes.items()}
    run(lists, "i32")


run_shapes({})
for change, message in (
    ({"q": (8, 3, 16), "sink": (3,)}, "an attention has 3 query heads for 2 kv "
     "heads: expected a multiple, and at least 1 of each"),
    ({"k": (8, 0, 16), "v": (8, 0, 16)}, "an attention has 4 query heads for 0 kv "
     "heads: expected a multiple, and at least 1 of each"),
    ({"q": (8, 0, 16), "sink": (0,)}, "an attention has 0 query heads for 2 kv "
     "heads: expected a multiple, and at least 1 of each"),
    ({"q": (8, 4, 0), "k": (8, 2, 0)}, "an attention has 0 elements in a head: "
     "expected at least 1"),
    ({"k": (8, 4, 16)}, "argument 'v' has 2 kv heads and 'k' 4: expected the same "
     "number"),
    ({"k": (8, 2, 8)}, "argument 'k' has 8 elements in a head and 'q' 16: expected the "
     "same number"),
    ({"sink": (2,)}, "argument 'sink' has 2 query heads and 'q' 4: expected the same "
     "number"),
):  # fmt: skip
    try:
        run_shapes(change)
    except varlen.Error as error:
        # A program of open extents may carry remarks about its speed.
        assert lines_of(error)[-1] == f"error: {message}", error
    else:
        raise AssertionError(f"accepted: {change}")

# What is computed in the program is checked by the program.
module.write_text(
    """
func.func @computed(%q: tensor<?x1x16xf32> {varlen.name = "q"},
                    %k: tensor<?x1x16xf32> {varlen.name = "k"},
                    %cu: tensor<?xi32> {varlen.name = "cu_seqlens_q"},
                    %shift: tensor<?xi32> {varlen.name = "shift"})
    -> tensor<?x1x16xf32> {
  %sum = linalg.add ins(%cu, %shift : tensor<?xi32>, tensor<?xi32>)
      outs(%cu : tensor<?xi32>) -> tensor<?xi32>
  %out, %lse = varlen.attn %q, %k, %k, %sum, %sum
      : (tensor<?x1x16xf32>, tensor<?x1x16xf32>, tensor<?x1x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x1x16xf32>, tensor<1x?xf32>)
  return %out : tensor<?x1x16xf32>
}
"""
)
tensors = {name: np.ones((8, 1, 16), np.float32) for name in ("q", "k")}
run({"cu_seqlens_q": [0, 8], "shift": [0, 0]}, "i32")
for change, message in (
    ({"shift": [1, 0]}, "cu_seqlens_q must start at 0"),
    ({"shift": [0, 1]}, "cu_seqlens_q must end at or before the last row of q"),
    ({"shift": [0]}, "dimension #0 of input/output operand #1 is incompatible"),
):
    try:
        run({"cu_seqlens_q": [0, 8], **change}, "i32")
    except varlen.Error as error:
        lines = lines_of(error)
        assert lines[-1].startswith(f"{module}:"), error
        assert f": error: {message}" in lines[-1], error
    else:
        raise AssertionError(f"accepted: {change}")

# The same lists, checked by the kernels: the first that looks at them says what
# is wrong, and none reads or writes what is not there.
DEVICE = ["--device=sim:sm_80", "--device-checks", "-o", folder / "out"]
WIDE = {"q": (8, 2, 64), "k": (8, 1, 64), "v": (8, 1, 64)}


def run_on_device(lists, index):
    dtype = {"i32": np.int32, "i64": np.int64}[index]
    values = {key: np.array(value, dtype) for key, value in lists.items()}
    for name, shape in WIDE.items():
        values[name] = np.ones(shape, np.float16)
    safetensors.write(folder / "in", values)
    varlen.call("varlen-run", module, folder / "in", *DEVICE)


LENGTHS = [case for case in OTHER if not set(case[0]) & set(WIDE)]
for index in ("i32", "i64"):
    module.write_text(
        text.attn(dtype="f16", heads=2, kv_heads=1, seqused_q=True, seqused_k=True,
                  index=index)
    )  # fmt: skip
    (folder / "out").unlink(missing_ok=True)
    run_on_device(GOOD, index)
    (folder / "out").unlink()
    for change, message in BAD + LENGTHS:
        # One compilation each: half of them for either type.
        if (len(message) % 2 == 0) == (index == "i32"):
            continue
        try:
            run_on_device({**GOOD, **change}, index)
        except varlen.Error as error:
            assert lines_of(error) == [f"error: {message}"], error
        else:
            raise AssertionError(f"accepted by the kernels: {change}")
        assert not (folder / "out").exists()
