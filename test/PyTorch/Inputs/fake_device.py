"""CUDA tensors in a build of PyTorch for the CPU: FakeDevice.cpp, compiled and loaded, and
what torch.cuda asks of a build that has CUDA. `enable` comes before torch is imported.

`enable()` has kernels be launched on the strict fake driver, which must be the libcuda.so.1
that the process finds. Then they do nothing, unless the test has given the driver others;
`enable(computes=True)` has the CPU's kernels compute what they would have, when they are
launched: numbers are right, and what is wrong in cu_seqlens is reported as kernels do it."""

import atexit
import ctypes
import fcntl
import importlib.util
import os
import pathlib
import subprocess
import sys
import threading
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
NUM_DEVICES = 2


def enable(computes=False):
    """Returns the fake driver."""
    assert "torch" not in sys.modules, "expected a process without torch: hooks are looked up once"
    device = _load()
    _set_up(device)
    if computes:
        _compute()
    # A thread that needs an interpreter which is ending aborts.
    atexit.register(let_autograd_end)
    return driver()


def let_autograd_end():
    """Lets autograd's threads of devices drop the graphs of calls that have returned: they do so
    after they have woken their callers, and say nothing when it is done."""
    time.sleep(0.1)


class Counts(ctypes.Structure):
    """FakeCudaCounts."""

    _fields_ = [
        (name, ctypes.c_int)
        for name in (
            "primaries", "modules", "streams", "events", "pools", "blocks", "graphs",
            "registrations", "allocations", "default_stream", "refusals",
        )
    ]  # fmt: skip


def driver():
    """The fake driver, for its counters."""
    library = ctypes.CDLL("libcuda.so.1")
    library.fakeCudaLastRefusal.restype = ctypes.c_char_p
    library.fakeCudaCount.restype = Counts
    return library


def keep_memory():
    """Has freed memory be kept for later allocations, as PyTorch's allocator does."""
    _device.fakeKeepMemory()


def calls(entry):
    """How often an entry of the driver was called."""
    return driver().fakeCudaCalls(entry.encode())


