# RUN: %python %s
"""Plans of context parallelism: each row and each visible pair has one owner, chunks as sequences
of their own see what their rows see, and work is shared out, for any lengths and masks."""

import itertools
import pickle
import sys

import hypothesis
import numpy as np
from checks import raises
from hypothesis import strategies as st

import varlen
from varlen import context_parallel, scores
from varlen import text as text_of
from varlen._score import CAPTURES, count_from, for_each_query
from varlen.reference import diagonal, visible

lengths = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6
)  # fmt: skip
windows = st.one_of(
    st.tuples(st.integers(-1, 30), st.integers(-1, 30)), st.integers(1, 20)
)  # fmt: skip


@st.composite
def batches(draw):
    """cu_seqlens of both sides, q_offset and options of a plan."""
    some = draw(lengths)
    if draw(st.booleans()):
        some = [(queries, queries) for queries, _ in some]
    window = draw(windows)
    options = {"window": window} if isinstance(window, tuple) else {"chunk": window}
    options |= {
        "ranks": draw(st.integers(1, 7)),
        "alignment": draw(st.sampled_from(("bottom_right", "top_left"))),
        "layout": draw(st.sampled_from(context_parallel.LAYOUTS)),
        "multiple": draw(st.sampled_from((1, 1, 3, 8))),
        "row_cost": draw(st.sampled_from((0.0, 2.5))),
        "slack": draw(st.sampled_from((0.0, 0.03))),
    }
    offsets = st.lists(st.integers(-30, 30), min_size=len(some), max_size=len(some))
    cu = [[0, *itertools.accumulate(n[side] for n in some)] for side in range(2)]
    return cu, draw(st.one_of(st.none(), offsets)), options


def mask_of(plan, sequence, queries, keys, offset):
    window = plan.window if plan.chunk is None else plan.chunk
    return visible(queries, keys, window, plan.alignment, offset)


def check_owners(plan):
    for cu, rows in ((plan.cu_seqlens_q, plan.rows), (plan.cu_seqlens_k, plan.key_rows)):
        owned = [row for rank in range(plan.ranks) for part in rows(rank) for row in part]
        assert sorted(owned) == list(range(cu[-1]))
        for rank in range(plan.ranks):
            parts = [part for part in rows(rank) if part]
            assert all(a.stop <= b.start for a, b in itertools.pairwise(parts))


def check_chunks(plan):
    """Keys and queries that a chunk visits, its pairs, and its mask as a sequence of its own."""
    for rank, chunks in enumerate(plan.chunks):
        for c in chunks:
            queries, keys = (
                cu[c.sequence + 1] - cu[c.sequence]
                for cu in (plan.cu_seqlens_q, plan.cu_seqlens_k)
            )
            offset = plan.q_offset[c.sequence] if plan.q_offset else 0
            whole = mask_of(plan, c.sequence, queries, keys, offset)
            rows = whole[c.begin : c.end]
            assert c.pairs == rows.sum()
            assert not rows[:, : c.key_begin].any() and not rows[:, c.key_end :].any()
            if plan.chunk is None or plan.chunk and c.key_begin % plan.chunk == 0:
                own = mask_of(
                    plan, c.sequence, c.end - c.begin, c.key_end - c.key_begin, c.q_offset
                )
                assert np.array_equal(own, rows[:, c.key_begin : c.key_end])
            seen = whole[:, c.own_key_begin : c.own_key_end]
            assert not seen[: c.query_begin].any() and not seen[c.query_end :].any()
            assert plan.shift(c.sequence) == diagonal(queries, keys, plan.alignment, offset)
            # No more than needed, so that nothing else is sent.
            if rows.any():
                assert rows[:, c.key_begin].any() and rows[:, c.key_end - 1].any()
            if seen.any():
                assert seen[c.query_begin].any() and seen[c.query_end - 1].any()


