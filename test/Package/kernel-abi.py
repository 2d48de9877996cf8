"""Kernels for other people's programs: a C launcher, and a manifest alone, give the
reference's numbers. The kernels run in the executor, behind the fake driver."""
# REQUIRES: venv, package
# RUN: rm -rf %t && mkdir %t
# RUN: %python %s %t %varlen-build %varlen-src | FileCheck %s

# CHECK: attention: right; by the manifest: the same
# CHECK: another launch in the same workspace: the same
# CHECK: cu_seqlens_q[2] = 9 is less than 29: code 2, index 2, value 9, bound 29
# CHECK: too few entries: code 13, index 0, value 4, bound 6
# CHECK: rows that do not agree: code 46, index 0, value 37, bound 40
# CHECK: out has not been written
# CHECK: a good launch after it: 0
# CHECK: no rows: 0, 0
# CHECK: null tensor: -1
# CHECK: kernels that are not loaded: -1
# CHECK: little workspace: -2
# CHECK: misaligned workspace: -2
# CHECK: no workspace: -1
# CHECK: heads: -16
# CHECK: negative extent: -17
# CHECK: strides: -18
# CHECK: misaligned rows: -16
# CHECK: no address: -19
# CHECK: driver: 2
# CHECK: gradients: right; by the manifest: the same
# CHECK: block: right; by the manifest: the same
# CHECK: by libvarlen-c: the same, with as large a workspace

import ctypes
import json
import os
import pathlib
import subprocess
import sys

folder, build, source = map(pathlib.Path, sys.argv[1:4])
sys.path.insert(0, str(source / "test/Package/Inputs/launcher"))

import numpy
import varlen
from cuda import Driver, Manifest, pointer
from executor import build_runtime, compile_kernels
from varlen import _launcher, _library

LENGTHS_Q, LENGTHS_K = [21, 0, 8, 1, 7], [21, 5, 30, 0, 3]
HEADS, KV_HEADS, DIM = 4, 2, 64
WINDOW = (25, 0)
KIND = {
    "dtype": "bf16", "heads": HEADS, "kv_heads": KV_HEADS, "head_dim": DIM,
    "window": WINDOW, "sink": True,
}  # fmt: skip
TEXTS = {
    "attention": (varlen.text.attn(**KIND), ["--strided"]),
    "gradients": (varlen.text.attn_grad(**KIND), ["--split-numbers"]),
    # Of operations around an attention.
    "block": ((source / "test/Integration/Inputs/gpu-block.mlir").read_text(), []),
}
BLOCK_LENGTHS = (0, 70, 1, 9)
WEIGHTS = {"norm1": (64,), "qkv": (64, 128), "out": (64, 64), "norm2": (64,),
           "gate": (64, 96), "up": (64, 96), "down": (96, 64)}  # fmt: skip


def compile_function(name, text, options):
    """The launcher of a function, as a library, its manifest, and the same kernels
    for the executor."""
    path = folder / name
    path.with_suffix(".mlir").write_text(text)
    subprocess.run(
        ["varlen-opt", f"{path}.mlir", "--emit=c-launcher", "--image=ptx", f"--header={path}.h",
         f"--manifest={path}.json", "-o", f"{path}.c", *options], check=True,
    )  # fmt: skip
    for compiler in ("cc", "clang-22"):
        for language in (["-std=c99"], ["-x", "c++", "-std=c++11"]):
            subprocess.run(
                [compiler, *language, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c",
                 f"{path}.c", "-o", f"{path}.o"], check=True,
            )  # fmt: skip
    subprocess.run(
        ["cc", "-std=c99", "-shared", "-fPIC", f"{path}.c", "-L", build / "lib/fake-cuda",
         "-l:libcuda.so.1", "-o", f"{path}.so"], check=True,
    )  # fmt: skip
    image = compile_kernels(path, "--strided" in options, "--split-numbers" in options)
    (folder / f"{name}.image").write_bytes(image)


class Status(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("code", "index", "value", "bound")]

    def __str__(self):
        return ", ".join(f"{name} {getattr(self, name)}" for name, _ in self._fields_)


