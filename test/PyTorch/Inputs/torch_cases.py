"""Attentions of `imported` in PyTorch, and as what is exported of them."""

import imported
import ml_dtypes
import numpy as np
import torch
import torch_text

import varlen.torch  # noqa: F401 (registers the operators)

ops = torch.ops.varlen
FORWARD = {argument.name for argument in ops.attn.default._schema.arguments}


def to_torch(x):
    if x.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


def to_numpy(x):
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return x.numpy()


def is_offered(case):
    options = {"chunk": case.chunk is not None, "seqused_q": case.seqused_q, "q_offset": case.q_offset}
    return case.alignment == "bottom_right" and all(
        name in FORWARD for name, wanted in options.items() if wanted
    )


class Attention(torch.nn.Module):
    """out, lse and all gradients of operands, dout and dlse, in their order."""

    def __init__(self, case, names):
        super().__init__()
        self.case, self.names = case, names

    def forward(self, dout, dlse, *operands):
        case, given = self.case, dict(zip(self.names, operands, strict=True))
        options = {"left": case.window[0], "right": case.window[1], "scale": case.scale}
        if case.chunk is not None:
            options["chunk"] = case.chunk
        if case.score is not None:
            options["score"] = case.score.written("f64" if case.element == "f64" else "f32")
            options["captures"] = [given.pop(name) for name in case.score.captures]
        q, k, v, cu_q, cu_k = (given.pop(name) for name in ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k"))
        out, lse = ops.attn(q, k, v, cu_q, cu_k, **given, **options)
        dq, dk, dv, dsink, dcaptures = ops.attn_backward(
            dout, dlse if case.lse else None, q, k, v, out, lse, cu_q, cu_k, **given, **options
        )
        results = [out, lse, dq, dk, dv, *dcaptures]
        return tuple(results + [dsink] if case.sink else results)


def check(case, rng):
    """That the imported module computes what the operators do."""
    given, dout, dlse = imported.operands(case, rng)
    arguments = [to_torch(x) for x in (dout, dlse, *given.values())]
    module = Attention(case, tuple(given))
    text = torch_text.write(torch.export.export(module, tuple(arguments), strict=False))
    text = torch_text.to_builtin(imported.import_module(text, "varlen-import-torch"))
    got = imported.run(text, [to_numpy(x) for x in arguments])
    imported.check(str(case), case.element, got, [to_numpy(x) for x in module(*arguments)])
