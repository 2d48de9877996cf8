"""Pairs of ways to do one thing on one machine in turns, each with what it is expected to give:
what an idea of docs/notes is worth is asked of a GPU once, and the rule says beforehand what
follows.

A prediction is the time of the way that is tried over that of what is done today, of the whole
call: below 1 is faster. It is adopted if the median ratio is at most `adopt_at` and no round is
above 1, or above `adopt_at` where that is more.
"""

import dataclasses
import re

import context
import kernels
import ours
import peers
import plan
import rehearsal
import schedules
import timing
import torch
import varlen
from varlen.context_parallel import LAYOUTS

# Rounds of turns, and rounds of the pair that says how much two of the same differ.
ROUNDS = 9


@dataclasses.dataclass(frozen=True)
class Experiment:
    name: str
    label: str  # of the configuration that is timed
    tiles: tuple  # of each kernel, as schedules.Schedule has them; empty: those of the table
    predicted: float
    adopt_at: float
    why: str
    # Or "without_fill", "of_views", "copied", "paged", "tangents", "second derivatives", "quantised",
    # "overlapping" launches, or a layout of plans.
    sides: str = "schedules"
    # Of "ghosts": how many entries cu_seqlens has on either side, by empty sequences at its end.
    entries: tuple = ()
    page: int | None = None  # rows of a page
    kv_dtype: str | None = None  # of quantised keys, each row and head with a scale


