// What is written of a run with hazards: its timeline and its figures, which show them, and no
// results, which may be anything.

// RUN: rm -rf %t && mkdir %t
// RUN: not varlen-run %s --device=sim:sm_80 --random=0 --lengths=70 --sim-mutant=5 --trace=%t/trace.json --json=%t/figures.json -o %t/out.safetensors > %t/report 2> %t/errors
// RUN: FileCheck %s < %t/errors
// RUN: count 0 < %t/report
// RUN: not test -e %t/out.safetensors
// RUN: %python -m json.tool %t/trace.json | FileCheck %s --check-prefix=TRACE
// RUN: %python -m json.tool %t/figures.json | FileCheck %s --check-prefix=JSON

// CHECK: hazard: race at
// CHECK: error: {{[0-9]+}} hazard{{s?}} in run 1 of 1
// TRACE: "traceEvents"
// JSON: "hazards": [
// JSON-NEXT: "race at {{.*}} while an asynchronous copy into it is in flight
// JSON: "runs": 1

func.func @attention(%q: tensor<?x2x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x64xbf16>, %cu: tensor<?xi32>)
    -> tensor<?x2x64xbf16> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x2x64xbf16>, tensor<2x?xf32>)
  return %out : tensor<?x2x64xbf16>
}
