"""The folder of `make gpu-kit`: right numbers from it in the executor, and what
its host code asks of a CUDA driver, which is a fake here."""
# REQUIRES: venv
# UNSUPPORTED: asan
# RUN: rm -rf %t && mkdir %t
# RUN: %python %varlen-src/benchmarks/gpu/build.py --build %varlen-build --jobs=1 \
# RUN:   --only '^single bf16 h6/2 d128 window.-1,(0|-1. backward)' --chips=sim --out=%t/sim
# RUN: %python %t/sim/run.py --check --device=executor --out=%t/sim.json \
# RUN:   --only '^single bf16 h6/2 d128 window.-1,(0|-1. backward)' | FileCheck %s --check-prefix=SIM
# SIM: 2 batches: 2 right

# The same by the CUDA backend, in memory in the order of streams, with garbage in
# what is new and what is freed. One failing launch is seen.
# RUN: env LD_LIBRARY_PATH=%varlen-build/lib/fake-cuda GLIBC_TUNABLES=glibc.rtld.optional_static_tls=131072 \
# RUN:   %python %t/sim/run.py --check --device=cuda --out=%t/sim-cuda.json \
# RUN:   --only '^single bf16 h6/2 d128 window.-1,(0|-1. backward)' | FileCheck %s --check-prefix=BACKEND
# BACKEND: runtime library: right
# BACKEND: 2 batches: 2 right
# RUN: not env LD_LIBRARY_PATH=%varlen-build/lib/fake-cuda GLIBC_TUNABLES=glibc.rtld.optional_static_tls=131072 \
# RUN:   FAKE_CUDA_FAIL=cuLaunchKernelEx:1 %python %t/sim/run.py --check --device=cuda --out=%t/sim-cuda.json \
# RUN:   --only '^single bf16 h6/2 d128 window.-1,0' | FileCheck %s --check-prefix=REFUSED
# REFUSED: runtime library: WRONG
# REFUSED: launching a grid of {{.*}}: a fake error (CUDA_ERROR_INVALID_VALUE)

# RUN: %python %varlen-src/benchmarks/gpu/build.py --build %varlen-build --jobs=1 \
# RUN:   --only '^single bf16 h6/2 d128 window.-1,0' --chips=sm_80 --out=%t/cuda
# RUN: %python %s %t %varlen-build/lib/fake-cuda | FileCheck %s
# RUN: env LD_LIBRARY_PATH=%varlen-build/lib/fake-cuda %t/cuda/varlen-cuda-test \
# RUN:   | FileCheck %s --check-prefix=RUNTIME
# RUNTIME: all tests passed (fake driver)

# The module is loaded once, and a kernel that wants more than 48 KiB asks for it.
# CHECK: ok: right
# CHECK-NEXT: load {{fatbin|text}}
# CHECK-NEXT: launch {{.*}}_tiles_segments, grid {{[1-9].*}}, stream ours
# CHECK-NEXT: launch {{.*}}_tiles_merge
# CHECK-NEXT: launch {{.*}}_tiles,
# CHECK-NEXT: attribute 8 of {{.*}}_attn = [[SHARED:[0-9]+]]
# CHECK-NEXT: launch {{.*}}_attn, grid {{[1-9][0-9]+}}, block {{[0-9]+}}, shared [[SHARED]], stream ours, first q
# CHECK-NEXT: launch {{.*}}_tiles_segments
# CHECK-NEXT: launch {{.*}}_tiles_merge
# CHECK-NEXT: launch {{.*}}_tiles,
# CHECK-NEXT: launch {{.*}}_attn,
# CHECK-NEXT: 8 kernels have run

# Ten layers are captured; in a workspace they allocate nothing.
# CHECK: graph: right
# CHECK: 0 allocations
# CHECK-NEXT: 40 kernels captured, 120 have run

# CHECK: little shared memory: a kernel wants {{[0-9]+}} bytes of shared memory: Fake GPU (sm_80) has 65536 per block
# CHECK: other chip: the kernels were not made for this GPU, Fake GPU (sm_80)
# CHECK: refused launch: launching a grid of {{.*}}: a fake error (CUDA_ERROR_INVALID_VALUE)
# CHECK: no memory: allocating {{.*}} bytes on the GPU: a fake error (CUDA_ERROR_OUT_OF_MEMORY)
# CHECK: no start: the CUDA driver does not start: a fake error

import ctypes
import json
import os
import pathlib
import subprocess
import sys

