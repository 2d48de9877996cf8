"""varlen_attn in what torch.onnx exports: the operator `attn` of the domain `varlen`, which
import_model knows.

Inputs: q (Tq, Hq, D), k (Tk, Hkv, D), v (Tk, Hkv, Dv), cu_seqlens_q and cu_seqlens_k
(N + 1,), then seqused_q, seqused_k and q_offset (N,) and sink (Hq,), which may be missing,
and the captures of the score. Outputs: out (Tq, Hq, Dv) and lse (Hq, Tq). Attributes: left
and right, the window, -1: open; chunk and scale, a tensor of rank 0 of f64, which may be missing;
score, the MLIR text of a score, or nothing.
"""

from __future__ import annotations

import functools

import numpy as np
import onnx
import onnxscript

from ..torch import _operators
from ._registry import OWN_DOMAIN, OWN_VERSION


@functools.cache
def _operator(captures):
    """The operator with as many captures, for onnxscript, which takes inputs of any number
    to be all inputs."""
    defs = onnx.defs
    option = defs.OpSchema.FormalParameterOption
    floats = [f"tensor({t})" for t in ("float", "double", "float16", "bfloat16")]
    parameters = [
        *((name, "T", option.Single) for name in ("q", "k", "v")),
        *((name, "I", option.Single) for name in ("cu_seqlens_q", "cu_seqlens_k")),
        *((name, "I", option.Optional) for name in ("seqused_q", "seqused_k", "q_offset")),
        ("sink", "C", option.Optional),
        *((f"capture{i}", "C", option.Single) for i in range(captures)),
    ]  # fmt: skip
    kinds = defs.OpSchema.AttrType
    schema = defs.OpSchema(
        "attn", OWN_DOMAIN, OWN_VERSION, doc=__doc__ or "",
        inputs=[
            defs.OpSchema.FormalParameter(name, type, param_option=kind)
            for name, type, kind in parameters
        ],
        outputs=[defs.OpSchema.FormalParameter("out", "T"), defs.OpSchema.FormalParameter("lse", "C")],
        type_constraints=[
            ("T", floats, "of rows"), ("C", floats[:2], "of scores"),
            ("I", ["tensor(int32)", "tensor(int64)"], "of places in rows"),
        ],
        attributes=[
            *(defs.OpSchema.Attribute(name, onnx.helper.make_attribute(name, -1)) for name in ("left", "right")),
            defs.OpSchema.Attribute("chunk", kinds.INT, required=False),
            defs.OpSchema.Attribute("scale", kinds.TENSOR, required=False),
            defs.OpSchema.Attribute("score", onnx.helper.make_attribute("score", "")),
        ],
    )  # fmt: skip
    opset = onnxscript.values.Opset(OWN_DOMAIN, OWN_VERSION)
    return onnxscript.values.Op(opset, "attn", schema)


def _attn(
    q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k=None, sink=None, left=-1, right=-1, scale=None, score="",
    captures=None, seqused_q=None, q_offset=None, chunk=None,
):  # fmt: skip
    """torch.ops.varlen.attn, whose parameters these are."""
    inputs = [q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k, q_offset, sink, *(captures or ())]
    while inputs[-1] is None:
        inputs.pop()
    # Attributes that are floats have 32 bits.
    scale = None if scale is None else onnxscript.ir.tensor(np.float64(scale), name="scale")
    attributes = {"left": left, "right": right, "score": score, "chunk": chunk, "scale": scale}
    given = {name: value for name, value in attributes.items() if value is not None}
    return _operator(len(captures or ()))(*inputs, **given)


def torch_translations():
    """How torch.onnx exports varlen_attn, its `custom_translation_table`: a new dict, for
    torch.onnx.export(..., dynamo=True). Needs PyTorch and onnxscript."""
    return {_operators.attn: _attn}
