"""Times an attention on this machine: python -m varlen.bench --lengths 448,5,1280

`bench` does it for a program. Needs numpy, for what goes in and comes out."""

from __future__ import annotations

import argparse
import json
from typing import Any

from . import text
from .tools import Error, run

_TYPES = ("f16", "bf16", "f32", "f64")


def bench(
    lengths: list[int],
    *,
    lengths_k: list[int] | None = None,
    dtype: str = "bf16",
    heads: int = 16,
    kv_heads: int | None = None,
    head_dim: int = 64,
    v_head_dim: int | None = None,
    is_causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    gradients: bool = False,
    threads: int | None = None,
    repeat: int = 10,
) -> dict[str, Any]:
    """What one call takes on sequences of these lengths, with random inputs.

    Returns:
        A dict, with "ms_median" and "ms_min" of `repeat` calls; "gflops" of useful work
        (masked products do not count); "peak_gflops", which multiply-adds on registers
        reach on the same cores between the calls; "fraction" of it; "compile_ms",
        "workspace_bytes", "threads", "target".

    Raises:
        varlen.Error: a shape or option is not possible; the message says why.
    """
    make = text.attn_grad if gradients else text.attn
    module = make(
        dtype=dtype, heads=heads, kv_heads=kv_heads, head_dim=head_dim,
        v_head_dim=v_head_dim, window=(-1, 0) if is_causal else tuple(window),
        same_cu=lengths_k is None,
    )  # fmt: skip
    figures: dict[str, Any] = {}
    run(
        module, random=0, lengths=list(lengths), lengths_k=lengths_k, threads=threads,
        repeat=repeat, peak=True, figures=figures,
    )  # fmt: skip
    return figures


def _numbers(value):
    return [int(part) for part in value.split(",")]


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m varlen.bench",
        description="Times an attention over packed sequences on this machine.",
    )
    add = parser.add_argument
    add("--lengths", type=_numbers, required=True, metavar="N,N,...", help="of the sequences' queries")
    add("--lengths-k", type=_numbers, metavar="N,N,...", help="of their keys; default: the same")
    add("--dtype", choices=_TYPES, default="bf16")
    add("--heads", type=int, default=16)
    add("--kv-heads", type=int, help="default: as many as heads")
    add("--head-dim", type=int, default=64)
    add("--v-head-dim", type=int, help="default: head_dim")
    add("--causal", action="store_true", dest="is_causal")
    add("--window", type=_numbers, default=[-1, -1], metavar="LEFT,RIGHT", help="keys on either side; -1: all")
    add("--gradients", action="store_true", help="of the attention, in place of it")
    add("--threads", type=int, help="default: all")
    add("--repeat", type=int, default=10)
    add("--json", action="store_true", help="print all figures")
    options = vars(parser.parse_args(arguments))
    as_json = options.pop("json")
    if len(options["window"]) != 2:
        parser.error(f"--window: expected two numbers, got {len(options['window'])}")
    try:
        figures = bench(**options)
    except (Error, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    if as_json:
        print(json.dumps(figures, indent=1))
        return
    print(
        f"{figures['ms_median']:.3f} ms (fastest {figures['ms_min']:.3f}), "
        f"{figures['threads']} threads, {figures['target']}\n"
        f"{figures['gflops']:.1f} GFLOP/s, {figures['fraction']:.2f} of the measured peak "
        f"({figures['peak_gflops']:.1f}, {figures['peak_kind']})"
    )


if __name__ == "__main__":
    main()