def _load():
    root = pathlib.Path(importlib.util.find_spec("torch").origin).parent
    version = (root / "version.py").stat().st_mtime_ns
    folder = pathlib.Path(os.environ.get("VARLEN_BUILD", HERE.parents[2] / "build")) / "test"
    library = folder / f"libFakeDevice-{version}.so"
    source = HERE / "FakeDevice.cpp"
    folder.mkdir(exist_ok=True)
    # Several tests may be the first, of which one compiles.
    with open(f"{library}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
            _compile(source, library, root)
    return ctypes.CDLL(str(library))


def _compile(source, library, root):
    includes = [f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include"]
    # The whole library or none; a compiler goes on where the test that started it is ended.
    made = library.with_name(f"{library.name}.{os.getpid()}")
    subprocess.run(
        [os.environ.get("CXX", "c++"), "-std=c++20", "-O0", "-fPIC", "-shared", *includes, source,
         "-o", made, f"-L{root}/lib", f"-Wl,-rpath,{root}/lib", "-ltorch_cpu", "-lc10", "-ldl"],
        check=True,
    )  # fmt: skip
    made.rename(library)


# ===----------------------------------------------------------------------===#
# torch.cuda
# ===----------------------------------------------------------------------===#


class Stream:
    """A stream of the fake driver, as torch.cuda.Stream."""

    def __init__(self, device=None, handle=None):
        self.device_index = _index_of(device)
        self.cuda_stream = _device.fakeNewStream(self.device_index) if handle is None else handle
        # What PyTorch's own tests put into torch._C._cuda_setStream.
        self.stream_id, self.device_type = self.cuda_stream, 1

    def synchronize(self):
        _device.fakeSynchronize()


def _index_of(device):
    import torch

    if device is None:
        return _device.fakeGetDevice()
    return device if isinstance(device, int) else torch.device(device).index


class _UseStream:
    """torch.cuda.stream."""

    def __init__(self, stream):
        self._stream = stream

    def __enter__(self):
        index = self._stream.device_index
        self._before = _device.fakeGetDevice(), _device.fakeGetStream(index)
        _device.fakeSetDevice(index)
        _device.fakeSetStream(index, self._stream.cuda_stream)

    def __exit__(self, *_):
        device, stream = self._before
        _device.fakeSetStream(self._stream.device_index, stream)
        _device.fakeSetDevice(device)


def _current_stream(device=None):
    index = _index_of(device)
    return Stream(index, _device.fakeGetStream(index))


def _exchange(device):
    before = _device.fakeGetDevice()
    if device >= 0:
        _device.fakeSetDevice(device)
    return before


def _set_up(device):
    global _device
    _device = device
    for name, result, *parameters in (
        ("fakeGetDevice", ctypes.c_int), ("fakeSetDevice", None, ctypes.c_int),
        ("fakeGetStream", ctypes.c_uint64, ctypes.c_int), ("fakeSynchronize", None),
        ("fakeSetStream", None, ctypes.c_int, ctypes.c_uint64),
        ("fakeNewStream", ctypes.c_uint64, ctypes.c_int),
    ):  # fmt: skip
        function = getattr(device, name)
        function.restype, function.argtypes = result, parameters
    import torch

    driver_ = driver()
    contexts = [ctypes.c_void_p() for _ in range(NUM_DEVICES)]
    driver_.cuInit(0)
    for i, context in enumerate(contexts):
        driver_.cuDevicePrimaryCtxRetain(ctypes.byref(context), i)

    def set_device(device):
        index = _index_of(device)
        _device.fakeSetDevice(index)
        # As CUDA's runtime does.
        driver_.cuCtxSetCurrent(contexts[index])

    set_device(0)

    # Functions of their own for each: Dynamo has a rule for each of PyTorch's.
    torch._C._cuda_getDeviceCount = lambda: NUM_DEVICES
    torch._C._cuda_getDevice = lambda: device.fakeGetDevice()
    torch._C._cuda_setDevice = lambda d: set_device(d)
    torch._C._cuda_exchangeDevice = lambda d: _exchange(d)
    torch._C._cuda_maybeExchangeDevice = lambda d: _exchange(d)
    torch._C._cuda_getCurrentRawStream = lambda index: device.fakeGetStream(index)
    torch._C._cuda_setStream = lambda stream_id, device_index, device_type: (
        device.fakeSetStream(device_index, stream_id)
    )
    torch.cuda.device_count = lambda: NUM_DEVICES
    torch.cuda.current_device = lambda: device.fakeGetDevice()
    torch.cuda.set_device = set_device
    torch.cuda._exchange_device = lambda d: _exchange(d)
    torch.cuda._maybe_exchange_device = lambda d: _exchange(d)
    torch.cuda.is_available = lambda: True
    torch.cuda.is_initialized = lambda: True
    torch.cuda._is_compiled = lambda: True
    torch.cuda._lazy_init = lambda: None
    torch.cuda.synchronize = lambda device=None: _device.fakeSynchronize()
    torch.cuda.Stream, torch.cuda.stream = Stream, _UseStream
    torch.cuda.current_stream = _current_stream
    properties = types.SimpleNamespace(
        name="Fake GPU", major=8, minor=0, multi_processor_count=108, total_memory=1 << 30,
        warp_size=32, max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536,
        shared_memory_per_block=48 << 10, shared_memory_per_block_optin=163 << 10,
    )  # fmt: skip
    torch.cuda.get_device_properties = lambda device=None: properties
    torch.cuda.get_device_capability = lambda device=None: (8, 0)
    torch.cuda.get_device_name = lambda device=None: "Fake GPU"
    # Memory is not counted.
    torch.cuda.reset_peak_memory_stats = lambda device=None: None
    torch.cuda.memory_allocated = torch.cuda.max_memory_allocated = lambda device=None: 0
    # Numbers are the CPU's.
    torch.cuda.get_rng_state = lambda device="cuda": torch.get_rng_state()
    torch.cuda.set_rng_state = lambda state, device="cuda": torch.set_rng_state(state)
    torch.cuda.manual_seed_all = lambda seed: None
    torch.cuda.manual_seed = lambda seed: None


# ===----------------------------------------------------------------------===#
# Numbers
# ===----------------------------------------------------------------------===#


def _compute():
    """The CPU's kernels in place of launches, on the same tensors."""
    from varlen import _attention, _launcher, _library

    errors, lock = {}, threading.Lock()

    class Frame(_launcher.LaunchFrame):
        __slots__ = ("_function", "_tensors")

        def __init__(self, launcher):
            super().__init__(launcher)
            self._function = launcher.function
            enqueue, self.enqueue = self.enqueue, lambda: self._run(enqueue)

        def _run(self, enqueue):
            poll(self)
            # The real launch first, with all that it refuses.
            status = enqueue()
            if status:
                return status
            _device.fakeSynchronize()
            count = len(self._function.arguments)
            for address in self.addresses:
                _library.Tensor.from_address(address).device_type = _library.CPU
            call = _library.library().varlenFunctionCall
            status = call(
                self._function._handle, self._function.pointers(*self.addresses[:count]), count,
                self._function.result_pointers(*self.addresses[count:]),
                len(self.addresses) - count, None,
            )  # fmt: skip
            if status:
                with lock:
                    errors.setdefault(0, _library.library().varlenGetLastError().decode())
            return 0

    load = _launcher.load

    def load_both(source, target, **options):
        launcher = load(source, target, **options)
        launcher.function = _attention._compile(source)
        return launcher

    def poll(device):
        with lock:
            message = errors.pop(0, None)
        if message:
            raise ValueError(f"an earlier launch: {message}")

    _launcher.load, _launcher.LaunchFrame, _launcher.poll = load_both, Frame, poll


if __name__ == "__main__":
    # A script, on the fake device: fake_device.py SCRIPT [ARGUMENT...].
    sys.argv = sys.argv[1:]
    sys.path[0] = str(pathlib.Path(sys.argv[0]).resolve().parent)
    enable(computes=True)
    code = pathlib.Path(sys.argv[0]).read_text()
    exec(compile(code, sys.argv[0], "exec"), {"__name__": "__main__", "__file__": sys.argv[0]})
