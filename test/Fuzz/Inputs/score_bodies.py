"""Score regions of random operations, as MLIR text and, apart from it, in numpy, with the
values that docs/scores.md gives operations where they have none of their own: division by
0, shifts beyond the width, floats beyond the integers.

A body mixes integers that it computes from positions and captures. A few bits of them
are added to the score, others hide keys, and a capture is looked up by them.
"""

import dataclasses

import numpy as np
from varlen import scores

# Of floats that integers are made of.
HOSTILE = (
    0.0, -0.0, 0.5, -1.75, 3.0, 127.9, -128.5, 65535.0, 2147483647.0, -2147483648.0, 2147483648.0,
    -2147483904.0, 4294967296.0, 1e20, -1e30, 3e38, 1e-40, np.inf, -np.inf, np.nan,
)  # fmt: skip
WIDTHS = (8, 16, 32, 64)
TABLE_ENTRIES = 5


def wrap(x, width):
    """The signed number that the low bits are."""
    if width == 64:
        return x.astype(np.int64)
    low = x.astype(np.int64) & ((1 << width) - 1)
    return np.where(low >> (width - 1), low - (1 << width), low)


def unsigned(x, width):
    return x.astype(np.uint64) & np.uint64((1 << width) - 1)


def divide(x, y, width, signed):
    """The quotient, rounded down, and the remainder of that; by 1 where the divisor is 0,
    or where the quotient is no number of the width."""
    if signed:
        least = -(1 << (width - 1))
        y = np.where((y == 0) | ((y == -1) & (x == least)), 1, y)
    else:
        x, y = unsigned(x, width), unsigned(y, width)
        y = np.where(y == 0, np.uint64(1), y)
    return x // y, x % y, y


def division(rounding, signed, remainder=False):
    def compute(x, y, width):
        quotient, rest, y = divide(x, y, width, signed)
        inexact = rest != 0
        one = quotient.dtype.type(1)
        if signed and rounding == "zero":
            up = inexact & ((x < 0) != (y < 0))
        else:
            up = inexact & (rounding == "up")
        quotient = quotient + np.where(up, one, quotient.dtype.type(0))
        if remainder:
            return wrap(x - quotient * y if signed else rest, width)
        return wrap(quotient, width)

    return compute


def shift(kind):
    def compute(x, y, width):
        places = unsigned(y, width) % np.uint64(width)
        if kind == "shli":
            return wrap(x.astype(np.uint64) << places, width)
        if kind == "shrui":
            return wrap(unsigned(x, width) >> places, width)
        return x >> places.astype(np.int64)

    return compute


def count_bits(x, width):
    return sum((unsigned(x, width) >> np.uint64(i)) & np.uint64(1) for i in range(width))


def count_leading(x, width):
    count, going = np.zeros_like(x), np.ones_like(x)
    for i in reversed(range(width)):
        going = going & ~((x >> i) & 1) & 1
        count = count + going
    return count


def count_trailing(x, width):
    count, going = np.zeros_like(x), np.ones_like(x)
    for i in range(width):
        going = going & ~((x >> i) & 1) & 1
        count = count + going
    return count


def to_integer(x, width, signed):
    """Towards 0, the nearest one for what is beyond, 0 for NaN."""
    low = -(1 << (width - 1)) if signed else 0
    high = (1 << (width - 1 if signed else width)) - 1

    def convert(f):
        n = 0 if np.isnan(f) else low if f < low else high if f > high else int(f)
        return n - (1 << 64) if n >> 63 == 1 else n

    return wrap(np.vectorize(convert, otypes=[np.int64])(x), width)


