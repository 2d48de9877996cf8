# RUN: %python %s

"""What cannot be imported, and what an imported function refuses when it runs."""

import numpy as np
import onnx
import varlen
from checks import raises
from oracle import model_of
from varlen.onnx import ModelError, import_model

f32, i64 = np.float32, np.int64
x = np.zeros((2, 3, 4, 8), f32)


def refused(message, op, inputs, outputs=1, **options):
    raises(ModelError, message, import_model, model_of(op, inputs, outputs, **options))


def flex_attention():
    """FlexAttention, which is of a domain that models of one node here are not of."""
    model = model_of("Identity", [x])
    model.graph.node[0].CopyFrom(
        onnx.helper.make_node("FlexAttention", ["x0"] * 3, ["y0"], domain="ai.onnx.preview")
    )
    model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.preview", 1))
    return model


# Nodes, by operator, domain and opset.
refused(r"node 'einsum' (ai.onnx.Einsum, opset 23): the operator is not supported", "Einsum",
        [x], equation="abcd->abdc")  # fmt: skip
model = model_of("Identity", [x])
model.graph.node[0].op_type, model.graph.node[0].domain = "FusedMatMul", "com.microsoft"
model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
raises(
    ModelError,
    "(com.microsoft.FusedMatMul, opset 1): the operator is not supported",
    import_model,
    model,
)
refused("(ai.onnx.LinearAttention, opset 27): attention without softmax, by a state of each head is not supported",
        "LinearAttention", [x[0], x[0], x[0]], ["y", "state"], q_num_heads=2, kv_num_heads=2, opset=27, is_valid=False)  # fmt: skip
raises(
    ModelError,
    "(ai.onnx.preview.FlexAttention, opset 1): attention whose scores are changed by graphs is not supported",
    import_model,
    flex_attention(),
)
refused(" (in ONNX's definition of AffineGrid): ", "AffineGrid", [x[0], np.array([2, 3, 5, 6])], is_valid=False)
raises(
    ModelError,
    "expected a model of opset 18 to 28, got 17",
    import_model,
    model_of("Identity", [x], opset=17),
)
model = model_of("Identity", [x])
model.graph.node[0].input[0] = "nothing"
raises(ModelError, "nothing", import_model, model)

# Functions that call each other: twice each, which is more than a model may have, and in a
# circle.
def nested(depth, last):
    """A model of functions f0, f1, ..., of which each calls the next one twice."""
    functions = [
        onnx.helper.make_function(
            "own", f"f{i}", ["x"], ["y"],
            [onnx.helper.make_node(f"f{i + 1}" if i + 1 < depth else last, [a], [c], domain="own")
             for a, c in (("x", "between"), ("between", "y"))],
            [onnx.helper.make_opsetid("own", 1)],
        )
        for i in range(depth)
    ]  # fmt: skip
    model = model_of("Identity", [x])
    model.graph.node[0].op_type, model.graph.node[0].domain = "f0", "own"
    model.opset_import.append(onnx.helper.make_opsetid("own", 1))
    model.functions.extend(functions)
    return model


raises(ModelError, "expected a model of at most 262144 nodes, got 1073741824 with functions in place of their calls",
       import_model, nested(30, "leaf"))  # fmt: skip
raises(ModelError, "Cycle detected", import_model, nested(3, "f0"))

# Attention: what varlen.attn has no form for.
refused("expected attn_mask of 1 to 4 dimensions, got 5", "Attention", [x, x, x, x[None] > 0],
        is_valid=False)  # fmt: skip
refused("expected the queries of attn_mask to be Q's or 1: got 3 and 4", "Attention",
        [x, x, x, np.ones((3, 4), bool)], is_valid=False)  # fmt: skip
refused("expected attn_mask to have no more than all keys: got 5 and 4", "Attention",
        [x, x, x, np.ones((4, 5), bool)], is_valid=False)  # fmt: skip
refused("expected a softcap of 0 or more, got -1", "Attention", [x, x, x], softcap=-1.0)
refused("qk_matmul_output is not supported", "Attention", [x, x, x], ["y", "", "", "scores"])
refused("softmax_precision DOUBLE is not supported", "Attention", [x, x, x], softmax_precision=11)
refused("expected a positive scale, got 0.0", "Attention", [x, x, x], scale=0.0)
refused(
    "expected past_key and past_value, or neither",
    "Attention",
    [x, x, x, None, x[:, :, :0]],
    is_valid=False,
)
refused(
    "expected a static number of heads of K, got ",
    "Attention",
    [x, x, x],
    dims={1: [2, None, 4, 8]},
)

# Values and extents.
shape = np.array([6, -1], i64)
refused("expected the new shape to follow from constants and extents", "Reshape", [x, shape])
refused("expected as many elements in the new shape as in the old one: got 5 and 192", "Reshape",
        [x, np.array([5], i64)], constants=[1], is_valid=False)  # fmt: skip
refused("expected steps of 1 and more, got -1", "Slice", [x, *(np.array([n], i64) for n in (-1, -9, 0, -1))],
        constants=[1, 2, 3, 4])  # fmt: skip
refused("expected integers to be divided by constants", "Div", [shape, shape])
refused("expected an element type of FLOAT", "Identity", [np.zeros(3, np.uint8)])
raises(ModelError, "expected a model of ONNX", import_model, __file__)
raises(FileNotFoundError, "no-such-file", import_model, "no-such-file")


# Where a function runs: extents of one name, those that are broadcast, indices.
def compiled(op, inputs, **options):
    return varlen.compile(import_model(model_of(op, inputs, **options)).text)


one = x[0, 0]
add = compiled("Add", [one, one], dims={0: ["N", 8], 1: ["N", 8]})
assert add(one, one).shape == (4, 8)
raises(ValueError, "x1: extent 0 must be N, as elsewhere", add, one, one[:3])
add = compiled("Add", [one, one], dims={0: [None, 8], 1: [None, 8]})
raises(
    ValueError,
    "expected extents that agree or are 1 where the model is imported",
    add,
    one,
    one[:1],
)
gather = compiled("Gather", [one, np.array([0, 1])], dims={0: ["V", 8]})
assert gather(one, np.array([-4, 3])).shape == (2, 8)
for index in (-5, 4):
    raises(ValueError, "expected indices within the V entries", gather, one, np.array([0, index]))
used = np.array([4, 5])
attention = compiled("Attention", [x, x, x, None, None, None, used], opset=24, is_valid=False)
raises(ValueError, "seqused_k", attention, x, x, x, used)
mask = np.ones((4, 4), bool)
dims = {3: [4, "T"]}
attention = compiled("Attention", [x, x, x, mask], dims=dims)
assert attention(x, x, x, mask).shape == x.shape
raises(ValueError, "expected attn_mask to have all keys", attention, x, x, x, mask[:, :3])