folder, driver = pathlib.Path(sys.argv[1]), sys.argv[2]
CASES = {
    "ok": {},
    "graph": {},
    "little shared memory": {"FAKE_CUDA_SHARED": "65536"},
    "other chip": {"FAKE_CUDA_FAIL": "cuModuleLoadDataEx:209"},
    "refused launch": {"FAKE_CUDA_FAIL": "cuLaunchKernelEx:1"},
    "no memory": {"FAKE_CUDA_FAIL": "cuMemAllocFromPoolAsync:2"},
    "no start": {"FAKE_CUDA_FAIL": "cuInit:100"},
}


class Counts(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int)
        for name in "primaries modules streams events pools blocks graphs "
        "registrations allocations defaultStream refusals".split()
    ]


class Driver:
    """The fake one, as the host of the runtime uses it."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.library.fakeCudaCount.restype = Counts
        context, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)

    def call(self, name, *arguments):
        if error := getattr(self.library, name)(*arguments):
            raise RuntimeError(f"{name}: {error}")

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def capture(self, calls):
        """Does what `calls` captures, three times."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamBeginCapture_v2", self.stream, 0)
        calls()
        self.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        self.call(
            "cuGraphInstantiateWithFlags", ctypes.byref(executable), graph,
            ctypes.c_uint64(0),
        )  # fmt: skip
        for _ in range(3):
            self.call("cuGraphLaunch", executable, self.stream)


def attention():
    """The folder's runtime, and its function bound to buffers with their names."""
    sys.path.insert(0, str(folder / "cuda"))
    import functions
    import numpy

    name = next(iter(json.loads((folder / "cuda/functions.json").read_text())["functions"]))
    runtime = functions.Runtime(folder / "cuda")
    rows = numpy.zeros((64, 6, 128), numpy.uint16)
    keys = numpy.zeros((64, 2, 128), numpy.uint16)
    cu = numpy.array([0, 64], numpy.int32)
    lse = numpy.zeros((6, 64), numpy.float32)
    buffers = [runtime.buffer(x) for x in (rows, keys, keys, cu, cu, rows, lse)]
    function = runtime.function(folder / "cuda/sm_80" / f"{name}.so", name)
    names = ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "out", "lse")
    bound = function.bind([(b.pointer, b.shape) for b in buffers])
    return runtime, bound, dict(zip(names, buffers))


def read_log(driver, buffers):
    """What was asked of the driver, and the number of kernels that have run."""
    log = pathlib.Path(os.environ["FAKE_CUDA_LOG"]).read_text()
    log = log.replace(f"stream {hex(driver.stream.value)}", "stream ours")
    for name, buffer in buffers.items():
        log = log.replace(f"first {hex(buffer.pointer)}", f"first {name}")
    lines = log.splitlines(keepends=True)
    ran = [line for line in lines if line.startswith("run ")]
    return [line for line in lines if line not in ran], len(ran)


def call():
    """Calls the function of the folder twice on a stream; prints what it says."""
    runtime, bound, buffers = attention()
    driver = Driver()
    runtime.library.varlen_gpu_set_stream(driver.stream)
    for _ in range(2):
        bound()
        runtime.raise_error()
    runtime.check(driver.stream)
    print("right")
    lines, ran = read_log(driver, buffers)
    print("".join(lines), f"{ran} kernels have run", sep="")


def capture():
    """Captures ten calls of the function."""
    runtime, bound, buffers = attention()
    library = runtime.library
    driver = Driver()
    library.varlen_gpu_set_stream(driver.stream)
    library.varlen_gpu_prepare()
    library.varlen_gpu_set_workspace.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    library.varlen_gpu_set_workspace(driver.allocate(1 << 20), 1 << 20)
    # The fake does not know what machine code has: a first call looks it up.
    bound()
    library.varlen_gpu_synchronize()
    before = driver.library.fakeCudaCount().allocations
    known, ran_before = read_log(driver, buffers)
    driver.capture(lambda: [bound() for _ in range(10)])
    runtime.check(driver.stream)
    print("right")
    lines, ran = read_log(driver, buffers)
    captured = sum(line.startswith("launch") for line in lines[len(known) :])
    print(driver.library.fakeCudaCount().allocations - before, "allocations")
    print(f"{captured} kernels captured, {ran - ran_before} have run")


def main():
    if len(sys.argv) > 3:
        sys.path.insert(0, str(folder / "cuda"))
        import functions

        try:
            capture() if sys.argv[3] == "graph" else call()
        except functions.Error as error:
            print(error)
        return
    for case, more in CASES.items():
        environment = {
            **os.environ, "LD_LIBRARY_PATH": driver, "FAKE_CUDA_SHARED": "166912",
            "FAKE_CUDA_LOG": str(folder / "log"), **more,
        }  # fmt: skip
        print(f"{case}: ", end="", flush=True)
        command = [sys.executable, __file__, str(folder), driver, case]
        subprocess.run(command, env=environment, check=True)


main()
