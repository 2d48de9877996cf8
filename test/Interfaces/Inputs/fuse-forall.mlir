// The gate becomes a parallel loop over heads, and the attention goes into it.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %gate = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %gate tile_sizes [0, 3]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %attn = transform.structured.match ops{["varlen.attn_into"]} in %root : (!transform.any_op) -> !transform.any_op
    %fused, %all = transform.structured.fuse_into_containing_op %attn into %loop
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
