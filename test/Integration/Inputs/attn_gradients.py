"""The gradients of a group: its module, its inputs, its golden results.

As harness.py has it for the forward: rows that are not in use hold NaN, in the
cotangents and in out and lse too.
"""

import functools
import zlib

import harness
import numpy
import varlen

# The gradients by the rows they have: those of queries, of keys, of heads.
ROWS = {"dq": "q", "dk": "k", "dv": "k", "dsink": None}


def is_of_heads(group, name):
    """Whether a capture is the same for all queries of a head."""
    return harness.score_of(group).captures[name].startswith("head")


def is_of_rows(group, gradient, side):
    """Whether it is that of a capture that differs between queries ("q") or keys ("k")."""
    captures = harness.score_of(group).captures if group.score else {}
    return captures.get(gradient[1:], "").startswith({"q": "query", "k": "key"}[side])


def capture_gradients(group):
    """The names of the gradients of captures."""
    captures = harness.score_of(group).captures if group.score else {}
    return [f"d{name}" for name in captures]


def module_text(group, dlse=True, **more):
    more["wrt_captures"] = bool(capture_gradients(group))
    return varlen.text.attn_grad(dlse=dlse, **harness.text_options(group), **more)


class Inputs(dict):
    """Arguments by name. `golden` are the golden gradients for each sequence by name, if they
    have been made; other inputs made of these, with `|` say, have none."""

    golden = None


def make_inputs(group, dlse=True, golden=False):
    """The inputs of the forward with normal random cotangents, and what the forward
    returns for them, in the type of its results. Inputs to judge by may come with the
    golden gradients: made with what the forward returns they take less time."""
    inputs = harness.make_inputs(group)
    rng = numpy.random.default_rng(zlib.crc32(f"gradients {group.label}".encode()))
    wide = numpy.float64 if group.dtype == "f64" else numpy.float32
    unused = ~harness.rows_in_use(group, inputs, "q")
    dout = rng.standard_normal((group.tokens_q, group.heads, group.dv), wide)
    dout[unused] = numpy.nan
    inputs["dout"] = varlen.dtypes.narrow(dout, group.dtype)
    if dlse:
        inputs["dlse"] = rng.standard_normal((group.heads, group.tokens_q), wide)
        inputs["dlse"][:, unused] = numpy.nan
    out = numpy.full(dout.shape, numpy.nan, varlen.dtypes.by_name[group.dtype])
    lse = numpy.full((group.heads, group.tokens_q), numpy.nan, wide)
    gradients = []
    for rows, _, alone in harness.sequences_of(group, inputs):
        if golden:
            forward, of_sequence = varlen.reference.attention_and_gradients(
                *arguments(alone), **options(group, alone)
            )
            gradients.append(by_name(group, of_sequence))
        else:
            forward = varlen.reference.attention(
                *harness.packed(alone), **harness.reference_options(group, alone)
            )
        out[rows] = varlen.dtypes.narrow(forward[0], group.dtype)
        lse[:, rows] = forward[1]
    inputs = Inputs(inputs | {"out": out, "lse": lse})
    inputs.golden = gradients if golden else None
    return inputs


def run(group, inputs, threads=2, **flags):
    """What varlen-run makes of the inputs, by gradient."""
    return varlen.run(
        module_text(group, dlse="dlse" in inputs), inputs, threads=threads,
        device=harness.device, pipeline=harness.pipeline, **flags,
    )  # fmt: skip


def arguments(inputs):
    return [inputs["dout"], *harness.packed(inputs)]


def options(group, inputs):
    return harness.reference_options(group, inputs) | {"dlse": inputs.get("dlse")}


def by_name(group, gradients):
    names = [*ROWS, *capture_gradients(group)]
    return {n: g for n, g in zip(names, gradients) if g is not None}


def golden_of(group, inputs):
    """The golden gradients of each sequence."""
    if getattr(inputs, "golden", None) is not None:
        yield from inputs.golden
        return
    for _, _, alone in harness.sequences_of(group, inputs):
        yield by_name(
            group, varlen.reference.gradients(*arguments(alone), **options(group, alone))
        )


