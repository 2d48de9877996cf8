"""Batches with quantised keys and values, which the tests of a CPU and of GPU kernels run."""

import ml_dtypes
import numpy as np
import varlen
from paged_batches import HEADS, KEYS, KV_HEADS, QUERIES, offsets
from varlen import dtypes, reference, tolerance

rng = np.random.default_rng(0)
F8 = np.dtype(ml_dtypes.float8_e4m3fn)
LARGEST = {np.dtype("i1"): 127, F8: 448}


def quantise(rows, element, axes):
    """`rows`, (..., heads, columns) of f32, in an element type, and the scales, a number for
    all of what the axes are of."""
    largest = np.abs(rows).max(axis=axes, keepdims=True, initial=1e-3)
    scale = (largest / LARGEST[element]).astype("f4")
    numbers = rows / scale
    if element != F8:
        numbers = np.rint(numbers).clip(-127, 127)
    return numbers.astype(element), scale


class Batch:
    """A batch without pages. `of` says what has a scale: a head, or a row and head; None:
    nothing."""

    def __init__(self, dtype, element, of, dims=(64, 48), queries=QUERIES, keys=KEYS):
        self.keys, self.cu_q, self.cu_k = keys, offsets(queries), offsets(keys)
        self.element = np.dtype(element)
        draw = rng.standard_normal
        self.q = dtypes.narrow(draw((self.cu_q[-1], HEADS, dims[0]), "f4"), dtype)
        self.rows = [draw((self.cu_k[-1], KV_HEADS, columns), "f4") for columns in dims]
        axes = {"heads": (0, 2), "rows": (2,), None: (0, 1, 2)}[of]
        self.numbers, self.scales = [], []
        for rows in self.rows:
            numbers, scale = quantise(rows, self.element, axes)
            self.numbers.append(numbers)
            if of is None:
                scale = np.ones_like(scale)
            self.scales.append(np.ascontiguousarray(scale[0, :, 0] if of == "heads" else scale[:, :, 0]))
        self.of = of

    def options(self):
        return {} if self.of is None else dict(zip(("k_scale", "v_scale"), self.scales))

    def attend(self, **options):
        return varlen.attn(
            self.q, *self.numbers, self.cu_q, self.cu_k, **self.options(), return_lse=True,
            **options,
        )  # fmt: skip

    def dequantised(self):
        """What k and v stand for, in f64."""
        return [
            dtypes.widen(numbers) * np.broadcast_to(scale, numbers.shape[:2])[..., None]
            for numbers, scale in zip(self.numbers, self.scales)
        ]

    def check(self, found, what, **options):
        """By the rule of an attention on what k and v stand for."""
        dtype = dtypes.name_of(self.q)
        exact = self.dequantised()
        golden = reference.attention(self.q, *exact, self.cu_q, self.cu_k, **options)
        rounded = [dtypes.narrow(x, dtype) for x in exact]
        plain = reference.plain(self.q, *rounded, self.cu_q, self.cu_k, **options)
        tolerance.check(found[0], golden[0], plain[0], dtype, what)
        assert tolerance.max_error(found[1], golden[1]) < 1e-4, what

    def move(self, page):
        """The arguments of the same in pages, in any order, and scales of rows, in memory with
        others between: what no sequence uses is the largest number, or NaN."""
        counts = [-(-length // page) for length in self.keys]
        pages = rng.permutation(sum(counts) + 3)
        waste = np.array(np.nan if self.element == F8 else -128).astype(self.element)
        caches, scales = [], []
        for numbers, scale in zip(self.numbers, self.scales):
            shape = len(pages), 2, page, KV_HEADS
            caches.append(np.full((*shape, numbers.shape[-1]), waste)[:, 1])
            scales.append(np.full(shape, np.nan, "f4")[:, 1])
        table = np.full((len(counts), max(counts) + 2), 10**6, "i4")
        taken = iter(pages)
        for s, length in enumerate(self.keys):
            for first in range(0, length, page):
                at = table[s, first // page] = next(taken)
                rows = slice(self.cu_k[s] + first, self.cu_k[s] + min(first + page, length))
                for to, numbers in zip(caches, self.numbers):
                    to[at, : rows.stop - rows.start] = numbers[rows]
                for to, scale in zip(scales, self.scales):
                    to[at, : rows.stop - rows.start] = np.broadcast_to(
                        scale, (self.cu_k[-1], KV_HEADS)
                    )[rows]
        given = {"block_table": table, "seqused_k": np.array(self.keys, "i4")}
        scale = dict(zip(("k_scale", "v_scale"), scales if self.of == "rows" else self.scales))
        return [self.q, *caches, self.cu_q], {**given, **(scale if self.of else {})}
