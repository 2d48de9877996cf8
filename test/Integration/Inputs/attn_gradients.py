"""The gradients of a group: its module, its inputs, its golden results.

As harness.py has it for the forward: rows that are not in use hold NaN, in the
cotangents and in out and lse too.
"""

import zlib

import harness
import numpy
import varlen

# The gradients by the rows they have: those of queries, of keys, of heads.
ROWS = {"dq": "q", "dk": "k", "dv": "k", "dsink": None}


def is_of_heads(group, name):
    """Whether a capture is the same for all queries of a head."""
    return harness.score_of(group).captures[name].startswith("head")


def is_of_queries(group, gradient):
    """Whether it is that of a capture that differs between queries."""
    captures = harness.score_of(group).captures if group.score else {}
    return captures.get(gradient[1:], "").startswith("query")


def capture_gradients(group):
    """The names of the gradients of captures."""
    captures = harness.score_of(group).captures if group.score else {}
    return [f"d{name}" for name in captures]


def module_text(group, dlse=True, **more):
    more["wrt_captures"] = bool(capture_gradients(group))
    return varlen.text.attn_grad(dlse=dlse, **harness.text_options(group), **more)


def make_inputs(group, dlse=True):
    """Those of the forward with normal random cotangents, and what the forward
    returns for them, in the type of its results."""
    inputs = harness.make_inputs(group)
    options = harness.reference_options(group, inputs)
    out, lse = varlen.reference.attention(*harness.packed(inputs), **options)
    rng = numpy.random.default_rng(zlib.crc32(f"gradients {group.label}".encode()))
    wide = numpy.float64 if group.dtype == "f64" else numpy.float32
    unused = ~harness.rows_in_use(group, inputs, "q")

    def cotangent(shape):
        return rng.standard_normal(shape, wide)

    dout, lse = cotangent(out.shape), lse.astype(wide)
    dout[unused] = out[unused] = numpy.nan
    lse[:, unused] = numpy.nan
    inputs |= {
        "dout": varlen.dtypes.narrow(dout, group.dtype),
        "out": varlen.dtypes.narrow(out, group.dtype),
        "lse": lse,
    }
    if dlse:
        inputs["dlse"] = cotangent(lse.shape)
        inputs["dlse"][:, unused] = numpy.nan
    return inputs


def run(group, inputs, threads=2, **flags):
    """What varlen-run makes of the inputs, by gradient."""
    return varlen.run(
        module_text(group, dlse="dlse" in inputs), inputs, threads=threads,
        device=harness.device, pipeline=harness.pipeline, **flags,
    )  # fmt: skip


def reference(group, inputs):
    """The golden gradients and the plain ones, by name."""
    arguments = [inputs["dout"], *harness.packed(inputs)]
    options = harness.reference_options(group, inputs) | {"dlse": inputs.get("dlse")}

    names = [*ROWS, *capture_gradients(group)]

    def by_name(gradients):
        return {n: g for n, g in zip(names, gradients) if g is not None}

    return (
        by_name(varlen.reference.gradients(*arguments, **options)),
        by_name(varlen.reference.plain_gradients(*arguments, **options)),
    )


