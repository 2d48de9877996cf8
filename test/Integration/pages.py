# RUN: %python %s
# REQUIRES: venv
"""Keys and values in pages: the bits of those without, whatever stands in entries and rows
that no sequence uses; the oracle; and errors, after which nothing is written."""

import pathlib
import sys

import numpy as np
import varlen
from varlen import dtypes, reference, scores, tolerance

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))
from paged_batches import HEADS, KEYS, KV_HEADS, QUERIES, expect, offsets

rng = np.random.default_rng(0)
DIM, VALUE_DIM = 24, 40
WILD = [-(2**31), 2**31 - 1, -1, 10**6]


def draw(dtype, *shape):
    return dtypes.narrow(rng.standard_normal(shape).astype("f4"), dtype)


class Batch:
    """A batch without pages."""

    def __init__(self, dtype, queries=QUERIES, keys=KEYS):
        self.keys, self.cu_q, self.cu_k = keys, offsets(queries), offsets(keys)
        self.q = draw(dtype, self.cu_q[-1], HEADS, DIM)
        self.k = draw(dtype, self.cu_k[-1], KV_HEADS, DIM)
        self.v = draw(dtype, self.cu_k[-1], KV_HEADS, VALUE_DIM)

    def attend(self, **options):
        return varlen.attn(
            self.q, self.k, self.v, self.cu_q, self.cu_k, return_lse=True, **options
        )

    def move(self, page):
        """The arguments of the same in pages, in any order, in memory with others between:
        what is not used is NaN, or no page."""
        counts = [-(-length // page) for length in self.keys]
        pages = rng.permutation(sum(counts) + 3)
        cache = np.full((len(pages), 2, page, KV_HEADS, VALUE_DIM), np.nan, self.k.dtype)
        k, v = cache[:, 0, :, :, :DIM], cache[:, 1]
        table = rng.choice(WILD, (len(counts), max(counts) + 5)).astype("i4")[:, :-3]
        taken = iter(pages)
        for s, length in enumerate(self.keys):
            for first in range(0, length, page):
                at = table[s, first // page] = next(taken)
                rows = slice(self.cu_k[s] + first, self.cu_k[s] + min(first + page, length))
                k[at, : rows.stop - rows.start] = self.k[rows]
                v[at, : rows.stop - rows.start] = self.v[rows]
        given = {"block_table": table, "seqused_k": np.array(self.keys, "i4")}
        return [self.q, k, v, self.cu_q], given


def check_bits(dtype, page, **options):
    batch = Batch(dtype)
    wanted = batch.attend(**options)
    arguments, given = batch.move(page)
    for threads in (1, 2):
        found = varlen.attn(*arguments, **given, **options, return_lse=True, num_threads=threads)
        for name, x, y in zip(("out", "lse"), wanted, found):
            assert x.tobytes() == y.tobytes(), (dtype, page, options, name, threads)
    return batch, found


def check_alone(page):
    """A sequence alone, as in a batch; by keys in parts, too, which threads share."""
    batch = Batch("bf16", [1, 1, 40], [3000, 129, 64])
    arguments, given = batch.move(page)
    q, k, v, cu_q = arguments
    together = varlen.attn(*arguments, **given)
    assert together.tobytes() == batch.attend()[0].tobytes()
    for s in range(len(cu_q) - 1):
        rows = slice(cu_q[s], cu_q[s + 1])
        own = {name: x[s : s + 1] for name, x in given.items()}
        for threads in (1, 2):
            alone = varlen.attn(
                q[rows], k, v, offsets([rows.stop - rows.start]), **own, num_threads=threads
            )
            assert alone.tobytes() == together[rows].tobytes(), (page, s, threads)


def check_left_pages():
    """Pages that a window has left are not visited."""
    batch = Batch("f32", [1], [700])
    (q, k, v, cu_q), given = batch.move(16)
    wanted = batch.attend(window=(40, 0))[0]
    # A block has at most 256 keys.
    left = given["block_table"][0, : 256 // 16]
    k[left] = v[left] = np.nan
    found = varlen.attn(q, k, v, cu_q, window=(40, 0), **given)
    assert found.tobytes() == wanted.tobytes()


def check_oracle():
    """What has no tiles, with extents that no type knows."""
    batch = Batch("f32")
    arguments, given = batch.move(16)
    golden = reference.attention(batch.q, batch.k, batch.v, batch.cu_q, batch.cu_k, window=(64, 0))
    rows, list_ = "tensor<?x?x?xf32>", "tensor<?xi32>"
    types = f"{rows}, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, {list_}, {list_}, tensor<?x?xi32>"
    function = varlen.compile(f"""
        func.func @pages(%q: {rows}, %k: tensor<?x?x?x?xf32>, %v: tensor<?x?x?x?xf32>,
                         %cu: {list_}, %used: {list_}, %table: tensor<?x?xi32>)
            -> ({rows}, tensor<?x?xf32>) {{
          %out, %lse = varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table)
              {{mask = #varlen.mask<window = (64, 0)>}} : ({types}) -> ({rows}, tensor<?x?xf32>)
          return %out, %lse : {rows}, tensor<?x?xf32>
        }}""")
    dense = [np.ascontiguousarray(x) for x in arguments]
    table = np.ascontiguousarray(given["block_table"])
    for wanted, found in zip(golden, function(*dense, given["seqused_k"], table)):
        assert tolerance.max_error(found, wanted) < 1e-5
    table[4, 2] = 10**6
    expect("block_table[4, 2] = 1000000: expected 0 to ", function, *dense, given["seqused_k"], table)


def check_errors():
    (q, k, v, cu_q), given = Batch("f32").move(16)
    table, used = given["block_table"], given["seqused_k"]
    out = np.full((len(q), HEADS, VALUE_DIM), 7, "f4")

    def refuse(message, k=k, v=v, **changed):
        expect(message, varlen.attn, q, k, v, cu_q, **{**given, **changed}, out=out)
        assert (out == 7).all(), f"{message}: written"

    for entry in (-1, len(k)):
        bad = table.copy()
        bad[3, 15] = entry
        refuse(
            f"block_table[3, 15] = {entry}: expected 0 to {len(k) - 1}, the pages of k, for the "
            "256 keys of the sequence",
            block_table=bad,
        )
    for length in (-1, 16 * table.shape[1] + 1):
        bad = used.copy()
        bad[6] = length
        refuse(
            f"seqused_k[6] = {length}: expected 0 to {16 * table.shape[1]}, the rows of the pages "
            "that block_table has of a sequence",
            seqused_k=bad,
        )
    refuse(
        f"block_table has {len(used) - 1} rows: expected {len(used)}, one for each sequence of "
        "seqused_k",
        block_table=table[:-1],
    )
    refuse("seqused_k has 6 entries: expected 7", seqused_k=used[:-1], block_table=table[:-1])
    refuse("expected seqused_k with a block_table, got none", seqused_k=None)
    refuse("cu_seqlens_k: expected None beside a block_table", cu_seqlens_k=cu_q)
    refuse(f"v has {len(k) - 1} pages: expected {len(k)}, as many as k", v=v[:-1])
    refuse("expected k and v to have the same rows in a page, got 16 and 15", v=v[:, 1:])
    refuse("expected positive rows in a page of k, got 0", k=k[:, :0], v=v[:, :0])
    refuse("k: expected an array of rank 4 (pages, rows, heads, head_dim)", k=k[0])
    refuse("k: expected an array of rank 3 (rows, heads, head_dim)", block_table=None)


def main():
    for dtype, page, options in (
        ("f32", 16, {"is_causal": True}),
        ("f32", 256, {"window": (100, 3)}),
        ("bf16", 64, {"score": scores.softcap(20.0), "sink": rng.standard_normal(HEADS).astype("f4")}),
        ("bf16", 7, {"window": (33, 0), "q_offset": np.array([1, -2, 3, -4, 0, 5, -6], "i4")}),
        ("f16", 1, {"chunk": 50, "seqused_q": np.array([0, 2, 9, 0, 1, 77, 2], "i4")}),
    ):  # fmt: skip
        batch, found = check_bits(dtype, page, **options)
        options["window"] = options.pop("chunk", options.get("window", (-1, -1)))
        if options.pop("is_causal", False):
            options["window"] = (-1, 0)
        operands = batch.q, batch.k, batch.v, batch.cu_q, batch.cu_k
        golden, plain = reference.attention(*operands, **options), reference.plain(*operands, **options)
        tolerance.check(found[0], golden[0], plain[0], dtype, "out")
    check_alone(64)
    check_left_pages()
    check_oracle()
    check_errors()


if __name__ == "__main__":
    main()
