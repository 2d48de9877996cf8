"""What calls on CUDA tensors ask of the driver, which is the strict fake one: nothing waits or
copies, all memory is PyTorch's, work goes to the stream and the device that it should, also
while a stream is captured and a kind is called for the first time; and what is said where
the driver, the GPU or the caller is wrong."""
# REQUIRES: torch, package
# RUN: env LD_LIBRARY_PATH=%varlen-build/lib/fake-cuda %python %s

import ctypes
import gc

import fake_device

driver = fake_device.enable()

import torch  # noqa: E402
from packed import fails  # noqa: E402

import varlen.torch  # noqa: E402
from varlen import _launcher, _library  # noqa: E402
from varlen.torch import varlen_attn  # noqa: E402

WAITS = (
    "cuStreamSynchronize", "cuEventSynchronize", "cuMemcpyAsync", "cuStreamWaitEvent", "cuEventRecord",
)  # fmt: skip
MEMORY = ("cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemAllocManaged", "cuMemHostAlloc")


class Status(ctypes.Structure):
    """varlen_gpu_status."""

    _fields_ = [(name, ctypes.c_int64) for name in ("code", "index", "value", "bound")]


def counts(entries):
    return {entry: fake_device.calls(entry) for entry in entries}


def tensors(device="cuda:0", heads=4, dtype=torch.bfloat16, grad=False):
    q, k, v = (torch.zeros(12, heads, 64, dtype=dtype, device=device) for _ in range(3))
    cu = torch.tensor([0, 5, 12], dtype=torch.int32, device=device)
    return [x.requires_grad_(grad) for x in (q, k, v)], cu


def attend(inputs, cu, window=(-1, 0), **options):
    return varlen_attn(*inputs, cu, cu, window_size=window, **options)


def gradients(inputs, cu, **options):
    out = attend(inputs, cu, **options)
    return torch.autograd.grad(out, inputs, out.detach())


# A call of a kind that is known launches, and does nothing else: no wait, no copy, no memory
# but that of PyTorch's allocator, for the results and the workspace.
inputs, cu = tensors(grad=True)
gradients(inputs, cu)
torch.cuda.synchronize()
before, loads = counts(WAITS + MEMORY), fake_device.calls("cuModuleLoadDataEx")
plain = [x.detach() for x in inputs]
allocated, launched = counts(("cuMemAlloc_v2", "cuLaunchKernelEx")).values()
out = attend(plain, cu)
assert fake_device.calls("cuMemAlloc_v2") - allocated == 3, "out, lse and the workspace"
assert fake_device.calls("cuLaunchKernelEx") > launched
attend(inputs, cu)
assert counts(WAITS + MEMORY) == before, (counts(WAITS + MEMORY), before)
assert fake_device.calls("cuModuleLoadDataEx") == loads


def collect():
    """All garbage: one pass may leave what is behind a finaliser."""
    while gc.collect():
        pass


def count_blocks():
    """The blocks of memory that are in use after all calls."""
    fake_device.let_autograd_end()
    collect()
    torch.cuda.synchronize()
    return driver.fakeCudaCount().blocks


# Nothing stays but what the caller keeps.
blocks = count_blocks()
for _ in range(20):
    gradients(inputs, cu)
assert (after := count_blocks()) == blocks, (after, blocks)

# An append launches, too, with no memory but the workspace.
pages = [torch.zeros(4, 16, 4, 64, dtype=torch.bfloat16, device="cuda:0") for _ in range(2)]
lists = cu, cu.new_zeros(2), cu.new_tensor([[3], [1]])
varlen.torch.append(*pages, *plain[:2], *lists[:2], block_table=lists[2])
before = counts(WAITS + MEMORY)
allocated, launched = counts(("cuMemAlloc_v2", "cuLaunchKernelEx")).values()
varlen.torch.append(*pages, *plain[:2], *lists[:2], block_table=lists[2])
assert counts(WAITS + MEMORY) == before and fake_device.calls("cuMemAlloc_v2") - allocated == 1
assert fake_device.calls("cuLaunchKernelEx") > launched

# The stream that is current on the tensors' device, in autograd's thread, too; the thread's
# own device is as it was.
def streams_of(call):
    """The streams that launches of a call went to."""
    seen = []
    enqueue = _launcher.LaunchFrame

    class Frame(enqueue):
        __slots__ = ()

        def __init__(self, launcher):
            super().__init__(launcher)
            launch = self.enqueue

            def run():
                seen.append(self.stream.value or 0)
                return launch()

            self.enqueue = run

    _launcher.LaunchFrame = Frame
    try:
        call()
    finally:
        _launcher.LaunchFrame = enqueue
    return seen


for index in (0, 1):
    side = torch.cuda.Stream(f"cuda:{index}")
    inputs, cu = tensors(f"cuda:{index}", heads=2 + index, grad=True)
    with torch.cuda.stream(side):
        assert streams_of(lambda: gradients(inputs, cu)) == [side.cuda_stream] * 2
    # The default stream, of a device that is not the current one.
    torch.cuda.set_device(1 - index)
    assert streams_of(lambda: gradients(inputs, cu, window=(3, 0))) == [0, 0]
    assert torch.cuda.current_device() == 1 - index
    torch.cuda.set_device(0)
