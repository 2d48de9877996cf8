// RUN: varlen-opt %s -split-input-file -verify-diagnostics

func.func @rank(%k: tensor<7x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{operand #0 must be rank-3 tensor or memref of f16, bf16, f32 or f64, but got 'tensor<7x16xf32>'}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @forms(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: memref<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected operands that all are tensors, or all memrefs, got 'tensor<7x2x16xf32>' and 'memref<4xi32>'}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, memref<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @no_results(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected 2 results on tensors, got 0}}
  varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> ()
  return
}

// -----

func.func @result_type(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected a result of the type of the cache 'tensor<5x4x2x16xf32>', got 'tensor<?x4x2x16xf32>'}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<?x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @element(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xbf16>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected k_cache of 'f32', as k is, got 'tensor<5x4x2x16xbf16>'}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xbf16>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xbf16>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @index(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi64>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected seqused_k of 'i32', as cu is, got 'tensor<3xi64>'}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi64>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @no_rotary(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected cos and sin of an interleaved rotary embedding, got none}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) outs(%kc, %vc) interleaved
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @dynamic_heads(%k: tensor<7x?x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected a positive static extent 1 of k, got 'tensor<7x?x16xf32>'}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x?x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @no_pairs(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x0xf32>, %sin: tensor<9x0xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected a positive static extent 1 of cos, got 'tensor<9x0xf32>'}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x0xf32>, tensor<9x0xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @rows(%k: tensor<7x2x16xf32>, %v: tensor<6x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected extent 0 of v to be 7, extent 0 of k, got 6}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<6x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @heads(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x3x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected extent 2 of k_cache to be 2, extent 1 of k, got 3}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x3x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x3x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @head_dim(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x16xf32>) {
  // expected-error @below {{expected extent 3 of v_cache to be 24, extent 2 of v, got 16}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x16xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x16xf32>)
  return
}

// -----

func.func @pages(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<6x4x2x24xf32>) {
  // expected-error @below {{expected extent 0 of v_cache to be 5, extent 0 of k_cache, got 6}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<6x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<6x4x2x24xf32>)
  return
}

// -----

func.func @page_rows(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x3x2x24xf32>) {
  // expected-error @below {{expected extent 1 of v_cache to be 4, extent 1 of k_cache, got 3}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<5x3x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x3x2x24xf32>)
  return
}

// -----

