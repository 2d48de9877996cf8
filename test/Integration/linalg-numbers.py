"""A user's own linalg through varlen-to-cpu against numpy in f64: contractions of any
sizes, orders and types, elementwise chains, reductions along rows and columns,
transposes, gathers; on every CPU target that this machine runs, with one thread and two, whose
results are the same bit for bit. With --neon what AVX2 runs, for AArch64 under qemu.
"""

# REQUIRES: venv
# RUN: %python %s

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
import compiled

from varlen import dtypes

rng = np.random.default_rng(11)
failed = 0
# With --neon: what is to be run, and how each is judged.
neon = [] if sys.argv[1:] == ["--neon"] else None


def tensor(shape, dtype):
    return f"tensor<{'x'.join(map(str, (*shape, dtype)))}>"


class Function:
    """Text of a function on tensors, static or with every extent dynamic."""

    def __init__(self, dynamic):
        self.dynamic = dynamic
        self.arguments, self.inputs, self.body = [], {}, []

    def type(self, shape, dtype):
        return tensor(["?"] * len(shape) if self.dynamic else shape, dtype)

    def argument(self, name, shape, dtype, scale=1.0):
        value = (scale * rng.standard_normal(shape)).astype(np.float64)
        self.inputs[name] = dtypes.narrow(value, dtype)
        self.arguments.append(
            f'%{name}: {self.type(shape, dtype)} {{varlen.name = "{name}"}}'
        )
        return dtypes.widen(self.inputs[name])

    def empty(self, name, shape, dtype, like):
        """`like` has an argument and a dimension for each extent."""
        sizes = []
        if self.dynamic:
            for i, (source, shape_of_source, dtype_of_source, dim) in enumerate(like):
                self.body.append(
                    f"%{name}_c{i} = arith.constant {dim} : index\n"
                    f"%{name}_d{i} = tensor.dim %{source}, %{name}_c{i} : "
                    f"{self.type(shape_of_source, dtype_of_source)}"
                )
                sizes.append(f"%{name}_d{i}")
        self.body.append(
            f"%{name} = tensor.empty({', '.join(sizes)}) : {self.type(shape, dtype)}"
        )

    def text(self, result):
        return (
            f"func.func @f({', '.join(self.arguments)}) -> ({result} "
            '{varlen.name = "y"}) {\n' + "\n".join(self.body) + "\n}\n"
        )


def judge(label, value, golden, tolerance):
    """Whether the error is within the tolerance; says so if not."""
    global failed
    value = dtypes.widen(value)
    error = np.max(np.abs(value - golden) / (1 + np.abs(golden)), initial=0.0)
    if not error <= tolerance:
        print(f"FAIL {label}: error {error:.2e}, wanted {tolerance:.0e}")
        failed += 1


def check(label, function, result, dtype, golden, tolerance, targets):
    global failed
    if neon is not None:
        if "avx2" in targets:
            like = dtypes.narrow(np.zeros(golden.shape), dtype)
            function = (function.text(result), list(function.inputs.values()), like)
            neon.append((function, (label + " neon", golden, tolerance)))
        return
    for target in targets:
        run = compiled.function(function.text(result), target=target)
        one, two = (run(function.inputs, threads)["y"] for threads in (1, 2))
        judge(f"{label} {target}", one, golden, tolerance)
        if one.tobytes() != two.tobytes():
            print(f"FAIL {label} {target}: two threads have other bits")
            failed += 1


TOLERANCE = {"f64": 1e-12, "f32": 2e-5, "f16": 2e-3, "bf16": 2e-2}
ALL_TARGETS = ["generic", "avx2", "host"]


