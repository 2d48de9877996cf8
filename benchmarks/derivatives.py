#!/usr/bin/env python3
"""What the derivatives of attention cost on this CPU, in forwards.

For the batch pr164502, without a mask: `varlen.attn`, `varlen.attn_jvp`, `varlen.attn_grad` and
`varlen.attn_jvp_grad` in turns, each the least of several times, and with --torch torch.func.jvp of
PyTorch's scaled_dot_product_attention by its math path (which alone has a forward mode), sequence
by sequence. A double backward is an attn_jvp and an attn_jvp_grad without a cotangent of out.
`gflops` counts 4, 12, 10 and 20 FLOPs for each pair of a query and a key, head and element of
head_dim. `workspace` is what a call of attn_jvp, and of attn_jvp_grad, allocates beside operands
and results, for the batch and for one twice as long.

    derivatives.py [--build build] [--rounds 5] [--threads 2,1] [--heads 16] [--torch] [--cpu-time]

With --cpu-time times are processor times of all threads over their number, which say more than
the clock on a machine with other work.
"""

import argparse
import dataclasses
import os
import pathlib
import sys
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks")]

import sets  # noqa: E402
import varlen  # noqa: E402

# FLOPs for each pair, head and element of head_dim.
FLOPS = {"attn": 4, "attn_jvp": 12, "attn_grad": 10, "attn_jvp_grad": 20}


def make_module(operation, batch, dtype, head_dim):
    return getattr(varlen.text, operation)(
        dtype=dtype, heads=batch.heads, kv_heads=batch.kv_heads, head_dim=head_dim, same_cu=True
    )


def make_calls(batch, dtype, head_dim, threads):
    """A function of no arguments for each operation."""
    rng = numpy.random.default_rng(0)

    def draw(heads):
        values = rng.standard_normal((batch.tokens_q, heads, head_dim), numpy.float32)
        return values.astype(varlen.dtypes.bfloat16) if dtype == "bf16" else values

    (q, tq, dout), (k, v, tk, tv) = ([draw(heads) for _ in range(n)] for heads, n in (
        (batch.heads, 3), (batch.kv_heads, 4)
    ))  # fmt: skip
    cu = numpy.cumsum([0, *batch.q_lengths]).astype(numpy.int32)
    out, lse, tout, tlse = varlen.attn_jvp(q, k, v, tq, tk, tv, cu)
    given = {"num_threads": threads}
    second = varlen.compile(make_module("attn_jvp_grad", batch, dtype, head_dim))[None]
    return {
        "attn": lambda: varlen.attn(q, k, v, cu, **given),
        "attn_jvp": lambda: varlen.attn_jvp(q, k, v, tq, tk, tv, cu, **given),
        "attn_grad": lambda: varlen.attn_grad(dout, q, k, v, out, lse, cu, **given),
        "attn_jvp_grad": lambda: second(
            dout, q, k, v, tq, tk, tv, out, lse, tout, tlse, cu, **given
        ),
    }


def make_torch_call(batch, dtype, head_dim, threads):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    torch.set_num_threads(threads)
    kind = torch.bfloat16 if dtype == "bf16" else torch.float32
    primals, tangents = (
        [
            [torch.randn(1, batch.heads, rows, head_dim, dtype=kind) for _ in range(3)]
            for rows in batch.q_lengths
        ]
        for _ in range(2)
    )
    attend = torch.nn.functional.scaled_dot_product_attention

    def call():
        with sdpa_kernel(SDPBackend.MATH):
            for values, moved in zip(primals, tangents):
                torch.func.jvp(attend, tuple(values), tuple(moved))

    return call


def find_least(calls, rounds, clock):
    """The least time of each call in ms; calls take turns, each twice at a time."""
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            for _ in range(2):
                begin = clock()
                call()
                least[name] = min(least[name], 1e3 * (clock() - begin))
    return least


def measure_workspace(operation, batch, dtype, head_dim, threads):
    """MB of a call, for the batch and for one with every sequence twice as long; and GFLOPS that
    multiply-adds reach on the same threads."""
    module = make_module(operation, batch, dtype, head_dim)
    found = []
    for factor in (1, 2):
        figures = {}
        varlen.run(
            module, random=0, lengths=[factor * x for x in batch.q_lengths], threads=threads,
            repeat=1, peak=True, figures=figures,
        )  # fmt: skip
        found.append(figures["workspace_bytes"] / 1e6)
    return *found, figures["peak_gflops"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--threads", default="2,1")
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--head-dims", default="64,128")
    parser.add_argument("--heads", default=16, type=int)
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--cpu-time", action="store_true")
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    batch = dataclasses.replace(
        sets.pr164502(), heads=arguments.heads, kv_heads=arguments.heads
    )
    pairs = sum(x * x for x in batch.q_lengths) * batch.heads
    print(
        "threads type head_dim  forward ms  jvp ms  ratio  gradients ms  ratio  second ms  ratio  "
        "double backward's ratio  torch's jvp ms  jvp and second gflops (of peak)  workspace MB"
    )
    for threads in map(int, arguments.threads.split(",")):
        for dtype in arguments.dtypes.split(","):
            for head_dim in map(int, arguments.head_dims.split(",")):
                calls = make_calls(batch, dtype, head_dim, threads)
                if arguments.torch:
                    calls["torch"] = make_torch_call(batch, dtype, head_dim, threads)
                clock = time.perf_counter
                if arguments.cpu_time:
                    clock = lambda threads=threads: time.process_time() / threads  # noqa: E731
                least = find_least(calls, arguments.rounds, clock)
                found = {
                    name: measure_workspace(name, batch, dtype, head_dim, threads)
                    for name in ("attn_jvp", "attn_jvp_grad")
                }
                speeds = []
                for name, (_, _, peak) in found.items():
                    gflops = FLOPS[name] * pairs * head_dim / least[name] / 1e6
                    # The peak is measured by the clock.
                    fraction = "-" if arguments.cpu_time else f"{gflops / peak:4.2f}"
                    speeds.append(f"{gflops:6.0f} ({fraction})")
                forward, jvp, grad, second = (least[name] for name in FLOPS)
                torch = f"{least['torch']:9.0f}" if arguments.torch else "        -"
                workspace = ", ".join(f"{mb:.1f}" for one in found.values() for mb in one[:2])
                print(
                    f"{threads} {dtype:4} {head_dim:3}  {forward:8.1f}  {jvp:8.1f}  "
                    f"{jvp / forward:5.2f}  {grad:8.1f}  {grad / forward:5.2f}  {second:8.1f}  "
                    f"{second / forward:5.2f}  {(jvp + second) / forward:5.2f}  {torch}  "
                    f"{' '.join(speeds)}  {workspace}", flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
