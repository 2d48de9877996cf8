"""MLIR text of functions with one varlen.attn, one derivative of it, or one varlen.append."""

from .scores import CAPTURES

# What comes behind all other operands: where keys in pages are, and what quantised ones
# are multiplied by.
CACHE = ("block_table", "k_scale", "v_scale")


def mask_attribute(window=(-1, -1), alignment="bottom_right"):
    """#varlen.mask<...> of a window (left, right), -1 = open, or
    #varlen.chunk_mask<...> of the size of a chunk."""
    suffix = "" if alignment == "bottom_right" else f", {alignment}"
    if isinstance(window, int):
        return f"#varlen.chunk_mask<{window}{suffix}>"
    left, right = window
    kind = {(-1, -1): "full", (-1, 0): "causal"}.get(
        (left, right), f"window = ({left}, {right})"
    )
    return f"#varlen.mask<{kind}{suffix}>"


def _float(value):
    """A float as MLIR reads it: with a point, also before an exponent."""
    mantissa, exponent, power = repr(float(value)).partition("e")
    return (mantissa if "." in mantissa else mantissa + ".0") + exponent + power


def _tensor(*shape, element, buffers=False):
    extents = "".join(f"{'?' if n is None else n}x" for n in shape)
    return f"{'memref' if buffers else 'tensor'}<{extents}{element}>"


def _types(
    *, dtype, heads, kv_heads, head_dim, v_head_dim, sink, seqused_q, seqused_k,
    q_offset, tq, tk, sequences, index, buffers=False, score=None, page=None,
    kv_dtype=None, k_scale=None, v_scale=None,
):  # fmt: skip
    """The types of an attention's operands, those that there are, and of its
    results. With a `page`, keys and values are in pages of that many rows, dynamic if it is 0."""

    def tensor(*shape, element=dtype):
        return _tensor(*shape, element=element, buffers=buffers)

    kv_dtype = dtype if kv_dtype is None else kv_dtype
    kv_heads = heads if kv_heads is None else kv_heads
    v_head_dim = head_dim if v_head_dim is None else v_head_dim
    entries = None if sequences is None else sequences + 1
    compute = "f64" if dtype == "f64" else "f32"
    rows = (tk,) if page is None else (None, page or None)
    operands = {
        "q": tensor(tq, heads, head_dim),
        "k": tensor(*rows, kv_heads, head_dim, element=kv_dtype),
        "v": tensor(*rows, kv_heads, v_head_dim, element=kv_dtype),
        "cu_seqlens_q": tensor(entries, element=index),
        "cu_seqlens_k": tensor(entries, element=index) if page is None else None,
        "seqused_q": tensor(sequences, element=index) if seqused_q else None,
        "seqused_k": tensor(sequences, element=index) if seqused_k else None,
        "q_offset": tensor(sequences, element=index) if q_offset else None,
        "sink": tensor(heads, element=compute) if sink else None,
    }
    for capture, of in (score.captures if score else {}).items():
        extents = {"heads": heads, "rows": tq, "kv_rows": tk, "entries": None}
        operands[capture] = tensor(
            *(extents[extent] for extent in CAPTURES[of]), element=compute
        )
    operands["block_table"] = None if page is None else tensor(sequences, None, element="i32")
    results = {
        "out": tensor(tq, heads, v_head_dim),
        "lse": tensor(heads, tq, element=compute),
    }
    extents = {
        "heads": (kv_heads,), "pages": (None, kv_heads),
        "rows": (tk, kv_heads) if page is None else (None, page or None, kv_heads),
    }  # fmt: skip
    for key, of in (("k_scale", k_scale), ("v_scale", v_scale)):
        operands[key] = tensor(*extents[of], element="f32") if of else None
    return {key: type for key, type in operands.items() if type}, results


def _operation(name, types, required, same_cu, window, alignment, scale, score=None):
    """The parameters of a function for operands of `types`, and the operation on
    them; the first `required` operands stand without their names, and the last are the
    captures of `score`."""
    operands = {key: f"%{key}" for key in types if key not in CACHE}
    if same_cu:
        operands["cu_seqlens_k"] = "%cu_seqlens_q"
    values = list(operands.items())
    count = len(score.captures) if score else 0
    values, captures = values[: len(values) - count], values[len(values) - count :]
    attributes = f"mask = {mask_attribute(window, alignment)}"
    if scale is not None:
        compute = "f64" if types["q"].endswith("f64>") else "f32"
        attributes += f", scale = {_float(scale)} : {compute}"
    parameters = ",\n    ".join(
        f'%{key}: {type} {{varlen.name = "{key}"}}'
        for key, type in types.items()
        if not (same_cu and key == "cu_seqlens_k")
    )
    text = f"varlen.{name} {', '.join(value for _, value in values[:required])}"
    text += "".join(f" {key}({value})" for key, value in values[required:])
    if captures:
        text += f" captures({', '.join(value for _, value in captures)})"
    text += "".join(f" {key}(%{key})" for key in CACHE if key in types)
    return parameters, text, attributes


