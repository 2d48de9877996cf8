"""What the tests of attention in a host's pipeline run, and compare."""

import pathlib

import numpy as np

from varlen import dtypes, reference, scores, tolerance

INPUTS = pathlib.Path(__file__).parent
BUFFERIZE = (
    "one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map}"
)
CU = np.array([0, 0, 21, 22, 55], "i4")
ROWS = 57
_rng = np.random.default_rng(5)


def draw(heads):
    """The last rows are of no sequence."""
    return dtypes.narrow(_rng.standard_normal((ROWS, heads, 32)).astype("f4"), "bf16")


def check(label, found, dout, q, k, v, **given):
    """Whether these are out, lse and the gradients of causal attention."""
    given |= {"window": (-1, 0)}
    forward = [f(q, k, v, CU, CU, **given) for f in (reference.attention, reference.plain)]
    backward = [
        f(dout, q, k, v, CU, CU, **given) for f in (reference.gradients, reference.plain_gradients)
    ]
    for name, golden, plain in zip(("out", "lse"), *forward, strict=True):
        tolerance.check(found[name], golden, plain, "bf16", f"{label}: {name}")
    names = ["dq", "dk", "dv", None, *(["dslopes"] if "score" in given else [])]
    for name, golden, plain in zip(names, *backward, strict=True):
        if not name:
            continue
        # Of a capture: a sum of either sign over all scores of a head.
        limit = (2 if name == "dslopes" else 1) * tolerance.bound(golden, plain, "bf16", gradient=True)
        error = tolerance.max_error(found[name], golden)
        assert error <= limit, f"{label}: {name}: {error:.3g}, expected at most {limit:.3g}"


def check_before(run):
    """before.mlir, which `run` runs on a dict of arrays; returns the inputs and results."""
    inputs = {"dout": draw(2), "q": draw(2), "k": draw(1), "v": draw(1)}
    slopes = np.array([0.5, 0.125], "f4")
    given = {**inputs, "cu_seqlens": CU, "slopes": slopes}
    found = run(INPUTS / "before.mlir", given)
    check("before", found, **inputs, score=scores.alibi(), captures=[slopes])
    return given, found
