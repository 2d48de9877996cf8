"""The handler of XLA's foreign functions on CUDA, called with frames as XLA makes them: the
reference's numbers from kernels in the executor, behind the fake driver; its launches in a
graph; its errors."""
# REQUIRES: package
# RUN: rm -rf %t && mkdir %t
# RUN: %python %s %t %varlen-build %varlen-src | FileCheck %s

# CHECK: traits: 1 1 1
# CHECK: attention: right
# CHECK: calls that allocate: 0
# CHECK: wrong cu_seqlens: NaN
# CHECK: a later launch: an earlier launch: cu_seqlens_q[2]
# CHECK: poll: an earlier launch: cu_seqlens_q[2] = 9 is smaller than cu_seqlens_q[1] = 29: cu_seqlens must not decrease
# CHECK: captured: 2 launches; replayed: NaN
# CHECK: no chip: expected an attribute `chip`
# CHECK: unknown chip: {{.*}}sm_1{{.*}}
# CHECK: no workspace: expected the workspace as the last result
# CHECK: empty workspace: expected a workspace whose size followed from static shapes
# CHECK: little workspace: expected a workspace of {{[0-9]+}} bytes
# CHECK: wrong heads: k: expected extent 1 to be 2, got 3
# CHECK: gradients: right
# CHECK: driver: asking for the stream's context: a fake error

import ctypes
import os
import pathlib
import subprocess
import sys

folder, build, source = map(pathlib.Path, sys.argv[1:4])
sys.path.insert(0, str(source / "test/Package/Inputs/launcher"))

import numpy
import varlen
from cuda import Driver, pointer
from executor import build_runtime, compile_kernels
from varlen import _launcher, _library
from varlen._launcher import Launcher

LENGTHS_Q, LENGTHS_K = [21, 0, 8, 1, 7], [21, 5, 30, 0, 3]
HEADS, KV_HEADS, DIM = 4, 2, 64
KIND = {
    "dtype": "bf16", "heads": HEADS, "kv_heads": KV_HEADS, "head_dim": DIM, "window": (25, 0)
}  # fmt: skip
TEXTS = {"attention": varlen.text.attn(**KIND), "gradients": varlen.text.attn_grad(**KIND)}
CHIP = "sm_80"

# XLA's numbers of elements, with DLPack's.
ELEMENTS = {"bf16": (16, 4, 16), "f32": (11, 2, 32), "i32": (4, 0, 32), "u8": (6, 1, 8)}
INSTANTIATE, INITIALIZE, EXECUTE = 0, 2, 3
# Launchers that the handler knows live as long as the process.
kept = []


def element_of(array):
    return {"float32": "f32", "int32": "i32", "uint8": "u8"}.get(str(array.dtype), "bf16")


class Buffer:
    """An array in memory of the device."""

    def __init__(self, driver, array):
        self.driver, self.like = driver, array
        self.address = driver.store(array)
        self.dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.element = element_of(array)

    def load(self):
        return self.driver.load(self.address, self.like)

    def tensor(self):
        _, code, bits = ELEMENTS[self.element]
        return _library.Tensor(
            self.address, _library.CUDA, 0, len(self.dims), code, bits, 1,
            ctypes.addressof(self.dims), None, 0,
        )  # fmt: skip


class Workspace(Buffer):
    """As XLA gives it, with what the handler may lose to alignment: within temporary memory
    at a multiple of 128 bytes."""

    def __init__(self, driver, size):
        super().__init__(driver, numpy.zeros(128 + size + 255, numpy.uint8))
        self.address += 128
        self.dims[0] -= 128


class Handler:
    """A custom call, in the stream of the driver."""

    def __init__(self, driver, xla):
        self.host = ctypes.CDLL(str(folder / "call-frame.so"))
        self.host.makeContext.restype = pointer
        self.host.callStage.restype = ctypes.c_char_p
        self.xla, self.context = xla, pointer(self.host.makeContext(driver.stream))

    def call(self, stage, attributes=None, operands=(), results=()):
        """Null, or the message of the error."""
        name = {INSTANTIATE: "Instantiate", INITIALIZE: "Initialize", EXECUTE: "Execute"}[stage]
        attributes = attributes or {}
        buffers = [*operands, *results]
        texts = [[x.encode() for x in part] for part in zip(*sorted(attributes.items()))]
        names, values = texts or ([], [])
        error = self.host.callStage(
            getattr(self.xla, f"varlenXLACUDA{name}"), stage, self.context, len(names),
            (ctypes.c_char_p * len(names))(*names), (ctypes.c_int * len(names))(),
            (ctypes.c_char_p * len(names))(*values),
            len(operands), len(buffers), (pointer * len(buffers))(*(b.address for b in buffers)),
            (ctypes.c_int * len(buffers))(*(ELEMENTS[b.element][0] for b in buffers)),
            (ctypes.c_int * len(buffers))(*(len(b.dims) for b in buffers)),
            (pointer * len(buffers))(*(ctypes.addressof(b.dims) for b in buffers)),
        )  # fmt: skip
        return error and error.decode()

    def expect(self, *arguments, **options):
        error = self.call(*arguments, **options)
        assert error is None, error


