# RUN: rm -rf %t
# RUN: env VARLEN_CACHE_DIR=%t %python %s

"""Programs come from memory and from disk; files that are not right are not used."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import warnings

from checks import raises

from varlen import _cache, _launcher, _library, text

folder = pathlib.Path(os.environ["VARLEN_CACHE_DIR"])
compiled = 0
compile_really = _library.compile


def compile_and_count(*arguments, **options):
    global compiled
    compiled += 1
    return compile_really(*arguments, **options)


_library.compile = compile_and_count


def load(source, **options):
    """Loads the program as a new process would; returns how often it was compiled."""
    before = compiled
    _cache._kept.clear()
    program = _cache.load(source, **options)
    assert program[None].name in ("f", "attention")
    assert _cache.load(source, **options) is program
    return compiled - before


def files():
    return sorted(folder.glob("*"))


def module(n):
    return f"func.func @f(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {{ return %x : tensor<{n}xf32> }}"


assert load(module(1)) == 1 and load(module(1)) == 0
(path,) = files()
assert folder.stat().st_mode & 0o777 == 0o700 and path.stat().st_mode & 0o777 == 0o600

# Everything that code follows from is part of the key.
assert load(module(2)) == load(module(1), strided=True) == 1
assert load(module(1), runtime_checks=True) == load(module(1), target="generic") == 1
identity = _library.identity
_library.identity = lambda: "another build"
assert load(module(1)) == 1
_library.identity = identity
codegen = os.environ.get("VARLEN_CODEGEN", "")
os.environ["VARLEN_CODEGEN"] = "" if codegen else "fast"
assert load(module(1)) == 1
os.environ["VARLEN_CODEGEN"] = "fastest"
raises(_library.CompileError, "VARLEN_CODEGEN: expected 'fast'", _cache.load, module(1))
os.environ["VARLEN_CODEGEN"] = codegen
assert load(module(1)) == 0 and len(files()) == 7

# What is damaged, cut off, empty or another program's is compiled again, and mended.
good = path.read_bytes()
flipped = bytes([*good[:-100], good[-100] ^ 1, *good[-99:]])
for bad in (good[:-1], b"", good[:40], flipped, b"code"):
    path.write_bytes(bad)
    assert load(module(1)) == 1 and path.read_bytes() == good and load(module(1)) == 0
path.chmod(0o666)
assert load(module(1)) == 1 and path.stat().st_mode & 0o777 == 0o600
head = len(_cache._MARK) + 32  # The mark of the cache, and the key.
program = good[head:]
raises(ValueError, "the checksum differs", _library.deserialize, program[:-1] + b"\0\0")
raises(ValueError, "expected the bytes of a program", _library.deserialize, b"code")

# Of another program: no file is used under a name that is not its own.
other = next(file for file in files() if file != path)
for content in (other.read_bytes(), good.replace(b"VARLEN-CACHE", b"VARLEN-OTHER", 1)):
    path.write_bytes(content)
    assert load(module(1)) == 1 and path.read_bytes() == good and load(module(1)) == 0

# What is no regular file is neither followed nor waited for, and replaced.
elsewhere = folder.parent / (folder.name + ".elsewhere")
elsewhere.write_bytes(good)
elsewhere.chmod(0o600)


def link():
    path.symlink_to(elsewhere)


def sparse():
    path.touch(mode=0o600)
    os.truncate(path, 1 << 37)


signal.alarm(120)
for make in (link, lambda: os.mkfifo(path, 0o600), sparse):
    path.unlink()
    make()
    assert load(module(1)) == 1 and load(module(1)) == 0
    assert path.read_bytes() == good and not path.is_symlink()
signal.alarm(0)
assert elsewhere.read_bytes() == good
elsewhere.unlink()
path.unlink()
path.mkdir()
assert load(module(1)) == load(module(1)) == 1 and path.is_dir()
path.rmdir()
assert load(module(1)) == 1 and path.read_bytes() == good

# Nor is a folder used, for reading or writing, that others may write to.
folder.chmod(0o777)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert load(module(1)) == 1 and load(module(3)) == 1
assert caught and "belongs to another user, or that others may write to" in str(caught[0].message)
folder.chmod(0o700)
assert load(module(1)) == 0
moved = folder.rename(folder.parent / (folder.name + ".moved"))
folder.symlink_to(moved)
assert load(module(1)) == 0  # The user's own link to the user's own folder.
folder.unlink()
moved.rename(folder)

# What another build of the library has made is for that one only.
build_id = re.search("build ([0-9a-f]+)", _library.identity())[1]
content = _library.find_library().read_bytes()
assert content.count(bytes.fromhex(build_id)) == 1
other = folder / "another-build.so"
other.write_bytes(content.replace(bytes.fromhex(build_id), bytes(len(build_id) // 2)))
OTHER = """
import pathlib, sys
from varlen import _library
assert "build 0000" in _library.identity()
try:
    _library.deserialize(pathlib.Path(sys.argv[1]).read_bytes()[int(sys.argv[2]):])
