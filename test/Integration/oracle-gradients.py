"""varlen-decompose-attn on gradients: closed forms, finite differences of the
reference in f64, and the tolerance rule for the other types.

Whatever no sequence uses is NaN, in every operand: a result that it reaches is
wrong. Gradients that have to be zero have to be exactly zero.
"""

# RUN: %around-code %python %s

import itertools
import math

import numpy as np
import varlen
from varlen import dtypes, reference, tolerance

NAMES = ("dq", "dk", "dv", "dsink")


def run(options, inputs):
    module = varlen.text.attn_grad(**options)
    # Before it gets a schedule.
    pipeline = "builtin.module(varlen-decompose-attn,varlen-to-cpu)"
    results = varlen.run(module, inputs, threads=1, pipeline=pipeline)
    return [results[name] for name in NAMES if name in results]


# -- Closed forms -------------------------------------------------------------

ONE = {"dtype": "f64", "heads": 1, "head_dim": 1, "scale": 1}


def single(dout, q, k, v, out, lse, **more):
    """One query and one key of one element."""
    cube = np.ones((1, 1, 1))
    return {
        "dout": dout * cube, "q": q * cube, "k": k * cube, "v": v * cube,
        "out": out * cube, "lse": np.full((1, 1), float(lse)),
        "cu_seqlens_q": np.array([0, 1], np.int32), "cu_seqlens_k": np.array([0, 1], np.int32),
        **more,
    }  # fmt: skip


# A sink of 0 beside a score of 1: out = 2 s with s = sigmoid(1).
s = 1 / (1 + math.exp(-1))
slope = 2 * s * (1 - s)
assert abs(slope - 0.393224) < 1e-6
inputs = single(1, 1, 1, 2, 2 * s, math.log(1 + math.e), sink=np.zeros(1))
dq, dk, dv, dsink = run({**ONE, "sink": True}, inputs)
for got, wanted in ((dq, slope), (dk, slope), (dv, s), (dsink, -slope)):
    assert abs(got.item() - wanted) < 1e-14, (got, wanted)
# The same gate outside of the op: out * sigmoid(lse), which lse's cotangent sees.
inputs = single(s, 1, 1, 2, 2, 1, dlse=np.full((1, 1), slope))
dq, dk, dv = run({**ONE, "dlse": True}, inputs)
for got, wanted in ((dq, slope), (dk, slope), (dv, s)):
    assert abs(got.item() - wanted) < 1e-14, (got, wanted)
# Without it a single key has no gradient but that of its value.
dq, dk, dv = run(ONE, single(1, 1, 1, 2, 2, 1))
assert dq == 0 and dk == 0 and dv == 1


# -- Batches ------------------------------------------------------------------


