# RUN: %python %s
"""seqused_q, q_offset and chunks in varlen_attn: results and gradients are the
definition's."""

import torch
from device import HAS_F64, settle
from packed import TOLERANCE, fails, offsets

from varlen import reference
from varlen.torch import AuxRequest, varlen_attn, varlen_attn_out

DTYPE = torch.float64 if HAS_F64 else torch.float32
torch.manual_seed(0)


def integers(*values):
    return torch.tensor(values, dtype=torch.int32)


def inputs(*shape):
    return torch.randn(shape, dtype=DTYPE, requires_grad=True)


q, k, v = inputs(14, 4, 8), inputs(20, 2, 8), inputs(20, 2, 4)
cu_q, cu_k = offsets([5, 0, 9]), offsets([8, 1, 11])
used_q, used_k, moved = integers(3, 0, 6), integers(7, 1, 9), integers(2, 5, -1)
every = {"seqused_q": used_q, "seqused_k": used_k, "q_offset": moved}
for operands, mask in (
    ({"seqused_q": used_q}, {"window_size": (-1, 0)}), (every, {"window_size": (-1, 0)}),
    ({"q_offset": moved}, {"window_size": (2, 1)}), (every, {"window_size": (3, 1)}),
    (every, {"chunk": 4}), (every, {}),
):  # fmt: skip

    def attend(q, k, v, **more):
        return varlen_attn(q, k, v, cu_q, cu_k, enable_gqa=True, **operands, **mask, **more)

    out, lse = attend(q, k, v, return_aux=AuxRequest(lse=True))
    arrays = [x.detach().cpu().numpy() for x in (q, k, v, cu_q, cu_k)]
    given = {name: x.cpu().numpy() for name, x in operands.items()}
    window = mask.get("chunk") or mask.get("window_size", (-1, -1))
    dout = torch.randn_like(out)
    forward, gradients = reference.attention_and_gradients(
        dout.cpu().numpy(), *arrays, **given, window=window
    )
    results = out, lse, *torch.autograd.grad(out, (q, k, v), dout)
    for a, b in zip(results, (*forward, *gradients[:3]), strict=True):
        b, allowed = torch.from_numpy(b.astype("float64")), TOLERANCE[DTYPE]
        assert torch.allclose(a.cpu().double(), b, rtol=allowed, atol=allowed), (operands, mask)
    written = torch.full_like(out, torch.nan)
    with torch.no_grad():
        varlen_attn_out(
            written, q, k, v, cu_q, cu_k, enable_gqa=True, **operands, **mask
        )
    assert torch.equal(written, out)

# One graph, with no value of theirs in it.
compiled = torch.compile(
    lambda q, used, moved: varlen_attn(
        q, k, v, cu_q, cu_k, enable_gqa=True, chunk=4, seqused_q=used, q_offset=moved
    ),
    backend="aot_eager", fullgraph=True,
)  # fmt: skip
for used, offset in ((used_q, moved), (integers(5, 0, 2), integers(0, 1, 2))):
    wanted = varlen_attn(
        q, k, v, cu_q, cu_k, enable_gqa=True, chunk=4, seqused_q=used, q_offset=offset
    )
    assert torch.equal(compiled(q, used, offset), wanted)

settle()
fails(
    ValueError, "seqused_q[0] = 6: expected 0 to 5",
    lambda: varlen_attn(q, k, v, cu_q, cu_k, enable_gqa=True, seqused_q=integers(6, 0, 0)),
)  # fmt: skip