def _region(score, types):
    """The text of a score region, if there is one."""
    if score is None:
        return ""
    return " " + score.region("f64" if types["q"].endswith("f64>") else "f32")


def _split(types, score):
    """The types of operands, and of the captures of `score`, which are the last."""
    count = len(types) - (len(score.captures) if score else 0)
    return types[:count], types[count:]


def _results(types):
    return ", ".join(f'{type} {{varlen.name = "{key}"}}' for key, type in types.items())


def attn(
    *, dtype="f32", heads=2, kv_heads=None, head_dim=64, v_head_dim=None,
    window=(-1, -1), alignment="bottom_right", scale=None, sink=False,
    seqused_q=False, seqused_k=False, q_offset=False, tq=None, tk=None,
    sequences=None, index="i32", same_cu=False, lse=True, name="attention",
    buffers=False, score=None, page=None, kv_dtype=None, k_scale=None, v_scale=None,
):  # fmt: skip
    """A module with one function. Its arguments are named q, k, v, cu_seqlens_q,
    cu_seqlens_k (with same_cu only cu_seqlens_q), seqused_q, seqused_k, q_offset
    and sink, those that there are; its results out and lse.

    With `page` keys are in pages of so many rows, dynamic if it is 0: k and v have rank 4,
    cu_seqlens_k is not there, and the last argument is block_table.

    `kv_dtype` is "i8" or "f8E4M3FN" if k and v are quantised. `k_scale` and `v_scale` say
    what a number of these, the last arguments of all, is of: each head ("heads"), page and
    head ("pages") or row and head ("rows").

    Extents that are None are dynamic (tq, tk, sequences: by default); head_dim
    and heads may be None too. `sink` and the seqused and offset flags say which
    operands there are. `score` is one of `varlen.scores`, whose captures are the last
    arguments. With `buffers` the function is on memrefs, and out and lse
    are its last two arguments.
    """
    types, results = _types(
        dtype=dtype, heads=heads, kv_heads=kv_heads, head_dim=head_dim,
        v_head_dim=v_head_dim, sink=sink, seqused_q=seqused_q, seqused_k=seqused_k,
        q_offset=q_offset, tq=tq, tk=tk, sequences=sequences, index=index,
        buffers=buffers, score=score, page=page, kv_dtype=kv_dtype, k_scale=k_scale,
        v_scale=v_scale,
    )  # fmt: skip
    return attn_function(
        types, results, window=window, alignment=alignment, scale=scale,
        same_cu=same_cu, lse=lse, name=name, buffers=buffers, score=score,
    )  # fmt: skip


def attn_function(
    types, results, *, window=(-1, -1), alignment="bottom_right", scale=None,
    same_cu=False, lse=True, name="attention", buffers=False, score=None,
):  # fmt: skip
    """The module of `attn` for the types of operands, by name and in the op's order,
    and of out and lse. With a block_table keys are in pages, and have no cu_seqlens_k."""
    paged = "block_table" in types
    parameters, operation, attributes = _operation(
        "attn", types, 4 if paged else 5, same_cu, window, alignment, scale, score
    )
    region = _region(score, types)
    first = [type for key, type in types.items() if key not in CACHE]
    operand_types, capture_types = _split(first, score)
    capture_types += [types[key] for key in CACHE if key in types]
    if buffers:
        out_type, lse_type = results.values()
        return (
            f"func.func @{name}(\n    {parameters},\n"
            f'    %out: {out_type} {{varlen.name = "out"}},\n'
            f'    %lse: {lse_type} {{varlen.name = "lse"}}) {{\n'
            f"  {operation} outs(%out, %lse) {{{attributes}}}\n"
            f"    : ({', '.join([*operand_types, out_type, lse_type, *capture_types])})"
            f" -> (){region}\n"
            "  return\n}\n"
        )
    returned = {key: type for key, type in results.items() if lse or key != "lse"}
    return (
        f"func.func @{name}(\n    {parameters})\n    -> ({_results(returned)}) {{\n"
        f"  %out, %lse = {operation} {{{attributes}}}\n"
        f"    : ({', '.join(operand_types + capture_types)})"
        f" -> ({', '.join(results.values())}){region}\n"
        f"  return {', '.join('%' + key for key in returned)}"
        f" : {', '.join(returned.values())}\n"
        "}\n"
    )