except NotImplementedError as error:
    assert "expected a program for varlen" in str(error), error
    sys.exit()
raise AssertionError("a program of another build was accepted")
"""
environment = {**os.environ, "VARLEN_LIBRARY": str(other)}
subprocess.run([sys.executable, "-c", OTHER, str(path), str(head)], env=environment, check=True)
other.unlink()

# A compilation that fails leaves nothing.
count = len(files())
raises(_library.CompileError, "expected", _cache.load, "func.func @f(")
assert len(files()) == count

# The size is bounded; what was used last stays.
for i in range(6):
    load(module(10 + i))
    time.sleep(0.02)
size = sum(file.stat().st_size for file in files())
load(module(1))
os.environ["VARLEN_CACHE_BYTES"] = str(4 * len(good))
assert load(module(30)) == 1
assert sum(file.stat().st_size for file in files()) <= 4 * len(good) < size
assert load(module(1)) == load(module(30)) == 0 and load(module(10)) == 1
os.environ["VARLEN_CACHE_BYTES"] = "some"
raises(ValueError, "VARLEN_CACHE_BYTES: expected a number of bytes, got 'some'", load, module(31))
del os.environ["VARLEN_CACHE_BYTES"]

# Without a folder, and with one that cannot be made.
for place in ("", str(path / "below")):
    os.environ["VARLEN_CACHE_DIR"] = place
    assert load(module(1)) == 1 and load(module(1)) == 1
os.environ["VARLEN_CACHE_DIR"] = str(folder)
_cache.clear()
assert not files() and not _cache._kept

# Launchers of GPUs: the same folder and rules. Their code is for a chip and a version of PTX.
launchers = 0
Launcher = _launcher.Launcher


class CountedLauncher(Launcher):
    def __init__(self, *arguments, **options):
        global launchers
        launchers += 1
        super().__init__(*arguments, **options)


_launcher.Launcher = CountedLauncher
kernels = text.attn(heads=1, head_dim=64)


def load_kernels(chip="sm_80", ptx=0, strided=False):
    """Loads the launcher as a new process would; returns how often it was compiled."""
    before = launchers
    _cache._kept.clear()
    target = _launcher.Target(chip, ptx)
    launcher = _launcher.load(kernels, target, strided=strided)
    assert [x.name for x in launcher.parameters][:3] == ["q", "k", "v"]
    assert _launcher.load(kernels, target, strided=strided) is launcher
    return launchers - before


assert load_kernels() == 1 and load_kernels() == 0
(path,) = files()
assert path.stat().st_mode & 0o777 == 0o600
for options in ({"chip": "sm_86"}, {"ptx": 80}, {"strided": True}):
    assert load_kernels(**options) == 1
assert len(files()) == 4
assert load(kernels) == 1  # The CPU's program of the same text is another file.
good = path.read_bytes()
path.write_bytes(good[:-100] + bytes([good[-100] ^ 1]) + good[-99:])
assert load_kernels() == 1 and path.read_bytes() == good and load_kernels() == 0
path.chmod(0o666)
assert load_kernels() == 1 and path.stat().st_mode & 0o777 == 0o600
code = good[head:]
raises(ValueError, "the checksum differs", Launcher.deserialize, code[:-1])
raises(ValueError, "expected the bytes of a launcher, got", Launcher.deserialize, program)
raises(ValueError, "expected the bytes of a program, got", _library.deserialize, code)
_launcher.Launcher = Launcher
_cache.clear()

# Processes that fill it at the same time: all have right results, and one file each.
WORK = """
import numpy, varlen
for n in range(1, 9):
    program = varlen.compile(f"func.func @f(%x: tensor<{n}xf32>) -> tensor<{n}xf32> "
                             f"{{ return %x : tensor<{n}xf32> }}")
    x = numpy.arange(n, dtype=numpy.float32)
    assert (program(x) == x).all()
"""
workers = [subprocess.Popen([sys.executable, "-c", WORK]) for _ in range(4)]
assert [worker.wait() for worker in workers] == [0] * 4
assert len(files()) == 8 and all(file.suffix == ".varlen" for file in files())
# The arguments of a text, and with them the text, change what is compiled.
sources = {text.attn(heads=h, window=w) for h in (1, 2) for w in ((-1, -1), (-1, 0), (2, 1))}
assert len(sources) == 6
