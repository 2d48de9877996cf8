"""The kit without a GPU: all that stands in for one when `run.py --rehearse` runs the queue.

The driver is the strict fake of the tests, and kernels run in the executor. Where PyTorch
needs a device, its tensors are in memory of the CPU, and what is stubbed of torch.cuda is
here. Batches are small. Parts ask FOLDER whether it is a rehearsal.
"""

import contextlib
import ctypes
import functools
import importlib.util
import os
import pathlib
import subprocess
import sys
import types
import zlib
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent

# Where compiled things of a rehearsal are kept; None: there is a GPU.
FOLDER = os.environ.get("VARLEN_KIT_REHEARSAL")
# What time limits are multiplied by: a rehearsal shares its machine, and loses no GPU's time.
SLACK = 10 if FOLDER else 1
# Of PyTorch's tensors.
DEVICE = "cpu" if FOLDER else "cuda"

# ===----------------------------------------------------------------------===#
# The queue's process
# ===----------------------------------------------------------------------===#


def prepare(folder, environment):
    """Makes what a rehearsal in a folder needs, of the build VARLEN_BUILD, and changes the
    environment of parts: what is built there is used, but not the package's own library where
    a wheel is installed."""
    import executor

    build = pathlib.Path(os.environ["VARLEN_BUILD"]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "libVarlenGPU.so").exists():
        executor.build_runtime(build, folder)
    _build_flash3(HERE / "peers")
    path = [HERE / "rehearsal-tools", environment["PATH"], build / "bin"]
    environment |= {
        "VARLEN_KIT_REHEARSAL": str(folder),
        "VARLEN_KIT_BUILD": str(build),
        "PATH": os.pathsep.join(map(str, path)),
        "LD_LIBRARY_PATH": str(build / "lib/fake-cuda"),
        # The executor's state of a thread is where only a program's own libraries have room.
        "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=131072",
        "JAX_PLATFORMS": "cpu",
    }
    if (HERE / "site").exists():
        environment.pop("VARLEN_BUILD")


def _build_flash3(folder):
    """Handlers that do nothing in the place of FlashAttention 3's, where there are headers of XLA
    for what calls them."""
    import peer_packages

    spec = importlib.util.find_spec("jaxlib")
    if spec is None or (folder / peer_packages.CALLER).exists():
        return
    folder.mkdir(exist_ok=True)
    headers = pathlib.Path(spec.origin).parent / "include"
    caller = HERE / "test/JAX/Inputs/call-frame.cpp"
    peer_packages.build_caller(caller, headers, folder / peer_packages.CALLER)
    stub = HERE / "rehearsal-tools/flash3.c"
    subprocess.run(
        ["cc", "-shared", "-fPIC", stub, "-o", folder / peer_packages.LIBRARY], check=True
    )


# ===----------------------------------------------------------------------===#
# Processes that launch kernels
# ===----------------------------------------------------------------------===#


@functools.cache
def start():
    """Loads the executor, where the fake driver finds it."""
    if FOLDER:
        ctypes.CDLL(f"{FOLDER}/libVarlenGPU.so", mode=ctypes.RTLD_GLOBAL)


def use_executor(launcher, text, strided=False):
    """Has the executor's kernels run in place of a launcher's. The kernels of a text are compiled
    once for all parts."""
    import executor

    start()
    name = f"{zlib.crc32(text.encode()):08x}" + ("-strided" if strided else "")
    path = pathlib.Path(FOLDER) / name
    image = path.with_suffix(".image")
    if not image.exists():
        path.with_suffix(".mlir").write_text(text)
        data = executor.compile_kernels(path, strided)
        image.write_bytes(data)
    ctypes.CDLL(f"{path}-kernels.so")
    launcher.set_image(image.read_bytes())


# ===----------------------------------------------------------------------===#
# PyTorch
# ===----------------------------------------------------------------------===#


class _Event:
    def __init__(self, enable_timing=False):
        pass

    def record(self, stream=None):
        pass

    def elapsed_time(self, other):
        return 1.0


class _Graph:
    def replay(self):
        pass


class _Stream:
    cuda_stream = None

    def wait_stream(self, other):
        pass

    def synchronize(self):
        pass


