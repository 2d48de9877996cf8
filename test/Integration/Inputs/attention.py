"""Compiles functions with one varlen.attn, calls them, and computes what they
should return: attention as a loop over python floats, which are f64.

Standard library only: this is the measure of everything else.
"""

import ctypes
import dataclasses
import math
import os
import random
import shutil
import struct
import subprocess
import tempfile
from typing import List, Optional, Tuple

NAN, INF = math.nan, math.inf

# From linalg on tensors to the llvm dialect with upstream passes only.
LOWER = """
  one-shot-bufferize{bufferize-function-boundaries
      function-boundary-type-conversion=identity-layout-map},
  scf-forall-to-for,buffer-deallocation-pipeline,convert-linalg-to-loops,
  lower-affine,convert-scf-to-cf,expand-strided-metadata,lower-affine,convert-math-to-libm,
  arith-expand{include-bf16=true},convert-to-llvm,reconcile-unrealized-casts"""


# -- Elements ----------------------------------------------------------------


def _to_bf16(value: float) -> int:
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if math.isnan(value):
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _from_bf16(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


# name: (C type that holds it, float to that, back, relative rounding error)
_ELEMENTS = {
    "f16": (
        ctypes.c_uint16,
        lambda x: struct.unpack("<H", struct.pack("<e", x))[0],
        lambda x: struct.unpack("<e", struct.pack("<H", x))[0],
        2.0**-11,
    ),
    "bf16": (ctypes.c_uint16, _to_bf16, _from_bf16, 2.0**-8),
    "f32": (
        ctypes.c_float,
        lambda x: struct.unpack("<f", struct.pack("<f", x))[0],
        float,
        2.0**-24,
    ),
    "f64": (ctypes.c_double, float, float, 2.0**-53),
    "i32": (ctypes.c_int32, int, int, 0.0),
    "i64": (ctypes.c_int64, int, int, 0.0),
}


@dataclasses.dataclass
class Tensor:
    """Elements in row-major order; floats are rounded to the element type."""

    element: str
    shape: Tuple[int, ...]
    values: list

    def __post_init__(self):
        _, to, back, _ = _ELEMENTS[self.element]
        self.values = [back(to(value)) for value in self.values]
        assert len(self.values) == math.prod(self.shape)

    @staticmethod
    def random(rng: random.Random, element: str, shape) -> "Tensor":
        count = math.prod(shape)
        return Tensor(element, tuple(shape), [rng.gauss(0, 1) for _ in range(count)])

    def row(self, *prefix: int) -> list:
        """The innermost vector at an index."""
        start = 0
        for index, extent in zip(prefix, self.shape):
            start = start * extent + index
        size = self.shape[-1]
        return self.values[start * size : start * size + size]


# -- Attention ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Kind:
    """What is fixed when an attention is compiled."""

    element: str = "f32"
    index: str = "i32"
    left: int = -1
    right: int = -1
    top_left: bool = False
    seqused_q: bool = False
    seqused_k: bool = False
    q_offset: bool = False
    sink: bool = False
    scale: Optional[float] = None

    @property
    def compute(self) -> str:
        return "f64" if self.element == "f64" else "f32"

    def mask(self) -> str:
        align = ", top_left" if self.top_left else ""
        return f"#varlen.mask<window = ({self.left}, {self.right}){align}>"

    def optional(self) -> List[str]:
        names = ("seqused_q", "seqused_k", "q_offset", "sink")
        return [name for name in names if getattr(self, name)]


@dataclasses.dataclass
class Batch:
    """The operands of one call."""

    q: Tensor
    k: Tensor
    v: Tensor
    cu_q: Tensor
    cu_k: Tensor
    seqused_q: Optional[Tensor] = None
    seqused_k: Optional[Tensor] = None
    q_offset: Optional[Tensor] = None
    sink: Optional[Tensor] = None

    def operands(self, kind: Kind) -> List[Tensor]:
        required = [self.q, self.k, self.v, self.cu_q, self.cu_k]
        return required + [getattr(self, name) for name in kind.optional()]


def _tensor_type(element: str, shape) -> str:
    return "tensor<" + "".join(f"{extent}x" for extent in shape) + element + ">"


def function(name: str, kind: Kind, shapes=None, mark="") -> str:
    """A function around one attention. `shapes` are those of (q, k, v) and the
    number of sequences; by default every extent is dynamic. `mark` is a unit
    attribute of the operation, by which a transform can find it."""
    q, k, v, sequences = shapes or (("?",) * 3, ("?",) * 3, ("?",) * 3, "?")
    count = sequences if sequences == "?" else sequences + 1
    cu = _tensor_type(kind.index, [count])
    per_sequence = _tensor_type(kind.index, [sequences])
    types = {
        "q": _tensor_type(kind.element, q),
        "k": _tensor_type(kind.element, k),
        "v": _tensor_type(kind.element, v),
        "cu_q": cu,
        "cu_k": cu,
        "seqused_q": per_sequence,
        "seqused_k": per_sequence,
        "q_offset": per_sequence,
        "sink": _tensor_type(kind.compute, [q[1]]),
    }
    names = ["q", "k", "v", "cu_q", "cu_k"] + kind.optional()
    results = (
        _tensor_type(kind.element, (q[0], q[1], v[2]))
        + ", "
        + _tensor_type(kind.compute, (q[1], q[0]))
    )
    arguments = ", ".join(f"%{name}: {types[name]}" for name in names)
    clauses = " ".join(f"{name}(%{name})" for name in kind.optional())
    scale = "" if kind.scale is None else f", scale = {kind.scale:e} : f32"
    mark = f", {mark}" if mark else ""
    return f"""
func.func @{name}({arguments}) -> ({results}) attributes {{llvm.emit_c_interface}} {{
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k {clauses}
    {{mask = {kind.mask()}{scale}{mark}}}
    : ({", ".join(types[name] for name in names)}) -> ({results})
  return %out, %lse : {results}
}}
"""


def reference(kind: Kind, batch: Batch):
    """(out, lse) of a batch, as nested lists out[row][head], lse[head][row]."""
    (tq, heads, d), (_, kv_heads, dv) = batch.q.shape, batch.v.shape
    out = [[[0.0] * dv for _ in range(heads)] for _ in range(tq)]
    lse = [[-INF] * tq for _ in range(heads)]
    scale = kind.scale if kind.scale is not None else 1 / math.sqrt(max(d, 1))
    cu_q, cu_k = batch.cu_q.values, batch.cu_k.values
    for s in range(len(cu_q) - 1):
        lq, lk = cu_q[s + 1] - cu_q[s], cu_k[s + 1] - cu_k[s]
        lq = batch.seqused_q.values[s] if kind.seqused_q else lq
        lk = batch.seqused_k.values[s] if kind.seqused_k else lk
        diagonal = 0 if kind.top_left else lk - lq
        diagonal += batch.q_offset.values[s] if kind.q_offset else 0
        for i in range(lq):
            first = 0 if kind.left < 0 else max(0, i + diagonal - kind.left)
            last = lk if kind.right < 0 else min(lk, i + diagonal + kind.right + 1)
            keys = range(first, last)
            for h in range(heads):
                query = batch.q.row(cu_q[s] + i, h)
                at = [(cu_k[s] + j, h // (heads // kv_heads)) for j in keys]
                logits = [
                    scale * math.fsum(a * b for a, b in zip(query, batch.k.row(*x)))
                    for x in at
                ]
                extra = [batch.sink.values[h]] if kind.sink else []
                top = max(logits + extra, default=-INF)
                if top == -INF:
                    continue
                weights = [math.exp(logit - top) for logit in logits]
                total = math.fsum(weights + [math.exp(x - top) for x in extra])
                lse[h][cu_q[s] + i] = top + math.log(total)
                rows = [batch.v.row(*x) for x in at]
                out[cu_q[s] + i][h] = [
                    math.fsum(w * row[c] for w, row in zip(weights, rows)) / total
                    for c in range(dv)
                ]
    return out, lse


# -- Batches -----------------------------------------------------------------


def random_batch(
    rng: random.Random, kind: Kind, max_length=9, sequences=None, heads=None, dims=None
) -> Batch:
    """Sequences of random lengths, some empty, with unused rows around them.
    Whatever no sequence uses is NaN or Inf."""
    n = rng.randrange(0, 5) if sequences is None else sequences
    group, kv_heads = heads or (rng.choice([1, 1, 2, 3]), rng.choice([1, 2]))
    d, dv = dims or (rng.choice([1, 4, 7, 16]), rng.choice([1, 3, 8, 16]))
    element = kind.element

    def lengths():
        slots = [rng.choice([0, 1, rng.randrange(max_length + 1)]) for _ in range(n)]
        cu = [sum(slots[:i]) for i in range(n + 1)]
        return slots, cu, cu[-1] + rng.choice([0, 0, 3])

    def tensor(total, count, width, used):
        values = Tensor.random(rng, element, (total, count, width))
        size = count * width
        for row in range(total):
            if row not in used:
                trash = rng.choice([NAN, INF, -INF])
                values.values[row * size : row * size + size] = [trash] * size
        return values

    def used_rows(cu, used):
        return {cu[s] + i for s in range(n) for i in range(used[s])}

    q_slots, cu_q, tq = lengths()
    k_slots, cu_k, tk = lengths()
    q_used = [rng.randrange(x + 1) for x in q_slots] if kind.seqused_q else q_slots
    k_used = [rng.randrange(x + 1) for x in k_slots] if kind.seqused_k else k_slots
    limit = 2 ** (31 if kind.index == "i32" else 63) - 1
    offsets = [rng.choice([0, -2, 3, 5, limit, -limit - 1]) for _ in range(n)]
    hq = group * kv_heads
    return Batch(
        q=tensor(tq, hq, d, used_rows(cu_q, q_used)),
        k=tensor(tk, kv_heads, d, used_rows(cu_k, k_used)),
        v=tensor(tk, kv_heads, dv, used_rows(cu_k, k_used)),
        cu_q=Tensor(kind.index, (n + 1,), cu_q),
        cu_k=Tensor(kind.index, (n + 1,), cu_k),
        seqused_q=Tensor(kind.index, (n,), q_used),
        seqused_k=Tensor(kind.index, (n,), k_used),
        q_offset=Tensor(kind.index, (n,), offsets),
        sink=Tensor(
            kind.compute,
            (hq,),
            [rng.choice([-INF, 0.0, rng.gauss(0, 2)]) for _ in range(hq)],
        ),
    )


# -- Compiling and calling ---------------------------------------------------


def run(command: List[str], text: str) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def transform(text: str, schedule: str, before: str = "") -> str:
    """Runs the pass `before` and the operations of a transform dialect sequence
    on the module `%root`, in a stock mlir-opt with the plugin."""
    library = f"""
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(
      %root: !transform.any_op {{transform.readonly}}) {{
    {schedule}
    transform.yield
  }}
}}
"""
    plugin = os.path.join(os.environ["VARLEN_BUILD"], "lib", "VarlenPlugin.so")
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(library)
        file.flush()
        passes = (
            (f"{before}," if before else "")
            + f"transform-preload-library{{transform-library-paths={file.name}}},"
            "transform-interpreter"
        )
        return run(
            ["mlir-opt", f"--load-dialect-plugin={plugin}",
             f"--pass-pipeline=builtin.module({passes})"], text)  # fmt: skip


def compile_library(text: str, passes: str) -> ctypes.CDLL:
    """`passes` take the text to linalg; LOWER takes it on."""
    pipeline = " ".join(f"builtin.module({passes},{LOWER})".split())
    text = run(["varlen-opt", f"--pass-pipeline={pipeline}"], text)
    text = run(["mlir-translate", "--mlir-to-llvmir"], text)
    compiler = shutil.which("clang-22") or "clang"
    # For memrefCopy, which a copy with strides becomes.
    tools = os.path.dirname(os.path.realpath(shutil.which("mlir-translate")))
    support = os.path.join(os.path.dirname(tools), "lib")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "attention.so")
        run([compiler, "-x", "ir", "-", "-O1", "-Wno-override-module", "-shared",
             "-fPIC", "-o", path, f"-L{support}", f"-Wl,-rpath,{support}",
             "-lmlir_c_runner_utils", "-lm"], text)  # fmt: skip
        return ctypes.CDLL(path)


def _descriptor(rank: int):
    fields = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p)]
    fields += [("offset", ctypes.c_int64), ("sizes", ctypes.c_int64 * rank)]
    fields += [("strides", ctypes.c_int64 * rank)]
    return type(f"MemRef{rank}", (ctypes.Structure,), {"_fields_": fields})


