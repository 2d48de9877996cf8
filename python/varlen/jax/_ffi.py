"""The handlers of XLA's custom calls in libvarlen-xla, and the programs that they run."""

import ctypes
import functools
import re

import jax

from .. import _attention, _launcher, _library

_NAME = "libvarlen-xla.so"
# For each of XLA's platforms: the beginning of names in libvarlen-xla, the type of state
# that a custom call has, and its stages.
_PLATFORMS = {
    "cpu": ("varlenXLA", "varlen.function", ("Instantiate", "Execute")),
    "CUDA": ("varlenXLACUDA", "varlen.launcher", ("Instantiate", "Initialize", "Execute")),
}
# Custom calls of all names run the function of their attribute `source`.
TARGETS = {name: f"varlen.{name}" for name in ("attn", "attn_grad", "attn_jvp", "attn_jvp_grad")}


def _load():
    """libvarlen-xla, whose handlers XLA then knows."""
    if jax.__version_info__ < (0, 10):
        raise ImportError(f"varlen.jax: expected jax 0.10 or newer, got {jax.__version__}")
    path = _library.find_library().with_name(_NAME)
    if not path.is_file():
        raise ImportError(
            f"varlen.jax: expected {path}, which is built where jaxlib's headers are "
            "found, got no such file"
        )
    _library.library()  # which it then takes in place of loading one
    library = ctypes.CDLL(str(path))
    library.varlenXLAAddFunction.restype = None
    library.varlenXLAAddFunction.argtypes = (
        ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
    )  # fmt: skip
    library.varlenXLAAddLauncher.restype = None
    library.varlenXLAAddLauncher.argtypes = (
        ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p
    )  # fmt: skip

    def address(symbol):
        return jax.ffi.pycapsule(ctypes.addressof(ctypes.c_char.in_dll(library, symbol)))

    for platform, (prefix, state, stages) in _PLATFORMS.items():
        names = {"type_id": "StateTypeId", "type_info": "StateTypeInfo"}
        names = {key: address(prefix + name) for key, name in names.items()}
        jax.ffi.register_ffi_type(state, names, platform=platform)
        handler = {stage.lower(): address(prefix + stage) for stage in stages}
        for target in TARGETS.values():
            jax.ffi.register_ffi_target(target, handler, platform=platform)
    return library


_xla = _load()


# Programs. Executables call them until the process ends, after Python has.


@functools.cache
def provide_function(source):
    """Has the function of this text ready when XLA asks for it on a CPU."""
    # XLA's buffers are dense.
    function = _attention._compile(source, strided=False)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(function._program))
    data = source.encode()
    _xla.varlenXLAAddFunction(data, len(data), function._handle)


@functools.cache
def _find_kernels(source, target):
    """The launcher of the function of this text, which XLA's handler then has, or the error
    of its compilation."""
    try:
        launcher = _launcher.load(source, target, strided=False)
    except (_library.CompileError, NotImplementedError) as error:
        return error
    data = source.encode()
    _xla.varlenXLAAddLauncher(data, len(data), target.chip.encode(), launcher._handle)
    return launcher


def provide_kernels(source, target):
    """The launcher for GPUs, which XLA's handler then has, too."""
    result = _find_kernels(source, target)
    if isinstance(result, _library.CompileError):
        raise _attention.source_error(result)
    if isinstance(result, Exception):
        raise result
    return result


def provide(source, element):
    """Raises what the compiler says of a text. What it compiles is ready then: where JAX has
    GPUs, kernels for them, unless only a CPU has such."""
    target = find_target()
    if target is None or element == "f64" or isinstance(_find_kernels(source, target), Exception):
        provide_function(source)


# GPUs.


def _find_gpus():
    try:
        return jax.devices("cuda")
    except RuntimeError:
        return []


def find_target():
    """The Target of kernels for all CUDA devices of JAX; None if it has none. RuntimeError if
    the driver or a GPU is too old."""
    capabilities = set()
    for device in _find_gpus():
        text = str(getattr(device, "compute_capability", None))
        if not re.fullmatch(r"\d+\.\d", text):
            raise RuntimeError(
                f"varlen.jax: expected the compute capability of {device}, such as 9.0, got {text}"
            )
        capabilities.add(tuple(map(int, text.split("."))))
    if not capabilities:
        return None
    # All devices have one driver.
    own = _launcher.find_target(0)
    return own._replace(chip=_launcher.common_chip(capabilities))


def check() -> None:
    """Raises ValueError, with the index and the value, if attention on a CUDA device of this
    process has found wrong cu_seqlens since the last check. It waits for nothing: errors of
    results that are there (`jax.block_until_ready`) are known."""
    for device in _find_gpus():
        if device.process_index == jax.process_index():
            _launcher.poll(device.local_hardware_id)
