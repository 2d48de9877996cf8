# RUN: %python %s %varlen-build
# REQUIRES: venv
"""Extents that agree with each other only if the caller says so: those that do not
are an error on every target, and nothing is written.

Operands are views of the arguments, whose extents are those of other arguments. So
varlen-run, which compares the arguments of an attention itself, sees none of them.
On a CPU it also stops at the first assertion; there a C caller is what asks.
"""

import ctypes
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import varlen

ROWS, HEADS, KV_HEADS, DIM = 8, 4, 4, 16
BUILD = pathlib.Path(sys.argv[1])

PACKED = ("rows", "heads", "head_dim")
PER_ROW = ("heads", "rows")
SHAPES = {
    **{name: PACKED for name in ("dout", "q", "k", "v", "out", "dq", "dk", "dv")},
    "lse": PER_ROW, "dlse": PER_ROW, "sink": ("heads",), "dsink": ("heads",),
}  # fmt: skip
SIZES = {"rows": ROWS, "heads": HEADS, "head_dim": DIM}

def module(name, operands, options, outs):
    """A call of op `name`: every extent but head_dims, for which code is made,
    is one of an argument."""
    arguments, views, types = ["%cu: memref<3xi32>"], [], {}
    for operand in (*operands, *options, *outs):
        shape = [SIZES[dim] for dim in SHAPES[operand]]
        static = "x".join(map(str, shape))
        strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        arguments.append(f"%{operand}_memory: memref<{static}xf32>")
        sizes = []
        for dim in SHAPES[operand]:
            if dim == "head_dim":
                sizes.append(str(DIM))
                continue
            arguments.append(f"%{operand}_{dim}: memref<?xi32>")
            views.append(f"%{operand}_{dim}_size = memref.dim %{operand}_{dim}, %c0 : memref<?xi32>")
            sizes.append(f"%{operand}_{dim}_size")
        extents = "x".join("?" if size.startswith("%") else size for size in sizes)
        types[operand] = f"memref<{extents}xf32, strided<{strides}>>"
        zeros, ones = ", ".join("0" * len(shape)), ", ".join("1" * len(shape))
        views.append(
            f"%{operand} = memref.subview %{operand}_memory[{zeros}] [{', '.join(sizes)}] "
            f"[{ones}] : memref<{static}xf32> to {types[operand]}"
        )
    all = [types[o] for o in operands] + ["memref<3xi32>"] * 2
    all += [types[o] for o in (*options, *outs)]
    return f"""
func.func @f({", ".join(arguments)}) {{
  %c0 = arith.constant 0 : index
  {chr(10).join(views)}
  varlen.{name} {", ".join(f"%{o}" for o in operands)}, %cu, %cu
      {" ".join(f"{o}(%{o})" for o in options)} outs({", ".join(f"%{o}" for o in outs)})
      : ({", ".join(all)}) -> ()
  return
}}
"""


ATTN = ("attn", ("q", "k", "v"), ("sink",), ("out", "lse"))
GRAD = (
    "attn_grad", ("dout", "q", "k", "v", "out", "lse"), ("dlse", "sink"),
    ("dq", "dk", "dv", "dsink"),
)  # fmt: skip


def inputs(op, wrong):
    """Arguments of the module of `op`, with `wrong` in place of some extents."""
    _, operands, options, outs = op
    extents = {(name, dim): SIZES[dim] for name in SHAPES for dim in SHAPES[name]}
    extents.update(wrong)
    rng = np.random.default_rng(7)
    values = {"cu": np.array([0, 3, 5], np.int32)}
    for name in (*operands, *options, *outs):
        shape = [SIZES[dim] for dim in SHAPES[name]]
        values[f"{name}_memory"] = rng.uniform(-1, 1, shape).astype(np.float32)
        for dim in SHAPES[name]:
            if dim != "head_dim":
                values[f"{name}_{dim}"] = np.zeros(extents[name, dim], np.int32)
    # varlen-run calls arguments by their places.
    return {f"arg{i}": value for i, value in enumerate(values.values())}


