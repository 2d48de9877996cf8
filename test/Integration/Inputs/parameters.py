"""What FlashAttention's tests of variable-length attention vary.

The parameters are those of its tests `test_flash_attn_varlen_output` (version 2
and version 3), which run the backward too, and of the dense list of version 3. Their
soft caps and ALiBi are score regions here: version 2 caps at 50 with queries that are 50
times as large, biases with a slope for each sequence and head, and does both; version 3
caps at 15 with queries that are 15 / 4 times as large, and cuts keys into chunks.
A `qv` and chunks that are not causal are left
out. Sequences of a batch do not depend on each other, so one run takes the batches of
all lengths at once: a group.
"""

import dataclasses
import itertools
import random

import varlen

FULL = (-1, -1)
CAUSAL = (-1, 0)

SCORES = {
    score.name: score
    for score in (
        varlen.scores.softcap(50.0), varlen.scores.alibi(), varlen.scores.gains(),
        varlen.scores.query_gains(), varlen.scores.query_alibi(),
        varlen.scores.capped_alibi(5.0),
        varlen.scores.causal(), varlen.scores.sliding_window(40, 7),
        varlen.scores.dilated(3), varlen.scores.chunked(50), varlen.scores.prefix_lm(),
        varlen.scores.document(), varlen.scores.t5_bias(), varlen.scores.position_bias(),
        varlen.scores.tree(), varlen.scores.key_bias(), varlen.scores.key_padding(),
        varlen.scores.packed_documents(), varlen.scores.dropout(0.2),
    )
}  # fmt: skip
# Of FlashAttention's lists, beside the soft cap of version 2 and a slope for each
# sequence: both of these, and the soft cap of version 3.
LIST_SCORES = {
    "alibi of softcap": varlen.scores.compose(
        varlen.scores.softcap(50.0), varlen.scores.query_alibi()
    ),
    "softcap 15": varlen.scores.softcap(15.0),
}


@dataclasses.dataclass(frozen=True)
class Sequence:
    q_slot: int  # rows of the packed tensors that belong to the sequence
    k_slot: int
    q_used: int  # rows of them in use
    k_used: int
    pair: tuple  # the (sq, sk) of the list the sequence was drawn for


@dataclasses.dataclass(frozen=True)
class Group:
    suite: str
    dtype: str
    heads: int
    kv_heads: int
    d: int
    dv: int
    window: tuple | int  # (left, right), or the size of a chunk
    sequences: tuple
    seqused: bool = False
    q_offset: bool = False
    sink: bool = False
    top_left: bool = False
    static: bool = False  # static numbers of rows in the function's type
    index: str = "i32"
    scale: float | None = None
    past_q: int = 0  # rows past the last sequence
    past_k: int = 0
    score: str | None = None  # one of SCORES or LIST_SCORES
    q_factor: float = 1  # what queries, normal numbers, are multiplied by

    @property
    def tokens_q(self):
        return sum(s.q_slot for s in self.sequences) + self.past_q

    @property
    def tokens_k(self):
        return sum(s.k_slot for s in self.sequences) + self.past_k

    @property
    def label(self):
        extras = [
            name for name in ("seqused", "q_offset", "sink", "top_left", "static")
            if getattr(self, name)
        ]
        if self.index != "i32":
            extras.append(self.index)
        if self.scale is not None:
            extras.append(f"scale={self.scale}")
        if self.score is not None:
            extras.append(self.score)
        mask = f"chunk({self.window})"
        if isinstance(self.window, tuple):
            mask = f"window({self.window[0]},{self.window[1]})"
        return " ".join(
            [
                self.suite,
                self.dtype,
                f"h{self.heads}/{self.kv_heads}",
                f"d{self.d}" if self.d == self.dv else f"d{self.d}/{self.dv}",
                mask,
                *extras,
            ]
        )


HEADS = {"mha": (6, 6), "mqa": (6, 1), "gqa": (6, 2)}

FA2_PAIRS = [
    (1, 147), (113, 203), (128, 217), (113, 211), (108, 256), (256, 512),
    (512, 256), (1024, 1024), (1023, 1024), (1024, 1023), (2048, 2048),
]  # fmt: skip
FA2_HEAD_DIMS = [32, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256]