class Batch:
    """Random inputs. Slots are rows of the packed tensors, of which `used` count;
    `ghosts` more rows and repeated ends follow."""

    def __init__(
        self, slots_q, slots_k, *, dtype="f64", heads=1, kv_heads=1, d=3, dv=None,
        window=(-1, -1), alignment="bottom_right", scale=None, sink=False, dlse=False,
        used_q=None, used_k=None, offset=None, ghosts=0, index="i32", seed=0,
    ):  # fmt: skip
        dv = d if dv is None else dv
        rng = np.random.default_rng(seed)
        compute = "f64" if dtype == "f64" else "f32"
        slots_q, slots_k = (list(slots) + [0] * ghosts for slots in (slots_q, slots_k))
        integer = dtypes.by_name[index]
        self.cu_q, self.cu_k = (
            np.cumsum([0, *slots]).astype(integer) for slots in (slots_q, slots_k)
        )
        tq, tk = self.cu_q[-1] + ghosts, self.cu_k[-1] + ghosts

        def normal(*shape, element=dtype):
            return dtypes.narrow(rng.standard_normal(shape), element)

        per_sequence = {"seqused_q": used_q, "seqused_k": used_k, "q_offset": offset}
        self.clauses = {
            name: np.array(list(values) + [0] * ghosts, integer)
            for name, values in per_sequence.items()
            if values is not None
        }
        if sink:
            self.clauses["sink"] = normal(heads, element=compute)
        self.tensors = {
            "q": normal(tq, heads, d), "k": normal(tk, kv_heads, d), "v": normal(tk, kv_heads, dv)
        }  # fmt: skip
        self.dout = normal(tq, heads, dv)
        self.dlse = normal(heads, tq, element=compute) if dlse else None
        self.semantics = {"window": window, "alignment": alignment, "scale": scale}
        self.options = {
            "dtype": dtype, "heads": heads, "kv_heads": kv_heads, "head_dim": d,
            "v_head_dim": dv, "sink": sink, "dlse": dlse, "index": index,
            **{name: name in self.clauses for name in per_sequence}, **self.semantics,
        }  # fmt: skip
        self.compute = compute
        batch = reference.sequences(
            self.cu_q, self.cu_k, *(self.clauses.get(name) for name in per_sequence)
        )
        # Which rows belong to a sequence, and which have anything visible.
        self.rows = {name: np.zeros(n, bool) for name, n in (("q", tq), ("k", tk))}
        self.seen = {name: np.zeros(n, bool) for name, n in (("q", tq), ("k", tk))}
        for q0, lq, k0, lk, shift in batch:
            seen = reference.visible(lq, lk, window, alignment, shift)
            self.rows["q"][q0 : q0 + lq] = self.rows["k"][k0 : k0 + lk] = True
            self.seen["q"][q0 : q0 + lq] = seen.any(axis=1)
            self.seen["k"][k0 : k0 + lk] = seen.any(axis=0)

    def attention(self, **changed):
        return reference.attention(
            **{**self.tensors, **changed.pop("tensors", {})}, cu_q=self.cu_q, cu_k=self.cu_k,
            **{**self.clauses, **changed}, **self.semantics,
        )  # fmt: skip

    def gradients(self, how):
        return how(
            self.dout, *self.tensors.values(), self.cu_q, self.cu_k, dlse=self.dlse,
            **self.clauses, **self.semantics,
        )  # fmt: skip

    def inputs(self):
        """What the function takes, with NaN wherever nothing may be read."""
        out, lse = self.attention()
        tensors = {"dout": self.dout, **self.tensors, "out": out, "lse": lse.T}
        if self.dlse is not None:
            tensors["dlse"] = self.dlse.T
        inputs = {}
        for name, values in tensors.items():
            values = dtypes.widen(values).copy()
            values[~self.rows["k" if name in "kv" else "q"]] = np.nan
            if name == "dlse":
                # What comes back through an lse of -inf may be anything.
                values[np.isneginf(np.asarray(lse.T, np.float64))] = np.nan
            per_row = name in ("lse", "dlse")
            element = self.compute if per_row else self.options["dtype"]
            inputs[name] = dtypes.narrow(values.T if per_row else values, element)
        return {
            **inputs, "cu_seqlens_q": self.cu_q, "cu_seqlens_k": self.cu_k, **self.clauses
        }  # fmt: skip

    def check_zeros(self, results):
        dq, dk, dv = (dtypes.widen(result) for result in results[:3])
        assert (dq[~self.seen["q"]] == 0).all(), "dq of a row without a key"
        for name, gradient in (("dk", dk), ("dv", dv)):
            assert (gradient[~self.seen["k"]] == 0).all(), f"{name} of a row without a query"


def finite_differences(batch):
    """Of sum(dout * out) + sum(dlse * lse), by every element of every input."""

    def loss(**changed):
        out, lse = batch.attention(**changed)
        total = (batch.dout * out).sum()
        if batch.dlse is not None:
            total += np.where(np.isneginf(lse), 0, batch.dlse * np.where(np.isneginf(lse), 0, lse)).sum()
        return total

    def slopes(values, evaluate):
        slopes = np.zeros(values.shape)
        for at in np.ndindex(values.shape):
            up, down = values.copy(), values.copy()
            up[at] += 1e-5
            down[at] -= 1e-5
            step = np.longdouble(up[at]) - np.longdouble(down[at])
            slopes[at] = (evaluate(up) - evaluate(down)) / step
        return slopes

    results = [
        slopes(values, lambda x, name=name: loss(tensors={name: x}))
        for name, values in batch.tensors.items()
    ]
    if "sink" in batch.clauses:
        results.append(slopes(batch.clauses["sink"], lambda x: loss(sink=x)))
    return results


# -- Finite differences -------------------------------------------------------