def attn_grad(
    *, dtype="f32", heads=2, kv_heads=None, head_dim=64, v_head_dim=None,
    window=(-1, -1), alignment="bottom_right", scale=None, sink=False, dlse=False,
    seqused_q=False, seqused_k=False, q_offset=False, tq=None, tk=None,
    sequences=None, index="i32", same_cu=False, name="gradients", buffers=False,
    score=None, wrt_captures=True,
):  # fmt: skip
    """A module with one function around one varlen.attn_grad. Its arguments are
    named dout, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k (with same_cu only
    cu_seqlens_q), dlse, seqused_q, seqused_k, q_offset and sink, those that there
    are, and the captures; its results dq, dk, dv, with a sink dsink, and with
    `wrt_captures` of each capture its name after a d, or with `buffers` its last
    arguments. Options are those of `attn`.
    """
    forward, results = _types(
        dtype=dtype, heads=heads, kv_heads=kv_heads, head_dim=head_dim,
        v_head_dim=v_head_dim, sink=sink, seqused_q=seqused_q, seqused_k=seqused_k,
        q_offset=q_offset, tq=tq, tk=tk, sequences=sequences, index=index,
        buffers=buffers, score=score,
    )  # fmt: skip
    types = {"dout": results["out"]}
    types |= {key: forward.pop(key) for key in ("q", "k", "v")}
    types |= results
    types |= {key: forward.pop(key) for key in ("cu_seqlens_q", "cu_seqlens_k")}
    types |= {"dlse": results["lse"]} if dlse else {}
    types |= forward
    return attn_grad_function(
        types, window=window, alignment=alignment, scale=scale, same_cu=same_cu,
        name=name, buffers=buffers, score=score, wrt_captures=wrt_captures,
    )  # fmt: skip


def attn_grad_function(
    types, *, window=(-1, -1), alignment="bottom_right", scale=None, same_cu=False,
    name="gradients", buffers=False, score=None, wrt_captures=True,
):  # fmt: skip
    """The module of `attn_grad` for the types of operands, by name and in the op's
    order."""
    parameters, operation, attributes = _operation(
        "attn_grad", types, 8, same_cu, window, alignment, scale, score
    )
    region = _region(score, types)
    operand_types, capture_types = _split(list(types.values()), score)
    captures = score.captures if score and wrt_captures else ()
    if captures:
        numbers = ", ".join(map(str, range(len(captures))))
        attributes += f", wrt_captures = array<i64: {numbers}>"
    sources = ["q", "k", "v", "sink", *captures]
    gradients = {f"d{key}": types[key] for key in sources if key in types}
    values = ", ".join(f"%{key}" for key in gradients)
    result_types = ", ".join(gradients.values())
    if buffers:
        outs = ",\n    ".join(
            f'%{key}: {type} {{varlen.name = "{key}"}}' for key, type in gradients.items()
        )
        return (
            f"func.func @{name}(\n    {parameters},\n    {outs}) {{\n"
            f"  {operation} outs({values}) {{{attributes}}}\n"
            f"    : ({', '.join([*operand_types, result_types, *capture_types])})"
            f" -> (){region}\n"
            "  return\n}\n"
        )
    return (
        f"func.func @{name}(\n    {parameters})\n    -> ({_results(gradients)}) {{\n"
        f"  {values} = {operation} {{{attributes}}}\n"
        f"    : ({', '.join(types.values())}) -> ({result_types}){region}\n"
        f"  return {values} : {result_types}\n"
        "}\n"
    )


def attn_jvp(
    *, dtype="f32", heads=2, kv_heads=None, head_dim=64, v_head_dim=None,
    window=(-1, -1), alignment="bottom_right", scale=None, sink=False,
    seqused_q=False, seqused_k=False, q_offset=False, tq=None, tk=None,
    sequences=None, index="i32", same_cu=False, name="tangents", score=None,
    wrt_captures=True,
):  # fmt: skip
    """A module with one function around one varlen.attn_jvp. Its arguments are named q, k,
    v, tq, tk, tv, cu_seqlens_q, cu_seqlens_k (with same_cu only cu_seqlens_q), seqused_q,
    seqused_k, q_offset, sink and tsink, those that there are, the captures, and with
    `wrt_captures` the tangent of each capture, its name after a t; its results out, lse,
    tout and tlse. Options are those of `attn`.
    """
    types, results = _types(
        dtype=dtype, heads=heads, kv_heads=kv_heads, head_dim=head_dim,
        v_head_dim=v_head_dim, sink=sink, seqused_q=seqused_q, seqused_k=seqused_k,
        q_offset=q_offset, tq=tq, tk=tk, sequences=sequences, index=index, score=score,
    )  # fmt: skip
    forward = _without_captures(types, score)
    rows = {key: forward.pop(key) for key in ("q", "k", "v")}
    operands = rows | {f"t{key}": type for key, type in rows.items()} | forward
    operands |= _tangent_operands(types, sink, score, wrt_captures)
    return attn_jvp_function(
        operands, results, window=window, alignment=alignment, scale=scale, same_cu=same_cu,
        name=name, score=score,
    )  # fmt: skip


