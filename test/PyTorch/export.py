# RUN: rm -rf %t && mkdir %t
# RUN: %python %s make %t
# RUN: %python %s run %t
"""Programs with varlen_attn that one process exports, and another one runs: of torch.export,
and of AOTInductor, whose code calls the operator through the dispatcher of the Python that has
loaded varlen.torch. Lengths and numbers of sequences are free in both."""

import pathlib
import shutil
import sys

import torch
from packed import fails, offsets
from torch import nn

from varlen.torch import varlen_attn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.sink = nn.Parameter(torch.linspace(-1, 1, 4))

    def forward(self, qkv, cu_seqlens, used):
        q, k, v = qkv.unflatten(1, (12, 8)).split(4, 1)
        return varlen_attn(
            q, k, v, cu_seqlens, cu_seqlens, window_size=(5, 0), sink=self.sink, seqused_k=used
        ).flatten(1)


def inputs(lengths):
    torch.manual_seed(0)
    cu_seqlens = offsets(lengths)
    return torch.randn(sum(lengths), 96), cu_seqlens, cu_seqlens.diff()


def make(folder):
    rows, count = (torch.export.Dim(name, min=1, max=4096) for name in ("rows", "count"))
    with torch.no_grad():
        program = torch.export.export(
            Block(), inputs([5, 0, 7]), dynamic_shapes=({0: rows}, {0: count + 1}, {0: count})
        )
    assert any("varlen.attn" in str(node.target) for node in program.graph.nodes)
    torch.export.save(program, folder / "program.pt2")
    if shutil.which("g++") or shutil.which("clang++"):
        # Its two compilations have other flags: headers that are compiled before serve one each.
        options = {"aot_inductor.precompile_headers": False}
        torch._inductor.aoti_compile_and_package(
            program, package_path=str(folder / "package.pt2"), inductor_configs=options
        )


def run(folder):
    functions = [torch.export.load(folder / "program.pt2").module()]
    if (folder / "package.pt2").exists():
        functions.append(torch._inductor.aoti_load_package(str(folder / "package.pt2")))
    for lengths in ([5, 0, 7], [1], [30, 2, 2, 9]):
        given = inputs(lengths)
        with torch.no_grad():
            wanted = Block()(*given)
        for function in functions:
            assert torch.equal(function(*given), wanted)
    qkv, cu_seqlens, used = given
    for function in functions:
        # AOTInductor's error has the operator's in it.
        fails(
            (ValueError, RuntimeError), "cu_seqlens_q[0] = 1: cu_seqlens must start at 0",
            lambda: function(qkv, cu_seqlens + 1, used),
        )  # fmt: skip


{"make": make, "run": run}[sys.argv[1]](pathlib.Path(sys.argv[2]))
