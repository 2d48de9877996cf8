# RUN: %around-code %python %s
# REQUIRES: torch
# UNSUPPORTED: asan
"""What torch-mlir lowers to linalg, beside PyTorch."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
import corpus
import corpus_torch

# Operations of torch-mlir's own.
REFUSED = {
    "cumsum": "'tm_tensor.scan'", "index_add": "'tm_tensor.scatter'",
    "sort": "'tm_tensor.sort'", "topk": "'tm_tensor.sort'",
}  # fmt: skip
REFUSED_GRADIENTS = {
    **dict.fromkeys(("any", "argmax", "to_integers"), "has no result of floats"),
    "one_hot": "has no argument of floats",
    "prod": "to be elementwise, or a sum, a maximum or a minimum",
}

texts = corpus_torch.read()
corpus.check(
    corpus_torch.CASES, lambda case: texts[case.name], corpus_torch.evaluate, REFUSED,
    REFUSED_GRADIENTS,
)  # fmt: skip
