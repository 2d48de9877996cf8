"""Arrays on a CUDA device, of a library that follows the array API and of one that has a
current stream: numbers of kernels in the executor, behind the strict fake driver; slices;
whose stream is waited for; memory of the caller's library alone; errors."""
# REQUIRES: package
# RUN: rm -rf %t && mkdir %t
# RUN: env VARLEN_CACHE_DIR= %python %s %t %varlen-build %varlen-src | FileCheck %s

# CHECK: attention: right
# CHECK: gradients: right
# CHECK: tangents: right
# CHECK: second derivatives: right
# CHECK: slices: right
# CHECK: pages: right
# CHECK: append: right
# CHECK: current stream: right, 0 waits
# CHECK: allocations: 3 of 3
# CHECK: wrong cu_seqlens: NaN
# CHECK: compiled: 8 for the GPU, 3 for the CPU
# CHECK: errors: right

import ctypes
import os
import pathlib
import subprocess
import sys
import types

folder, build, source = map(pathlib.Path, sys.argv[1:4])
sys.path.insert(0, str(source / "test/Package/Inputs/launcher"))

import numpy as np
import varlen
from checks import check_attn, check_gradients, check_tangents, cumulate, normal, raises
from cuda import Driver
from executor import build_runtime, compile_kernels
from varlen import _attention, _launcher, _library, text
from varlen._arrays import Description

HEADS, KV_HEADS, DIM, PAGE, PAIRS = 4, 2, 64, 16, 20
OPTIONS = {"window": (25, 0)}


def text_of(operation):
    """The text that varlen.attn makes for such arrays."""
    q, kv = (Description("bf16", (0, heads, DIM)) for heads in (HEADS, KV_HEADS))
    cu = Description("i32", (0,))
    given = {"q": q, "k": kv, "v": kv, "cu_seqlens_q": cu, "cu_seqlens_k": cu}
    if operation == "pages":
        pages, lists = Description("bf16", (0, PAGE, KV_HEADS, DIM)), ("seqused_k", "block_table")
        given = {"q": q, "k": pages, "v": pages, "cu_seqlens_q": cu}
        given |= dict(zip(lists, (cu, Description("i32", (0, 0)))))
        operation = "attn"
    if operation == "append":
        rows, new = Description("i8", (0, 0, KV_HEADS, DIM)), Description("bf16", (0, KV_HEADS, DIM))
        given = {"k": new, "v": new, "cu_seqlens": cu, "seqused_k": cu}
        given |= {"block_table": Description("i32", (0, 0))}
        given |= {name: Description("f32", (0, PAIRS)) for name in ("cos", "sin")}
        given |= {"k_cache": rows, "v_cache": rows}
        given |= {name: Description("f32", (0, 0, KV_HEADS)) for name in ("k_scale", "v_scale")}
        opened = {name: (x.element, text.open_extents(name, x.shape)) for name, x in given.items()}
        return text.append_function(opened, interleaved=True)
    if operation == "quantised":
        rows = Description("i8", (0, PAGE, KV_HEADS, DIM))
        given = {"q": q, "k": rows, "v": rows, "cu_seqlens_q": cu, "seqused_k": cu}
        given |= {"block_table": Description("i32", (0, 0))}
        given |= {name: Description("f32", (0, 0, KV_HEADS)) for name in ("k_scale", "v_scale")}
        operation = "attn"
    if operation == "attn_grad":
        given |= {"dout": q, "out": q, "lse": Description("f32", (HEADS, 0))}
    if operation.startswith("attn_jvp"):
        given |= {"tq": q, "tk": kv, "tv": kv}
    if operation == "attn_jvp_grad":
        lse = Description("f32", (HEADS, 0))
        given |= {"dtout": q, "out": q, "lse": lse, "tout": q, "tlse": lse}
    options = OPTIONS["window"], None, "bottom_right", None, None
    return _attention.make_source(operation, given, *options, quantised=operation == "attn")


