"""What the tests of the Python package have in common."""

import ml_dtypes
import numpy as np

NUMPY_TYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}


def raises(kind, fragment, function, *arguments, **options):
    """That the call fails with an exception of `kind`, whose message has `fragment`."""
    try:
        function(*arguments, **options)
    except Exception as error:
        assert type(error) is kind, repr(error)
        assert fragment in str(error), f"expected {fragment!r} in {str(error)!r}"
        return
    raise AssertionError(f"expected {kind.__name__} with {fragment!r}, got none")


def cumulate(*lengths, dtype=np.int32):
    """cu_seqlens of sequences of these lengths."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=dtype)]).astype(dtype)


def normal(rng, element, *shape):
    """Random numbers of the type of that MLIR name."""
    return rng.standard_normal(shape).astype(NUMPY_TYPES[element])
