"""A compiled function in a program of IREE, by what is installed: examples/iree, with the
reference's numbers."""
# REQUIRES: iree, package
# RUN: %install-varlen
# RUN: rm -rf %t && mkdir %t
# RUN: %prefix/bin/varlen-opt %varlen-src/examples/iree/attention.mlir --emit=obj --header=%t/attention.h -o %t/attention.o
# RUN: cc -std=c11 -Wall -Wextra -Werror -shared -fPIC -I %t -I %varlen-src/examples/iree \
# RUN:   %varlen-src/examples/iree/attention.c %t/attention.o %prefix/lib/libVarlenRuntime.a -lm -pthread -o %t/plugin.so
# RUN: %python %s %t %varlen-src/examples/iree | FileCheck %s

# CHECK: right
# CHECK: attention: cu_seqlens_q[2] = 4 is smaller than cu_seqlens_q[1] = 5
# CHECK: the invocation fails

import pathlib
import subprocess
import sys

import numpy
import varlen

folder, source = map(pathlib.Path, sys.argv[1:])
tools = pathlib.Path(sys.executable).parent


def run(inputs):
    for name, array in inputs.items():
        numpy.save(folder / f"{name}.npy", array)
    return subprocess.run(
        [tools / "iree-run-module", "--device=local-task", "--module=program.vmfb",
         "--function=block", "--executable_plugin=./plugin.so",
         *(f"--input=@{name}.npy" for name in inputs),
         "--output=@y.npy", "--output=@lse.npy"],
        cwd=folder, check=False, capture_output=True, text=True,
    )  # fmt: skip


def main():
    subprocess.run(
        [tools / "iree-compile", source / "program.mlir", "--iree-hal-target-device=local",
         "--iree-hal-local-target-device-backends=llvm-cpu",
         "--iree-llvmcpu-target-cpu=generic", "-o", folder / "program.vmfb"], check=True,
    )  # fmt: skip
    rng = numpy.random.default_rng(0)
    cu = numpy.array([0, 5, 5, 6, 23, 40], numpy.int32)
    x, k, v = (rng.standard_normal((40, heads, 64), numpy.float32) for heads in (4, 2, 2))
    inputs = {"x": x, "k": k, "v": v, "cu": cu}
    done = run(inputs)
    if done.returncode:
        sys.exit(done.stderr)
    options = {"window": (-1, 0)}
    golden = varlen.reference.attention(x + x, k, v, cu, cu, **options)
    plain = varlen.reference.plain(x + x, k, v, cu, cu, **options)
    y, lse = numpy.load(folder / "y.npy"), numpy.load(folder / "lse.npy")
    varlen.tolerance.check(y, x + golden[0], x + plain[0], "f32", "y")
    # It is never rounded to less than f32.
    numpy.testing.assert_allclose(lse, golden[1], rtol=1e-5, atol=1e-5)
    print("right")
    done = run({**inputs, "cu": numpy.array([0, 5, 4, 6, 23, 40], numpy.int32)})
    print(done.stderr)
    print("the invocation", "fails" if done.returncode else "succeeds")


main()
