"""The tangents of a group: its module, its inputs, its golden results.

As harness.py has it for the forward: rows that are not in use hold NaN, in tangents too.
Functions are compiled once, for calls with other threads, and with other neighbours of a sequence.
On a GPU, and in what stands in for one, out and lse have other bits than without tangents, whose
tiles are others, and there are no threads to choose.
"""

import functools
import zlib

import compiled
import harness
import numpy
import varlen

# On a GPU, in place of the schedule of the table.
schedule = None

_ROWS = ("q", "k", "v")
_RESULTS = ("tout", "tlse")


def module_text(group):
    text = varlen.text.attn_jvp(**harness.text_options(group))
    if schedule is None:
        return text
    return text.replace(
        "{mask =", f"{{varlen.schedule = #varlen.gpu_schedule<{schedule}>, mask =", 1
    )


def make_inputs(group):
    """The inputs of the forward with normal random tangents."""
    inputs = harness.make_inputs(group)
    rng = numpy.random.default_rng(zlib.crc32(f"tangents {group.label}".encode()))
    wide = numpy.float64 if group.dtype == "f64" else numpy.float32
    for name in (*_ROWS, *(["sink"] if group.sink else []), *_captures(group)):
        values = inputs[name]
        tangents = rng.standard_normal(values.shape, wide)
        if name in _ROWS:
            tangents[~harness.rows_in_use(group, inputs, "q" if name == "q" else "k")] = numpy.nan
            tangents = varlen.dtypes.narrow(tangents, group.dtype)
        else:
            tangents[numpy.isnan(values)] = numpy.nan
        inputs[f"t{name}"] = tangents
    return inputs


def _captures(group):
    return list(harness.score_of(group).captures) if group.score else []


_compile = functools.lru_cache(maxsize=2)(compiled.function)


def run(group, inputs, threads=2, **flags):
    """out, lse, tout and tlse."""
    if harness.device == "cpu":
        return _compile(module_text(group))(inputs, threads)
    return varlen.run(module_text(group), inputs, device=harness.device, **flags)


def _is_of_rows(group, name):
    """Whether an operand, or the tangent of one, has something of each row."""
    of = harness.score_of(group).captures if group.score else {}
    name = name if name in of else name.removeprefix("t")
    return name in _ROWS or of.get(name, "").startswith(("query", "key"))


def derive(group, inputs, how):
    """tout and tlse, by name, by one of the reference."""
    names = _captures(group)
    return dict(zip(_RESULTS, how(
        *(inputs[f"t{name}"] for name in _ROWS), *harness.packed(inputs), tsink=inputs.get("tsink"),
        tcaptures=[inputs[f"t{name}"] for name in names], **harness.reference_options(group, inputs),
    )))  # fmt: skip


def sequences(group, inputs):
    """As harness.sequences_of, with tangents, but for the keys."""
    of = harness.score_of(group).captures if group.score else {}
    for rows, keys, alone in harness.sequences_of(group, inputs):
        places = {"tq": rows, "tk": keys, "tv": keys}
        for name, kind in of.items():
            places[f"t{name}"] = harness.place_of_capture(kind, rows, keys)
        alone |= {x: inputs[x][at] for x, at in places.items() if at is not None}
        yield rows, alone


def _poison(group, inputs, rows, keys):
    """The inputs with NaN in all rows of q and of k but these."""
    of = harness.score_of(group).captures if group.score else {}
    kept, poisoned = {"q": rows, "k": keys, "v": keys}, dict(inputs)
    for name in filter(functools.partial(_is_of_rows, group), inputs):
        own = name if name in (*_ROWS, *of) else name.removeprefix("t")
        at = kept.get(own) or harness.place_of_capture(of[own], rows, keys)
        poisoned[name] = numpy.full_like(inputs[name], numpy.nan)
        poisoned[name][at] = inputs[name][at]
    return poisoned