def plain_of(group, alone):
    """The plain gradients of one."""
    return by_name(
        group, varlen.reference.plain_gradients(*arguments(alone), **options(group, alone))
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
        ds = p * (harness.one_by_one(dout[rows], v[keys], seen) - delta[:, None])
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


def place_of(group, name, rows, keys):
    """Where a gradient has that of a sequence; None for one of heads, a sum over all."""
    if name in ROWS:
        return {"q": rows, "k": keys, None: None}[ROWS[name]]
    kind = harness.score_of(group).captures[name[1:]]
    return harness.place_of_capture(kind, rows, keys)


def judge(group, inputs, outputs):
    """What is wrong, as a list of lines."""
    lse = inputs["lse"][numpy.isfinite(inputs["lse"])]
    epsilon, lse = numpy.finfo(lse.dtype).eps, abs(lse).max(initial=0)
    # The last place of a result in the type of the inputs.
    place = varlen.tolerance.EPSILON[group.dtype]
    names = ["dq", "dk", "dv", *(["dsink"] if group.sink else []), *capture_gradients(group)]
    problems = [
        f"{name}: got shape {outputs[name].shape}, wanted {inputs[name[1:]].shape}"
        for name in names if outputs[name].shape != inputs[name[1:]].shape
    ]  # fmt: skip
    if problems:
        return problems
    sequences = list(harness.sequences_of(group, inputs))
    places = {
        name: [place_of(group, name, rows, keys) for rows, keys, _ in sequences] for name in names
    }
    bounds = {name: varlen.tolerance.Bound(group.dtype, gradient=True) for name in names}
    errors, largest = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    sums = {}  # of gradients of heads: the golden ones and the plain ones

    def compare(name, got, wanted, plain):
        bounds[name].add(wanted, plain)
        error = varlen.tolerance.largest_difference(got, wanted)
        errors[name] = numpy.maximum(errors[name], error)
        largest[name] = max(largest[name], float(abs(wanted).max(initial=0)))

    for i, golden in enumerate(golden_of(group, inputs)):
        plain = plain_of(group, sequences[i][2])
        for name in names:
            if places[name][i] is None:
                of_all = sums.setdefault(name, [0, 0])
                of_all[0], of_all[1] = of_all[0] + golden[name], of_all[1] + plain[name]
            else:
                compare(name, outputs[name][places[name][i]], golden[name], plain[name])
    for name, of_all in sums.items():
        compare(name, outputs[name], *of_all)

    def whole(name):
        if name in sums:
            return sums[name][0]
        wanted = None
        for at, golden in zip(places[name], golden_of(group, inputs)):
            if wanted is None:
                wanted = numpy.zeros(outputs[name].shape, golden[name].dtype)
            wanted[at] = golden[name]
        return wanted

    definition = functools.cache(lambda: recomputed(group, inputs))
    for name in names:
        got = outputs[name]
        # Probabilities are exp2 of a difference of numbers as large as lse2.
        slack = float(epsilon * (1 + 1.5 * lse) * largest[name])
        if name in capture_gradients(group) and is_of_heads(group, name[1:]):
            # A sum of either sign over all scores of a head, in blocks of another order.
            slack = slack + 32 * epsilon * largest[name]
        allowed = slack + float(bounds[name])
        if not errors[name] <= allowed:
            wanted = whole(name)
            got = varlen.dtypes.widen(got)
            with numpy.errstate(invalid="ignore"):
                error = abs(got - wanted)
            last = (place if ROWS.get(name) else epsilon) * abs(wanted)
            if not (error <= allowed + last).all():
                allowed = max(allowed, slack + varlen.tolerance.bound(
                    wanted, definition()[name], group.dtype, gradient=True
                ))  # fmt: skip
            allowed = allowed + last
            if not (error <= allowed).all():
                error = numpy.nan_to_num(error.astype(float), nan=numpy.inf)
                at = numpy.unravel_index((error - allowed).argmax(), error.shape)
                problems.append(
                    f"{name} at {[int(i) for i in at]}: got {got[at]}, wanted {wanted[at]}; "
                    f"error {error[at]:.3g}, allowed {allowed[at]:.3g}"
                )
        if ROWS.get(name) is None:
            for side in "qk":
                unused = ~harness.rows_in_use(group, inputs, side)
                if is_of_rows(group, name, side) and (got[:, unused] != 0).any():
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
