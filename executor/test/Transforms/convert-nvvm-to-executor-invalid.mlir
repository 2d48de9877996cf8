// RUN: varlen-opt %s --convert-nvvm-to-executor --split-input-file --verify-diagnostics

gpu.module @m {
  llvm.func @k(%p: !llvm.ptr<6>, %n: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.tcgen05.dealloc' op has no equivalent in the executor}}
    nvvm.tcgen05.dealloc %p, %n : !llvm.ptr<6>, i32
    llvm.return
  }
}

// -----

// All of them are named, not the first only.

gpu.module @m {
  llvm.func @k(%x: f32) attributes {nvvm.kernel} {
    // expected-error @below {{has no equivalent in the executor: 'sin.approx.f32 $0, $1;'}}
    %0 = nvvm.inline_ptx "sin.approx.f32 $0, $1;" ro(%x : f32) -> f32
    // expected-error @below {{has no equivalent in the executor: 'cos.approx.f32 $0, $1;'}}
    %1 = llvm.inline_asm "cos.approx.f32 $0, $1;", "=f,f" %x : (f32) -> f32
    // expected-error @below {{has no equivalent in the executor: 'llvm.nvvm.sin.approx.f'}}
    %2 = llvm.call_intrinsic "llvm.nvvm.sin.approx.f"(%x) : (f32) -> f32
    llvm.return
  }
}

// -----

// The executor has fields of maps in shared memory, but not all of them.

gpu.module @m {
  llvm.func @k(%g: !llvm.ptr<1>, %s: !llvm.ptr<3>, %n: i32) attributes {nvvm.kernel} {
    // expected-error @below {{has no equivalent in the executor: 'llvm.nvvm.tensormap.replace.rank.p1'}}
    llvm.call_intrinsic "llvm.nvvm.tensormap.replace.rank.p1"(%g, %n) : (!llvm.ptr<1>, i32) -> ()
    // expected-error @below {{has no equivalent in the executor: 'llvm.nvvm.tensormap.replace.swizzle.atomicity.p3'}}
    llvm.call_intrinsic "llvm.nvvm.tensormap.replace.swizzle.atomicity.p3"(%s, %n) : (!llvm.ptr<3>, i32) -> ()
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func @k(%a: i32, %b: i32, %c: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.mma.sync' op has no equivalent in the executor: shape m8n8k16 of s8}}
    %0 = nvvm.mma.sync A[%a] B[%b] C[%c, %c]
        {intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>,
         layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
         multiplicandAPtxType = #nvvm.mma_type<s8>,
         multiplicandBPtxType = #nvvm.mma_type<s8>,
         shape = #nvvm.shape<m = 8, n = 8, k = 16>}
        : (i32, i32, i32) -> !llvm.struct<(i32, i32)>
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func @__nv_normcdff(f32) -> f32
  llvm.func @k(%x: f32) attributes {nvvm.kernel} {
    // expected-error @below {{the executor does not have the function '__nv_normcdff'}}
    %0 = llvm.call @__nv_normcdff(%x) : (f32) -> f32
    llvm.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op is not of the llvm dialect: expected functions and globals of it in a gpu.module for the executor}}
  gpu.func @k() kernel {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{is a kernel with a result: expected none}}
  llvm.func @k(%x: f32) -> f32 attributes {nvvm.kernel} {
    llvm.return %x : f32
  }
}

// -----

gpu.module @m {
  llvm.func @k(%p: !llvm.ptr<1>, %x: f32) attributes {nvvm.kernel} {
    %i = llvm.mlir.constant(1 : i32) : i32
    // expected-error @below {{'llvm.atomicrmw' op has no equivalent in the executor: nand}}
    %0 = llvm.atomicrmw nand %p, %i monotonic : !llvm.ptr<1>, i32
    llvm.return
  }
}

// -----

// A result is as wide as that of its intrinsic.

gpu.module @m {
  llvm.func @k(%x: i32, %y: f32) attributes {nvvm.kernel} {
    // expected-error @below {{has no equivalent in the executor: 'llvm.nvvm.ex2.approx.f'}}
    %0 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.f"(%y) : (f32) -> f16
    // expected-error @below {{has no equivalent in the executor: 'llvm.nvvm.ex2.approx.f'}}
    %1 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.f"(%y) : (f32) -> !llvm.ptr
    // expected-error @below {{has no equivalent in the executor: 'llvm.nvvm.fmax.f'}}
    %2 = llvm.call_intrinsic "llvm.nvvm.fmax.f"(%x, %x) : (i32, i32) -> i32
    llvm.return
  }
}

// -----

gpu.module @m {
  llvm.func @__nv_exp2f(f32)
  llvm.func @__nv_expf(f64) -> f64
  llvm.func @__nv_erf(f64) -> f64
  llvm.func @k(%x: f32, %y: f64) attributes {nvvm.kernel} {
    // expected-error @below {{has no equivalent in the executor: '__nv_exp2f' with other types}}
    llvm.call @__nv_exp2f(%x) : (f32) -> ()
    // expected-error @below {{has no equivalent in the executor: '__nv_expf' with other types}}
    %0 = llvm.call @__nv_expf(%y) : (f64) -> f64
    %1 = llvm.call @__nv_erf(%y) : (f64) -> f64
    // expected-error @below {{has no equivalent in the executor: rounding from f64 to 16 bits}}
    %2 = llvm.fptrunc %y : f64 to f16
    llvm.return
  }
}
