"""Variable-length attention: the compiler's tools from Python, and the reference
that its tests hold it to. Needs numpy only."""

from . import dtypes, random, reference, safetensors, text, tolerance
from .dtypes import bfloat16
from .tools import Error, call, find_tool, run

__all__ = [
    "Error",
    "bfloat16",
    "call",
    "dtypes",
    "find_tool",
    "random",
    "reference",
    "run",
    "safetensors",
    "text",
    "tolerance",
]
