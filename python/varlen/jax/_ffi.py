"""Attention as a custom call of XLA, and its handler in libvarlen-xla."""

import ctypes
import functools

import jax

from .. import _attention, _library
from .._arrays import COMMON_NAMES, Description

_NAME = "libvarlen-xla.so"
_PLATFORM = "cpu"
_STATE_TYPE = "varlen.function"
# Custom calls of both names run the function of their attribute `source`; their other
# attributes are what the pass varlen-import-stablehlo reads.
_TARGETS = {"attn": "varlen.attn", "attn_grad": "varlen.attn_grad"}
# Operands that every custom call has. Others are named by its attribute `operands`.
_NUM_REQUIRED = {"attn": 5, "attn_grad": 8}

_ELEMENTS = {name: element for element, name in COMMON_NAMES.items()}


def _load():
    """libvarlen-xla, whose handler XLA then knows."""
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

    def address(symbol):
        return jax.ffi.pycapsule(ctypes.addressof(ctypes.c_char.in_dll(library, symbol)))

    jax.ffi.register_ffi_type(
        _STATE_TYPE,
        {
            "type_id": address("varlenXLAStateTypeId"),
            "type_info": address("varlenXLAStateTypeInfo"),
        },
        platform=_PLATFORM,
    )
    handler = {
        "instantiate": address("varlenXLAInstantiate"),
        "execute": address("varlenXLAExecute"),
    }
    for target in _TARGETS.values():
        jax.ffi.register_ffi_target(target, handler, platform=_PLATFORM)
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
    target = jax.ffi.ffi_call(_TARGETS[operation], results)
    return target(*operands.values(), **attributes)
