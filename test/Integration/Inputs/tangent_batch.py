"""A batch of random inputs and tangents, for tests of what reads tangents."""

import numpy as np
import varlen
from varlen import dtypes, reference
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

    def poison_first(self, name, values):
        """NaN in the rows of the first sequence, for `arguments`."""
        values[: (self.cu_q if name == "q" else self.cu_k)[1]] = np.nan
        return values

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
