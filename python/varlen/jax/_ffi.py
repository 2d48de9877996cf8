"""Attention as a custom call of XLA, and its handlers in libvarlen-xla."""

import ctypes
import functools
import re

import jax
from jax import numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from .. import _attention, _library
from .._arrays import COMMON_NAMES, ELEMENTS, Description
from .._launcher import Launcher, chip_of

_NAME = "libvarlen-xla.so"
# Of each of XLA's platforms: the beginning of names in libvarlen-xla, the type of state
# that a custom call has, and its stages.
_PLATFORMS = {
    "cpu": ("varlenXLA", "varlen.function", ("Instantiate", "Execute")),
    "CUDA": ("varlenXLACUDA", "varlen.launcher", ("Instantiate", "Initialize", "Execute")),
}
# Custom calls of both names run the function of their attribute `source`; their other
# attributes are what the pass varlen-import-stablehlo reads.
_TARGETS = {"attn": "varlen.attn", "attn_grad": "varlen.attn_grad"}
# Operands that every custom call has. Others are named by its attribute `operands`.
_NUM_REQUIRED = {"attn": 5, "attn_grad": 8}

_ELEMENTS = {name: element for element, name in COMMON_NAMES.items()}


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
        for target in _TARGETS.values():
            jax.ffi.register_ffi_target(target, handler, platform=platform)
    return library


_xla = _load()


@functools.cache
def _provide(source):
    """Has the function of this text ready when XLA asks for it."""
    # XLA's buffers are dense.
    function = _attention._compile(source, strided=False)
    # Executables call it until the process ends, after Python has.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(function._program))
    data = source.encode()
    _xla.varlenXLAAddFunction(data, len(data), function._handle)


def _find_chip():
    """The GPU that kernels are compiled for: JAX's first device; None if that is none of
    CUDA's."""
    device = jax.devices()[0]
    capability = getattr(device, "compute_capability", None)
    if device.platform != "gpu" or not re.fullmatch(r"\d+\.\d", str(capability)):
        return None
    return chip_of(*capability.split("."))


@functools.cache
def _launcher(source, chip):
    """The kernels of the function of this text, which XLA's handler then has."""
    launcher = Launcher(source, chip)
    # As of functions.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(launcher))
    data = source.encode()
    _xla.varlenXLAAddLauncher(data, len(data), chip.encode(), launcher._handle)
    return launcher


_DLPACK = {element: kind for kind, element in reversed(ELEMENTS.items())}


def _workspace_size(source, chip, types):
    """Bytes of device memory for the kernels, for operands and results of these types. 0
    where shapes are symbolic or the GPU has no such kernels, which matters only to a
    program that then runs there: it gets an error of the handler."""
    if not all(isinstance(extent, int) for type in types for extent in type.shape):
        return 0
    extents, tensors = [], []
    for type in types:
        extents.append((ctypes.c_int64 * len(type.shape))(*type.shape))
        tensors.append(
            _library.Tensor(
                None, _library.CUDA, 0, len(type.shape), *_DLPACK[_ELEMENTS[str(type.dtype)]], 1,
                ctypes.addressof(extents[-1]),
            )
        )  # fmt: skip
    try:
        return _launcher(source, chip).workspace_size(tensors)
    except _library.CompileError:
        return 0


def prepare(operation, operands, options):
    """The text of a function for operands, by name. Raises what is wrong with them."""
    descriptions = {}
    for name, array in operands.items():
        element = _ELEMENTS.get(str(array.dtype))
        if element is None:
            raise TypeError(
                f"{name}: expected elements of {', '.join(_ELEMENTS)}, got {array.dtype}"
            )
        descriptions[name] = Description(element, array.shape)
    source = _attention.make_source(operation, descriptions, *options)
    _provide(source)
    return source


def call(operation, source, operands, options, results):
    """The results of a custom call on operands, by name in the op's order. `results`
    are their types, `options` are window, chunk, alignment, scale and score."""
    window, chunk, alignment, scale, _ = options
    attributes = {"source": source, "top_left": alignment == "top_left"}
    if chunk is None:
        attributes |= {"window_left": window[0], "window_right": window[1]}
    else:
        attributes["chunk"] = chunk
    if scale is not None:
        attributes["scale"] = float(scale)
    if optional := list(operands)[_NUM_REQUIRED[operation] :]:
        attributes["operands"] = ",".join(optional)
    chip = _find_chip()

    def on_cpu(*arrays):
        return jax.ffi.ffi_call(_TARGETS[operation], results)(*arrays, **attributes)

    def on_cuda(*arrays):
        target = jax.ffi.ffi_call(_TARGETS[operation], [*results, workspace])
        return target(*arrays, chip=chip, **attributes)[:-1]

    if chip is None:
        return on_cpu(*operands.values())
    size = _workspace_size(source, chip, [*map(jax.typeof, operands.values()), *results])
    sharding = NamedSharding(results[0].sharding.mesh, PartitionSpec(None))
    workspace = results[0].update(
        shape=(size,), dtype=jnp.dtype("uint8"), weak_type=False, sharding=sharding
    )
    # Where it will run is known when it is lowered.
    return jax.lax.platform_dependent(*operands.values(), cpu=on_cpu, cuda=on_cuda)