def descriptor(address, sizes, strides):
    rank = len(sizes)
    numbers = ctypes.c_int64 * rank
    fields = [("allocated", pointer), ("data", pointer), ("offset", ctypes.c_int64),
              ("sizes", numbers), ("strides", numbers)]  # fmt: skip
    kind = type("Descriptor", (ctypes.Structure,), {"_fields_": fields})
    return kind(address, address, 0, numbers(*sizes), numbers(*strides))


class Launcher:
    """The functions of a C launcher."""

    def __init__(self, driver, name):
        self.driver, self.name = driver, name
        ctypes.CDLL(str(folder / f"{name}-kernels.so"))
        self.library = ctypes.CDLL(str(folder / f"{name}.so"))
        self.image = (folder / f"{name}.image").read_bytes()
        # A module, functions and a number.
        self.kernels = (pointer * 32)()
        error = self.function("load")(self.kernels, self.image)
        assert error == 0, error

    def function(self, what):
        return getattr(self.library, f"{self.name}_{what}")

    def workspace_size(self, tensors):
        size = ctypes.c_uint64()
        references = [ctypes.byref(tensor) for tensor in tensors]
        error = self.function("workspace_size")(self.kernels, *references, ctypes.byref(size))
        assert error == 0, error
        return size.value

    def launch(self, tensors, workspace, size, kernels=None):
        references = [tensor and ctypes.byref(tensor) for tensor in tensors]
        return self.function("launch")(
            self.kernels if kernels is None else kernels, *references, pointer(workspace),
            ctypes.c_uint64(size), self.driver.stream,
        )  # fmt: skip

    def check(self, workspace):
        status = Status()
        error = self.function("check")(
            pointer(workspace), self.driver.stream, ctypes.byref(status)
        )
        return error, status


