"""Attention on packed batches, with inputs that reach all of its kernels: modules
and inputs for varlen-mutate."""

import dataclasses
import pathlib
import sys

CONFORMANCE = pathlib.Path(__file__).resolve().parents[3] / "test" / "Integration" / "Inputs"
sys.path.insert(0, str(CONFORMANCE))

import attn_gradients
import attn_jvp_gradients
import attn_tangents
import harness
import numpy as np
import varlen
from parameters import CAUSAL, FULL, Group, Sequence


def sequences(*used, spare=0):
    """Sequences of (queries, keys) in use, in slots of so many rows more."""
    return tuple(Sequence(q + spare, k + 2 * spare, q, k, (q, k)) for q, k in used)


# Whole tiles and ones cut short, more blocks than a ring holds, longer queries,
# longer keys, rows without a key, sequences without rows. Windows are wide enough for
# blocks that they do not cut.
PLAIN = sequences((200, 200), (3, 3), (0, 0), (64, 64), (70, 9), (5, 150))


def group(dtype, heads, kv_heads, d, dv, window, *, used=PLAIN, **more):
    return Group("mutants", dtype, heads, kv_heads, d, dv, window, used, **more)


# Sequences whose keys are in parts, the last one cut short, hidden or without keys that are
# seen, and ones with too many queries or too few keys for that.
PARTS = sequences((1, 200), (16, 150), (0, 70), (33, 140), (3, 0), (2, 65), (5, 64))
WINDOW = {
    "used": sequences((90, 90), (0, 3), (30, 200), (33, 0), spare=2),
    "seqused": True, "q_offset": True, "sink": True, "past_q": 70, "past_k": 9,
}  # fmt: skip
FORWARD = {
    "forward-full": group("bf16", 2, 2, 64, 64, FULL, past_q=5, past_k=3),
    "forward-causal": group("bf16", 2, 2, 64, 64, CAUSAL, past_q=5),
    "forward-window": group("bf16", 6, 2, 64, 64, (120, 40), **WINDOW),
    "forward-d128": group("f16", 2, 2, 128, 128, CAUSAL, past_q=5),
    "forward-d40": group("f16", 2, 1, 40, 72, (16, -1), past_k=3),
    "forward-f32": group("f32", 2, 2, 64, 64, CAUSAL, past_q=5),
    "forward-score": group("bf16", 2, 1, 64, 64, CAUSAL, past_q=5, score="capped_alibi"),
    "forward-hidden": group("bf16", 2, 2, 64, 64, (180, 40), past_q=5, score="prefix_lm"),
    "forward-parts": group("bf16", 4, 2, 64, 64, (-1, 30), past_q=5, past_k=150, used=PARTS),
}
# Of those that have another than that of the table: parts of 64 keys.
SCHEDULES = {
    "forward-parts": "warps = 2, block_m = 32, kv_block = 32, stages = 3, ctas = 2, few_part = 2",
}


# Tiles of keys add up dq in their order, in CTAs that run together.
FIVE_PRODUCTS = (
    "#varlen.gpu_grad_schedule<dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>, "
    "dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1, five_products = 1>>"
)
GRADIENTS = {
    "gradients-causal": group("bf16", 2, 2, 64, 64, CAUSAL, past_q=5),
    "gradients-window": group("bf16", 6, 2, 64, 64, (120, 40), **WINDOW),
    "gradients-d128": group("f16", 2, 1, 128, 128, FULL, past_k=3),
    "gradients-d192": group("bf16", 2, 2, 192, 128, (-1, 7), past_q=5),
    "gradients-f32": group("f32", 2, 2, 64, 40, CAUSAL, past_q=5),
    "gradients-score": group("bf16", 2, 1, 64, 64, CAUSAL, past_q=5, score="capped_alibi"),
    "gradients-hidden": group("bf16", 2, 1, 64, 64, (180, 40), past_q=5, score="prefix_lm"),
    "gradients-documents": group("bf16", 2, 1, 64, 64, CAUSAL, past_q=5, score="document"),
    "gradients-table": group("bf16", 2, 1, 64, 64, CAUSAL, past_q=5, score="t5_bias"),
    # The last key, where a lookup is clamped, is in blocks that are not masked, too.
    "gradients-keys": group("bf16", 2, 1, 64, 64, (-1, 70), past_q=5, past_k=3, score="key_bias"),
    "gradients-tables": group("f16", 2, 2, 64, 64, FULL, past_q=5, score="position_bias"),
}
TANGENTS = {"tangents-causal": group("bf16", 2, 2, 64, 64, CAUSAL, past_q=5)}
SECOND = {"second-causal": group("bf16", 2, 2, 64, 64, CAUSAL, past_q=5)}