# What is compiled: the operation, and whether arrays may have strides.
KINDS = {"forward": ("attn", False), "backward": ("attn_grad", False),
         "tangents": ("attn_jvp", False), "slices": ("attn", True),
         "second": ("attn_jvp_grad", False),
         "pages": ("pages", False), "append": ("append", True),
         "quantised": ("quantised", False)}  # fmt: skip


class ExecutorLauncher(_launcher.Launcher):
    """A launcher whose kernels are the executor's, where there are such."""

    def __init__(self, source, chip, *, strided=False, ptx=0, image="ptx"):
        super().__init__(source, chip, strided=strided, ptx=ptx, image=image)
        for name, (operation, is_strided) in KINDS.items():
            if (source, strided) == (text_of(operation), is_strided):
                ctypes.CDLL(str(folder / f"{name}-kernels.so"))
                self.set_image((folder / f"{name}.image").read_bytes())


# An array library.


class Managed(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _library.Tensor),
    ]  # fmt: skip


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
CODES = {"float32": 2, "float64": 2, "bfloat16": 4, "int32": 0, "int8": 0, "uint8": 1}


class Device:
    """A context that allocations of cupy are made in."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class Array:
    """Memory of the device that looks like an array of numpy."""

    read_only, streams = False, []

    def __init__(self, like, address=None):
        self.like, self.shape, self.dtype = like, like.shape, like.dtype
        self.address = driver.store(like) if address is None else address
        self.device = Device()

    def __array_namespace__(self, api_version=None):
        return NAMESPACE

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream, max_version):
        assert max_version == (1, 0)
        self.streams.append(stream)
        extents = [*self.shape, *(s // self.dtype.itemsize for s in self.like.strides)]
        self.extents = (ctypes.c_int64 * len(extents))(*extents)
        begin, rank = ctypes.addressof(self.extents), len(self.shape)
        self.managed = Managed(1, 0, flags=int(self.read_only))
        self.managed.tensor = _library.Tensor(
            self.address, 2, 0, rank, CODES[str(self.dtype)], 8 * self.dtype.itemsize, 1,
            begin, begin + 8 * rank,
        )  # fmt: skip
        return new_capsule(ctypes.addressof(self.managed), b"dltensor_versioned", None)

    def load(self):
        return driver.load(self.address, self.like)

    def heads(self, begin, end):
        offset = begin * self.like.strides[1]
        return type(self)(self.like[:, begin:end], self.address + offset)


class CurrentArray(Array):
    """One of cupy, as its type says, which has a current stream."""


CurrentArray.__module__ = "cupy"


def empty(shape, dtype, *, device=None, kind=Array):
    """Memory that holds 77, as what was there before."""
    made.append(kind(np.full(shape, 77).astype(DTYPES.get(dtype, dtype))))
    return made[-1]


made = []
DTYPES = {"float32": np.float32, "uint8": np.uint8}
NAMESPACE = types.SimpleNamespace(empty=empty, **DTYPES)


def make_inputs():
    """Rows that belong to no sequence hold NaN."""
    rng = np.random.default_rng(1)
    q, k, v = (normal(rng, "bf16", rows, heads, DIM) for rows, heads in
               ((40, HEADS), (61, KV_HEADS), (61, KV_HEADS)))  # fmt: skip
    q[37:], k[59:], v[59:] = np.nan, np.nan, np.nan
    return q, k, v, cumulate(21, 0, 8, 1, 7), cumulate(21, 5, 30, 0, 3)


def count(entry):
    return driver.library.fakeCudaCalls(entry.encode())


def check_standard(packed):
    """In the stream that the caller names; that of DLPack's exports, too."""
    stream = driver.stream.value
    arrays = [Array(x) for x in packed]
    out, lse = varlen.attn(*arrays, **OPTIONS, return_lse=True, stream=stream)
    assert set(Array.streams) == {stream}
    values = out.load(), lse.load()
    check_attn("bf16", *values, *packed, **OPTIONS)
    print("attention: right")
    dout = normal(np.random.default_rng(2), "bf16", 40, HEADS, DIM)
    gradients = varlen.attn_grad(Array(dout), *arrays[:3], out, lse, *arrays[3:], **OPTIONS,
                                 stream=stream)  # fmt: skip
    loaded = [x.load() for x in gradients]
    check_gradients("bf16", loaded, dout, None, *packed, **OPTIONS)
    print("gradients: right")
    moved = [normal(np.random.default_rng(3), "bf16", *x.shape) for x in packed[:3]]
    results = varlen.attn_jvp(
        *arrays[:3], *map(Array, moved), *arrays[3:], **OPTIONS, stream=stream
    )
    out, lse, tout, tlse = (x.load() for x in results)
    check_attn("bf16", out, lse, *packed, **OPTIONS)
    check_tangents("bf16", (tout, tlse), moved, *packed, **OPTIONS)
    print("tangents: right")
    second = varlen.attn_jvp_grad(
        Array(dout), *arrays[:3], *map(Array, moved), *results, *arrays[3:], **OPTIONS,
        stream=stream,
    )  # fmt: skip
    wanted = varlen.attn_jvp_grad(
        dout, *packed[:3], *moved, out, lse, tout, tlse, *packed[3:], **OPTIONS
    )
    for x, y in zip(second, map(varlen.dtypes.widen, wanted), strict=True):
        error = np.abs(varlen.dtypes.widen(x.load()) - y).max()
        assert error <= 0.02 * np.abs(y).max(), error
    print("second derivatives: right")
    wrong = Array(np.array([0, 29, 9, 30, 30, 37], np.int32))
    raises(ValueError, "cu_seqlens_q[2] = 9 is smaller than cu_seqlens_q[1] = 29", varlen.attn,
           *arrays[:3], wrong, arrays[4], **OPTIONS, stream=stream)  # fmt: skip

    # Parts of one array, and a result that is a part.
    q, k, v, cu, _ = packed
    fused = Array(np.concatenate([q, k[:40], v[:40]], 1))
    parts = [fused.heads(a, b) for a, b in ((0, 4), (4, 6), (6, 8))]
    wide = Array(np.zeros((40, 6, DIM), varlen.bfloat16))
    cu = Array(cumulate(21, 0, 8, 1, 7))
    out, lse = varlen.attn(*parts, cu, Array(cu.like), **OPTIONS, out=wide.heads(1, 5),
                           return_lse=True, stream=stream)  # fmt: skip
    values = wide.load()
    check_attn("bf16", values[:, 1:5], lse.load(), *(x.like for x in parts), cu.like, cu.like, **OPTIONS)
    assert not values[:, 0].any() and not values[:, 5].any()
    print("slices: right")


