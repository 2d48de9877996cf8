// New rows of a cache, on tensors: results are the caches with them, whose inputs stay as they were.

// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/append.py %t
// RUN: varlen-run %s %t/good.safetensors --repeat=2 -o %t/out.safetensors
// RUN: %python %S/Inputs/append.py %t --check
// RUN: not varlen-run %s %t/twice.safetensors -o %t/none.safetensors 2>&1 | FileCheck %s
// RUN: not test -e %t/none.safetensors
// CHECK: block_table[2, 0] = 1: expected a page that nothing else writes to, and block_table[0, 1] is the same
func.func @append(%k: tensor<?x2x16xbf16> {varlen.name = "k"}, %v: tensor<?x2x24xbf16> {varlen.name = "v"},
                  %cu: tensor<?xi32> {varlen.name = "cu"}, %used: tensor<?xi32> {varlen.name = "used"},
                  %table: tensor<?x?xi32> {varlen.name = "table"}, %cos: tensor<?x5xf32> {varlen.name = "cos"},
                  %sin: tensor<?x5xf32> {varlen.name = "sin"},
                  %k_cache: tensor<?x4x2x16xbf16> {varlen.name = "k_cache"},
                  %v_cache: tensor<?x4x2x24xbf16> {varlen.name = "v_cache"})
    -> (tensor<?x4x2x16xbf16> {varlen.name = "new_k"}, tensor<?x4x2x24xbf16> {varlen.name = "new_v"}) {
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin)
      outs(%k_cache, %v_cache)
      : (tensor<?x2x16xbf16>, tensor<?x2x24xbf16>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>,
         tensor<?x5xf32>, tensor<?x5xf32>, tensor<?x4x2x16xbf16>, tensor<?x4x2x24xbf16>)
      -> (tensor<?x4x2x16xbf16>, tensor<?x4x2x24xbf16>)
  return %0#0, %0#1 : tensor<?x4x2x16xbf16>, tensor<?x4x2x24xbf16>
}
