"""Models of ONNX as functions of MLIR: import_model, and the command varlen-import.

Needs the package onnx, which is loaded when something of this is used.
"""

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:  # What tools read in place of the table below.
    from ._builder import ModelError
    from ._export import torch_translations
    from ._importer import OPSETS, Function, import_model

# Where each public name is.
_HOMES = {
    "ModelError": "_builder",
    "OPSETS": "_importer",
    "Function": "_importer",
    "import_model": "_importer",
    "torch_translations": "_export",
}

__all__ = list(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'varlen.onnx' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
