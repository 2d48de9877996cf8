"""varlen.attn, the operator that torch_translations has torch.onnx write for varlen_attn."""

from __future__ import annotations

import numpy as np
import onnx.numpy_helper

from .. import scores, text
from ._attend import Packed, emit_packed
from ._builder import is_float
from ._extents import Extent
from ._registry import OWN_DOMAIN, Node, operator

_NAMES = (
    "q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k", "q_offset", "sink",
)  # fmt: skip


def _check(node: Node, inputs, captures, names):
    for name in _NAMES[:5]:
        if inputs[name] is None:
            raise node.error(f"expected an input {name}")
    q, k, v = (inputs[name] for name in "qkv")
    if not is_float(q.element):
        raise node.error(f"expected floats, got {q.element}")
    for name, value in (("q", q), ("k", k), ("v", v)):
        if value.rank != 3 or value.element != q.element or any(isinstance(n, Extent) for n in value.shape[1:]):
            raise node.error(
                f"expected {name} of {q.element}, of rows x a static number of heads x a static head_dim, got "
                f"{value.element} of {list(value.shape)}"
            )
    index = inputs["cu_seqlens_q"].element
    for name in _NAMES[3:8]:
        value = inputs[name]
        if value is not None and (value.rank != 1 or value.element != index or index not in ("i32", "i64")):
            raise node.error(
                f"expected {name} of 1 dimension, of INT32 or INT64 as cu_seqlens_q, got {value.element} of "
                f"{list(value.shape)}"
            )
    if len(captures) != len(names) or None in captures:
        raise node.error(f"expected the captures of the score ({', '.join(names)}), got {len(captures)}")


def _mask(node: Node):
    left, right, chunk = node.attribute("left", -1), node.attribute("right", -1), node.attribute("chunk")
    if left < -1 or right < -1:
        raise node.error(f"expected left and right of -1 and more, got {left} and {right}")
    if chunk is None:
        return None if (left, right) == (-1, -1) else text.mask_attribute((left, right))
    if chunk < 1 or (left, right) != (-1, -1):
        raise node.error(f"expected a chunk of 1 and more without a window, got {chunk} with ({left}, {right})")
    return text.mask_attribute(chunk)


@operator("attn", domain=OWN_DOMAIN)
def _attn(node: Node):
    inputs = {name: node.input(i) for i, name in enumerate(_NAMES)}
    captures = node.inputs[len(_NAMES) :]
    written = node.attribute("score", "")
    try:
        score = scores.parse(written) if written else None
    except ValueError as error:
        raise node.error(error) from None
    _check(node, inputs, captures, score.names if score else ())
    scale = node.attribute("scale")
    if scale is not None:
        scale = np.asarray(onnx.numpy_helper.to_array(scale))
        if scale.shape or not scale > 0:
            raise node.error(f"expected a positive scale, got {scale}")
        scale = float(scale)
    named = {name: inputs[name] for name in _NAMES[5:]}
    rows = [inputs[name] for name in _NAMES[:5]]
    return emit_packed(node, Packed(rows, named, captures, _mask(node), scale, score))
