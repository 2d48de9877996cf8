"""Makes the module and the inputs of a group, runs it, judges the result."""

import functools
import zlib

import numpy
import parameters
import varlen

# Where varlen-run runs what is compiled.
device = "cpu"
# Passes instead of those of the device.
pipeline = None

# What lse may be off by, relative to 1 + |lse|: it is never rounded to the type
# of the inputs. Where queries are large, twice the error of sums in order is added:
# a product's rounding is relative to its terms.
LSE_TOLERANCE = {"f64": 1e-12, "f32": 1e-5, "bf16": 1e-3, "f16": 1e-3}


def text_options(group):
    """What a function for a group is made with."""
    return {
        "dtype": group.dtype,
        "heads": group.heads,
        "kv_heads": group.kv_heads,
        "head_dim": group.d,
        "v_head_dim": group.dv,
        "window": group.window,
        "alignment": alignment_of(group),
        "scale": group.scale,
        "sink": group.sink,
        "seqused_q": group.seqused,
        "seqused_k": group.seqused,
        "q_offset": group.q_offset,
        "tq": group.tokens_q if group.static else None,
        "tk": group.tokens_k if group.static else None,
        "sequences": len(group.sequences) if group.static else None,
        "index": group.index,
        "score": score_of(group),
    }


def module_text(group, **more):
    return varlen.text.attn(**text_options(group), **more)


def score_of(group):
    return (parameters.SCORES | parameters.LIST_SCORES).get(group.score)


def captures_of(group, inputs):
    return [inputs[name] for name in score_of(group).captures] if group.score else []


def alignment_of(group):
    return "top_left" if group.top_left else "bottom_right"


def offsets(slots):
    return [0, *numpy.cumsum(list(slots), dtype=numpy.int64).tolist()]


def make_inputs(group):
    """Normal random inputs by argument; rows that are not in use hold NaN."""
    rng = numpy.random.default_rng(zlib.crc32(group.label.encode()))
    cu_q = offsets(s.q_slot for s in group.sequences)
    cu_k = offsets(s.k_slot for s in group.sequences)

    def rows(tokens, heads, d, starts, used, factor=1):
        wide = numpy.float64 if group.dtype == "f64" else numpy.float32
        values = rng.standard_normal((tokens, heads, d), wide)
        if factor != 1:
            values *= wide(factor)
        end = 0
        for start, length in [*zip(starts, used), (tokens, 0)]:
            values[end:start] = numpy.nan
            end = start + length
        return varlen.dtypes.narrow(values, group.dtype)

    q_used = [s.q_used for s in group.sequences]
    k_used = [s.k_used for s in group.sequences]
    integer = varlen.dtypes.by_name[group.index]
    inputs = {
        "q": rows(group.tokens_q, group.heads, group.d, cu_q, q_used, group.q_factor),
        "k": rows(group.tokens_k, group.kv_heads, group.d, cu_k, k_used),
        "v": rows(group.tokens_k, group.kv_heads, group.dv, cu_k, k_used),
        "cu_seqlens_q": numpy.array(cu_q, integer),
        "cu_seqlens_k": numpy.array(cu_k, integer),
    }
    if group.seqused:
        inputs["seqused_q"] = numpy.array(q_used, integer)
        inputs["seqused_k"] = numpy.array(k_used, integer)
    if group.q_offset:
        limit = numpy.iinfo(integer).max
        values = [0, 1, -3, 17, -64, 300, limit, -limit - 1]
        inputs["q_offset"] = rng.choice(values, len(group.sequences)).astype(integer)
    if group.sink:
        wide = numpy.float64 if group.dtype == "f64" else numpy.float32
        inputs["sink"] = rng.standard_normal(group.heads).astype(wide)
    wide = numpy.float64 if group.dtype == "f64" else numpy.float32
    for name, of in (score_of(group).captures if group.score else {}).items():
        extents = {"heads": group.heads, "rows": group.tokens_q, "entries": 37,
                   "kv_rows": group.tokens_k}  # fmt: skip
        shape = [extents[extent] for extent in varlen.scores.CAPTURES[of]]
        low, high = {
            "slopes": (0.002, 0.5), "gains": (0.5, 1.5), "prefix": (0, 99), "begin": (-9, 60),
            "end": (9, 150), "bias": (-2, 2), "flags": (-2, 2),
            "used": (-2, 2), "ids": (0, 4), "dropout_words": (-2, 2),
        }[name]  # fmt: skip
        inputs[name] = rng.uniform(low, high, shape).astype(wide)
        if name in ("flags", "used"):
            inputs[name] = numpy.maximum(inputs[name], 0)
        if name == "ids":
            inputs[name] = numpy.floor(inputs[name])
        if name == "slopes" and of == "query":
            # FlashAttention's: one for each sequence.
            slots = [sequence.q_slot for sequence in group.sequences]
            slopes = rng.uniform(0, 0.3, (group.heads, len(slots)))
            rows_of = numpy.repeat(slopes, slots, axis=1)
            inputs[name][:, : rows_of.shape[1]] = rows_of
        if of.startswith(("query", "key")):
            inputs[name][:, ~rows_in_use(group, inputs, "q" if of.startswith("query") else "k")] = numpy.nan
    return inputs


