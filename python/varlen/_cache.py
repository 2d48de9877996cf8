"""Compiled programs, kept in memory."""

from __future__ import annotations

import threading

from . import _library

_programs: dict[tuple, _library.Program] = {}
_lock = threading.Lock()


def load(source, *, strided=False, runtime_checks=False, target=None):
    """_library.compile, or what it has made of the same before."""
    key = (source, strided, runtime_checks, target)
    program = _programs.get(key)
    if program is None:
        # One thread compiles what several want.
        with _lock:
            program = _programs.get(key)
            if program is None:
                program = _programs[key] = _library.compile(
                    source, strided=strided, runtime_checks=runtime_checks, target=target
                )
    return program
