"""What a call of attention means, whatever library and function it is written for: whether it
is one, and its results."""

import copy
import dataclasses

import imported
import ml_dtypes
import numpy as np
from varlen import dtypes, reference, scores, tolerance

NAMES = {np.dtype(kind): name for name, kind in imported.NUMPY_TYPES.items()}
OFFSETS = ("cu_seqlens_q", "cu_seqlens_k")
SEQUENCES = ("seqused_q", "seqused_k", "q_offset")
# Of quantised keys and values, and what these are of.
SCALES = {"k_scale": "k", "v_scale": "v"}
QUANTISED = (np.dtype("i1"), np.dtype(ml_dtypes.float8_e4m3fn))
# How large logits may be so that rounding leaves something of their weights.
MAX_LOGIT = 60.0
TOLERANCE = {"f64": 1e-11, "f32": 2e-5, "bf16": 2e-2, "f16": 3e-3}
# By how much of a number a type rounds it, at most.
UNIT = {"bf16": 2.0**-8, "f16": 2.0**-11}


@dataclasses.dataclass
class Call:
    """Operands and captures by name, options as varlen.attn has them, and the cotangents."""

    given: dict
    options: dict
    score: scores.Score | None
    dout: np.ndarray
    dlse: np.ndarray | None

    def copy(self):
        return copy.copy(
            dataclasses.replace(self, given=dict(self.given), options=dict(self.options))
        )

    @property
    def captures(self):
        return list(self.score.captures) if self.score else []

    @property
    def element(self):
        return NAMES[self.given["q"].dtype]


def make_call(case, rng):
    """The call that a case of `imported` is."""
    given, dout, dlse = imported.operands(case, rng)
    options = {
        "window": case.window, "chunk": case.chunk, "alignment": case.alignment,
        "scale": case.scale,
    }  # fmt: skip
    return Call(given, options, case.score, dout, dlse if case.lse else None)


def spread(scale, rows):
    """The scale of such rows in a shape that goes with theirs."""
    leading, heads = scale.shape[:-1], scale.shape[-1]
    between = (1,) * (rows.ndim - 2 - len(leading)) if leading else ()
    return scale.reshape((*leading, *between, heads, 1))


def dequantised(call):
    """The call with the keys and values, in f64, that quantised ones stand for."""
    if call.given["k"].dtype not in QUANTISED:
        return call
    call = call.copy()
    given = call.given
    for name, of in SCALES.items():
        rows, scale = np.asarray(given[of], "f8"), given.pop(name, np.ones(1))
        given[of] = rows * spread(np.asarray(scale, "f8"), rows)
    return call