def run(group, inputs, threads=2, **flags):
    """What varlen-run makes of the inputs: out and lse. On a GPU, and in what
    stands in for one, the memory of results holds NaN before."""
    return varlen.run(
        module_text(group), inputs, threads=threads, device=device,
        pipeline=pipeline, **flags,
    )  # fmt: skip


def packed(inputs):
    """The operands that every attention has."""
    return [inputs[name] for name in ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")]


def rows_in_use(group, inputs, side):
    """Which rows of q ("q"), or of k and v ("k"), belong to a sequence."""
    starts = inputs[f"cu_seqlens_{side}"]
    in_use = numpy.zeros(group.tokens_q if side == "q" else group.tokens_k, bool)
    for start, sequence in zip(starts, group.sequences):
        used = sequence.q_used if side == "q" else sequence.k_used
        in_use[start : start + used] = True
    return in_use


def reference_options(group, inputs):
    return {
        "seqused_q": inputs.get("seqused_q"),
        "seqused_k": inputs.get("seqused_k"),
        "q_offset": inputs.get("q_offset"),
        "sink": inputs.get("sink"),
        "window": group.window,
        "alignment": alignment_of(group),
        "scale": group.scale,
        "score": score_of(group),
        "captures": captures_of(group, inputs),
    }


def place_of_capture(kind, rows, keys):
    """Where a capture has what these rows of q and k read; None for one of heads."""
    if kind.startswith("query"):
        return slice(None), rows
    return (slice(None), keys) if kind.startswith("key") else None


def sequences_of(group, inputs):
    """For each sequence its rows of q and of k, and the inputs of it alone: golden results of
    one take a cache's memory, those of a batch gigabytes."""
    of = score_of(group).captures if group.score else {}
    starts = zip(inputs["cu_seqlens_q"], inputs["cu_seqlens_k"])
    for i, ((q0, k0), sequence) in enumerate(zip(starts, group.sequences)):
        rows, keys = slice(q0, q0 + sequence.q_used), slice(k0, k0 + sequence.k_used)
        places = {
            "q": rows, "dout": rows, "k": keys, "v": keys, "dlse": (slice(None), rows),
            "q_offset": slice(i, i + 1),
        }  # fmt: skip
        for name, kind in of.items():
            places[name] = place_of_capture(kind, rows, keys)
        alone = {
            name: x if places.get(name) is None else x[places[name]]
            for name, x in inputs.items()
        } | {"cu_seqlens_q": [0, sequence.q_used], "cu_seqlens_k": [0, sequence.k_used]}
        alone.pop("seqused_q", None)
        alone.pop("seqused_k", None)
        yield rows, keys, alone


def reference(group, inputs):
    """The golden out and lse, and the out of plain attention in the same type."""
    arguments, options = packed(inputs), reference_options(group, inputs)
    out, lse = varlen.reference.attention(*arguments, **options)
    return out, lse, varlen.reference.plain(*arguments, **options)[0]


def one_by_one(rows, others, seen):
    """rows @ others.T, with each sum in the order of its terms, by fused multiply-adds:
    numpy's order has less rounding, and products that are rounded, too, another. Those
    where nothing is seen may be 0."""
    wide = numpy.longdouble if rows.dtype == numpy.float64 else numpy.float64
    sums = numpy.zeros((len(rows), len(others)), rows.dtype)
    together = 32  # as many as a cache holds
    terms = others.T.astype(wide)
    for first in range(0, len(rows), together):
        columns = numpy.flatnonzero(seen[first : first + together].any(axis=0))
        if not len(columns):
            continue
        keys = slice(columns[0], columns[-1] + 1)
        part = sums[first : first + together, keys]
        products = numpy.empty(part.shape, wide)
        columns = rows[first : first + together].T.astype(wide)
        for row, other in zip(columns, terms[:, keys]):
            numpy.multiply.outer(row, other, out=products)
            numpy.add(products, part, out=part, casting="same_kind")
    return sums


def heads_of(group, inputs):
    """For each sequence and head the head, the rows of q and of k (indices of packed
    tensors), which keys queries see, and the scores."""
    options, captures = reference_options(group, inputs), captures_of(group, inputs)
    ranges = varlen.reference.sequences(
        *packed(inputs)[3:],
        *(options[name] for name in ("seqused_q", "seqused_k", "q_offset")),
    )
    for q0, lq, k0, lk, offset in ranges:
        alignment = options["alignment"]
        mask = varlen.reference.visible(lq, lk, group.window, alignment, offset)
        for h in range(group.heads):
            rows, keys = (slice(q0, q0 + lq), h), (slice(k0, k0 + lk), h * group.kv_heads // group.heads)
            scored = varlen.reference.Scores(
                options["score"], captures, h, q0, slice(0, lq), keys[0], slice(0, lk),
                varlen.reference.diagonal(lq, lk, alignment, offset),
            )  # fmt: skip
            yield h, rows, keys, scored.seen(mask), scored


def one_by_one_attention(group, inputs):
    """out and lse in the compute type with the products of queries and keys in the order of
    their terms, as kernels sum them: what that order costs."""
    wide = numpy.float64 if group.dtype == "f64" else numpy.float32
    q, k, v = (varlen.dtypes.widen(x, wide) for x in packed(inputs)[:3])
    scale = wide(1 / numpy.sqrt(group.d) if group.scale is None else group.scale)
    out = numpy.zeros((group.tokens_q, group.heads, group.dv), wide)
    lse = numpy.full((group.heads, group.tokens_q), -numpy.inf, wide)
    for h, rows, keys, seen, scored in heads_of(group, inputs):
        products = scale * one_by_one(q[rows], k[keys], seen)
        scores = numpy.where(seen, scored.of(products), -numpy.inf)
        sink = inputs["sink"][h] if group.sink else -numpy.inf
        top = numpy.maximum(scores.max(axis=1, initial=-numpy.inf), sink)
        top = numpy.where(numpy.isneginf(top), 0, top)[:, None]
        weights = numpy.exp(scores - top)
        total = weights.sum(axis=1, keepdims=True) + numpy.exp(sink - top)
        out[rows] = weights @ v[keys] / numpy.where(total == 0, 1, total)
        with numpy.errstate(divide="ignore"):
            lse[h, rows[0]] = (top + numpy.log(total))[:, 0]
    return out, lse


def judge(group, inputs, outputs):
    """What is wrong, as a list of lines."""
    out, lse = outputs["out"], outputs["lse"]
    shapes = (group.tokens_q, group.heads, group.dv), (group.heads, group.tokens_q)
    if (out.shape, lse.shape) != shapes:
        return [f"got shapes {out.shape}, {lse.shape}, wanted {shapes[0]}, {shapes[1]}"]
    in_order = functools.cache(lambda: one_by_one_attention(group, inputs))
    problems = []
    wanted_lse = numpy.full(lse.shape, -numpy.inf, numpy.longdouble)
    belongs = rows_in_use(group, inputs, "q")
    # The errors of 16-bit types are roundings, so each pair of the lists is judged on its
    # own. Errors of f32 and f64 are sums of many small ones: the plain result of a few
    # rows with one key is exact by luck, so the whole batch is the yardstick. As
    # that, too, may be one row that sees one key and a sink, whose only weight is
    # rounded, a value may always be off in the last place.
    place = varlen.tolerance.EPSILON[group.dtype]
    whole = group.dtype in ("f32", "f64")
    sequences = list(sequences_of(group, inputs))
    yardsticks = [None if whole else sequence.pair for sequence in group.sequences]
    bounds = {of: varlen.tolerance.Bound(group.dtype) for of in yardsticks}
    errors, largest = [], 0.0
    for of, (rows, _, alone) in zip(yardsticks, sequences):
        wanted, wanted_lse[:, rows], plain = reference(group, alone)
        bounds[of].add(wanted, plain)
        errors.append(varlen.tolerance.largest_difference(out[rows], wanted))
        largest = max(largest, float(abs(wanted).max(initial=0)))
    limits = {of: float(bound) for of, bound in bounds.items()}
    if whole:
        limits[None] += place * largest
        if not numpy.max(errors, initial=0) <= limits[None]:
            bound = varlen.tolerance.Bound(group.dtype)
            for rows, _, alone in sequences:
                bound.add(reference(group, alone)[0], in_order()[0][rows])
            limits[None] = max(limits[None], float(bound) + place * largest)
    for i, (rows, _, alone) in enumerate(sequences):
        allowed = limits[yardsticks[i]]
        if errors[i] <= allowed:
            continue
        wanted = reference(group, alone)[0]
        ours = varlen.dtypes.widen(out[rows], wanted.dtype)
        error = abs(ours - wanted)
        wrong = ~(error <= numpy.maximum(allowed, place * abs(wanted)))
        if wrong.any():
            error = numpy.where(wrong, numpy.nan_to_num(error, nan=numpy.inf), 0)
            at = row, head, column = numpy.unravel_index(error.argmax(), error.shape)
            problems.append(
                f"out of {group.sequences[i].pair}, row {rows.start + row}, head {head}, column "
                f"{column}: got {ours[at]}, wanted {wanted[at]}; error {error[at]:.3g}, "
                f"allowed {allowed:.3g}"
            )
    # A row that sees no key, or belongs to no sequence, is exactly 0 and -inf.
    none = numpy.isneginf(wanted_lse)

    def error_of(lse):
        with numpy.errstate(invalid="ignore"):
            return abs(lse - wanted_lse) / (1 + abs(wanted_lse))

    wrong = ~(error_of(lse) <= LSE_TOLERANCE[group.dtype])
    if group.dtype in ("f32", "f64") and wrong[~none].any():
        rounding = error_of(in_order()[1])[~none].max()
        wrong &= ~(error_of(lse) <= LSE_TOLERANCE[group.dtype] + 2 * rounding)
    wrong[none] = lse[none] != -numpy.inf
    if wrong.any():
        head, row = numpy.argwhere(wrong)[0]
        problems.append(
            f"lse of {int(wrong.sum())} rows, first head {head}, row {row} "
            f"({'in' if belongs[row] else 'outside of'} a sequence): got "
            f"{lse[head, row]}, wanted {wanted_lse[head, row]}"
        )
    nothing = out.swapaxes(0, 1)[none]
    if not (nothing == 0).all():
        problems.append(f"{int((nothing != 0).sum())} values of rows without a key: not 0")
    return problems
