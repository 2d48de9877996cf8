#!/usr/bin/env python3
"""Takes a packed batch of documents through varlen-opt, runs it on this CPU, and
its GPU kernels in the executor."""

import argparse
import array
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time

EXAMPLES = pathlib.Path(__file__).resolve().parent
MODULE = EXAMPLES / "packed.mlir"
ORACLE = "varlen-decompose-attn,varlen-to-cpu"
SHORT = "130,0,3,64"
LENGTHS = [448, 3, 1280, 1856, 37, 960, 2048, 1, 704, 512, 129, 1344]
ROWS = [
    (dtype, mask, threads)
    for dtype in ("f32", "bf16")
    for mask in ("full", "causal")
    for threads in (1, 2)
]


def run(*command):
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result


def show(title, text):
    print(f"\n--- {title}\n")
    print("\n".join("    " + line for line in text.splitlines()), flush=True)


def excerpt(lines, marker, before, after):
    """The lines around the first one that has the marker, cut to the screen."""
    at = next(i for i, line in enumerate(lines) if marker in line)
    part = lines[max(at - before, 0) : at + after + 1]
    indent = min(len(line) - len(line.lstrip()) for line in part if line.strip())
    return "\n".join(textwrap.shorten(line[indent:], 110, placeholder=" ...") for line in part)


def function(lines, name):
    start = next(i for i, line in enumerate(lines) if f"@{name}(" in line)
    end = next(
        (i for i, line in enumerate(lines) if i > start and "func.func" in line),
        len(lines),
    )
    return lines[start:end]


