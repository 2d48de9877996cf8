"""Functions on tensors, compiled for AArch64 with Debian's cross compiler and run under
qemu. All functions of a batch are one module, one object and one process."""

import os
import pathlib
import subprocess
import tempfile

import numpy as np

from varlen import tools

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUNTIME = ("Error", "Extents", "ParallelFor", "SplitTiles", "WorkTiles")


def described(array):
    return np.array([array.itemsize, array.ndim, *array.shape], np.int64).tobytes()


def run(functions, target="neon"):
    """The result of each of `functions`: (text of @f, its arguments in their order, an array
    like its result)."""
    module = "\n".join(
        text.replace("func.func @f(", f"func.func @f{i}(") for i, (text, *_) in enumerate(functions)
    )
    words = [np.int64(len(functions)).tobytes()]
    for _, arguments, like in functions:
        words += [np.int64(len(arguments)).tobytes(), described(like)]
        for argument in arguments:
            words += [described(argument), np.ascontiguousarray(argument).tobytes()]
    with tempfile.TemporaryDirectory() as folder:
        def call(*command, **options):
            return subprocess.run(command, check=True, cwd=folder, stdout=subprocess.PIPE, **options).stdout

        path = pathlib.Path(folder)
        path.joinpath("in").write_bytes(b"".join(words))
        code = tools.call(
            "varlen-opt", "-", f"--varlen-to-cpu=target={target}", "--verify-each=0", text=module
        )
        code = call("mlir-translate", "--mlir-to-llvmir", input=code.encode())
        # What the passes write is right; aarch64-attn.test has LLVM's optimiser, too.
        call("llc", "-O0", "-filetype=obj", "-relocation-model=pic", "-o", "code.o",
             input=code)  # fmt: skip
        flags = ["-O1", "-I", str(ROOT / "include")]
        call("aarch64-linux-gnu-g++", "-std=c++17", "-fno-exceptions", "-fno-rtti",
             "-fno-threadsafe-statics", *flags, "-c",
             *(str(ROOT / f"lib/Runtime/{name}.cpp") for name in RUNTIME))  # fmt: skip
        call("aarch64-linux-gnu-gcc", *flags, str(ROOT / "test/Integration/Inputs/call-functions.c"),
             "code.o", *(f"{name}.o" for name in RUNTIME), "-rdynamic", "-pthread", "-lm", "-ldl",
             "-o", "call-functions")  # fmt: skip
        call("qemu-aarch64", "call-functions", "in", "out",
             env={"QEMU_LD_PREFIX": "/usr/aarch64-linux-gnu", **os.environ})  # fmt: skip
        data = path.joinpath("out").read_bytes()
    results, place = [], 0
    for _, _, like in functions:
        part = data[place : place + like.nbytes]
        results.append(np.frombuffer(part, like.dtype).reshape(like.shape))
        place += like.nbytes
    return results