def compile_launcher(name):
    """A launcher of libvarlen-c with the executor's kernels."""
    launcher = Launcher(TEXTS[name], CHIP)
    ctypes.CDLL(str(folder / f"{name}-kernels.so"))
    launcher.set_image((folder / f"{name}.image").read_bytes())
    return launcher


def make_inputs():
    """Rows that belong to no sequence hold NaN."""
    rng = numpy.random.default_rng(1)
    cu_q, cu_k = (numpy.cumsum([0, *l], dtype=numpy.int32) for l in (LENGTHS_Q, LENGTHS_K))

    def rows(count, used, heads):
        values = rng.standard_normal((count, heads, DIM), numpy.float32)
        values[used:] = numpy.nan
        return varlen.dtypes.narrow(values, "bf16")

    return rows(40, 37, HEADS), rows(61, 59, KV_HEADS), rows(61, 59, KV_HEADS), cu_q, cu_k


def judge(values, golden, plain, gradient):
    for value, wanted, rough in zip(values, golden, plain, strict=True):
        kind = "bf16" if value.dtype.itemsize == 2 else "f32"
        varlen.tolerance.check(value, wanted, rough, kind, "result", gradient)


def set_up(driver, xla, name, inputs, outputs):
    """The custom call of a function, ready to run, its buffers and its launcher."""
    launcher = compile_launcher(name)
    kept.append(launcher)
    text = TEXTS[name]
    xla.varlenXLAAddLauncher(
        text.encode(), ctypes.c_size_t(len(text)), CHIP.encode(), launcher._handle
    )
    handler = Handler(driver, xla)
    handler.expect(INSTANTIATE, {"source": text, "chip": CHIP})
    operands = [Buffer(driver, array) for array in inputs]
    results = [Buffer(driver, array) for array in outputs]
    size = launcher.workspace_size([buffer.tensor() for buffer in (*operands, *results)])
    results.append(Workspace(driver, size))
    return handler, operands, results


def check_capture(driver, xla, operands, results):
    """A graph of the handler's own code, PTX, which the fake driver loads and captures; no
    kernel runs, so what a replay leaves are the fills before them."""
    handler = Handler(driver, xla)
    text = varlen.text.attn(**KIND, name="captured")
    handler.expect(INSTANTIATE, {"source": text, "chip": CHIP})
    graph, executable = pointer(), pointer()

    def capture():
        driver.call("cuStreamBeginCapture_v2", driver.stream, 0)
        error = handler.call(EXECUTE, operands=operands, results=results)
        driver.call("cuStreamEndCapture", driver.stream, ctypes.byref(graph))
        return error

    # Kernels are loaded meanwhile.
    launches = driver.library.fakeCudaCalls(b"cuLaunchKernelEx")
    assert capture() is None
    driver.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0))
    for buffer in results[:-1]:
        driver.copy(buffer.address, buffer.like.ctypes.data, buffer.like.nbytes)
    driver.call("cuGraphLaunch", executable, driver.stream)
    launches = driver.library.fakeCudaCalls(b"cuLaunchKernelEx") - launches
    print("captured:", launches, "launches; replayed:", describe(results))


def describe(results):
    wide = [varlen.dtypes.widen(buffer.load()) for buffer in results[:-1]]
    return "NaN" if all(numpy.isnan(x).all() for x in wide) else "written"


def check_errors(driver, xla, handler, operands, results):
    source = TEXTS["attention"]
    print("no chip:", Handler(driver, xla).call(INSTANTIATE, {"source": source}))
    attributes = {"source": source, "chip": "sm_1"}
    print("unknown chip:", Handler(driver, xla).call(INSTANTIATE, attributes))
    print("no workspace:", handler.call(EXECUTE, operands=operands, results=results[:-1]))
    empty = Buffer(driver, numpy.zeros(0, numpy.uint8))
    print("empty workspace:",
          handler.call(EXECUTE, operands=operands, results=[*results[:-1], empty]))  # fmt: skip
    little = Workspace(driver, 0)
    print("little workspace:",
          handler.call(EXECUTE, operands=operands, results=[*results[:-1], little]))  # fmt: skip
    k = Buffer(driver, numpy.zeros((61, 3, DIM), operands[1].like.dtype))
    others = [operands[0], k, *operands[2:]]
    print("wrong heads:", handler.call(EXECUTE, operands=others, results=results))


