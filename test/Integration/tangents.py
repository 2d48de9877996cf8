# RUN: %python %s

"""Tangents of attention in tiles, on a CPU: against those of the reference, and these against
differences in the longest float, for f64; conformance.py has the other types.

Whatever no sequence uses is NaN, in rows and in their tangents. Results have the bits of any
threads and of a sequence beside others, and no tangent reaches out and lse.
"""

import functools
import pathlib
import sys

import numpy as np
from varlen import reference, scores

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))
from tangent_batch import Batch


def check_exact(label, batch):
    """In f64."""
    results = batch.run()
    golden = batch.derive(reference.tangents)
    for name, wanted, slope in zip(("tout", "tlse"), golden, batch.differences()):
        largest = max(1, np.abs(wanted).max(initial=0))
        error = np.abs(results[name] - wanted).max(initial=0)
        assert error <= 1e-12 * largest, f"{label}: {name} is off by {error}"
        error = np.abs(slope - wanted).max(initial=0)
        assert error <= 1e-9 * largest, f"{label}: the reference's {name} is off by {error}"


# -- f64, each clause and score -----------------------------------------------

BATCHES = {
    "causal, Tq > Tk": Batch([50, 1], [30, 1], window=(-1, 0)),
    "top left": Batch([40, 2], [20, 50], window=(7, 3), alignment="top_left", heads=2, scale=0.5),
    "chunks, groups, Dv > D": Batch([30, 2], [40, 33], window=16, heads=6, kv_heads=2, d=2, dv=9),
    "everything": Batch(
        [40, 0, 33], [50, 2, 42], heads=4, kv_heads=2, d=12, dv=7, window=(20, 1), sink=True,
        seqused_q=[33, 0, 33], seqused_k=[44, 2, 42], q_offset=[1, 0, -1], ghosts=2, scale=0.7,
    ),
    "no sequences": Batch([], [], ghosts=3, sink=True),
    "one query, no keys": Batch([1, 1, 2], [300, 9, 0], heads=8, sink=True, d=17, dv=1),
}  # fmt: skip
SCORES = (
    (scores.gains(), scores.softcap(2.0), scores.key_bias(), scores.dropout(0.3)),
    (scores.query_gains(), scores.position_bias(), scores.dilated(3)), (scores.t5_bias(),),
)  # fmt: skip
for parts in SCORES:
    score = functools.reduce(scores.compose, parts)
    more = {"heads": 4, "kv_heads": 2, "window": (-1, 0), "sink": True, "ghosts": 1}
    BATCHES[score.name] = Batch([37, 1, 25], [37, 40, 21], score=score, d=10, **more)
for label, batch in BATCHES.items():
    check_exact(label, batch)

# A sink of -inf adds nothing, whatever its tangent is.
batch = Batch([9], [9], heads=2, kv_heads=2, sink=True)
batch.values["sink"][1], batch.tangents["sink"][1] = -np.inf, np.nan
check = batch.run()
assert np.isfinite(check["tout"]).all() and np.isfinite(check["tlse"]).all()

# -- Isolation ----------------------------------------------------------------

batch = Batch([300, 1, 50], [1500, 700, 60], dtype="f32", heads=2, window=(-1, 0), ghosts=1)
whole = batch.run(threads=1)

# A sequence gets the same bits beside one that is all NaN, any threads the same, and tangents
# reach no result but tangents.
given, poisoned = batch.arguments(), batch.arguments(batch.poison_first)
hidden = given | {x: np.full_like(given[x], np.nan) for x in ("tq", "tk", "tv")}
clean, beside, without = batch.run(threads=3, given=[given, poisoned, hidden])
assert all(np.array_equal(clean[name], whole[name]) for name in whole)
first = batch.cu_q[1]
for name in ("out", "tout"):
    assert np.array_equal(beside[name][first:], whole[name][first:])
for name in ("lse", "tlse"):
    assert np.array_equal(beside[name][:, first:], whole[name][:, first:])
assert all(np.array_equal(without[name], whole[name]) for name in ("out", "lse"))
