// Self-attention over a packed batch: the rows of all documents stand one after
// another in q, k and v, and those of document s are cu[s] to cu[s + 1]. How many
// documents there are and how long they are is known when the function runs.

!f32_rows = tensor<?x16x64xf32>
!bf16_rows = tensor<?x16x64xbf16>
!lse = tensor<16x?xf32>

func.func @f32_full(%q: !f32_rows, %k: !f32_rows, %v: !f32_rows,
                    %cu: tensor<?xi32>) -> (!f32_rows, !lse) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      : (!f32_rows, !f32_rows, !f32_rows, tensor<?xi32>, tensor<?xi32>)
      -> (!f32_rows, !lse)
  return %out, %lse : !f32_rows, !lse
}

func.func @f32_causal(%q: !f32_rows, %k: !f32_rows, %v: !f32_rows,
                      %cu: tensor<?xi32>) -> (!f32_rows, !lse) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (!f32_rows, !f32_rows, !f32_rows, tensor<?xi32>, tensor<?xi32>)
      -> (!f32_rows, !lse)
  return %out, %lse : !f32_rows, !lse
}

func.func @bf16_full(%q: !bf16_rows, %k: !bf16_rows, %v: !bf16_rows,
                     %cu: tensor<?xi32>) -> (!bf16_rows, !lse) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      : (!bf16_rows, !bf16_rows, !bf16_rows, tensor<?xi32>, tensor<?xi32>)
      -> (!bf16_rows, !lse)
  return %out, %lse : !bf16_rows, !lse
}

func.func @bf16_causal(%q: !bf16_rows, %k: !bf16_rows, %v: !bf16_rows,
                       %cu: tensor<?xi32>) -> (!bf16_rows, !lse) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (!bf16_rows, !bf16_rows, !bf16_rows, tensor<?xi32>, tensor<?xi32>)
      -> (!bf16_rows, !lse)
  return %out, %lse : !bf16_rows, !lse
}
