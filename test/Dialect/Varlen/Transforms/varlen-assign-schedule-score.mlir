// RUN: varlen-opt %s --varlen-assign-schedule --split-input-file --verify-diagnostics | FileCheck %s

// A region that is a mask becomes one before tiles are chosen.
// CHECK-LABEL: func.func @causal
// CHECK: varlen.attn %{{.*}} {mask = #varlen.mask<causal>, {{.*}}} : {{.*}} -> (tensor<?x4x16xf32>, tensor<4x?xf32>){{$}}
func.func @causal(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %visible = arith.cmpi sge, %i, %j : i32
        varlen.yield %s, %visible : f32, i1
      }
  return %out : tensor<?x4x16xf32>
}

// -----

// What intervals know nothing of is said.
// CHECK-LABEL: func.func @rooted
func.func @rooted(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %reach: tensor<4xf32>) -> tensor<?x4x16xf32> {
  // expected-remark @below {{blocks of hidden keys may be visited: intervals know nothing of 'math.sqrt', which says whether a key is visible}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%reach)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %most: f32) {
        %x = arith.sitofp %j : i32 to f32
        %root = math.sqrt %x : f32
        %visible = arith.cmpf olt, %root, %most : f32
        varlen.yield %s, %visible : f32, i1
      }
  return %out : tensor<?x4x16xf32>
}

// -----

// Nor of what might wrap around.
// CHECK-LABEL: func.func @wraps
func.func @wraps(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  // expected-remark @below {{intervals know nothing of 'arith.muli'}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %three = arith.constant 3 : i32
        %triple = arith.muli %j, %three : i32
        %visible = arith.cmpi sle, %triple, %i : i32
        varlen.yield %s, %visible : f32, i1
      }
  return %out : tensor<?x4x16xf32>
}

// -----

// Of numbers, their sums and products, of comparisons and choices everything is known.
// CHECK-LABEL: func.func @known
func.func @known(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %a: tensor<4xf32>, %b: tensor<4x?xf32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%a, %b)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>, tensor<4xf32>, tensor<4x?xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %slope: f32, %most: f32) {
        %true = arith.constant true
        %three = arith.constant 3 : i32
        %wide = arith.extsi %j : i32 to i64
        %factor = arith.constant 5 : i64
        %past = arith.cmpi sgt, %wide, %factor : i64
        %behind = arith.subi %i, %j : i32
        %distance = math.absi %behind : i32
        %rest = arith.remsi %distance, %three : i32
        %x = arith.sitofp %distance : i32 to f32
        %y = arith.mulf %x, %slope : f32
        %negative = arith.negf %y : f32
        %least = arith.minnumf %negative, %most : f32
        %floor = math.floor %least : f32
        %n = arith.fptosi %most : f32 to i32
        %near = arith.cmpi slt, %distance, %n : i32
        %choice = arith.select %near, %rest, %three : i32
        %far = arith.xori %near, %true : i1
        %c = arith.cmpf ugt, %floor, %slope : f32
        %d = arith.cmpi ne, %choice, %three : i32
        %e = arith.select %far, %c, %d : i1
        %visible = arith.ori %e, %past : i1
        varlen.yield %s, %visible : f32, i1
      }
  return %out : tensor<?x4x16xf32>
}

// -----

// Of positions and quotients everything is known.
// CHECK-LABEL: func.func @chunked
func.func @chunked(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %size = arith.constant 30 : i32
        %a = arith.floordivsi %i, %size : i32
        %b = arith.floordivsi %j, %size : i32
        %visible = arith.cmpi eq, %a, %b : i32
        varlen.yield %s, %visible : f32, i1
      }
  return %out : tensor<?x4x16xf32>
}

// -----

// What is made of a table depends on keys in a way that is not known before.
func.func @table(%q: memref<?x8x64xf32>, %cu: memref<?xi32>, %flags: memref<8x?x9xf32>,
                 %out: memref<?x8x64xf32>, %lse: memref<8x?xf32>) {
  // expected-remark @below {{intervals know nothing of 'varlen.lookup', which says whether a key is visible}}
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) captures(%flags)
      : (memref<?x8x64xf32>, memref<?x8x64xf32>, memref<?x8x64xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x8x64xf32>, memref<8x?xf32>, memref<8x?x9xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32>) {
        %flag = varlen.lookup %table[%j] : !varlen.table<f32>
        %no = arith.constant 0.0 : f32
        %visible = arith.cmpf une, %flag, %no : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}