def check_messages(plan):
    """What a rank gets from all, itself among them, is what it needs, each row once."""
    for needed, sent in (
        (plan.needed_keys, plan.sent_keys), (plan.needed_queries, plan.sent_queries)
    ):  # fmt: skip
        for rank in range(plan.ranks):
            got = [row for sender in range(plan.ranks) for row in sent(sender, rank)]
            assert sum(r.end - r.begin for r in got) == sum(
                r.end - r.begin for r in needed(rank)
            )
            assert context_parallel.merge(got) == needed(rank)


def check_balance(plan, multiple, row_cost, slack, layout):
    chunks = [c for chunks in plan.chunks for c in chunks]
    work = [sum(c.pairs + row_cost * (c.end - c.begin) for c in x) for x in plan.chunks]
    share = sum(work) / plan.ranks
    if not share:
        return
    unit = 0
    for s in {c.sequence for c in chunks}:
        queries, keys = (cu[s + 1] - cu[s] for cu in (plan.cu_seqlens_q, plan.cu_seqlens_k))
        offset = plan.q_offset[s] if plan.q_offset else 0
        of_rows = mask_of(plan, s, queries, keys, offset).sum(1) + row_cost
        unit = max(unit, *np.add.reduceat(of_rows, np.arange(0, queries, multiple))) if queries else unit
    slack = slack if layout == "documents" else 0
    assert max(work) <= share * (1 + slack) + unit + 1e-6, (work, share, unit)


@hypothesis.settings(max_examples=150, deadline=None, derandomize=True, database=None)
@hypothesis.given(batches())
def check(batch):
    (cu_q, cu_k), offset, options = batch
    plan = context_parallel.plan(cu_q, cu_k, q_offset=offset, **options)
    assert plan.ranks == options["ranks"]
    check_owners(plan)
    check_chunks(plan)
    check_messages(plan)
    check_balance(plan, *(options[x] for x in ("multiple", "row_cost", "slack", "layout")))
    begins = {c.begin % options["multiple"] for chunks in plan.chunks for c in chunks}
    assert begins <= {0}
    same = context_parallel.plan(np.array(cu_q), np.array(cu_k), q_offset=offset, **options)
    assert same.signature() == plan.signature()


    other = plan.with_mask(window=(3, 1))
    assert [plan.rows(r) for r in range(plan.ranks)] == [other.rows(r) for r in range(plan.ranks)]
    check_chunks(other)
    check_messages(other)
    assert pickle.loads(pickle.dumps(plan)).with_mask(window=(3, 1)).signature() == other.signature()


check()

# Within 5 % of the mean on long batches, whatever the lengths.
rng = np.random.default_rng(0)
for layout, ranks in itertools.product(context_parallel.LAYOUTS, (2, 3, 8, 16)):
    for window in ((-1, -1), (-1, 0), (100, 0), (30, 30)):
        sizes = [*rng.integers(1, 400, 30), 3001]
        plan = context_parallel.plan([0, *np.cumsum(sizes).tolist()], ranks=ranks, window=window, layout=layout)
        assert plan.imbalance() < 1.05, (layout, ranks, window, plan.imbalance())

# Layouts: whole documents stay whole; a long one is divided from both ends; rows in a row.
plan = context_parallel.plan([0, 50, 100, 150, 200], ranks=2, is_causal=True)
assert plan.num_sent_keys(0) == plan.num_sent_keys(1) == 0
plan = context_parallel.plan([0, 80], ranks=2, is_causal=True, layout="zigzag")
assert [[c[1:3] for c in chunks] for chunks in plan.chunks] == [[(0, 20), (60, 80)], [(20, 60)]]
assert plan.local(0) == ([0, 20, 40], [0, 20, 100], [0, 0])
assert plan.num_sent_keys(0) == 20 and plan.num_sent_keys(1) == 40
plan = context_parallel.plan([0, 80], ranks=4, is_causal=True, layout="contiguous")
assert [len(x) for x in plan.chunks] == [1] * 4 and plan.imbalance() < 1.05
# A window sends to neighbours only.
plan = context_parallel.plan([0, 400], ranks=4, window=(10, 0), layout="contiguous")
assert [len(plan.sent_keys(0, rank)) for rank in range(4)] == [1, 1, 0, 0]
assert plan.num_sent_keys(0) == 10 and plan.num_sent_keys(3) == 0
# Fewer rows than ranks, none, and keys that no query sees.
plan = context_parallel.plan([0, 2], ranks=4, layout="contiguous")
assert sum(map(plan.num_rows, range(4))) == 2
assert context_parallel.plan([0], ranks=3).chunks == ((), (), ())
plan = context_parallel.plan([0, 0, 3], [0, 5, 5], ranks=2)
assert [plan.num_rows(r) + plan.num_key_rows(r) for r in range(2)] in ([5, 3], [7, 1], [6, 2])

