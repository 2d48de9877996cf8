# RUN: %python %s
# REQUIRES: venv
"""A workspace of a size that 64 bits do not count, or no memory has, is an error:
none is made too small."""

import numpy as np

import varlen

MODULE = """
func.func @f(%m: index {varlen.name = "m"}, %n: index {varlen.name = "n"},
             %x: memref<4xf32> {varlen.name = "x"}) {
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (4) {
    %a = memref.alloc(%n) : memref<?x8xf32>
    %b = memref.alloc(%m, %n) : memref<?x?xf32>
    %c = memref.alloc() : memref<16xf32>
    %0 = memref.load %x[%i] : memref<4xf32>
    %1 = arith.addf %0, %0 : f32
    memref.store %1, %a[%c0, %c0] : memref<?x8xf32>
    memref.store %1, %b[%c0, %c0] : memref<?x?xf32>
    memref.store %1, %c[%c0] : memref<16xf32>
    %2 = memref.load %a[%c0, %c0] : memref<?x8xf32>
    %3 = memref.load %b[%c0, %c0] : memref<?x?xf32>
    %4 = memref.load %c[%c0] : memref<16xf32>
    %5 = arith.addf %2, %3 : f32
    %6 = arith.addf %5, %4 : f32
    memref.store %6, %x[%i] : memref<4xf32>
  }
  return
}
"""

# A loop of the user's own stays one in the whole pipeline.
PIPELINE = "varlen-export-functions,varlen-outline-work,varlen-lower-to-llvm"


def outcome(m, n):
    """What a run says, None if it computes what it should."""
    x = np.arange(4, dtype=np.float32)
    inputs = {"m": np.array(m), "n": np.array(n), "x": x}
    try:
        results = varlen.run(MODULE, inputs, pipeline=PIPELINE)
    except varlen.Error as error:
        return str(error).splitlines()[-1]
    np.testing.assert_array_equal(results["x"], 6 * x)
    return None


def refused(size):
    return f"error: not enough memory for a workspace of {size} bytes"


assert outcome(3, 5) is None
# 64 bytes of c; 2^45 bytes in all of a and b, more than there is.
assert outcome(2**3, 2**39) == refused(2**45 + 64), outcome(2**3, 2**39)
for m, n in (
    (1, 2**59 + 1),  # a: 2^64 + 32 bytes
    (2**31, 2**32),  # b: 2^65 bytes
    (2**31 + 1, 2**31),  # b: 2^64 + 2^33 bytes
    (1, 2**58 - 1),  # a: 2^63 - 32 bytes, to be rounded up
    (-1, 1),
):
    assert outcome(m, n) == refused(2**62), (m, n, outcome(m, n))
