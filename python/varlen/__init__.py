"""Variable-length attention from Python.

Importing this needs nothing but the standard library and loads nothing else:
modules and functions are loaded when they are first used.
"""

import importlib

TYPE_CHECKING = False  # As typing's, which takes as long to import as all of this.
if TYPE_CHECKING:  # What tools read in place of the table below.
    __version__: str
    from . import bench, context_parallel, dtypes, kv_cache, random, reference, safetensors, scores, text, tolerance, tools
    from ._append import append
    from ._attention import attn, attn_grad, attn_jvp, attn_jvp_grad
    from ._library import CompileError, get_num_threads, overlap_launches, set_num_threads
    from ._program import compile
    from .dtypes import bfloat16
    from .tools import Error, call, find_tool, run

# Where each public name is.
_HOMES = {
    "append": "_append",
    "attn": "_attention",
    "attn_grad": "_attention",
    "attn_jvp": "_attention",
    "attn_jvp_grad": "_attention",
    "compile": "_program",
    "CompileError": "_library",
    "get_num_threads": "_library",
    "overlap_launches": "_library",
    "set_num_threads": "_library",
    "Error": "tools",
    "bfloat16": "dtypes",
    "call": "tools",
    "find_tool": "tools",
    "run": "tools",
}
_MODULES = (
    "bench", "context_parallel", "dtypes", "kv_cache", "random", "reference", "safetensors", "scores",
    "text", "tolerance", "tools",
)  # fmt: skip

__all__ = [*_HOMES, *_MODULES]


def __getattr__(name):
    if name in _HOMES:
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    elif name == "__version__":
        value = importlib.import_module("._library", __name__).version()
    elif name in _MODULES:
        value = importlib.import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module 'varlen' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
