#!/usr/bin/env python3
"""Which keys each query sees, exactly: window bounds, chunks, offsets and lengths of
any size.

All scores are 0, and v tells the keys of a sequence apart: row j is a unit vector.
So out holds 1 / n where a query sees a key, n being the number of all that it
sees, and 0 elsewhere; lse is log n. In the gradients every ds is 1, and k, q and
dout are unit vectors: dq says which keys a query sees, dk and dv which queries see
a key. The measure is `visible` of python/varlen/reference.py, in integers without
an end.

A case is a window or a chunk, an alignment, an offset and two lengths. Each mask is
compiled for itself and runs on a batch of `--sequences`. By hand, 10^5 cases:

    visibility.py --build build --windows 100 --sequences 1000
"""
# Each run has masks of its own: bounds are computed alike for all targets.
# RUN: %around-code %python %s --build %varlen-build --windows 8 --sequences 100 | FileCheck %s
# RUN: %around-code %python %s --build %varlen-build --seed 9 --windows 8 --sequences 100 --gradients | FileCheck %s
# RUN: %python %s --build %varlen-build --seed 17 --windows 4 --sequences 100 --device=sim:sm_80 | FileCheck %s
# RUN: %python %s --build %varlen-build --seed 21 --windows 4 --sequences 60 --device=sim:sm_80 --gradients | FileCheck %s
# RUN: %if long %{ %python %s --build %varlen-build --windows 60 --sequences 100 | FileCheck %s %}
# RUN: %if long %{ %python %s --build %varlen-build --windows 60 --sequences 100 --gradients | FileCheck %s %}
# RUN: %if long %{ %python %s --build %varlen-build --windows 24 --sequences 75 --device=sim:sm_80 | FileCheck %s %}
# RUN: %if long %{ %python %s --build %varlen-build --windows 24 --sequences 75 --device=sim:sm_80 --gradients | FileCheck %s %}
# CHECK: {{[1-9][0-9]*}} cases, 0 failed

import argparse
import dataclasses
import multiprocessing
import os
import pathlib
import random
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import numpy
import varlen

# Heads, and columns by which a head of k and v tells keys, or queries, apart.
KV_HEADS, GROUP, COLUMNS = 2, 2, 64
HEADS = KV_HEADS * GROUP
LONGEST = KV_HEADS * COLUMNS

# Bounds where something may overflow, or be cut off.
EDGES = [
    0, 1 << 16, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 48,
    1 << 53, 1 << 60, 1 << 61, 1 << 62, (1 << 63) - 1,
]  # fmt: skip
LENGTHS = [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128]


@dataclasses.dataclass(frozen=True)
class Sequence:
    queries: int
    keys: int
    offset: int


@dataclasses.dataclass(frozen=True)
class Batch:
    window: tuple | int  # left and right, or the size of a chunk
    alignment: str
    dtype: str
    index: str
    sequences: tuple

    @property
    def label(self):
        mask = varlen.text.mask_attribute(self.window, self.alignment)
        return f"{self.dtype} {self.index} {mask}"

    @property
    def options(self):
        """What varlen.text makes a function with."""
        return {
            "dtype": self.dtype, "heads": HEADS, "kv_heads": KV_HEADS,
            "v_head_dim": COLUMNS, "window": self.window, "scale": 1.0,
            "alignment": self.alignment, "q_offset": True, "index": self.index,
        }  # fmt: skip


# -- Cases -------------------------------------------------------------------


def draw_bound(rng):
    """A bound of a window: open, as long as a sequence, or of any size."""
    kind = rng.randrange(8)
    if kind < 2:
        return -1
    if kind < 5:
        return rng.choice([0, 1, rng.randrange(20), rng.randrange(LONGEST + 2)])
    edge = rng.choice(EDGES) + rng.randint(-3, 3)
    return min(max(edge, -1), (1 << 63) - 1)


def draw_offset(rng, batch_window, queries, keys, bits):
    """An offset that moves the diagonal a little, or just as far as a bound is
    large so that the two cancel, or anywhere."""
    near = rng.randint(-queries - keys - 2, queries + keys + 2)
    left, right = batch_window
    kind = rng.randrange(8)
    if kind < 3:
        offset = near
    elif kind < 4:
        offset = left + near
    elif kind < 5:
        offset = near - right
    elif kind < 7:
        offset = rng.choice([-1, 1]) * rng.choice(EDGES) + rng.randint(-3, 3)
    else:
        offset = rng.randint(-(1 << 63), (1 << 63) - 1)
    return min(max(offset, -(1 << bits - 1)), (1 << bits - 1) - 1)


