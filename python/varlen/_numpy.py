"""numpy, imported where it is first used: text of MLIR is made without it."""

import importlib


def __getattr__(name):
    return getattr(importlib.import_module("numpy"), name)
