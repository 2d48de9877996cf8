"""Kernels of a function for the executor, behind the fake driver of the tests."""

import re
import subprocess

RUNTIME = ["VarlenMGPU", "VarlenGPURuntime", "VarlenRuntime"]
EXECUTOR = ["VarlenGPUExecutor", "VarlenExecutor"]


def build_runtime(build, out):
    """Links out/libVarlenGPU.so of a build's archives: what the kernels call, and the executor,
    where the fake driver finds it."""
    archives = [build / "lib" / f"lib{name}.a" for name in RUNTIME + EXECUTOR]
    subprocess.run(
        ["clang++-22", "-shared", "-Wl,--whole-archive", *archives, "-Wl,--no-whole-archive",
         "-Wl,-soname,libVarlenGPU.so", "-pthread", "-ldl", "-Wl,--no-undefined",
         "-o", out / "libVarlenGPU.so"], check=True,
    )  # fmt: skip


def compile_kernels(path, strided=False, split_numbers=False):
    """Compiles the kernels of the function in PATH.mlir to PATH-kernels.so, which a process
    loads before their image: that is returned."""
    pipeline = (
        f"builtin.module(inline,varlen-add-result-arguments{'{strided}' if strided else ''},"
        f"varlen-to-nvvm{{format=sim bare-pointers {'split-numbers' if split_numbers else ''}}})"
    )
    lowered = subprocess.run(
        ["varlen-opt", f"{path}.mlir", "--verify-each=0", f"--pass-pipeline={pipeline}"],
        check=True, capture_output=True,
    ).stdout  # fmt: skip
    code = subprocess.run(
        ["mlir-translate", "--mlir-to-llvmir"], input=lowered, check=True, capture_output=True
    ).stdout
    # The executor does what takes time: code that is optimised further takes longer to make than
    # it saves. That pairs of bf16 are only looked at as integers, instcombine sees.
    code = subprocess.run(
        ["opt", "-passes=sroa,early-cse,instcombine<no-verify-fixpoint>"], input=code, check=True,
        capture_output=True,
    ).stdout  # fmt: skip
    subprocess.run(
        ["clang-22", "-x", "ir", "-", "-O0", "-fPIC", "-shared", "-Wno-override-module",
         "-o", f"{path}-kernels.so"], input=code, check=True,
    )  # fmt: skip
    return re.search(rb"varlen-executor:[\w.]+", lowered)[0]
