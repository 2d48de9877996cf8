# RUN: %python %s
"""varlen.append against its definition: pages and slots, of any rows and strides; rotary embeddings
of both layouts; sequences without new rows; and errors, after which nothing has been written."""

import pathlib
import sys

import ml_dtypes
import numpy as np

import varlen
from varlen import reference

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Integration/Inputs"))

from append_case import DIM, KV_HEADS, NEW, USED, VALUE_DIM, Case, draw, offsets, rng

# In units of the last place of a number of about 4, that of turned keys.
ROUNDING = {"f64": 4e-15, "f32": 2e-6, "bf16": 4e-2, "f16": 5e-3}


def check(dtype, case):
    wanted = reference.append(*case.arguments(), **case.options)
    caches = case.k_cache, case.v_cache
    kept = [x.copy() for x in caches]
    for threads in (1, 2):
        assert varlen.append(*case.arguments(), **case.options, num_threads=threads) is None
        for name, x, y in zip("kv", caches, wanted):
            if name == "v" or "cos" not in case.options:
                assert x.tobytes() == y.tobytes(), (dtype, name, case.options)
                continue
            # What is not turned is copied.
            size = 2 * case.options["cos"].shape[1]
            assert x[..., size:].tobytes() == y[..., size:].tobytes(), (dtype, case.options)
            x, y = x.astype("f8"), y.astype("f8")
            assert (np.isnan(x) == np.isnan(y)).all()
            error = np.nanmax(np.abs(x - y))
            assert error <= ROUNDING[dtype], (dtype, error, case.options)
    for cache, old in zip(caches, kept):
        cache[...] = old


for dtype, page, index in (
    ("f32", 16, "i4"), ("bf16", 1, "i8"), ("f16", 5, "i4"), ("f64", 64, "i8"), ("bf16", 256, "i4"),
    ("f32", None, "i4"), ("bf16", None, "i8"),
):  # fmt: skip
    check(dtype, Case(dtype, page, index))
for dtype, page, pairs, of_tables, interleaved in (
    ("f32", 16, 12, "f32", False), ("f32", None, 12, "f32", True), ("bf16", 16, 5, "f32", True),
    ("bf16", 5, 12, "bf16", False), ("f16", 64, 3, "f16", False), ("f64", 16, 7, "f64", True),
    ("f64", 16, 12, "f32", False), ("f16", 16, 12, "f64", True),
):  # fmt: skip
    check(dtype, Case(dtype, page).add_rotary(pairs, of_tables, interleaved))

def check_quantised(dtype, element, case):
    """Numbers and scales of rows of heads; what is turned, and only that, in other roundings."""
    case.quantise(element)
    wanted = reference.append(*case.arguments(), **case.options)
    varlen.append(*case.arguments(), **case.options)
    found = case.k_cache, case.v_cache, case.options["k_scale"], case.options["v_scale"]
    for name, x, y in zip(("k", "v", "k_scale", "v_scale"), found, wanted):
        if name[0] == "v" or "cos" not in case.options:
            assert x.tobytes() == y.tobytes(), (dtype, element, name, case.options)
        elif name == "k_scale":
            np.testing.assert_allclose(x, y, 1e-6)
        else:
            size, steps = 2 * case.options["cos"].shape[1], {"int8": 1, "float8_e4m3fn": 32}[element.name]
            assert np.abs(x.astype("f8") - y.astype("f8")).max() <= steps
            assert (x[..., size:] != y[..., size:]).sum() < 1e-2 * x.size


for dtype, element, page, pairs in (
    ("f32", "int8", 16, None), ("bf16", "float8_e4m3fn", 5, None), ("f16", "int8", None, 5),
    ("bf16", "int8", 64, 12), ("f32", "float8_e4m3fn", None, 12),
):  # fmt: skip
    case = Case(dtype, page)
    if pairs:
        case.add_rotary(pairs, "f32", page is None)
    check_quantised(dtype, np.dtype(getattr(ml_dtypes, element, element)), case)