def dense(array):
    return [stride // array.itemsize for stride in array.strides]


def make_inputs():
    """Inputs by name; rows that belong to no sequence hold NaN."""
    rng = numpy.random.default_rng(1)
    cu_q, cu_k = (numpy.cumsum([0, *l], dtype=numpy.int32) for l in (LENGTHS_Q, LENGTHS_K))

    def rows(count, used, heads):
        values = rng.standard_normal((count, heads, DIM), numpy.float32)
        values[used:] = numpy.nan
        return varlen.dtypes.narrow(values, "bf16")

    return {
        "q": rows(40, 37, HEADS), "k": rows(61, 59, KV_HEADS), "v": rows(61, 59, KV_HEADS),
        "cu_q": cu_q, "cu_k": cu_k, "sink": rng.standard_normal(HEADS, numpy.float32),
    }  # fmt: skip


def arguments_of(inputs):
    return [inputs[name] for name in ("q", "k", "v", "cu_q", "cu_k")]


def judge(names, values, golden, plain, gradient):
    for name, value, wanted, rough in zip(names, values, golden, plain, strict=True):
        kind = "bf16" if value.dtype.itemsize == 2 else "f32"
        varlen.tolerance.check(value, wanted, rough, kind, name, gradient)


def check_function(driver, name, inputs, outputs):
    """Runs a function both ways; what it has written, and the tensors."""
    launcher = Launcher(driver, name)
    arrays = [*inputs, *outputs]
    addresses = [driver.store(array) for array in arrays]
    numbers = [(a, x.shape, dense(x)) for a, x in zip(addresses, arrays)]
    tensors = [descriptor(*number) for number in numbers]
    size = launcher.workspace_size(tensors)
    workspace = driver.allocate(size)
    assert launcher.launch(tensors, workspace, size) == 0
    assert launcher.check(workspace)[0] == 0

    def results():
        written = addresses[len(inputs) :]
        return [driver.load(a, x) for a, x in zip(written, outputs)]

    values = results()
    for address, output in zip(addresses[len(inputs) :], outputs):
        garbage = numpy.full(output.nbytes, 0xA5, numpy.uint8)
        driver.copy(address, garbage.ctypes.data, garbage.nbytes)
    manifest = json.loads((folder / f"{name}.json").read_text())
    status = Manifest(driver, manifest, launcher.image).launch(numbers)
    assert not driver.load(status, numpy.zeros(4, numpy.int64)).any()
    assert all((a.view("u1") == b.view("u1")).all() for a, b in zip(values, results()))
    return launcher, values, numbers, (workspace, size), results


def check_errors(driver, launcher, numbers, space, results):
    tensors = [descriptor(*number) for number in numbers]
    before = results()
    assert launcher.launch(tensors, *space) == 0 and launcher.check(space[0])[0] == 0
    same = all((a.view("u1") == b.view("u1")).all() for a, b in zip(before, results()))
    print("another launch in the same workspace:", "the same" if same else "different")

    def replaced(i, **change):
        keys = ("address", "sizes", "strides")
        number = {**dict(zip(keys, numbers[i])), **change}
        return [descriptor(*number.values()) if j == i else t for j, t in enumerate(tensors)]

    def report(what, changed):
        assert launcher.launch(changed, *space) == 0
        error, status = launcher.check(space[0])
        assert error == -4, error
        print(f"{what}: {status}")

    garbage = numpy.full(results()[0].nbytes, 0x5A, numpy.uint8)
    driver.copy(numbers[-2][0], garbage.ctypes.data, garbage.nbytes)
    cu = numpy.array([0, 29, 9, 30, 30, 37], numpy.int32)
    report("cu_seqlens_q[2] = 9 is less than 29", replaced(3, address=driver.store(cu)))
    report("too few entries", replaced(4, sizes=(4,)))
    report("rows that do not agree", replaced(6, sizes=(37, HEADS, DIM)))
    is_garbage = (results()[0].view("u1") == 0x5A).all()
    print("out has", "not been" if is_garbage else "been", "written")
    assert launcher.launch(tensors, *space) == 0
    print("a good launch after it:", launcher.check(space[0])[0])

    workspace, size = space
    empty = []
    for address, sizes, strides in numbers:
        sizes = [0 if length in (40, 61) else length for length in sizes]
        empty.append(descriptor(address if all(sizes) else 0, sizes, strides))
    zeros = driver.store(numpy.zeros(6, numpy.int32))
    empty[3], empty[4] = (descriptor(zeros, (6,), (1,)) for _ in range(2))
    print(f"no rows: {launcher.launch(empty, *space)}, {launcher.check(workspace)[0]}")
    print("null tensor:", launcher.launch([None, *tensors[1:]], *space))
    print("kernels that are not loaded:", launcher.launch(tensors, *space, (pointer * 32)()))
    print("little workspace:", launcher.launch(tensors, workspace, size - 1))
    print("misaligned workspace:", launcher.launch(tensors, workspace + 128, size))
    print("no workspace:", launcher.launch(tensors, 0, size))
    print("heads:", launcher.launch(replaced(0, sizes=(40, 8, DIM)), *space))
    print("negative extent:", launcher.launch(replaced(1, sizes=(-1, KV_HEADS, DIM)), *space))
    print("strides:", launcher.launch(replaced(2, strides=(256, DIM, 2)), *space))
    print("misaligned rows:", launcher.launch(replaced(0, address=numbers[0][0] + 1), *space))
    print("no address:", launcher.launch(replaced(3, address=0), *space))
    driver.library.fakeCudaFail(b"cuLaunchKernel", 2, 2)
    print("driver:", launcher.launch(tensors, *space))


def block(x, norm1, qkv, out, norm2, gate, up, down, cu):
    """What gpu-block.mlir computes."""

    def norm(x, weight):
        return x / numpy.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * weight

    heads = numpy.split(norm(x, norm1) @ qkv, [64, 96], axis=1)
    q, k, v = (part.reshape(len(x), -1, 16) for part in heads)
    attended, _ = varlen.reference.attention(q, k, v, cu, cu, window=(-1, 0))
    x = x + attended.reshape(x.shape) @ out
    hidden = norm(x, norm2)
    gated = hidden @ gate
    return x + (gated / (1 + numpy.exp(-gated)) * (hidden @ up)) @ down


def launch_by_library(driver, numbers, image, space):
    """Launches the kernels of the block by libvarlen-c; whether it needs this space."""
    launcher = _launcher.Launcher(TEXTS["block"][0], "sm_80")
    launcher.set_image(image)
    tensors, shapes = [], []
    for i, (address, sizes, _) in enumerate(numbers):
        shapes.append((ctypes.c_int64 * len(sizes))(*sizes))
        # The last argument but one is cu_seqlens.
        code = _library.INT if i == len(numbers) - 2 else _library.FLOAT
        tensors.append(_library.Tensor(
            address, _library.CUDA, 0, len(sizes), code, 32, 1, ctypes.addressof(shapes[i]), None, 0
        ))  # fmt: skip
    addresses = (pointer * len(tensors))(*map(ctypes.addressof, tensors))
    workspace, size = space
    library = _library.library()
    for status in (
        library.varlenLauncherLaunch(
            launcher._handle, addresses, ctypes.c_size_t(len(tensors)), pointer(workspace),
            ctypes.c_size_t(size), driver.stream,
        ),
        library.varlenLauncherCheck(pointer(workspace), driver.stream),
    ):  # fmt: skip
        if status:
            _library.raise_error(status)
    return launcher.workspace_size(tensors) == size


def check_block(driver):
    rng = numpy.random.default_rng(3)
    x = rng.standard_normal((sum(BLOCK_LENGTHS), 64), numpy.float32)
    weights = [
        rng.standard_normal(shape, numpy.float32) / numpy.float32(shape[0] ** 0.5)
        for shape in WEIGHTS.values()
    ]
    inputs = [x, *weights, numpy.cumsum((0, *BLOCK_LENGTHS), dtype=numpy.int32)]
    launcher, (y,), numbers, space, results = check_function(
        driver, "block", inputs, [numpy.zeros_like(x)]
    )
    wanted = block(*(a.astype(numpy.float64) for a in inputs[:-1]), inputs[-1])
    error = numpy.abs(y - wanted).max() / numpy.abs(wanted).max()
    assert error < 2e-5, error
    print("block: right; by the manifest: the same")
    driver.copy(numbers[-1][0], numpy.zeros_like(x).ctypes.data, x.nbytes)
    is_as_large = launch_by_library(driver, numbers, launcher.image, space)
    assert (results()[0].view("u1") == y.view("u1")).all()
    print("by libvarlen-c: the same, with", "as" if is_as_large else "not as", "large a workspace")


def run():
    driver = Driver()
    # What the kernels call, once for all.
    ctypes.CDLL(str(folder / "libVarlenGPU.so"), mode=ctypes.RTLD_GLOBAL)
    inputs = make_inputs()
    packed, options = arguments_of(inputs), {"window": WINDOW, "sink": inputs["sink"]}
    golden = varlen.reference.attention(*packed, **options)
    plain = varlen.reference.plain(*packed, **options)
    out = varlen.dtypes.narrow(numpy.full(inputs["q"].shape, numpy.nan, numpy.float32), "bf16")
    lse = numpy.full((HEADS, len(out)), numpy.nan, numpy.float32)
    launcher, values, *more = check_function(
        driver, "attention", [*packed, inputs["sink"]], [out, lse]
    )
    judge(["out", "lse"], values, golden, plain, False)
    print("attention: right; by the manifest: the same")
    check_errors(driver, launcher, *more)

    rng = numpy.random.default_rng(2)
    dout = varlen.dtypes.narrow(rng.standard_normal(out.shape, numpy.float32), "bf16")
    gradient_inputs = [dout, *packed[:3], *values, *packed[3:], inputs["sink"]]
    _, values, *_ = check_function(
        driver, "gradients", gradient_inputs,
        [numpy.zeros_like(inputs[name]) for name in ("q", "k", "v", "sink")],
    )  # fmt: skip
    golden = varlen.reference.gradients(dout, *packed, **options)
    plain = varlen.reference.plain_gradients(dout, *packed, **options)
    judge(["dq", "dk", "dv", "dsink"], values, golden, plain, True)
    print("gradients: right; by the manifest: the same")
    check_block(driver)


def main():
    if len(sys.argv) > 4:
        return run()
    build_runtime(build, folder)
    for name, (text, options) in TEXTS.items():
        compile_function(name, text, options)
    libraries = f"{build}/lib/fake-cuda:{folder}"
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries,
                   "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=131072"}  # fmt: skip
    command = [sys.executable, __file__, *sys.argv[1:4], "run"]
    subprocess.run(command, env=environment, check=True)


main()
