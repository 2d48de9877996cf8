"""The folder of `make gpu-kit`: right numbers from it in the executor, and what
its host code asks of a CUDA driver, which is a fake here."""
# REQUIRES: venv
# UNSUPPORTED: asan
# RUN: rm -rf %t && mkdir %t
# RUN: %python %varlen-src/benchmarks/gpu/build.py --build %varlen-build --jobs=1 \
# RUN:   --only '^single bf16 (h6/2 d128 window.-1,0|h6/6 d64 window.84,0. backward)' --chips=sim --out=%t/sim
# RUN: %python %t/sim/run.py --check --device=executor --out=%t/sim.json \
# RUN:   --only '^single bf16 (h6/2 d128 window.-1,0|h6/6 d64 window.84,0. backward)' | FileCheck %s --check-prefix=SIM
# SIM: 2 batches: 2 right

# RUN: %python %varlen-src/benchmarks/gpu/build.py --build %varlen-build --jobs=1 \
# RUN:   --only '^single bf16 h6/2 d128 window.-1,0' --chips=sm_80 --out=%t/cuda
# RUN: clang -shared -fPIC %S/Inputs/fake-cuda.c -o %t/libcuda.so.1
# RUN: %python %s %t | FileCheck %s

# The module is loaded once, and a kernel that wants more than 48 KiB asks for it.
# CHECK: ok: right
# CHECK-NEXT: load {{fatbin|text}}
# CHECK-NEXT: launch {{.*}}_tiles_segments, grid {{[1-9].*}}, stream 0x80
# CHECK-NEXT: launch {{.*}}_tiles_merge
# CHECK-NEXT: launch {{.*}}_tiles,
# CHECK-NEXT: attribute 8 of {{.*}}_attn = [[SHARED:[0-9]+]]
# CHECK-NEXT: launch {{.*}}_attn, grid {{[1-9][0-9]+}}, block {{[0-9]+}}, shared [[SHARED]], stream 0x80, first q
# CHECK-NEXT: launch {{.*}}_tiles_segments
# CHECK-NEXT: launch {{.*}}_tiles_merge
# CHECK-NEXT: launch {{.*}}_tiles,
# CHECK-NEXT: launch {{.*}}_attn

# CHECK: little shared memory: a kernel wants {{[0-9]+}} bytes of shared memory: Fake GPU (sm_80) has 65536 per block
# CHECK: other chip: the kernels were not made for this GPU, Fake GPU (sm_80)
# CHECK: refused launch: launching a grid of {{.*}}: a fake error (FAKE)
# CHECK: no memory: allocating {{.*}} bytes on the GPU: a fake error (FAKE)
# CHECK: no start: the CUDA driver does not start: a fake error

import json
import os
import pathlib
import subprocess
import sys

folder = pathlib.Path(sys.argv[1])
CASES = {
    "ok": {},
    "little shared memory": {"FAKE_CUDA_SHARED": "65536"},
    "other chip": {"FAKE_CUDA_FAIL": "cuModuleLoadDataEx:209"},
    "refused launch": {"FAKE_CUDA_FAIL": "cuLaunchKernelEx:1"},
    "no memory": {"FAKE_CUDA_FAIL": "cuMemAllocAsync:2"},
    "no start": {"FAKE_CUDA_FAIL": "cuInit:100"},
}


def call():
    """Calls the function of the folder twice on a stream; prints what it says."""
    sys.path.insert(0, str(folder / "cuda"))
    import functions
    import numpy

    name = next(iter(json.loads((folder / "cuda/functions.json").read_text())["functions"]))
    try:
        runtime = functions.Runtime(folder / "cuda")
        rows = numpy.zeros((64, 6, 128), numpy.uint16)
        keys = numpy.zeros((64, 2, 128), numpy.uint16)
        cu = numpy.array([0, 64], numpy.int32)
        lse = numpy.zeros((6, 64), numpy.float32)
        buffers = [runtime.buffer(x) for x in (rows, keys, keys, cu, cu, rows, lse)]
        function = runtime.function(folder / "cuda/sm_80" / f"{name}.so", name)
        bound = function.bind([(b.pointer, b.shape) for b in buffers])
        runtime.library.varlen_gpu_set_stream(0x80)
        for _ in range(2):
            bound()
            runtime.raise_error()
        runtime.check(0x80)
        print("right")
        names = ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "out", "lse")
        log = pathlib.Path(os.environ["FAKE_CUDA_LOG"]).read_text()
        for buffer, text in zip(buffers, names):
            log = log.replace(f"first {hex(buffer.pointer)}", f"first {text}")
        print(log, end="")
    except functions.Error as error:
        print(error)


if len(sys.argv) > 2:
    call()
else:
    for case, more in CASES.items():
        environment = {
            **os.environ, "LD_LIBRARY_PATH": str(folder), "FAKE_CUDA_SHARED": "166912",
            "FAKE_CUDA_LOG": str(folder / "log"), **more,
        }  # fmt: skip
        print(f"{case}: ", end="", flush=True)
        command = [sys.executable, __file__, str(folder), "call"]
        subprocess.run(command, env=environment, check=True)
