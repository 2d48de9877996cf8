#!/usr/bin/env python3
"""Makes a folder that runs the queue of parts.py on a machine with a GPU: the wheel, whose
compiler makes the kernels there, scripts, the tests that run on CUDA, and small peers.

The other machine needs Linux on x86-64, Python 3.12 with PyTorch for CUDA, numpy and ml_dtypes,
and NVIDIA's driver; with JAX, a C compiler and CUDA's tools it runs more parts. See run.py.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE)]

# What is carried as it is, by where it lies in the folder.
MODULES = sorted(path for path in HERE.glob("*.py") if path.name != "build.py")
CARRIED = {
    **{path.name: path for path in MODULES},
    "sets.py": ROOT / "benchmarks/sets.py",
    "rehearsal-tools": HERE / "rehearsal-tools",
    "programs": HERE / "programs",
    **{
        name: ROOT / name for name in (
            "LICENSE", "examples", "include/varlen-c", "test/CAPI/Inputs", "test/Integration/Inputs",
            "test/JAX", "test/Package/Inputs/launcher", "test/PyTorch", "test/Python/Inputs",
            "test/python/run_scripts.py",
        )
    },
}  # fmt: skip
LIMIT = 45 << 20


def carry(out):
    for name, path in CARRIED.items():
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, target)


def find_wheel(build):
    wheels = sorted(build.glob("varlen-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        sys.exit(f"{build}: expected a wheel, got none: make wheel")
    return wheels[-1]


def find_headers(build):
    """Where XLA's headers are for a build, or None."""
    text = (build / "CMakeCache.txt").read_text()
    found = re.search(r"^VARLEN_XLA_INCLUDE_DIR:\w+=(/.*)$", text, re.M)
    return pathlib.Path(found[1]) if found else None


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--build", default=ROOT / "build-release", type=pathlib.Path, help="which has the wheel"
    )
    parser.add_argument("--out", default=ROOT / "build/gpu-kit", type=pathlib.Path)
    parser.add_argument(
        "--packages",
        default=ROOT / "build/gpu-peers",
        type=pathlib.Path,
        help="where peers' packages are kept",
    )
    parser.add_argument("--python", default="3.12", help="Python's version there")
    parser.add_argument(
        "--scripts", action="store_true", help="no wheel and no peers: for a rehearsal"
    )
    arguments = parser.parse_args()
    out, begin = arguments.out, time.monotonic()
    shutil.rmtree(out, ignore_errors=True)
    carry(out)
    if not arguments.scripts:
        import peer_packages

        (out / "wheels").mkdir()
        shutil.copy(find_wheel(arguments.build), out / "wheels")
        shutil.copy(arguments.build / "bin/varlen-cuda-test", out)
        peer_packages.fetch(arguments.packages, arguments.python)
        shutil.copytree(arguments.packages, out / "peers")
        headers = find_headers(arguments.build)
        if headers:
            caller = out / "peers" / peer_packages.CALLER
            peer_packages.build_caller(ROOT / "test/JAX/Inputs/call-frame.cpp", headers, caller)
        else:
            print("no FlashAttention 3: the build has no headers of XLA", file=sys.stderr)
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    (out / "kit.json").write_text(json.dumps({"commit": commit, "made": time.time()}) + "\n")
    size = size_of(out)
    print(f"{out}: {size / (1 << 20):.1f} MiB, {time.monotonic() - begin:.0f} s")
    if size > LIMIT:
        sys.exit(f"{out}: expected at most {LIMIT >> 20} MiB, got {size / (1 << 20):.1f}")


if __name__ == "__main__":
    main()
