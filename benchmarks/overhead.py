#!/usr/bin/env python3
"""What each entry point adds to the call of the C library.

    chrt -f 1 taskset -c 0 build/venv/bin/python benchmarks/overhead.py [--build build]

An attention of 10 rows, 4 heads and head_dim 64, f32, causal, on one thread: almost all of
a call is what is around the arithmetic. A loop in C calls the same compiled function on the
same memory. Prints medians in microseconds, and what they are over that of C for the same
passes. Entries take turns, so that a slow minute of the machine is everybody's. Packages
that are not installed are left out.
"""

import argparse
import ctypes
import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

ROWS, HEADS, HEAD_DIM = 10, 4, 64
FORWARD, BACKWARD, BOTH, NONE = "forward", "backward", "both", ""

# Nanoseconds of one call; as a program in C would make it.
LOOP = r"""
#include <time.h>
typedef int (*Call)(void *, void *const *, long, void *const *, long, const void *);
double measure(Call call, void *function, void *const *arguments, long num_arguments,
               void *const *results, long num_results, const void *options, long calls) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (long i = 0; i < calls; ++i)
    if (call(function, arguments, num_arguments, results, num_results, options))
      return -1;
  clock_gettime(CLOCK_MONOTONIC, &end);
  return ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / calls;
}
"""


class Entry:
    """Something that is timed: `run` is one call; of C, `measure(calls)` times some."""

    def __init__(self, name, passes, run=None, measure=None):
        self.name, self.passes = name, passes
        self._run, self._measure = run, measure
        self.times = []

    def round(self, calls):
        """Adds the microseconds of a call, the median of some."""
        if self._measure:
            self.times.append(self._measure(calls))
            return
        run, clock, times = self._run, time.perf_counter_ns, []
        for _ in range(calls):
            begin = clock()
            run()
            times.append(clock() - begin)
        self.times.append(statistics.median(times) / 1e3)

    @property
    def median(self):
        return statistics.median(self.times)


