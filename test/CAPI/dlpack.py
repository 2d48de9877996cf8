# REQUIRES: venv
# RUN: %python %s %varlen-build/lib/libvarlen-c.so

"""Tensors of PyTorch go in and out as DLPack has them."""

import ctypes
import sys

import torch

SOURCE = b"""
func.func @attention(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x64xbf16>,
                     %cu: tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      : (tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x64xbf16>, tensor<4x?xf32>
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
    parts = []
    for part in zip(q.split(lengths), k.split(lengths), v.split(lengths)):
        q1, k1, v1 = (x.float().transpose(0, 1) for x in part)
        k1, v1 = (x.repeat_interleave(2, dim=0) for x in (k1, v1))
        parts.append(torch.nn.functional.scaled_dot_product_attention(q1, k1, v1).transpose(0, 1))
    return torch.cat(parts)


torch.manual_seed(0)
lengths = [5, 0, 70, 12]
rows = sum(lengths)
cu = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)
qkv = torch.randn(rows, 8, 64, dtype=torch.bfloat16)
q, k, v = qkv[:, :4], qkv[:, 4:6], qkv[:, 6:]
want = expected(q, k, v, lengths)
for strided in (False, True):
    out = torch.full((rows, 4, 64), float("nan"), dtype=torch.bfloat16)
    lse = torch.full((4, rows), float("nan"))
    tensors = (q, k, v) if strided else [x.contiguous() for x in (q, k, v)]
    call(compile_function(strided), [*tensors, cu], [out, lse])
    error = (out.float() - want).abs().max().item()
    assert error < 2e-2, error
    assert torch.isfinite(lse).all()
