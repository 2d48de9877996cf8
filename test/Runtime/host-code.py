"""Compiled host code around kernels, by the runtime library: right numbers of attention and its
gradients by the executor's backend and by that of CUDA, and what the host code asks of a CUDA
driver, which is a fake here."""
# REQUIRES: venv, package
# RUN: rm -rf %t && mkdir %t
# RUN: %python %s %t %varlen-build %varlen-src | FileCheck %s

# CHECK: executor: right, the same twice
# CHECK: executor backward: right, the same twice
# By the CUDA backend, in memory in the order of streams, with garbage in what is new and
# what is freed.
# CHECK: cuda: right, the same twice
# CHECK: cuda backward: right, the same twice

# The module is loaded once, and a kernel that wants more than 48 KiB asks for it.
# CHECK: ok: right
# CHECK-NEXT: load text
# CHECK-NEXT: launch {{.*}}_tiles_in_one_cta, grid 1, {{.*}}, stream ours
# CHECK-NEXT: attribute 8 of {{.*}}_attn = [[SHARED:[0-9]+]]
# CHECK-NEXT: launch {{.*}}_attn, grid {{[1-9][0-9]+}}, block {{[0-9]+}}, shared [[SHARED]], stream ours, first q
# CHECK-NEXT: launch {{.*}}_tiles_in_one_cta,
# CHECK-NEXT: launch {{.*}}_attn,
# CHECK-NEXT: 4 kernels have run

# Ten layers are captured; in a workspace they allocate nothing.
# CHECK: graph: right
# CHECK: 0 allocations
# CHECK-NEXT: 20 kernels captured, 60 have run

# CHECK: little shared memory: a kernel wants {{[0-9]+}} bytes of shared memory: Fake GPU (sm_80) has 65536 per block
# CHECK: other chip: the kernels were not made for this GPU, Fake GPU (sm_80)
# CHECK: refused launch: launching a grid of {{.*}}: a fake error (CUDA_ERROR_INVALID_VALUE)
# CHECK: no memory: allocating {{.*}} bytes on the GPU: a fake error (CUDA_ERROR_OUT_OF_MEMORY)
# CHECK: no start: the CUDA driver does not start: a fake error

import ctypes
import os
import pathlib
import subprocess
import sys

folder, build, source = map(pathlib.Path, sys.argv[1:4])
sys.path[:0] = [
    str(source / "test/Runtime/Inputs"), str(source / "test/Integration/Inputs"),
    str(source / "test/Package/Inputs/launcher"),
]  # fmt: skip

import attn_gradients
import harness
import host_functions
import numpy
import parameters
import varlen
from executor import build_runtime

SEQUENCES = tuple(parameters.Sequence(n, n, n, n, (0, 0)) for n in (70, 0, 1, 33))
GROUP = parameters.Group("host", "bf16", 6, 2, 128, 128, (-1, 0), SEQUENCES, past_q=3, past_k=3)
OF_PASS = {"forward": harness, "backward": attn_gradients}
FAKE_CASES = {
    "ok": {},
    "graph": {},
    "little shared memory": {"FAKE_CUDA_SHARED": "65536"},
    "other chip": {"FAKE_CUDA_FAIL": "cuModuleLoadDataEx:209"},
    "refused launch": {"FAKE_CUDA_FAIL": "cuLaunchKernelEx:1"},
    "no memory": {"FAKE_CUDA_FAIL": "cuMemAllocFromPoolAsync:2"},
    "no start": {"FAKE_CUDA_FAIL": "cuInit:100"},
}


def compile_function(name, form):
    """Compiles host code around the kernels of a pass: `form` is that of varlen-to-nvvm."""
    text = OF_PASS[name].module_text(GROUP, buffers=True, name=name)
    lowered = subprocess.run(
        ["varlen-opt", "-", f"--varlen-to-nvvm=chip=sm_80 format={form}"],
        input=text.encode(), capture_output=True, check=True,
    ).stdout  # fmt: skip
    code = subprocess.run(
        ["mlir-translate", "--mlir-to-llvmir"], input=lowered, capture_output=True, check=True
    ).stdout
    subprocess.run(
        ["clang-22", "-x", "ir", "-", "-O1", "-fPIC", "-shared", "-Wno-override-module",
         f"-L{folder}", "-lVarlenGPU", "-lm", "-Wl,--no-undefined", "-o", folder / f"{form}-{name}.so"],
        input=code, check=True,
    )  # fmt: skip