make = context_parallel.plan
for error, words, call in (
    (ValueError, "cu_seqlens_q[0] = 1: cu_seqlens must start at 0", lambda: make([1, 2], ranks=2)),
    (
        ValueError, "cu_seqlens_k[2] = 4 is smaller than cu_seqlens_k[1] = 5",
        lambda: make([0, 1, 2], [0, 5, 4], ranks=2),
    ),
    (ValueError, "sequence 0 of cu_seqlens_q has 4294967296 rows", lambda: make([0, 2**32], ranks=2)),
    (ValueError, "number of entries, at least one, got 2 and 3", lambda: make([0, 1], [0, 1, 2], ranks=2)),
    (ValueError, "at least one, got 0 and 0", lambda: make([], ranks=2)),
    (ValueError, "q_offset: expected one entry", lambda: make([0, 1], ranks=2, q_offset=[1, 2])),
    (ValueError, "number of ranks from 1 to 1048576, got 0", lambda: make([0, 1], ranks=0)),
    (ValueError, "multiple: expected 1 or more rows, got 0", lambda: make([0, 1], ranks=1, multiple=0)),
    (ValueError, "expected a slack that is finite", lambda: make([0, 1], ranks=1, slack=float("nan"))),
    (ValueError, "expected a row_cost that is finite", lambda: make([0, 1], ranks=1, row_cost=-1.0)),
    (ValueError, "layout: expected one of documents", lambda: make([0, 1], ranks=1, layout="ring")),
    (ValueError, "expected integers of 64 bits", lambda: make([0, 2**70], ranks=1)),
    (TypeError, "cu_seqlens_q: expected integers", lambda: make([0, 1.5], ranks=1)),
):  # fmt: skip
    raises(error, words, call)


def check_texts():
    """Scores of parts of the keys, and with a number for each query in place of each head's."""
    mine = """captures(%key_begins: tensor<?xf32>, %rows: tensor<?x?x?xf32>)
      score (%s: f32, %i: i32, %of_all: i32, %key_begins: f32, %rows: !varlen.table<f32>) {
        %key_begins_ = arith.constant 1.0 : f32
        %of_all_x = arith.addi %i, %of_all : i32
        %x = varlen.lookup %rows[%of_all_x] : !varlen.table<f32>
        varlen.yield %x : f32
      }"""
    for text in (mine, scores.softcap(3.0).written("f32"), scores.alibi().written("f64")):
        captures = scores.parse(text).captures
        counted = scores.parse(count_from(text)).captures
        assert [*counted.values()] == [*captures.values(), "query"] and captures.items() <= counted.items()
        queries = scores.parse(for_each_query(text)).captures
        assert queries == {name: "query" if of == "head" else of for name, of in captures.items()}
        # What it is made of compiles, with all names in it new.
        for made in (count_from(text), for_each_query(text)):
            captures = scores.parse(made).captures
            kind = "f64" if "f64" in made else "f32"
            types = {"q": f"tensor<?x2x16x{kind}>", "k": f"tensor<?x2x16x{kind}>", "v": f"tensor<?x2x16x{kind}>"}
            types |= {"cu_seqlens_q": "tensor<?xi32>", "cu_seqlens_k": "tensor<?xi32>"}
            types |= {name: f"tensor<{'2x' + '?x' * (len(CAPTURES[of]) - 1)}{kind}>" for name, of in captures.items()}
            results = {"out": types["q"], "lse": f"tensor<2x?x{kind}>"}
            varlen.compile(text_of.attn_function(types, results, score=scores.parse(made)))


check_texts()
assert "torch" not in sys.modules