BINARY = {
    "arith.addi": lambda x, y, w: wrap(x + y, w), "arith.subi": lambda x, y, w: wrap(x - y, w),
    "arith.muli": lambda x, y, w: wrap(x * y, w),
    "arith.divsi": division("zero", True), "arith.divui": division("down", False),
    "arith.floordivsi": division("down", True), "arith.ceildivsi": division("up", True),
    "arith.ceildivui": division("up", False),
    "arith.remsi": division("zero", True, remainder=True),
    "arith.remui": division("down", False, remainder=True),
    "arith.shli": shift("shli"), "arith.shrsi": shift("shrsi"), "arith.shrui": shift("shrui"),
    "arith.andi": lambda x, y, w: x & y, "arith.ori": lambda x, y, w: x | y,
    "arith.xori": lambda x, y, w: x ^ y,
    "arith.minsi": lambda x, y, w: np.minimum(x, y),
    "arith.maxsi": lambda x, y, w: np.maximum(x, y),
    "arith.minui": lambda x, y, w: np.where(unsigned(x, w) < unsigned(y, w), x, y),
    "arith.maxui": lambda x, y, w: np.where(unsigned(x, w) > unsigned(y, w), x, y),
}  # fmt: skip
UNARY = {
    "math.absi": lambda x, w: wrap(np.abs(x), w),
    "math.ctpop": lambda x, w: wrap(count_bits(x, w), w),
    "math.ctlz": lambda x, w: wrap(count_leading(x, w), w),
    "math.cttz": lambda x, w: wrap(count_trailing(x, w), w),
}  # fmt: skip
CLASSES = {
    "math.isnan": np.isnan, "math.isinf": np.isinf, "math.isfinite": np.isfinite,
    "math.isnormal": lambda x: np.isfinite(x) & (abs(x) >= np.float32(2.0**-126)),
}  # fmt: skip
COMPARISONS = {
    "slt": lambda x, y, w: x < y, "sge": lambda x, y, w: x >= y, "eq": lambda x, y, w: x == y,
    "ult": lambda x, y, w: unsigned(x, w) < unsigned(y, w),
}  # fmt: skip
# What makes poison of a value in LLVM; in a region it says nothing.
FLAGS = {
    **dict.fromkeys(
        ("arith.addi", "arith.subi", "arith.muli", "arith.shli"),
        ("", " overflow<nsw>", " overflow<nuw>", " overflow<nsw, nuw>"),
    ),
    **dict.fromkeys(("arith.divsi", "arith.divui", "arith.shrsi", "arith.shrui"), ("", " exact")),
}


@dataclasses.dataclass
class Value:
    """An integer of a body: `compute(environment)` is its array."""

    name: str
    width: int
    compute: object