# Attention to what was appended has the bits of that to the rows as they are.
lengths = [a + b for a, b in zip(USED, NEW)]
case = Case("f32", 16)
table = case.options["block_table"]
pages = iter(rng.permutation(len(case.k_cache)))
for s, length in enumerate(lengths):
    for slot in range(-(-length // 16)):
        table[s, slot] = next(pages)
own = [
    [np.concatenate([draw("f32", used, KV_HEADS, x.shape[2]), x[a:b]])
     for used, a, b in zip(USED, case.cu, case.cu[1:])] for x in (case.k, case.v)
]  # fmt: skip
for cache, rows in zip((case.k_cache, case.v_cache), own):
    for s, used in enumerate(USED):
        at = np.arange(used)
        cache[table[s, at // 16], at % 16] = rows[s][:used]
varlen.append(*case.arguments(), block_table=table)
q = draw("f32", case.cu[-1], 4, DIM)
found = varlen.attn(
    q, case.k_cache, case.v_cache, case.cu, is_causal=True, block_table=table,
    seqused_k=np.array(lengths, "i4"),
)
wanted = varlen.attn(q, *map(np.concatenate, own), case.cu, offsets(lengths), is_causal=True)
assert found.tobytes() == wanted.tobytes()

# No sequence, and none with new rows.
empty = np.zeros((0, KV_HEADS, DIM), "f4"), np.zeros((0, KV_HEADS, VALUE_DIM), "f4")
caches = np.zeros((3, 4, KV_HEADS, DIM), "f4"), np.zeros((3, 4, KV_HEADS, VALUE_DIM), "f4")
varlen.append(*caches, *empty, offsets([]), np.zeros(0, "i4"))
varlen.append(*caches, *empty, offsets([0, 0]), np.array([4, 0], "i4"), block_table=np.full((2, 1), -1, "i4"))
varlen.append(*(x[:0] for x in caches), *empty, offsets([0]), np.zeros(1, "i4"), block_table=np.zeros((1, 0), "i4"))


def fails(kind, words, **changes):
    case = Case("f32", 16).add_rotary(5, "f32", False)
    names = "k_cache", "v_cache", "k", "v", "cu_seqlens", "seqused_k"
    given = dict(zip(names, case.arguments())) | case.options
    given = {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in given.items()}
    for name, change in changes.items():
        given[name] = change(given[name]) if callable(change) else change
    caches = [x for x in (given["k_cache"], given["v_cache"]) if isinstance(x, np.ndarray)]
    before = [x.tobytes() for x in caches]
    try:
        varlen.append(**given)
    except kind as error:
        assert words in str(error), f"expected {words!r}, got {error}"
    else:
        raise AssertionError(f"accepted, in spite of {words!r}")
    assert [x.tobytes() for x in caches] == before, f"{words}: written"


def alias(**more):
    """Arguments of which those of these names are parts of one array, by functions of it."""
    rng = np.random.default_rng(1)
    rows = {name: rng.standard_normal((3, KV_HEADS, 24)).astype("f4") for name in "kv"}
    whole = rng.standard_normal((6, 2, 4, 2, KV_HEADS, 48)).astype("f4")
    given = {"cu_seqlens": offsets([1, 2]), "seqused_k": np.array([4, 2], "i4"), **rows}
    given["block_table"] = np.array([[0, 3], [5, 2]], "i4")
    return given | {name: part(whole) for name, part in more.items()}


# Keys and values in one array, side by side in pages, rows, heads or columns, every other page, or one
# behind the other.
for first, second in (
    (lambda x: x[:, 0, :, 0, :, :24], lambda x: x[:, 1, :, 0, :, :24]),
    (lambda x: x[:, 0, :, 0, :, :24], lambda x: x[:, 0, :, 1, :, :24]),
    (lambda x: x[:, 0, :, :, 0, :24], lambda x: x[:, 0, :, :, 1, :24]),
    (lambda x: x[:, 0, :, :, 0, :24], lambda x: x[:, 0, :, :, 0, 24:]),
    (lambda x: x[:, 0, :, 1, :, :24], lambda x: x[::-1, 0, :, 1, :, 24:]),
    (lambda x: x.reshape(12, 4, 2, 2, 48)[::2, :, 0, :, :24], lambda x: x.reshape(12, 4, 2, 2, 48)[1::2, :, 0, :, :24]),
):  # fmt: skip
    given = alias(k_cache=first, v_cache=second)
    caches = given["k_cache"], given["v_cache"]
    wanted = [x.copy() for x in caches]
    varlen.append(**(given | dict(zip(("k_cache", "v_cache"), wanted))))
    varlen.append(**given)
    assert all(x.tobytes() == y.tobytes() for x, y in zip(caches, wanted))
for words, parts in (
    ("v_cache: expected memory that no other tensor of the call has, got some of k_cache",
     {"k_cache": lambda x: x[:, 0, :, 0, :, :24], "v_cache": lambda x: x[:, 0, :, 0, :, 23:47]}),
    ("v_cache: expected memory that no other tensor of the call has, got some of k_cache",
     {"k_cache": lambda x: x[:, 0, :, 0, :, :24], "v_cache": lambda x: x[::-1, 0, :, 0, :, :24]}),
    ("k_cache: expected memory that no other tensor of the call has, got some of k",
     {"k_cache": lambda x: x[:, 0, :, 0, :, :24], "v_cache": lambda x: x[:, 1, :, 0, :, :24],
      "k": lambda x: x[5, 0, :3, 0, :, :24]}),
):  # fmt: skip
    given = alias(**parts)
    kept = given["k_cache"].copy()
    try:
        varlen.append(**given)
    except ValueError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"accepted, in spite of {words!r}")
    assert given["k_cache"].tobytes() == kept.tobytes()


def put(index, value):
    def change(x):
        x[index] = value
        return x

    return change


def same_page(x):
    x[4, 5] = x[6, 2]
    return x


width = Case("f32", 16).options["block_table"].shape[1]
capacity, pages = 16 * width, len(Case("f32", 16).k_cache)
for words, changes in (
    ("block_table[4, 0] = -1: expected 0 to ", {"block_table": put((4, 0), -1)}),
    (f"block_table[4, 12] = {pages}: expected 0 to {pages - 1}, the pages of k_cache", {"block_table": put((4, 12), pages)}),
    ("expected a page that nothing else writes to, and block_table[4, 5] is the same", {"block_table": same_page}),
    ("block_table has 6 rows: expected 7, one for each sequence of cu_seqlens", {"block_table": lambda x: x[:-1]}),
    ("seqused_k has 6 entries: expected 7", {"seqused_k": lambda x: x[:-1]}),
    (f"seqused_k[4] = -1: expected 0 to {capacity - 200}, as 200 new rows must fit into the pages that block_table has of a sequence", {"seqused_k": put(4, -1)}),
    (f"seqused_k[1] = {capacity + 1}: expected 0 to {capacity}", {"seqused_k": put(1, capacity + 1)}),
    ("sequence 4 of cu_seqlens has 200 rows: expected at most 48, those of the pages", {"block_table": lambda x: x[:, :3].copy()}),
    ("cu_seqlens[0] = 1: cu_seqlens must start at 0", {"cu_seqlens": put(0, 1)}),
    ("cu_seqlens[7] = 339 is larger than the 338 rows of k", {"cu_seqlens": put(7, 339)}),
    ("v has 337 rows: expected 338, as many as k", {"v": lambda x: x[1:]}),
    ("v_cache has", {"v_cache": lambda x: x[1:]}),
    ("a page of v_cache has 15 rows: expected 16, as many as a page of k_cache", {"v_cache": lambda x: x[:, 1:]}),
    ("a page of k_cache has 0 rows: expected a positive number", {"k_cache": lambda x: x[:, :0], "v_cache": lambda x: x[:, :0]}),
    ("cos has 202 rows: expected at least 203, the positions of the keys of sequence 4", {"cos": lambda x: x[:202]}),
    ("sin has 9 rows: expected at least", {"sin": lambda x: x[:9]}),
    ("expected extent 1 of sin to be 5, extent 1 of cos, got 4", {"sin": lambda x: x[:, :4].copy()}),
    ("expected cos and sin for at most 12 pairs", {"cos": np.zeros((300, 13), "f4"), "sin": np.zeros((300, 13), "f4")}),
    ("expected cos and sin, or neither", {"sin": None}),
    ("interleaved: expected cos and sin beside it", {"cos": None, "sin": None, "interleaved": True}),
    ("expected extent 2 of k_cache to be 2, extent 1 of k, got 1", {"k_cache": lambda x: x[:, :, :1].copy()}),
    ("k: expected an array of rank 3 (rows, heads, head_dim), got shape", {"k": lambda x: x[0]}),
    ("cu_seqlens has 7 sequences: expected at most 6, the slots of k_cache", {"block_table": None, "k_cache": lambda x: x[:6].copy(), "v_cache": lambda x: x[:6].copy()}),
    ("seqused_k[0] = 14: expected 0 to 13, as 3 new rows must fit into a slot of k_cache",
     {"block_table": None, "cu_seqlens": offsets([3]), "seqused_k": np.array([14], "i4")}),
):  # fmt: skip
    fails(ValueError, words, **changes)
int8 = {"k_cache": lambda x: np.zeros(x.shape, "i1"), "v_cache": lambda x: np.zeros(x.shape, "i1")}
scales = {name: np.zeros((pages, 16, KV_HEADS), "f4") for name in ("k_scale", "v_scale")}
for words, changes in (
    ("expected scales of caches of 'i8', got none", int8),
    ("expected k_scale and v_scale, or neither, got one of them", int8 | scales | {"v_scale": None}),
    ("expected caches of i8 or f8E4M3FN beside scales", scales),
    ("k_scale has 3 pages: expected", int8 | scales | {"k_scale": scales["k_scale"][:3]}),
    ("a page of v_scale has 15 rows: expected 16", int8 | scales | {"v_scale": scales["v_scale"][:, :15]}),
    ("k_scale: expected an array of rank 3 (pages, rows, heads)", int8 | scales | {"k_scale": scales["k_scale"][0]}),
):  # fmt: skip
    fails(ValueError, words, **changes)
fails(TypeError, "k_scale: expected elements of f32, got f64", **int8 | scales | {"k_scale": np.zeros((pages, 16, 2))})
fails(TypeError, "v_cache: expected elements of int8, got uint8", **int8 | scales | {"v_cache": lambda x: np.zeros(x.shape, "u1")})
fails(TypeError, "cos: expected elements of f16, bf16, f32, f64, got i32", cos=np.zeros((300, 5), "i4"))
fails(TypeError, "expected an array with __dlpack__", k_cache=[1])
read_only = np.zeros((40, 16, 2, 24), "f4")
read_only.flags.writeable = False
fails(ValueError, "k_cache: expected an array that can be written, got a read-only one", k_cache=read_only)