def contraction(sizes, lhs, rhs, out, source, result, dynamic, targets, added=False):
    """out[...] (+)= sum of lhs[...] * rhs[...], dimensions named by letters."""
    f = Function(dynamic)
    shape = {name: [sizes[c] for c in letters] for name, letters in
             {"a": lhs, "b": rhs, "c": out}.items()}  # fmt: skip
    a = f.argument("a", shape["a"], source)
    b = f.argument("b", shape["b"], source)
    golden = np.einsum(f"{lhs},{rhs}->{out}", a, b)
    type = f.type(shape["c"], result)
    if added:
        golden = golden + f.argument("c", shape["c"], result)
        start = "c"
    else:
        places = {c: ("a", shape["a"], source, lhs.index(c)) for c in lhs}
        places |= {c: ("b", shape["b"], source, rhs.index(c)) for c in rhs}
        f.empty("e", shape["c"], result, [places[c] for c in out])
        f.body.append(
            f"%zero = arith.constant 0.0 : {result}\n"
            f"%z = linalg.fill ins(%zero : {result}) outs(%e : {type}) -> {type}"
        )
        start = "z"
    letters = sorted(sizes)
    maps = ", ".join(
        f"affine_map<({', '.join(letters)}) -> ({', '.join(x)})>"
        for x in (lhs, rhs, out)
    )
    f.body.append(
        f"%y = linalg.contract indexing_maps = [{maps}] ins(%a, %b : "
        f"{f.type(shape['a'], source)}, {f.type(shape['b'], source)}) "
        f"outs(%{start} : {type}) -> {type}\n"
        f"return %y : {type}"
    )
    depth = np.prod([sizes[c] for c in sizes if c not in out])
    label = f"contract {lhs},{rhs}->{out} {sizes} {source} {result} {dynamic=} {added=}"
    check(label, f, type, result, golden, TOLERANCE[result] * max(1, depth**0.5 / 8),
          targets)  # fmt: skip


# Orders, types, sizes, targets, and whether extents are known: each pair of two of them occurs, not
# each triple.
MATMUL = [("mk", "kn"), ("mk", "nk"), ("km", "kn"), ("km", "nk")]
BOTH = ["avx2", "host"]
for number, (lhs, rhs) in enumerate(MATMUL):
    one = ALL_TARGETS[number % 3]
    for dynamic in (False, True):
        for m, n, k in [(1, 1, 1), (200, 100, 77)]:
            contraction({"m": m, "n": n, "k": k}, lhs, rhs, "mn", "f32", "f32", dynamic, ["host"])
        targets = [target for target in ALL_TARGETS if (target == one) != dynamic]
        contraction({"m": 97, "n": 31, "k": 257}, lhs, rhs, "mn", "f32", "f32", dynamic, targets,
                    added=True)  # fmt: skip
for number, (source, result) in enumerate([
    ("f64", "f64"), ("bf16", "f32"), ("f16", "f32"), ("bf16", "bf16"), ("f16", "f16"),
]):  # fmt: skip
    for turn, (lhs, rhs) in enumerate(MATMUL[:2], number):
        contraction({"m": 101, "n": 70, "k": 300}, lhs, rhs, "mn", source, result, True,
                    [BOTH[turn % 2]])  # fmt: skip
# Pairs of bf16: an odd depth, of one block and of two, known or not.
for number, (lhs, rhs) in enumerate(MATMUL):
    for turn, (m, n, k) in enumerate([(3, 50, 37), (40, 50, 1), (97, 33, 555)], number):
        contraction({"m": m, "n": n, "k": k}, lhs, rhs, "mn", "bf16", "f32", turn % 2 == 1,
                    ["host"], added=k == 555)  # fmt: skip
contraction({"b": 3, "m": 40, "n": 99, "k": 45}, "bmk", "bkn", "bmn", "bf16", "f32", True,
            ["host"])  # fmt: skip
