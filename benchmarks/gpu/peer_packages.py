"""Fetches what peers need from PyPI, for the machine with the GPU, and keeps it in a folder.

Of dew-flash-attn-cu13 only the library of FlashAttention 3, with licences: 1 MB of 78. cuDNN
itself is PyTorch's; nvidia-cudnn-frontend 1.22 is the newest that can plan a backward with
cuDNN 9.19. Nothing of this is committed."""

import lzma
import pathlib
import subprocess
import sys
import tempfile
import zipfile

FLASH3 = "dew-flash-attn-cu13==0.3.6"
CUDNN = "nvidia-cudnn-frontend==1.22.1"
# Of FlashAttention 3, and what calls it.
LIBRARY, CALLER = "libdew_flash_attn3.so", "libxla-call.so"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64")


def _download(package, python, folder):
    """The wheel of a package for Python `python` on x86-64."""
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--only-binary=:all:", "--implementation=cp", f"--python-version={python}",
         *(f"--platform={platform}" for platform in PLATFORMS), "--dest", folder, package],
        check=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    return wheel


def fetch(folder, python):
    """Fills a folder, unless it has been filled before."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / f"{LIBRARY}.xz"
    if not packed.exists():
        with tempfile.TemporaryDirectory() as scratch:
            with zipfile.ZipFile(_download(FLASH3, "3.12", pathlib.Path(scratch))) as wheel:
                for name in wheel.namelist():
                    if "/licenses/" in name:
                        (folder / f"flash3-{pathlib.Path(name).name}").write_bytes(wheel.read(name))
                library = wheel.read(f"dew_flash_attn/{LIBRARY}")
        packed.write_bytes(lzma.compress(library, preset=9 | lzma.PRESET_EXTREME))
    if not list(folder.glob("nvidia_cudnn_frontend-*.whl")):
        with tempfile.TemporaryDirectory() as scratch:
            wheel = _download(CUDNN, python, pathlib.Path(scratch))
            (folder / wheel.name).write_bytes(wheel.read_bytes())


def build_caller(source, headers, out):
    """Compiles what calls FlashAttention 3's handlers; it needs the C library only."""
    subprocess.run(
        ["clang++-22", "-shared", "-fPIC", "-O1", "-static-libstdc++", "-static-libgcc",
         "-Wl,--strip-all", f"-I{headers}", source, "-o", out], check=True,
    )  # fmt: skip