# ptxas 13.0 takes all of them without a spill that is a warning.
EXPERIMENTS = [
    Experiment("the same twice", "fa-distributions/constant bf16 d128 full", (), 1.00, 0.0,
               "says what differences are noise"),
    Experiment("d128, accumulators rescaled in every block",
               "fa-distributions/constant bf16 d128 full",
               ((12, 192, 96, 3, 1, 1, 1),), 1.09, 0.98,
               "1708 cycles a 64 x 128 block in place of 1544: 64 products a block that change nothing"),
    Experiment("d128 causal, accumulators rescaled in every block",
               "fa-distributions/constant bf16 d128 causal",
               ((12, 192, 96, 3, 1, 1, 1),), 1.08, 0.98, "the same, and masked blocks"),
    Experiment("d256, accumulators rescaled in every block",
               "fa-distributions/constant bf16 d256 full",
               ((8, 128, 80, 2, 1, 0, 0, 2),), 1.03, 0.98,
               "3438 cycles in place of 3319: shared memory is the limit"),
    Experiment("d64, accumulators rescaled where needed", "fa-distributions/constant bf16 d64 full",
               ((12, 192, 128, 3, 1, 1, 0, 1, 8),), 0.97, 0.98,
               "32 of 476 instructions, for 10 of the decision"),
    Experiment("window d128, accumulators rescaled where needed", "pr164502 bf16 d128 window 256,0",
               ((4, 64, 48, 2, 3, 0, 0, 1, 8),), 0.94, 0.97,
               "64 of 315 instructions, but a row has six blocks, of which the first ones change m"),
    Experiment("dkv d64, the gradient of p before the scores", "pr164502 bf16 d64 full backward",
               ((4, 64, 64, 2, 3), (4, 64, 64, 2, 2)), 1.05, 0.98,
               "1046 cycles a 64 x 64 block in place of 927: exponentials beside no product"),
    Experiment("dkv d64 with 96 queries a block", "pr164502 bf16 d64 full backward",
               ((4, 64, 64, 2, 3), (4, 96, 64, 2, 2, 0, 0, 1, 0, 1)), 0.97, 0.98,
               "products of 96 columns lose nothing to shared memory: 918 cycles in place of 1046 "
               "with the gradient of p first; not simulated with the scores first"),
    Experiment("dkv d128 with 80 queries, two rings", "pr164502 bf16 d128 full backward",
               ((4, 64, 64, 2, 2), (8, 80, 128, 2, 1, 0, 0, 2)), 0.96, 0.98,
               "dkv 1608 cycles in place of 1736"),
    Experiment("d64 backward, five products", "pr164502 bf16 d64 full backward",
               ((4, 64, 64, 2, 3), (4, 64, 64, 2, 2, 0, 0, 1, 0, 1, 0, 0, 0, 1)), 1.05, 0.98,
               "1846 cycles of one loop in place of 708 and 952 of two, 1254 of them without what a warp waits for: "
               "its turn, the sums and the fence, of which a GPU says how long they are"),
    Experiment("d64 causal backward, five products", "pr164502 bf16 d64 causal backward",
               ((4, 64, 64, 2, 3), (4, 64, 64, 2, 2, 0, 0, 1, 0, 1, 0, 0, 0, 1)), 1.05, 0.98,
               "the same; no tile waits for another one that is computed beside it"),
    Experiment("d128 backward, five products", "pr164502 bf16 d128 full backward",
               ((4, 64, 64, 2, 2), (8, 64, 128, 2, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1)), 1.00, 0.98,
               "653 us of the loops in place of 653, if what is spilled comes back as fast as from shared memory"),
    Experiment("d128 causal backward, five products", "pr164502 bf16 d128 causal backward",
               ((4, 64, 64, 2, 2), (8, 64, 128, 2, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1)), 0.93, 0.98,
               "357 us of the loops in place of 391"),
    Experiment("d256 backward, products of 48 columns", "pr164502 bf16 d256 full backward",
               ((8, 128, 48, 2, 1), (8, 48, 128, 2, 1), (8, 48, 128, 2, 1, 0, 0, 2)), 0.96, 0.98,
               "by the model 604, 609 and 396 us in place of 613, 625 and 448: products of 32 columns, "
               "in shared memory both, take 30 cycles in place of 16"),
    Experiment("causal d128, short sequences, small tiles", "pr164502 bf16 d128 causal",
               ((4, 64, 48, 2, 3, 0, 0, 1, 8),), 0.97, 0.98,
               "0.94 when it was measured last, before items came from a counter"),
    Experiment("d128 without a lag", "fa-distributions/constant bf16 d128 full",
               ((12, 192, 96, 3, 1, 1, 0, 1, 8),), 0.93, 0.98,
               "one run had 0.93 here and 1.01 on short sequences: ptxas waits for the late product "
               "before all exponentials, so a lag may overlap nothing"),
    Experiment("d128 causal without a lag", "fa-distributions/constant bf16 d128 causal",
               ((12, 192, 96, 3, 1, 1, 0, 1, 8),), 1.02, 0.98, "the same run had 1.02"),
    Experiment("d64, four stages and a lag", "fa-distributions/constant bf16 d64 full",
               ((12, 192, 128, 4, 1, 1, 1),), 0.90, 0.97,
               "1008 cycles a block in place of 1122"),
    Experiment("d64, producers", "pr164502 bf16 d64 full",
               ((12, 192, 128, 4, 1, 0, 0, 1, 0, 0, 0, 4),), 0.87, 0.97,
               "3239 cycles of an item around its blocks in place of 6072, a block 999 in place of 1097, "
               "with a slot more; with three slots 1090 to 1190, as warpgroups are not held together"),
    Experiment("d64 causal, producers", "pr164502 bf16 d64 causal",
               ((12, 192, 128, 4, 1, 0, 0, 1, 0, 0, 0, 4),), 0.91, 0.97, "the same"),
    Experiment("d64, 4096 tokens, producers", "fa-distributions/constant bf16 d64 full",
               ((12, 192, 128, 4, 1, 0, 0, 1, 0, 0, 0, 4),), 0.91, 0.97, "the same"),
    Experiment("d128, producers", "pr164502 bf16 d128 full",
               ((12, 192, 96, 3, 1, 0, 0, 1, 8, 0, 0, 4),), 0.94, 0.97,
               "a lag does not fit 160 registers; items as at d64"),
    Experiment("d128 causal, producers", "pr164502 bf16 d128 causal",
               ((12, 192, 96, 3, 1, 0, 0, 1, 8, 0, 0, 4),), 0.89, 0.97, "the same"),
    Experiment("d256, producers", "pr164502 bf16 d256 full",
               ((8, 128, 80, 2, 1, 0, 0, 2, 8, 0, 0, 4),), 0.95, 0.97,
               "consumers have 232 registers, and spill 4 bytes; copies take as much from products as before"),
    Experiment("d64, producers and maps", "pr164502 bf16 d64 full",
               ((12, 192, 128, 5, 1, 0, 0, 1, 0, 0, 0, 4, 1),), 0.82, 0.97,
               "a block 952 cycles in place of 1007 with copies of cp.async, and 1122; with four slots "
               "warpgroups wait for each other's, as without maps with three; maps are made in 0.5 us"),
    Experiment("d64 causal, producers and maps", "pr164502 bf16 d64 causal",
               ((12, 192, 128, 5, 1, 0, 0, 1, 0, 0, 0, 4, 1),), 0.86, 0.97, "the same"),
    Experiment("d64, 4096 tokens, producers and maps", "fa-distributions/constant bf16 d64 full",
               ((12, 192, 128, 5, 1, 0, 0, 1, 0, 0, 0, 4, 1),), 0.84, 0.97, "the same"),
    Experiment("d128, producers and maps", "pr164502 bf16 d128 full",
               ((12, 192, 96, 3, 1, 0, 0, 1, 8, 0, 0, 4, 1),), 0.89, 0.97,
               "a block of 96 keys 1078 cycles in place of 1129 with copies of cp.async"),
    Experiment("d128 causal, producers and maps", "pr164502 bf16 d128 causal",
               ((12, 192, 96, 3, 1, 0, 0, 1, 8, 0, 0, 4, 1),), 0.86, 0.97, "the same"),
    Experiment("d256, producers and maps", "pr164502 bf16 d256 full",
               ((8, 128, 80, 2, 1, 0, 0, 2, 8, 0, 0, 4, 1),), 0.88, 0.97,
               "a block of 80 keys 1763 cycles in place of 1905 with copies of cp.async"),
    Experiment("window d128, 96 keys a block", "pr164502 bf16 d128 window 256,0",
               ((4, 64, 96, 2, 2),), 0.90, 0.97,
               "products of 48 columns lose 22 % to shared memory, but blocks at the edges grow"),
    Experiment("d64 without the NaN of results", "pr164502 bf16 d64 full", (), 0.94, 0.97,
               "8960 rows of 16 heads are 18.4 MB, 7 us at 2.5 TB/s and 1 us between nodes, of 135",
               "without_fill"),
    Experiment("d128 without the NaN of results", "pr164502 bf16 d128 full", (), 0.92, 0.97,
               "36.7 MB, 15 us and 1 us, of 199", "without_fill"),
    Experiment("packed qkv, by kernels for strides", "pr164502 bf16 d128 full", (), 4.0, 1.05,
               "8 loads of an element for one of 16 bytes, and none in flight behind products; "
               "adopted: views need no care", "of_views"),
    Experiment("packed qkv, copied first", "pr164502 bf16 d128 full", (), 0.35, 0.9,
               "beside kernels for strides: three copies of 36.7 MB are 88 us at 2.5 TB/s; adopted: "
               "the launch copies views", "copied"),
    Experiment("window d64, 96 keys a block", "pr164502 bf16 d64 window 256,0",
               ((4, 64, 96, 2, 3),), 0.96, 0.97,
               "products of 64 columns lose 6 of 32 cycles, those of 96 none"),
    Experiment("decoding d64, keys in parts", "decode bf16 d64 full",
               ((12, 192, 128, 3, 1, 1, 0, 1, 0, 0, 8),), 0.84, 0.92,
               "128 items of 512 to 4096 keys on 132 CTAs: 34.6 us by the model; of 1024 at most: 25.8, and "
               "2.8 to merge. All keys and values are 25 us at 3 TB/s"),
    Experiment("decoding d64, keys in parts, two CTAs", "decode bf16 d64 full",
               ((4, 64, 128, 3, 2, 0, 0, 1, 0, 0, 8),), 0.82, 0.92,
               "copies of one CTA beside the first blocks of the other: memory alone is the limit"),
    Experiment("decoding d128, keys in parts", "decode bf16 d128 full",
               ((12, 192, 96, 3, 1, 1, 1, 1, 8, 0, 10),), 0.77, 0.92,
               "69.4 us by the model, 48.2 in parts and 3.1 to merge; memory is 50 us"),
    Experiment("decoding d128, keys in parts, two CTAs", "decode bf16 d128 full",
               ((4, 64, 64, 2, 2, 0, 0, 1, 0, 0, 16),), 0.77, 0.92, "as at d64: memory is 50 us"),
    Experiment("decoding d256, keys in parts, two CTAs", "decode bf16 d256 full",
               ((4, 64, 32, 2, 2, 0, 0, 1, 0, 0, 32),), 0.77, 0.92,
               "134 us by the model; memory is 100 us. Tiles of 8 warps spill in the merge"),
    Experiment("cu_seqlens of 1024 entries", "pr164502 bf16 d64 full", (), 1.01, 1.02,
               "beside 96: one CTA makes the list, 4.8 us in place of 3.1; adopted: ghosts cost nothing",
               "ghosts", (96, 1024)),
    Experiment("lists by a kernel for each step", "pr164502 bf16 d64 full", (), 1.05, 0.99,
               "1025 entries are one more than one CTA makes a list of: five launches in place of one, "
               "12.5 us in place of 4.8; adopted: one CTA has too many", "ghosts", (1024, 1025)),
    Experiment("the calls of two ranks, whole documents", "pr164502 bf16 d128 causal", (), 1.12, 1.2,
               "one document is on both ranks, whose keys are copied (3 us), as are all of a rank that has a "
               "part of it (9 us), and two launches end with fewer tiles than one; adopted: the "
               "estimates of docs/context-parallel.md need no factor for plans", "documents"),
    Experiment("the calls of two ranks, zigzag", "pr164502 bf16 d128 causal", (), 2.2, 1.2,
               "both ranks put all keys and values in order, two copies of 73 MB each way: 150 us at "
               "2.5 TB/s beside 148; not adopted: a call should read rows where they are", "zigzag"),
    Experiment("d64, keys in pages of 256 rows", "fa-distributions/constant bf16 d64 causal", (), 1.03, 1.05,
               "494 instructions a block in place of 472: a block is in one page, which a thread looks up "
               "once; one launch more; adopted: docs/pages.md has the figure", "paged", page=256),
    Experiment("d128, keys in pages of 16 rows", "fa-distributions/constant bf16 d128 causal", (), 1.06, 1.05,
               "536 instructions a block in place of 462, an entry of the table for each row that a thread "
               "copies; not adopted: lanes of a warp should look up rows for each other", "paged", page=16),
    Experiment("d64 with tangents", "pr164502 bf16 d64 full", (), 2.55, 3.2,
               "353 us by the model beside 139: six products in place of two, with as many exponentials; adopted: "
               "docs/derivatives.md has the figure", "tangents"),
    Experiment("d128 with tangents", "pr164502 bf16 d128 full", (), 3.02, 3.2,
               "624 us by the model beside 207: blocks of 48 keys, in products that shared memory bounds, and no lag",
               "tangents"),
    Experiment("d64 second derivatives", "pr164502 bf16 d64 full", (), 6.26, 7.5,
               "868 us by the model beside 139: 15 products in place of two, 367 us of the kernel of dq and 480 of "
               "that of dk and dv; adopted: docs/derivatives.md has the figure", "second derivatives"),
    Experiment("d128 second derivatives", "pr164502 bf16 d128 full", (), 9.54, 11.0,
               "1970 us by the model beside 207: blocks of 48 keys and of 16 queries, in products that shared "
               "memory bounds", "second derivatives"),
    Experiment("decoding d64, keys of i8", "decode bf16 d64 full", (), 0.87, 0.95,
               "32.5 us by the model, in parts, beside 37.3 of bf16 in one part and 23.3 in parts of its own: "
               "a block takes 695 instructions in place of 301, of which 200 or so load scales; "
               "adopted: docs/quantised-keys.md has the figure", "quantised", kv_dtype="i8"),
    Experiment("decoding d128, keys of i8", "decode bf16 d128 full", (), 0.65, 0.95,
               "47.3 us beside 72.4, and 40.4 in parts", "quantised", kv_dtype="i8"),
    Experiment("d64 causal, launches overlap", "pr164502 bf16 d64 causal", (), 0.98, 1.0,
               "CTAs of attention are on their way while the list is made: of its 3.1 us and a gap of 0.6 "
               "between nodes 1.6 at most, of 87; adopted: launches overlap without being asked to",
               "overlapping"),
    Experiment("d64 backward, launches overlap", "pr164502 bf16 d64 full backward", (), 0.99, 1.0,
               "three gaps between lists, delta and two kernels of gradients, of 355 us", "overlapping"),
    Experiment("decoding d64, launches overlap", "decode bf16 d64 full", (), 0.96, 1.0,
               "1.6 of 52 us, and the beginning of a CTA", "overlapping"),
]  # fmt: skip


