"""The rest of a function beside attention: matrix products, and a transformer block
with attention in it, against PyTorch and numpy in the same run.

    benchmarks/linalg.py --build build [--threads 1,2] [--repeat 9] [--rows NAME]

A product is given as a fraction of the machine's multiply-add peak, which is measured
between its repetitions. `kn` and `nk` are the orders in memory of its right factor, of
which PyTorch's linear layers have the second one. The fastest run of each program counts.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

import varlen


TORCH = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def product_text(n, k, order, dtype):
    """(rows x k) times (k x n), which lies in memory in this order, into f32."""
    a, c = f"tensor<?x{k}x{dtype}>", f"tensor<?x{n}xf32>"
    b = f"tensor<{n}x{k}x{dtype}>" if order == "nk" else f"tensor<{k}x{n}x{dtype}>"
    maps = ", ".join(
        f"affine_map<(m, n, k) -> ({', '.join(dims)})>" for dims in ("mk", order, "mn")
    )
    return f"""
    func.func @product(%a: {a} {{varlen.name = "a"}}, %b: {b} {{varlen.name = "b"}}) -> ({c} {{varlen.name = "c"}}) {{
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      %m = tensor.dim %a, %c0 : {a}
      %empty = tensor.empty(%m) : {c}
      %zeros = linalg.fill ins(%zero : f32) outs(%empty : {c}) -> {c}
      %c = linalg.matmul indexing_maps = [{maps}]
        ins(%a, %b : {a}, {b}) outs(%zeros : {c}) -> {c}
      return %c : {c}
    }}
    """


def block_text(width, heads, dtype):
    """x + attention(x Wq, x Wk, x Wv) Wo, causal, with rotated queries and keys. Products
    are summed in f32."""
    d = width // heads
    half = d // 2
    rows, wide = f"tensor<?x{width}x{dtype}>", f"tensor<?x{heads}x{d}x{dtype}>"
    weight, angles = f"tensor<{width}x{width}x{dtype}>", f"tensor<?x{half}x{dtype}>"
    part = f"tensor<?x{heads}x{half}x{dtype}>"
    sums = f"tensor<?x{width}xf32>"
    narrow = "" if dtype == "f32" else f"%n = arith.truncf %y : {sums} to {rows}"
    result = "%n" if narrow else "%y"

    def named(name, type):
        return f'%{name}: {type} {{varlen.name = "{name}"}}'

    arguments = ", ".join(
        named(name, type)
        for name, type in [("x", rows), *((w, weight) for w in ("wq", "wk", "wv", "wo")),
                           ("cos", angles), ("sin", angles), ("cu", "tensor<?xi32>")]
    )  # fmt: skip
    return f"""
    func.func private @linear(%x: {rows}, %w: {weight}) -> {rows} {{
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      %t = tensor.dim %x, %c0 : {rows}
      %empty = tensor.empty(%t) : {sums}
      %zeros = linalg.fill ins(%zero : f32) outs(%empty : {sums}) -> {sums}
      %y = linalg.matmul ins(%x, %w : {rows}, {weight}) outs(%zeros : {sums}) -> {sums}
      {narrow}
      return {result} : {rows}
    }}
    func.func private @rotate(%x: {wide}, %cos: {angles}, %sin: {angles}) -> {wide} {{
      %c0 = arith.constant 0 : index
      %t = tensor.dim %x, %c0 : {wide}
      %a = tensor.extract_slice %x[0, 0, 0] [%t, {heads}, {half}] [1, 1, 1] : {wide} to {part}
      %b = tensor.extract_slice %x[0, 0, {half}] [%t, {heads}, {half}] [1, 1, 1] : {wide} to {part}
      %empty = tensor.empty(%t) : {part}
      %r:2 = linalg.generic {{indexing_maps = [affine_map<(t, h, d) -> (t, h, d)>, affine_map<(t, h, d) -> (t, h, d)>,
          affine_map<(t, h, d) -> (t, d)>, affine_map<(t, h, d) -> (t, d)>,
          affine_map<(t, h, d) -> (t, h, d)>, affine_map<(t, h, d) -> (t, h, d)>],
          iterator_types = ["parallel", "parallel", "parallel"]}}
          ins(%a, %b, %cos, %sin : {part}, {part}, {angles}, {angles}) outs(%empty, %empty : {part}, {part}) {{
      ^bb0(%u: {dtype}, %v: {dtype}, %c: {dtype}, %s: {dtype}, %o0: {dtype}, %o1: {dtype}):
        %0 = arith.mulf %u, %c : {dtype}
        %1 = arith.mulf %v, %s : {dtype}
        %2 = arith.subf %0, %1 : {dtype}
        %3 = arith.mulf %u, %s : {dtype}
        %4 = arith.mulf %v, %c : {dtype}
        %5 = arith.addf %3, %4 : {dtype}
        linalg.yield %2, %5 : {dtype}, {dtype}
      }} -> ({part}, {part})
      %y_empty = tensor.empty(%t) : {wide}
      %y0 = tensor.insert_slice %r#0 into %y_empty[0, 0, 0] [%t, {heads}, {half}] [1, 1, 1] : {part} into {wide}
      %y1 = tensor.insert_slice %r#1 into %y0[0, 0, {half}] [%t, {heads}, {half}] [1, 1, 1] : {part} into {wide}
      return %y1 : {wide}
    }}
    func.func @block({arguments}) -> ({rows} {{varlen.name = "y"}}) {{
      %c0 = arith.constant 0 : index
      %t = tensor.dim %x, %c0 : {rows}
      %q0 = call @linear(%x, %wq) : ({rows}, {weight}) -> {rows}
      %k0 = call @linear(%x, %wk) : ({rows}, {weight}) -> {rows}
      %v0 = call @linear(%x, %wv) : ({rows}, {weight}) -> {rows}
      %q1 = tensor.expand_shape %q0 [[0], [1, 2]] output_shape [%t, {heads}, {d}] : {rows} into {wide}
      %k1 = tensor.expand_shape %k0 [[0], [1, 2]] output_shape [%t, {heads}, {d}] : {rows} into {wide}
      %v = tensor.expand_shape %v0 [[0], [1, 2]] output_shape [%t, {heads}, {d}] : {rows} into {wide}
      %q = call @rotate(%q1, %cos, %sin) : ({wide}, {angles}, {angles}) -> {wide}
      %k = call @rotate(%k1, %cos, %sin) : ({wide}, {angles}, {angles}) -> {wide}
      %o, %lse = varlen.attn %q, %k, %v, %cu, %cu {{mask = #varlen.mask<causal>}}
        : ({wide}, {wide}, {wide}, tensor<?xi32>, tensor<?xi32>) -> ({wide}, tensor<{heads}x?xf32>)
      %o0 = tensor.collapse_shape %o [[0], [1, 2]] : {wide} into {rows}
      %p = call @linear(%o0, %wo) : ({rows}, {weight}) -> {rows}
      %y = arith.addf %x, %p : {rows}
      return %y : {rows}
    }}
    """


def torch_block(x, wq, wk, wv, wo, cos, sin, offsets, heads):
    def rotate(t):
        a, b = t.chunk(2, dim=-1)
        c, s = cos[:, None], sin[:, None]
        return torch.cat([a * c - b * s, a * s + b * c], dim=-1)

    q, k, v = ((x @ w).view(len(x), heads, -1) for w in (wq, wk, wv))
    q, k = rotate(q), rotate(k)
    outs = [
        torch.nn.functional.scaled_dot_product_attention(
            *(t[i:j].transpose(0, 1)[None] for t in (q, k, v)), is_causal=True
        )[0].transpose(0, 1)
        for i, j in zip(offsets, offsets[1:])
    ]
    return x + torch.cat(outs).reshape(len(x), -1) @ wo


def fastest(function, repeat):
    function()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def run(text, inputs, threads, repeat, passes=(), **flags):
    """Results, the fastest run in ms, the figures."""
    figures = {}
    if passes:
        text = varlen.tools.call("varlen-opt", "-", *passes, text=text)
    results = varlen.run(text, inputs, threads=threads, repeat=repeat, peak=True,
                         figures=figures, **flags)  # fmt: skip
    return results, figures["ms_min"], figures


def numpy_product(rows, n, k, order, threads, repeat):
    """The fastest product of f32 in ms. numpy asks for its threads when it is loaded."""
    code = f"""
import time
import numpy as np
rng = np.random.default_rng(1)
a = rng.standard_normal(({rows}, {k})).astype(np.float32)
b = rng.standard_normal(({n}, {k}) if "{order}" == "nk" else ({k}, {n})).astype(np.float32)
b = b.T if "{order}" == "nk" else b
times = []
for _ in range({repeat} + 1):
    start = time.perf_counter()
    a @ b
    times.append(time.perf_counter() - start)
print(1e3 * min(times[1:]))
"""
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
    environment = os.environ | {name: str(threads) for name in names}
    done = subprocess.run([sys.executable, "-c", code], env=environment, text=True,
                          stdout=subprocess.PIPE, check=True)  # fmt: skip
    return float(done.stdout)


def measure_product(rows, n, k, order, dtype, threads, repeat):
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((rows, k), (k, n)))
    if order == "nk":
        b = np.ascontiguousarray(b.T)
    inputs = {name: varlen.dtypes.narrow(x, dtype) for name, x in (("a", a), ("b", b))}
    results, ours, figures = run(product_text(n, k, order, dtype), inputs, threads, repeat)
    torch.set_num_threads(threads)
    ta, tb = (torch.tensor(x).to(TORCH[dtype]) for x in (a, b))
    tb = tb.T if order == "nk" else tb
    # PyTorch has no product of f16 for most CPUs: a scalar loop, seconds long.
    theirs = fastest(lambda: ta @ tb, 1 if dtype == "f16" else repeat)
    golden = ta.double() @ tb.double()
    error = float((golden - torch.tensor(results["c"])).abs().max())
    gflops = 2 * rows * n * k / ours / 1e6
    by_numpy = ""
    if dtype == "f32":
        by_numpy = f"{numpy_product(rows, n, k, order, threads, repeat) / ours:.2f}"
    print(f"| {rows} x {n} x {k} {order} | {dtype} | {threads} | {ours:.2f} ms | "
          f"{gflops / figures['peak_gflops']:.2f} | {theirs:.2f} ms | {theirs / ours:.2f} | "
          f"{by_numpy} | {error:.1e} |", flush=True)  # fmt: skip


def block_inputs(tokens, width, heads, dtype):
    """The inputs of a block, for ours and for PyTorch, and cu_seqlens as a list."""
    rng = np.random.default_rng(2)
    half = width // heads // 2
    weights = {
        w: (rng.standard_normal((width, width)) / width**0.5).astype(np.float32)
        for w in ("wq", "wk", "wv", "wo")
    }
    x = rng.standard_normal((tokens, width)).astype(np.float32)
    angle = np.arange(tokens)[:, None] * 10000.0 ** (-np.arange(half) / half)
    offsets = [0, tokens // 4, tokens // 4 + tokens // 3, tokens]
    floats = {"x": x, **weights, "cos": np.cos(angle), "sin": np.sin(angle)}
    floats = {name: value.astype(np.float32) for name, value in floats.items()}
    inputs = {name: varlen.dtypes.narrow(value, dtype) for name, value in floats.items()}
    inputs["cu"] = np.array(offsets, np.int32)
    tensors = [torch.tensor(value).to(TORCH[dtype]) for value in floats.values()]
    return inputs, tensors, offsets


def print_block(what, dtype, threads, ours, theirs, error):
    print(f"| {what} | {dtype} | {threads} | {ours:.2f} ms | | {theirs:.2f} ms | "
          f"{theirs / ours:.2f} | | {error:.1e} |", flush=True)  # fmt: skip


def relative_error(result, golden):
    """The largest error beside the largest element."""
    result = torch.tensor(np.asarray(result, np.float32))
    return float((golden - result).abs().max() / golden.abs().max())


def measure_block(tokens, width, heads, dtype, threads, repeat):
    inputs, values, offsets = block_inputs(tokens, width, heads, dtype)
    results, ours, _ = run(block_text(width, heads, dtype), inputs, threads, repeat,
                           ["--inline", "--symbol-dce"])  # fmt: skip
    torch.set_num_threads(threads)
    with torch.no_grad():
        golden = torch_block(*(value.float() for value in values), offsets, heads)
        theirs = fastest(lambda: torch_block(*values, offsets, heads), repeat)
    print_block(f"block of width {width}, {tokens} tokens", dtype, threads, ours, theirs,
                relative_error(results["y"], golden))  # fmt: skip


def measure_gradients(tokens, width, heads, dtype, threads, repeat):
    """Forward and backward: the cotangents of x and of all weights."""
    inputs, values, offsets = block_inputs(tokens, width, heads, dtype)
    dy = np.random.default_rng(3).standard_normal((tokens, width)).astype(np.float32)
    results, ours, _ = run(
        block_text(width, heads, dtype), inputs | {"dy": varlen.dtypes.narrow(dy, dtype)},
        threads, repeat,
        ["--inline", "--symbol-dce", "--varlen-differentiate=function=block wrt=x,wq,wk,wv,wo"],
        entry="block_vjp",
    )  # fmt: skip
    torch.set_num_threads(threads)

    def both(values):
        values = [value.detach().requires_grad_(i < 5) for i, value in enumerate(values)]
        y = torch_block(*values, offsets, heads)
        return torch.autograd.grad(y, values[:5], torch.tensor(dy).to(y.dtype))

    theirs = fastest(lambda: both(values), repeat)
    error = max(
        relative_error(results[name], golden)
        for name, golden in zip(
            ("dx", "dwq", "dwk", "dwv", "dwo"), both([value.float() for value in values])
        )
    )
    print_block(f"the same with its gradients, width {width}", dtype, threads, ours, theirs,
                error)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default="build", type=pathlib.Path)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeat", default=9, type=int)
    parser.add_argument("--only", default="", help="'product' or 'block'")
    options = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(options.build)
    print("| rows x columns x depth | type | threads | varlen | of the peak | PyTorch "
          "| PyTorch takes | numpy takes | error |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for threads in map(int, options.threads.split(",")):
        if options.only != "block":
            for rows, n, k, order in [
                (1805, 1024, 1024, "kn"), (1805, 1000, 777, "kn"), (64, 1024, 1024, "kn"),
                (8, 1024, 1024, "kn"), (1, 1024, 1024, "kn"), (1805, 1024, 1024, "nk"),
                (64, 1024, 1024, "nk"), (8, 1024, 1024, "nk"), (1, 1024, 1024, "nk"),
            ]:  # fmt: skip
                for dtype in ("f32", "bf16", "f16"):
                    measure_product(rows, n, k, order, dtype, threads, options.repeat)
        if options.only != "product":
            for dtype in ("f32", "bf16"):
                for measure in (measure_block, measure_gradients):
                    measure(1805, 1024, 16, dtype, threads, options.repeat)
                    measure(4096, 512, 8, dtype, threads, options.repeat)


if __name__ == "__main__":
    main()
