# REQUIRES: venv
# RUN: %python %s

"""The model of Hopper beside times that were measured, on the machine code that these were of:
no GPU, no ptxas, no compiler."""

import dataclasses
import doctest
import json
import pathlib
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "benchmarks/gpu"))

import batches
import model
import pinned
import sass
import sets
import sm90


def check(condition, what):
    if not condition:
        sys.exit(what)


def errors_of_what_was_measured():
    """Every third schedule of long sequences, and the short batch with masks and gradients;
    `model.py validate` has all of them."""
    rows = pinned.load(model.PINNED)
    schedules = [row for row in rows if "constant" in row["label"]]
    rows = schedules[::3] + [row for row in rows if row not in schedules]
    tiles = [kernel["tiles"] for row in rows for kernel in row["kernels"].values()]
    check({t["rings"] for t in tiles} == {1, 2}, "expected one ring and two")
    check({t["owns_keys"] for t in tiles} == {False, True}, "expected tiles of queries and of keys")
    found = list(model.validation(rows, sm90.OFFSETS[:1]))
    for head_dim in (64, 128, 256):
        check(any(f"d{head_dim} " in label for label, *_ in found), f"expected rows of d{head_dim}")
    windows = [x for x in found if "window" in x[0]]
    for what, some, most in (
        ("without a window", [x for x in found if x not in windows], (0.03, 0.075, 0.17)),
        # Known to be too fast.
        ("with a window", windows, (0.16, 0.18, 0.22)),
    ):
        got = model.errors(some)
        print(f"{what}, {len(some)} measurements: " + ", ".join(f"{x:+.3f}" for x in got))
        check(
            all(abs(a) <= b for a, b in zip(got, most)),
            f"{what}: expected mean, root mean square and largest of at most {most}, got {got}",
        )


def constants_are_measured():
    """The table of units says what micro.jsonl says."""
    rows = [
        json.loads(line)
        for line in (ROOT / "benchmarks/results/h200/micro.jsonl").read_text().splitlines()
    ]
    contention = {
        (r["op"], r["mma"]): r for r in rows if r.get("test") == "contention" and r["wgs"] == 3
    }
    latency = {r["op"]: r["cycles"] for r in rows if r.get("test") == "latency"}
    count = 0
    for name, unit in sm90.UNITS.items():
        if not unit.op:
            check(unit.why, f"{name}: expected why it is so")
            continue
        alone, beside = contention[unit.op, "none"], contention[unit.op, "SS_n128"]
        measured = [alone["alone"], beside["cycles_per_instr"], beside["sigma"]]
        stated = [unit.alone, unit.beside, unit.takes]
        if not unit.why:
            measured.append(latency[unit.op])
            stated.append(unit.latency)
        for a, b in zip(stated, measured):
            check(abs(a - b) <= 0.001 * b + 0.0005, f"{name}: expected {b} as measured, got {a}")
            count += 1
    check(count >= 20, f"expected 20 numbers or more that were measured, got {count}")


def step(name, operands="", **fields):
    return sass.Instruction(name, operands, stall=2, **fields)


def loop(products=4, arithmetic=()):
    """A block of two products that are waited for, behind a barrier of the CTA."""
    some = [step("HGMMA.64x128x16.F32.BF16", "gdesc")] * (products - 1)
    last = [step("HGMMA.64x128x16.F32.BF16", "gdesc gsb0")]
    wait = [step("WARPGROUP.DEPBAR.LE", "gsb0, 0x0")]
    return [step("BAR.SYNC"), *some, *last, *arithmetic, *wait]


RING = sm90.Ring(stages=2, slack=0, lag=0, rings=1, block_bytes=8192)


def cycles(body, warpgroups=1, ctas=1, ring=RING):
    return sm90.loop_time(body, warpgroups, ctas, ring, offsets=(37,)).cycles


def products_and_what_is_beside_them():
    # One warp waits for its own product; with several the tensor core is what takes the time.
    alone, four = cycles(loop()), cycles(loop(), ctas=4)
    nominal = 4 * sm90.product_cycles(128, True)[0]
    check(alone > nominal + 50, f"expected a latency behind {nominal} cycles, got {alone}")
    check(abs(four - nominal) < 0.03 * nominal, f"expected {nominal} cycles, got {four}")
    # Multiplications beside products make these later, each by a cycle and a bit.
    more = cycles(loop(arithmetic=[step("FMUL")] * 100), ctas=4) - four
    check(90 <= more <= 130, f"expected 100 multiplications to take 90 to 130 cycles, got {more}")
    # A few beside each product that waits for shared memory anyway cost less than their sum.
    narrow = [dataclasses.replace(x, name=x.name.replace("128", "64")) for x in loop(16)]
    spread = [y for x in narrow for y in ([x] + [step("FMUL")] * 5 if x.kind == "wgmma" else [x])]
    less = cycles(spread, ctas=4) - cycles(narrow, ctas=4)
    check(less < 60, f"expected 80 multiplications to take less than 60 cycles, got {less}")
    # A block cannot be faster than its copy.
    large = dataclasses.replace(RING, block_bytes=1 << 17)
    check(cycles(loop(), ring=large) >= 0.95 * (1 << 17) / sm90.constant("copy_bytes"),
          "expected a block that its copy bounds")  # fmt: skip