def run():
    driver = Driver()
    # What the kernels call, once for all.
    ctypes.CDLL(str(folder / "libVarlenGPU.so"), mode=ctypes.RTLD_GLOBAL)
    _library.library()  # which that one then takes
    xla = ctypes.CDLL(str(build / "lib/libvarlen-xla.so"))
    host = Handler(driver, xla).host
    stages = [getattr(xla, f"varlenXLACUDA{s}") for s in ("Instantiate", "Initialize", "Execute")]
    print("traits:", *(host.getTraits(stage) for stage in stages))

    packed = make_inputs()
    golden = varlen.reference.attention(*packed, window=KIND["window"])
    plain = varlen.reference.plain(*packed, window=KIND["window"])
    out = varlen.dtypes.narrow(numpy.ones(packed[0].shape, numpy.float32), "bf16")
    lse = numpy.ones((HEADS, len(out)), numpy.float32)
    handler, operands, results = set_up(driver, xla, "attention", packed, (out, lse))
    handler.expect(INITIALIZE)
    handler.expect(EXECUTE, operands=operands, results=results)
    values = [buffer.load() for buffer in results[:-1]]
    judge(values, golden, plain, False)
    print("attention: right")
    entries = ("cuMemAlloc_v2", "cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemAllocManaged")

    def count():
        return sum(driver.library.fakeCudaCalls(entry.encode()) for entry in entries)

    before = count()
    handler.expect(EXECUTE, operands=operands, results=results)
    print("calls that allocate:", count() - before)

    wrong = Buffer(driver, numpy.array([0, 29, 9, 30, 30, 37], numpy.int32))
    wrong = [*operands[:3], wrong, operands[4]]
    handler.expect(EXECUTE, operands=wrong, results=results)
    print("wrong cu_seqlens:", describe(results))
    # Either tells, and then it is told.
    print("a later launch:", handler.call(EXECUTE, operands=operands, results=results))
    handler.expect(EXECUTE, operands=wrong, results=results)
    describe(results)
    try:
        _launcher.poll(0)
    except ValueError as error:
        print("poll:", error)
    _launcher.poll(0)
    handler.expect(EXECUTE, operands=operands, results=results)
    check_capture(driver, xla, operands, results)
    check_errors(driver, xla, handler, operands, results)

    dout = varlen.dtypes.narrow(
        numpy.random.default_rng(2).standard_normal(out.shape, numpy.float32), "bf16"
    )
    inputs = [dout, *packed[:3], *values, *packed[3:]]
    outputs = [numpy.zeros_like(array) for array in packed[:3]]
    handler, operands, results = set_up(driver, xla, "gradients", inputs, outputs)
    handler.expect(INITIALIZE)
    handler.expect(EXECUTE, operands=operands, results=results)
    golden = varlen.reference.gradients(dout, *packed, window=KIND["window"])
    plain = varlen.reference.plain_gradients(dout, *packed, window=KIND["window"])
    judge([buffer.load() for buffer in results[:-1]], golden[:3], plain[:3], True)
    print("gradients: right")
    driver.library.fakeCudaFail(b"cuStreamGetCtx", 1, 3)
    print("driver:", handler.call(EXECUTE, operands=operands, results=results))


def main():
    if len(sys.argv) > 4:
        return run()
    build_runtime(build, folder)
    for name, text in TEXTS.items():
        (folder / f"{name}.mlir").write_text(text)
        (folder / f"{name}.image").write_bytes(compile_kernels(folder / name))
    import jax

    subprocess.run(
        ["clang++-22", "-std=c++17", "-shared", "-fPIC", "-I", jax.ffi.include_dir(),
         source / "test/JAX/Inputs/call-frame.cpp", "-o", folder / "call-frame.so"], check=True,
    )  # fmt: skip
    libraries = f"{build}/lib/fake-cuda:{folder}"
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries,
                   "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=131072"}  # fmt: skip
    command = [sys.executable, __file__, *sys.argv[1:4], "run"]
    subprocess.run(command, env=environment, check=True)


main()