def draw_batch(seed, count, dtypes):
    rng = random.Random(seed)
    window = (draw_bound(rng), draw_bound(rng))
    index = rng.choice(["i32", "i64", "i64"])
    sequences = []
    for _ in range(count):
        longest = rng.choice([8, 40, LONGEST])
        queries, keys = (min(rng.choice(LENGTHS), longest) for _ in range(2))
        if rng.random() < 0.5:
            queries, keys = rng.randint(0, longest), rng.randint(0, longest)
        offset = draw_offset(rng, window, queries, keys, int(index[1:]))
        sequences.append(Sequence(queries, keys, offset))
    alignment = rng.choice(["bottom_right", "top_left"])
    # Drawn last: the windows of a seed stay what they are.
    dtype = rng.choice(dtypes)
    if rng.random() < 0.25:
        window = rng.choice([1, 2, 7, 32, 100, 1 << 20, 1 << 28])
    return Batch(window, alignment, dtype, index, tuple(sequences))


# -- Inputs and results --------------------------------------------------------


def starts(lengths):
    return numpy.cumsum([0, *lengths])


def positions(lengths):
    """The position of each packed row in its sequence."""
    lengths = numpy.asarray(lengths)
    return numpy.arange(lengths.sum()) - numpy.repeat(starts(lengths)[:-1], lengths)


def unit_vectors(rows, heads):
    """rows x heads x COLUMNS: head h has the unit vectors of the rows
    h * COLUMNS + c, and 0 for others."""
    columns = numpy.arange(heads * COLUMNS).reshape(heads, COLUMNS)
    return (rows[:, None, None] == columns).astype(numpy.float32)


def visible(batch):
    """queries x LONGEST and keys x LONGEST, bool: which keys of its sequence a
    packed query sees, and which queries see a packed key."""
    seen, seeing = [], []
    for s in batch.sequences:
        mask = numpy.zeros((s.queries, LONGEST), bool)
        mask[:, : s.keys] = varlen.reference.visible(
            s.queries, s.keys, batch.window, batch.alignment, s.offset
        )
        seen.append(mask)
        by_key = numpy.zeros((s.keys, LONGEST), bool)
        by_key[:, : s.queries] = mask[:, : s.keys].T
        seeing.append(by_key)
    return numpy.concatenate(seen), numpy.concatenate(seeing)


def packed(batch):
    integer = varlen.dtypes.by_name[batch.index]
    return {
        "cu_seqlens_q": starts([s.queries for s in batch.sequences]).astype(integer),
        "cu_seqlens_k": starts([s.keys for s in batch.sequences]).astype(integer),
        "q_offset": numpy.array([s.offset for s in batch.sequences], integer),
    }


def compute_type(batch):
    return numpy.float64 if batch.dtype == "f64" else numpy.float32


def narrow(batch, tensors):
    return {
        key: varlen.dtypes.narrow(values, batch.dtype) for key, values in tensors.items()
    }


def mismatches(batch, side, wrong, what):
    """A line for each sequence with a wrong row; `wrong` is by packed row."""
    first = starts([getattr(s, side) for s in batch.sequences])
    return [
        f"{what} of {s}: wrong in {int(wrong[lo:hi].sum())} of {hi - lo} rows"
        for s, lo, hi in zip(batch.sequences, first, first[1:])
        if wrong[lo:hi].any()
    ]


def check_forward(batch, device):
    queries = positions([s.queries for s in batch.sequences])
    keys = positions([s.keys for s in batch.sequences])
    inputs = packed(batch) | narrow(batch, {
        "q": numpy.zeros((len(queries), HEADS, COLUMNS)),
        "k": numpy.ones((len(keys), KV_HEADS, COLUMNS)),
        "v": unit_vectors(keys, KV_HEADS),
    })  # fmt: skip
    text = varlen.text.attn(head_dim=COLUMNS, **batch.options)
    results = varlen.run(text, inputs, **device)
    seen, _ = visible(batch)
    count = seen.sum(axis=1)
    share = (1 / numpy.maximum(count, 1)).reshape(-1, 1, 1, 1)
    wanted = share * seen.reshape(-1, KV_HEADS, 1, COLUMNS)
    out = varlen.dtypes.widen(results["out"]).reshape(-1, KV_HEADS, GROUP, COLUMNS)
    # 1 / n, where it is not 0, is off by rounding only.
    rounding = 2 * varlen.tolerance.EPSILON[batch.dtype]
    wrong = ~(abs(out - wanted) <= rounding * wanted)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        lse = numpy.log(count)
        off = ~((abs(results["lse"] - lse) <= 1e-5) | (results["lse"] == lse))
    return mismatches(batch, "queries", wrong.any(axis=(1, 2, 3)), "out") + mismatches(
        batch, "queries", off.any(axis=0), "lse"
    )