func.func @used(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<4xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected extent 0 of seqused_k to be 3, one less than extent 0 of cu, got 4}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<4xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @table(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<2x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected extent 0 of block_table to be 3, one less than extent 0 of cu, got 2}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<2x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @tables(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x4xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected extent 1 of sin to be 5, extent 1 of cos, got 4}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x4xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @pairs(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x9xf32>, %sin: tensor<9x9xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected cos and sin for at most 8 pairs, of the head_dim of k, got 9}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc)
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x9xf32>, tensor<9x9xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @attribute(%k: tensor<7x2x16xf32>, %v: tensor<7x2x24xf32>, %cu: tensor<4xi32>, %used: tensor<3xi32>, %table: tensor<3x2xi32>, %cos: tensor<9x5xf32>, %sin: tensor<9x5xf32>, %kc: tensor<5x4x2x16xf32>, %vc: tensor<5x4x2x24xf32>) {
  // expected-error @below {{expected interleaved, and attributes of a dialect, got 'interleave': did you mean 'interleaved'?}}
  %0:2 = varlen.append %k, %v, %cu seqused_k(%used) block_table(%table) rotary(%cos, %sin) outs(%kc, %vc) {interleave}
      : (tensor<7x2x16xf32>, tensor<7x2x24xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<9x5xf32>, tensor<9x5xf32>, tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
      -> (tensor<5x4x2x16xf32>, tensor<5x4x2x24xf32>)
  return
}

// -----

func.func @runs_table(%cu: memref<?xi32>, %table: memref<?x?xi32, strided<[?, 2]>>, %n: index) {
  // expected-error @below {{expected a block_table with a last stride of 1, got 'memref<?x?xi32, strided<[?, 2]>>'}}
  %0 = varlen.append_runs %cu, %cu block_table(%table) rows(%n, %n) pages(%n, %n) page_rows(%n, %n)
      : (memref<?xi32>, memref<?xi32>, memref<?x?xi32, strided<[?, 2]>>, index, index, index, index, index, index)
      -> memref<?x6xi64>
  return
}

// -----

func.func @runs_columns(%cu: memref<?xi32>, %n: index) {
  // expected-error @below {{expected a list of 6 columns, got 'memref<?x5xi64>'}}
  %0 = varlen.append_runs %cu, %cu rows(%n, %n) pages(%n, %n) page_rows(%n, %n)
      : (memref<?xi32>, memref<?xi32>, index, index, index, index, index, index) -> memref<?x5xi64>
  return
}

// -----

func.func @quantised_f64(%k: memref<7x2x16xf64>, %cu: memref<4xi32>, %used: memref<3xi32>, %kc: memref<5x4x2x16xi8>, %vc: memref<5x4x2x16xi8>, %ks: memref<5x4x2xf32>, %vs: memref<5x4x2xf32>) {
  // expected-error @below {{expected k of f16, bf16 or f32 beside caches of 'i8', got 'memref<7x2x16xf64>'}}
  varlen.append %k, %k, %cu seqused_k(%used) outs(%kc, %vc) scales(%ks, %vs)
      : (memref<7x2x16xf64>, memref<7x2x16xf64>, memref<4xi32>, memref<3xi32>, memref<5x4x2x16xi8>, memref<5x4x2x16xi8>, memref<5x4x2xf32>, memref<5x4x2xf32>) -> ()
  return
}

// -----

func.func @quantised_elements(%k: memref<7x2x16xf32>, %cu: memref<4xi32>, %used: memref<3xi32>, %kc: memref<5x4x2x16xi8>, %vc: memref<5x4x2x16xf8E4M3FN>, %ks: memref<5x4x2xf32>, %vs: memref<5x4x2xf32>) {
  // expected-error @below {{expected v_cache of 'i8', as k_cache is, got 'memref<5x4x2x16xf8E4M3FN>'}}
  varlen.append %k, %k, %cu seqused_k(%used) outs(%kc, %vc) scales(%ks, %vs)
      : (memref<7x2x16xf32>, memref<7x2x16xf32>, memref<4xi32>, memref<3xi32>, memref<5x4x2x16xi8>, memref<5x4x2x16xf8E4M3FN>, memref<5x4x2xf32>, memref<5x4x2xf32>) -> ()
  return
}

// -----

func.func @no_scales(%k: memref<7x2x16xf32>, %cu: memref<4xi32>, %used: memref<3xi32>, %kc: memref<5x4x2x16xi8>, %vc: memref<5x4x2x16xi8>, %ks: memref<5x4x2xf32>, %vs: memref<5x4x2xf32>) {
  // expected-error @below {{expected scales of caches of 'i8', got none}}
  varlen.append %k, %k, %cu seqused_k(%used) outs(%kc, %vc)
      : (memref<7x2x16xf32>, memref<7x2x16xf32>, memref<4xi32>, memref<3xi32>, memref<5x4x2x16xi8>, memref<5x4x2x16xi8>) -> ()
  return
}

// -----

func.func @scales_of_floats(%k: memref<7x2x16xf32>, %cu: memref<4xi32>, %used: memref<3xi32>, %kc: memref<5x4x2x16xf32>, %vc: memref<5x4x2x16xf32>, %ks: memref<5x4x2xf32>, %vs: memref<5x4x2xf32>) {
  // expected-error @below {{expected caches of i8 or f8E4M3FN beside scales, got 'memref<5x4x2x16xf32>'}}
  varlen.append %k, %k, %cu seqused_k(%used) outs(%kc, %vc) scales(%ks, %vs)
      : (memref<7x2x16xf32>, memref<7x2x16xf32>, memref<4xi32>, memref<3xi32>, memref<5x4x2x16xf32>, memref<5x4x2x16xf32>, memref<5x4x2xf32>, memref<5x4x2xf32>) -> ()
  return
}

// -----

func.func @scale_heads(%k: memref<7x2x16xf32>, %cu: memref<4xi32>, %used: memref<3xi32>, %kc: memref<5x4x2x16xi8>, %vc: memref<5x4x2x16xi8>, %ks: memref<5x4x3xf32>, %vs: memref<5x4x2xf32>) {
  // expected-error @below {{expected extent 2 of k_scale to be 2, extent 1 of k, got 3}}
  varlen.append %k, %k, %cu seqused_k(%used) outs(%kc, %vc) scales(%ks, %vs)
      : (memref<7x2x16xf32>, memref<7x2x16xf32>, memref<4xi32>, memref<3xi32>, memref<5x4x2x16xi8>, memref<5x4x2x16xi8>, memref<5x4x3xf32>, memref<5x4x2xf32>) -> ()
  return
}

// -----

func.func @scale_pages(%k: memref<7x2x16xf32>, %cu: memref<4xi32>, %used: memref<3xi32>, %kc: memref<5x4x2x16xi8>, %vc: memref<5x4x2x16xi8>, %ks: memref<6x4x2xf32>, %vs: memref<5x4x2xf32>) {
  // expected-error @below {{expected extent 0 of k_scale to be 5, extent 0 of k_cache, got 6}}
  varlen.append %k, %k, %cu seqused_k(%used) outs(%kc, %vc) scales(%ks, %vs)
      : (memref<7x2x16xf32>, memref<7x2x16xf32>, memref<4xi32>, memref<3xi32>, memref<5x4x2x16xi8>, memref<5x4x2x16xi8>, memref<6x4x2xf32>, memref<5x4x2xf32>) -> ()
  return
}

// -----

func.func @scale_extents(%cu: memref<?xi32>, %n: index) {
  // expected-error @below {{expected 4 extents of scales, or none, got 1}}
  %0 = varlen.append_runs %cu, %cu rows(%n, %n) pages(%n, %n) page_rows(%n, %n) scales(%n)
      : (memref<?xi32>, memref<?xi32>, index, index, index, index, index, index, index) -> memref<?x6xi64>
  return
}