def _item_of(experiment):
    if rehearsal.FOLDER:
        backward = experiment.label.endswith("backward")
        return next(item for item in plan.timed() if item.gradients == backward and not item.score)
    return plan.find_timed(experiment.label)


def _with_entries(item, entries):
    """The item with as many entries of cu_seqlens, or a rehearsal's few more than it has."""
    batch = item.config.batch
    more = entries - 1 - len(batch.q_lengths)
    ghosts = (0,) * (min(more, 3) if rehearsal.FOLDER else more)
    batch = dataclasses.replace(
        batch, q_lengths=(*batch.q_lengths, *ghosts), k_lengths=(*batch.k_lengths, *ghosts)
    )
    return dataclasses.replace(item, config=dataclasses.replace(item.config, batch=batch))


def _pair_of(experiment):
    """The items of both sides: what is done today, and what is tried."""
    item = _item_of(experiment)
    if experiment.sides == "ghosts":
        return tuple(_with_entries(item, entries) for entries in experiment.entries)
    if experiment.page:
        return item, dataclasses.replace(item, page=experiment.page)
    if experiment.kv_dtype:
        return item, dataclasses.replace(item, kv_dtype=experiment.kv_dtype)
    views = dataclasses.replace(item, strided=True)
    if experiment.sides == "of_views":
        return item, views
    if experiment.sides == "copied":
        return views, item
    if experiment.sides == "tangents":
        return item, dataclasses.replace(item, tangents=True)
    if experiment.sides == "second derivatives":
        return item, dataclasses.replace(item, gradients=True, tangents=True)
    if rehearsal.FOLDER or not experiment.tiles:
        # The executor's GPU has tiles of another kind.
        return item, item
    schedule = schedules.Schedule(experiment.tiles, experiment.name)
    return item, dataclasses.replace(item, schedule=schedule)


