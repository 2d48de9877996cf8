# RUN: %python %s
# REQUIRES: venv
"""Quantised keys and values: the numbers of those that they stand for, by the tolerance of
attention on these; the bits in pages and without, alone and in a batch, by 1 and 2 threads;
nothing of rows and scales that no sequence uses; the oracle; the error beside f32; errors."""

import pathlib
import sys

import numpy as np
import varlen
from varlen import dtypes, scores

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))
from paged_batches import HEADS, KV_HEADS, expect, offsets
from quantised_batch import F8, LARGEST, Batch, rng


def assert_same(wanted, found, what):
    for name, x, y in zip(("out", "lse"), wanted, found):
        assert x.tobytes() == y.tobytes(), (what, name)


def check_batch(dtype, element, of, page, dims=(64, 48), **options):
    what = f"{dtype} {element} {of} {page} {options}"
    batch = Batch(dtype, element, of, dims)
    wanted = batch.attend(**options, num_threads=1)
    of_reference = dict(options)
    if of_reference.pop("is_causal", False):
        of_reference["window"] = (-1, 0)
    batch.check(wanted, what, **of_reference)
    assert_same(wanted, batch.attend(**options, num_threads=2), what)
    arguments, given = batch.move(page)
    for threads in (1, 2):
        found = varlen.attn(*arguments, **given, **options, return_lse=True, num_threads=threads)
        assert_same(wanted, found, what)


def check_alone():
    """A sequence alone, as in a batch; by keys in parts, too, which threads share."""
    batch = Batch("bf16", "i1", "rows", queries=[1, 1, 40], keys=[3000, 129, 64])
    together = batch.attend()[0]
    for s in range(len(batch.keys)):
        rows, keys = slice(*batch.cu_q[s : s + 2]), slice(*batch.cu_k[s : s + 2])
        own = {name: scale[keys] for name, scale in batch.options().items()}
        for threads in (1, 2):
            alone = varlen.attn(
                batch.q[rows], *(x[keys] for x in batch.numbers), offsets([rows.stop - rows.start]),
                offsets([keys.stop - keys.start]), **own, num_threads=threads,
            )  # fmt: skip
            assert alone.tobytes() == together[rows].tobytes(), (s, threads)


def check_page_scales():
    """A number for each page and head is that number for each of its rows."""
    batch = Batch("f32", F8, "rows")
    arguments, given = batch.move(16)
    of_pages = {
        name: rng.uniform(0.5, 2, (len(arguments[1]), KV_HEADS)).astype("f4")
        for name in ("k_scale", "v_scale")
    }
    found = varlen.attn(*arguments, **{**given, **of_pages})
    of_rows = {name: np.repeat(x[:, None], 16, axis=1) for name, x in of_pages.items()}
    assert found.tobytes() == varlen.attn(*arguments, **{**given, **of_rows}).tobytes()


def check_all_numbers():
    """Every number of the types, one to a key: its value comes out as it is."""
    for element in LARGEST:
        numbers = np.arange(256, dtype="u1").view(element)
        wanted = dtypes.widen(numbers).astype("f4")
        v = np.ascontiguousarray(np.repeat(numbers[:, None, None], 16, axis=2))
        cu = np.arange(257, dtype="i4")
        out = varlen.attn(np.ones((256, 1, 16), "f4"), np.zeros_like(v), v, cu)
        np.testing.assert_array_equal(out[:, 0], np.repeat(wanted[:, None], 16, axis=1))


def check_not_finite():
    """A scale that is not finite is a key, or a value, that is not: of one sequence."""
    for name in ("k_scale", "v_scale"):
        batch = Batch("f32", "i1", "rows")
        wanted = batch.attend()[0]
        scale = batch.options()[name]
        scale[batch.cu_k[4] + 7] = np.nan
        found = batch.attend()[0]
        rows = slice(batch.cu_q[4], batch.cu_q[5])
        assert np.isnan(found[rows]).all(), name
        found[rows] = wanted[rows]
        assert found.tobytes() == wanted.tobytes(), name


