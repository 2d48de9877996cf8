# RUN: %python %s | FileCheck %s
# CHECK: {{[1-9][0-9]+}} models

"""Conv, in all its forms, is what ONNX's reference computes."""

import numpy as np
from checks import raises
from oracle import Cases, model_of
from varlen.onnx import ModelError, import_model

rng = np.random.default_rng(4)
cases = Cases()


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


# Spatial dimensions, strides, pads, dilations, groups; static, and dynamic with a bias.
for x, w, attributes in (
    ((2, 3, 9), (4, 3, 3), {}),
    ((2, 3, 9), (4, 3, 3), {"pads": [1, 2], "strides": [2]}),
    ((1, 3, 16, 12), (5, 3, 4, 4), {"strides": [4, 4]}),
    ((2, 4, 8, 7), (6, 2, 3, 2), {"group": 2, "pads": [1, 0, 2, 1], "dilations": [2, 1], "strides": [1, 3]}),
    ((2, 4, 5, 6), (4, 1, 3, 3), {"group": 4, "auto_pad": "SAME_UPPER"}),
    ((2, 4, 6, 6), (3, 4, 2, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ((2, 2, 4, 5, 3), (3, 2, 2, 2, 2), {"auto_pad": "VALID"}),
    ((1, 1, 1), (1, 1, 1), {}),
):  # fmt: skip
    cases.add("Conv", [normal(*x), normal(*w)], **attributes)
    dims = {0: ["B", x[1], *[None] * (len(x) - 2)]}
    cases.add("Conv", [normal(*x), normal(*w), normal(w[0])], dims=dims, **attributes)
for dtype in (np.float64, np.float16):
    inputs = [normal(*shape, dtype=dtype) for shape in ((2, 3, 9), (4, 3, 3), (4,))]
    cases.add("Conv", inputs, pads=[1, 1])
cases.check()


def refused(message, x, w, **options):
    model = model_of("Conv", [np.zeros(x, np.float32), np.zeros(w, np.float32)], is_valid=False, **options)
    raises(ModelError, message, import_model, model)


refused("expected no less than a kernel of dimension 2: got 3 and 2", (1, 2, 2), (1, 2, 3))
refused("expected the channels of X to be those of W in each group: got 3 and 2", (1, 3, 4), (1, 2, 3))
refused("expected groups that divide 3 features, got 2", (1, 4, 4), (3, 2, 3), group=2)
refused("expected 1 strides of 1 and more, got [0]", (1, 2, 4), (1, 2, 3), strides=[0])
refused("expected 2 pads of 0 and more, got [0, -1]", (1, 2, 4), (1, 2, 3), pads=[0, -1])
refused("expected W of static extents of 1 and more, got ", (1, 2, 4), (1, 2, 3), dims={1: [1, 2, "K"]})