torch.cuda.synchronize()
assert driver.fakeCudaCount().refusals == 0, driver.fakeCudaLastRefusal()

# A kind that is called for the first time while its stream is captured: kernels are loaded
# meanwhile, whatever the mode of the capture is. A replay works on the same memory.
for mode in (0, 1, 2):
    stream = torch.cuda.Stream("cuda:0")
    inputs, cu = tensors(heads=5 + mode)
    handle, graph, executable = ctypes.c_void_p(stream.cuda_stream), ctypes.c_void_p(), ctypes.c_void_p()
    with torch.cuda.stream(stream):
        loads = fake_device.calls("cuModuleLoadDataEx")
        assert driver.cuStreamBeginCapture_v2(handle, mode) == 0
        out = attend(inputs, cu)
        assert driver.cuStreamEndCapture(handle, ctypes.byref(graph)) == 0, driver.fakeCudaLastRefusal()
        assert fake_device.calls("cuModuleLoadDataEx") == loads + 1
        assert driver.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)) == 0
        cu.copy_(torch.tensor([0, 11, 12], dtype=torch.int32))
        for _ in range(2):
            assert driver.cuGraphLaunch(executable, handle) == 0
        torch.cuda.synchronize()
assert driver.fakeCudaCount().refusals == 0, driver.fakeCudaLastRefusal()

# Kernels for dense tensors and for those with strides: each is compiled where it is needed, and
# each call has its own, in any order.
loaded, load = [], _launcher.load


def record(source, target, *, strided):
    loaded.append(strided)
    return load(source, target, strided=strided)


def kinds_of(call):
    """Whether launchers of a call's launches are for strides."""
    seen, frame_of = [], _library.Frames.take

    def take(frames):
        seen.append(any(x.strides for x in frames._function.parameters))
        return frame_of(frames)

    _library.Frames.take = take
    try:
        call()
    finally:
        _library.Frames.take = frame_of
    return seen


_launcher.load = record
inputs, cu = tensors(heads=9)
packed = torch.zeros(12, 27, 64, dtype=torch.bfloat16, device="cuda:0")
views = packed.split(9, 1)
shifted = [torch.zeros(12 * 9 * 64 + 1, dtype=torch.bfloat16, device="cuda:0")[1:].view(12, 9, 64)]
shifted += inputs[1:]
assert kinds_of(lambda: attend(views, cu)) == [True] and loaded == [True]
assert kinds_of(lambda: attend(inputs, cu)) == [False] and loaded == [True, False]
# The first such tensors after dense ones are tried as dense ones.
assert kinds_of(lambda: attend(views, cu)) == [False, True]
assert kinds_of(lambda: attend(shifted, cu)) == kinds_of(lambda: attend(views, cu)) == [True]
assert kinds_of(lambda: attend(inputs, cu)) == [False] and loaded == [True, False]
_launcher.load = load
fails(
    ValueError, "out has 11 rows: expected 12, as many as q",
    lambda: varlen.torch.varlen_attn_out(torch.empty_like(inputs[0][:11]), *inputs, cu, cu),
)  # fmt: skip
assert driver.fakeCudaCount().refusals == 0, driver.fakeCudaLastRefusal()

# Tensors on several devices.
inputs, cu = tensors()
q, k, v = inputs
fails(
    ValueError, "k: expected a tensor on cuda:0, as q is, got one on cpu",
    lambda: attend([q, k.cpu(), v], cu),
)  # fmt: skip
fails(
    ValueError, "v: expected a tensor on cuda:0, as q is, got one on cuda:1",
    lambda: attend([q, k, v.to("cuda:1")], cu),
)  # fmt: skip
fails(
    ValueError, "cu_seqlens_q: expected a tensor on cuda:0, as q is, got one on cpu",
    lambda: attend(inputs, cu.cpu()),
)  # fmt: skip
fails(
    ValueError, "k: expected a tensor on cpu, as q is, got one on cuda:0",
    lambda: attend([q.cpu(), k, v], cu),
)  # fmt: skip

# What GPUs have no kernels for.
words = "no kernel for this GPU: no tiles for f64, which sm_80 has no kernel for"
fails(NotImplementedError, words, lambda: attend([x.double() for x in inputs], cu))
words = "no kernel for this GPU: no tiles for head_dim 320 in 166912 bytes of shared memory"
fails(NotImplementedError, words, lambda: attend([x.repeat(1, 1, 5) for x in inputs], cu))


def along(function, q):
    return torch.func.jvp(function, (q,), (q,))