FA3_PAIRS = [
    (1, 1), (1, 3), (2, 1), (511, 1), (3, 513), (64, 128), (128, 128),
    (256, 256), (113, 203), (128, 217), (113, 211), (108, 256), (256, 512),
    (307, 256), (640, 128), (512, 256), (1024, 1024), (1023, 1024),
    (1024, 1023), (2048, 2048), (4096, 4096),
    # The dense list's own.
    (239, 1), (799, 3), (384, 256), (4224, 4224),
]  # fmt: skip
# (head_dim, head_dim of v); of version 3's choices of the latter, all.
FA3_HEAD_DIMS = [
    (64, 64), (64, 256), (64, 512), (96, 96), (128, 128), (192, 128),
    (192, 192), (256, 256),
]  # fmt: skip

DTYPES = ["f32", "bf16", "f16"]


def _length(rng, longest):
    return rng.randint(max(1, longest - 20), longest)


def _batch_size(pair, batch, longest):
    """How many sequences of a pair: one of the long ones, to save time."""
    if max(pair) > longest:
        return 0
    return 1 if max(pair) >= 1000 else batch


def _fa2_sequences(rng, longest):
    sequences = []
    for pair in FA2_PAIRS:
        for _ in range(_batch_size(pair, 4, longest)):
            q, k = _length(rng, pair[0]), _length(rng, pair[1])
            sequences.append(Sequence(q, k, q, k, pair))
    return sequences


def _fa3_sequences(rng, longest, unused):
    sequences = []
    for pair in FA3_PAIRS:
        batch = _batch_size(pair, 9, longest)
        for i in range(batch):
            q = _length(rng, pair[0])
            # Every fifth sequence and the last one have no keys.
            empty = batch > 2 and (i % 5 == 0 or i == batch - 1)
            k = 0 if empty else _length(rng, pair[1])
            # The slot is longer than what is used of it.
            q_slot = q + rng.randint(0, 20) if unused else q
            k_slot = k + rng.randint(0, 20) if unused else k
            sequences.append(Sequence(q_slot, k_slot, q, k, pair))
    return sequences


