# RUN: %python %s %varlen-build
# REQUIRES: venv
"""Extents that agree with each other only if the caller says so: those that do not
are an error on every target, and nothing is written.

Operands are views of the arguments, whose extents are those of other arguments. So
varlen-run, which compares the arguments of an attention itself, sees none of them.
On a CPU it also stops at the first assertion; there a C caller is what asks. It also
asks for an attention that has no tiles, as its head_dims are not known.
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
LISTS = {"cu_q": [0, 3, 5], "cu_k": [0, 2, 8], "used_q": [3, 1], "used_k": [0, 4],
         "offset": [0, -1]}  # fmt: skip


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


def module_without_tiles(name, operands, options, outs):
    """A call of op `name` on tensors, every extent of which is dynamic."""
    types = {x: f"tensor<{'?x' * len(SHAPES[x])}f32>" for x in (*operands, *options, *outs)}
    types |= dict.fromkeys(LISTS, "tensor<?xi32>")
    tensors = [*operands, *LISTS, *options]
    # dlse is between the lists in the type of the op, sink behind them.
    lists = [*LISTS]
    typed = [*operands, *lists[:2], *options[:-1], *lists[2:], options[-1]]
    results = ", ".join(types[x] for x in outs)
    return f"""
func.func @f({", ".join(f"%{x}: {types[x]}" for x in tensors)}) -> ({results}) {{
  %r:{len(outs)} = varlen.{name} {", ".join(f"%{x}" for x in operands)}, %cu_q, %cu_k
      seqused_q(%used_q) seqused_k(%used_k) q_offset(%offset)
      {" ".join(f"{x}(%{x})" for x in options)}
      : ({", ".join(types[x] for x in typed)}) -> ({results})
  return {", ".join(f"%r#{i}" for i in range(len(outs)))} : {results}
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


def inputs_without_tiles(op, wrong):
    """The same of the module without tiles; `wrong` may have lists, too."""
    _, operands, options, _ = op
    rng = np.random.default_rng(7)

    def tensor(name):
        shape = [wrong.get((name, dim), SIZES[dim]) for dim in SHAPES[name]]
        return rng.uniform(-1, 1, shape).astype(np.float32)

    values = {name: tensor(name) for name in operands}
    values |= {x: np.array(wrong.get(x, LISTS[x]), np.int32) for x in LISTS}
    return values | {name: tensor(name) for name in options}


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

POSITIVE = "expected a positive number"
WITHOUT_TILES = [
    ({("k", "head_dim"): 3}, "k has a head_dim of 3: expected 16, that of q"),
    (
        {("q", "head_dim"): 0, ("k", "head_dim"): 0},
        f"q has a head_dim of 0: {POSITIVE}",
    ),
    ({("v", "head_dim"): 0}, f"v has a head_dim of 0: {POSITIVE}"),
    ({"cu_q": []}, "cu_seqlens_q is empty: expected at least 1 entry, the 0 it starts with"),
    ({"cu_q": [1, 3, 5]}, "cu_seqlens_q[0] = 1: cu_seqlens must start at 0"),
    (
        {"cu_k": [0, 8, -(2**31)]},
        f"cu_seqlens_k[2] = {-(2**31)} is smaller than cu_seqlens_k[1] = 8: "
        "cu_seqlens must not decrease",
    ),
    (
        {"cu_q": [0, 3, 2**30]},
        f"cu_seqlens_q[2] = {2**30} is larger than the 8 rows of q: "
        "cu_seqlens must end within them",
    ),
    (
        {"cu_k": [0, 8]},
        "cu_seqlens_q has 3 entries and cu_seqlens_k 2: expected the same number",
    ),
    (
        {"used_q": [3, -1]},
        "seqused_q[1] = -1: expected 0 to 2, the length of the sequence's slot in cu_seqlens_q",
    ),
    (
        {"used_k": [2**30, 4]},
        f"seqused_k[0] = {2**30}: expected 0 to 2, the length of the sequence's slot in "
        "cu_seqlens_k",
    ),
    (
        {"offset": []},
        "q_offset has 0 entries: expected 2, one for each sequence of cu_seqlens_q",
    ),
    ({("dout", "head_dim"): 15}, "dout has a head_dim of 15: expected 16, that of v"),
    ({("out", "head_dim"): 17}, "out has a head_dim of 17: expected 16, that of v"),
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


def memref_type(rank):
    class MemRef(ctypes.Structure):
        _fields_ = [
            ("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64), ("sizes", ctypes.c_int64 * rank),
            ("strides", ctypes.c_int64 * rank),
        ]  # fmt: skip

    return MemRef


def descriptor(array):
    type = memref_type(array.ndim)
    strides = (stride // array.itemsize for stride in array.strides)
    return type(array.ctypes.data, array.ctypes.data, 0, type._fields_[3][1](*array.shape),
                type._fields_[4][1](*strides))  # fmt: skip


def compile_library(folder, text):
    """Makes a shared library of a module, with the runtime in it."""
    library = folder / "library.so"
    llvm = varlen.call("varlen-opt", "-", "--varlen-to-cpu", text=text)
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
    return library


def call(library, values, *results):
    """Calls @f on arrays, with descriptors of its results; returns its error."""
    before = [value.copy() for value in values]
    descriptors = [*results, *map(descriptor, values)]
    library._mlir_ciface_f(*map(ctypes.byref, descriptors))
    error = library.varlen_last_error()
    library.varlen_clear_error()
    if error:
        for value, old in zip(values, before):
            np.testing.assert_array_equal(value, old)
    return error and error.decode()


def errors_on_cpu(folder, op, cases):
    """What the runtime says to a C caller about each of the cases."""
    library = compile_library(folder, module(*op))
    return [call(library, [*inputs(op, wrong).values()]) for wrong in cases]


def errors_without_tiles(folder, op, cases):
    """The same where there are no tiles; what a good call returns has to be right."""
    outs = op[3]
    fields = [(name, memref_type(len(SHAPES[name]))) for name in outs]
    results_type = type("Results", (ctypes.Structure,), {"_fields_": fields})
    library = compile_library(folder, module_without_tiles(*op))
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    errors = []
    for wrong in cases:
        values, results = inputs_without_tiles(op, wrong), results_type()
        errors.append(call(library, [*values.values()], results))
        for name in outs:
            memref = getattr(results, name)
            if not wrong:
                pointer = ctypes.cast(memref.aligned, ctypes.POINTER(ctypes.c_float))
                got = np.ctypeslib.as_array(pointer, tuple(memref.sizes))
                check_result(name, got, values)
            free(memref.allocated)
    return errors


def check_result(name, got, values):
    """Compares out and lse with the reference, the shapes of others."""
    assert got.shape == tuple(SIZES[dim] for dim in SHAPES[name]), (name, got.shape)
    if name not in ("out", "lse"):
        return
    arguments = [values[x] for x in ("q", "k", "v", "cu_q", "cu_k")]
    out, lse = varlen.reference.attention(
        *arguments, seqused_q=values["used_q"], seqused_k=values["used_k"],
        q_offset=values["offset"], sink=values["sink"],
    )  # fmt: skip
    np.testing.assert_allclose(got, {"out": out, "lse": lse}[name], rtol=1e-4, atol=1e-5)


def of_inputs(op, bad):
    """The cases about what `op` reads."""
    read = {*op[1], *op[2], *LISTS}
    return [
        (wrong, message) for wrong, message in bad
        if all((key if key in LISTS else key[0]) in read for key in wrong)
    ]  # fmt: skip


def main():
    for target in (errors_on_cpu, errors_on_gpu, errors_without_tiles):
        for op, bad in ((ATTN, COMMON), (GRAD, COMMON + GRADIENTS)):
            if target is errors_without_tiles:
                bad = of_inputs(op, bad + WITHOUT_TILES)
            with tempfile.TemporaryDirectory() as folder:
                found = target(pathlib.Path(folder), op, [{}, *(w for w, _ in bad)])
            assert found[0] is None, found[0]
            for error, (wrong, message) in zip(found[1:], bad):
                assert error and error.endswith(message), (target.__name__, op[0], wrong, error)


main()