def check_beside_f32():
    """The error that quantisation makes, beside attention in f32."""
    for element, of, limit in (("i1", "rows", 0.011), ("i1", "heads", 0.02), (F8, "rows", 0.04)):
        batch = Batch("f32", element, of)
        exact = varlen.attn(batch.q, *batch.rows, batch.cu_q, batch.cu_k)
        found = batch.attend()[0]
        error = np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2))
        assert error < limit, (element, of, error)


def check_oracle():
    """What has no tiles, with extents that no type knows."""
    for element, of in (("i1", "rows"), (F8, "heads")):
        batch = Batch("f32", element, of)
        name = dtypes.name_of(batch.numbers[0])
        (q, k, v, cu_q), given = batch.move(16)
        table, used, *scales = given.values()
        rows, cache, list_ = "tensor<?x?x?xf32>", f"tensor<?x?x?x?x{name}>", "tensor<?xi32>"
        scale = f"tensor<{'?x' * scales[0].ndim}f32>"
        function = varlen.compile(f"""
            func.func @f(%q: {rows}, %k: {cache}, %v: {cache}, %cu: {list_}, %used: {list_},
                         %table: tensor<?x?xi32>, %ks: {scale}, %vs: {scale})
                -> ({rows}, tensor<?x?xf32>) {{
              %out, %lse = varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table)
                  k_scale(%ks) v_scale(%vs) {{mask = #varlen.mask<causal>}}
                  : ({rows}, {cache}, {cache}, {list_}, {list_}, tensor<?x?xi32>, {scale}, {scale})
                  -> ({rows}, tensor<?x?xf32>)
              return %out, %lse : {rows}, tensor<?x?xf32>
            }}""")
        dense = [np.ascontiguousarray(x) for x in (q, k, v, cu_q, used, table, *scales)]
        batch.check(function(*dense), f"oracle {element}", window=(-1, 0))
        bad = [np.ascontiguousarray(x[..., :1]) for x in scales]
        expect("k_scale has 1 heads: expected 2, as many as k", function, *dense[:6], *bad)


def check_errors():
    batch = Batch("f32", "i1", "rows")
    out = np.full((len(batch.q), HEADS, 48), 7, "f4")
    k, v = batch.numbers
    k_scale, v_scale = batch.scales

    def refuse(message, q=batch.q, k=k, v=v, **options):
        arguments = q, k, v, batch.cu_q, batch.cu_k
        expect(message, varlen.attn, *arguments, **options, out=out)
        assert (out == 7).all(), f"{message}: written"

    refuse(f"k_scale has {len(k) - 1} rows: expected {len(k)}, as many as k", k_scale=k_scale[1:])
    refuse("expected v_scale compatible with 'tensor<?x2xf32>'", v_scale=v_scale[:, :1])
    refuse("k_scale: expected an array of rank 1 (heads) or 2 (rows, heads)", k_scale=k_scale[None])
    for number in (np.nan, np.inf):
        refuse(f"v_scale: expected finite numbers, got {number}", v_scale=np.array([1, number], "f4"))
    refuse("expected quantised k and v of one element type, got 'i8' and 'f32'", v=batch.rows[1])
    refuse("expected q of f16, bf16 or f32 beside k and v of 'i8'", q=batch.q.astype("f8"))
    arguments = batch.q, *batch.rows, batch.cu_q, batch.cu_k
    expect(
        "expected k and v of i8 or f8E4M3FN beside k_scale", varlen.attn, *arguments, k_scale=k_scale
    )
    expect("v: expected elements of int8, got uint8", varlen.attn, batch.q, k, v.view("u1"),
           batch.cu_q, batch.cu_k, error=TypeError)  # fmt: skip
    expect("k_scale: expected elements of f32, got f64", varlen.attn, batch.q, k, v, batch.cu_q,
           batch.cu_k, k_scale=k_scale.astype("f8"), error=TypeError)  # fmt: skip


def main():
    check_batch("bf16", "i1", "rows", 16, is_causal=True)
    check_batch("f32", F8, "heads", 64, window=(100, 3))
    check_batch("f16", "i1", None, 256)
    check_batch("bf16", F8, "rows", 7, (24, 40), score=scores.softcap(20.0))
    check_alone()
    check_page_scales()
    check_all_numbers()
    check_not_finite()
    check_beside_f32()
    check_oracle()
    check_errors()


if __name__ == "__main__":
    main()
