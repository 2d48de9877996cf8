# RUN: %python %s sim:sm_80
# RUN: %python %s sim:sm_90a
"""Keys and values in pages by GPU kernels, in the executor: the bits of those without pages,
whatever stands in entries and rows that no sequence uses, without a hazard with each
order of warps and timing of copies; and errors, after which nothing is written."""

import os
import sys

import numpy as np
import varlen
from varlen import dtypes, scores

DEVICE = sys.argv[1]
RUNS = int(os.environ.get("VARLEN_EXECUTOR_RUNS", "27"))
# No query, no key, more queries than keys, one query, tiles of queries; lengths that end
# with a page or a block, and one before and behind their ends.
QUERIES, KEYS = [0, 3, 9, 1, 1, 70, 2], [5, 0, 4, 128, 193, 127, 65]
HEADS, KV_HEADS = 4, 2
WILD = [-(2**31), 2**31 - 1, -1, 10**6]


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype("i4")


class Batch:
    """The same batch without and with pages, of `page` rows, which the type says or not."""

    def __init__(
        self, dtype, page, *, dim=64, value_dim=64, is_static=True, schedule="", **options
    ):
        self.rng = np.random.default_rng(page + dim)
        cu_q, cu_k = offsets(QUERIES), offsets(KEYS)
        draw = lambda *shape: dtypes.narrow(self.rng.standard_normal(shape).astype("f4"), dtype)
        k, v = draw(cu_k[-1], KV_HEADS, dim), draw(cu_k[-1], KV_HEADS, value_dim)
        lists = {"seqused_k": np.array(KEYS, "i4")}
        if "score" in options:
            for name in options["score"].captures:
                lists[name] = self.rng.uniform(0, 90, (HEADS, cu_q[-1])).astype("f4")
        q = draw(cu_q[-1], HEADS, dim)
        self.packed = {"q": q, "k": k, "v": v, "cu_seqlens_q": cu_q, "cu_seqlens_k": cu_k, **lists}
        pages, table = self.move(page, cu_k, k, v)
        self.paged = {"q": q, **pages, "cu_seqlens_q": cu_q, **lists, "block_table": table}
        self.text = {
            "dtype": dtype, "heads": HEADS, "kv_heads": KV_HEADS, "head_dim": dim,
            "v_head_dim": value_dim, "seqused_k": True, **options,
        }  # fmt: skip
        self.page = page if is_static else 0
        self.schedule = schedule

    def move(self, page, cu_k, k, v):
        """k and v in pages, in any order, with others between, and the table: what is not
        used is NaN, or no page."""
        counts = [-(-length // page) for length in KEYS]
        order = self.rng.permutation(sum(counts) + 3)
        pages = {
            name: np.full((len(order), page, *x.shape[1:]), np.nan, x.dtype)
            for name, x in (("k", k), ("v", v))
        }
        table = self.rng.choice(WILD, (len(counts), max(counts) + 2)).astype("i4")
        taken = iter(order)
        for s, length in enumerate(KEYS):
            for first in range(0, length, page):
                at = table[s, first // page] = next(taken)
                rows = slice(cu_k[s] + first, cu_k[s] + min(first + page, length))
                for name, x in (("k", k), ("v", v)):
                    pages[name][at, : rows.stop - rows.start] = x[rows]
        return pages, table

    def run(self, inputs, **flags):
        text = varlen.text.attn(page=self.page if "block_table" in inputs else None, **self.text)
        if self.schedule:
            schedule = f"varlen.schedule = #varlen.gpu_schedule<{self.schedule}>"
            text = text.replace("{mask =", f"{{{schedule}, mask =", 1)
            assert schedule in text
        return varlen.run(text, inputs, device=DEVICE, **flags)


def check_bits(dtype, page, runs=1, **options):
    batch = Batch(dtype, page, **options)
    figures = {}
    wanted = batch.run(batch.packed)
    found = batch.run(batch.paged, sim_runs=runs, figures=figures)
    assert figures["executor"]["matrix_conflicts"] == 0, figures["executor"]
    for name in wanted:
        assert not np.isnan(dtypes.widen(wanted[name])).any(), name
        assert wanted[name].tobytes() == found[name].tobytes(), (dtype, page, options, name)
    return batch


def check_errors(batch):
    def refuse(message, **changed):
        try:
            batch.run({**batch.paged, **changed}, device_checks=True)
        except varlen.Error as error:
            assert message in str(error), (message, str(error))
        else:
            raise AssertionError(f"expected: {message}")

    table, used = batch.paged["block_table"], batch.paged["seqused_k"]
    pages, page = batch.paged["k"].shape[:2]
    # The first lane of a warp, and the first entry of more than a warp has lanes.
    for s, column, entry in ((5, 7, -1), (4, 12, pages), (3, 0, -1)):
        bad = table.copy()
        bad[s, column] = entry
        # A later one is not what is reported.
        bad[6, 4] = entry
        message = f"block_table[{s}, {column}] = {entry}: expected 0 to {pages - 1}, the pages of k"
        refuse(message, block_table=bad)
    rows = page * table.shape[1]
    for length in (-1, rows + 1):
        bad = used.copy()
        bad[6] = length
        refuse(
            f"seqused_k[6] = {length}: expected 0 to {rows}, the rows of the pages that "
            "block_table has of a sequence",
            seqused_k=bad,
        )
    refuse(
        f"block_table has {len(used) - 1} rows: expected {len(used)}, one for each sequence of "
        "seqused_k",
        block_table=table[:-1],
    )


batch = check_bits("bf16", 16, runs=RUNS, window=(-1, 0), is_static=False)
# By a kernel that all chips share.
if DEVICE == "sim:sm_80":
    check_errors(batch)
check_bits("bf16", 128, runs=3, window=(100, 3))
if DEVICE != "sim:sm_80":
    sys.exit()  # Other types and sizes differ from these as without pages.
check_bits("f16", 7, dim=40, value_dim=72, window=(33, 0))
check_bits("bf16", 64, window=(-1, 0), score=scores.prefix_lm())
check_bits("f32", 16, window=(-1, -1), is_static=False)
# Keys of few queries in parts of 64, of which some begin within a page and some with one.
PARTS = "warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2, few_part = 2"
for page in (48, 64):
    check_bits("bf16", page, runs=3, window=(-1, 0), schedule=PARTS)
