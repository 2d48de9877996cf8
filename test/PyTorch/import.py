"""What torch-mlir's importer, which IREE's compiler has too, makes of a program with PyTorch's
varlen_attn is what varlen-import-torch takes."""
# REQUIRES: torch, plugin, torch-mlir || iree
# RUN: %python %s > %t.mlir
# RUN: %mlir-opt-plugin --allow-unregistered-dialect --pass-pipeline='builtin.module(varlen-import-torch)' %t.mlir | FileCheck %s

# CHECK: func @main(%[[Q:.*]]: !torch.vtensor<[?,8,64],bf16>,
# CHECK: varlen.attn {{.*}} {mask = #varlen.mask<causal>, scale = 2.500000e-01 : f32}
# CHECK-SAME: -> (tensor<?x8x64xbf16>, tensor<8x?xf32>)
# CHECK-NOT: torch.operator

import torch
import torch_text
from torch.nn.attention.varlen import AuxRequest, varlen_attn


class Model(torch.nn.Module):
    def forward(self, q, k, v, cu_seq):
        return varlen_attn(
            q, k, v, cu_seq, cu_seq, 7, 7, window_size=(-1, 0), enable_gqa=True, scale=0.25,
            return_aux=AuxRequest(lse=True),
        )  # fmt: skip


def write(program):
    """The module in the generic form. The importer does not know the type of rng_state."""
    if torch_text.HAS_TORCH_MLIR:
        from torch_mlir.extras import fx_importer
    else:
        from iree.compiler.extras import fx_importer
    fx_importer.TORCH_DTYPE_TO_MLIR_TYPE_ASM[torch.uint64] = "ui64"
    if torch_text.HAS_TORCH_MLIR:
        return torch_text.write(program)
    importer = fx_importer.FxImporter()
    importer.import_program(program)
    return importer.module.operation.get_asm(print_generic_op_form=True)


def main():
    q, k, v = (torch.randn(12, heads, 64, dtype=torch.bfloat16) for heads in (8, 2, 2))
    cu_seq = torch.tensor([0, 5, 5, 12], dtype=torch.int32)
    rows, entries = torch.export.Dim("rows"), torch.export.Dim("entries")
    shapes = ({0: rows}, {0: rows}, {0: rows}, {0: entries})
    print(write(torch.export.export(Model(), (q, k, v, cu_seq), dynamic_shapes=shapes)))


main()
