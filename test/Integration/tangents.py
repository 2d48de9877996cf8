# RUN: %python %s

"""Tangents of attention in tiles, on a CPU: against those of the reference, and these against
differences in the longest float, for f64; conformance.py has the other types.

Whatever no sequence uses is NaN, in rows and in their tangents. Results have the bits of any
threads and of a sequence beside others, and no tangent reaches out and lse.
"""

import functools

import numpy as np
import varlen
from varlen import dtypes, reference, scores
from varlen.scores import CAPTURES

ROWS = ("q", "k", "v")
PER_SEQUENCE = ("seqused_q", "seqused_k", "q_offset")


class Batch:
    """Random inputs and tangents. Slots are rows of the packed tensors, of which `used`
    count; `ghosts` more rows and repeated ends follow."""

    def __init__(
        self, slots_q, slots_k, *, dtype="f64", heads=1, kv_heads=1, d=8, dv=None,
        window=(-1, -1), alignment="bottom_right", scale=None, sink=False, seqused_q=None,
        seqused_k=None, q_offset=None, ghosts=0, score=None, seed=0, size=1.0,
    ):  # fmt: skip
        rng = np.random.default_rng(seed)
        dv = d if dv is None else dv
        slots_q, slots_k = (list(slots) + [0] * ghosts for slots in (slots_q, slots_k))
        self.cu_q, self.cu_k = (
            np.cumsum([0, *slots]).astype("i4") for slots in (slots_q, slots_k)
        )
        tq, tk = self.cu_q[-1] + ghosts, self.cu_k[-1] + ghosts
        self.dtype, self.compute = dtype, "f64" if dtype == "f64" else "f32"
        self.score = score
        self.captures = list(score.captures) if score else []
        clauses = zip(PER_SEQUENCE, (seqused_q, seqused_k, q_offset))
        self.clauses = {
            name: np.array(list(values) + [0] * ghosts, "i4")
            for name, values in clauses if values is not None
        }  # fmt: skip
        shapes = {"q": (tq, heads, d), "k": (tk, kv_heads, d), "v": (tk, kv_heads, dv)}
        shapes |= {"sink": (heads,)} if sink else {}
        extents = {"heads": heads, "rows": tq, "kv_rows": tk, "entries": 300}
        for name in self.captures:
            shapes[name] = tuple(extents[x] for x in CAPTURES[score.captures[name]])

        def draw(name, shape):
            element = dtype if name in ROWS else self.compute
            return dtypes.narrow(size * rng.standard_normal(shape), element)

        self.values = {name: draw(name, shape) for name, shape in shapes.items()}
        self.tangents = {name: draw(name, shape) for name, shape in shapes.items()}
        self.semantics = {"window": window, "alignment": alignment, "scale": scale}
        self.options = {
            "dtype": dtype, "heads": heads, "kv_heads": kv_heads, "head_dim": d,
            "v_head_dim": dv, "sink": sink, "score": score,
            **{name: name in self.clauses for name in PER_SEQUENCE}, **self.semantics,
        }  # fmt: skip
        self.rows = {"q": np.zeros(tq, bool), "k": np.zeros(tk, bool)}
        per_sequence = (self.clauses.get(name) for name in PER_SEQUENCE)
        for q0, lq, k0, lk, _ in reference.sequences(self.cu_q, self.cu_k, *per_sequence):
            self.rows["q"][q0 : q0 + lq] = self.rows["k"][k0 : k0 + lk] = True

    def arguments(self, poison=lambda name, values: values):
        """What the functions take, with NaN in rows that nothing may read."""
        given = dict(self.clauses, cu_seqlens_q=self.cu_q, cu_seqlens_k=self.cu_k)
        for prefix, source in (("", self.values), ("t", self.tangents)):
            for name, values in source.items():
                if name in ROWS:
                    wide = dtypes.widen(values).copy()
                    wide[~self.rows["q" if name == "q" else "k"]] = np.nan
                    values = dtypes.narrow(poison(name, wide), self.dtype)
                given[prefix + name] = values
        return given

    def run(self, threads=2, given=None):
        given = self.arguments() if given is None else given
        return varlen.run(varlen.text.attn_jvp(**self.options), given, threads=threads)

    def attend(self, values):
        values = dict(values)
        rows = [values.pop(name) for name in ROWS]
        return reference.attention(
            *rows, self.cu_q, self.cu_k, sink=values.pop("sink", None), score=self.score,
            captures=list(values.values()), **self.clauses, **self.semantics,
        )  # fmt: skip

    def derive(self, how):
        """tout and tlse by one of the reference."""
        values, tangents = dict(self.values), dict(self.tangents)
        rows = [source.pop(name) for source in (tangents, values) for name in ROWS]
        return how(
            *rows, self.cu_q, self.cu_k, sink=values.pop("sink", None),
            tsink=tangents.pop("sink", None), score=self.score, captures=list(values.values()),
            tcaptures=list(tangents.values()), **self.clauses, **self.semantics,
        )  # fmt: skip

    def differences(self):
        """The derivatives of out and lse, by differences in the longest float."""
        values, tangents = (
            {name: dtypes.widen(x) for name, x in source.items()}
            for source in (self.values, self.tangents)
        )
        step = 2.0**-17
        # Bits of words of a generator are no numbers.
        for name in {"dropout_words"} & set(tangents):
            tangents[name] = 0 * tangents[name]

        def at(distance):
            return self.attend({x: values[x] + distance * tangents[x] for x in values})

        with np.errstate(invalid="ignore"):
            results = [
                (8 * (far1 - far0) - (far3 - far2)) / (12 * np.longdouble(step))
                for far0, far1, far2, far3 in zip(*map(at, (-step, step, -2 * step, 2 * step)))
            ]
        # -inf less -inf of a row that sees nothing.
        return [np.where(np.isnan(x), 0, x).astype("f8") for x in results]


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


def poison(name, values):
    """The rows of the first sequence."""
    values[: (batch.cu_q if name == "q" else batch.cu_k)[1]] = np.nan
    return values


# A sequence gets the same bits beside one that is all NaN, any threads the same, and tangents
# reach no result but tangents.
given, poisoned = batch.arguments(), batch.arguments(poison)
hidden = given | {x: np.full_like(given[x], np.nan) for x in ("tq", "tk", "tv")}
clean, beside, without = batch.run(threads=3, given=[given, poisoned, hidden])
assert all(np.array_equal(clean[name], whole[name]) for name in whole)
first = batch.cu_q[1]
for name in ("out", "tout"):
    assert np.array_equal(beside[name][first:], whole[name][first:])
for name in ("lse", "tlse"):
    assert np.array_equal(beside[name][:, first:], whole[name][:, first:])
assert all(np.array_equal(without[name], whole[name]) for name in ("out", "lse"))
