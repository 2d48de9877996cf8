"""What the tests of the Python package have in common."""

import ml_dtypes
import numpy as np
from varlen import reference, tolerance

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


def _reference_options(options):
    """The options of varlen.attn as those of the reference."""
    options = dict(options)
    if options.pop("is_causal", False):
        options["window"] = (-1, 0)
    if "chunk" in options:
        options["window"] = options.pop("chunk")
    return options


def check_attn(element, out, lse, q, k, v, cu_q, cu_k, **options):
    """That out and lse are what attention is by its definition."""
    options = _reference_options(options)
    golden = reference.attention(q, k, v, cu_q, cu_k, **options)
    plain = reference.plain(q, k, v, cu_q, cu_k, **options)
    # Twice the rule's: sums of so few terms have no average.
    limit = 2 * tolerance.bound(golden[0], plain[0], element)
    assert tolerance.max_error(out, golden[0]) <= limit, (element, options)
    # It is never rounded to the type of the inputs.
    allowed = (1e-12 if element == "f64" else 1e-5) * (1 + np.abs(golden[1]))
    with np.errstate(invalid="ignore"):
        close = (lse == golden[1]) | (np.abs(lse - golden[1]) <= allowed)
    assert close.all(), (element, options)


def check_gradients(element, gradients, dout, dlse, q, k, v, cu_q, cu_k, **options):
    """That (dq, dk, dv), and dsink if there is a sink, are those of the definition. A
    dlse of None is 0."""
    like = [q, k, v] + ([options["sink"]] if "sink" in options else [])
    options = _reference_options(options)
    golden = reference.gradients(dout, q, k, v, cu_q, cu_k, dlse=dlse, **options)
    plain = reference.plain_gradients(dout, q, k, v, cu_q, cu_k, dlse=dlse, **options)
    assert len(gradients) == len(like)
    for name, array, of, g, p in zip(("dq", "dk", "dv", "dsink"), gradients, like, golden, plain):
        assert array.dtype == of.dtype and array.shape == of.shape, name
        limit = 2 * tolerance.bound(g, p, element, gradient=True)
        assert tolerance.max_error(array, g) <= limit, (element, name, options)


def check_tangents(element, tangents, moved, q, k, v, cu_q, cu_k, **options):
    """That (tout, tlse) along those of (q, k, v) are the ones of the definition."""
    options = _reference_options(options)
    golden = reference.tangents(*moved, q, k, v, cu_q, cu_k, **options)
    plain = reference.plain_tangents(*moved, q, k, v, cu_q, cu_k, **options)
    for name, array, g, p in zip(("tout", "tlse"), tangents, golden, plain, strict=True):
        limit = 2 * tolerance.bound(g, p, element, gradient=True)
        assert tolerance.max_error(array, g) <= limit, (element, name, options)
