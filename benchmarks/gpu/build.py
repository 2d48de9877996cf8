#!/usr/bin/env python3
"""Makes a folder that checks and times our kernels where there is no compiler.

It holds one shared library for each function (kernels for every chip inside,
compiled host code around them), the runtime library that they call, and the
scripts that run them. It needs Linux, numpy, ml_dtypes, PyTorch and a CUDA driver; see
run.py. With --chips=sim the kernels are host functions, for the executor: that is
how the folder itself is tested.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CARRIED = [
    HERE / "run.py", HERE / "check.py", HERE / "functions.py", HERE / "peers.py",
    HERE / "plan.py", HERE / "rows.py", HERE / "schedules.py", HERE / "speed.py", HERE / "timing.py",
    ROOT / "benchmarks/sets.py", ROOT / "test/Integration/Inputs/harness.py",
    ROOT / "test/Integration/Inputs/attn_gradients.py",
    ROOT / "test/Integration/Inputs/parameters.py", ROOT / "python/varlen",
    ROOT / "LICENSE",
]  # fmt: skip
RUNTIME = ["VarlenMGPU", "VarlenGPURuntime", "VarlenRuntime"]
EXECUTOR = ["VarlenGPUExecutor", "VarlenExecutor"]

sys.path[:0] = [
    str(HERE), str(ROOT / "benchmarks"), str(ROOT / "test/Integration/Inputs"),
    str(ROOT / "python"),
]  # fmt: skip


class Failed(Exception):
    pass


def run(*command, text=None):
    done = subprocess.run(
        [str(part) for part in command], input=text, capture_output=True, check=False
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["?"]
        errors = [line for line in lines if "error:" in line] or lines
        raise Failed(errors[0])
    return done


def kernels_of(remarks):
    """Registers by kernel, from the remarks of varlen-assemble."""
    found = re.findall(r"remark: (\w+) uses (\d+) registers", remarks)
    return [{"name": name, "registers": int(count)} for name, count in found]


def build_function(tools, out, chip, form, name, text):
    """Compiles one function for one chip; what ptxas says of its kernels."""
    # All functions of a kit have names of their own.
    text = text.replace("@attention(", f"@{name}(")
    pipeline = f"--varlen-to-nvvm=chip={'sm_80' if chip == 'sim' else chip} format={form}"
    if form == "fatbin":
        pipeline += " report=true"
    lowered = run(tools / "varlen-opt", "-", pipeline, text=text.encode())
    code = run("mlir-translate", "--mlir-to-llvmir", text=lowered.stdout).stdout
    run(
        "clang", "-x", "ir", "-", "-O1", "-fPIC", "-shared", "-Wno-override-module",
        "-Wl,-rpath,$ORIGIN/..", f"-L{out}", "-lVarlenGPU", "-lm",
        "-Wl,--no-undefined",
        "-o", out / chip / f"{name}.so", text=code,
    )  # fmt: skip
    return kernels_of(lowered.stderr.decode(errors="replace"))


def build_runtime(build, out, with_executor):
    libraries = RUNTIME + (EXECUTOR if with_executor else [])
    archives = [build / "lib" / f"lib{name}.a" for name in libraries]
    # Only the executor needs libstdc++: what is carried needs the C library.
    run(
        "clang++" if with_executor else "clang", "-shared", "-Wl,--whole-archive",
        *archives, "-Wl,--no-whole-archive", "-Wl,-soname,libVarlenGPU.so", "-pthread",
        "-ldl", "-Wl,--no-undefined", "-o", out / "libVarlenGPU.so",
    )  # fmt: skip


def ptxas_version():
    if not shutil.which("ptxas"):
        return None
    return re.search(r"release ([\d.]+)", run("ptxas", "--version").stdout.decode())[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="default: BUILD/gpu-kit")
    parser.add_argument("--chips", default="sm_80,sm_90a", help="or sim")
    parser.add_argument("--only", default="", help="a regular expression on labels")
    parser.add_argument("--tune", action="store_true", help="for run.py --tune")
    parser.add_argument("--jobs", default=len(os.sched_getaffinity(0)), type=int)
    arguments = parser.parse_args()
    import plan

    out = arguments.out or arguments.build / "gpu-kit"
    shutil.rmtree(out, ignore_errors=True)
    chips = arguments.chips.split(",")
    for chip in chips:
        (out / chip).mkdir(parents=True)
    for path in CARRIED:
        if path.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, out / path.name, ignore=ignore)
        else:
            shutil.copy(path, out)
    build_runtime(arguments.build, out, "sim" in chips)
    shutil.copy(arguments.build / "bin/varlen-cuda-test", out)

    ptxas = ptxas_version()
    # Without ptxas the driver compiles the kernels when they are loaded.
    forms = {chip: "sim" if chip == "sim" else "fatbin" if ptxas else "ptx" for chip in chips}
    wanted = {}
    timed = plan.tuned(chips) if arguments.tune else plan.timed()
    checked = [] if arguments.tune else plan.checked()
    for item, text in [(c, plan.timed_text(c)) for c in timed] + [
        (g, plan.checked_text(g)) for g in checked
    ]:
        if re.search(arguments.only, item.label):
            wanted.setdefault(plan.name_of(text), (item.label, text))
    if not wanted:
        sys.exit(f"no configuration matches '{arguments.only}'; run.py --list prints all")
    begin = time.monotonic()
    kit = {"chips": chips, "ptxas": ptxas, "forms": forms, "functions": {}}

    def build(name):
        label, text = wanted[name]
        entry = {"label": label, "kernels": {}, "errors": {}}
        for chip, form in forms.items():
            try:
                entry["kernels"][chip] = build_function(
                    arguments.build / "bin", out, chip, form, name, text
                )
            except Failed as error:
                entry["errors"][chip] = str(error)
        return name, entry

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for i, (name, entry) in enumerate(pool.map(build, wanted)):
            kit["functions"][name] = entry
            if sys.stderr.isatty():
                print(f"\r[{i + 1}/{len(wanted)}] {entry['label']}\x1b[K", end="",
                      file=sys.stderr, flush=True)  # fmt: skip
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    (out / "functions.json").write_text(json.dumps(kit, indent=1) + "\n")
    for entry in kit["functions"].values():
        for chip, error in entry["errors"].items():
            print(f"not compiled for {chip}: {entry['label']}: {error}")
    made = [sum(c in e["kernels"] for e in kit["functions"].values()) for c in chips]
    of_chips = ", ".join(f"{n} for {c}" for n, c in zip(made, chips))
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(
        f"{out}: of {len(wanted)} functions {of_chips}, {size / 1e6:.1f} MB, "
        f"{time.monotonic() - begin:.0f} s"
    )
    return int(not all(made))


if __name__ == "__main__":
    sys.exit(main())
