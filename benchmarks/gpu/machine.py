"""What the GPU is, what software it has, and what it reaches in a product and a copy."""

import platform
import shutil
import subprocess

import kernels
import rehearsal
import varlen


def _first_line(*command):
    """What a program says of itself, or None."""
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return lines[-1].strip() if lines else None


def _version(name):
    try:
        return __import__(name).__version__
    except Exception as error:  # whatever a package does when it is imported
        return f"none: {type(error).__name__}"


def main(log, arguments):
    rehearsal.start()
    row = {
        "chip": kernels.find_chip(), "varlen": varlen.__version__ if hasattr(varlen, "__version__") else None,
        "python": platform.python_version(), "kernel": platform.release(),
        "driver": _first_line("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "ptxas": _first_line("ptxas", "--version"), "nvcc": _first_line("nvcc", "--version"),
        "cc": _first_line("cc", "-dumpfullversion"),
        "sanitizer": bool(shutil.which("compute-sanitizer")), "ncu": bool(shutil.which("ncu")),
        "jax": _version("jax"), "triton": _version("triton"), "numpy": _version("numpy"),
    }  # fmt: skip
    import torch

    rehearsal.start_torch()
    import timing

    properties = torch.cuda.get_device_properties(0)
    row |= {
        "gpu": properties.name, "multiprocessors": properties.multi_processor_count,
        "torch": torch.__version__, "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "matmul_tflops": timing.matmul_tflops(), "copy_tb_s": timing.copy_tb_s(),
    }  # fmt: skip
    log.add("machine", "machine", **row)
    print(row, flush=True)
    return 0
