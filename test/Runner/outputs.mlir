// What a run writes is there whole, with status 0, or not at all.

// RUN: rm -rf %t && %python %S/Inputs/make-files.py %t
// RUN: cp %s %t/add.mlir && cd %t && mkdir folder percent%%d

// A file gets its name when it is complete, and keeps its permissions. What a
// link leads to is written, also where nothing is there yet.
// RUN: ln -s folder/target link
// RUN: varlen-run add.mlir good.safetensors -o link --json=folder/json %upstream
// RUN: test -L link
// RUN: %python %S/Inputs/print-tensors.py folder/target | FileCheck %s --check-prefix=TENSORS
// TENSORS: result0 float32 [2, 3]
// RUN: chmod 640 folder/json
// RUN: varlen-run add.mlir good.safetensors -o link --json=folder/json %upstream
// RUN: test -L link
// RUN: %python -m json.tool folder/json
// RUN: ls -l folder | FileCheck %s --check-prefix=MODE
// MODE: {{^}}-rw-r----- {{.*}} json
// RUN: varlen-run add.mlir good.safetensors -o percent%%d/out %upstream
// RUN: cmp percent%%d/out folder/target

// A device or a FIFO is written to, not replaced.
// RUN: mkfifo fifo
// RUN: sh -c 'timeout 60 cat fifo >copy & varlen-run "$@" && wait $!' - add.mlir good.safetensors -o fifo %upstream
// RUN: test -p fifo
// RUN: cmp copy folder/target
// RUN: sh -c 'timeout 60 cat fifo >copy & varlen-run "$@" && wait $!' - add.mlir good.safetensors --json=fifo %upstream
// RUN: test -p fifo
// RUN: %python -m json.tool copy

// None of the files of a run is written if one cannot be,
// RUN: not varlen-run add.mlir good.safetensors -o one --json=/dev/full %upstream 2>&1 | FileCheck %s --check-prefix=FULL
// FULL: error: /dev/full: cannot be written: No space left on device
// RUN: not sh -c 'ulimit -f 0; varlen-run "$@"' - add.mlir good.safetensors -o one %upstream 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: error: one: cannot be written: File too large
// RUN: not varlen-run add.mlir good.safetensors -o folder %upstream 2>&1 | FileCheck %s --check-prefix=OUTFOLDER
// OUTFOLDER: error: -o: 'folder' is a folder: expected a file
// RUN: not varlen-run add.mlir good.safetensors -o absent/out %upstream 2>&1 | FileCheck %s --check-prefix=OUTABSENT
// OUTABSENT: error: absent/out: cannot be written: No such file or directory
// RUN: not varlen-run add.mlir good.safetensors -o one --json=absent/out %upstream 2>&1 | FileCheck %s --check-prefix=OUTABSENT
// RUN: not varlen-run add.mlir good.safetensors -o one --device=sim:sm_80 --trace=two %upstream 2>&1 | FileCheck %s --check-prefix=NOKERNEL
// NOKERNEL: error: no trace can be made: no kernel has touched memory
// RUN: not test -e two
// RUN: ln -s loop loop
// RUN: not varlen-run add.mlir good.safetensors -o loop %upstream 2>&1 | FileCheck %s --check-prefix=OUTLOOP
// OUTLOOP: error: loop: cannot be written: Too many levels of symbolic links
// RUN: test -L loop

// nor without a message; and nothing is left behind.
// RUN: not sh -c 'varlen-run "$@" >/dev/full' - add.mlir good.safetensors -o one %upstream 2>&1 | FileCheck %s --check-prefix=STDOUT
// STDOUT: error: stdout: cannot be written: No space left on device
// RUN: not sh -c 'varlen-run --help >/dev/full' 2>&1 | FileCheck %s --check-prefix=STDOUT
// RUN: not sh -c 'varlen-run "$@" >&-' - add.mlir good.safetensors -o one %upstream 2>&1 | FileCheck %s --check-prefix=CLOSED
// CLOSED: error: stdout: cannot be written: Bad file descriptor
// RUN: not test -e one
// RUN: ls -R | FileCheck %s --check-prefix=LEFT
// LEFT-NOT: .tmp

// What is read is not written, and nothing is written twice, by whatever name.
// RUN: ln good.safetensors hard && ln -s ../good.safetensors folder/soft
// RUN: not varlen-run add.mlir good.safetensors -o ./add.mlir 2>&1 | FileCheck %s --check-prefix=OVERMODULE
// OVERMODULE: error: -o: './add.mlir' is the module: expected another file
// RUN: not varlen-run add.mlir good.safetensors -o hard 2>&1 | FileCheck %s --check-prefix=OVERINPUT
// OVERINPUT: error: -o: 'hard' is an input: expected another file
// RUN: not varlen-run add.mlir good.safetensors --json=folder/soft 2>&1 | FileCheck %s --check-prefix=JSONINPUT
// JSONINPUT: error: --json: 'folder/soft' is an input: expected another file
// RUN: not varlen-run add.mlir good.safetensors --device=sim:sm_80 --trace=add.mlir 2>&1 | FileCheck %s --check-prefix=TRACEMODULE
// TRACEMODULE: error: --trace: 'add.mlir' is the module: expected another file
// RUN: not varlen-run add.mlir good.safetensors -o new --json=folder/../new 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: --json: 'folder/../new' is written by -o, too: expected another file
// RUN: not varlen-run add.mlir good.safetensors more.safetensors -o new -o ./new 2>&1 | FileCheck %s --check-prefix=OUTTWICE
// OUTTWICE: error: -o: './new' is written by -o, too: expected another file

func.func @add(%x: tensor<?x3xf32> {varlen.name = "x"},
               %y: tensor<?x3xf32> {varlen.name = "y"},
               %s: f32 {varlen.name = "s"}) -> tensor<?x3xf32> {
  %sum = linalg.add ins(%x, %y : tensor<?x3xf32>, tensor<?x3xf32>)
      outs(%x : tensor<?x3xf32>) -> tensor<?x3xf32>
  return %sum : tensor<?x3xf32>
}