class Body:
    """Operations, which are added one after the other."""

    def __init__(self, rng):
        self.rng, self.lines, self.count = rng, [], 0
        self.integers = [
            Value("%query", 32, lambda e: e["query"]), Value("%key", 32, lambda e: e["key"]),
        ]  # fmt: skip

    def emit(self, text):
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"{name} = {text}")
        return name

    def add(self, text, width, compute):
        def once(environment, name=f"%v{self.count + 1}"):
            if name not in environment:
                with np.errstate(all="ignore"):
                    environment[name] = compute(environment)
            return environment[name]

        self.integers.append(Value(self.emit(text), width, once))
        return self.integers[-1]

    def pick(self):
        return self.rng.choice(self.integers[-6:] if self.rng.random() < 0.7 else self.integers)

    def constant(self, number, width):
        return self.add(
            f"arith.constant {number} : i{width}", width, lambda e: np.int64(number) + 0 * e["key"]
        )

    def resize(self, x, width):
        if x.width == width:
            return x
        if x.width > width:
            flags = self.rng.choice(("", " overflow<nsw>", " overflow<nuw>"))
            return self.add(
                f"arith.trunci {x.name}{flags} : i{x.width} to i{width}", width,
                lambda e: wrap(x.compute(e), width),
            )  # fmt: skip
        if self.rng.random() < 0.5:
            return self.add(
                f"arith.extsi {x.name} : i{x.width} to i{width}", width, lambda e: x.compute(e)
            )
        return self.add(
            f"arith.extui {x.name} : i{x.width} to i{width}", width,
            lambda e: wrap(unsigned(x.compute(e), x.width), width),
        )  # fmt: skip

    def binary(self, name, x, y):
        y = self.resize(y, x.width)
        flags, compute = self.rng.choice(FLAGS.get(name, ("",))), BINARY[name]
        return self.add(
            f"{name} {x.name}, {y.name}{flags} : i{x.width}", x.width,
            lambda e: compute(x.compute(e), y.compute(e), x.width),
        )  # fmt: skip

    def unary(self, name, x):
        compute = UNARY[name]
        return self.add(
            f"{name} {x.name} : i{x.width}", x.width, lambda e: compute(x.compute(e), x.width)
        )

    def bit(self, text, compute):
        """An integer of a condition."""
        return self.add(f"arith.extui {self.emit(text)} : i1 to i32", 32, compute)

    def select(self, x, y, z):
        predicate = self.rng.choice(sorted(COMPARISONS))
        compare, y, z = COMPARISONS[predicate], self.resize(y, x.width), self.resize(z, x.width)
        condition = self.emit(f"arith.cmpi {predicate}, {x.name}, {y.name} : i{x.width}")
        return self.add(
            f"arith.select {condition}, {y.name}, {z.name} : i{x.width}", x.width,
            lambda e: np.where(
                compare(x.compute(e), y.compute(e), x.width), y.compute(e), z.compute(e)
            ),
        )  # fmt: skip

    def convert(self, capture, width, signed):
        name = "arith.fptosi" if signed else "arith.fptoui"
        return self.add(
            f"{name} %{capture} : f32 to i{width}", width,
            lambda e: to_integer(e[capture], width, signed),
        )  # fmt: skip

    def classify(self, name, capture):
        test = CLASSES[name]
        return self.bit(f"{name} %{capture} : f32", lambda e: test(e[capture]).astype(np.int64))

    def lookup(self, table, type, x):
        """An integer of the entry at an index."""
        x = self.resize(x, 32)
        entry = self.emit(f"varlen.lookup %{table}[{x.name}] : {type}")
        return self.add(
            f"arith.fptosi {entry} : f32 to i32", 32,
            lambda e: to_integer(e[table](x.compute(e)), 32, True),
        )  # fmt: skip

    def draw(self):
        rng, x, y = self.rng, self.pick(), self.pick()
        choices = (
            lambda: self.binary(rng.choice(sorted(BINARY)), x, y),
            lambda: self.binary(rng.choice(sorted(BINARY)), x, self.edge(x.width)),
            lambda: self.unary(rng.choice(sorted(UNARY)), x),
            lambda: self.select(x, y, self.pick()),
            lambda: self.resize(x, rng.choice(WIDTHS)),
            lambda: self.convert(
                rng.choice(("head", "row")), rng.choice(WIDTHS), rng.random() < 0.7
            ),
            lambda: self.classify(rng.choice(sorted(CLASSES)), rng.choice(("head", "row"))),
            lambda: self.lookup("table", "!varlen.table<f32>", x),
            # In tiles the gradient of a key's number is by the key itself.
            lambda: self.lookup("keys", "!varlen.table<f32, keys>", self.integers[1]),
        )
        rng.choices(choices, (6, 4, 2, 2, 2, 2, 1, 1, 1))[0]()

    def edge(self, width):
        least = -(1 << (width - 1))
        edges = (0, 1, -1, least, least + 1, -least - 1, width, width - 1, 2, 7, -3)
        number = self.rng.choice(edges)
        return self.constant(number, width)

    def finish(self, hides):
        """The Score of what has been added."""
        mixed = self.resize(self.integers[-1], 32)
        for value in self.integers[2:-1][-8:]:
            mixed = self.binary("arith.xori", mixed, value)
        low = self.binary("arith.andi", mixed, self.constant(7, 32))
        at = self.binary("arith.shrsi", mixed, self.constant(3, 32))
        visible = None
        lines = [
            f"%low = arith.sitofp {low.name} : i32 to f32",
            "%quarter = arith.constant 0.25 : f32",
            "%more = arith.mulf %low, %quarter : f32",
            "%sum = arith.addf %score, %more : f32",
            f"%entry = varlen.lookup %table[{at.name}] : !varlen.table<f32>",
            "%new = arith.addf %sum, %entry : f32",
        ]
        if hides:
            bits = self.binary("arith.shrui", mixed, self.constant(7, 32))
            bits = self.binary("arith.andi", bits, self.constant(3, 32))
            lines += [
                "%none = arith.constant 0 : i32",
                f"%visible = arith.cmpi ne, {bits.name}, %none : i32",
            ]

            def visible(query, key, *captures):
                return bits.compute(self.environment(query, key, captures)) != 0

        text = "\n".join([*self.lines, *lines])

        def value(s, query, key, *captures):
            environment = self.environment(query, key, captures)
            return s + 0.25 * low.compute(environment) + captures[2](at.compute(environment))

        def derivatives(s, query, key, *captures):
            index = at.compute(self.environment(query, key, captures))
            zero = np.zeros_like(s)
            return [np.ones_like(s), zero, zero, [(index, np.ones_like(s))], []]

        kinds = {"head": "head", "row": "query", "table": "head_table", "keys": "key_table"}
        return scores.Score("body", lambda type: text, value, derivatives, kinds, visible)

    def environment(self, query, key, captures):
        query, key = np.broadcast_arrays(np.asarray(query, np.int64), np.asarray(key, np.int64))
        head, row, table, keys = captures
        return {
            "query": query, "key": key, "table": table, "keys": keys,
            "head": np.broadcast_to(np.float32(head), query.shape),
            "row": np.broadcast_to(np.float32(row), query.shape),
        }  # fmt: skip


def random_score(rng):
    body = Body(rng)
    for _ in range(rng.randrange(3, 12)):
        body.draw()
    return body.finish(hides=rng.random() < 0.5)


def draw_captures(rng, heads, rows, kv_rows):
    """The extents of a random_score: numbers of heads and of rows, a table, numbers of keys."""

    def draw(*shape):
        numbers = [rng.choice(HOSTILE) for _ in range(int(np.prod(shape)))]
        return np.array(numbers, "f4").reshape(shape)

    table = np.array([rng.uniform(-2, 2) for _ in range(heads * TABLE_ENTRIES)], "f4")
    table = table.reshape(heads, TABLE_ENTRIES)
    return [draw(heads), draw(heads, rows), table, draw(heads, kv_rows)]
