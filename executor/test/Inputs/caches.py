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
    # Pages that two entries write to: of two sequences; of one, and its last row; of the first one.
    yield change(inputs, "block_table", (6, 2), table[4, 5])
    yield change(inputs, "block_table", (4, 5), table[4, 3])
    yield change(inputs, "block_table", (4, 13), table[4, 3])
    yield change(inputs, "block_table", (2, 0), table[6, 0])
    yield change(inputs, "block_table", (0, 1), table[0, 0])
    # Entries that are no page: the first and the last of a sequence.
    yield change(inputs, "block_table", (4, 0), -1)
    yield change(inputs, "block_table", (4, 13), pages)
    yield change(inputs, "block_table", (3, 1), pages)
    yield change(inputs, "block_table", (2, 0), -1)
    yield change(inputs, "seqused_k", 0, -1)
    yield change(inputs, "seqused_k", 4, -1)
    yield change(inputs, "seqused_k", 4, capacity - 199)
    yield change(inputs, "seqused_k", 1, capacity + 1)
    # A single row has a page, but no rows of cos and sin.
    unused = change(inputs, "block_table", (2, 13), pages - 1)
    yield change(unused, "seqused_k", 2, 220)
    yield change(inputs, "cu", 0, 1)
    yield change(inputs, "cu", 3, 2)
    yield change(inputs, "cu", 4, inputs["cu"][3] + 2**30 + 1)
    yield change(inputs, "cu", 7, len(inputs["k"]) + 1)
    yield change(inputs, "cu", 7, inputs["cu"][6] - 1)
    for name in ("v", "cos", "sin", "k_scale", "v_scale", "v_cache", "seqused_k", "block_table"):
        yield {**inputs, name: np.ascontiguousarray(inputs[name][:-1])}
    yield {**inputs, "block_table": np.ascontiguousarray(table[:, :3])}


def make_append(used, new):
    """Quantised on the way, with a rotary embedding. The first entries of the table are pages 0
    and 1, and the last pages are in no entry."""
    case = append_case.Case("bf16", 16, used=used, new=new).quantise(np.dtype("i1"))
    inputs = append_case.list_operands(case.add_rotary(5, "f32", interleaved=True))
    table = inputs["block_table"]
    is_page = (table >= 0) & (table < len(inputs["k_cache"]))
    first, rest = np.split(table[is_page], [2])
    ranks = np.zeros(len(inputs["k_cache"]), table.dtype)
    ranks[np.concatenate([first, np.sort(rest)])] = np.arange(is_page.sum())
    table[is_page] = ranks[table[is_page]]
    return inputs


def append():
    """In one CTA, with and without more rows than it has threads, and in launches of their own."""
    # The first row of a sequence is the last of a page and the first of the next one, and of a
    # cache without keys; the last one is alone in its page.
    inputs = make_append([15, 0, 0, 16, 9, 40, 7], [3, 0, 1, 1, 200, 0, 130])
    # No row of cos and sin is for these keys, and no row is new.
    inputs["seqused_k"][5] = 230
    broken = list(broken_appends(inputs))
    # Launches of their own for the same rows: behind them are some of no sequence.
    more = {name: np.resize(inputs[name], (4200, *inputs[name].shape[1:])) for name in "kv"}
    longer = [{**x, **more} for x in (inputs, *broken[:14])]
    # One sequence, of which a page begins with the last thread's rows: the second of a thread of
    # the CTA, and those of the last block.
    single = []
    for rows, page in (1100, 64), (4221, 263):
        one = make_append([0], [rows])
        single += [one, change(one, "block_table", (0, page), one["block_table"][0, 3])]
    return append_case.make_text(inputs, interleaved=True), [inputs, *broken, *longer, *single]


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
