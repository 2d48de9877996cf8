// Every file that is broken or does not fit the function is refused with one line that says
// what was wanted and what was got, and status 1.

// RUN: rm -rf %t && %python %S/Inputs/make-files.py %t
// RUN: cp %s %t/add.mlir && cd %t

// RUN: not varlen-run add.mlir absent.safetensors 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: error: absent.safetensors: cannot be opened: No such file or directory
// RUN: not varlen-run add.mlir absent.safetensors lost.safetensors 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: {{^}}error: absent.safetensors: cannot be opened: No such file or directory
// TWO: {{^}}error: lost.safetensors: cannot be opened: No such file or directory
// RUN: not varlen-run add.mlir . 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: error: .: is not a regular file
// RUN: not varlen-run add.mlir short.safetensors 2>&1 | FileCheck %s --check-prefix=SHORT
// SHORT: error: short.safetensors: is truncated: a safetensors file has at least 8 bytes, this one 5
// RUN: not varlen-run add.mlir no-header.safetensors 2>&1 | FileCheck %s --check-prefix=HEADER
// HEADER: error: no-header.safetensors: is truncated: the header ends at byte {{[0-9]+}}, the file at {{[0-9]+}}
// RUN: not varlen-run add.mlir truncated.safetensors 2>&1 | FileCheck %s --check-prefix=TRUNCATED
// TRUNCATED: error: truncated.safetensors: is truncated: tensor 'y' ends at byte 52 of the data, the file at 48
// RUN: not varlen-run add.mlir trailing.safetensors 2>&1 | FileCheck %s --check-prefix=TRAILING
// TRAILING: error: trailing.safetensors: the last tensor ends at byte 52 of the data: expected 53, where the file ends
// RUN: not varlen-run add.mlir no-safetensors.safetensors 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: no-safetensors.safetensors: is not a safetensors file: it would have a header of {{[0-9]+}} bytes
// RUN: not varlen-run add.mlir no-json.safetensors 2>&1 | FileCheck %s --check-prefix=JSON
// JSON: error: no-json.safetensors: the header is not JSON:
// RUN: not varlen-run add.mlir no-object.safetensors 2>&1 | FileCheck %s --check-prefix=OBJECT
// OBJECT: error: no-object.safetensors: the header is not a JSON object
// RUN: not varlen-run add.mlir deep.safetensors 2>&1 | FileCheck %s --check-prefix=DEEP
// DEEP: error: deep.safetensors: the header nests more than 8 deep
// RUN: not varlen-run add.mlir entry.safetensors 2>&1 | FileCheck %s --check-prefix=ENTRY
// ENTRY: error: entry.safetensors: tensor 'x': expected an object in the header
// RUN: not varlen-run add.mlir bad-dtype.safetensors 2>&1 | FileCheck %s --check-prefix=BADDTYPE
// BADDTYPE: error: bad-dtype.safetensors: tensor 'x' has dtype 'F8', which is not supported: the function expects F32 [?, 3]
// RUN: not varlen-run add.mlir bad-shape.safetensors 2>&1 | FileCheck %s --check-prefix=BADSHAPE
// BADSHAPE: error: bad-shape.safetensors: tensor 'x': expected 'shape' to be a list of non-negative integers
// RUN: not varlen-run add.mlir bad-range.safetensors 2>&1 | FileCheck %s --check-prefix=BADRANGE
// BADRANGE: error: bad-range.safetensors: tensor 'x': expected 'data_offsets' to be [begin, end]
// RUN: not varlen-run add.mlir bad-size.safetensors 2>&1 | FileCheck %s --check-prefix=BADSIZE
// BADSIZE: error: bad-size.safetensors: tensor 'x' has 24 bytes, which is not what dtype F32 and shape [5] need
// RUN: not varlen-run add.mlir overflow.safetensors 2>&1 | FileCheck %s --check-prefix=OVERFLOW
// OVERFLOW: error: overflow.safetensors: tensor 'x' has 24 bytes, which is not what dtype F32 and shape [4611686018427387904, 4] need
// RUN: not varlen-run add.mlir overlap.safetensors 2>&1 | FileCheck %s --check-prefix=OVERLAP
// OVERLAP: error: overlap.safetensors: tensor 'y' begins at byte 8 of the data: expected 12, where the one before it ends
// RUN: not varlen-run add.mlir hole.safetensors 2>&1 | FileCheck %s --check-prefix=HOLE
// HOLE: error: hole.safetensors: tensor 'y' begins at byte 16 of the data: expected 12, where the one before it ends
// RUN: not varlen-run add.mlir late.safetensors 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: late.safetensors: tensor 'x' begins at byte 4 of the data: expected 0,
// RUN: not varlen-run add.mlir twice.safetensors 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: twice.safetensors: the header has 'x' twice
// RUN: not varlen-run add.mlir field-twice.safetensors 2>&1 | FileCheck %s --check-prefix=FIELDTWICE
// FIELDTWICE: error: field-twice.safetensors: the header has 'dtype' twice
// RUN: not varlen-run add.mlir fraction.safetensors 2>&1 | FileCheck %s --check-prefix=FRACTION
// FRACTION: error: fraction.safetensors: the header has the number '3.0': expected an integer of 64 bits
// RUN: not varlen-run add.mlir leading-zero.safetensors 2>&1 | FileCheck %s --check-prefix=ZERO
// ZERO: error: leading-zero.safetensors: the header has the number '03': expected an integer of 64 bits
// RUN: not varlen-run add.mlir zero-overflow.safetensors 2>&1 | FileCheck %s --check-prefix=ZEROOVERFLOW
// ZEROOVERFLOW: error: zero-overflow.safetensors: tensor 'x' has 0 bytes, which is not what dtype F32 and shape [4611686018427387904, 8, 0] need
// RUN: not varlen-run add.mlir metadata.safetensors 2>&1 | FileCheck %s --check-prefix=METADATA
// METADATA: error: metadata.safetensors: expected '__metadata__' to be an object of strings
// RUN: not varlen-run add.mlir no-dtype.safetensors 2>&1 | FileCheck %s --check-prefix=NODTYPE
// NODTYPE: error: no-dtype.safetensors: tensor 'x': expected 'dtype' to be a string

