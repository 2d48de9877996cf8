"""Counters of NVIDIA's Nsight Compute for kernels that are timed, each beside what is expected of
it: what limits a kernel, where its time alone leaves several explanations.

ncu runs one call of a configuration again and again, in a process of its own. The row has the
counters of the kernel that takes longest.
"""

import csv
import dataclasses
import re
import shutil
import subprocess
import sys

import rehearsal

# What is read, by ncu's names, in percent where there is no unit.
SECTIONS = {
    "SpeedOfLight": ("Duration", "Compute (SM) Throughput", "Memory Throughput", "DRAM Throughput"),
    "SchedulerStats": ("One or More Eligible",),
    "WarpStateStats": ("Warp Cycles Per Issued Instruction",),
    "LaunchStats": ("Registers Per Thread",),
    "Occupancy": ("Achieved Occupancy",),
}
NAMES = {name for names in SECTIONS.values() for name in names}
# The seconds that one configuration may take.
LIMIT = 60 * rehearsal.SLACK


@dataclasses.dataclass(frozen=True)
class Profiled:
    label: str  # of a configuration of the plan
    predicted: dict  # by ncu's name
    why: str


# On an H100, by the times of benchmarks/results/h100.
PROFILED = [
    Profiled("pr164502 bf16 d128 full", {"Compute (SM) Throughput": 56, "One or More Eligible": 35},
             "504 TFLOP/s of the 132 x 4096 x clock of tensor cores, most of the cycles"),
    Profiled("pr164502 bf16 d64 full", {"Compute (SM) Throughput": 65, "One or More Eligible": 60},
             "371 TFLOP/s, 0.41 of tensor cores: what limits it is exponentials and what is issued"),
    Profiled("pr164502 bf16 d128 full backward",
             {"Compute (SM) Throughput": 45, "One or More Eligible": 35},
             "dkv is the longest; its tiles pass by shared memory, which products wait for"),
]  # fmt: skip


def _command(label):
    sections = [f"--section={name}" for name in SECTIONS]
    return [
        "ncu", "--csv", "--target-processes=all", "--profile-from-start=off", *sections,
        sys.executable, __file__, label,
    ]  # fmt: skip


def read(text):
    """Counters of the kernel with the longest duration, by name, of what ncu prints as CSV
    between lines of others; with the kernel's name as "Kernel Name". None if there is none."""
    kernels = {}
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID","')), len(lines))
    for row in csv.DictReader(lines[begin:]):
        if row["Metric Name"] in NAMES:
            counters = kernels.setdefault(row["ID"], {"Kernel Name": row["Kernel Name"]})
            value = float(row["Metric Value"].replace(",", ""))
            scale = {"ms": 1e6, "us": 1e3, "usecond": 1e3, "msecond": 1e6}
            counters[row["Metric Name"]] = value * scale.get(row["Metric Unit"], 1)  # ns
    return max(kernels.values(), key=lambda x: x.get("Duration", 0), default=None)


def _run(profiled):
    """The row of a configuration."""
    try:
        done = subprocess.run(
            _command(profiled.label), capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no end within {LIMIT} s"}
    counters = read(done.stdout)
    if done.returncode or counters is None:
        said = [x for x in (done.stdout + done.stderr).splitlines() if x.startswith("==ERROR==")]
        said = said or (done.stderr or done.stdout).splitlines()[-1:]
        # Drivers keep counters from users that are not root, unless they are told otherwise.
        kind = "refused" if any("ERR_NVGPUCTRPERM" in line for line in said) else "failed"
        return {kind: " ".join(said)[:300] or "expected counters, got none"}
    return {"counters": counters, "predicted": profiled.predicted, "why": profiled.why}


def main(log, arguments):
    if not shutil.which("ncu"):
        raise SystemExit("expected ncu, of CUDA's toolkit, on the path, got none")
    work = [
        p for p in PROFILED
        if re.search(arguments.labels, p.label) and not log.done("counters", p.label)
    ]  # fmt: skip
    if rehearsal.FOLDER:
        work = work[:1]
    for done, profiled in enumerate(work):
        if log.left() < 10:
            return len(work) - done
        row = _run(profiled)
        log.add("counters", profiled.label, **row)
        print(profiled.label, row, flush=True)
    return 0


def call_once(label):
    """What ncu runs: one call between the profiler's marks."""
    rehearsal.start_torch()
    import ours
    import peers
    import plan
    import timing
    import torch

    item = next(iter(plan.timed())) if rehearsal.FOLDER else plan.find_timed(label)
    with timing.side_stream():
        _, calls, _ = ours.prepare(ours.Compiler([item]), item, peers.Batch(item.config))
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        calls[0]()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


if __name__ == "__main__":
    call_once(sys.argv[1])
