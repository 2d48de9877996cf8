#!/usr/bin/env python3
"""Random cu_seqlens, valid and broken, against compiled code.

Compiles Inputs/fuzz-cu-seqlens.mlir, and the gradients in Inputs/fuzz-gradients.mlir,
through the whole pipeline, links it with the runtime and Inputs/fuzz-cu-seqlens.cpp,
all under the address sanitizer, and runs the cases. `make fuzz` runs 100000; as a
test it runs a sample. With --device=sim:sm_80 the functions become kernels for a
GPU, in 16-bit types, and run in the executor, which looks for races and checks
every access itself: 20000 cases.
"""
# RUN: %python %s --build %varlen-build --work %t --count 2000 | FileCheck %s
# RUN: %python %s --build %varlen-build --work %t --device=sim:sm_80 --count 300 | FileCheck %s
# CHECK: {{[1-9][0-9]*}} valid and {{[1-9][0-9]*}} broken cases, 0 failures

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INPUTS = ROOT / "test" / "Integration" / "Inputs"


def run(command):
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def read_functions():
    names = ("fuzz-cu-seqlens.mlir", "fuzz-gradients.mlir")
    return "\n".join((INPUTS / name).read_text() for name in names)


def compile_module(build, llvm, work):
    """The compiled functions as an object whose accesses are instrumented too."""
    lowered, text = work / "fuzz.mlir", work / "functions.mlir"
    text.write_text(read_functions())
    run([build / "bin" / "varlen-opt", text, "--varlen-to-cpu", "-o", lowered])
    ir = run([llvm / "bin" / "mlir-translate", "--mlir-to-llvmir", lowered])
    # The sanitizer instruments the functions that ask for it.
    ir, functions = re.subn(
        r"^(define [^\n]*?)((?: ![^\n]*)? \{)$",
        r"\1 sanitize_address\2",
        ir,
        flags=re.MULTILINE,
    )
    if not functions:
        sys.exit(f"{lowered}: wanted functions, got none")
    (work / "fuzz.ll").write_text(ir)
    run(
        [llvm / "bin" / "clang", "-O2", "-march=native", "-fsanitize=address", "-c"]
        + ["-Wno-override-module", work / "fuzz.ll", "-o", work / "module.o"]
    )
    return work / "module.o"


def compile_kernels(build, llvm, work, chip):
    """The compiled functions as GPU code for the executor."""
    text = read_functions()
    # Tensors of rank 3 are inputs and results; lse and sinks stay f32.
    text = re.sub(r"(memref<\?x\d+x\d+x)f32>", r"\1bf16>", text)
    text = re.sub(r"(memref<\?x\d+x\d+x)f64>", r"\1f16>", text)
    text = text.replace("xf64>", "xf32>")
    (work / "kernels.mlir").write_text(text)
    lowered = work / "fuzz.mlir"
    run(
        [build / "bin" / "varlen-opt", work / "kernels.mlir", "-o", lowered]
        + [f"--varlen-to-nvvm=chip={chip} format=sim"]
    )
    ir = run([llvm / "bin" / "mlir-translate", "--mlir-to-llvmir", lowered])
    (work / "fuzz.ll").write_text(ir)
    run(
        [llvm / "bin" / "clang", "-O1", "-march=native", "-c"]
        + ["-Wno-override-module", work / "fuzz.ll", "-o", work / "module.o"]
    )
    return work / "module.o"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--llvm", default="/usr/lib/llvm-22", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, help="a folder for the program")
    parser.add_argument("--device", default="cpu", help="cpu or sim:CHIP")
    parser.add_argument("--count", type=int, help="cases; default: see above")
    parser.add_argument("--seed", default=1, type=int, help="seed of the first case")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    work = arguments.work or build / "fuzz"
    work.mkdir(parents=True, exist_ok=True)

    program = work / "fuzz"
    compiler = [arguments.llvm / "bin" / "clang++", "-std=c++17", "-O2", "-g"]
    compiler += ["-march=native", "-pthread", f"-I{ROOT}/include"]
    compiler += [INPUTS / "fuzz-cu-seqlens.cpp"]
    kind, _, chip = arguments.device.partition(":")
    if kind == "sim":
        names = ["GPUExecutor", "GPURuntime", "Executor", "Runtime"]
        libraries = [build / "lib" / f"libVarlen{name}.a" for name in names]
        compiler += ["-DFUZZ_EXECUTOR", "-fuse-ld=lld"]
        compiler += [compile_kernels(build, arguments.llvm, work, chip)]
        run([*compiler, *libraries, "-ldl", "-o", program])
    else:
        compiler += ["-fsanitize=address", *(ROOT / "lib/Runtime").glob("*.cpp")]
        compiler += [compile_module(build, arguments.llvm, work)]
        run([*compiler, "-o", program])
    count = arguments.count or (20000 if kind == "sim" else 100000)
    status = subprocess.run(
        [program, str(count), str(arguments.seed)], check=False
    ).returncode
    if status < 0:
        sys.exit(f"the program ended by signal {-status}")
    return status


if __name__ == "__main__":
    sys.exit(main())
