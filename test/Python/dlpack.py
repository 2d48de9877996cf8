# RUN: %python %s

"""varlen.attn, its gradients and functions of varlen.compile take arrays of any library
with DLPack: one of the array API gets results of its own, another one numpy's; capsules
with and without a version."""

import types

import numpy as np
import varlen
from checks import check_attn, check_gradients, cumulate, normal, raises


class Exported:
    """Memory of numpy with DLPack and nothing else of numpy."""

    def __init__(self, array):
        self.array = array

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, max_version=None, **options):
        return self.array.__dlpack__(max_version=max_version, **options)


class Standard(Exported):
    """An array of a library that follows the array API."""

    def __array_namespace__(self, api_version=None):
        return NAMESPACE


NAMESPACE = types.SimpleNamespace(
    float32=np.dtype(np.float32), float64=np.dtype(np.float64),
    empty=lambda shape, dtype: Standard(np.empty(shape, dtype)),
)  # fmt: skip


class Old(Exported):
    """From before DLPack 1: no versions, as numpy 1 has it."""

    def __dlpack__(self, *, stream=None):
        return self.array.__dlpack__()


rng = np.random.default_rng(5)
cu = cumulate(5, 0, 17, 3)
for element in ("f32", "f64"):
    q, k, v = (normal(rng, element, 25, n, d) for n, d in ((4, 16), (2, 16), (2, 24)))
    dout = normal(rng, element, 25, 4, 24)
    wanted = varlen.attn(q, k, v, cu, is_causal=True)
    for kind, of_results in ((Standard, Standard), (Exported, np.ndarray), (Old, np.ndarray)):
        arrays = [kind(x) for x in (q, k, v, cu)]
        out, lse = varlen.attn(*arrays, is_causal=True, return_lse=True)
        gradients = varlen.attn_grad(
            kind(dout), *arrays[:3], out, lse, arrays[3], is_causal=True
        )
        assert {type(x) for x in (out, lse, *gradients)} == {of_results}, kind
        out, lse, *gradients = (
            x.array if kind is Standard else x for x in (out, lse, *gradients)
        )
        assert np.array_equal(out, wanted), kind
        check_attn(element, out, lse, q, k, v, cu, cu, is_causal=True)
        check_gradients(element, gradients, dout, None, q, k, v, cu, cu, is_causal=True)
        # Slices, and memory of the caller.
        fused, given = normal(rng, element, 25, 8, 16), np.zeros((25, 6, 16), q.dtype)
        parts = fused[:, :4], fused[:, 4:6], fused[:, 6:]
        result = kind(given[:, 1:5])
        assert varlen.attn(*map(kind, parts), kind(cu), out=result) is result
        assert np.array_equal(given[:, 1:5], varlen.attn(*parts, cu))
        assert not given[:, 0].any() and not given[:, 5].any()

# What a library has no elements for, and what cannot be written.
half = [Standard(normal(rng, "f16", 25, 4, 16)) for _ in range(3)]
raises(TypeError, "expected a library of arrays that has float16, got one without", varlen.attn, *half, Standard(cu))
constant = np.zeros((25, 4, 24), np.float64)
constant.flags.writeable = False
raises(
    ValueError, "out: expected an array that can be written, got a read-only one",
    varlen.attn, q, k, v, cu, out=Exported(constant),
)  # fmt: skip

program = varlen.compile(
    "func.func @f(%x: tensor<?xf64>) -> tensor<?xf64> { return %x : tensor<?xf64> }"
)
x = np.arange(3.0)
for kind, result in ((Standard, Standard), (Exported, np.ndarray), (Old, np.ndarray)):
    y = program(kind(x))
    assert type(y) is result and np.array_equal(y.array if kind is Standard else y, x)