def results_of(name, inputs):
    if name == "forward":
        rows = numpy.zeros((GROUP.tokens_q, GROUP.heads, GROUP.dv), inputs["q"].dtype)
        return {"out": rows, "lse": numpy.zeros((GROUP.heads, GROUP.tokens_q), numpy.float32)}
    return {f"d{key}": numpy.zeros_like(inputs[key]) for key in "qkv"}


def check_numbers(device):
    """Both passes, each twice, against the reference."""
    runtime = host_functions.Runtime(folder, device)
    for name, of_pass in OF_PASS.items():
        inputs = of_pass.make_inputs(GROUP)
        outputs = results_of(name, inputs)
        names = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k"]
        if name == "backward":
            names = ["dout", "q", "k", "v", "out", "lse", "cu_seqlens_q", "cu_seqlens_k", "dlse"]
        arrays = [varlen.dtypes.normalize(inputs[key]) for key in names]
        # Not zero: what is not written has to show.
        wrong = [numpy.full_like(varlen.dtypes.normalize(x), 7) for x in outputs.values()]
        buffers = [runtime.buffer(x) for x in (*arrays, *wrong)]
        function = runtime.function(folder / f"sim-{name}.so", name)
        call = function.bind([(buffer.pointer, buffer.shape) for buffer in buffers])
        runs = []
        for _ in range(2):
            call()
            runtime.raise_error()
            runtime.check()
            runs.append([buffer.load() for buffer in buffers[-len(outputs) :]])
        problems = of_pass.judge(GROUP, inputs, dict(zip(outputs, runs[0])))
        same = all(a.tobytes() == b.tobytes() for a, b in zip(*runs))
        what = device if name == "forward" else f"{device} {name}"
        print(
            f"{what}:", *(problems or ["right,"]), "the same twice" if same else "two runs differ"
        )


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
    """The runtime, and the forward bound to buffers with their names."""
    runtime = host_functions.Runtime(folder)
    rows = numpy.zeros((64, 6, 128), numpy.uint16)
    keys = numpy.zeros((64, 2, 128), numpy.uint16)
    cu = numpy.array([0, 64], numpy.int32)
    lse = numpy.zeros((6, 64), numpy.float32)
    buffers = [runtime.buffer(x) for x in (rows, keys, keys, cu, cu, rows, lse)]
    function = runtime.function(folder / "ptx-forward.so", "forward")
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
    """Calls the function twice on a stream; prints what it says."""
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


def run(case, **more):
    environment = {
        **os.environ, "LD_LIBRARY_PATH": str(build / "lib/fake-cuda"),
        # The executor's state of a thread is where only a program's own libraries have room.
        "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=131072",
        "FAKE_CUDA_SHARED": "166912", "FAKE_CUDA_LOG": str(folder / "log"), **more,
    }  # fmt: skip
    command = [sys.executable, __file__, *sys.argv[1:4], case]
    subprocess.run(command, env=environment, check=True)


def main():
    if len(sys.argv) > 4:
        case = sys.argv[4]
        try:
            if case in FAKE_CASES:
                capture() if case == "graph" else call()
            else:
                check_numbers(case)
        except host_functions.Error as error:
            print(error, flush=True)
            # What was launched before may still run, in memory that an end frees.
            os._exit(0)
        return
    build_runtime(build, folder)
    for name, form in (("forward", "sim"), ("backward", "sim"), ("forward", "ptx")):
        compile_function(name, form)
    for device in ("executor", "cuda"):
        run(device)
    for case, more in FAKE_CASES.items():
        print(f"{case}: ", end="", flush=True)
        run(case, **more)


main()