HEADS_MESSAGE = "expected positive numbers, that of q a multiple of that of k"
COMMON = [
    ({("v", "rows"): 7}, "v has 7 rows: expected 8, as many as k"),
    ({("v", "heads"): 2}, "v has 2 heads: expected 4, as many as k"),
    ({("q", "heads"): 0}, f"q has 0 heads and k 4: {HEADS_MESSAGE}"),
    (
        {("k", "heads"): 0, ("v", "heads"): 0},
        f"q has 4 heads and k 0: {HEADS_MESSAGE}",
    ),
    (
        {("k", "heads"): 3, ("v", "heads"): 3},
        f"q has 4 heads and k 3: {HEADS_MESSAGE}",
    ),
    ({("sink", "heads"): 3}, "sink has 3 entries: expected 4, one for each head of q"),
    ({("out", "rows"): 7}, "out has 7 rows: expected 8, as many as q"),
    ({("out", "heads"): 3}, "out has 3 heads: expected 4, as many as q"),
    ({("lse", "heads"): 1}, "lse has 1 heads: expected 4, as many as q"),
    ({("lse", "rows"): 0}, "lse has 0 rows: expected 8, as many as q"),
]
GRADIENTS = [
    ({("dout", "rows"): 7}, "dout has 7 rows: expected 8, as many as q"),
    ({("dout", "heads"): 3}, "dout has 3 heads: expected 4, as many as q"),
    ({("dlse", "heads"): 1}, "dlse has 1 heads: expected 4, as many as q"),
    ({("dlse", "rows"): 5}, "dlse has 5 rows: expected 8, as many as q"),
    ({("dq", "rows"): 7}, "dq has 7 rows: expected 8, as many as q"),
    ({("dq", "heads"): 3}, "dq has 3 heads: expected 4, as many as q"),
    ({("dk", "rows"): 7}, "dk has 7 rows: expected 8, as many as k"),
    ({("dk", "heads"): 3}, "dk has 3 heads: expected 4, as many as k"),
    ({("dv", "rows"): 7}, "dv has 7 rows: expected 8, as many as v"),
    ({("dv", "heads"): 3}, "dv has 3 heads: expected 4, as many as v"),
    ({("dsink", "heads"): 3}, "dsink has 3 entries: expected 4, one for each head of q"),
]


def errors_on_gpu(folder, op, cases):
    """What the GPU runtime says about each of the cases, as their only output."""
    source = folder / "module.mlir"
    source.write_text(module(*op), encoding="utf-8")
    paths = [folder / f"{i}.safetensors" for i in range(len(cases))]
    for path, wrong in zip(paths, cases):
        varlen.safetensors.write(path, inputs(op, wrong))
    outputs = [f"-o={path}.out" for path in paths]
    lines = []
    try:
        varlen.call("varlen-run", source, *paths, *outputs, "--device=sim:sm_80")
    except varlen.Error as exception:
        lines = [x for x in str(exception).splitlines() if "error: " in x]
    found = iter(lines)
    written = [pathlib.Path(f"{path}.out").exists() for path in paths]
    errors = [None if done else next(found) for done in written]
    assert next(found, None) is None, lines
    return errors


def descriptor(array):
    class MemRef(ctypes.Structure):
        _fields_ = [
            ("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64), ("sizes", ctypes.c_int64 * array.ndim),
            ("strides", ctypes.c_int64 * array.ndim),
        ]  # fmt: skip

    strides = (stride // array.itemsize for stride in array.strides)
    sizes = MemRef._fields_[3][1](*array.shape)
    return MemRef(array.ctypes.data, array.ctypes.data, 0, sizes,
                  MemRef._fields_[4][1](*strides))  # fmt: skip


def errors_on_cpu(folder, op, cases):
    """What the runtime says to a C caller about each of the cases."""
    library = folder / "library.so"
    llvm = varlen.call("varlen-opt", "-", "--varlen-to-cpu", text=module(*op))
    ir = subprocess.run(
        ["mlir-translate", "--mlir-to-llvmir"], input=llvm, capture_output=True,
        text=True, check=True,
    ).stdout  # fmt: skip
    subprocess.run(
        [shutil.which("clang-22") or "clang", "-x", "ir", "-", "-x", "none", "-O1",
         "-Wno-override-module", "-march=native", "-shared", "-fPIC", "-o", library,
         "-Wl,--whole-archive", BUILD / "lib" / "libVarlenRuntime.a",
         "-Wl,--no-whole-archive", "-lm", "-lpthread"],
        input=ir, text=True, check=True,
    )  # fmt: skip
    library = ctypes.CDLL(library)
    library.varlen_last_error.restype = ctypes.c_char_p
    errors = []
    for wrong in cases:
        values = list(inputs(op, wrong).values())
        before = [value.copy() for value in values]
        descriptors = [descriptor(value) for value in values]
        library._mlir_ciface_f(*map(ctypes.byref, descriptors))
        error = library.varlen_last_error()
        errors.append(error and error.decode())
        library.varlen_clear_error()
        if error:
            for value, old in zip(values, before):
                np.testing.assert_array_equal(value, old)
    return errors


def main():
    for target in (errors_on_cpu, errors_on_gpu):
        for op, bad in ((ATTN, COMMON), (GRAD, COMMON + GRADIENTS)):
            with tempfile.TemporaryDirectory() as folder:
                found = target(pathlib.Path(folder), op, [{}, *(w for w, _ in bad)])
            assert found[0] is None, found[0]
            for error, (wrong, message) in zip(found[1:], bad):
                assert error and error.endswith(message), (target.__name__, op[0], wrong, error)


main()
