"""MLIR text of functions with one varlen.attn."""


def mask_attribute(window=(-1, -1), alignment="bottom_right"):
    """#varlen.mask<...> of a window (left, right), -1 = open."""
    left, right = window
    kind = {(-1, -1): "full", (-1, 0): "causal"}.get(
        (left, right), f"window = ({left}, {right})"
    )
    suffix = "" if alignment == "bottom_right" else f", {alignment}"
    return f"#varlen.mask<{kind}{suffix}>"


def attn(
    *, dtype="f32", heads=2, kv_heads=None, head_dim=64, v_head_dim=None,
    window=(-1, -1), alignment="bottom_right", scale=None, sink=False,
    seqused_q=False, seqused_k=False, q_offset=False, tq=None, tk=None,
    sequences=None, index="i32", same_cu=False, lse=True, name="attention",
    buffers=False,
):  # fmt: skip
    """A module with one function. Its arguments are named q, k, v, cu_seqlens_q,
    cu_seqlens_k (with same_cu only cu_seqlens_q), seqused_q, seqused_k, q_offset
    and sink, those that there are; its results out and lse.

    Extents that are None are dynamic (tq, tk, sequences: by default); head_dim
    and heads may be None too. `sink` and the seqused and offset flags say which
    operands there are. With `buffers` the function is on memrefs, and out and lse
    are its last two arguments.
    """

    def tensor(*shape, element=dtype):
        extents = "".join(f"{'?' if n is None else n}x" for n in shape)
        return f"{'memref' if buffers else 'tensor'}<{extents}{element}>"

    kv_heads = heads if kv_heads is None else kv_heads
    v_head_dim = head_dim if v_head_dim is None else v_head_dim
    entries = None if sequences is None else sequences + 1
    lse_element = "f64" if dtype == "f64" else "f32"
    arguments = {
        "q": tensor(tq, heads, head_dim),
        "k": tensor(tk, kv_heads, head_dim),
        "v": tensor(tk, kv_heads, v_head_dim),
        "cu_seqlens_q": tensor(entries, element=index),
        "cu_seqlens_k": tensor(entries, element=index),
        "seqused_q": tensor(sequences, element=index) if seqused_q else None,
        "seqused_k": tensor(sequences, element=index) if seqused_k else None,
        "q_offset": tensor(sequences, element=index) if q_offset else None,
        "sink": tensor(heads, element=lse_element) if sink else None,
    }
    arguments = {key: type for key, type in arguments.items() if type}
    operands = {key: f"%{key}" for key in arguments}
    types = list(arguments.values())
    if same_cu:
        del arguments["cu_seqlens_k"]
        operands["cu_seqlens_k"] = "%cu_seqlens_q"
    required = ", ".join(list(operands.values())[:5])
    optional = "".join(
        f" {key}({value})" for key, value in list(operands.items())[5:]
    )
    attributes = f"mask = {mask_attribute(window, alignment)}"
    if scale is not None:
        attributes += f", scale = {float(scale)!r} : f32"
    out_type = tensor(tq, heads, v_head_dim)
    lse_type = tensor(heads, tq, element=lse_element)
    parameters = ",\n    ".join(
        f'%{key}: {type} {{varlen.name = "{key}"}}' for key, type in arguments.items()
    )
    if buffers:
        return (
            f"func.func @{name}(\n    {parameters},\n"
            f'    %out: {out_type} {{varlen.name = "out"}},\n'
            f'    %lse: {lse_type} {{varlen.name = "lse"}}) {{\n'
            f"  varlen.attn {required}{optional} outs(%out, %lse) {{{attributes}}}\n"
            f"    : ({', '.join([*types, out_type, lse_type])}) -> ()\n"
            "  return\n}\n"
        )
    results = [("out", out_type)] + ([("lse", lse_type)] if lse else [])
    result_types = ", ".join(
        f'{type} {{varlen.name = "{key}"}}' for key, type in results
    )
    return (
        f"func.func @{name}(\n    {parameters})\n    -> ({result_types}) {{\n"
        f"  %out, %lse = varlen.attn {required}{optional} {{{attributes}}}\n"
        f"    : ({', '.join(types)}) -> ({out_type}, {lse_type})\n"
        f"  return {', '.join('%' + key for key, _ in results)}"
        f" : {', '.join(type for _, type in results)}\n"
        "}\n"
    )
