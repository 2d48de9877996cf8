// The dialect of the consumer: an attention of its own, on what Varlen's .td files say
// tensors of one are.

include "mlir/IR/OpBase.td"
include "varlen/Dialect/Varlen/IR/VarlenAttnBase.td"

def Host_Dialect : Dialect {
  let name = "host";
  let cppNamespace = "::host";
}

def Host_AttentionOp : Op<Host_Dialect, "attention"> {
  let summary = "Attention on buffers";
  let arguments = (ins
    Varlen_MemRef<Varlen_Float, 3>:$q, Varlen_MemRef<Varlen_Float, 3>:$k,
    Varlen_MemRef<Varlen_Float, 3>:$v, Varlen_MemRef<Varlen_Index, 1>:$cu,
    Varlen_MemRef<Varlen_Float, 3>:$out, Varlen_MemRef<Varlen_ComputeFloat, 2>:$lse,
    Varlen_MaskAttr:$mask);
}
