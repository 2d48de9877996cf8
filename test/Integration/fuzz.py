#!/usr/bin/env python3
"""Random cu_seqlens, valid and broken, against compiled code.

Compiles Inputs/fuzz-cu-seqlens.mlir through the whole pipeline, links it with
the runtime and Inputs/fuzz-cu-seqlens.cpp, all under the address sanitizer, and
runs the cases. `make fuzz` runs 100000; as a test it runs a sample.
"""
# RUN: %python %s --build %varlen-build --work %t --count 2000 | FileCheck %s
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


def compile_module(build, llvm, work):
    """The compiled functions as an object whose accesses are instrumented too."""
    lowered = work / "fuzz.mlir"
    run(
        [build / "bin" / "varlen-opt", INPUTS / "fuzz-cu-seqlens.mlir"]
        + ["--varlen-to-cpu", "-o", lowered]
    )
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--llvm", default="/usr/lib/llvm-22", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, help="a folder for the program")
    parser.add_argument("--count", default=100000, type=int)
    parser.add_argument("--seed", default=1, type=int, help="seed of the first case")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    work = arguments.work or build / "fuzz"
    work.mkdir(parents=True, exist_ok=True)

    module = compile_module(build, arguments.llvm, work)
    program = work / "fuzz"
    run(
        [arguments.llvm / "bin" / "clang++", "-std=c++17", "-O2", "-g"]
        + ["-march=native", "-fsanitize=address", "-pthread", f"-I{ROOT}/include"]
        + [INPUTS / "fuzz-cu-seqlens.cpp", *(ROOT / "lib/Runtime").glob("*.cpp")]
        + [module, "-o", program]
    )
    status = subprocess.run(
        [program, str(arguments.count), str(arguments.seed)], check=False
    ).returncode
    if status < 0:
        sys.exit(f"the program ended by signal {-status}")
    return status


if __name__ == "__main__":
    sys.exit(main())