_MEMREFS = {rank: _descriptor(rank) for rank in (1, 2, 3)}
_LIBC = ctypes.CDLL(None)
_LIBC.free.argtypes = [ctypes.c_void_p]


class _Results(ctypes.Structure):
    _fields_ = [("out", _MEMREFS[3]), ("lse", _MEMREFS[2])]


def _pass(tensor: Tensor):
    """A descriptor, and the storage that has to outlive it."""
    ctype, to, _, _ = _ELEMENTS[tensor.element]
    storage = (ctype * max(1, len(tensor.values)))(*map(to, tensor.values))
    address = ctypes.addressof(storage)
    strides, step = [], 1
    for extent in reversed(tensor.shape):
        strides.insert(0, step)
        step *= extent
    memref = _MEMREFS[len(tensor.shape)]
    rank = ctypes.c_int64 * len(tensor.shape)
    return memref(address, address, 0, rank(*tensor.shape), rank(*strides)), storage


def _take(memref, element: str) -> Tensor:
    shape = tuple(memref.sizes)
    ctype, _, back, _ = _ELEMENTS[element]
    count = math.prod(shape)
    storage = ctypes.cast(memref.aligned, ctypes.POINTER(ctype * max(1, count)))
    values = [back(storage.contents[i]) for i in range(count)]
    _LIBC.free(memref.allocated)
    return Tensor(element, shape, values)


