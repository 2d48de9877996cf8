"""Attentions of `imported` in PyTorch, and as what is exported of them."""

import imported
import ml_dtypes
import numpy as np
import torch
import torch_text

import varlen.torch  # noqa: F401 (registers the operators)

ops = torch.ops.varlen
FORWARD = {argument.name for argument in ops.attn.default._schema.arguments}


# Types that numpy does not have, and one of as many bytes.
_UNKNOWN = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.int8, ml_dtypes.float8_e4m3fn),
}


def to_torch(x):
    for own, (_, other) in _UNKNOWN.items():
        if x.dtype == other:
            return torch.from_numpy(x.view(f"i{x.itemsize}")).view(own)
    return torch.from_numpy(x)


def to_numpy(x):
    integer, other = _UNKNOWN.get(x.dtype, (None, None))
    return x.view(integer).numpy().view(other) if other else x.numpy()


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


class Scored(torch.nn.Module):
    """An attention with each score, of captures in the order of the scores."""

    def forward(self, q, k, v, cu, *captures):
        results, rest = [], list(captures)
        for score in imported.SCORES:
            own, rest = rest[: len(score.captures)], rest[len(score.captures) :]
            results += ops.attn(q, k, v, cu, cu, score=score.written("f32"), captures=own)
        return tuple(results)


def check_scores():
    """That each score of the library is imported as it is written."""
    q, k, v = torch.zeros(6, 4, 16), torch.zeros(6, 2, 16), torch.zeros(6, 2, 16)
    extents = {"heads": 4, "rows": 6, "kv_rows": 6, "entries": 8}
    captures = [
        torch.zeros(shape)
        for score in imported.SCORES
        for shape in imported.captures_of(score, extents).values()
    ]
    arguments = q, k, v, torch.tensor([0, 6], dtype=torch.int32), *captures
    text = torch_text.write(torch.export.export(Scored(), arguments, strict=False))
    imported.check_scores(imported.import_module(text, "varlen-import-torch"))