def start_torch():
    """Stubs torch.cuda, and lets kernels have tensors of the CPU."""
    if not FOLDER:
        return
    import torch
    from cuda import Driver

    from varlen._launcher import Launcher

    start()
    driver = Driver()
    _Stream.cuda_stream = driver.stream.value
    stream = _Stream()
    properties = types.SimpleNamespace(
        name="rehearsal", multi_processor_count=108, L2_cache_size=1 << 12
    )
    stubs = {
        "init": lambda: None, "synchronize": lambda *_: None,
        "empty_cache": lambda: None, "clock_rate": lambda: 0, "Event": _Event, "Stream": _Stream,
        "CUDAGraph": _Graph, "graph": lambda *_, **__: contextlib.nullcontext(),
        "stream": lambda _: contextlib.nullcontext(), "current_stream": lambda *_: stream,
        "get_device_properties": lambda _: properties, "device_count": lambda: 1,
        "profiler": types.SimpleNamespace(start=lambda: None, stop=lambda: None),
    }  # fmt: skip
    for name, value in stubs.items():
        setattr(torch.cuda, name, value)
    _copy_to_device(Launcher, driver)
    _register_peers(torch)
    sys.modules["cudnn"] = _cudnn()


def _copy_to_device(launchers, driver):
    """Has launches read and write copies in the fake driver's memory of what tensors hold."""
    memory = {}  # the address and the size of the copy, by the tensor's address
    launch, check = launchers.launch, launchers.check

    def find(address, size):
        if memory.get(address, (0, -1))[1] < size:
            memory[address] = driver.allocate(size), size
        return memory[address][0]

    def launch_copies(self, tensors, workspace, size, stream):
        places = [(t.data, find(t.data, _bytes_of(t)), _bytes_of(t)) for t in tensors]
        for tensor, (host, device, count) in zip(tensors, places):
            driver.copy(device, host, count)
            tensor.data = device
        try:
            launch(self, tensors, find(workspace, size), size, stream)
        finally:
            for tensor, (host, device, count) in zip(tensors, places):
                driver.copy(host, device, count)
                tensor.data = host

    launchers.launch = launch_copies
    launchers.check = lambda self, workspace, stream: check(self, find(workspace, 0), stream)


def _bytes_of(tensor):
    """From the first element to the last."""
    numbers = ctypes.c_int64 * tensor.ndim
    shape, strides = map(numbers.from_address, (tensor.shape, tensor.strides))
    if 0 in shape:
        return 0
    last = sum((extent - 1) * stride for extent, stride in zip(shape, strides))
    return (last + 1) * (tensor.bits // 8)


def _register_peers(torch):
    """PyTorch's operators of packed batches for the CPU, by our own attention there: their
    schemas are PyTorch's."""
    import varlen.torch

    global _library  # registrations live as long
    _library = torch.library.Library("aten", "IMPL")

    def mask(causal, left, right):
        return (-1, 0) if causal else (-1 if left is None else left, -1 if right is None else right)

    def forward(
        q, k, v, cu_q, cu_k, max_q, max_k, dropout, causal, debug, *, scale=None,
        window_size_left=None, window_size_right=None, **_,
    ):  # fmt: skip
        window = mask(causal, window_size_left, window_size_right)
        out, lse = varlen.torch.varlen_attn(
            q, k, v, cu_q, cu_k, window_size=window, scale=scale, enable_gqa=True,
            return_aux=varlen.torch.AuxRequest(lse=True),
        )  # fmt: skip
        return out, lse, torch.zeros(2, dtype=torch.uint64), torch.zeros(()), torch.zeros(())

    def backward(
        dout, q, k, v, out, lse, cu_q, cu_k, max_q, max_k, dropout, causal, seed, offset, *,
        scale=None, window_size_left=None, window_size_right=None, **_,
    ):  # fmt: skip
        window = mask(causal, window_size_left, window_size_right)
        gradients = torch.ops.varlen.attn_backward(
            dout, None, q, k, v, out, lse, cu_q, cu_k, None, None, *window, scale
        )
        return gradients[:3]

    _library.impl("_flash_attention_forward", forward, "CPU")
    _library.impl("_flash_attention_backward", backward, "CPU")


def _cudnn():
    """A frontend of cuDNN that plans everything and computes nothing."""
    cudnn = mock.MagicMock(cudnnGraphNotSupportedError=RuntimeError)
    graph = cudnn.pygraph.return_value
    graph.tensor.side_effect = lambda **_: mock.MagicMock()
    graph.sdpa.return_value = [mock.MagicMock() for _ in range(2)]
    graph.sdpa_backward.return_value = [mock.MagicMock() for _ in range(3)]
    graph.get_workspace_size.return_value = 16
    return cudnn


# ===----------------------------------------------------------------------===#
# Batches
# ===----------------------------------------------------------------------===#


def configurations():
    """One small configuration, of a set that all peers are asked for."""
    import sets

    batch = sets.Batch("pr164502", "", (33, 0, 5), (33, 0, 5), 2, 2)
    return [sets.Config(batch, "bf16", 64, sets.FULL, None)]
