"""What is registered with a module of others once that is imported, so that importing
varlen.torch imports no module that takes long."""

import importlib.abc
import sys


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name, function):
        self._name, self._function = name, function

    def find_spec(self, name, path, target=None):
        if name != self._name:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None:
                spec.loader.exec_module = self._then_call(spec.loader.exec_module)
                return spec
        return None

    def _then_call(self, exec_module):
        def run(module):
            exec_module(module)
            sys.meta_path.remove(self)
            self._function()

        return run


def when_imported(name, function):
    """Calls function() once the module of that name is there, now if it is."""
    if name in sys.modules:
        function()
    else:
        sys.meta_path.insert(0, _Finder(name, function))
