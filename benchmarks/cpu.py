#!/usr/bin/env python3
"""Measures variable-length attention on this CPU, beside PyTorch's ways and others.

For every configuration ours and the peers run one after the other, so that both
see the same machine. Prints a table and writes build/bench/cpu.json (one object
a row) and build/bench/cpu.png.

GFLOP/s count useful work only: the (query, key) pairs the mask leaves visible.
The fraction is of the peak that varlen-run measures between its own repetitions:
f32 multiply-adds or, for bf16 on a machine that has it, the dot product. One above
1 says that the machine was slower for the peak than for the work: such a row is
measured again, and marked if that does not help.

Decoding is bound by memory: its rows have the bytes of keys and values per time, and how
many the same threads read of a large array in between.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "python")]

import ours
import peers
import peers_apart
import sets
import varlen


@dataclasses.dataclass
class Row:
    set: str
    batch: str
    direction: str
    dtype: str
    head_dim: int
    heads: int
    kv_heads: int
    mask: str
    threads: int
    sequences: int
    tokens: int
    ms: float
    gflops: float
    peak_gflops: float
    fraction: float
    steady: bool  # false: the machine changed its speed, and the fraction says nothing
    memory_bytes: int  # beside inputs and outputs
    process_bytes: int  # the most the whole process had
    peer: str | None = None  # the fastest peer
    peer_ms: float | None = None
    ratio: float | None = None  # peer_ms / ms
    page: int | None = None  # rows of a page of keys; None: they are packed
    kv_dtype: str | None = None
    plain_ms: float | None = None  # of packed keys of dtype, measured right before
    gbytes: float | None = None  # keys and values read per time, in GB/s
    read_gbytes: float | None = None  # what the threads read of memory
    peers: dict = dataclasses.field(default_factory=dict)  # ms of every peer


def peer_functions(config, quick):
    """The peers that are worth their time for a configuration, by name."""
    # The documents are the same with and without ghosts; the peers never see
    # ghosts, so one measurement of them is enough.
    if config.batch.set == "nanochat-d24" and config.batch.name != "exact":
        return
    inputs = peers.Inputs(config)
    if config.direction == "backward":
        yield "sdpa", lambda: peers.sdpa_backward(config, inputs)
        return
    yield "sdpa", lambda: peers.sdpa_per_sequence(config, inputs, contiguous=True)
    if config.batch.set == "decode":
        yield "sdpa (grouped)", lambda: peers.sdpa_grouped(config, inputs)
    if config.batch.set == "pr164502" and not quick:
        if config.threads == 2:
            yield (
                "sdpa (strided)",
                lambda: peers.sdpa_per_sequence(config, inputs, contiguous=False),
            )
        slow = config.dtype == "bf16" or config.mask not in ("full", "causal")
        if config.head_dim == 64 and config.threads == 2 and config.mask == "full":
            yield "sdpa (padded)", lambda: peers.sdpa_padded(config, inputs)
        if config.head_dim in (64, 128) and config.threads == 2 and not slow:
            yield "flex", lambda: peers.flex_attention(config, inputs)


def measure(config, build, quick):
    # Short rows, and those compared with each other, are repeated more often.
    many = config.batch.set in ("nanochat-d24", "decode") and not quick
    repeat = 7 if many else 3
    plain, plain_ms = dataclasses.replace(config, page=None, kv_dtype=None), None
    if plain != config:
        plain_ms = ours.measure_steadily(build, plain, repeat)[0]["ms_median"]
    figures, gflops, steady = ours.measure_steadily(build, config, repeat)
    row = Row(
        set=config.batch.set,
        batch=config.batch.name,
        direction=config.direction,
        dtype=config.dtype,
        head_dim=config.head_dim,
        heads=config.batch.heads,
        kv_heads=config.batch.kv_heads,
        mask=config.mask,
        threads=config.threads,
        sequences=len(config.batch.q_lengths),
        tokens=config.batch.tokens_k,
        ms=figures["ms_median"],
        gflops=gflops,
        peak_gflops=figures["peak_gflops"],
        fraction=gflops / figures["peak_gflops"],
        steady=steady,
        memory_bytes=figures["workspace_bytes"],
        process_bytes=figures["peak_memory_bytes"],
        page=config.page,
        kv_dtype=config.kv_dtype,
        plain_ms=plain_ms,
    )
    if config.batch.set == "decode":
        row.gbytes = config.cache_bytes / figures["ms_median"] / 1e6
        row.read_gbytes = peers.measure_reading(config.threads)
    for name, prepare in peer_functions(config, quick):
        row.peers[name] = peers.measure(prepare(), config.threads)
    if config.batch.set == "pr164502":
        row.peers |= peers_apart.measure(config, build)
    if row.peers:
        row.peer = min(row.peers, key=row.peers.get)
        row.peer_ms = row.peers[row.peer]
        row.ratio = row.peer_ms / row.ms
    return row


COLUMNS = [
    ("batch", 28, lambda r: f"{r.set}/{r.batch}" if r.batch else r.set),
    ("type", 5, lambda r: r.dtype),
    ("d", 4, lambda r: r.head_dim),
    ("mask", 13, lambda r: r.mask),
    ("dir", 3, lambda r: {"forward": "fwd", "backward": "bwd"}[r.direction]),
    ("thr", 4, lambda r: r.threads),
    ("ms", 8, lambda r: f"{r.ms:.2f}"),
    ("GF/s", 7, lambda r: f"{r.gflops:.1f}"),
    ("peak", 6, lambda r: f"{r.peak_gflops:.0f}"),
    ("fraction", 9, lambda r: f"{r.fraction:.3f}" + ("" if r.steady else " ?")),
    ("MiB", 7, lambda r: f"{r.memory_bytes / 2**20:.2f}"),
    ("peer", 15, lambda r: r.peer or ""),
    ("ms", 8, lambda r: "" if r.peer_ms is None else f"{r.peer_ms:.2f}"),
    ("ratio", 6, lambda r: "" if r.ratio is None else f"{r.ratio:.2f}x"),
    ("memory", 6, lambda r: "" if r.gbytes is None else f"{r.gbytes / r.read_gbytes:.2f}"),
    ("page", 4, lambda r: "" if r.page is None else r.page),
    ("keys", 8, lambda r: r.kv_dtype or ""),
    ("plain", 6, lambda r: "" if r.plain_ms is None else f"{r.plain_ms / r.ms:.2f}x"),
]
LEFT = {"batch", "type", "mask", "dir", "peer", "keys"}


def table_line(cells):
    return " ".join(
        str(cell).ljust(width) if name in LEFT else str(cell).rjust(width)
        for (name, width, _), cell in zip(COLUMNS, cells)
    ).rstrip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--only", default="", help="a regular expression on labels")
    parser.add_argument("--quick", action="store_true", help="fewer rows and runs")
    parser.add_argument("--list", action="store_true", help="print the labels only")
    arguments = parser.parse_args()

    configs = [
        config
        for config in sets.configurations(arguments.quick)
        if re.search(arguments.only, config.label)
    ]
    if arguments.list:
        print("\n".join(config.label for config in configs))
        return 0
    if not configs:
        sys.exit(f"no configuration matches '{arguments.only}'; --list prints all")

    out = arguments.build / "bench"
    out.mkdir(parents=True, exist_ok=True)
    rows, failures = [], []
    begin = time.monotonic()
    print(table_line([name for name, _, _ in COLUMNS]), flush=True)
    for i, config in enumerate(configs):
        if sys.stderr.isatty():
            elapsed = time.monotonic() - begin
            print(
                f"\r[{i + 1}/{len(configs)}, {elapsed:.0f} s] {config.label}\x1b[K",
                end="", file=sys.stderr, flush=True,
            )  # fmt: skip
        try:
            row = measure(config, arguments.build, arguments.quick)
        except varlen.Error as error:
            failures.append(config.label)
            print(f"\r\x1b[K{config.label}: {error}" if sys.stderr.isatty()
                  else f"{config.label}: {error}", flush=True)  # fmt: skip
            continue
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        print(table_line([cell(row) for _, _, cell in COLUMNS]), flush=True)
        rows.append(row)
        # Written after every row, so that an interrupted run leaves what it has.
        objects = [dataclasses.asdict(row) for row in rows]
        (out / "cpu.json").write_text(
            "[\n" + ",\n".join(json.dumps(o) for o in objects) + "\n]\n"
        )
    if rows:
        import plot

        plot.draw(rows, out / "cpu.png")
        print(f"\n{len(rows)} rows in {time.monotonic() - begin:.0f} s: "
              f"{out / 'cpu.json'}, {out / 'cpu.png'}")  # fmt: skip
    for label in failures:
        print(f"failed: {label}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
