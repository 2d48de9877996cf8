"""Runs a configuration with varlen-run and reads its figures."""

import json
import os
import pathlib
import tempfile

import numpy
import varlen
from varlen import kv_cache


def text_options(config):
    """Arguments of the functions of varlen.text."""
    return {
        "dtype": config.dtype,
        "heads": config.batch.heads,
        "kv_heads": config.batch.kv_heads,
        "head_dim": config.head_dim,
        "window": config.window,
    }


def offsets(lengths):
    return numpy.array([0, *numpy.cumsum(lengths)], numpy.int32)


def draw_inputs(config):
    """q, k, v, dout and cu_seqlens of a packed batch, by name."""
    batch, rng = config.batch, numpy.random.default_rng(1)

    def normal(rows, heads):
        values = rng.standard_normal((rows, heads, config.head_dim), numpy.float32)
        return varlen.dtypes.narrow(values, config.dtype)

    return {
        "q": normal(batch.tokens_q, batch.heads),
        "k": normal(batch.tokens_k, batch.kv_heads),
        "v": normal(batch.tokens_k, batch.kv_heads),
        "dout": normal(batch.tokens_q, batch.heads),
        "cu_seqlens_q": offsets(batch.q_lengths),
        "cu_seqlens_k": offsets(batch.k_lengths),
    }


def _measure_backward(config, repeat):
    """Gradients need the out and lse of their inputs."""
    inputs = draw_inputs(config)
    dout = inputs.pop("dout")
    options = text_options(config)
    results = varlen.run(varlen.text.attn(**options), inputs, threads=config.threads)
    inputs |= results | {"dout": dout}
    figures = {}
    varlen.run(
        varlen.text.attn_grad(**options), inputs, threads=config.threads,
        repeat=repeat, peak=True, figures=figures,
    )  # fmt: skip
    return figures


def _measure_cache(config, repeat):
    """Keys and values in pages, which are in a random order, or packed; quantised ones have a
    scale for each row and head, as `varlen.kv_cache` makes them."""
    batch, rng = config.batch, numpy.random.default_rng(1)
    options = text_options(config)
    inputs = {"cu_seqlens_q": offsets(batch.q_lengths)}
    rows = (batch.tokens_k,)
    if config.page is None:
        inputs["cu_seqlens_k"] = offsets(batch.k_lengths)
    else:
        counts = [-(-length // config.page) for length in batch.k_lengths]
        pages = iter(rng.permutation(sum(counts)))
        table = numpy.full((len(counts), max(counts)), -1, numpy.int32)
        for s, count in enumerate(counts):
            table[s, :count] = [next(pages) for _ in range(count)]
        rows = sum(counts), config.page
        inputs |= {"seqused_k": numpy.array(batch.k_lengths, numpy.int32), "block_table": table}
        options |= {"seqused_k": True, "page": config.page}

    def normal(*shape):
        return rng.standard_normal((*shape, config.head_dim), numpy.float32)

    inputs["q"] = varlen.dtypes.narrow(normal(batch.tokens_q, batch.heads), config.dtype)
    for name in ("k", "v"):
        values = normal(*rows, batch.kv_heads)
        if config.kv_dtype is None:
            inputs[name] = varlen.dtypes.narrow(values, config.dtype)
            continue
        element = varlen.dtypes.by_name[config.kv_dtype]
        inputs[name], inputs[f"{name}_scale"] = kv_cache.quantise(values, element)
        options |= {"kv_dtype": config.kv_dtype, f"{name}_scale": "rows"}
    figures = {}
    varlen.run(
        varlen.text.attn(**options), inputs, threads=config.threads, repeat=repeat, peak=True,
        figures=figures,
    )  # fmt: skip
    return figures


def measure(build, config, repeat):
    """What varlen-run measured, as the dict of its --json."""
    os.environ["VARLEN_BUILD"] = str(build)
    if config.direction == "backward":
        return _measure_backward(config, repeat)
    if config.page is not None or config.kv_dtype is not None:
        return _measure_cache(config, repeat)
    module = varlen.text.attn(**text_options(config))

    def lengths(values):
        return ",".join(map(str, values))

    with tempfile.TemporaryDirectory() as folder:
        figures = pathlib.Path(folder) / "figures.json"
        varlen.call(
            "varlen-run", "-", "--random=1",
            f"--lengths={lengths(config.batch.q_lengths)}",
            f"--lengths-k={lengths(config.batch.k_lengths)}",
            f"--threads={config.threads}", f"--repeat={repeat}", "--peak",
            f"--json={figures}", text=module,
        )  # fmt: skip
        return json.loads(figures.read_text())


# Times that a row is measured at most, until its fraction of the peak can be right.
ATTEMPTS = 3


def measure_steadily(build, config, repeat):
    """What varlen-run measured, the GFLOP/s, and whether the machine has kept its
    speed: none is faster than its own peak."""
    for _ in range(ATTEMPTS):
        figures = measure(build, config, repeat)
        # Counted here and not taken from the tool, so that one does not judge itself.
        gflops = config.flops / figures["ms_median"] / 1e6
        if gflops <= figures["peak_gflops"]:
            return figures, gflops, True
    return figures, gflops, False
