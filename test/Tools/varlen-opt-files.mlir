// What varlen-opt writes with --emit is there whole, or not at all; no file is written twice,
// and none that is read.

// RUN: rm -rf %t && mkdir -p %t/folder && cp %s %t/m.mlir && ln -s m.mlir %t/link.mlir
// RUN: not varlen-opt %t/m.mlir --emit=obj -o %t/link.mlir 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: not varlen-opt %t/m.mlir --emit=ptx -o %t/m.mlir 2>&1 | FileCheck %s --check-prefix=INPUT
// INPUT: varlen-opt: -o: '{{.*}}' is the module: expected another file
// RUN: not varlen-opt %t/m.mlir --emit=obj --header=%t/m.mlir -o %t/m.o 2>&1 \
// RUN:   | FileCheck %s --check-prefix=HEADER
// HEADER: varlen-opt: --header: '{{.*}}' is the module: expected another file
// RUN: cmp %s %t/m.mlir && not ls %t/m.o

// RUN: not varlen-opt %t/m.mlir --emit=obj --header=%t/f.o -o %t/folder/../f.o 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TWICE
// RUN: not varlen-opt %t/m.mlir --emit=ptx --manifest=%t/f.o -o %t/f.o 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TWICE
// TWICE: '{{.*}}f.o' is written by -o, too: expected another file
// RUN: not varlen-opt %t/m.mlir --emit=obj -o %t/folder 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: varlen-opt: -o: '{{.*}}' is a folder: expected a file

// An error behind the first file leaves none, and what was there stays.
// RUN: echo old > %t/f.h
// RUN: not varlen-opt %t/m.mlir --emit=obj --header=%t/f.h -o %t/none/f.o 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NONE
// NONE: varlen-opt: {{.*}}f.o: cannot be written: No such file or directory
// RUN: echo old | cmp - %t/f.h
// RUN: not varlen-opt %t/m.mlir --emit=obj --header=%t/f.h -o /dev/full 2>&1 \
// RUN:   | FileCheck %s --check-prefix=FULL
// FULL: varlen-opt: /dev/full: cannot be written: No space left on device
// RUN: echo old | cmp - %t/f.h

// A limit of a file's size is an error, with --emit or without.
// RUN: not bash -c 'ulimit -f 0; varlen-opt "$0" --emit=obj --header="$1"/g.h -o "$1"/g.o' \
// RUN:   %t/m.mlir %t 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: varlen-opt: {{.*}}g.h: cannot be written: File too large
// RUN: not bash -c 'ulimit -f 0; varlen-opt "$0" -o "$1"/g.mlir' %t/m.mlir %t 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TEXT
// TEXT: File too large
// RUN: ls %t | count 4

// Nor does it need threads that the system does not give it.
// RUN: sh -c 'ulimit -s 1000000000000000 && exec varlen-opt "$@"' - %t/m.mlir --emit=obj -o /dev/null
// RUN: sh -c 'ulimit -s 1000000000000000 && exec varlen-opt "$@"' - %t/m.mlir --emit=ptx -o /dev/null
// RUN: sh -c 'ulimit -s 1000000000000000 && exec varlen-opt "$@"' - %t/m.mlir --varlen-to-cpu -o /dev/null

// RUN: varlen-opt %t/m.mlir --emit=obj --header=%t/f.h -o %t/f.o && grep -q _mlir_ciface_f %t/f.h
// RUN: varlen-opt %t/m.mlir --emit=llvm -o - | grep -q _mlir_ciface_f
// RUN: ls %t | count 5

func.func @f(%q: tensor<?x2x16xf32>, %cu: tensor<?xi32>) -> tensor<?x2x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x2x16xf32>, tensor<2x?xf32>)
  return %out : tensor<?x2x16xf32>
}
