// RUN: not varlen-opt %s --pass-pipeline="builtin.module(func.func(varlen-tile-linalg{target=z80}))" 2>&1 | FileCheck %s

// CHECK: error: expected target to be one of host, {{.*}}, got z80
func.func @f() {
  return
}
