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


def draw(*heads):
    """A tensor for each number of heads; the last rows are of no sequence."""
    rng = np.random.default_rng(5)
    values = [rng.standard_normal((ROWS, n, 32)).astype("f4") for n in heads]
    return [dtypes.narrow(x, "bf16") for x in values]


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
        # The gradient of a capture: a sum of either sign over all scores of a head.
        limit = (2 if name == "dslopes" else 1) * tolerance.bound(golden, plain, "bf16", gradient=True)
        error = tolerance.max_error(found[name], golden)
        assert error <= limit, f"{label}: {name}: {error:.3g}, expected at most {limit:.3g}"


def check_before(run):
    """before.mlir, which `run` runs on a dict of arrays; returns the inputs and results."""
    inputs = dict(zip(("dout", "q", "k", "v"), draw(2, 2, 1, 1)))
    slopes = np.array([0.5, 0.125], "f4")
    given = {**inputs, "cu_seqlens": CU, "slopes": slopes}
    found = run(INPUTS / "before.mlir", given)
    check("before", found, **inputs, score=scores.alibi(), captures=[slopes])
    return given, found
