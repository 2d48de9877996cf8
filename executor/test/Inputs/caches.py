"""Kernels of caches: appends to one, and attention to quantised keys and values: modules and
inputs for varlen-mutate."""

import pathlib
import sys

INTEGRATION = pathlib.Path(__file__).resolve().parents[3] / "test" / "Integration" / "Inputs"
sys.path.insert(0, str(INTEGRATION))

import append_case
import numpy as np
import quantised_batch
import varlen


def change(inputs, name, at, value):
    changed = inputs[name].copy()
    changed[at] = value
    return {**inputs, name: changed}


def broken_appends(inputs):
    """What one list or the table has wrong, each in another way and place."""
    table = inputs["block_table"]
    pages, rows = inputs["k_cache"].shape[:2]
    capacity = table.shape[1] * rows
    # Pages that two entries write to, of two sequences and of one.
    yield change(inputs, "block_table", (6, 2), table[4, 5])
    yield change(inputs, "block_table", (4, 5), table[4, 3])
    yield change(inputs, "block_table", (0, 0), table[6, 0])
    # Entries that are no page: the first and the last of a sequence.
    yield change(inputs, "block_table", (4, 0), -1)
    yield change(inputs, "block_table", (4, 12), pages)
    yield change(inputs, "block_table", (2, 1), pages)
    yield change(inputs, "seqused_k", 4, -1)
    yield change(inputs, "seqused_k", 4, capacity - 199)
    yield change(inputs, "seqused_k", 1, capacity + 1)
    yield change(inputs, "cu", 0, 1)
    yield change(inputs, "cu", 3, 2)
    yield change(inputs, "cu", 7, len(inputs["k"]) + 1)
    for name in ("v", "cos", "sin", "k_scale", "v_scale", "v_cache", "seqused_k", "block_table"):
        yield {**inputs, name: np.ascontiguousarray(inputs[name][:-1])}


def append():
    """Quantised on the way, with a rotary embedding: in one CTA, and in launches of their own,
    for which rows of no sequence are enough."""
    case = append_case.Case("bf16", 16).quantise(np.dtype("i1"))
    inputs = append_case.list_operands(case.add_rotary(5, "f32", interleaved=True))
    more = {name: np.resize(inputs[name], (4200, *inputs[name].shape[1:])) for name in "kv"}
    broken = list(broken_appends(inputs))
    # Other batches are checked by the same code.
    longer = [{**x, **more} for x in (inputs, *broken[:6], broken[7])]
    return append_case.make_text(inputs, interleaved=True), [inputs, *broken, *longer]


def quantised():
    """Keys and values of i8 in pages of a number of rows that their type does not say, with scales
    of each row and head."""
    queries, keys = [0, 3, 9, 1, 1, 70, 2], [5, 0, 4, 128, 193, 127, 65]
    batch = quantised_batch.Batch("bf16", "i1", "rows", queries=queries, keys=keys)
    arguments, given = batch.move(16)
    inputs = dict(zip(("q", "k", "v", "cu_seqlens_q"), arguments)) | given
    inputs = {name: np.ascontiguousarray(x) for name, x in inputs.items()}
    text = varlen.text.attn(
        dtype="bf16", heads=quantised_batch.HEADS, kv_heads=quantised_batch.KV_HEADS, head_dim=64,
        v_head_dim=48, kv_dtype="i8", k_scale="rows", v_scale="rows", seqused_k=True, page=0,
        window=(-1, 0),
    )  # fmt: skip
    return text, [inputs, change(inputs, "block_table", (4, 12), len(arguments[1]))]


def kernels():
    """Name, text and inputs, for varlen-run with --device-checks."""
    yield "append", *append()
    yield "forward-quantised", *quantised()