def check_pages(packed):
    """Keys of the same sequences in pages, with NaN in rows that none has."""
    q, k, v, cu_q, cu_k = packed
    lengths = np.diff(cu_k)
    table = np.full((len(lengths), 4), -1, np.int32)
    pages = [np.full((9, PAGE, KV_HEADS, DIM), np.nan, k.dtype) for _ in range(2)]
    order = iter((4, 0, 8, 2, 7, 1))
    for s, length in enumerate(lengths):
        for first in range(0, length, PAGE):
            at = table[s, first // PAGE] = next(order)
            rows = slice(cu_k[s] + first, cu_k[s] + min(first + PAGE, length))
            for x, x_pages in zip((k, v), pages):
                x_pages[at, : rows.stop - rows.start] = x[rows]
    given = {"seqused_k": Array(lengths.astype(np.int32)), "return_lse": True, **OPTIONS}
    given["stream"] = driver.stream.value
    arrays = Array(q), *map(Array, pages), Array(cu_q)
    out, lse = varlen.attn(*arrays, block_table=Array(table), **given)
    check_attn("bf16", out.load(), lse.load(), *packed, **OPTIONS)
    wrong = table.copy()
    wrong[2, 1] = 9
    raises(ValueError, "block_table[2, 1] = 9: expected 0 to 8, the pages of k", varlen.attn, *arrays,
           block_table=Array(wrong), **given)  # fmt: skip
    raises(ValueError, "cu_seqlens_k: expected None beside a block_table", varlen.attn, *arrays,
           Array(cu_k), block_table=Array(table), **given)  # fmt: skip
    raises(ValueError, "block_table: expected an array on CUDA device 0, as q is", varlen.attn, *arrays,
           block_table=table, **given)  # fmt: skip
    print("pages: right")


def check_append(packed):
    """New keys and values into a quantised cache, with the bits of a CPU, and attention to it."""
    k, v, cu = packed[1][:37], packed[2][:37], packed[3]
    used = np.array([3, 0, 16, 15, 4], np.int32)
    table = np.array([[2, 5], [-1, 99], [99, 0], [7, 3], [1, -1]], np.int32)
    angles = np.random.default_rng(4).uniform(0, 6, (24, PAIRS))
    rotary = {"cos": np.cos(angles).astype("f4"), "sin": np.sin(angles).astype("f4")}
    shape = 9, PAGE, KV_HEADS, DIM
    caches = [np.full(shape, 7, np.int8) for _ in range(2)]
    scales = [np.ones(shape[:3], np.float32) for _ in range(2)]
    given = dict(zip(("k_cache", "v_cache", "k_scale", "v_scale"), caches + scales))
    given |= {"k": k, "v": v, "cu_seqlens": cu, "seqused_k": used, "block_table": table, **rotary}
    arrays = {name: Array(x) for name, x in given.items()}
    options = {"interleaved": True, "stream": driver.stream.value}
    assert varlen.append(**arrays, **options) is None
    varlen.append(**given, interleaved=True)
    for name in ("k_cache", "v_cache", "k_scale", "v_scale"):
        assert arrays[name].load().tobytes() == given[name].tobytes(), name
    table[2, 0] = 4
    more = {"seqused_k": used + np.diff(cu), "block_table": table}
    more |= {name: given[name] for name in ("k_scale", "v_scale")}
    q = normal(np.random.default_rng(5), "bf16", 37, HEADS, DIM)
    out = varlen.attn(*map(Array, (q, *caches, cu)), **{name: Array(x) for name, x in more.items()},
                      **OPTIONS, stream=driver.stream.value)  # fmt: skip
    wanted = varlen.attn(q, *caches, cu, **more, **OPTIONS)
    np.testing.assert_allclose(out.load().astype("f4"), wanted.astype("f4"), rtol=1e-2, atol=1e-2)

    def refuse(words, kind=ValueError, **changed):
        before = {name: arrays[name].load() for name in ("k_cache", "v_scale")}
        raises(kind, words, varlen.append, **(arrays | changed), **options)
        assert all((arrays[name].load() == x).all() for name, x in before.items()), words

    same = table.copy()
    same[4, 0] = 5
    refuse("block_table[4, 0] = 5: expected a page that nothing else writes to", block_table=Array(same))
    refuse("k_cache: expected an array on CUDA device 0, as k is", k_cache=caches[0])
    refuse("v_scale has 8 pages: expected 9, as many as k_cache", v_scale=Array(scales[1][:8]))
    refuse("seqused_k has 6 entries: expected 5, one for each sequence", seqused_k=Array(cu))
    refuse("sin has 23 positions: expected 24, as many as cos", sin=Array(rotary["sin"][:23]))
    refuse("k_scale: expected elements of f32, got f64", TypeError, k_scale=Array(scales[0].astype("f8")))
    read_only = Array(caches[1])
    read_only.read_only = True
    refuse("v_cache: expected an array that can be written, got a read-only one", v_cache=read_only)
    options["stream"] = None
    refuse("stream: expected the handle of a CUDA stream for Array")
    print("append: right")


def check_current(packed):
    """In the stream that is the library's current one, with memory from it alone."""
    arrays = [CurrentArray(x) for x in packed]
    made.clear()
    entries = ("cuMemAlloc_v2", "cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemAllocManaged")
    before, waits = sum(map(count, entries)), count("cuStreamSynchronize")
    out, lse = varlen.attn(*arrays, **OPTIONS, return_lse=True)
    # The array library waits once for each array that it makes.
    waits = count("cuStreamSynchronize") - waits - len(made)
    allocations = sum(map(count, entries)) - before
    check_attn("bf16", out.load(), lse.load(), *packed, **OPTIONS)
    print(f"current stream: right, {waits} waits\nallocations: {allocations} of {len(made)}")
    wrong = CurrentArray(np.array([0, 29, 9, 30, 30, 37], np.int32))
    out = varlen.attn(*arrays[:3], wrong, arrays[4], **OPTIONS)
    print("wrong cu_seqlens:", "NaN" if np.isnan(out.load().astype("f4")).all() else "written")
    launchers = sum(isinstance(x, _launcher.Launcher) for x in varlen._cache._kept.values())
    print(f"compiled: {launchers} for the GPU, {len(varlen._cache._kept) - launchers} for the CPU")


def check_errors(packed):
    arrays = [Array(x) for x in packed]
    stream = driver.stream.value
    named = {**OPTIONS, "stream": stream}
    raises(ValueError, "stream: expected the handle of a CUDA stream for Array", varlen.attn, *arrays)
    raises(ValueError, "cu_seqlens_q: expected an array on CUDA device 0, as q is, got one in memory "
           "of the CPU", varlen.attn, *arrays[:3], packed[3], arrays[4], **named)  # fmt: skip
    raises(ValueError, "stream: expected none for arrays in memory of the CPU", varlen.attn, *packed,
           **named)  # fmt: skip
    raises(ValueError, "k: expected an array of rank 3", varlen.attn, arrays[0], arrays[3], *arrays[2:],
           **named)  # fmt: skip
    out = Array(packed[0])
    out.read_only = True
    raises(ValueError, "out: expected an array that can be written", varlen.attn, *arrays, out=out, **named)
    raises(ValueError, "out: expected an array of shape (40, 4, 64), got (7, 4, 64)", varlen.attn,
           *arrays, out=Array(packed[0][:7]), **named)  # fmt: skip
    raises(ValueError, "v has 9 rows: expected 61, as many as k", varlen.attn,
           *arrays[:2], Array(packed[2][:9]), *arrays[3:], **named)  # fmt: skip
    raises(ValueError, "seqused_k has 6 entries: expected 5, one for each sequence", varlen.attn,
           *arrays, seqused_k=arrays[4], **named)  # fmt: skip
    doubles = [Array(np.zeros((4, 2, 16))) for _ in range(3)]
    raises(TypeError, "q: expected elements of f16, bf16, f32 on a CUDA device, got f64", varlen.attn,
           *doubles, Array(cumulate(4)), stream=stream)  # fmt: skip
    driver.library.fakeCudaFail(b"cuLaunchKernelEx", 1, 2)
    raises(RuntimeError, "launching a grid", varlen.attn, *arrays, **named)
    print("errors: right")


def run():
    ctypes.CDLL(str(folder / "libVarlenGPU.so"), mode=ctypes.RTLD_GLOBAL)
    _launcher.Launcher = ExecutorLauncher
    cupy = sys.modules["cupy"] = types.ModuleType("cupy")
    cupy.empty = lambda shape, dtype: empty(shape, dtype, kind=CurrentArray)
    cupy.cuda = types.SimpleNamespace(
        get_current_stream=lambda: types.SimpleNamespace(ptr=driver.stream.value)
    )
    packed = make_inputs()
    check_standard(packed)
    check_pages(packed)
    check_append(packed)
    check_current(packed)
    check_errors(packed)


if len(sys.argv) > 4:
    driver = Driver()
    run()
else:
    build_runtime(build, folder)
    for name, (operation, strided) in KINDS.items():
        (folder / f"{name}.mlir").write_text(text_of(operation))
        (folder / f"{name}.image").write_bytes(compile_kernels(folder / name, strided))
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{build}/lib/fake-cuda:{folder}",
                   "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=131072"}  # fmt: skip
    command = [sys.executable, __file__, *sys.argv[1:4], "run"]
    subprocess.run(command, env=environment, check=True)