def call(library: ctypes.CDLL, name: str, kind: Kind, batch: Batch):
    """(out, lse) as the compiled function returns them."""
    passed = [_pass(tensor) for tensor in batch.operands(kind)]
    results = _Results()
    entry = getattr(library, f"_mlir_ciface_{name}")
    entry.restype = None
    entry(ctypes.byref(results), *(ctypes.byref(memref) for memref, _ in passed))
    return _take(results.out, kind.element), _take(results.lse, kind.compute)


def _differs(got: float, wanted: float, tolerance: float) -> bool:
    if math.isinf(wanted) or math.isnan(got):
        return got != wanted
    return abs(got - wanted) > tolerance


def check(library: ctypes.CDLL, name: str, kind: Kind, batch: Batch) -> None:
    """Calls `name` and compares every element with the reference."""
    out, lse = call(library, name, kind, batch)
    wanted_out, wanted_lse = reference(kind, batch)
    (tq, heads, _), dv = batch.q.shape, batch.v.shape[2]
    assert out.shape == (tq, heads, dv), (name, out.shape)
    assert lse.shape == (heads, tq), (name, lse.shape)
    sums = _ELEMENTS[kind.compute][3] * 64
    rounding = _ELEMENTS[kind.element][3]

    def fail(what, got, wanted):
        raise SystemExit(
            f"{name}: {what} is {got}, expected {wanted}\n{kind}\n"
            f"cu_q {batch.cu_q.values} cu_k {batch.cu_k.values} "
            f"{ {x: getattr(batch, x).values for x in kind.optional()} }"
        )

    for h in range(heads):
        for row in range(tq):
            got, wanted = lse.row(h)[row], wanted_lse[h][row]
            if _differs(got, wanted, sums * (1 + abs(wanted))):
                fail(f"lse[{h}, {row}]", got, wanted)
            for c in range(dv):
                got, wanted = out.row(row, h)[c], wanted_out[row][h][c]
                exact = wanted_lse[h][row] == -INF
                tolerance = 0 if exact else sums * 4 + rounding * abs(wanted)
                if _differs(got, wanted, tolerance):
                    fail(f"out[{row}, {h}, {c}]", got, wanted)
