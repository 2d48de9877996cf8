// RUN: varlen-opt %s | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s

// CHECK-LABEL: @read
// CHECK: varlen.read_rows %{{.*}} rows(%[[R:.*]], %[[H:.*]], %[[F:.*]], %[[G:.*]]) valid(%[[N:.*]]) to %{{.*}} as rows, %{{.*}} as columns : memref<?x8x60xbf16> to memref<48x64xf32>, memref<64x48xf32>
// CHECK: varlen.read_rows %{{.*}} rows(%[[R]], %[[H]], %[[F]], %[[G]]) valid(%[[N]]) to %{{.*}} as row_pairs, %{{.*}} as column_pairs : memref<?x8x60xbf16> to memref<?x128xbf16>, memref<32x?xbf16>
func.func @read(%q: memref<?x8x60xbf16>, %row: index, %head: index, %first: index, %group: index,
                %n: index, %rows: memref<48x64xf32>, %columns: memref<64x48xf32>,
                %pairs: memref<?x128xbf16>, %of_columns: memref<32x?xbf16>) {
  varlen.read_rows %q rows(%row, %head, %first, %group) valid(%n) to %rows as rows, %columns as columns
      : memref<?x8x60xbf16> to memref<48x64xf32>, memref<64x48xf32>
  varlen.read_rows %q rows(%row, %head, %first, %group) valid(%n) to %pairs as row_pairs, %of_columns as column_pairs
      : memref<?x8x60xbf16> to memref<?x128xbf16>, memref<32x?xbf16>
  return
}

// CHECK-LABEL: @pages
// CHECK: varlen.read_rows %{{.*}} rows({{.*}}) valid(%{{.*}}) pages(%[[TABLE:.*]] : memref<?x?xi32>) to %{{.*}} as rows {one_page} : memref<?x16x2x64xi8> to memref<?x64xf32>
// CHECK: varlen.read_rows %{{.*}} rows({{.*}}) valid(%{{.*}}) pages(%[[TABLE]] : memref<?x?xi32>) to %{{.*}} as rows : memref<?x16x2x64xi8> to memref<?x64xi8>
// CHECK: varlen.prefetch_rows %{{.*}} rows({{.*}}) valid(%{{.*}}) pages(%[[TABLE]] : memref<?x?xi32>) {one_page} : memref<?x16x2x64xi8>
func.func @pages(%k: memref<?x16x2x64xi8>, %table: memref<?x?xi32>, %s: index, %head: index,
                 %k0: index, %one: index, %n: index, %rows: memref<?x64xf32>, %same: memref<?x64xi8>) {
  varlen.read_rows %k rows(%s, %head, %k0, %one) valid(%n) pages(%table : memref<?x?xi32>)
      to %rows as rows {one_page} : memref<?x16x2x64xi8> to memref<?x64xf32>
  varlen.read_rows %k rows(%s, %head, %k0, %one) valid(%n) pages(%table : memref<?x?xi32>)
      to %same as rows : memref<?x16x2x64xi8> to memref<?x64xi8>
  varlen.prefetch_rows %k rows(%s, %head, %k0, %one) valid(%n) pages(%table : memref<?x?xi32>) {one_page}
      : memref<?x16x2x64xi8>
  return
}

// CHECK-LABEL: @load
// CHECK: varlen.load_rows %{{.*}} rows(%{{.*}}, %{{.*}}, %{{.*}}) valid(%{{.*}}) pages(%{{.*}} : memref<?x?xi32>) {one_page} : memref<?x16x2x64xi8> -> tensor<?x64xi8>
// CHECK: varlen.load_rows %{{.*}} rows(%{{.*}}, %{{.*}}, %{{.*}}) valid(%{{.*}}) : memref<?x2x60xbf16> -> tensor<?x60xbf16>
// CHECK: varlen.followed_by %[[ROWS:.*]] then %[[ROWS]] : memref<?x60xbf16>
func.func @load(%k: memref<?x16x2x64xi8>, %v: memref<?x2x60xbf16>, %table: memref<?x?xi32>,
                %row: index, %head: index, %k0: index, %n: index, %rows: memref<?x60xbf16>)
    -> (tensor<?x64xi8>, tensor<?x60xbf16>, memref<?x60xbf16>) {
  %0 = varlen.load_rows %k rows(%row, %head, %k0) valid(%n) pages(%table : memref<?x?xi32>) {one_page}
      : memref<?x16x2x64xi8> -> tensor<?x64xi8>
  %1 = varlen.load_rows %v rows(%row, %head, %k0) valid(%n) : memref<?x2x60xbf16> -> tensor<?x60xbf16>
  %2 = varlen.followed_by %rows then %rows : memref<?x60xbf16>
  return %0, %1, %2 : tensor<?x64xi8>, tensor<?x60xbf16>, memref<?x60xbf16>
}

// CHECK-LABEL: @write
// CHECK: varlen.write_rows %[[S:.*]] to %[[D:.*]] rows({{.*}}) valid(%{{.*}}) times 1.250000e-01 : memref<?x64xf32> to memref<?x2x60xbf16>
// CHECK: varlen.write_rows %[[S]] to %[[D]] rows({{.*}}) valid(%{{.*}}) : memref<?x64xf32> to memref<?x2x60xbf16>
// CHECK: varlen.fill_rows %[[D]] rows({{.*}}) valid(%{{.*}}) with 0.000000e+00 : memref<?x2x60xbf16>
func.func @write(%scratch: memref<?x64xf32>, %dk: memref<?x2x60xbf16>, %row: index, %head: index,
                 %first: index, %group: index, %n: index) {
  varlen.write_rows %scratch to %dk rows(%row, %head, %first, %group) valid(%n) times 0.125
      : memref<?x64xf32> to memref<?x2x60xbf16>
  varlen.write_rows %scratch to %dk rows(%row, %head, %first, %group) valid(%n)
      : memref<?x64xf32> to memref<?x2x60xbf16>
  varlen.fill_rows %dk rows(%row, %head, %first, %group) valid(%n) with 0.0 : memref<?x2x60xbf16>
  return
}

// CHECK-LABEL: @work
// CHECK: %[[FIELDS:.*]]:10 = varlen.read_work %{{.*}}[%{{.*}}] : memref<?x10xi64>
// CHECK: return %[[FIELDS]]#9
func.func @work(%list: memref<?x10xi64>, %i: index) -> index {
  %fields:10 = varlen.read_work %list[%i] : memref<?x10xi64>
  return %fields#9 : index
}