def recomputed(group, inputs):
    """The gradients by their definition, from the out and lse that are given,
    in the compute type: what rounding those two costs, where plain gradients,
    which do not come from them, may cancel exactly."""
    lse = inputs["lse"]
    wide = lse.dtype.type
    q, k, v, out, dout = (
        varlen.dtypes.widen(x, wide)
        for x in (*harness.packed(inputs)[:3], inputs["out"], inputs["dout"])
    )
    scale = wide(1 / numpy.sqrt(group.d) if group.scale is None else group.scale)
    dq, dk, dv = numpy.zeros_like(q), numpy.zeros_like(k), numpy.zeros_like(v)
    dsink = numpy.zeros(group.heads, wide)
    dcaptures = [numpy.zeros_like(x) for x in harness.captures_of(group, inputs)]
    for h, rows, keys, seen, scored in harness.heads_of(group, inputs):
        lse_rows = lse[h, rows[0]]
        products = scale * (q[rows] @ k[keys].T)
        scores = numpy.where(seen, scored.of(products), -numpy.inf)
        p = numpy.exp(scores - numpy.where(numpy.isneginf(lse_rows), 0, lse_rows)[:, None])
        delta = (dout[rows] * out[rows]).sum(axis=1)
        if "dlse" in inputs:
            delta -= inputs["dlse"][h, rows[0]]
        # A query's few keys may leave delta alone of it.
        ds = p * (harness.one_by_one(dout[rows], v[keys]) - delta[:, None])
        ds, to_captures = scored.pull_back(products, ds)
        scored.add(dcaptures, to_captures)
        dq[rows] = scale * (ds @ k[keys])
        dk[keys] += scale * (ds.T @ q[rows])
        dv[keys] += p.T @ dout[rows]
        if group.sink:
            dsink[h] -= (numpy.exp(inputs["sink"][h] - lse_rows) * delta).sum()
    return {
        "dq": dq, "dk": dk, "dv": dv, "dsink": dsink,
        **dict(zip(capture_gradients(group), dcaptures)),
    }  # fmt: skip


def judge(group, inputs, outputs):
    """What is wrong, as a list of lines."""
    golden, plain = reference(group, inputs)
    definition = None  # made for the gradients that need it
    lse = inputs["lse"][numpy.isfinite(inputs["lse"])]
    epsilon, lse = numpy.finfo(lse.dtype).eps, abs(lse).max(initial=0)
    # The last place of a result in the type of the inputs.
    place = varlen.tolerance.EPSILON[group.dtype]
    problems = []
    for name, wanted in golden.items():
        got = varlen.dtypes.widen(outputs[name])
        if got.shape != wanted.shape:
            problems.append(f"{name}: got shape {got.shape}, wanted {wanted.shape}")
            continue
        # Probabilities are exp2 of a difference of numbers as large as lse2.
        slack = float(epsilon * (1 + 1.5 * lse) * abs(wanted).max(initial=0))
        slack = slack + (place if ROWS.get(name) else epsilon) * abs(wanted)
        if name in capture_gradients(group) and is_of_heads(group, name[1:]):
            # A sum of either sign over all scores of a head, in blocks of another order.
            slack = slack + 32 * epsilon * abs(wanted).max(initial=0)

        def allow(yardstick):
            return slack + varlen.tolerance.bound(
                wanted, yardstick[name], group.dtype, gradient=True
            )

        with numpy.errstate(invalid="ignore"):
            error = abs(got - wanted)
        allowed = allow(plain)
        if not (error <= allowed).all():
            definition = definition or recomputed(group, inputs)
            allowed = numpy.maximum(allowed, allow(definition))
        if not (error <= allowed).all():
            error = numpy.nan_to_num(error.astype(float), nan=numpy.inf)
            at = numpy.unravel_index((error - allowed).argmax(), error.shape)
            problems.append(
                f"{name} at {[int(i) for i in at]}: got {got[at]}, wanted {wanted[at]}; "
                f"error {error[at]:.3g}, allowed {allowed[at]:.3g}"
            )
        if ROWS.get(name) is None:
            unused = ~harness.rows_in_use(group, inputs, "q")
            if is_of_queries(group, name) and (got[:, unused] != 0).any():
                problems.append(f"{name}: values of rows of no sequence that are not 0")
            continue
        # Rows that belong to no sequence, or see no key, are exactly 0.
        zero = ~harness.rows_in_use(group, inputs, ROWS[name])
        if name == "dq" and not group.sink:
            zero = zero[:, None] | numpy.isneginf(inputs["lse"].T)
        wrong = int((got[zero] != 0).sum())
        if wrong:
            problems.append(f"{name}: {wrong} values of rows without a gradient: not 0")
    return problems
