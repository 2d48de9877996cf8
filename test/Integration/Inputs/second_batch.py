"""What varlen.attn_jvp_grad takes for a batch of tangent_batch.py, and what it is to return."""

import numpy as np
import varlen
from tangent_batch import ROWS
from varlen import dtypes

ORACLE = "builtin.module(varlen-decompose-attn,varlen-to-cpu)"
ALL = ("dtlse", "dout", "dlse")


class Second:
    """What varlen.attn_jvp_grad takes for a batch: the results of its tangents, and random
    cotangents, of which `given` are optional ones."""

    def __init__(self, batch, given=ALL, wrt_captures=True):
        self.batch, self.cotangents, self.wrt_captures = batch, given, wrt_captures
        # From the exact forward: both sides are given the same.
        exact = {
            name: x if name.removeprefix("t") not in ROWS else dtypes.widen(x)
            for name, x in batch.arguments().items()
        }
        results = varlen.run(varlen.text.attn_jvp(**batch.options | {"dtype": "f64"}), {
            name: x.astype("f8") if x.dtype == np.float32 else x for name, x in exact.items()
        }, threads=2)  # fmt: skip
        rng = np.random.default_rng(1)
        for name, like in (("dtout", "out"), ("dout", "out"), ("dtlse", "lse"), ("dlse", "lse")):
            results[name] = rng.standard_normal(results[like].shape)
        self.wide = {x: y for x, y in results.items() if x not in ALL or x in given}
        for name, values in self.wide.items():
            if "lse" in name:
                values[:, ~batch.rows["q"]] = np.nan
            else:
                values[~batch.rows["q"]] = np.nan

    def arguments(self, poison=lambda name, values: values):
        batch = self.batch
        given = batch.arguments(poison)
        if not self.wrt_captures:
            given = {x: y for x, y in given.items() if x.removeprefix("t") not in batch.captures
                     or x in batch.captures}  # fmt: skip
        for name, values in self.wide.items():
            kind = batch.compute if "lse" in name else batch.dtype
            values = values.T if "lse" in name else values
            values = poison("q", values.copy())
            given[name] = dtypes.narrow(values.T.copy() if "lse" in name else values, kind)
        return given

    def module_text(self, **options):
        options = self.batch.options | {name: True for name in self.cotangents} | options
        return varlen.text.attn_jvp_grad(wrt_captures=self.wrt_captures, **options)

    def run(self, given=None, exact=False, schedule=None, **more):
        """The gradients, in f64 by their definition if `exact`; `schedule` is in place of the
        one of the table, and `more` are options of varlen.run."""
        given = self.arguments() if given is None else given
        text = self.module_text(**({"dtype": "f64"} if exact else {}))
        if schedule:
            text = text.replace("{mask =", f"{{varlen.schedule = {schedule}, mask =", 1)
        more = {"threads": 2} | more
        if exact:
            more = {"threads": 1, "pipeline": ORACLE}
            # Types of 16 bits lie in arrays of their own.
            given = {
                x: y if y.dtype.kind == "i" else dtypes.widen(y).astype("f8")
                for x, y in given.items()
            }
        return varlen.run(text, given, **more)


def check(label, second, most, **more):
    """That results are off by at most so much of the largest of a gradient, and that rows that
    nothing uses have gradients of 0; returns the results. `more` are options of Second.run."""
    given = second.arguments()
    results, golden = second.run(given, **more), second.run(given, exact=True)
    assert results.keys() == golden.keys()
    for name, wanted in golden.items():
        got, largest = dtypes.widen(results[name]), np.abs(wanted).max(initial=0)
        error = np.abs(got - wanted).max(initial=0)
        assert error <= most * max(1, largest), f"{label}: {name} is off by {error} of {largest}"
    for name, rows in (("dq", "q"), ("dk", "k"), ("dv", "k")):
        assert not dtypes.widen(results[name])[~second.batch.rows[rows]].any(), f"{label}: {name}"
    return results