def attn_jvp_function(
    types, results, *, window=(-1, -1), alignment="bottom_right", scale=None, same_cu=False,
    name="tangents", score=None,
):  # fmt: skip
    """The module of `attn_jvp` for the types of operands, by name and in the order of its
    arguments, and of out and lse. Captures that have no tangent among them are constant."""
    results = results | {f"t{key}": type for key, type in results.items()}
    return _tangent_function(
        "attn_jvp", 8, types, results, window=window, alignment=alignment, scale=scale,
        same_cu=same_cu, name=name, score=score,
    )  # fmt: skip


def attn_jvp_grad(
    *, dtype="f32", heads=2, kv_heads=None, head_dim=64, v_head_dim=None,
    window=(-1, -1), alignment="bottom_right", scale=None, sink=False, dtlse=False, dout=False,
    dlse=False, seqused_q=False, seqused_k=False, q_offset=False, tq=None, tk=None,
    sequences=None, index="i32", same_cu=False, name="second_gradients", score=None,
    wrt_captures=True,
):  # fmt: skip
    """A module with one function around one varlen.attn_jvp_grad. Its arguments are named
    dtout, q, k, v, tq, tk, tv, out, lse, tout, tlse, cu_seqlens_q, cu_seqlens_k (with same_cu
    only cu_seqlens_q), dtlse, dout, dlse, seqused_q, seqused_k, q_offset, sink and tsink, those
    that there are, the captures, and with `wrt_captures` the tangent of each capture, its name
    after a t; its results are those of `attn_grad`. Options are those of `attn`.
    """
    types, results = _types(
        dtype=dtype, heads=heads, kv_heads=kv_heads, head_dim=head_dim,
        v_head_dim=v_head_dim, sink=sink, seqused_q=seqused_q, seqused_k=seqused_k,
        q_offset=q_offset, tq=tq, tk=tk, sequences=sequences, index=index, score=score,
    )  # fmt: skip
    out, lse = results["out"], results["lse"]
    forward = _without_captures(types, score)
    rows = {key: forward.pop(key) for key in ("q", "k", "v")}
    operands = {"dtout": out} | rows | {f"t{key}": type for key, type in rows.items()}
    operands |= {"out": out, "lse": lse, "tout": out, "tlse": lse}
    operands |= {key: forward.pop(key) for key in ("cu_seqlens_q", "cu_seqlens_k")}
    given = {"dtlse": (dtlse, lse), "dout": (dout, out), "dlse": (dlse, lse)}
    operands |= {key: type for key, (is_given, type) in given.items() if is_given}
    operands |= forward | _tangent_operands(types, sink, score, wrt_captures)
    return attn_jvp_grad_function(
        operands, window=window, alignment=alignment, scale=scale, same_cu=same_cu, name=name,
        score=score,
    )  # fmt: skip


def attn_jvp_grad_function(
    types, *, window=(-1, -1), alignment="bottom_right", scale=None, same_cu=False,
    name="second_gradients", score=None,
):  # fmt: skip
    """The module of `attn_jvp_grad` for the types of operands, by name and in the order of its
    arguments. Captures that have no tangent among them have no gradient."""
    captures = [key for key in (score.captures if score else ()) if f"t{key}" in types]
    sources = [key for key in ("q", "k", "v", "sink", *captures) if key in types]
    return _tangent_function(
        "attn_jvp_grad", 13, types, {f"d{key}": types[key] for key in sources},
        window=window, alignment=alignment, scale=scale, same_cu=same_cu, name=name, score=score,
    )  # fmt: skip


def _without_captures(types, score):
    captures = score.captures if score else ()
    return {key: type for key, type in types.items() if key not in captures}


