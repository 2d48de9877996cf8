// Compiled by iree-compile: attention, and what IREE makes itself around it.
stream.executable private @varlen {
  stream.executable.export public @attention workgroups() -> (index, index, index) {
    // One call, which has threads of its own.
    %c1 = arith.constant 1 : index
    stream.return %c1, %c1, %c1 : index, index, index
  }
  builtin.module {
    func.func private @attention_import(
        %q: memref<f32>, %q_offset: index, %k: memref<f32>, %k_offset: index,
        %v: memref<f32>, %v_offset: index, %cu: memref<i32>, %cu_offset: index,
        %out: memref<f32>, %out_offset: index, %lse: memref<f32>, %lse_offset: index,
        %rows: index, %keys: index, %entries: index) attributes {llvm.bareptr = true}
    func.func @attention(%rows: index, %keys: index, %entries: index,
                         %q: !stream.binding, %k: !stream.binding, %v: !stream.binding,
                         %cu: !stream.binding, %out: !stream.binding, %lse: !stream.binding) {
      %c0 = arith.constant 0 : index
      %mq = stream.binding.subspan %q[%c0] : !stream.binding -> memref<?x4x64xf32>{%rows}
      %mk = stream.binding.subspan %k[%c0] : !stream.binding -> memref<?x2x64xf32>{%keys}
      %mv = stream.binding.subspan %v[%c0] : !stream.binding -> memref<?x2x64xf32>{%keys}
      %mcu = stream.binding.subspan %cu[%c0] : !stream.binding -> memref<?xi32>{%entries}
      %mout = stream.binding.subspan %out[%c0] : !stream.binding -> memref<?x4x64xf32>{%rows}
      %mlse = stream.binding.subspan %lse[%c0] : !stream.binding -> memref<4x?xf32>{%rows}
      %bq, %oq, %sq:3, %tq:3 = iree_codegen.extract_strided_metadata %mq : memref<?x4x64xf32>
          -> memref<f32>, index, index, index, index, index, index, index
      %bk, %ok, %sk:3, %tk:3 = iree_codegen.extract_strided_metadata %mk : memref<?x2x64xf32>
          -> memref<f32>, index, index, index, index, index, index, index
      %bv, %ov, %sv:3, %tv:3 = iree_codegen.extract_strided_metadata %mv : memref<?x2x64xf32>
          -> memref<f32>, index, index, index, index, index, index, index
      %bcu, %ocu, %scu, %tcu = iree_codegen.extract_strided_metadata %mcu : memref<?xi32>
          -> memref<i32>, index, index, index
      %bout, %oout, %sout:3, %tout:3 = iree_codegen.extract_strided_metadata %mout : memref<?x4x64xf32>
          -> memref<f32>, index, index, index, index, index, index, index
      %blse, %olse, %slse:2, %tlse:2 = iree_codegen.extract_strided_metadata %mlse : memref<4x?xf32>
          -> memref<f32>, index, index, index, index, index
      call @attention_import(%bq, %oq, %bk, %ok, %bv, %ov, %bcu, %ocu, %bout, %oout, %blse, %olse,
                             %rows, %keys, %entries)
          : (memref<f32>, index, memref<f32>, index, memref<f32>, index, memref<i32>, index,
             memref<f32>, index, memref<f32>, index, index, index, index) -> ()
      return
    }
  }
}

func.func @block(%x: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>,
                 %cu: tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>) {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x4x64xf32>
  %keys = tensor.dim %k, %c0 : tensor<?x2x64xf32>
  %entries = tensor.dim %cu, %c0 : tensor<?xi32>
  %q = arith.addf %x, %x : tensor<?x4x64xf32>
  %out, %lse = flow.dispatch @varlen::@attention(%rows, %keys, %entries, %q, %k, %v, %cu)
      : (index, index, index, tensor<?x4x64xf32>{%rows}, tensor<?x2x64xf32>{%keys},
         tensor<?x2x64xf32>{%keys}, tensor<?xi32>{%entries})
      -> (tensor<?x4x64xf32>{%rows}, tensor<4x?xf32>{%rows})
  %y = arith.addf %x, %out : tensor<?x4x64xf32>
  return %y, %lse : tensor<?x4x64xf32>, tensor<4x?xf32>
}
