"""Compiled programs of the CPU and launchers of GPUs, kept in memory and on disk.

A file has the name of a hash of all that its content follows from: the kind, source,
options, the build of the library, the CPU. Files appear by being renamed, so processes never
see a part of one; one that is damaged or not the user's own is compiled again. What
was used least recently goes when all together are too large.

A file is code that will run in this process. Before a byte of it is used, the folder
and the file must belong to the user, no one else may write to either, and the file is a
regular one, not larger than the cache and begins with its own key: docs/python.md.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import secrets
import stat
import threading
import warnings
from typing import Any

from . import _library

_SUFFIX = ".varlen"
_DEFAULT_BYTES = 256 << 20

_kept: dict[tuple, Any] = {}
# A lock for what is being made, by its key.
_locks: dict[tuple, threading.Lock] = {}
# A forked child has no threads that would release them.
os.register_at_fork(after_in_child=_locks.clear)


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

    def compile():
        return _library.compile(
            source, strided=strided, runtime_checks=runtime_checks, target=target
        )

    options = strided, runtime_checks, target, os.environ.get("VARLEN_CODEGEN", "")
    return find("program", source, options, compile, _library.deserialize)


def find(kind, source, options, compile, deserialize):
    """What `compile` makes of a source with options, a tuple that is printed, or has made of
    the same before: in this process, or in another one, of whose `serialize()` `deserialize`
    makes it again."""
    if isinstance(source, str):
        source = source.encode()
    key = kind, source, options
    found = _kept.get(key)
    if found is None:
        # One thread compiles what several want; different ones are compiled at once.
        with _locks.setdefault(key, threading.Lock()):
            found = _kept.get(key)
            if found is None:
                found = _kept[key] = _find(*key, compile, deserialize)
        _locks.pop(key, None)
    return found


def _find(kind, source, options, compile, deserialize):
    """From disk, or compiled, and then kept there."""
    folder, identity = directory(), _library.identity()
    key = None
    if folder is not None and identity is not None:
        key = hashlib.sha256(f"{identity}\n{kind} {options}\n".encode() + source).digest()
        found = _read(folder, key, deserialize)
        if found is not None:
            return found
    made = compile()
    if key is not None:
        try:
            _write(folder, key, made.serialize(), _limit())
        except OSError:
            pass  # A disk that is full or read-only: it is compiled again.
    return made


# What a file begins with, before its key.
_MARK = b"VARLEN-CACHE 1\n"


def _is_own(state):
    """Whether only this user, and root, can have written the file of that `state`."""
    return state.st_uid == os.geteuid() and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


class _Folder:
    """The folder, open: files are named relative to what has been looked at, so that a
    folder put in its place later changes nothing. OSError if it is not to be used."""

    def __init__(self, path):
        self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if not _is_own(os.fstat(self.descriptor)):
            os.close(self.descriptor)
            message = (
                f"{path}: compiled programs are not kept in a folder that belongs to another "
                "user, or that others may write to"
            )
            warnings.warn(message, stacklevel=2)
            raise PermissionError(message)

    def __enter__(self):
        return self.descriptor

    def __exit__(self, *_):
        os.close(self.descriptor)


def _read(path, key, deserialize):
    """What the file of a key holds; None if there is none that can be used."""
    try:
        with _Folder(path) as folder:
            name = key.hex() + _SUFFIX
            # No link is followed, and nothing is waited for at a FIFO.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with open(os.open(name, flags, dir_fd=folder), "rb") as file:
                state = os.fstat(file.fileno())
                if not (
                    stat.S_ISREG(state.st_mode) and _is_own(state) and state.st_size <= _limit()
                ):
                    return None
                head = _MARK + key
                content = file.read(state.st_size)
            if not content.startswith(head):
                return None
            found = deserialize(content[len(head) :])
            os.utime(name, dir_fd=folder, follow_symlinks=False)
            return found
    except (OSError, ValueError, NotImplementedError, _library.CompileError):
        return None


def _write(path, key, program, limit):
    data = _MARK + key + program
    if len(data) > limit:
        return
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _Folder(path) as folder:
        temporary = secrets.token_hex(8) + ".tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with open(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(data)
            os.replace(temporary, key.hex() + _SUFFIX, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise
        _trim(folder, limit)


def _trim(folder, limit):
    """Removes the files that were used least recently, until the rest fits; and what
    processes that were ended have left."""
    files = []
    for entry in os.scandir(folder):
        if entry.name.endswith((_SUFFIX, ".tmp")):
            try:
                state = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # Another process was faster.
            files.append((state.st_mtime, state.st_size, entry.name))
    total = sum(size for _, size, _ in files)
    for _, size, name in sorted(files):
        if total <= limit:
            break
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            pass
        total -= size


def clear():
    """Forgets all of it, in memory and on disk. Functions that are in use stay."""
    _kept.clear()
    path = directory()
    if path is not None and path.is_dir():
        with _Folder(path) as folder:
            _trim(folder, -1)