// RUN: not varlen-run add.mlir long-name.safetensors 2>&1 | FileCheck %s --check-prefix=LONGNAME
// LONGNAME: {{^}}error: long-name.safetensors: tensor 'nnnnnnnn{{n*}}...': expected an object in the header{{$}}
// RUN: not varlen-run add.mlir escape.safetensors 2>&1 | FileCheck %s --check-prefix=ESCAPE
// ESCAPE: error: escape.safetensors: tensor '\1B[31m': expected an object in the header
// RUN: not varlen-run add.mlir long-shape.safetensors 2>&1 | FileCheck %s --check-prefix=LONGSHAPE
// LONGSHAPE: error: long-shape.safetensors: tensor 'x' has 24 bytes, which is not what dtype F32 and shape [1, 1, 1, 1, 1, 1, 1, 1, ...] need
// RUN: not varlen-run add.mlir many.safetensors 2>&1 | FileCheck %s --check-prefix=NAMES
// NAMES: the file has 'tensor 00000', 'tensor 00001', {{.*}}, 'tensor 00007' and 9992 more{{$}}

// RUN: varlen-run add.mlir other-dtype.safetensors %upstream | FileCheck %s --check-prefix=OTHERDTYPE
// OTHERDTYPE: function add

// A FIFO cannot be read at any place, and must not be waited for.
// RUN: mkfifo fifo
// RUN: not timeout 30 varlen-run add.mlir fifo 2>&1 | FileCheck %s --check-prefix=FIFO
// FIFO: error: fifo: is not a regular file

// RUN: not varlen-run add.mlir 2>&1 | FileCheck %s --check-prefix=NOFILE
// NOFILE: error: no value for argument 'x' (F32 [?, 3]): expected a safetensors file, or --random=SEED
// RUN: not varlen-run add.mlir missing.safetensors 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: missing.safetensors: no tensor 'y' (F32 [?, 3]), which the function expects; the file has 's', 'x'
// RUN: not varlen-run add.mlir rank.safetensors 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: error: rank.safetensors: tensor 'x' is F32 [3]: the function expects F32 [?, 3]
// RUN: not varlen-run add.mlir extent.safetensors 2>&1 | FileCheck %s --check-prefix=EXTENT
// EXTENT: error: extent.safetensors: tensor 'x' is F32 [2, 2]: the function expects F32 [?, 3]
// RUN: not varlen-run add.mlir dtype.safetensors 2>&1 | FileCheck %s --check-prefix=DTYPE
// DTYPE: error: dtype.safetensors: tensor 'y' is F16 [2, 3]: the function expects F32 [?, 3]
// RUN: not varlen-run add.mlir scalar.safetensors 2>&1 | FileCheck %s --check-prefix=SCALAR
// SCALAR: error: scalar.safetensors: tensor 's' is F32 [1]: the function expects F32 []

func.func @add(%x: tensor<?x3xf32> {varlen.name = "x"},
               %y: tensor<?x3xf32> {varlen.name = "y"},
               %s: f32 {varlen.name = "s"}) -> tensor<?x3xf32> {
  %sum = linalg.add ins(%x, %y : tensor<?x3xf32>, tensor<?x3xf32>)
      outs(%x : tensor<?x3xf32>) -> tensor<?x3xf32>
  return %sum : tensor<?x3xf32>
}
