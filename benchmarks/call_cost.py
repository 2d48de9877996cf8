#!/usr/bin/env python3
"""What a call of a compiled function costs beside its kernel, in C.

The function is examples/iree/attention.mlir (f32, 4 heads on 2, head_dim 64, causal), the
batch one sequence without rows, and one of a single row. It is called by the header of its
object (--emit=obj) and by libvarlen-c, whose caller has a workspace or not. The kernel is
what the runtime's threads are given to do; it is timed alone. Nanoseconds of a call are the
median, and the least, of repetitions of 1000 calls.

    call_cost.py --build build [--threads 1] [--repetitions 101]
"""

import argparse
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCE = ROOT / "examples" / "iree" / "attention.mlir"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--threads", default=1, type=int)
    parser.add_argument("--repetitions", default=101, type=int)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [build / "bin" / "varlen-opt", SOURCE, "--emit=obj", "--header=attention.h",
             "-o", "attention.o"], cwd=folder, check=True,
        )  # fmt: skip
        subprocess.run(
            ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-I.",
             f"-I{ROOT / 'include'}", ROOT / "benchmarks" / "call_cost.c", "attention.o",
             build / "lib" / "libVarlenRuntime.a", f"-L{build / 'lib'}", "-lvarlen-c",
             f"-Wl,-rpath,{build / 'lib'}", "-lm", "-pthread", "-o", "call_cost"],
            cwd=folder, check=True,
        )  # fmt: skip
        numbers = [str(arguments.threads), str(arguments.repetitions)]
        subprocess.run(["./call_cost", SOURCE, *numbers], cwd=folder, check=True)


if __name__ == "__main__":
    main()