def _with_empty(rng, sequences, unused):
    """Empty sequences at the start, in the middle and at the end."""
    places = [0, len(sequences) // 2, len(sequences)]
    for place in reversed(places):
        for _ in range(rng.randint(1, 3)):
            slot = rng.randint(0, 3) if unused else 0
            sequences.insert(place, Sequence(slot, slot, 0, 0, (0, 0)))
    return tuple(sequences)


def _windows(rng):
    """Full, causal, a window of both sides, and one under the causal mask."""
    both = (rng.randint(0, 300), rng.randint(0, 300))
    return [FULL, CAUSAL, both, (rng.randint(0, 300), 0)]


def _with_score(group, number, scores):
    """The group with one of the scores, in turn."""
    return dataclasses.replace(group, score=scores[number % len(scores)])


def _scored(group):
    """The group as the lists have it with a soft cap, with ALiBi and with both: fewer heads
    beside a soft cap, and queries for which its tanh is far from linear."""
    yield dataclasses.replace(group, score="query_alibi")
    kv_heads = {6: 4, 2: 2, 1: 1}[group.kv_heads]
    capped = dataclasses.replace(group, heads=4, kv_heads=kv_heads, q_factor=50)
    for score in ("softcap", "alibi of softcap"):
        yield dataclasses.replace(capped, score=score)


def fa2_groups(longest=4224, dtypes=DTYPES, head_dims=FA2_HEAD_DIMS):
    for dtype in dtypes:
        for d in head_dims:
            for heads in HEADS.values():
                rng = random.Random(f"fa2 {dtype} {d} {heads}")
                for window in _windows(rng):
                    sequences = _with_empty(rng, _fa2_sequences(rng, longest), False)
                    group = Group(
                        "fa2", dtype, *heads, d, d, window, sequences,
                        static=rng.random() < 0.3,
                        past_q=rng.choice([0, 17]), past_k=rng.choice([0, 33]),
                    )  # fmt: skip
                    yield group
                    yield from _scored(group)


def fa3_groups(longest=4224, dtypes=DTYPES, head_dims=FA3_HEAD_DIMS):
    for dtype in dtypes:
        for d, dv in head_dims:
            for heads in HEADS.values():
                rng = random.Random(f"fa3 {dtype} {d} {dv} {heads}")
                for unused in [False, True]:
                    for window in [*_windows(rng), rng.randint(1, 600)]:
                        # The longest pairs in a sixth of the groups: they take
                        # as long as all the others.
                        cut = 4224 if rng.random() < 1 / 6 else 2048
                        sequences = _fa3_sequences(rng, min(longest, cut), unused)
                        sequences = _with_empty(rng, sequences, unused)
                        group = Group(
                            "fa3", dtype, *heads, d, dv, window, sequences,
                            seqused=unused, index=rng.choice(["i32", "i64"]),
                            past_q=rng.choice([0, 5]), past_k=rng.choice([0, 200]),
                        )  # fmt: skip
                        yield group
                        yield dataclasses.replace(group, score="softcap 15", q_factor=15 / 4)


def beyond_groups(dtypes=DTYPES):
    """What those lists leave out: sinks, top_left, scales, rows without keys, f64."""
    rng = random.Random("beyond")
    for dtype in [*dtypes, "f64"]:
        for window in [FULL, CAUSAL, (37, 5), (0, 0)]:
            for d, heads in [(64, (6, 2)), (48, (4, 4)), (128, (8, 1)), (20, (3, 1))]:
                for top_left in [False, True]:
                    unused = rng.random() < 0.5
                    sequences = _fa3_sequences(rng, 300, unused)
                    sequences += _fa2_sequences(rng, 300)
                    yield Group(
                        "beyond", dtype, *heads, d, d, window,
                        _with_empty(rng, sequences, unused), seqused=unused,
                        sink=rng.random() < 0.7, top_left=top_left,
                        static=rng.random() < 0.3, index=rng.choice(["i32", "i64"]),
                        scale=rng.choice([None, 0.01, 1.0]), past_q=3, past_k=9,
                    )  # fmt: skip


# The sizes of tiles of the GPU schedules, in queries and in keys.
TILES = [16, 32, 64, 128]
TILE_HEAD_DIMS = [
    (8, 8), (20, 20), (40, 40), (64, 64), (72, 72), (96, 96), (128, 128),
    (160, 160), (192, 192), (256, 256), (64, 128), (128, 64), (40, 72), (192, 128),
    (17, 33),
]  # fmt: skip
TILE_WINDOWS = [FULL, CAUSAL, (37, 5), (0, 0), (16, -1), (-1, 20), (64, 0)]


def _around(rng, unit):
    """Lengths around all sizes of tiles, in units, out of order."""
    lengths = {1, 2}
    for tile in [*TILES, 192]:
        lengths.update(max(1, tile // unit + i) for i in (-1, 0, 1))
    lengths = sorted(lengths)
    rng.shuffle(lengths)
    return lengths


def tile_groups(dtypes=DTYPES):
    """Sequences that end just before, at and just after the ends of tiles."""
    for dtype in dtypes:
        for d, dv in TILE_HEAD_DIMS:
            for window in TILE_WINDOWS:
                rng = random.Random(f"tile {dtype} {d} {dv} {window}")
                heads = rng.choice([(2, 2), (6, 2), (4, 1), (3, 3), (8, 2), (5, 1)])
                unused = rng.random() < 0.4
                queries = _around(rng, rng.choice([1, heads[0] // heads[1]]))
                keys = _around(rng, 1)
                sequences = []
                for i in range(max(len(queries), len(keys))):
                    q, k = queries[i % len(queries)], keys[i % len(keys)]
                    # Equal lengths, longer queries, longer keys, one query, none.
                    q, k = [(q, k), (k, k), (k, q), (q, k), (1, k), (q, 0)][i % 6]
                    spare = rng.randint(0, 3) if unused else 0
                    pair = (q, k)
                    sequences.append(Sequence(q + spare, k + 2 * spare, q, k, pair))
                sequences = _with_empty(rng, sequences, unused)
                # cu_seqlens of a fixed size are full up with empty sequences.
                ghosts = rng.choice([0, 0, 128 - len(sequences), 110])
                sequences += (Sequence(0, 0, 0, 0, (0, 0)),) * ghosts
                yield Group(
                    "tile", dtype, *heads, d, dv, window, sequences, seqused=unused,
                    q_offset=rng.random() < 0.3, sink=rng.random() < 0.4,
                    top_left=rng.random() < 0.3, static=rng.random() < 0.3,
                    index=rng.choice(["i32", "i64"]),
                    scale=rng.choice([None, None, 0.5]),
                    past_q=rng.choice([0, 1, 130]), past_k=rng.choice([0, 70]),
                )  # fmt: skip


def score_groups(dtypes=(*DTYPES, "f64")):
    """Every score on every kind of mask: those of tiles, fewer head sizes."""
    groups = [group for group in tile_groups(dtypes) if group.d in (8, 64, 96, 128)]
    for number, group in enumerate(groups):
        yield _with_score(group, number + number // len(SCORES), list(SCORES))


def long_groups(dtypes=DTYPES):
    """Few keys and thousands of queries, and few queries and thousands of keys: how sums
    over so many are taken shows in f32. Where queries are large, few keys have most of
    the weight, and what the others add is small beside it."""
    pairs = [(8000, 17), (3, 5), (17, 8000)]
    sequences = tuple(Sequence(*pair, *pair, pair) for pair in pairs)
    for dtype in dtypes:
        for d, heads, window in [(64, (6, 1), FULL), (32, (2, 2), (-1, 8000))]:
            group = Group("long", dtype, *heads, d, d, window, sequences)
            yield group
            yield dataclasses.replace(group, suite="peaked", q_factor=4)


def all_groups(device="cpu", longest=4224):
    """Everything, but of FlashAttention's lists no sequence that is longer; in the executor, which
    takes its time for every query and key, a quarter of the longer sequences and one in
    twenty of the longest."""

    def share(sequence):
        pairs = sequence.q_used * sequence.k_used
        return 1 if pairs < 10000 else 0.25 if pairs < 1000000 else 0.05

    lists = [
        fa2_groups(longest), fa3_groups(longest), beyond_groups(), tile_groups(), score_groups()
    ]  # fmt: skip
    for group in itertools.chain(*lists):
        if device != "cpu":
            rng = random.Random(group.label)
            kept = tuple(s for s in group.sequences if rng.random() < share(s))
            group = dataclasses.replace(group, sequences=kept)
        yield group
    yield from long_groups()


def has_kernel(group, device, tangents=False):
    """Whether the device has code for the group's types and head sizes, or for its tangents."""
    if device == "cpu":
        return True
    most = 256
    if tangents:
        most = 48 if group.dtype == "f32" else 128
    return group.dtype != "f64" and max(group.d, group.dv) <= most


def has_gradients(group):
    """Whether the lists take the gradients of a group: not of wide values."""
    return group.dv <= 256


def single_groups():
    """One pair of the lists alone in a batch, as FlashAttention's tests have it."""
    rng = random.Random("single")
    for pair in dict.fromkeys(FA2_PAIRS + FA3_PAIRS):
        if max(pair) > 700:
            continue
        d = rng.choice([32, 59, 64, 96, 128])
        window = rng.choice([FULL, CAUSAL, (rng.randint(0, pair[1]), 0)])
        sequence = Sequence(*pair, *pair, pair)
        yield Group(
            "single", rng.choice(DTYPES), *rng.choice(list(HEADS.values())), d, d,
            window, (sequence,) * rng.randint(1, 2), static=rng.random() < 0.5,
        )  # fmt: skip


def is_narrow(group):
    """Whether elements have 16 bits."""
    return group.dtype in ("bf16", "f16")


def mask_kind(group):
    """Which sides of the diagonal the mask bounds, and where it starts."""
    if isinstance(group.window, int):
        return "chunk", group.top_left
    return *(min(side, 1) for side in group.window), group.top_left


def _cells(group):
    """What a sample has of a group: every pair of these that occurs in the lists. All but
    conversions of elements is compiled alike for both 16-bit types, and head sizes for both
    wide ones."""
    yield from _cells_of_types(group)
    yield "score", is_narrow(group), group.score
    yield "sizes", is_narrow(group), group.d, group.dv


def _gradient_cells(group):
    """The same with each score and each head size for one width of elements: gradients read
    rows as the forward does, whose sample has every pair."""
    yield from _cells_of_types(group)
    yield "score", group.score
    yield "sizes", group.d, group.dv


def _cells_of_types(group):
    width = "16-bit" if is_narrow(group) else group.dtype
    heads = "mha" if group.heads == group.kv_heads else "mqa" if group.kv_heads == 1 else "gqa"
    by_type = {
        "suite": group.suite, "mask": mask_kind(group), "heads": heads,
        "scored": bool(group.score), "seqused": group.seqused, "q_offset": group.q_offset,
        "sink": group.sink, "static": group.static, "index": group.index,
        "scale": group.scale,
    }  # fmt: skip
    yield from ((width, name, value) for name, value in by_type.items())
    yield group.dtype, group.suite


def _take(rng, groups, every=3, cells_of=_cells):
    """Groups that together have all cells that the given ones have, each with its sequences
    of one out of `every`."""
    groups = list(groups)
    rng.shuffle(groups)
    cells = [set(cells_of(group)) for group in groups]
    missing = set().union(*cells)
    while missing:
        best = max(range(len(groups)), key=lambda i: len(cells[i] & missing))
        missing -= cells[best]
        step = 2 * every if len(groups[best].sequences) > 100 else every
        yield dataclasses.replace(groups[best], sequences=groups[best].sequences[::step])


def _some_long_groups():
    """Both kinds of each type, f32 with both masks."""
    for number, group in enumerate(long_groups()):
        if group.dtype == "f32" or number % 4 in (0, 3):
            yield group


def _sample(rng, longest, accept=lambda group: True, cells_of=_cells):
    lists = [
        tile_groups(), score_groups(), beyond_groups(), fa2_groups(longest), fa3_groups(longest)
    ]  # fmt: skip
    yield from _take(rng, filter(accept, itertools.chain(*lists)), cells_of=cells_of)
    yield from itertools.islice(single_groups(), 0, None, 3)
    yield from _some_long_groups()


def sample_gradient_groups():
    """The same for gradients, of which a golden one takes longer (see _gradient_cells)."""
    return _sample(random.Random("gradients"), 260, has_gradients, _gradient_cells)


def sample_tangent_groups(device="cpu"):
    """A smaller sample, as tangents have the tiles, masks and scores of the forward."""
    lists = [fa2_groups(150), fa3_groups(150), beyond_groups(), tile_groups(), score_groups()]
    groups = (group for group in itertools.chain(*lists) if has_kernel(group, device, True))
    yield from itertools.islice(_take(random.Random("tangents"), groups, 6), 10)
    # Queries that see one key, where out's tangent cancels all but tv.
    for dtype in ("bf16", "f16"):
        one = next(group for group in tile_groups([dtype]) if group.window == (0, 0))
        yield dataclasses.replace(one, sequences=one.sequences[::6][:6])


def sample_groups(device="cpu"):
    """A sample that a test can afford: every value of every parameter occurs, with every
    type (see _cells)."""
    rng = random.Random("sample")
    if device == "cpu":
        yield from _sample(rng, 520)
        # One with the long ones.
        long = fa2_groups(dtypes=["f32"], head_dims=[64])
        yield next(group for group in long if group.score == "alibi of softcap")
        return
    # The executor is a thousand times slower than code for the CPU, and six times that for
    # f32, whose kernels take long to compile, too.
    narrow = ["bf16", "f16"]
    lists = [
        tile_groups(narrow), score_groups(narrow), beyond_groups(narrow),
        fa2_groups(220, narrow), fa3_groups(220, narrow),
    ]  # fmt: skip
    groups = [group for group in itertools.chain(*lists) if has_kernel(group, device)]
    yield from _take(rng, groups)
    for some in (tile_groups(["f32"]), score_groups(["f32"])):
        some = [group for group in some if group.d == 64]
        yield dataclasses.replace(some[0], sequences=some[0].sequences[::3])