def check_gradients(batch, device):
    queries = positions([s.queries for s in batch.sequences])
    keys = positions([s.keys for s in batch.sequences])
    seen, seeing = visible(batch)
    # The queries with the remainder g belong to the head g of a group.
    own = queries[:, None] % GROUP == numpy.arange(GROUP)
    units = unit_vectors(queries, KV_HEADS)[:, :, None] * own[:, None, :, None]
    units = units.reshape(-1, HEADS, COLUMNS)
    # q and k have units in columns of their own: all scores are 0.
    q = numpy.concatenate([numpy.zeros_like(units), units], axis=2)
    k = unit_vectors(keys, KV_HEADS)
    k = numpy.concatenate([k, numpy.zeros_like(k)], axis=2)
    nothing = numpy.zeros((len(queries), HEADS, COLUMNS))
    # An lse of 0 makes every p 1, and dlse = 1 every ds.
    lse = numpy.where(seen.any(axis=1), 0, -numpy.inf)
    lse = numpy.broadcast_to(lse, (HEADS, len(queries))).astype(compute_type(batch))
    inputs = packed(batch) | narrow(batch, {
        "dout": units, "q": q, "k": k, "v": numpy.zeros((len(keys), KV_HEADS, COLUMNS)),
        "out": nothing,
    }) | {"lse": lse, "dlse": numpy.ones_like(lse)}  # fmt: skip
    text = varlen.text.attn_grad(head_dim=2 * COLUMNS, dlse=True, **batch.options)
    results = varlen.run(text, inputs, **device)

    seen = seen.reshape(-1, KV_HEADS, 1, COLUMNS)
    seeing = seeing.reshape(-1, KV_HEADS, COLUMNS)
    wanted = {
        "dq": numpy.concatenate([seen, numpy.zeros_like(seen)], axis=3),
        "dk": numpy.concatenate([numpy.zeros_like(seeing), seeing], axis=2),
        "dv": seeing,
    }
    problems = []
    for name, expected in wanted.items():
        got = varlen.dtypes.widen(results[name])
        side = "queries" if name == "dq" else "keys"
        if name == "dq":
            got = got.reshape(-1, KV_HEADS, GROUP, 2 * COLUMNS)
        wrong = (got != expected).reshape(len(got), -1).any(axis=1)
        problems += mismatches(batch, side, wrong, name)
    return problems


def run_batch(task):
    batch, gradients, device = task
    try:
        return batch, (check_gradients if gradients else check_forward)(batch, device)
    except varlen.Error as error:
        return batch, [str(error)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--device", default="cpu", help="as varlen-run has it")
    parser.add_argument("--gradients", action="store_true", help="not the result")
    parser.add_argument("--windows", default=16, type=int)
    parser.add_argument("--sequences", default=60, type=int, help="of each window")
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--jobs", default=len(os.sched_getaffinity(0)), type=int)
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())

    device = {"device": arguments.device}
    dtypes = ["f32", "bf16", "f16", "f64"]
    if arguments.device != "cpu":
        # f32 kernels take three products of one, and a GPU has none for f64.
        dtypes = ["bf16", "f16", "bf16", "f16", "f32"]
        device["sim_detector"] = "off"
    else:
        device["threads"] = 1
    seeds = range(arguments.seed, arguments.seed + arguments.windows)
    batches = [draw_batch(seed, arguments.sequences, dtypes) for seed in seeds]
    tasks = [(batch, arguments.gradients, device) for batch in batches]
    failed = 0
    with multiprocessing.Pool(arguments.jobs) as pool:
        for seed, (batch, problems) in zip(seeds, pool.imap(run_batch, tasks)):
            if problems:
                failed += len(problems)
                print(f"FAIL {batch.label}, seed {seed}")
                print(*problems[:5], sep="\n", flush=True)
    print(f"{arguments.windows * arguments.sequences} cases, {failed} failed")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
