# RUN: %python %s %S/../../benchmarks

"""README's table of several runs: medians, directions side by side, most threads."""

import dataclasses
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, sys.argv[1])

import plot_cpu
from cpu import Row


def row(ms, **other):
    first = Row(
        "pr164502", "", "forward", "f32", 64, 16, 16, "full", 2, 8, 8960, ms, 1000 / ms, 250.0,
        4 / ms, True, 0, 0, "sdpa", 12.0, 12 / ms,
    )  # fmt: skip
    return dataclasses.replace(first, **other)


alone = {"peer": None, "peer_ms": None, "ratio": None}
runs = [
    [
        row(ms), row(2 * ms, direction="backward"), row(50, threads=1), row(ms, set="decode"),
        row(ms, set="nanochat-d24", batch="exact", mask="causal", **alone),
    ]
    for ms in (4.0, 8.0, 5.0)
]  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    files = []
    for i, run in enumerate(runs):
        files.append(pathlib.Path(folder, f"{i}.json"))
        files[-1].write_text(json.dumps([dataclasses.asdict(r) for r in run]))
    lines = plot_cpu.write_table(plot_cpu.read(files)).split("\n")
assert lines[0].startswith("| batch | type | head_dim | mask | forward GFLOP/s |"), lines
assert lines[2:] == [
    "| pr164502 | f32 | 64 | full | 200 | 0.80 | 2.40x | 100 | 0.40 | 1.20x |",
    "| nanochat | f32 | 64 | causal | 200 | 0.80 |  |  |  |  |",
], lines
