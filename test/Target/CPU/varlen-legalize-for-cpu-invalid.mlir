// RUN: varlen-opt %s --varlen-legalize-for-cpu --verify-diagnostics
// RUN: not varlen-opt %s --varlen-legalize-for-cpu=target=z80 2>&1 | FileCheck %s

// CHECK: error: expected target to be one of host, {{.*}}, got z80

func.func @lanes(%x: vector<2147483648xf64>) -> vector<2147483648xf64> {
  // expected-error @below {{'math.cbrt' op expected at most 65536 elements, each of which is a call, got 'vector<2147483648xf64>'}}
  %y = math.cbrt %x : vector<2147483648xf64>
  return %y : vector<2147483648xf64>
}
