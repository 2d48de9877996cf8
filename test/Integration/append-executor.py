# RUN: %python %s sim:sm_80
# RUN: %python %s sim:sm_90a
"""varlen.append by GPU kernels, in the executor: the bits of a CPU, in pages and in slots, with rotary
embeddings of both layouts and quantised, without a hazard with each order of warps and timing of
copies; and errors, after which nothing is written."""

import os
import pathlib
import sys

import ml_dtypes
import numpy as np
import varlen

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))

from append_case import Case, list_operands, make_text

DEVICE = sys.argv[1]
RUNS = int(os.environ.get("VARLEN_EXECUTOR_RUNS", "27"))


def run(case, device=None, changed=None, **flags):
    operands = list_operands(case) | (changed or {})
    text = make_text(operands, case.options.get("interleaved", False))
    return varlen.run(text, operands, device=device, **flags)


def bits(x):
    """Of NaN only that it is one."""
    x = x.copy()
    if x.dtype.kind != "i":
        x[x != x] = np.nan
    return x.tobytes()


def check(case, runs=1):
    wanted, found = run(case), run(case, DEVICE, sim_runs=runs, device_checks=True)
    assert set(wanted) == set(found)
    for name in wanted:
        assert bits(wanted[name]) == bits(found[name]), (name, case.options)


def check_errors():
    case = Case("f32", 16).add_rotary(5, "f32", interleaved=False)
    slots = Case("bf16")
    table, pages = case.options["block_table"], len(case.k_cache)
    capacity = 16 * table.shape[1]

    def refuse(message, of=case, **changed):
        try:
            run(of, DEVICE, changed, device_checks=True)
        except varlen.Error as error:
            assert message in str(error), (message, str(error))
        else:
            raise AssertionError(f"expected: {message}")

    def put(x, *places):
        x = x.copy()
        for at, value in places:
            x[at] = value
        return x

    # A later error is not what is reported.
    refuse("block_table[4, 0] = -1: expected 0 to ", block_table=put(table, ((4, 0), -1), ((6, 3), pages)))
    refuse(
        f"block_table[4, 12] = {pages}: expected 0 to {pages - 1}, the pages of k_cache, for new rows of the "
        "sequence",
        block_table=put(table, ((4, 12), pages)),
    )
    refuse(
        f"block_table[6, 2] = {table[4, 5]}: expected a page that nothing else writes to, and "
        "block_table[4, 5] is the same",
        block_table=put(table, ((6, 2), table[4, 5]), ((6, 4), table[4, 5])),
    )
    refuse(
        f"block_table[4, 5] = {table[4, 3]}: expected a page that nothing else writes to, and "
        "block_table[4, 3] is the same",
        block_table=put(table, ((4, 5), table[4, 3])),
    )
    refuse("block_table has 6 rows: expected 7, one for each sequence of cu_seqlens", block_table=table[:-1])
    refuse(
        "sequence 4 of cu_seqlens has 200 rows: expected at most 48, those of the pages",
        block_table=table[:, :3].copy(),
    )
    refuse(
        f"seqused_k[4] = -1: expected 0 to {capacity - 200}, as 200 new rows must fit into the pages that "
        "block_table has of a sequence",
        seqused_k=put(case.used, (4, -1), (6, capacity)),
    )
    refuse("cu_seqlens[3] = 2 is smaller than cu_seqlens[2] = 3", cu=put(case.cu, (3, 2)))
    refuse("cu_seqlens[7] = 339 is larger than the 338 rows of k", cu=put(case.cu, (7, 339)))
    refuse("cu_seqlens is empty", cu=case.cu[:0], seqused_k=case.used[:0], block_table=table[:0])
    refuse("v has 337 rows: expected 338, as many as k", v=case.v[1:])
    refuse("a page of v_cache has 15 rows: expected 16, as many as a page of k_cache", v_cache=case.v_cache[:, 1:].copy())
    refuse("cos has 202 rows: expected at least 203, the positions of the keys of sequence 4", cos=case.options["cos"][:202])
    refuse(
        "seqused_k[0] = 202: expected 0 to 201, as 3 new rows must fit into a slot of k_cache",
        slots, seqused_k=put(slots.used, (0, 202)),
    )  # fmt: skip
    refuse(
        "cu_seqlens has 7 sequences: expected at most 6, the slots of k_cache",
        slots, k_cache=slots.k_cache[:6].copy(), v_cache=slots.v_cache[:6].copy(),
    )  # fmt: skip


def main():
    check(Case("bf16", 16).add_rotary(5, "f32", interleaved=True), runs=RUNS)
    i8, f8 = np.dtype("i1"), np.dtype(ml_dtypes.float8_e4m3fn)
    check(Case("bf16", 5).quantise(f8).add_rotary(12, "f32", interleaved=False), runs=3)
    if DEVICE != "sim:sm_80":
        return  # The kernels of all chips are of one text.
    check(Case("f32", 5, "i8").add_rotary(12, "bf16", interleaved=False))
    check(Case("f64", 64).add_rotary(7, "f64", interleaved=True))
    check(Case("f16"))
    check(Case("f32", 16).quantise(i8).add_rotary(12, "f32", interleaved=False), runs=3)
    check(Case("f16").quantise(i8).add_rotary(5, "f32", interleaved=True))
    check(Case("f32", 256).quantise(f8))
    # More rows than one CTA looks at; no row, and no sequence.
    check(Case("bf16", 16, used=[3, 40, 0], new=[1, 4100, 16]))
    check(Case("bf16", 16, used=[3, 16], new=[0, 0]))
    check(Case("bf16", used=[0], new=[5]))
    check_errors()


main()