GRADCHECK = {
    "full": Batch([3, 0, 4], [2, 0, 5], d=2),
    "causal, Tq > Tk": Batch([5, 1], [3, 1], window=(-1, 0), dlse=True),
    "causal, Tq < Tk": Batch([2, 0, 3], [4, 1, 5], window=(-1, 0), ghosts=2, dlse=True),
    "top left": Batch([4, 2], [2, 5], window=(-1, 0), alignment="top_left", scale=0.5),
    "window": Batch([5, 3], [5, 4], window=(1, 1), heads=2, kv_heads=1, dlse=True),
    "window to one side": Batch([4], [5], window=(2, -1), alignment="top_left"),
    "groups, Dv > D": Batch([3, 2], [3, 3], heads=6, kv_heads=2, d=2, dv=4, dlse=True),
    "groups, Dv < D, sinks": Batch(
        [3, 2], [4, 0], heads=4, kv_heads=2, d=4, dv=1, sink=True, dlse=True
    ),
    "sinks alone": Batch([4, 1], [2, 0], window=(-1, 0), sink=True, dlse=True, ghosts=1),
    "sinks, no dlse": Batch([3], [3], heads=2, kv_heads=2, sink=True),
    "rows in use": Batch(
        [4, 3, 2], [3, 4, 2], used_q=[2, 3, 0], used_k=[3, 2, 1], window=(-1, 0), ghosts=1
    ),
    "offsets": Batch(
        [3, 3, 2], [4, 3, 3], offset=[-1, 2, 2**31 - 1], window=(1, 0), index="i64", dlse=True
    ),
    "everything": Batch(
        [4, 0, 3], [5, 2, 2], heads=4, kv_heads=2, d=3, dv=2, window=(2, 1), sink=True, dlse=True,
        used_q=[3, 0, 3], used_k=[4, 2, 2], offset=[1, 0, -1], ghosts=2, scale=0.7,
    ),
    "no sequences": Batch([], [], ghosts=3, sink=True),
}  # fmt: skip
for name, batch in GRADCHECK.items():
    results = run(batch.options, batch.inputs())
    wanted = finite_differences(batch)
    assert len(results) == len(wanted), name
    for what, got, slope in zip(NAMES, results, wanted):
        error = np.abs(got - slope).max(initial=0)
        assert error < 1e-8, f"{name}: {what} is off by {error}"
    batch.check_zeros(results)


# -- Isolation ----------------------------------------------------------------

# A sequence gets bitwise the same gradients beside one that is all NaN, and alone.
batch = GRADCHECK["everything"]
whole, poisoned = batch.inputs(), batch.inputs()
for name in ("dout", "q", "k", "v", "out"):
    poisoned[name][: (batch.cu_k if name in "kv" else batch.cu_q)[1]] = np.nan
for name in ("lse", "dlse"):
    poisoned[name][:, : batch.cu_q[1]] = np.nan
clean, others = run(batch.options, whole), run(batch.options, poisoned)
alone = {name: whole[name][batch.cu_q[2] :] for name in ("dout", "q", "out")}
alone |= {name: whole[name][batch.cu_k[2] :] for name in ("k", "v")}
alone |= {name: whole[name][:, batch.cu_q[2] :] for name in ("lse", "dlse")}
alone |= {name: whole[name][2:] for name in ("seqused_q", "seqused_k", "q_offset")}
alone |= {"sink": whole["sink"]}
alone |= {f"cu_seqlens_{x}": whole[f"cu_seqlens_{x}"][2:] - cu[2] for x, cu in (("q", batch.cu_q), ("k", batch.cu_k))}
single_sequence = run(batch.options, alone)
for which, cu in ((0, batch.cu_q), (1, batch.cu_k), (2, batch.cu_k)):
    assert (clean[which][cu[1] :] == others[which][cu[1] :]).all()
    assert (clean[which][cu[2] :] == single_sequence[which]).all()

# A NaN that the mask hides inside of a sequence reaches no other row of it here.
batch = Batch([3], [3], window=(-1, 0))
inputs = batch.inputs()
for name in ("k", "v"):
    inputs[name][2] = np.nan
for name in ("q", "dout"):
    inputs[name][2] = np.nan
dq, dk, dv = run(batch.options, inputs)
clean = run(batch.options, batch.inputs())
assert (dq[:2] == clean[0][:2]).all() and np.isnan(dq[2]).all()


# -- Other types --------------------------------------------------------------

ALIGNMENTS = ("bottom_right", "top_left")
for number, (dtype, window) in enumerate(
    itertools.product(("f32", "bf16", "f16"), ((-1, -1), (-1, 0), (7, 3)))
):
    batch = Batch(
        [17, 0, 40, 1], [33, 5, 25, 1], dtype=dtype, heads=4, kv_heads=(1, 2, 4)[number % 3],
        d=(16, 33)[number % 2], dv=(16, 8, 24)[number % 3], window=window,
        alignment=ALIGNMENTS[number % 2], sink=number % 2 == 0, dlse=number % 4 != 0,
        used_q=(16, 0, 40, 1) if number % 3 == 0 else None, ghosts=3, seed=number,
    )  # fmt: skip
    results = run(batch.options, batch.inputs())
    golden, plain = (
        batch.gradients(how) for how in (reference.gradients, reference.plain_gradients)
    )
    batch.check_zeros(results)
    for what, got, wanted, yardstick in zip(NAMES, results, golden, plain):
        label = f"{dtype} {window}: {what}"
        tolerance.check(got, wanted, yardstick, dtype, label, gradient=True)
