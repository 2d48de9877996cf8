//===- Passes.td - Imports of programs of other tools ------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_IMPORT_PASSES_TD
#define VARLEN_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def VarlenImportStableHLO : Pass<"varlen-import-stablehlo"> {
  let summary = "Attention of StableHLO modules";
  let description = [{
    `stablehlo.custom_call` with the target, and `stablehlo.composite` with the name
    `varlen.attn`, `varlen.attn_grad`, `varlen.attn_jvp` or `varlen.attn_jvp_grad` become these operations. Operands are those
    of the operation without the optional ones; these follow, in the order in which
    the configuration names them. What `indices_of_shape_operands` names does not count.
    The configuration is the dictionary
    `backend_config` (or `mhlo.backend_config`, `composite_attributes`), with

    | entry | | default |
    |---|---|---|
    | `causal` | bool | false |
    | `window_left`, `window_right` | integer, -1 is open | -1 |
    | `chunk` | integer: a chunk mask of that size | none |
    | `top_left` | bool: the alignment of the mask | false |
    | `scale` | float | 1/sqrt(head_dim) |
    | `operands` | names of the optional operands that there are, those of captures last, behind which those of the last two may have tangents of some, the names of captures after a t: an array, or a text with commas between them | none |
    | `score` | the [text of a score](../scores.md#as-text) | that of `source` |
    | `source` | the text of a function of the operands with one attention, which [a handler at run time](../jax.md#the-handlers) compiles. It has to say the same as the other entries | none |
    | `chip` | the GPU that a handler has kernels for: the last result is a workspace then, which nothing reads | none |

    Whatever else the configuration has is an error, as is any other attribute that may say
    what is computed. Gradients of captures are the last results of `varlen.attn_grad`, of
    all or of none. StableHLO need not be registered: modules in the generic form will do.

    *Requires*: operands and results that are ranked tensors; `operand_layouts` and
    `result_layouts`, where they are given, row-major. *Guarantees*: the above;
    nothing else changes, and the decomposition of a composite stays where it is.
    *Numerics*: none.

    ```mlir
    %0:2 = "stablehlo.custom_call"(%q, %k, %v, %cu, %cu, %sink)
        {call_target_name = "varlen.attn", api_version = 4 : i32,
         backend_config = {causal = true, operands = ["sink"]}} : (...) -> (...)
    ```
    becomes
    ```mlir
    %out, %lse = varlen.attn %q, %k, %v, %cu, %cu sink(%sink)
        {mask = #varlen.mask<causal>} : (...) -> (...)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::varlen::VarlenDialect"];
  let statistics = [Statistic<"numImported", "imported", "Attentions">];
}

def VarlenImportTorch : Pass<"varlen-import-torch"> {
  let summary = "Attention of torch-mlir's modules";
  let description = [{
    `torch.operator` operations with the name `torch.torch_attn._varlen_attn` or
    `torch.torch_attn._varlen_attn_backward`, which torch-mlir makes of
    `torch.nn.attention.varlen.varlen_attn` and of its backward function, become
    `varlen.attn` and `varlen.attn_grad`, between `torch_c.to_builtin_tensor` and
    `torch_c.from_builtin_tensor`.

    | parameter | becomes |
    |---|---|
    | `query`, `key`, `value`, `cu_seq_q`, `cu_seq_k`, `seqused_k`; `grad_out`, `out`, `lse` | operands |
    | `is_causal`, `window_size` | the mask, bounds below -1 as open as -1 |
    | `scale` | `scale` |
    | `max_q`, `max_k`, `enable_gqa`, `num_splits`, `rng_state` | nothing: no result depends on them |
    | `block_table` | the table of keys in pages, of which `cu_seq_k` is not looked at |

    The `rng_state` of the forward, if it is used elsewhere, is zeros, as in PyTorch.

    So do `torch.varlen.attn` and `torch.varlen.attn_backward`, of which `varlen.torch` makes
    all its attentions. Their `score` is the [text of a score](../scores.md#as-text), and
    `captures` a list; that of their gradients is taken apart by `torch.prim.ListUnpack`.
    Any other operator of both libraries is an error, so that none is left by mistake.
    torch-mlir need not be registered: modules in the generic form will do.

    *Requires*: value tensors with sizes and dtypes; numbers, flags, texts and lists made by
    `torch.constant.*` and `torch.prim.ListConstruct`.
    *Guarantees*: the above; nothing else changes. *Numerics*: none.

    ```mlir
    %0:3 = torch.operator "torch.torch_attn._varlen_attn"(%q, %k, %v, %cu, %cu, ...) : (...)
        -> (!torch.vtensor<[?,8,64],bf16>, !torch.vtensor<[8,?],f32>, !torch.vtensor<[2],ui64>)
    ```
    becomes
    ```mlir
    %1 = torch_c.to_builtin_tensor %q : !torch.vtensor<[?,8,64],bf16> -> tensor<?x8x64xbf16>
    ...
    %out, %lse = varlen.attn %1, %2, %3, %4, %4 {mask = #varlen.mask<causal>} : (...) -> (...)
    %5 = torch_c.from_builtin_tensor %out : tensor<?x8x64xbf16> -> !torch.vtensor<[?,8,64],bf16>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::varlen::VarlenDialect"];
  let statistics = [Statistic<"numImported", "imported", "Attentions">];
}

#endif // VARLEN_IMPORT_PASSES_TD
