# RUN: %python %s %t
# RUN: %python %s %t --load
# RUN: %if long %{ %python %s %t --whole %}
"""What torch.export has of the operators is imported and computes the same: every option, each
kind of capture, results and all gradients; each score of the library is imported as it is
written. Programs with scores run in a process that has made no such score, and modules with
scores pickle. `make check-all` takes all options with every score. With torch-mlir in the
environment modules are what it makes."""

import argparse
import copy
import io
import pathlib
import pickle

import imported
import numpy as np
import torch
import torch_text
from torch_cases import check, check_scores, is_offered

import varlen
from varlen import scores
from varlen.torch import flash_attn_varlen_func, varlen_attn

# -- Another process ----------------------------------------------------------------


class Scored(torch.nn.Module):
    """A score that is made where it is used, one that is kept, and the shim's."""

    def __init__(self, cap):
        super().__init__()
        self.cap, self.score = cap, scores.compose(scores.softcap(cap), scores.alibi())

    def forward(self, q, cu, slopes):
        x = varlen_attn(q, q, q, cu, cu, score=scores.softcap(self.cap))
        y = varlen_attn(q, q, q, cu, cu, score=self.score, captures=[slopes])
        return x + y + flash_attn_varlen_func(q, q, q, cu, cu, softcap=self.cap, alibi_slopes=slopes)


def own():
    """A score that is none of the library's."""
    return scores.Score(
        "squares", lambda type: f"%new = arith.mulf %score, %score : {type}", lambda s, *_: s * s,
        lambda s, *_: [2 * s],
    )  # fmt: skip


def save(folder):
    folder.mkdir(parents=True, exist_ok=True)
    q, cu, slopes = torch.randn(20, 2, 16), torch.tensor([0, 7, 20], dtype=torch.int32), torch.rand(2)
    arguments = q, cu, slopes
    module = Scored(5.0)
    torch.export.save(torch.export.export(module, arguments), folder / "program.pt2")
    results = [module(*arguments), varlen_attn(q, q, q, cu, cu, score=own())]
    kept = [scores.t5_bias(8, max_distance=6), scores.capped_alibi(3), own(), module.score]
    (folder / "pickle").write_bytes(pickle.dumps((arguments, results, kept, own().texts)))
    # Here they stay what they are.
    copies = pickle.loads(pickle.dumps(kept))
    assert copies[0] is kept[0] and copies[1] is kept[1] and copies[3] is kept[3]
    assert copy.deepcopy(kept[2]) is kept[2] and copy.copy(kept[2]) is kept[2]
    model = torch.nn.Sequential(copy.deepcopy(module))
    torch.save(model, io.BytesIO())
    assert torch.equal(model[0](*arguments), results[0])
    # A changed number is another constant, of the shim too; one graph holds several.
    for cap in (5.0, 7.0, 7):
        model = Compiled(cap)
        assert torch.allclose(torch.compile(model, fullgraph=True, backend="aot_eager")(*arguments), model(*arguments), atol=1e-6)
    compiled = torch.compile(vary, fullgraph=True, backend="aot_eager")
    for numbers in ((5.0, 3), (7.0, 3), (7.5, 4)):
        assert torch.equal(compiled(*arguments, *numbers), vary(*arguments, *numbers))


class Compiled(torch.nn.Module):
    def __init__(self, cap):
        super().__init__()
        self.parts = torch.nn.ModuleList([Scored(cap), Scored(cap + 1)])

    def forward(self, q, cu, slopes):
        return sum(part(q, cu, slopes) for part in self.parts)


def vary(q, cu, slopes, cap, size):
    score = scores.compose(scores.compose(scores.softcap(cap), scores.alibi()), scores.chunked(size))
    x = varlen_attn(q, q, q, cu, cu, score=score, captures=[slopes])
    return x + flash_attn_varlen_func(q, q, q, cu, cu, softcap=cap)


def load(folder):
    (q, cu, slopes), results, kept, texts = pickle.loads((folder / "pickle").read_bytes())
    assert kept[0] is scores.t5_bias(8, max_distance=6) and kept[1] is scores.capped_alibi(3)
    assert kept[2].texts == texts
    assert torch.equal(varlen_attn(q, q, q, cu, cu, score=kept[2]), results[1])
    try:
        varlen.reference.attention(*[q.numpy()] * 3, cu.numpy(), cu.numpy(), score=kept[2])
        raise AssertionError("expected an error: there is no definition in numpy")
    except NotImplementedError as error:
        assert "came as text" in str(error)
    program = torch.export.load(folder / "program.pt2").module()
    assert torch.equal(program(q, cu, slopes), results[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--whole", action="store_true")
    arguments = parser.parse_args()
    if arguments.load:
        load(arguments.folder)
        return
    save(arguments.folder)
    rng = np.random.default_rng(0)
    cases = [case for case in imported.grid(arguments.whole) if is_offered(case)]
    for case in cases:
        check(case, rng)
    check_scores()
    maker = "torch-mlir" if torch_text.HAS_TORCH_MLIR else "the test itself: torch-mlir is not installed"
    print(f"{len(cases)} cases, modules by {maker}")


main()