def _compare_bits(group, inputs, outputs):
    """Where results have other bits than without tangents or with NaN in place of them, than by
    another number of threads, and than of a sequence alone or beside NaN."""
    problems = []

    def compare(label, results, names, rows=slice(None)):
        for name in names:
            at = rows if name.endswith("out") else (slice(None), rows)
            values = results[name] if len(results["lse"][0]) == rows_of(rows) else results[name][at]
            if not numpy.array_equal(values, outputs[name][at]):
                problems.append(f"{name}: other bits {label}")

    def rows_of(rows):
        return len(range(*rows.indices(group.tokens_q)))

    unknown = {name: numpy.full_like(inputs[name], numpy.nan) for name in ("tq", "tk", "tv")}
    others = [("with tangents that are NaN", inputs | unknown, ("out", "lse"), slice(None), 2)]
    if harness.device == "cpu":
        tangents = {f"t{name}" for name in (*_ROWS, "sink", *_captures(group))}
        bare = {name: x for name, x in inputs.items() if name not in tangents}
        compare("without tangents", _compile(harness.module_text(group))(bare, 2), ("out", "lse"))
        others.append(("by one thread", inputs, outputs, slice(None), 1))
    if group.sequences:
        # The sequence with the most pairs.
        place = max(range(len(group.sequences)), key=lambda i: _count_pairs(group.sequences[i]))
        rows, keys, _ = list(harness.sequences_of(group, inputs))[place]
        others.append(("beside NaN", _poison(group, inputs, rows, keys), outputs, rows, 3))
        if not group.static:
            _, alone = list(sequences(group, inputs))[place]
            alone = {name: numpy.ascontiguousarray(x) for name, x in alone.items()}
            for side, count in (("q", rows_of(rows)), ("k", keys.stop - keys.start)):
                alone[f"cu_seqlens_{side}"] = numpy.array([0, count], inputs["cu_seqlens_q"].dtype)
                if group.seqused:
                    alone[f"seqused_{side}"] = alone[f"cu_seqlens_{side}"][1:]
            others.append(("alone", alone, outputs, rows, 2))
    if harness.device == "cpu":
        found = [run(group, given, threads) for _, given, _, _, threads in others]
    else:
        found = run(group, [given for _, given, _, _, _ in others])
    for (label, _, names, rows, _), results in zip(others, found):
        compare(label, results, names, rows)
    return problems


def _count_pairs(sequence):
    return sequence.q_used * sequence.k_used


def judge(group, inputs, outputs):
    """What is wrong, as a list of lines."""
    problems = _compare_bits(group, inputs, outputs)
    epsilon = numpy.finfo(outputs["tlse"].dtype).eps
    in_use = harness.rows_in_use(group, inputs, "q")
    wanted = {"tout": numpy.zeros(outputs["out"].shape), "tlse": numpy.zeros(outputs["lse"].shape)}
    bounds = {name: varlen.tolerance.Bound(group.dtype, gradient=True) for name in _RESULTS}
    for rows, alone in sequences(group, inputs):
        golden, plain = (
            derive(group, alone, how)
            for how in (varlen.reference.tangents, varlen.reference.plain_tangents)
        )
        for name, at in (("tout", rows), ("tlse", (slice(None), rows))):
            wanted[name][at] = golden[name]
            bounds[name].add(golden[name], plain[name])
    lse = outputs["lse"][numpy.isfinite(outputs["lse"])]
    for name in _RESULTS:
        got = varlen.dtypes.widen(outputs[name])
        # Probabilities are exp2 of a difference of numbers as large as lse2, and a value may
        # always be off in its last place. In tout what they are multiplied by may cancel.
        largest = abs(wanted[name]).max(initial=0)
        place = varlen.tolerance.EPSILON[group.dtype] if name == "tout" else epsilon
        slack = epsilon * (1 + 1.5 * abs(lse).max(initial=0)) * largest
        if name == "tout":
            finite = numpy.where(numpy.isfinite(outputs["lse"]), outputs["lse"], 0)
            change = abs(wanted["tlse"]) * (1 + 1.5 * abs(finite)) * epsilon
            slack = slack + change.T[:, :, None] * abs(varlen.dtypes.widen(outputs["out"]))
        allowed = float(bounds[name]) + slack + place * abs(wanted[name])
        with numpy.errstate(invalid="ignore"):
            error = abs(got - wanted[name])
        if not (error <= allowed).all():
            error = numpy.nan_to_num(error, nan=numpy.inf)
            at = numpy.unravel_index((error - allowed).argmax(), error.shape)
            problems.append(
                f"{name} at {[int(i) for i in at]}: got {got[at]}, wanted {wanted[name][at]}; "
                f"error {error[at]:.3g}, allowed {allowed[at]:.3g}"
            )
    nothing = numpy.isneginf(outputs["lse"]) | ~in_use
    if outputs["tout"].swapaxes(0, 1)[nothing].any() or outputs["tlse"][nothing].any():
        problems.append("values of rows without a key that are not 0")
    return problems
