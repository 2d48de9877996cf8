# RUN: %python %s | FileCheck %s
# REQUIRES: onnxruntime
# CHECK: {{[1-9][0-9]+}} models

"""GroupQueryAttention and MultiHeadAttention of com.microsoft are what onnxruntime computes."""

import dataclasses

import numpy as np
import onnx
import onnxruntime
import varlen
from checks import raises
from onnx import helper
from oracle import difference
from varlen.onnx import ModelError, import_model

onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(5)


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def model_of(op, inputs, outputs, *, dims=None, constants=(), **attributes):
    """A model of one node; inputs that it has not are None."""
    last = max(i for i, array in enumerate(inputs) if array is not None)
    names = ["" if array is None else f"x{i}" for i, array in enumerate(inputs[: last + 1])]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain="com.microsoft", name="node", **attributes)
    infos = [
        helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(array.dtype),
                                      (dims or {}).get(i, array.shape))
        for i, array in enumerate(inputs) if array is not None and i not in constants
    ]  # fmt: skip
    type = helper.np_dtype_to_tensor_dtype(inputs[0].dtype)
    graph = helper.make_graph(
        [node], op, infos,
        [helper.make_tensor_value_info(y, type, [None] * (4 if i else 3)) for i, y in enumerate(results)],
        [onnx.numpy_helper.from_array(inputs[i], f"x{i}") for i in constants],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@dataclasses.dataclass
class Case:
    name: str
    model: onnx.ModelProto
    feeds: dict
    # Rows of the results, and of caches, that are not padding.
    rows: np.ndarray | None = None
    keys: np.ndarray | None = None


cases = []


def add(op, inputs, outputs, *, rows=None, keys=None, **options):
    constants = options.get("constants", ())
    feeds = {
        f"x{i}": array for i, array in enumerate(inputs) if array is not None and i not in constants
    }
    model = model_of(op, inputs, outputs, **options)
    cases.append(Case(f"{op}_{len(cases)}", model, feeds, rows, keys))


def group_query(
    *, batch=2, rows=5, heads=4, kv_heads=2, d=16, cache=0, total=None, lengths=None, is_packed=False, rotary=0,
    bias=None, has_sink=False, has_positions=False, is_dynamic=False, dtype=np.float32, **attributes,
):  # fmt: skip
    """A case. `cache` is rows of the cache, None without one; `lengths` those of each
    sequence, with the new ones; `bias` the extents of attention_bias that are not 1."""
    total = total or rows
    lengths = np.array(lengths or [total] * batch, np.int32)
    widths = heads * d, kv_heads * d, kv_heads * d
    qkv = [normal(batch, rows, width, dtype=dtype) for width in widths]
    if is_packed:
        qkv = [np.concatenate(qkv, 2), None, None]
    caches = [None, None] if cache is None else [normal(batch, kv_heads, cache, d, dtype=dtype) for _ in range(2)]
    tables = [normal(32, rotary // 2, dtype=dtype) if rotary else None for _ in range(2)]
    starts = np.maximum(lengths - rows, 0)[:, None]
    positions = 1 + starts + np.arange(rows) if has_positions else None
    extents = {"B": batch, "H": heads, "S": rows, "T": total}
    added = None if bias is None else normal(*(extents.get(c, 1) for c in bias), dtype=dtype)
    sink = normal(heads, dtype=dtype) if has_sink else None
    inputs = [*qkv, *caches, lengths - 1, np.array(total, np.int32), *tables, positions, added, sink]
    dims = {}
    if is_dynamic:
        dims = {i: ["B", "S", x.shape[2]] for i, x in enumerate(qkv) if x is not None}
        dims |= {i: ["B", kv_heads, "C", d] for i in (3, 4)} | {5: ["B"]}
    seen = starts + np.arange(rows) < lengths[:, None]
    keys = np.arange(max(total, cache or 0)) < lengths[:, None]
    add("GroupQueryAttention", inputs, 3, rows=seen, keys=keys, dims=dims, num_heads=heads, kv_num_heads=kv_heads,
        constants=() if is_dynamic else (6,), do_rotary=int(bool(rotary)), **attributes)  # fmt: skip


decode = {"rows": 1, "cache": 8, "total": 7, "lengths": [7, 4]}
# Prompts without a cache, with an empty one and in one that has room, padded at the right.
group_query(cache=None)
group_query()
group_query(cache=8, lengths=[5, 3], is_dynamic=True)
# One row and several behind what the cache has; a cache without room is copied.
group_query(**decode)
group_query(**decode | {"cache": 6})
group_query(batch=1, rows=3, cache=6, total=9)
group_query(batch=1, rows=3, cache=12, total=9, is_dynamic=True)
group_query(is_packed=True, heads=6)
group_query(**decode, is_packed=True, is_dynamic=True, rotary=16)
# Rotary positions: halves and neighbours, a part of head_dim, given ones.
group_query(rotary=16)
group_query(rotary=16, rotary_interleaved=1, **decode)
group_query(rotary=16, d=32, is_packed=True)
group_query(rotary=16, has_positions=True)
# Windows, softcap, scale, biases, sinks, not causal.
for size in (1, 3):
    group_query(rows=9, local_window_size=size)
    group_query(**decode, local_window_size=size)
group_query(softcap=0.7, scale=0.3)
group_query(bias="BHST")
group_query(bias="1HST", softcap=0.6)
group_query(bias="B1ST", **decode | {"cache": 9})
group_query(smooth_softmax=1)
group_query(has_sink=True, cache=None)
group_query(has_sink=True, **decode)
group_query(causal=0)
group_query(heads=2, dtype=np.float16, **decode)


def multi_head(*, batch=2, rows=5, new=5, heads=4, d=16, dv=16, is_cached=False, has_bias=False, padding=None,
               added=None, past=None, **attributes):  # fmt: skip
    """A case; `padding` is the rank of key_padding_mask."""
    keys = new + (past or 0)
    q, k, v = normal(batch, rows, heads * d), normal(batch, new, heads * d), normal(batch, new, heads * dv)
    if is_cached:
        k, v = normal(batch, heads, new, d), normal(batch, heads, new, dv)
    bias = normal(heads * (2 * d + dv)) if has_bias else None
    mask = None
    if padding == 1:
        mask = np.array([keys - 1, keys - 3], np.int32)
    elif padding:
        mask = (rng.random((batch, rows, keys) if padding == 3 else (batch, keys)) < 0.6).astype(np.int32)
        mask[..., 0] = 1
    extents = {"B": batch, "H": heads, "S": rows, "T": keys}
    added = None if added is None else normal(*(extents.get(c, 1) for c in added))
    caches = [None if past is None else normal(batch, heads, past, n) for n in (d, dv)]
    add("MultiHeadAttention", [q, k, v, bias, mask, added, *caches], 1 if past is None else 3, num_heads=heads,
        **attributes)  # fmt: skip


multi_head(rows=3, new=7, dv=8)
multi_head(rows=3, new=7, is_cached=True)
multi_head(has_bias=True, unidirectional=1)
for rank in (1, 2, 3):
    multi_head(padding=rank)
multi_head(padding=2, mask_filter_value=-1.5, scale=0.4)
multi_head(added="BHST")
multi_head(added="11ST", padding=2)
multi_head(past=4, unidirectional=1)
multi_head(past=4, padding=2)
multi_head(rows=1, new=1, past=5, added="1HST")

functions = [import_model(case.model, name=case.name, inline_bytes=64) for case in cases]
program = varlen.compile("\n".join(function.text for function in functions))
for case, function in zip(cases, functions):
    session = onnxruntime.InferenceSession(case.model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, case.feeds)
    arguments = [*(case.feeds[name] for name in function.inputs), *function.weights.values()]
    got = program[case.name](*arguments)
    for i, (ours, theirs) in enumerate(zip(got if isinstance(got, tuple) else (got,), wanted)):
        assert ours.shape == theirs.shape, (case.name, i, ours.shape, theirs.shape)
        if case.rows is not None:
            # What is behind the end of a sequence is not specified.
            ours, theirs = (a[case.rows] if i == 0 else a.swapaxes(1, 2)[case.keys] for a in (ours, theirs))
        message = difference(ours, theirs)
        assert not message, f"{case.name} {i}: {message}"
print(len(cases), "models")

# Packed rows, which onnxruntime has for GPUs alone, are what they are in parts.
q, k, v = (normal(2, 5, 4, 16) for _ in range(3))
flat = [x.reshape(2, 5, 64) for x in (q, k, v)]
forms = {
    "parts": flat, "all": [np.stack([q, k, v], 3), None, None], "keys": [flat[0], np.stack([k, v], 3), None],
}  # fmt: skip
texts = {
    name: import_model(model_of("MultiHeadAttention", inputs, 1, num_heads=4), name=name).text
    for name, inputs in forms.items()
}
program = varlen.compile("\n".join(texts.values()))
results = [program[name](*(x for x in inputs if x is not None)) for name, inputs in forms.items()]
assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])

# What there is no form for.
lengths, total, x = np.full(2, 4, np.int32), np.array(5, np.int32), normal(2, 5, 64)
query = [x, x, x, None, None, lengths, total]


def refused(message, op, inputs, outputs=1, **attributes):
    attributes = {"num_heads": 4} | attributes
    if op == "GroupQueryAttention":
        attributes = {"kv_num_heads": 4} | attributes
    raises(ModelError, message, import_model, model_of(op, inputs, outputs, **attributes))


for name, value in (("kv_cache_bit_width", 8), ("k_quant_type", "PER_TENSOR"), ("sliding_window_cache", 1)):
    refused(f"{name} is not supported other than ", "GroupQueryAttention", query, **{name: value})
for i, name in ((12, "k_scale"), (14, "q_norm_weight"), (16, "query_seqlens")):
    inputs = [*query, *[None] * (i - len(query)), lengths if i == 16 else normal(16)]
    refused(f"the input {name} is not supported", "GroupQueryAttention", inputs)
refused("the output output_qk is not supported", "GroupQueryAttention", query, 4)
refused("expected kv_num_heads of 1 and more, got 0", "GroupQueryAttention", query, kv_num_heads=0)
refused("expected cos_cache and sin_cache with do_rotary", "GroupQueryAttention", query, do_rotary=1)
refused("(com.microsoft.GroupQueryAttention, opset 1): expected local_window_size of -1 or of 1 and more, got 0",
        "GroupQueryAttention", query, local_window_size=0)  # fmt: skip
refused("the input cache_indirection is not supported", "MultiHeadAttention", [x, x, x, *[None] * 6, lengths])
refused("expected as many new keys as queries with unidirectional: got 5 and 2", "MultiHeadAttention",
        [x[:, :2], x, x], unidirectional=1)  # fmt: skip
refused("to have the length of each of the batch, or a number of each key: got 8 and 2", "MultiHeadAttention",
        [x, x, x, None, np.zeros(8, np.int32)])  # fmt: skip

# Where a function runs: lengths that the rows of the cache or of the results do not have.
past = normal(2, 4, 6, 16)
inputs = [x[:, :1], x[:, :1], x[:, :1], past, past, lengths, total]
model = model_of("GroupQueryAttention", inputs, 3, num_heads=4, kv_num_heads=4)
step = varlen.compile(import_model(model).text)
step(*inputs)
for wrong in (-2, 6):
    raises(ValueError, "expected seqlens_k + 1 from 0 to the 6 rows of keys", step, *inputs[:5],
           np.array([4, wrong], np.int32), total)  # fmt: skip
raises(ValueError, "expected a cache with room for total_sequence_length", step, *inputs[:6], np.array(7, np.int32))
