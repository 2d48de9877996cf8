# REQUIRES: venv
# RUN: %python %s %varlen-build/lib/libvarlen-c.so

"""Arrays of a framework go in and out as DLPack has them, slices of one array too."""

import ctypes
import sys

import numpy as np

SOURCE = b"""
func.func @attention(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>,
                     %cu: tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      : (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x64xf32>, tensor<4x?xf32>
}
"""


class CompileOptions(ctypes.Structure):
    _fields_ = [
        ("structSize", ctypes.c_size_t),
        ("target", ctypes.c_char_p),
        ("onDiagnostic", ctypes.c_void_p),
        ("diagnosticContext", ctypes.c_void_p),
        ("stridedTensors", ctypes.c_bool),
    ]


library = ctypes.CDLL(sys.argv[1])
library.varlenGetLastError.restype = ctypes.c_char_p
get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype = ctypes.c_void_p
get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def check(status):
    assert status == 0, library.varlenGetLastError().decode()


def pointers(tensors):
    """The DLTensor that each capsule begins with."""
    capsules = [tensor.__dlpack__() for tensor in tensors]
    array = (ctypes.c_void_p * len(tensors))(
        *(get_pointer(capsule, b"dltensor") for capsule in capsules)
    )
    return array, len(tensors), capsules


def call(function, arguments, results):
    inputs, num_inputs, _keep_inputs = pointers(arguments)
    outputs, num_outputs, _keep_outputs = pointers(results)
    check(
        library.varlenFunctionCall(
            function,
            inputs,
            ctypes.c_size_t(num_inputs),
            outputs,
            ctypes.c_size_t(num_outputs),
            None,
        )
    )


def compile_function(strided):
    program, function = ctypes.c_void_p(), ctypes.c_void_p()
    options = CompileOptions(ctypes.sizeof(CompileOptions), stridedTensors=strided)
    size = ctypes.c_size_t(len(SOURCE))
    check(library.varlenCompile(SOURCE, size, ctypes.byref(options), ctypes.byref(program)))
    check(library.varlenProgramGetFunction(program, None, ctypes.byref(function)))
    return function


def expected(q, k, v, lengths):
    """Softmax attention of each sequence, in f64."""
    parts, ends = [], np.cumsum(lengths)
    for start, end in zip(ends - lengths, ends):
        q1, k1, v1 = (x[start:end].astype(np.float64) for x in (q, k, v))
        k1, v1 = (x.repeat(2, axis=1) for x in (k1, v1))
        scores = np.einsum("qhd,khd->hqk", q1, k1) / q1.shape[-1] ** 0.5
        p = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-1e30))
        parts.append(np.einsum("hqk,khd->qhd", p / p.sum(axis=-1, keepdims=True), v1))
    return np.concatenate(parts)


rng = np.random.default_rng(0)
lengths = np.array([5, 0, 70, 12])
rows = lengths.sum()
cu = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
qkv = rng.standard_normal((rows, 8, 64), np.float32)
q, k, v = qkv[:, :4], qkv[:, 4:6], qkv[:, 6:]
want = expected(q, k, v, lengths)
for strided in (False, True):
    out = np.full((rows, 4, 64), np.nan, np.float32)
    lse = np.full((4, rows), np.nan, np.float32)
    tensors = (q, k, v) if strided else [np.ascontiguousarray(x) for x in (q, k, v)]
    call(compile_function(strided), [*tensors, cu], [out, lse])
    error = np.abs(out - want).max()
    assert error < 1e-5, error
    assert np.isfinite(lse).all()