out, tout = along(lambda q: attend([q, k, v], cu), q)
assert tout.shape == out.shape and tout.device == q.device
words = "no kernel for this GPU: no tiles for tangents of 'bf16' with head_dim 256 in the registers"
wide = [x.repeat(1, 1, 4) for x in inputs]
fails(NotImplementedError, words, lambda: along(lambda q: attend([q, *wide[1:]], cu), wide[0]))
_, along_q = along(torch.func.grad(lambda q: attend([q, k, v], cu).float().sum()), q)
assert along_q.shape == q.shape and along_q.device == q.device
words = "no kernel for this GPU: no tiles for gradients of tangents of 'bf16' with head_dim 192 in the"
wide = [x.repeat(1, 1, 3) for x in inputs]
results = [wide[0], torch.zeros(4, 12, device="cuda:0")] * 2
fails(NotImplementedError, words, lambda: torch.ops.varlen.attn_jvp_backward(
    wide[0], None, None, None, *wide, *wide, *results, cu, cu
))  # fmt: skip

# No memory: PyTorch's error, whichever allocation fails; all is as it was.
blocks = count_blocks()
for allocation in (1, 2, 3):
    driver.fakeCudaFail(b"cuMemAlloc_v2", allocation, 2)
    fails(torch.OutOfMemoryError, "out of memory", lambda: attend(inputs, cu))
    collect()
    assert driver.fakeCudaCount().blocks == blocks
attend(inputs, cu)

# What kernels find wrong is in memory of the host: the next call on the device raises it, once,
# and launches nothing; so does check(), which waits first. In place of the kernel that lists the
# work, a function that looks at cu_seqlens and reports as it does.
class Launch(ctypes.Structure):
    """The first members of FakeCudaLaunch."""

    _fields_ = [("name", ctypes.c_char_p), ("parameters", ctypes.POINTER(ctypes.c_void_p))]


# Of its parameters, which are addresses of values: cu_seqlens_q and the record.
CU, RECORD = 0, 4


@ctypes.CFUNCTYPE(None, ctypes.POINTER(Launch))
def list_work(launch):
    cu, record = (
        ctypes.c_uint64.from_address(launch.contents.parameters[i]).value for i in (CU, RECORD)
    )
    first, second, third = (ctypes.c_int32 * 3).from_address(cu)
    record = Status.from_address(record)
    if third < second and record.code == 0:
        record.index, record.value, record.bound = 2, third, second
        record.code = 2  # VARLEN_STATUS_DECREASE of cu_seqlens_q


driver.fakeCudaSetKernel(b"attention_tiles_in_one_cta", list_work)
WORDS = "cu_seqlens_q[2] = 3 is smaller than cu_seqlens_q[1] = 9: cu_seqlens must not decrease"
# Freed memory is kept from here on: to give it back, the driver waits for the work that uses it.
fake_device.keep_memory()
stream = torch.cuda.Stream("cuda:0")
with torch.cuda.stream(stream):
    inputs, good = tensors()
    bad = torch.tensor([0, 9, 3], dtype=torch.int32, device="cuda:0")
    varlen.torch.check()
    out = attend(inputs, bad)
    # Nothing has run: the next call does not know of it yet.
    attend(inputs, good)
    torch.cuda.synchronize()
    launches = fake_device.calls("cuLaunchKernelEx")
    fails(ValueError, f"an earlier launch: {WORDS}", lambda: attend(inputs, good))
    assert fake_device.calls("cuLaunchKernelEx") == launches
    attend(inputs, good)
    attend(inputs, bad)
    fails(ValueError, WORDS, varlen.torch.check)
    varlen.torch.check("cuda:0")
    # Another device has a record of its own.
    attend(inputs, bad)
    other, good_there = tensors("cuda:1")
    attend(other, good_there)
    varlen.torch.check(1)
    fails(ValueError, WORDS, lambda: varlen.torch.check(torch.device("cuda", 0)))
    varlen.torch.check("cpu")
    fails(ValueError, "device: expected one of CUDA, or the CPU, got meta", lambda: varlen.torch.check("meta"))

# A driver or a GPU that is too old, each a clear line; these are looked at once for a device.
library = ctypes.CDLL("libcuda.so.1")


class Older:
    """The driver with other answers."""

    def __init__(self, version=13000, major=8):
        self.answers = {"version": version, "major": major}

    def __getattr__(self, name):
        function = getattr(library, name)

        def call(result, *rest):
            status = function(result, *rest)
            if name == "cuDriverGetVersion":
                result._obj.value = self.answers["version"]
            elif name == "cuDeviceGetAttribute" and rest[0] == 75:
                result._obj.value = self.answers["major"]
            return status

        return call if name in ("cuDriverGetVersion", "cuDeviceGetAttribute") else function


def target_of(**answers):
    _launcher.find_target.cache_clear()
    load, _launcher.ctypes.CDLL = _launcher.ctypes.CDLL, lambda name: Older(**answers)
    try:
        return _launcher.find_target(0)
    finally:
        _launcher.ctypes.CDLL = load
        _launcher.find_target.cache_clear()


fails(
    RuntimeError, "expected a CUDA driver of CUDA 12.0 or newer, got one of CUDA 11.8",
    lambda: target_of(version=11080),
)  # fmt: skip
fails(
    RuntimeError, "expected a GPU of compute capability 8.0 or newer, got CUDA device 0 (Fake GPU) "
    "of 7.0", lambda: target_of(major=7),
)  # fmt: skip
# PTX that the driver knows.
assert target_of(version=12080) == ("sm_80", 87) and target_of(major=9) == ("sm_90a", 0)