def _with_fill(call, results):
    """One more fill of results than a launch has anyway."""

    def run():
        for result in results:
            result.fill_(float("nan"))
        call()

    return run


def _with_copies(call, inputs):
    """Copies of views to the dense tensors that are attended."""
    views = ours.packed_views(*inputs)

    def run():
        for tensor, view in zip(inputs, views):
            tensor.copy_(view)
        call()

    return run


def _with_overlap(call):
    """The launches of a call start while kernels before them run, also in a graph."""

    def run():
        varlen.overlap_launches(True)
        try:
            call()
        finally:
            varlen.overlap_launches(False)

    return run


def _sides_of(experiment, made):
    """The calls of both sides. `made` are inputs, calls and results of each."""
    today, tried = (calls for _, calls, _ in made)
    if experiment.sides == "without_fill":
        today = [_with_fill(call, results) for call, results in zip(today, made[0][2])]
    if experiment.sides == "overlapping":
        tried = [_with_overlap(call) for call in tried]
    if experiment.sides == "copied":
        tried = [_with_copies(call, inputs) for call, inputs in zip(tried, made[1][0])]
    return today, tried


def _prepare_pair(compiler, experiment, pair):
    """The calls of both sides, and how far their results differ."""
    made = []
    for item in pair:
        torch.manual_seed(0)  # the same inputs for both
        made.append(ours.prepare(compiler, item, peers.Batch(item.config)))
    off = max(ours.difference(a, b) for a, b in zip(made[1][2][0], made[0][2][0]))
    return _sides_of(experiment, made), off


