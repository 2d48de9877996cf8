# RUN: %python %s sim:sm_80
# RUN: %python %s sim:sm_90a
"""Quantised keys and values by GPU kernels, in the executor: the numbers of those that they stand for,
by the tolerance of attention on these; the bits in pages and without, whatever stands in rows and scales
that no sequence uses; without a hazard with each order of warps and timing of copies."""

import os
import pathlib
import sys

import numpy as np
import varlen
from varlen import dtypes, scores

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))
from paged_batches import HEADS, KV_HEADS
from quantised_batch import F8, Batch, rng

DEVICE = sys.argv[1]
RUNS = int(os.environ.get("VARLEN_EXECUTOR_RUNS", "27"))
# No query, no key, more queries than keys, one query, tiles of queries; lengths that end with a page or
# a block, and one before and behind their ends.
QUERIES, KEYS = [0, 3, 9, 1, 1, 70, 2], [5, 0, 4, 128, 193, 127, 65]


def attend(batch, arguments, given, page=None, **options):
    """By a GPU kernel, with `page` rows of a page of which the type says so, or 0."""
    names = "q", "k", "v", "cu_seqlens_q", "cu_seqlens_k"
    inputs = {name: np.ascontiguousarray(x) for name, x in [*zip(names, arguments), *given.items()]}
    q, k, v = (inputs[name] for name in names[:3])
    score = options.get("score")
    if score:
        inputs |= {name: options.pop(name) for name in score.captures}
    of = {
        name: {1: "heads"}.get(x.ndim, "pages" if page is not None and x.ndim == 2 else "rows")
        for name, x in given.items() if name in ("k_scale", "v_scale")
    }  # fmt: skip
    flags = {name: options.pop(name) for name in ("sim_runs",) if name in options}
    text = varlen.text.attn(
        dtype=dtypes.name_of(q), heads=HEADS, kv_heads=KV_HEADS, head_dim=q.shape[2],
        v_head_dim=v.shape[-1], kv_dtype=dtypes.name_of(k), seqused_k="seqused_k" in given,
        page=page, **of, **options,
    )  # fmt: skip
    found = varlen.run(text, inputs, device=DEVICE, **flags)
    return found["out"], found["lse"]


def check(
    dtype, element, of, page, dims=(64, 48), is_static=True, runs=1, lengths=(QUERIES, KEYS), **options
):  # fmt: skip
    what = f"{dtype} {element} {of} {page} {options}"
    batch = Batch(dtype, element, of, dims, *lengths)
    packed = attend(
        batch, (batch.q, *batch.numbers, batch.cu_q, batch.cu_k), batch.options(), **options
    )
    batch.check(packed, what, **options)
    arguments, given = batch.move(page)
    paged = attend(
        batch, arguments, given, page=page if is_static else 0, sim_runs=runs, **options
    )
    for name, x, y in zip(("out", "lse"), packed, paged):
        assert x.tobytes() == y.tobytes(), (what, name)


def check_page_scales():
    """A number for each page and head is that number for each of its rows."""
    batch = Batch("bf16", "i1", "rows", queries=QUERIES, keys=KEYS)
    arguments, given = batch.move(16)
    of_pages = {
        name: rng.uniform(0.5, 2, (len(arguments[1]), KV_HEADS)).astype("f4")
        for name in ("k_scale", "v_scale")
    }
    of_rows = {name: np.repeat(x[:, None], 16, axis=1) for name, x in of_pages.items()}
    wanted = attend(batch, arguments, given | of_rows, page=16)
    found = attend(batch, arguments, given | of_pages, page=16)
    assert wanted[0].tobytes() == found[0].tobytes()


check("bf16", "i1", "rows", 16, runs=RUNS, window=(-1, 0), is_static=False)
check("f16", F8, "heads", 128, runs=3, window=(100, 3))
check("bf16", F8, "rows", 7, dims=(24, 40), window=(-1, 0))
check_page_scales()
# Keys of few queries in parts, where a schedule has these, that end with a part or one key behind.
check("bf16", "i1", "rows", 64, runs=3, lengths=([1, 2, 1], [2049, 1024, 70]), window=(-1, 0))
if DEVICE != "sim:sm_80":
    sys.exit()  # Other types and sizes differ from these as without numbers for keys.
check("f32", "i1", None, 64, window=(-1, -1))
check("bf16", "i1", "rows", 64, dims=(128, 128), window=(-1, 0), score=scores.softcap(20.0))
check("f16", "i1", "rows", 64, dims=(12, 20), window=(33, 0))