def roles_of_warps():
    """Warpgroups that give registers to each other part there, whichever comes first in the code."""
    start = [step("S2R"), step("BRA", target=4)]
    producer = [step("USETMAXREG.DEALLOC.CTAPOOL"), *[step("LDGSTS")] * 3, step("SYNCS"), step("EXIT")]
    producer[-1:-1] = [step("BRA", predicate="@P0", target=2)]
    consumer = [step("USETMAXREG.TRY_ALLOC.CTAPOOL"), *loop(), step("BRA", predicate="@P0", target=0)]

    def moved(part, at):
        return [
            dataclasses.replace(x, target=x.target + at) if x.target is not None else x for x in part
        ]

    for first, second in ((producer, consumer), (consumer, producer)):
        body = start + moved(first, 2) + moved(second, 2 + len(first))
        consumes, produces = sass.roles(body)
        for part, found in ((consumer, consumes), (producer, produces)):
            check(found == start + moved(part, 2), f"expected {part} behind {start}, got {found}")
        kernel = model.take_apart(body)
        check(kernel.copies == 2, f"expected 2 copies in the loop of producers, got {kernel.copies}")
        check(sass.counts(kernel.whole)["copy"] == 0, "expected no copies in the loop of consumers")
    check(sass.roles(consumer) == (consumer, []), "expected one role where no register is given")
    # Whole blocks that come by TMA take no copies of threads, whatever the others do.
    by_map = [step("UTMACCTL.IV"), step("UTMACCTL.IV"), step("UTMALDG.3D"), *producer[1:]]
    by_map = [dataclasses.replace(x, target=4) if x.target is not None else x for x in by_map]
    check(sass.copies(by_map) == (0, 2), f"expected 2 maps and no copies, got {sass.copies(by_map)}")
    # Copies of producers take time from products as well, and those of TMA less.
    ring = dataclasses.replace(RING, has_producers=True)
    body = [step("SYNCS.PHASECHK.TRANS64.TRYWAIT", "[R1+0x8]"), *loop()[1:], step("SYNCS.ARRIVE", "[R1]")]
    times = [
        sm90.loop_time(body, 1, 4, ring, offsets=(37,), copies=copies).cycles for copies in (0, 40)
    ]
    more = times[1] - times[0]
    check(300 < more < 600, f"expected 40 copies to take 480 cycles and TMA 22, got {more} more")


def errors_of_input():
    try:
        cycles([step("WARPGROUP.DEPBAR.LE", "gsb0, 0x0"), step("BAR.SYNC")],
               ring=dataclasses.replace(RING, stages=1))  # fmt: skip
    except sm90.Deadlock:
        pass
    else:
        sys.exit("expected a deadlock: no block is copied ahead")
    try:
        pinned.read("FMUL:1; nothing")
    except ValueError as error:
        check("'nothing'" in str(error), f"expected the text that is wrong, got {error}")
    else:
        sys.exit("expected an error of a text that is no loop")


def items_of_batches():
    """Blocks of all items are those between the first and the last with a visible pair, counted
    pair by pair. Rows of queries are those of both query heads of a kv head."""
    batch = sets.Batch("", "", (0, 1, 70, 200, 5), (3, 1, 70, 130, 300), 4, 2)
    for window in (sets.FULL, sets.CAUSAL, (40, 0), (10, 20), (0, 0)):
        for owns_keys in (False, True):
            tiles = batches.Tiles(4, 64, 32, 2, 1, owns_keys=owns_keys)
            whole = cut = 0
            for item, count in batches.items_of(batch, tiles, window):
                whole, cut = whole + item.whole * count, cut + item.cut * count
            expected = [0, 0]
            for q, k in zip(batch.q_lengths, batch.k_lengths):
                own, other = (
                    ([x for x in range(k)], q) if owns_keys else ([x // 2 for x in range(2 * q)], k)
                )
                for begin in range(0, len(own), 64):
                    seen = [
                        [is_visible(r, c, q, k, window, owns_keys)
                         for r in own[begin : begin + 64] for c in range(b, min(other, b + 32))]
                        for b in range(0, other, 32)
                    ]  # fmt: skip
                    some = [b for b, pairs in enumerate(seen) if any(pairs)]
                    for b in range(some[0], some[-1] + 1) if some else ():
                        is_whole = all(seen[b]) and (b + 1) * 32 <= other
                        expected[not is_whole] += batch.kv_heads * (2 if owns_keys else 1)
            check(
                [whole, cut] == expected,
                f"{window} {owns_keys}: expected {expected}, got {[whole, cut]}",
            )


def is_visible(row, column, q, k, window, owns_keys):
    query, key = (column, row) if owns_keys else (row, column)
    left, right = window
    at = query + k - q
    return (left < 0 or key >= at - left) and (right < 0 or key <= at + right)


def schedules_that_are_timed():
    """The table's of each configuration, the best of the others, and those without a prediction."""
    names = ["a", "a 1", "a 2", "a 3", "a ?", "b", "b 1"]
    items = [types.SimpleNamespace(label=name, schedule=" " in name) for name in names]
    predicted = {"a": 9.0, "a 1": 3.0, "a 2": 1.0, "a 3": 2.0, "b": 1.0, "b 1": 2.0}
    got = [item.label for item in model.choose(items, predicted, 2)]
    expected = ["a", "a 2", "a 3", "a ?", "b", "b 1"]
    check(got == expected, f"expected {expected}, got {got}")


def a_loop_that_is_written_is_read():
    for row in pinned.load(model.PINNED)[:2]:
        text = row["kernels"]["attn"]["whole"]
        body = pinned.read(text)
        check(pinned.write(body) == text, f"{row['label']}: expected the text again")
        check(
            sass.counts(body)["other"] == 0, f"{row['label']}: expected kinds of all instructions"
        )


def main():
    check(not doctest.testmod(batches).failed, "doctests of batches.py")
    constants_are_measured()
    products_and_what_is_beside_them()
    roles_of_warps()
    errors_of_input()
    items_of_batches()
    schedules_that_are_timed()
    a_loop_that_is_written_is_read()
    errors_of_what_was_measured()


if __name__ == "__main__":
    main()