def _verdict(experiment, ratio, most):
    if not experiment.adopt_at:
        return "control"
    if ratio <= experiment.adopt_at and most <= max(1, experiment.adopt_at):
        return "adopt"
    return "keep"


def one_of_each_kind():
    """What a rehearsal asks, where all have one configuration."""
    kinds = {(e.sides, bool(e.adopt_at), e.label.endswith("backward")): e for e in EXPERIMENTS}
    return list(kinds.values())


def main(log, arguments):
    rehearsal.start_torch()
    asked = one_of_each_kind() if rehearsal.FOLDER else EXPERIMENTS
    work = [
        e for e in asked
        if re.search(arguments.labels, e.name) and not log.done("experiment", e.name)
    ]  # fmt: skip
    sides = {e.name: _pair_of(e) for e in work}
    kernels_of = [sides[e.name] for e in work if e.sides not in LAYOUTS]
    compiler = ours.Compiler([item for pair in kernels_of for item in pair])
    broken = {label for label, _ in log.unfinished()}
    for done, experiment in enumerate(work):
        if log.left() < 5:
            return len(work) - done
        name, pair = experiment.name, sides[experiment.name]
        if name in broken:
            log.add("experiment", name, failed="it had ended the process")
            continue
        try:
            torch.manual_seed(0)
            with log.attempt(name, "turns"), timing.side_stream():
                if experiment.sides in LAYOUTS:
                    shared = peers.Batch(pair[0].config)
                    *calls, off = context.prepare(pair[0].config, shared, experiment.sides)
                else:
                    calls, off = _prepare_pair(compiler, experiment, pair)
                (table, tried) = timing.turns_ms(calls, ROUNDS)
                del calls
        except (kernels.Missing, ValueError, RuntimeError) as error:
            log.add("experiment", name, failed=str(error)[:300])
            print(f"{name}: {error}", flush=True)
            continue
        row = {
            "configuration": pair[0].label, "tiles": experiment.tiles, "why": experiment.why,
            "predicted": experiment.predicted, "ratio": tried["ratio"], "least": tried["least"],
            "most": tried["most"], "table_ms": table["ms"], "tried_ms": tried["ms"],
            "difference": off, "verdict": _verdict(experiment, tried["ratio"], tried["most"]),
        }  # fmt: skip
        log.add("experiment", name, **row)
        print(name, row, flush=True)
        torch.cuda.empty_cache()
    return 0
