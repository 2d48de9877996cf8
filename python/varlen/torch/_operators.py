"""The operators torch.ops.varlen.attn, attn_out and those of derivatives: their schemas.

Their kernels are registered with the dispatcher by hand: torch.library.custom_op
costs 15 us a call more, several times what the attention of a few rows takes.
"""

import torch

from ..scores import parse

_INPUTS = "Tensor q, Tensor k, Tensor v, "
_OPTIONS = (
    "Tensor? seqused_k=None, Tensor? sink=None, "
    "int left=-1, int right=-1, float? scale=None, str score='', Tensor[]? captures=None, "
    "Tensor? seqused_q=None, Tensor? q_offset=None, int? chunk=None"
)
# Keys in pages have a block_table and no cu_seqlens_k.
_FORWARD = (
    f"{_INPUTS}Tensor cu_seqlens_q, Tensor? cu_seqlens_k, {_OPTIONS}, Tensor? block_table=None"
)
library = torch.library.Library("varlen", "DEF")
for _schema in (
    f"attn({_FORWARD}) -> (Tensor out, Tensor lse)",
    f"attn_out(Tensor(a!) out, {_FORWARD}) -> Tensor lse",
    "append(Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor k, Tensor v, Tensor cu_seqlens, "
    "Tensor seqused_k, Tensor? block_table=None, Tensor? cos=None, Tensor? sin=None, "
    "bool interleaved=False, Tensor(c!)? k_scale=None, Tensor(d!)? v_scale=None) -> ()",
    f"attn_quantised({_FORWARD}, Tensor? k_scale=None, Tensor? v_scale=None) "
    "-> (Tensor out, Tensor lse)",
    f"attn_backward(Tensor? dout, Tensor? dlse, {_INPUTS}Tensor out, Tensor lse, "
    f"Tensor cu_seqlens_q, Tensor cu_seqlens_k, {_OPTIONS}) "
    "-> (Tensor dq, Tensor dk, Tensor dv, Tensor dsink, Tensor[] dcaptures)",
    f"attn_jvp({_INPUTS}Tensor tq, Tensor tk, Tensor tv, Tensor cu_seqlens_q, "
    f"Tensor cu_seqlens_k, {_OPTIONS}, Tensor? tsink=None, Tensor[]? tcaptures=None) "
    "-> (Tensor out, Tensor lse, Tensor tout, Tensor tlse)",
    f"attn_jvp_backward(Tensor? dtout, Tensor? dtlse, Tensor? dout, Tensor? dlse, {_INPUTS}"
    "Tensor tq, Tensor tk, Tensor tv, Tensor out, Tensor lse, Tensor tout, Tensor tlse, "
    f"Tensor cu_seqlens_q, Tensor cu_seqlens_k, {_OPTIONS}, Tensor? tsink=None, "
    "Tensor[]? tcaptures=None) "
    "-> (Tensor dq, Tensor dk, Tensor dv, Tensor dsink, Tensor[] dcaptures)",
):
    # Strides of results follow from those of q, k and v.
    _tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
    library.define(_schema, tags=_tags)
# The overloads: to find them by their packets takes longer than most of a call.
attn = torch.ops.varlen.attn.default
attn_out = torch.ops.varlen.attn_out.default
append = torch.ops.varlen.append.default
attn_quantised = torch.ops.varlen.attn_quantised.default
attn_backward = torch.ops.varlen.attn_backward.default
attn_jvp = torch.ops.varlen.attn_jvp.default
attn_jvp_backward = torch.ops.varlen.attn_jvp_backward.default

_DEFAULTS = {
    op: {
        argument.name: argument.default_value if argument.has_default_value() else None
        for argument in op._schema.arguments
    }
    for op in (attn, attn_out, append, attn_quantised, attn_backward, attn_jvp, attn_jvp_backward)
}


def name_arguments(op, arguments, options=None):
    """Arguments of a call of the operator by their names in the schema, and the defaults of
    others."""
    names = _DEFAULTS[op]
    return names | dict(zip(names, arguments)) | (options or {})


def call(op, named):
    """Calls the operator with those of the arguments by name that it has."""
    return op(*(named.get(name, default) for name, default in _DEFAULTS[op].items()))


def name_tensors(named):
    """The tensors among arguments by name, each capture by its own, a tangent of one by that
    after a t, and what captures are of. Raises ValueError where captures are not those of the
    score, or tangents not those of captures."""
    score = parse(named["score"]) if named["score"] else None
    captures, given = score.captures if score else {}, named["captures"] or ()
    if len(captures) != len(given):
        raise ValueError(
            f"captures: expected {len(captures)} tensors ({', '.join(captures)}), got {len(given)}"
        )
    tensors = {name: x for name, x in named.items() if isinstance(x, torch.Tensor)}
    tensors |= zip(captures, given)
    if tangents := named.get("tcaptures"):
        if len(captures) != len(tangents):
            raise ValueError(
                f"tcaptures: expected {len(captures)} tensors, one of each capture, got "
                f"{len(tangents)}"
            )
        tensors |= zip((f"t{name}" for name in captures), tangents)
    return tensors, captures