def packed(call):
    """The call with keys one after the other, where it has them in pages."""
    if "block_table" not in call.given:
        return call
    call = call.copy()
    given = call.given
    table, lengths = given.pop("block_table"), given.pop("seqused_k").tolist()
    for name in ("k", "v"):
        pages = given[name]
        count, tail = max(pages.shape[1], 1), pages.shape[2:]
        rows = [
            pages[entries[: -(-length // count)]].reshape(-1, *tail)[:length]
            for entries, length in zip(table, lengths)
        ]
        given[name] = np.concatenate([np.zeros((0, *tail), pages.dtype), *rows])
    given["cu_seqlens_k"] = np.cumsum([0, *lengths]).astype(given["cu_seqlens_q"].dtype)
    return call


# -- Rules of docs/attn.md -----------------------------------------------------------


def _broken_types(call):
    given, captures = call.given, call.score.captures if call.score else {}
    q, k, v = (given[name] for name in "qkv")
    index = given["cu_seqlens_q"].dtype
    if q.dtype not in NAMES or index not in (np.int32, np.int64):
        return "elements"
    wide = np.dtype("f8" if q.dtype == np.float64 else "f4")
    is_quantised = k.dtype in QUANTISED and q.dtype != np.float64
    if not is_quantised and SCALES.keys() & given.keys():
        return "scales"
    for name, x in given.items():
        integer, is_sum = name in (*OFFSETS, *SEQUENCES), name == "sink" or name in captures
        rank, kind = 1 if integer or name == "sink" else 3, q.dtype
        if name == "block_table":
            rank, kind = 2, np.int32
        elif name in ("k", "v"):
            rank += "block_table" in given
            kind = k.dtype if is_quantised else kind
        elif name in SCALES:
            kind, ranks = np.float32, (1, 2, 3) if "block_table" in given else (1, 2)
            rank = x.ndim if x.ndim in ranks else ranks[0]
        elif name in captures:
            rank = len(scores.CAPTURES[captures[name]])
        if x.ndim != rank or x.dtype != (index if integer else wide if is_sum else kind):
            return f"{name}: rank or elements"
    return None


def _broken_extents(call):
    given, captures = call.given, call.score.captures if call.score else {}
    (rows, heads, dim), (kv_rows, kv_heads, k_dim) = given["q"].shape, given["k"].shape[-3:]
    if k_dim != dim or given["v"].shape[:-1] != given["k"].shape[:-1]:
        return "extents of q, k and v"
    if not min(heads, kv_heads, dim, given["v"].shape[-1]) or heads % kv_heads:
        return "heads"
    count, paged = len(given["cu_seqlens_q"]) - 1, "block_table" in given
    if count < 0 or not paged and len(given["cu_seqlens_k"]) != count + 1:
        return "cu_seqlens"
    if paged and len(given["block_table"]) != count:
        return "block_table"
    if paged and any("kv_rows" in scores.CAPTURES[of] for of in captures.values()):
        return "a capture of keys"
    extents = {"heads": heads, "rows": rows, "kv_rows": kv_rows}
    wanted = {name: (count,) for name in SEQUENCES} | {"sink": (heads,)}
    for name, of in SCALES.items():
        leading = given[name].ndim - 1 if name in given else 0
        wanted[name] = (*given[of].shape[:leading], kv_heads)
    for name, of in captures.items():
        entries = given[name].shape[-1]
        wanted[name] = tuple(extents.get(axis, entries) for axis in scores.CAPTURES[of])
    for name, shape in wanted.items():
        if name in given and given[name].shape != shape:
            return f"{name}: extents"
    return None


def _broken_values(call):
    given, sides = call.given, [("cu_seqlens_q", "q", "seqused_q")]
    if "block_table" not in given:
        sides.append(("cu_seqlens_k", "k", "seqused_k"))
    elif broken := _broken_pages(given):
        return broken
    for name, rows, used in sides:
        cu = [int(n) for n in given[name]]
        lengths = [b - a for a, b in zip(cu, cu[1:])]
        if cu[0] or min(lengths, default=0) < 0 or cu[-1] > len(given[rows]):
            return name
        if used in given and not all(0 <= n <= m for n, m in zip(given[used].tolist(), lengths)):
            return used
    return None


def _broken_pages(given):
    count, page = given["k"].shape[:2]
    for entries, length in zip(given["block_table"], given["seqused_k"].tolist()):
        if not 0 <= length <= len(entries) * page:
            return "seqused_k"
        used = entries[: -(-length // max(page, 1))]
        if not ((used >= 0) & (used < count)).all():
            return "block_table"
    return None


def find_broken(call):
    """The rule that a call breaks, and whether only its values break it; (None, False) if
    there is none."""
    for of_values, find in (
        (False, _broken_types),
        (False, _broken_extents),
        (True, _broken_values),
    ):
        if broken := find(call):
            return broken, of_values
    return None, False


def has_open_meaning(call):
    """Whether nothing is promised of its results: NaN of a used row, a table without entries."""
    return any(x.size == 0 for name, x in call.given.items() if name in call.captures)


# -- Results ------------------------------------------------------------------------


def golden(call, differentiate):
    """Results by name, and what each may be off by."""
    call = packed(dequantised(call))
    options = dict(call.options)
    chunk = options.pop("chunk")
    if chunk is not None:
        options["window"] = chunk
    given = dict(call.given)
    captures = [given.pop(name) for name in call.captures]
    first = [given.pop(name) for name in ("q", "k", "v", *OFFSETS)]
    options |= given | {"score": call.score, "captures": captures}
    rounded = [first[0], *(dtypes.narrow(x, call.element) for x in first[1:3]), *first[3:]]
    with np.errstate(all="ignore"):
        wanted = dict(zip(("out", "lse"), reference.attention(*first, **options)))
        plain = dict(zip(("out", "lse"), reference.plain(*rounded, **options)))
        if differentiate:
            names = ("dq", "dk", "dv", "dsink", *(f"d{name}" for name in call.captures))
            options["dlse"] = call.dlse
            for results, function in (
                (wanted, reference.gradients), (plain, reference.plain_gradients),
            ):  # fmt: skip
                results |= zip(names, function(call.dout, *first, **options))
    wanted = {name: x for name, x in wanted.items() if x is not None}
    allowed = {name: _allowed(call, name, x, plain[name]) for name, x in wanted.items()}
    if "dsink" in wanted:
        # A sum of products of dout and the rounded out, which may cancel, over few rows.
        products = np.abs(np.asarray(call.dout, np.float64) * wanted["out"]).sum(-1)
        largest = np.where(np.isfinite(products), products, 0).max(initial=0)
        allowed["dsink"] = max(allowed["dsink"], TOLERANCE[call.element] * largest)
    if "dq" in wanted and call.element in UNIT:
        # As above, the sum of a row is off by what rounding of out makes of its products.
        squares = np.square(np.asarray(call.dout, np.float64) * wanted["out"]).sum(-1)
        sums = UNIT[call.element] * np.sqrt(np.where(np.isfinite(squares), squares, 0).max(initial=0))
        scale = options.get("scale")
        scale = first[0].shape[-1] ** -0.5 if scale is None else scale
        # A key has those of the queries of all heads of its group, which add up as their root.
        queries = np.diff(first[3]).max(initial=1) * first[0].shape[1] / first[1].shape[1]
        for name, other, terms in (("dq", first[1], 1), ("dk", first[0], queries)):
            numbers = np.abs(np.asarray(other, np.float64))
            largest = np.where(np.isfinite(numbers), numbers, 0).max(initial=0)
            allowed[name] = max(allowed[name], abs(scale) * sums * np.sqrt(terms) * largest)
    return wanted, allowed


def _allowed(call, name, wanted, plain):
    """Twice the rule's, as sums of few terms have no average, or what rounding of the largest
    number is."""
    element = call.element
    if name == "lse":
        element = "f64" if element == "f64" else "f32"
    finite = np.abs(np.where(np.isfinite(wanted), wanted, 0)).max(initial=0)
    rule = 2 * tolerance.bound(wanted, plain, element, name not in ("out", "lse"))
    rounding = TOLERANCE[element] * max(1.0, float(finite))
    return rounding if not np.isfinite(rule) else max(rule, rounding)


def difference(name, got, wanted, allowed):
    """What is wrong with a result; None if nothing is."""
    if got.shape != wanted.shape:
        return f"{name}: shape {got.shape}, wanted {wanted.shape}"
    got, wanted = (np.asarray(x, np.float64) for x in (got, wanted))
    with np.errstate(invalid="ignore"):
        right = (got == wanted) | (np.abs(got - wanted) <= allowed)
    if right.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~right)[0])
    return (
        f"{name}{list(at)} and {int((~right).sum()) - 1} others: got {got[at]}, wanted "
        f"{wanted[at]} within {allowed:.3g}"
    )


def largest_logit(call):
    """Of its products; infinite where they are no numbers."""
    given = packed(dequantised(call)).given
    q, k = (np.asarray(given[name], np.float64) for name in "qk")
    scale = call.options["scale"] or q.shape[-1] ** -0.5
    norms = [np.sqrt((x * x).sum(-1)).max(initial=0) for x in (q, k)]
    largest = float(scale * norms[0] * norms[1])
    return np.inf if np.isnan(largest) else largest


__all__ = [
    "Call", "MAX_LOGIT", "OFFSETS", "QUANTISED", "SCALES", "SEQUENCES", "difference", "find_broken", "golden",
    "has_open_meaning", "largest_logit", "make_call", "spread",
]  # fmt: skip