def compile_loop(folder):
    source, library = folder / "loop.c", folder / "loop.so"
    source.write_text(LOOP)
    subprocess.run(
        [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", source, "-o", library], check=True
    )
    measure = ctypes.CDLL(str(library)).measure
    measure.restype = ctypes.c_double
    return measure


def c_entry(name, passes, loop, source, arguments, results):
    """A call of the function on these arrays of numpy."""
    from varlen import _arrays, _cache, _library

    function = _cache.load(source, strided=True)[None]
    addresses, owners = _arrays.export_all((*arguments, *results))
    options = _library.call_options(1)
    pointers = function.pointers(*addresses[: len(arguments)])
    outputs = function.result_pointers(*addresses[len(arguments) :])

    def measure(calls, _owners=owners):
        nanoseconds = loop(
            ctypes.cast(function._call, ctypes.c_void_p), function._handle, pointers,
            ctypes.c_long(len(arguments)), outputs, ctypes.c_long(len(results)),
            ctypes.byref(options), ctypes.c_long(calls),
        )  # fmt: skip
        if nanoseconds < 0:
            raise RuntimeError(f"{name}: the call failed")
        return nanoseconds / 1e3

    return Entry(name, passes, measure=measure)


def numpy_entries(loop):
    import numpy as np
    import varlen
    from varlen import text

    rng = np.random.default_rng(0)
    q, k, v, dout = (rng.standard_normal((ROWS, HEADS, HEAD_DIM), np.float32) for _ in range(4))
    cu = np.array([0, ROWS], np.int32)
    out, lse = np.empty_like(q), np.empty((HEADS, ROWS), np.float32)
    options = {"heads": HEADS, "head_dim": HEAD_DIM, "window": (-1, 0)}
    forward, backward = text.attn(**options), text.attn_grad(**options)
    yield c_entry("C: varlen.attn", FORWARD, loop, forward, (q, k, v, cu, cu), (out, lse))
    gradients = [np.empty_like(q) for _ in range(3)]
    given = (dout, q, k, v, out, lse, cu, cu)
    yield c_entry("C: varlen.attn_grad", BACKWARD, loop, backward, given, gradients)

    yield Entry("varlen.attn", FORWARD, lambda: varlen.attn(q, k, v, cu, is_causal=True))
    yield Entry(
        "varlen.attn, out=", FORWARD, lambda: varlen.attn(q, k, v, cu, is_causal=True, out=out)
    )
    yield Entry(
        "varlen.attn_grad", BACKWARD,
        lambda: varlen.attn_grad(dout, q, k, v, out, lse, cu, is_causal=True),
    )  # fmt: skip
    program = varlen.compile(forward)
    yield Entry("a function of varlen.compile", FORWARD, lambda: program(q, k, v, cu, cu))
    yield Entry(
        "the same, out=", FORWARD, lambda: program(q, k, v, cu, cu, out=(out, lse))
    )


def torch_entries():
    import torch
    from torch.nn.attention import activate_flash_attention_impl
    from torch.nn.attention import varlen as upstream

    import varlen
    from varlen import scores
    from varlen.torch import flash_attn_varlen_func, varlen_attn

    torch.set_num_threads(1)
    shape = ROWS, HEADS, HEAD_DIM
    plain = [torch.randn(shape) for _ in range(3)]
    leaves = [x.clone().requires_grad_() for x in plain]
    cu, dout = torch.tensor([0, ROWS], dtype=torch.int32), torch.randn(shape)
    causal = {"window_size": (-1, 0)}
    ops = torch.ops.varlen
    out, lse = ops.attn(*plain, cu, cu, None, None, -1, 0)

    yield Entry("varlen.attn of tensors", FORWARD, lambda: varlen.attn(*plain, cu, is_causal=True))
    yield Entry("varlen_attn", FORWARD, lambda: varlen_attn(*plain, cu, cu, **causal))
    yield Entry("varlen_attn, recording", FORWARD, lambda: varlen_attn(*leaves, cu, cu, **causal))
    yield Entry(
        "flash_attn_varlen_func", FORWARD,
        lambda: flash_attn_varlen_func(*plain, cu, cu, ROWS, ROWS, causal=True),
    )  # fmt: skip
    # The operator takes the text of a score: of 300 characters and of 2000.
    for score, captures in (
        (scores.softcap(5.0), []), (scores.t5_bias(), [torch.ones(HEADS, 32)])
    ):  # fmt: skip
        yield Entry(
            f"varlen_attn, {score.name}", NONE,
            lambda score=score, captures=captures: varlen_attn(
                *plain, cu, cu, **causal, score=score, captures=captures
            ),
        )  # fmt: skip
    yield Entry(
        "torch.ops.varlen.attn_backward", BACKWARD,
        lambda: ops.attn_backward(dout, None, *plain, out, lse, cu, cu, None, None, -1, 0),
    )  # fmt: skip
    yield Entry(
        "varlen_attn and its gradients", BOTH,
        lambda: torch.autograd.grad(varlen_attn(*leaves, cu, cu, **causal), leaves, dout),
    )  # fmt: skip

    varlen.torch.install()
    activate_flash_attention_impl("VARLEN")
    given = (cu, cu, ROWS, ROWS)
    yield Entry("provider", FORWARD, lambda: upstream.varlen_attn(*plain, *given, **causal))
    yield Entry(
        "provider, recording", FORWARD, lambda: upstream.varlen_attn(*leaves, *given, **causal)
    )
    yield Entry(
        "provider and its gradients", BOTH,
        lambda: torch.autograd.grad(upstream.varlen_attn(*leaves, *given, **causal), leaves, dout),
    )  # fmt: skip

    if "fake_device" in sys.modules:
        on_cuda = [x.to("cuda") for x in plain]
        leaves_on_cuda = [x.clone().requires_grad_() for x in on_cuda]
        cu_on_cuda, dout_on_cuda = cu.to("cuda"), dout.to("cuda")
        indices = cu_on_cuda, cu_on_cuda
        yield Entry(
            "CUDA, fake driver: varlen_attn", NONE,
            lambda: varlen_attn(*on_cuda, *indices, **causal),
        )  # fmt: skip
        yield Entry(
            "CUDA, fake driver: recording", NONE,
            lambda: varlen_attn(*leaves_on_cuda, *indices, **causal),
        )  # fmt: skip
        yield Entry(
            "CUDA, fake driver: and its gradients", NONE,
            lambda: torch.autograd.grad(
                varlen_attn(*leaves_on_cuda, *indices, **causal), leaves_on_cuda, dout_on_cuda
            ),
        )  # fmt: skip
        given_on_cuda = (*indices, ROWS, ROWS)
        yield Entry(
            "CUDA, fake driver: provider", NONE,
            lambda: upstream.varlen_attn(*on_cuda, *given_on_cuda, **causal),
        )  # fmt: skip

    class Empty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            return q + 0

        @staticmethod
        def backward(ctx, dout):
            return dout, None, None

    yield Entry("beside: an empty autograd.Function", NONE, lambda: Empty.apply(*leaves))
    dense = [x.transpose(0, 1)[None].contiguous() for x in plain]
    yield Entry(
        "beside: scaled_dot_product_attention", NONE,
        lambda: torch.nn.functional.scaled_dot_product_attention(*dense, is_causal=True),
    )  # fmt: skip


def jax_entries():
    import jax
    import numpy as np
    from jax import numpy as jnp

    import varlen
    from varlen.jax import varlen_attn

    inputs = jax.random.normal(jax.random.key(0), (3, ROWS, HEADS, HEAD_DIM))
    q, k, v = (jnp.array(x) for x in inputs)
    cu = jnp.array([0, ROWS], jnp.int32)

    def attend(q, k, v, cu):
        return varlen_attn(q, k, v, cu, is_causal=True)

    compiled, empty = jax.jit(attend), jax.jit(lambda q: q * 2)
    both = jax.jit(jax.grad(lambda q, k, v, cu: attend(q, k, v, cu).sum(), (0, 1, 2)))
    assert np.isfinite(both(q, k, v, cu)[0]).all()
    yield Entry(
        "varlen.attn of jax arrays", FORWARD, lambda: varlen.attn(q, k, v, cu, is_causal=True)
    )
    yield Entry("varlen.jax, compiled", FORWARD, lambda: compiled(q, k, v, cu).block_until_ready())
    yield Entry("varlen.jax, not traced", FORWARD, lambda: attend(q, k, v, cu).block_until_ready())
    yield Entry(
        "varlen.jax, gradients compiled", BOTH, lambda: both(q, k, v, cu)[0].block_until_ready()
    )
    yield Entry("beside: an empty compiled function", NONE, lambda: empty(q).block_until_ready())


def enable_fake_cuda(build):
    # By its name it is then found.
    ctypes.CDLL(str(pathlib.Path(build).resolve() / "lib/fake-cuda/libcuda.so.1"), ctypes.RTLD_GLOBAL)
    sys.path.append(str(ROOT / "test/PyTorch/Inputs"))
    import fake_device

    fake_device.enable()
    fake_device.keep_memory()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", help="the build that the library is taken from")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--calls", type=int, default=100, help="calls of an entry in a round")
    parser.add_argument(
        "--fake-cuda", action="store_true",
        help="also calls on CUDA tensors, with the tests' stand-ins for PyTorch's backend and "
        "for the driver, whose own time counts",
    )  # fmt: skip
    arguments = parser.parse_args()
    if arguments.build:
        os.environ["VARLEN_BUILD"] = arguments.build
    if arguments.fake_cuda:
        enable_fake_cuda(arguments.build or ROOT / "build")
    import varlen

    varlen.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        loop = compile_loop(pathlib.Path(folder))
    entries = list(numpy_entries(loop))
    for package, make in (("torch", torch_entries), ("jax", jax_entries)):
        if importlib.util.find_spec(package):
            entries += make()
    for entry in entries:
        entry.round(20)
        entry.times.clear()
    for _ in range(arguments.rounds):
        for entry in entries:
            entry.round(arguments.calls)
    c = {entry.passes: entry.median for entry in entries if entry.name.startswith("C:")}
    c[BOTH] = c[FORWARD] + c[BACKWARD]
    print(f"{'':40}{'us':>8}{'over C':>8}")
    for entry in entries:
        over = entry.median - c[entry.passes] if entry.passes else None
        print(f"{entry.name:40}{entry.median:8.1f}" + (f"{over:8.1f}" if over else ""))


if __name__ == "__main__":
    main()