# Few rows of a right factor whose squares are transposed: where it is not aligned in
# memory, a depth of less than a square, other loops around.
for number, (source, result) in enumerate([
    ("f32", "f32"), ("f64", "f64"), ("bf16", "f32"), ("f16", "f32"),
]):  # fmt: skip
    sizes = [(1, 200, 77), (5, 300, 64), (4, 1030, 16), (8, 500, 5)]
    for turn, (m, n, k) in enumerate(sizes, number):
        contraction({"m": m, "n": n, "k": k}, "mk", "nk", "mn", source, result, m == 5,
                    [BOTH[turn % 2]], added=m == 5)  # fmt: skip
    contraction({"b": 3, "m": 3, "n": 150, "k": 91}, "bmk", "bnk", "bmn", source, result,
                True, [("generic", "host")[number // 2]])  # fmt: skip
# Where they are, in rows without a gap between them.
contraction({"m": 3, "n": 32, "k": 37}, "mk", "kn", "mn", "bf16", "f32", False, ["host"])
# A right factor that a cache holds: any rest of a depth that is unrolled.
for k in (6, 7, 8, 9):
    contraction({"m": 9, "n": 5, "k": k}, "mk", "kn", "mn", "bf16", "f32", False, ["host"])
for number, (lhs, rhs, out) in enumerate([
    ("bmk", "bkn", "bmn"), ("mbk", "nbk", "bmn"), ("bmk", "kn", "bmn"), ("mk", "kn", "nm"),
    ("mkj", "jkn", "mn"), ("mk", "k", "m"), ("k", "kn", "n"),
]):  # fmt: skip
    sizes = dict(zip("bjkmn", (3, 5, 40, 99, 45)))
    sizes = {c: sizes[c] for c in sorted({*lhs, *rhs})}
    contraction(sizes, lhs, rhs, out, "f32", "f32", True, [BOTH[number % 2]])
# Nothing to add, and no result.
contraction({"m": 5, "n": 40, "k": 0}, "mk", "kn", "mn", "f32", "f32", True, ["host"])
contraction({"m": 0, "n": 40, "k": 3}, "mk", "kn", "mn", "f32", "f32", True, ["host"])


def generic(inputs, outputs, maps, loops, body, types):
    return (
        f"linalg.generic {{indexing_maps = [{', '.join(maps)}], "
        f"iterator_types = [{', '.join(chr(34) + x + chr(34) for x in loops)}]}} "
        f"ins({', '.join('%' + x for x in inputs)} : "
        f"{', '.join(types[: len(inputs)])}) outs(%{outputs} : {types[-1]}) {{\n"
        f"{body}\n}} -> {types[-1]}"
    )


IJ, I, J, JI = (f"affine_map<(i, j) -> ({x})>" for x in ("i, j", "i", "j", "j, i"))
PARALLEL = ["parallel", "parallel"]


def elementwise(m, n, dtype, dynamic, targets):
    """tanh(x * exp(w_j)) + transposed y."""
    f = Function(dynamic)
    x = f.argument("x", (m, n), dtype)
    w = f.argument("w", (n,), dtype, 0.5)
    y = f.argument("t", (n, m), dtype)
    golden = np.tanh(x * np.exp(w)) + y.T
    type = f.type((m, n), dtype)
    f.empty("e", (m, n), dtype, [("x", (m, n), dtype, 0), ("x", (m, n), dtype, 1)])
    body = f"""^bb0(%a: {dtype}, %b: {dtype}, %c: {dtype}, %o: {dtype}):
      %0 = math.exp %b : {dtype}
      %1 = arith.mulf %a, %0 : {dtype}
      %2 = math.tanh %1 : {dtype}
      %3 = arith.addf %2, %c : {dtype}
      linalg.yield %3 : {dtype}"""
    types = [type, f.type((n,), dtype), f.type((n, m), dtype), type]
    f.body.append(f"%y = {generic(['x', 'w', 't'], 'e', [IJ, J, JI, IJ], PARALLEL, body, types)}")
    f.body.append(f"return %y : {type}")
    check(f"elementwise {m}x{n} {dtype} {dynamic=}", f, type, dtype, golden,
          4 * TOLERANCE[dtype] if dtype != "f32" else 2e-6, targets)  # fmt: skip


def transpose(shape, permutation, dtype, dynamic, targets):
    """A copy of any order, of any size, is exact."""
    f = Function(dynamic)
    golden = f.argument("x", shape, dtype).transpose(permutation)
    type = f.type(golden.shape, dtype)
    f.empty("e", golden.shape, dtype, [("x", shape, dtype, dim) for dim in permutation])
    f.body.append(
        f"%y = linalg.transpose ins(%x : {f.type(shape, dtype)}) outs(%e : {type}) "
        f"permutation = {list(permutation)}"
    )
    f.body.append(f"return %y : {type}")
    check(f"transpose {shape} {permutation} {dtype} {dynamic=}", f, type, dtype, golden, 0.0,
          targets)  # fmt: skip


def gather(m, n, rows, columns, dtype, dynamic, targets):
    """Rows of a table, or columns of it, by number."""
    for along, extent in ((0, rows), (1, columns)):
        f = Function(dynamic)
        table = f.argument("x", (rows, columns), dtype)
        count = m if along == 0 else n
        numbers = rng.integers(0, extent, count).astype(np.int32)
        f.inputs["ids"] = numbers
        f.arguments.append(f'%ids: {f.type((count,), "i32")} {{varlen.name = "ids"}}')
        golden = 2 * np.take(table, numbers, axis=along)
        type = f.type(golden.shape, dtype)
        sources = [("x", (rows, columns), dtype, 0), ("x", (rows, columns), dtype, 1)]
        sources[along] = ("ids", (count,), "i32", 0)
        f.empty("e", golden.shape, dtype, sources)
        place = "%number, %j" if along == 0 else "%i, %number"
        body = f"""^bb0(%id: i32, %o: {dtype}):
          %number = arith.index_cast %id : i32 to index
          %i = linalg.index 0 : index
          %j = linalg.index 1 : index
          %0 = tensor.extract %x[{place}] : {f.type((rows, columns), dtype)}
          %1 = arith.addf %0, %0 : {dtype}
          linalg.yield %1 : {dtype}"""
        maps = [I if along == 0 else J, IJ]
        f.body.append(
            f"%y = {generic(['ids'], 'e', maps, PARALLEL, body, [f.type((count,), 'i32'), type])}"
        )
        f.body.append(f"return %y : {type}")
        check(f"gather {golden.shape} along {along} {dtype} {dynamic=}", f, type, dtype, golden,
              0.0, targets)  # fmt: skip


def angles(n, name, targets):
    """Sines and cosines of large angles, as positions make them."""
    f = Function(dynamic=True)
    x = f.argument("x", (n,), "f32", 1e4)
    golden = {"sin": np.sin, "cos": np.cos}[name](x)
    type = f.type((n,), "f32")
    f.empty("e", (n,), "f32", [("x", (n,), "f32", 0)])
    body = f"""^bb0(%a: f32, %o: f32):
      %0 = math.{name} %a : f32
      linalg.yield %0 : f32"""
    one = "affine_map<(i) -> (i)>"
    f.body.append(f"%y = {generic(['x'], 'e', [one, one], ['parallel'], body, [type, type])}")
    f.body.append(f"return %y : {type}")
    check(f"{name} of {n} angles", f, type, "f32", golden, 1e-6, targets)


def reduction(m, n, dtype, along, kind, dynamic, targets):
    f = Function(dynamic)
    x = f.argument("x", (m, n), dtype)
    extent = m if along == 1 else n
    golden = {"sum": np.sum, "max": np.max}[kind](x * x, axis=along, initial={"sum": 0, "max": -1}[kind])
    type = f.type((extent,), dtype)
    f.empty("e", (extent,), dtype, [("x", (m, n), dtype, 1 - along)])
    start = {"sum": "0.0", "max": "-1.0"}[kind]
    op = {"sum": "arith.addf", "max": "arith.maximumf"}[kind]
    body = f"""^bb0(%a: {dtype}, %o: {dtype}):
      %0 = arith.mulf %a, %a : {dtype}
      %1 = {op} %0, %o : {dtype}
      linalg.yield %1 : {dtype}"""
    maps = [IJ, I if along == 1 else J]
    loops = ["parallel", "reduction"] if along == 1 else ["reduction", "parallel"]
    f.body.append(
        f"%zero = arith.constant {start} : {dtype}\n"
        f"%z = linalg.fill ins(%zero : {dtype}) outs(%e : {type}) -> {type}\n"
        f"%y = {generic(['x'], 'z', maps, loops, body, [f.type((m, n), dtype), type])}\n"
        f"return %y : {type}"
    )
    check(f"{kind} of {m}x{n} along {along} {dtype} {dynamic=}", f, type, dtype, golden,
          TOLERANCE[dtype] * max(1, (n if along else m) ** 0.5), targets)  # fmt: skip


def softmax(m, n, dynamic, targets):
    """A producer that two operations of the loop read."""
    f = Function(dynamic)
    x = f.argument("x", (m, n), "f32", 3.0)
    exp = np.exp(x - x.max(axis=1, keepdims=True))
    golden = exp / exp.sum(axis=1, keepdims=True)
    rows, type = f.type((m,), "f32"), f.type((m, n), "f32")
    extents = [("x", (m, n), "f32", 0), ("x", (m, n), "f32", 1)]
    f.empty("r", (m,), "f32", extents[:1])
    f.empty("e", (m, n), "f32", extents)
    two = lambda op: f"^bb0(%a: f32, %o: f32):\n%0 = {op} %a, %o : f32\nlinalg.yield %0 : f32"
    sub = """^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.subf %a, %b : f32
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32"""
    div = """^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.divf %a, %b : f32
      linalg.yield %0 : f32"""
    along = ["parallel", "reduction"]
    f.body.append(
        "%low = arith.constant 0xFF800000 : f32\n%zero = arith.constant 0.0 : f32\n"
        f"%m0 = linalg.fill ins(%low : f32) outs(%r : {rows}) -> {rows}\n"
        f"%l0 = linalg.fill ins(%zero : f32) outs(%r : {rows}) -> {rows}\n"
        f"%m = {generic(['x'], 'm0', [IJ, I], along, two('arith.maximumf'), [type, rows])}\n"
        f"%p = {generic(['x', 'm'], 'e', [IJ, I, IJ], PARALLEL, sub, [type, rows, type])}\n"
        f"%l = {generic(['p'], 'l0', [IJ, I], along, two('arith.addf'), [type, rows])}\n"
        f"%y = {generic(['p', 'l'], 'e', [IJ, I, IJ], PARALLEL, div, [type, rows, type])}\n"
        f"return %y : {type}"
    )
    check(f"softmax {m}x{n} {dynamic=}", f, type, "f32", golden, 2e-6, targets)


def named_softmax(m, n, dtype, dynamic, targets):
    f = Function(dynamic)
    x = f.argument("x", (m, n), dtype, 3.0)
    exp = np.exp(x - x.max(axis=1, keepdims=True, initial=-np.inf))
    golden = exp / exp.sum(axis=1, keepdims=True)
    type = f.type((m, n), dtype)
    f.empty("e", (m, n), dtype, [("x", (m, n), dtype, dim) for dim in (0, 1)])
    f.body.append(
        f"%y = linalg.softmax dimension(1) ins(%x : {type}) outs(%e : {type}) -> {type}\n"
        f"return %y : {type}"
    )
    check(f"linalg.softmax {m}x{n} {dtype} {dynamic=}", f, type, dtype, golden,
          min(2e-6, TOLERANCE[dtype]) if dtype != "bf16" else TOLERANCE[dtype],
          targets)  # fmt: skip


def without_loops(dtype, dynamic, targets):
    """What a mean ends with: an operation of rank 0."""
    f = Function(dynamic)
    golden = np.exp(f.argument("x", (), dtype)) / f.argument("n", (), dtype, 3.0)
    type = f.type((), dtype)
    f.empty("e", (), dtype, [])
    body = f"""^bb0(%a: {dtype}, %b: {dtype}, %o: {dtype}):
      %0 = math.exp %a : {dtype}
      %1 = arith.divf %0, %b : {dtype}
      linalg.yield %1 : {dtype}"""
    maps = 3 * ["affine_map<() -> ()>"]
    f.body.append(f"%y = {generic(['x', 'n'], 'e', maps, [], body, 3 * [type])}")
    f.body.append(f"return %y : {type}")
    check(f"without loops {dtype}", f, type, dtype, golden, 4 * TOLERANCE[dtype], targets)


def rounding(shape, targets):
    """One input in another type, of any rank: what may be fused with its producer."""
    f = Function(dynamic=False)
    golden = dtypes.widen(dtypes.narrow(np.tanh(f.argument("x", shape, "f32")), "bf16"))
    wide, type = f.type(shape, "f32"), f.type(shape, "bf16")
    f.body.append(
        f"%t = math.tanh %x : {wide}\n%y = arith.truncf %t : {wide} to {type}\nreturn %y : {type}"
    )
    check(f"rounding {shape}", f, type, "bf16", golden, TOLERANCE["bf16"], targets)


def results_in_memory_of_others(targets):
    """Two results of one function, of which one is computed from a step of the other, in
    both orders."""
    for order in ("a, %b", "b, %a"):
        f = Function(dynamic=False)
        x, y = f.argument("x", (3, 5), "f32"), f.argument("z", (3, 5), "f32")
        type = f.type((3, 5), "f32")
        f.empty("e", (3, 5), "f32", [])
        square = "^bb0(%i: f32, %o: f32):\n%0 = arith.mulf %i, %i : f32\nlinalg.yield %0 : f32"
        add = "^bb0(%i: f32, %o: f32):\n%0 = arith.addf %i, %o : f32\nlinalg.yield %0 : f32"
        f.body.append(
            f"%a = {generic(['x'], 'e', [IJ, IJ], PARALLEL, square, [type, type])}\n"
            f"%b = {generic(['z'], 'a', [IJ, IJ], PARALLEL, add, [type, type])}\n"
            f"return %{order} : {type}, {type}"
        )
        text = f.text(type).replace(
            f'({type} {{varlen.name = "y"}})',
            f'({type} {{varlen.name = "{order[0]}"}}, {type} {{varlen.name = "{order[-1]}"}})',
        )
        for target in targets:
            results = compiled.function(text, target=target)(f.inputs)
            for name, golden in (("a", x * x), ("b", x * x + y)):
                judge(f"result {name} of %{order} {target}", results[name], golden, 1e-6)


# Extents 0 and 1, known and not.
EXTENTS = [(m, n) for m in (0, 1, 5) for n in (0, 1, 9) if (m, n) != (5, 9)]
for number, (m, n) in enumerate(EXTENTS):
    for dynamic in (False, True):
        elementwise(m, n, "f32", dynamic, ["host"])
        transpose((m, n, 3), (1, 2, 0), "f32", dynamic, ["host"])
        named_softmax(m, n, "f32", dynamic, ["host"])
        for along in (0, 1):
            reduction(m, n, "f32", along, "sum", dynamic, ["host"])
    for turn, k in enumerate((0, 1, 4), number):
        for lhs, rhs in MATMUL[turn % 2 :: 2]:
            contraction({"m": m, "n": n, "k": k}, lhs, rhs, "mn", "f32", "f32", k == 1, ["host"])
        contraction({"m": m, "n": n, "k": k}, "mk", "nk", "mn", "bf16", "f32", k != 1, ["host"])
# A tile of a loop whose other loops have no elements.
for shape in [(0, 20000), (20000, 0)]:
    elementwise(*shape, "f32", False, ["host"])
    reduction(*shape, "f32", 0, "sum", False, ["host"])
for dtype in ("f64", "f32", "bf16"):
    without_loops(dtype, False, ALL_TARGETS)
for shape in [(), (1,), (0, 4), (4, 0), (1, 1), (3, 8)]:
    rounding(shape, ALL_TARGETS)
if neon is None:
    results_in_memory_of_others(ALL_TARGETS)

for m, n in [(1, 1), (3, 17), (300, 129)]:
    for dynamic in (False, True):
        elementwise(m, n, "f32", dynamic, ALL_TARGETS)
        softmax(m, n, dynamic, ["host"])
        named_softmax(m, n, "f32", dynamic, ["avx2", "host"])
    for dtype in ("f64", "bf16"):
        named_softmax(m, n, dtype, True, ["host"])
        for along in (0, 1):
            for kind in ("sum", "max"):
                reduction(m, n, "f32", along, kind, dynamic, ["avx2"])
for dtype in ("f64", "f32", "bf16"):
    gather(70, 131, 40, 201, dtype, dtype != "f32", ["host"])
gather(3, 5, 7, 1, "f32", True, ALL_TARGETS)
gather(0, 0, 2, 3, "f16", True, ["avx2"])
for name in ("sin", "cos"):
    angles(1013, name, ALL_TARGETS)
for dtype in ("f64", "f16", "bf16"):
    elementwise(33, 150, dtype, True, ["avx2", "host"])
    transpose((37, 3, 50), (2, 0, 1), dtype, True, ["avx2", "host"])
    transpose((33, 150), (1, 0), dtype, False, ["host"])
    if dtype == "f64":
        reduction(33, 150, dtype, 1, "sum", True, ["avx2", "host"])
        reduction(33, 150, dtype, 0, "sum", True, ["avx2", "host"])


if neon is not None:
    import cross

    values = cross.run([function for function, _ in neon])
    for value, (_, (label, golden, tolerance)) in zip(values, neon):
        judge(label, value, golden, tolerance)
    print(f"{len(neon)} functions, {failed} failed")
    raise SystemExit(failed != 0)


def rows_alone(lhs, rhs, dtype, target):
    """A row's result does not depend on how many rows there are."""
    global failed
    n, k = 293, 601
    b = rng.standard_normal([{"n": n, "k": k}[c] for c in rhs])
    a = rng.standard_normal((40, k))
    maps = ", ".join(f"affine_map<(m, n, k) -> ({', '.join(x)})>" for x in (lhs, rhs, "mn"))
    factor, sums = f"tensor<?x?x{dtype}>", "tensor<?x?xf32>"
    text = f"""
    func.func @f(%a: {factor} {{varlen.name = "a"}}, %b: {factor} {{varlen.name = "b"}},
                 %c: {sums} {{varlen.name = "c"}}) -> ({sums} {{varlen.name = "y"}}) {{
      %y = linalg.contract indexing_maps = [{maps}] ins(%a, %b : {factor}, {factor})
          outs(%c : {sums}) -> {sums}
      return %y : {sums}
    }}
    """

    function = compiled.function(text, target=target)

    def run(part):
        left = part if lhs == "mk" else np.ascontiguousarray(part.T)
        inputs = {"a": dtypes.narrow(left, dtype), "b": dtypes.narrow(b, dtype),
                  "c": np.zeros((len(part), n), np.float32)}  # fmt: skip
        return function(inputs)["y"]

    whole = run(a)
    for rows in (1, 3, 5, 8, 9):
        if not np.array_equal(run(a[:rows]), whole[:rows]):
            print(f"FAIL {lhs},{rhs} {dtype} {target}: {rows} rows differ from those of 40")
            failed += 1


for lhs, rhs in MATMUL:
    for dtype in ("f32", "bf16"):
        rows_alone(lhs, rhs, dtype, "host")
    rows_alone(lhs, rhs, "f16", "avx2")
    rows_alone(lhs, rhs, "f32", "generic")

print(f"{failed} failed")
raise SystemExit(failed != 0)
