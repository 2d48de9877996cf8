"""Programs in C on the GPU, built with this machine's compiler: a launcher that varlen-opt has
made, and libvarlen-c. Each holds its numbers against a reference, and runs in a graph."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import kernels
import rehearsal
from varlen import _library

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = [f"-I{HERE / name}" for name in ("include", "programs", "test/CAPI/Inputs")]


class Failed(Exception):
    pass


def _run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=50 * rehearsal.SLACK,
        **options,
    )
    if done.returncode:
        said = (done.stderr + done.stdout).strip().splitlines()[-4:]
        raise Failed(
            f"{pathlib.Path(command[0]).name}: {' | '.join(said) or done.returncode}"[:400]
        )
    return done.stdout.strip().splitlines()


def _compiler():
    """The C compiler, and where libcuda is."""
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("nvcc")
    if not found:
        raise Failed("expected cc, gcc or nvcc, got none")
    return found


def _driver():
    """The library of the CUDA driver that the process would load."""
    import ctypes

    ctypes.CDLL("libcuda.so.1")
    with open("/proc/self/maps") as maps:
        return re.search(r"/\S*/libcuda\.so\S*", maps.read())[0]


def _rehearsed(source):
    """In a rehearsal: an image for the executor, and what has to be loaded for it."""
    if not rehearsal.FOLDER:
        return None, {}
    import executor

    path = pathlib.Path(rehearsal.FOLDER) / "program"
    image = path.with_suffix(".image")
    if not image.exists():
        shutil.copy(source, path.with_suffix(".mlir"))
        data = executor.compile_kernels(path)
        image.write_bytes(data)
    preload = f"{rehearsal.FOLDER}/libVarlenGPU.so:{path}-kernels.so"
    return image, {"env": {**os.environ, "LD_PRELOAD": preload}}


def c_launcher(folder):
    source = HERE / "test/CAPI/Inputs/attention.mlir"
    image = "cubin" if kernels.image_kind() == "cubin" else "ptx"
    _run("varlen-opt", source, "--emit=c-launcher", f"--image={image}", f"--chip={kernels.find_chip()}",
         f"--header={folder}/attention.h", "-o", folder / "attention.c")  # fmt: skip
    program = folder / "launcher"
    _run(_compiler(), "-O1", *INCLUDE, f"-I{folder}", HERE / "programs/launcher.c", folder / "attention.c",
         "-o", program, _driver(), "-lm")  # fmt: skip
    image, options = _rehearsed(source)
    return _run(program, *([image] if image else []), **options)


def library(folder):
    source = HERE / "test/CAPI/Inputs/attention.mlir"
    path = _library.find_library()
    program = folder / "library"
    _run(
        _compiler(),
        "-O1",
        *INCLUDE,
        HERE / "programs/library.c",
        "-o",
        program,
        path,
        _driver(),
        "-lm",
    )
    image, options = _rehearsed(source)
    environment = options.setdefault("env", dict(os.environ))
    folders = [str(path.parent), environment.get("LD_LIBRARY_PATH", "")]
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
    return _run(program, image or "-", kernels.find_chip(), source, **options)


def runtime(folder):
    """The tests of the runtime library that compiled host code calls."""
    program = HERE / "varlen-cuda-test"
    if rehearsal.FOLDER:
        program = pathlib.Path(os.environ["VARLEN_KIT_BUILD"]) / "bin/varlen-cuda-test"
    return _run(program)[-3:]


PROGRAMS = {"C launcher": c_launcher, "libvarlen-c": library, "runtime library": runtime}


def main(log, arguments):
    for name, make in PROGRAMS.items():
        if not re.search(arguments.labels, name) or log.done("program", name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                lines, outcome = make(pathlib.Path(folder)), "right"
            except (Failed, OSError, subprocess.SubprocessError, kernels.Missing) as error:
                lines, outcome = [str(error)[:400]], "wrong"
        log.add(
            "program",
            name,
            outcome=outcome,
            problems=lines if outcome == "wrong" else [],
            said=lines,
        )
        print(f"{outcome}: {name}", *lines, sep="\n  ", flush=True)
    return 0
