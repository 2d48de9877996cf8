# REQUIRES: venv, torch, jax, package
# UNSUPPORTED: asan
# RUN: rm -rf %t && mkdir %t
# RUN: %python %varlen-src/benchmarks/gpu/build.py --scripts --out=%t/kit
# RUN: %python %t/kit/run.py --rehearse --minutes=60 --out=%t/results > %t/first.txt
# RUN: %python %s %t %t/first.txt
# RUN: %python %t/kit/run.py --rehearse --minutes=60 --out=%t/results | FileCheck %s --check-prefix=AGAIN
"""The whole queue of the GPU kit without a GPU: every part, with kernels in the executor behind
the fake driver, PyTorch's tensors on the CPU, and peers that have stand-ins (rehearsal.py). A
second call has nothing left to do."""

# AGAIN-NOT: {{^}}speed: done
# AGAIN: {{^}}speed {{ *}}done

import json
import pathlib
import sys

folder, printed = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text()
sys.path.insert(0, str(folder / "kit"))

import parts
import summary

lines = (folder / "results/rows.jsonl").read_text().splitlines()
rows = [json.loads(line) for line in lines]
log = (folder / "results/log.txt").read_text()
for part in parts.PARTS:
    (end,) = [row for row in rows if row["kind"] == "part" and row["label"] == part.name]
    assert end["outcome"] == "done", (part.name, end, log[-6000:])
    assert f"{part.name}: done" in printed, printed
assert not summary.is_wrong(rows), printed


def of(kind):
    return [row for row in rows if row["kind"] == kind]


assert [row["outcome"] for row in of("check")] == ["right"] * 2, of("check")
assert len(of("sanitize")) == 3 and all(row["reports"] == 0 for row in of("sanitize"))
assert [row["label"] for row in of("program")] == ["C launcher", "libvarlen-c", "runtime library"]

# Ours and each peer have both timers; numbers of those that compute agree.
forward, backward = (
    next(row for row in of("speed") if row["direction"] == d) for d in ("forward", "backward")
)
assert set(forward["peers"]) == {"fa3", "cudnn", "fa2", "varlen_attn", "padded"}, forward["refused"]
assert set(backward["peers"]) == {"fa3", "cudnn", "fa2"}, backward["refused"]
for times in (forward["ours"], *forward["peers"].values(), *backward["peers"].values()):
    assert {"ms", "ms_min", "sm_mhz", "replays"} == set(times["burst"]) == set(times["sustained"])
assert (
    forward["peers"]["fa2"]["difference"] < 0.01 and backward["peers"]["fa2"]["difference"] < 0.01
)
# The stand-ins compute nothing, which the summary says.
assert forward["peers"]["fa3"]["difference"] == 1
assert "fa3 on pr164502 bf16 d64 full: its result differs from ours by 1" in printed
assert of("flex")[0]["peers"]["flex"]["difference"] < 0.01

assert all("verdict" in row for row in of("experiment"))
assert all(row["difference"] < 0.01 for row in of("experiment")), of("experiment")
(row,) = of("counters")
assert row["counters"]["Kernel Name"] == "attention" and row["counters"]["Duration"] == 199e3
assert "attention: Compute (SM) Throughput 56.5 (56)" in printed
# A rehearsal has configurations of its own: those that experiments and counters name are a GPU's.
import run  # noqa: F401  where other modules are

import counters  # noqa: I001
import experiments
import plan

asked = {experiment.name for experiment in experiments.one_of_each_kind()}
assert {row["label"] for row in of("experiment")} == asked
timed = {item.label for item in plan.timed()}
assert len(plan.checked()) > len(plan.sanitized()) > 2  # On a GPU.
assert {x.label for x in (*experiments.EXPERIMENTS, *counters.PROFILED)} <= timed
assert "predicted" in printed and len(printed) < 11_000
assert (folder / "results/summary.txt").read_text() in printed
assert (folder / "results/clocks.csv").stat().st_size > 0
