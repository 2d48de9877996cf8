# RUN: %python %s
# REQUIRES: venv
"""Conversions of f8E4M3FN on a CPU, which has no instructions for them: all numbers of 8 and 16 bits,
and of f32 each of its 2^16 upper halves with lower halves at and beside a tie."""

import ml_dtypes
import numpy as np

import varlen
from varlen import dtypes

F8 = np.dtype(ml_dtypes.float8_e4m3fn)


def convert(x, to):
    """`x` by a function of one loop."""
    of = dtypes.name_of(x)
    operation = "extf" if of == "f8E4M3FN" else "truncf"
    source = f"""
func.func @convert(%x: tensor<?x{of}>) -> tensor<?x{to}> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x{of}>
  %init = tensor.empty(%n) : tensor<?x{to}>
  %y = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}}
      ins(%x : tensor<?x{of}>) outs(%init : tensor<?x{to}>) {{
  ^bb0(%a: {of}, %b: {to}):
    %0 = arith.{operation} %a : {of} to {to}
    linalg.yield %0 : {to}
  }} -> tensor<?x{to}>
  return %y : tensor<?x{to}>
}}
"""
    return varlen.compile(source)["convert"](x)


def assert_same(got, wanted, what):
    """The same bits, or NaN both."""
    same = (got == wanted) & (np.signbit(got) == np.signbit(wanted)) | np.isnan(got) & np.isnan(wanted)
    assert same.all(), (what, got[~same][:5], wanted[~same][:5])


bits = np.arange(2**16, dtype="u2")
upper = bits.astype("u4")[:, None] << 16
f32 = (upper | np.array([0, 1, 0x7FFF, 0x8000, 0xFFFF], "u4")).ravel().view("f4")
with np.errstate(all="ignore"):
    for x in (f32, bits.view("f2"), bits.view(ml_dtypes.bfloat16)):
        # ml_dtypes rounds f16 and bf16 by f32, too; that of an infinity is a NaN.
        wanted = x.astype("f4").astype(F8)
        assert_same(convert(x, "f8E4M3FN"), wanted, x.dtype)
    numbers = np.arange(256, dtype="u1").view(F8)
    for to in ("f32", "f16", "bf16", "f64"):
        assert_same(convert(numbers, to), numbers.astype("f4").astype(dtypes.by_name[to]), to)