def variants(group):
    """Other batches for the kernels of a group."""
    yield group

    def batch(*used, spare=int(group.seqused), **more):
        return dataclasses.replace(group, sequences=sequences(*used, spare=spare), **more)

    whole = {"past_q": 0, "past_k": 0}
    # Many sequences, most of them empty: the others at the ends of the blocks of
    # threads that look at them.
    rows = {0: (17, 40), 127: (1, 1), 128: (40, 17), 150: (5, 2)}
    yield batch(*[rows.get(i, (0, 0)) for i in range(151)], **whole)
    # More than one pass sorts, with lengths that are the same or differ by one; more
    # tiles than a block has threads.
    yield batch(*[(1 + i % 3, 1 + i * i % 5) for i in range(140)], **whole)
    # More whole blocks than a ring holds, on either side; one row more than a
    # tile; blocks whole and not by one row, on either side; only whole ones; rows
    # past the last sequence that would be one tile more.
    yield batch(
        (129, 457), (450, 129), (10, 72), (72, 10), (1, 128), (128, 1), (9, 0),
        (130, 192), (64, 192), (125, 2), past_q=5, past_k=30,
    )  # fmt: skip
    # The last rows of memory between any two that a thread copies, 16 apart with 64
    # columns, 8 with 128; and one row into a block.
    step = 1024 >> (max(group.d, group.dv) - 1).bit_length()
    for length in [*range(step // 2, 128 + step, step), 65]:
        yield batch((length, length), spare=0, **whole)
    # The same in the second block that a diagonal cuts.
    for length in range(64 + step // 2, 128, step):
        yield batch((60, length), spare=0, **whole)
    # One key in the first block that is copied: all rows see those before it.
    yield batch((1, 65), spare=0, **whole)


def loud(inputs):
    """Rows of scores next to each other of very different size."""
    q = varlen.dtypes.widen(inputs["q"], np.float32)
    q[::2] *= 200
    return {**inputs, "q": varlen.dtypes.narrow(q, varlen.dtypes.name_of(inputs["q"]))}


def broken(inputs):
    """Inputs of which one list is wrong, each in another way and place."""

    def change(name, at, value):
        changed = inputs[name].copy()
        changed[at] = value
        return {**inputs, name: changed}

    for side in "qk":
        name, rows = f"cu_seqlens_{side}", len(inputs[side])
        yield change(name, 0, 1)
        yield change(name, 1, -1)
        yield change(name, 2, -1)
        yield change(name, -1, inputs[name][-2] - 1)
        yield change(name, -1, rows + 1)
        # As long as a sequence may be, and longer.
        yield change(name, 1, 1 << 30)
        yield change(name, 1, (1 << 30) + 1)
        if f"seqused_{side}" in inputs:
            yield change(f"seqused_{side}", 1, -1)
            yield change(f"seqused_{side}", 2, rows)
    # As many entries as the others say.
    yield {**inputs, "cu_seqlens_q": inputs["cu_seqlens_q"][:0]}
    for name in ("cu_seqlens_k", "seqused_q", "seqused_k", "q_offset"):
        if name in inputs:
            yield {**inputs, name: inputs[name][:-1]}
    # Numbers of a score for fewer queries than there are, or rows of them.
    for name in ("gains", "prefix", "end", "bias"):
        # What is of heads has any number of entries.
        if name in inputs and inputs[name].shape[1:2] == inputs["q"].shape[:1]:
            yield {**inputs, name: np.ascontiguousarray(inputs[name][:, :-1])}


def inputs(group, kind=harness):
    """Tensors for the result of an attention (harness), its gradients (attn_gradients), its
    tangents (attn_tangents) or the gradients of these (attn_jvp_gradients), the broken ones last."""
    for variant in variants(group):
        made = kind.make_inputs(variant)
        # Offsets are for the first; the others must see their keys.
        if variant is not group and "q_offset" in made:
            made["q_offset"][:] = 0
        yield made
    if kind is harness:
        yield loud(kind.make_inputs(group))
    if group.score == "prefix_lm":
        # Blocks that no row of a tile of many sees a part of only; rows in all of its
        # fragments, of which some are 72 rows from its first.
        longer = sequences((220, 220)) + group.sequences[1:]
        made = kind.make_inputs(dataclasses.replace(group, sequences=longer))
        yield {**made, "prefix": made["prefix"] + np.float32(100)}
    yield from broken(kind.make_inputs(group))


PAGED = group(
    "bf16", 2, 1, 64, 64, (70, 5), seqused=True,
    used=sequences((90, 90), (0, 3), (30, 200), (1, 65), (0, 0), (7, 40)),
)  # fmt: skip


def paged(rows):
    """Keys in pages of so many rows, which their type does not say."""
    made = harness.make_inputs(PAGED)
    cu_k = made.pop("cu_seqlens_k")
    used = np.diff(cu_k)
    counts = -(-used // rows)
    table = np.full((len(used), counts.max() + 1), -1, np.int32)
    order = np.random.default_rng(0).permutation(counts.sum() + 1).astype(np.int32)
    pages = {name: np.full((len(order), rows, 1, 64), np.nan, made[name].dtype) for name in "kv"}
    for s, first in enumerate(np.cumsum(counts) - counts):
        table[s, : counts[s]] = order[first : first + counts[s]]
        for j in range(used[s]):
            for name in "kv":
                pages[name][table[s, j // rows], j % rows] = made[name][cu_k[s] + j]
    made |= {**pages, "seqused_k": used.astype(np.int32), "block_table": table}
    names = "q", "k", "v", "cu_seqlens_q", "seqused_q", "seqused_k", "block_table"
    made = {name: made[name] for name in names}

    def change(name, at, value):
        changed = made[name].copy()
        changed[at] = value
        return {**made, name: changed}

    batches = [
        made,
        change("seqused_k", 1, -1),
        change("seqused_k", 2, table.shape[1] * rows + 1),
        change("block_table", (2, 2), -1),
        change("block_table", (2, 5), len(order)),
        # Of another block of threads.
        change("block_table", (5, 0), -1),
        change("block_table", (5, 2), len(order)),
        change("block_table", (0, 0), len(order) - 1),
        {**made, "block_table": table[:-1]},
    ]
    return harness.module_text(PAGED, page=0), batches


def kernels():
    """Name, text and inputs, for varlen-run with --device-checks."""
    yield "forward-pages", *paged(16)
    text = attn_gradients.module_text(GRADIENTS["gradients-causal"])
    text = text.replace("{mask =", f"{{varlen.schedule = {FIVE_PRODUCTS}, mask =", 1)
    yield "gradients-five", text, inputs(GRADIENTS["gradients-causal"], attn_gradients)
    for groups, kind in (
        (FORWARD, harness), (GRADIENTS, attn_gradients), (TANGENTS, attn_tangents),
        (SECOND, attn_jvp_gradients),
    ):  # fmt: skip
        for name, group in groups.items():
            text = kind.module_text(group)
            if name in SCHEDULES:
                schedule = f"varlen.schedule = #varlen.gpu_schedule<{SCHEDULES[name]}>"
                text = text.replace("{mask =", f"{{{schedule}, mask =", 1)
            yield name, text, inputs(group, kind)


# Warpgroups of a tile of 192 rows may be blocks apart there, with blocks of 128 keys: more
# blocks than a ring holds for rows of all warpgroups; warpgroups without a row; tiles of keys
# that no query sees, and queries that see no key.
HOPPER = (
    sequences((200, 1300), (70, 9), (0, 300), (500, 3)),
    sequences((1, 400), (9, 0), (300, 300)),
)


# Rings of three slots and one, tiles of two warpgroups of which most have one with rows.
ROLES = "warps = 8, block_m = 128, kv_block = 32, stages = 3, ctas = 1, producers = 4"
ROLES_BATCHES = (
    sequences((200, 200), (3, 3), (0, 0), (70, 9), (5, 150), (130, 40)),
    sequences((1, 33), (9, 0), (129, 129)),
)


# The same with tensor maps; and without wgmma, whose waits publish what threads have stored.
MAPS = f"{ROLES}, maps = 1"
MAPS_MMA = "warps = 2, block_m = 32, kv_block = 32, stages = 2, ctas = 1, producers = 2, maps = 1"

# The first item of a CTA is a whole tile as well.
MAPS_BATCHES = (*ROLES_BATCHES, sequences((128, 160), (64, 96)))


def hopper():
    """The same of kernels for sm_90a."""
    used = FORWARD["forward-causal"]
    for name, schedule, used_by in (
        ("hopper-roles", ROLES, ROLES_BATCHES), ("hopper-maps", MAPS, MAPS_BATCHES),
        ("hopper-maps-mma", MAPS_MMA, MAPS_BATCHES),
    ):  # fmt: skip
        text = harness.module_text(used)
        schedule = f"varlen.schedule = #varlen.gpu_schedule<{schedule}>"
        text = text.replace("{mask =", f"{{{schedule}, mask =", 1)
        batches = (dataclasses.replace(used, sequences=one) for one in used_by)
        yield name, text, map(harness.make_inputs, batches)
    for groups, kind, names in (
        (FORWARD, harness, ("causal", "full", "d128")),
        (GRADIENTS, attn_gradients, ("causal", "d128")),
    ):
        for name in names:
            of = "forward" if kind is harness else "gradients"
            group = groups[f"{of}-{name}"]
            batches = (dataclasses.replace(group, sequences=used) for used in HOPPER)
            yield f"hopper-{of}-{name}", kind.module_text(group), map(kind.make_inputs, batches)
