"""Models of ONNX as functions of MLIR: import_model, and the command varlen-import.

Needs the package onnx.
"""

from ._builder import ModelError
from ._importer import OPSETS, Function, import_model

__all__ = ["OPSETS", "Function", "ModelError", "import_model"]