def read_output(path):
    """The first result of a safetensors file, as f32."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensor = json.loads(data[8:start])["result0"]
    begin, end = (start + offset for offset in tensor["data_offsets"])
    if tensor["dtype"] == "F32":
        return array.array("f", data[begin:end])
    # The upper halves of f32.
    halves = (data[i : i + 2] for i in range(begin, end, 2))
    return array.array("f", b"".join(b"\0\0" + half for half in halves))


def check(tools, folder):
    """Runs a small batch by the plain way too, and with one and two threads."""
    print(f"\n--- is it right? documents of {SHORT} rows, beside plain attention\n")
    for entry in ("f32_full", "f32_causal", "bf16_full", "bf16_causal"):
        outputs = {}
        for name, options in (
            ("oracle", ["--threads=1", f"--pipeline={ORACLE}"]),
            ("one", ["--threads=1"]),
            ("two", ["--threads=2"]),
        ):
            file = folder / f"{name}.safetensors"
            run(
                tools / "varlen-run", MODULE, f"--entry={entry}", "--random=0",
                f"--lengths={SHORT}", "-o", file, *options,
            )  # fmt: skip
            outputs[name] = read_output(file)
        difference = max(abs(a - b) for a, b in zip(outputs["oracle"], outputs["one"]))
        largest = max(map(abs, outputs["oracle"]))
        same = "the same" if outputs["one"] == outputs["two"] else "NOT THE SAME"
        print(
            f"    {entry:12} largest difference {difference:.1e} (of values up to"
            f" {largest:.1f}); 1 and 2 threads: {same} bits",
            flush=True,
        )


def show_gpu(tools, folder):
    """The same function for a GPU: code of one, and a run in the executor."""
    lines = MODULE.read_text().splitlines()
    types = [line for line in lines if line.startswith("!")]
    module = folder / "bf16_causal.mlir"
    module.write_text("\n".join(types + function(lines, "bf16_causal")) + "\n")
    print("\n--- varlen-opt --emit=ptx --chip=sm_80: the same function for GPUs from Ampere on\n")
    ptx = folder / "bf16_causal.ptx"
    begin = time.monotonic()
    run(tools / "varlen-opt", module, "--emit=ptx", "--chip=sm_80", "-o", ptx)
    seconds = time.monotonic() - begin
    text = ptx.read_text()
    print(
        f"    {seconds:.1f} s to {len(text.splitlines())} lines of PTX; in them "
        + ", ".join(
            f"{len(re.findall(pattern, text))} {name}"
            for name, pattern in (
                ("mma.sync", r"\bmma\.sync"), ("ldmatrix", r"\bldmatrix"),
                ("cp.async", r"cp\.async\.c[ag]"), ("ex2", r"\bex2"),
            )
        )
    )  # fmt: skip
    if shutil.which("ptxas"):
        begin = time.monotonic()
        remarks = run(
            tools / "varlen-opt", module, "--emit=cubin", "--chip=sm_80", "--report",
            "-o", folder / "bf16_causal.cubin",
        ).stderr  # fmt: skip
        seconds = time.monotonic() - begin
        size = (folder / "bf16_causal.cubin").stat().st_size
        print(f"    {seconds:.1f} s to a cubin of {size / 1000:.0f} kB, by ptxas; no spills")
        for kernel, registers in re.findall(r"remark: (\w+) uses (\d+) registers", remarks):
            print(f"    kernel {kernel}: {registers} registers")
    else:
        print("    no cubin: ptxas of the CUDA toolkit is not in PATH")
    print(f"\n--- varlen-run --device=sim:sm_80: those kernels in the executor, documents of {SHORT} rows\n")
    report = run(
        tools / "varlen-run", module, "--device=sim:sm_80", "--random=0",
        f"--lengths={SHORT}",
    ).stdout.splitlines()  # fmt: skip
    for line in report:
        if line.startswith(("executor", "banks")):
            print("    " + line)
    print("\n    docs/executor.md says what that proves, and how to get a timeline.", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", type=pathlib.Path)
    parser.add_argument("--repeat", default=5, type=int)
    arguments = parser.parse_args()
    tools = arguments.build / "bin"

    show(
        f"{MODULE.parent.name}/{MODULE.name}: one operation says what is computed",
        "\n".join(function(MODULE.read_text().splitlines(), "f32_causal")).rstrip(),
    )

    lowered = run(
        tools / "varlen-opt", MODULE, "--varlen-to-cpu",
        "--mlir-print-ir-after=varlen-tile-attn", "-o", "/dev/null",
    ).stderr.splitlines()  # fmt: skip
    show(
        "varlen-opt --varlen-to-cpu, after varlen-tile-attn: one step of online\n"
        "--- softmax, a block of keys against a tile of queries",
        excerpt(function(lowered, "f32_causal"), "varlen.online_attn", 7, 3),
    )

    with tempfile.TemporaryDirectory() as folder:
        check(tools, pathlib.Path(folder))
        show_gpu(tools, pathlib.Path(folder))

    lengths = ",".join(map(str, LENGTHS))
    print(f"\n--- varlen-run, documents of {lengths} rows, 16 heads of 64\n")
    print("    type  mask    threads  first result       time   useful work  of the peak  workspace")
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "figures.json"
        for dtype, mask, threads in ROWS:
            run(
                tools / "varlen-run", MODULE, f"--entry={dtype}_{mask}",
                "--random=0", f"--lengths={lengths}", f"--threads={threads}",
                f"--repeat={arguments.repeat}", "--peak", f"--json={report}",
            )  # fmt: skip
            figures = json.loads(report.read_text())
            print(
                f"    {dtype:4}  {mask:6}  {threads:7}"
                f"  {figures['first_result_ms']:9.0f} ms"
                f"  {figures['ms_median']:6.1f} ms"
                f"  {figures['gflops']:5.0f} GFLOP/s"
                f"  {figures['fraction']:11.0%}"
                f"  {figures['workspace_bytes'] / 1e6:6.1f} MB",
                flush=True,
            )
    print(
        "\n    useful work: products of queries with keys they see, and with their values;"
        "\n    peak: multiply-adds of the same cores, measured between the runs"
    )


if __name__ == "__main__":
    main()