def _tangent_operands(types, sink, score, wrt_captures):
    """The last operands of what reads tangents: tsink, the captures, and their tangents."""
    captures = {key: types[key] for key in score.captures} if score else {}
    operands = ({"tsink": types["sink"]} if sink else {}) | captures
    return operands | {f"t{key}": type for key, type in captures.items() if wrt_captures}


def _tangent_function(
    operation_name, required, types, results, *, window, alignment, scale, same_cu, name, score
):  # fmt: skip
    """The module of an operation that reads tangents, for the types of operands, by name and in
    the order of its arguments, and of results. Captures that have no tangent among them are
    constant."""
    captures = list(score.captures) if score else []
    varied = [key for key in captures if f"t{key}" in types]
    tangents = {f"t{key}": types[f"t{key}"] for key in varied}
    operands = {key: type for key, type in types.items() if key not in tangents}
    parameters, operation, attributes = _operation(
        operation_name, operands, required, same_cu, window, alignment, scale, score
    )
    if tangents:
        numbers = ", ".join(str(captures.index(key)) for key in varied)
        attributes += f", wrt_captures = array<i64: {numbers}>"
        operation += f" tcaptures({', '.join(f'%{key}' for key in tangents)})"
        parameters += "".join(
            f',\n    %{key}: {type} {{varlen.name = "{key}"}}' for key, type in tangents.items()
        )
    values = ", ".join(f"%{key}" for key in results)
    operand_types, capture_types = _split(list(operands.values()), score)
    operand_types += [*tangents.values(), *capture_types]
    return (
        f"func.func @{name}(\n    {parameters})\n    -> ({_results(results)}) {{\n"
        f"  {values} = {operation} {{{attributes}}}\n"
        f"    : ({', '.join(operand_types)}) -> ({', '.join(results.values())})"
        f"{_region(score, types)}\n"
        f"  return {values} : {', '.join(results.values())}\n"
        "}\n"
    )


# Extents of the operands of varlen.append that are part of their types.
_APPEND_STATIC = {
    "k": (1, 2), "v": (1, 2), "cos": (1,), "sin": (1,), "k_cache": (2, 3), "v_cache": (2, 3),
    "k_scale": (2,), "v_scale": (2,),
}  # fmt: skip


# Operands that it writes to.
WRITTEN = ("k_cache", "v_cache", "k_scale", "v_scale")


def open_extents(name, shape):
    """The shape of an operand of varlen.append, with None for extents that are part of no type."""
    static = _APPEND_STATIC.get(name, ())
    return tuple(n if d in static else None for d, n in enumerate(shape))


def append_function(operands, *, interleaved=False, name="append"):
    """A module with one function around one varlen.append. Its arguments are k, v, cu_seqlens,
    seqused_k, block_table, cos and sin, those that there are, on tensors, and k_cache, v_cache,
    k_scale and v_scale, memrefs that it writes to: `operands` has the element and the shape of each, in this order.
    All may have any strides but the last, which is 1."""

    def extents_of(key, element, shape):
        extents = ("?" if n is None else n for n in open_extents(key, shape))
        return "".join(f"{n}x" for n in extents) + element

    parameters, views, types = [], [], []
    for key, (element, shape) in operands.items():
        extents = extents_of(key, element, shape)
        strides = ", ".join(["?"] * (len(shape) - 1) + ["1"])
        if key in WRITTEN:
            types.append(f"memref<{extents}, strided<[{strides}]>>")
            parameters.append(f'%{key}: {types[-1]} {{varlen.name = "{key}"}}')
            continue
        types.append(f"memref<{extents}, strided<[{strides}], offset: ?>>")
        parameters.append(f'%{key}: tensor<{extents}> {{varlen.name = "{key}"}}')
        views.append(
            f"  %of_{key} = bufferization.to_buffer %{key} read_only"
            f" : tensor<{extents}> to {types[-1]}\n"
        )
    table = " block_table(%of_block_table)" if "block_table" in operands else ""
    rotary = " rotary(%of_cos, %of_sin)" if "cos" in operands else ""
    scales = " scales(%k_scale, %v_scale)" if "k_scale" in operands else ""
    flag = " interleaved" if interleaved else ""
    separator = ",\n    "
    return (
        f"func.func @{name}(\n    {separator.join(parameters)}) {{\n"
        f"{''.join(views)}"
        f"  varlen.append %of_k, %of_v, %of_cu_seqlens seqused_k(%of_seqused_k){table}{rotary}"
        f" outs(%k_cache, %v_cache){scales}{flag}\n"
        f"    : ({', '.join(types)}) -> ()\n"
        "  return\n}\n"
    )
