"""Compiled programs, kept in memory and on disk.

A file has the name of a hash of all that its program follows from: source, options,
the build of the library, the CPU. Files appear by being renamed, so processes never
see a part of one; one that is damaged or not the user's own is compiled again. What
was used least recently goes when all together are too large.
"""

from __future__ import annotations

import os
import pathlib
import stat
import tempfile
import threading

from . import _library

_SUFFIX = ".varlen"
_DEFAULT_BYTES = 256 << 20

_programs: dict[tuple, _library.Program] = {}
_lock = threading.Lock()
# A forked child has no thread that would release it.
os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


def directory():
    """Where programs are kept: VARLEN_CACHE_DIR, else varlen in XDG_CACHE_HOME or
    ~/.cache. None if VARLEN_CACHE_DIR is empty: nothing is kept on disk."""
    path = os.environ.get("VARLEN_CACHE_DIR")
    if path is None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        path = os.path.join(home, "varlen")
    return pathlib.Path(path) if path else None


def _limit():
    """VARLEN_CACHE_BYTES: how large all files may be together."""
    text = os.environ.get("VARLEN_CACHE_BYTES")
    if not text:
        return _DEFAULT_BYTES
    if not text.isdecimal():
        raise ValueError(f"VARLEN_CACHE_BYTES: expected a number of bytes, got {text!r}")
    return int(text)


def load(source, *, strided=False, runtime_checks=False, target=None):
    """_library.compile, or what it has made of the same before."""
    if isinstance(source, str):
        source = source.encode()
    key = (source, strided, runtime_checks, target)
    program = _programs.get(key)
    if program is None:
        # One thread compiles what several want.
        with _lock:
            program = _programs.get(key)
            if program is None:
                program = _programs[key] = _find(*key)
    return program


def _find(source, strided, runtime_checks, target):
    """The program from disk, or compiled, and then kept there."""
    folder, identity = directory(), _library.identity()
    path = None
    if folder is not None and identity is not None:
        import hashlib

        options = f"{identity}\n{strided} {runtime_checks} {target}\n"
        name = hashlib.sha256(options.encode() + source).hexdigest()
        path = folder / (name + _SUFFIX)
        program = _read(path)
        if program is not None:
            return program
    program = _library.compile(
        source, strided=strided, runtime_checks=runtime_checks, target=target
    )
    if path is not None:
        try:
            _write(path, program.serialize(), _limit())
        except OSError:
            pass  # A disk that is full or read-only: it is compiled again.
    return program


def _read(path):
    """The program of a file; None if there is none that can be used."""
    try:
        with open(path, "rb") as file:
            state = os.fstat(file.fileno())
            # It is code that will run: nobody else may have written it.
            if state.st_uid != os.geteuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            program = _library.deserialize(file.read())
        os.utime(path)
        return program
    except (OSError, ValueError, NotImplementedError, _library.CompileError):
        return None


def _write(path, data, limit):
    if len(data) > limit:
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _trim(path.parent, limit)


def _trim(folder, limit):
    """Removes the files that were used least recently, until the rest fits; and what
    processes that were ended have left."""
    files = []
    for entry in os.scandir(folder):
        if entry.name.endswith((_SUFFIX, ".tmp")):
            try:
                state = entry.stat()
            except FileNotFoundError:
                continue  # Another process was faster.
            files.append((state.st_mtime, state.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= limit:
            break
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        total -= size


def clear():
    """Forgets all programs, in memory and on disk. Functions that are in use stay."""
    _programs.clear()
    folder = directory()
    if folder is not None and folder.is_dir():
        _trim(folder, -1)
