"""Builds the text of one function: values, operations, types and constants."""

from __future__ import annotations

import dataclasses
import re
import typing

import numpy as np

from .. import dtypes
from ._extents import Extent

if typing.TYPE_CHECKING:
    from collections.abc import Sequence


class ModelError(ValueError):
    """A model that cannot be imported; the message says what was wanted."""


class Value:
    """A tensor of the function.

    `shape` has ints, and Extents of dimensions that are dynamic; `element` is MLIR's
    name of the element type. What is known of the values, if anything:

    array: all of them, in a numpy array.
    numbers: all of them, integers, in a numpy array of ints and Extents.
    view: (source, permutation), if it is a transposed source.
    root: The value that it is in another shape, if there is one.
    """

    def __init__(self, shape, element, name=None, *, array=None, numbers=None, label=None):
        self.shape = tuple(shape)
        self.element = element
        self.name = name
        self.array = array
        if numbers is None and array is not None and element in ("i64", "i32") and array.size <= 64:
            numbers = np.array([int(x) for x in array.reshape(-1)], object).reshape(array.shape)
        self.numbers = numbers
        self.view = self.root = None
        self.label = label

    @property
    def rank(self):
        return len(self.shape)

    @property
    def type(self):
        return tensor_type(self.shape, self.element)


def tensor_type(shape, element):
    extents = "".join(f"{'?' if isinstance(n, Extent) else n}x" for n in shape)
    return f"tensor<{extents}{element}>"


def is_float(element):
    return element in ("f64", "f32", "f16", "bf16")


def compute_element(element):
    """The type that sums and functions of an element type are computed in."""
    return "f32" if element in ("f16", "bf16") else element


def quote(text):
    """A string literal of MLIR."""
    return '"' + "".join(
        chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in text.encode()
    ) + '"'  # fmt: skip


def scalar_literal(number, element):
    """The number as MLIR reads it, without its type."""
    if element == "i1":
        return "true" if number else "false"
    if not is_float(element):
        return str(int(number))
    # The bits: exact, and the only way to write infinities and NaN.
    value = (
        dtypes.narrow(np.array(number, np.float64), element)
        if element != "f64"
        else np.float64(number)
    )
    return "0x" + np.asarray(value).tobytes()[::-1].hex().upper()


def dense_literal(array, element):
    """All elements of an array as a dense attribute, without its type."""
    if element == "i1":
        return f"dense<{array.astype(int).tolist()}>".replace("1", "true").replace("0", "false")
    return f'dense<"0x{dtypes.normalize(array).tobytes().hex().upper()}">'


@dataclasses.dataclass
class _Line:
    result: str  # empty: an effect
    text: str
    num_results: int = 1


_NAMES = re.compile(r"%[A-Za-z_][A-Za-z0-9_]*")


def _assign(line):
    if not line.result:
        return ""
    return f"{line.result} = " if line.num_results == 1 else f"{line.result}:{line.num_results} = "


def _affine(dim):
    """A dimension of a map: a loop, or an expression of loops as text."""
    return dim if isinstance(dim, str) else f"d{dim}"


class Body:
    """The body of a linalg.generic: operations on scalars."""

    def __init__(self, builder):
        self.builder = builder
        self.lines = []

    def op(self, text):
        name = self.builder.fresh("s")
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, number, element):
        return self.builder.scalar(number, element)

    def unary(self, op, x, element):
        return self.op(f"{op} {x} : {element}")

    def binary(self, op, x, y, element):
        return self.op(f"{op} {x}, {y} : {element}")

    def select(self, condition, x, y, element):
        return self.op(f"arith.select {condition}, {x}, {y} : {element}")

    def index(self, dim):
        return self.op(f"linalg.index {dim} : index")

    def convert(self, x, source, target):
        """x of one element type in another one, as ONNX's Cast has it."""
        if source == target:
            return x
        if target == "i1":
            zero = self.constant(0, source)
            compare = "cmpf une" if is_float(source) else "cmpi ne"
            return self.op(f"arith.{compare}, {x}, {zero} : {source}")
        if is_float(source) and is_float(target):
            widths = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
            if widths[source] == widths[target]:
                x, source = self.op(f"arith.extf {x} : {source} to f32"), "f32"
            op = "extf" if widths[source] < widths[target] else "truncf"
        elif is_float(source):
            op = "fptosi"
        elif is_float(target):
            op = "uitofp" if source == "i1" else "sitofp"
        else:
            wider = int(source[1:]) < int(target[1:])
            op = ("extui" if source == "i1" else "extsi") if wider else "trunci"
        return self.op(f"arith.{op} {x} : {source} to {target}")


class Builder:
    """A function in the making. Operations that say the same are emitted once, and
    operations whose results are unused are omitted."""

    def __init__(self, inline_bytes):
        self.inline_bytes = inline_bytes
        self.lines: list[_Line] = []
        self.arguments: list[tuple[str, str, str]] = []  # name, type, label
        self.weights: dict[str, np.ndarray] = {}
        self._known: dict[str, str] = {}
        self._made: dict[tuple, Value] = {}
        self._symbols: dict[str, str] = {}  # of extents: the index value
        self._weight_names: dict[int, tuple[np.ndarray, str]] = {}
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    # Names and lines.

    def fresh(self, stem):
        """A name of a value that no other has."""
        stem = re.sub(r"[^A-Za-z0-9_]", "_", stem)
        name = stem = stem if stem[:1].isalpha() else f"_{stem}"
        while name in self._taken:
            self._counts[stem] = self._counts.get(stem, 0) + 1
            name = f"{stem}_{self._counts[stem]}"
        self._taken.add(name)
        return f"%{name}"

    def new(self, text, stem="v", num_results=1):
        """The result of an operation without effects."""
        name = self.fresh(stem)
        self.lines.append(_Line(name, text, num_results))
        return name

    def pure(self, text, stem="v"):
        """As `new`; the same text is the same value."""
        if text not in self._known:
            self._known[text] = self.new(text, stem)
        return self._known[text]

    def once(self, key, make):
        """What make() returns, made once for a key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def effect(self, text):
        self.lines.append(_Line("", text))

    # Scalars and extents.

    def scalar(self, number, element):
        if element == "index":
            return self.pure(f"arith.constant {int(number)} : index", f"c{int(number)}")
        if element == "i1":
            return self.pure(f"arith.constant {scalar_literal(number, element)}", "bit")
        return self.pure(f"arith.constant {scalar_literal(number, element)} : {element}", "cst")

    def symbol(self, stem, index):
        """The extent that an index value is."""
        for known, value in self._symbols.items():
            if value == index:
                return Extent.symbol(known)
        name = self.fresh(stem)[1:]
        self._symbols[name] = index
        return Extent.symbol(name)

    def index(self, extent):
        """The index value of an extent."""
        if not isinstance(extent, Extent):
            return self.scalar(extent, "index")
        total = None
        for monomial, factor in extent.terms.items():
            parts = [self._symbols[symbol] for symbol in monomial]
            if factor != 1 or not parts:
                parts.append(self.scalar(factor, "index"))
            term = parts[0]
            for part in parts[1:]:
                term = self.pure(f"arith.muli {term}, {part} : index", "i")
            total = term if total is None else self.pure(f"arith.addi {total}, {term} : index", "i")
        return total

    def operand(self, extent):
        """An extent as an operation's operand that may be a literal."""
        return self.index(extent) if isinstance(extent, Extent) else str(extent)

    def operands(self, extents):
        return "[" + ", ".join(map(self.operand, extents)) + "]"

    def index_op(self, op, *extents):
        """The extent that an arith operation on indices gives; a number where all are."""
        fold = {"maxsi": max, "minsi": min, "floordivsi": lambda a, b: a // b,
                "ceildivsi": lambda a, b: -(-a // b), "remsi": lambda a, b: a % b}  # fmt: skip
        if not any(isinstance(e, Extent) for e in extents):
            return fold[op](*extents)
        values = ", ".join(map(self.index, extents))
        return self.symbol("n", self.pure(f"arith.{op} {values} : index", "i"))

    def require(self, condition, message):
        """Ends the call with an error where the i1 value is false."""
        self.effect(f"cf.assert {condition}, {quote(message)}")

    def require_equal(self, left, right, message):
        """As `require`, of two extents; a ModelError if they are known to differ."""
        if left == right:
            return
        if not isinstance(left, Extent) and not isinstance(right, Extent):
            raise ModelError(f"{message}: got {left} and {right}")
        values = f"{self.index(left)}, {self.index(right)}"
        self.require(self.pure(f"arith.cmpi eq, {values} : index", "same"), message)

    def require_at_most(self, extent, limit, message):
        """As `require_equal`, of an extent that must not be larger than another one."""
        if extent != limit:
            self.require_equal(self.index_op("maxsi", extent, limit), limit, message)

    # Loops.

    def loop(self, count, initial, compute, *, stem="v"):
        """The values that a loop carries, after its last iteration.

        Args:
            count: How many iterations there are.
            initial: The values before the first one.
            compute: Called on the index of an iteration, an Extent, and the values that
                it begins with; returns those that it ends with, of the same types.
        """
        types = ", ".join(value.type for value in initial)
        first, last, step = self.index(0), self.index(count), self.index(1)
        index = self.fresh("i")
        carried = [Value(v.shape, v.element, self.fresh("carried")) for v in initial]
        pairs = ", ".join(f"{c.name} = {self.use(v)}" for c, v in zip(carried, initial))
        # What the body makes is known in it alone.
        outer = self.lines, self._known, self._made
        self.lines, self._known, self._made = [], dict(self._known), dict(self._made)
        yielded = [self.use(v) for v in compute(self.symbol("i", index), *carried)]
        inner = [f"    {_assign(line)}{line.text}".replace("\n", "\n  ") for line in self.lines]
        self.lines, self._known, self._made = outer
        lines = [
            f"scf.for {index} = {first} to {last} step {step} iter_args({pairs}) -> ({types}) {{",
            *inner,
            f"    scf.yield {', '.join(yielded)} : {types}",
            "  }",
        ]
        name = self.new("\n".join(lines), stem, len(initial))
        names = [name] if len(initial) == 1 else [f"{name}#{i}" for i in range(len(initial))]
        return [Value(v.shape, v.element, n) for v, n in zip(initial, names)]

    # Tensors.

    def argument(self, label, shape, element):
        """An argument of the function; `shape` has ints, and None or a symbol's name
        where it is dynamic. A symbol is one extent wherever it stands."""
        name = self.fresh(label)
        type = tensor_type(
            [Extent.symbol("?") if not isinstance(n, int) else n for n in shape], element
        )
        self.arguments.append((name, type, label))
        extents = []
        for d, n in enumerate(shape):
            if isinstance(n, int):
                extents.append(n)
                continue
            dim = self.pure(
                f"tensor.dim {name}, {self.scalar(d, 'index')} : {type}", f"{label}_{d}"
            )
            if n is None:
                extents.append(self.symbol(f"{label}_{d}", dim))
                continue
            known = self._symbols.setdefault(n, dim)
            extents.append(Extent.symbol(n))
            self.require_equal_indices(known, dim, f"{label}: extent {d} must be {n}, as elsewhere")
        return Value(extents, element, name, label=label)

    def require_equal_indices(self, left, right, message):
        if left != right:
            self.require(self.pure(f"arith.cmpi eq, {left}, {right} : index", "same"), message)

    def constant(self, array, label=None):
        return Value(array.shape, dtypes.name_of(array), array=array, label=label)

    def use(self, value):
        """The name of the tensor; constants and extents become one here."""
        if value.name is not None:
            return value.name
        if value.array is not None:
            value.name = self._use_array(value)
        else:
            scalars = [
                self.pure(f"arith.index_cast {self.index(n)} : index to {value.element}", "n")
                for n in value.numbers.reshape(-1)
            ]
            flat = value if value.rank <= 1 else Value((len(scalars),), value.element)
            name = self.pure(f"tensor.from_elements {', '.join(scalars)} : {flat.type}", "numbers")
            if value.rank > 1:
                groups = f"[[{', '.join(map(str, range(value.rank)))}]]"
                name = self.pure(f"tensor.expand_shape {name} {groups} output_shape "
                                 f"{self.operands(value.shape)} : {flat.type} into {value.type}")  # fmt: skip
            value.name = name
        return value.name

    def _use_array(self, value):
        if value.array.nbytes <= self.inline_bytes:
            literal = dense_literal(value.array, value.element)
            if value.array.size == 0:
                return self.empty(value.shape, value.element)
            return self.pure(f"arith.constant {literal} : {value.type}", "cst")
        # The same array again is the same weight.
        if id(value.array) in self._weight_names:
            return self._weight_names[id(value.array)][1]
        label = value.label or "weight"
        while label in self.weights or any(label == taken for _, _, taken in self.arguments):
            label += "_"
        name = self.fresh(label)
        self.arguments.append((name, value.type, label))
        self.weights[label] = value.array
        self._weight_names[id(value.array)] = value.array, name
        return name

    def empty(self, shape, element):
        extents = ", ".join(self.index(n) for n in shape if isinstance(n, Extent))
        # Not shared: each is memory of its own.
        return self.new(f"tensor.empty({extents}) : {tensor_type(shape, element)}", "empty")

    def fill(self, number, shape, element):
        empty, type = self.empty(shape, element), tensor_type(shape, element)
        scalar = self.scalar(number, element)
        return self.new(
            f"linalg.fill ins({scalar} : {element}) outs({empty} : {type}) -> {type}", "fill"
        )

    def generic(self, inputs, shape, elements, compute, *, stem="v"):
        """Values of a shape that are computed element by element.

        Args:
            inputs: For each operand the value and the dimensions of the result that its
                dimensions are; an affine expression of them, such as "d0 * 2 + d1", as text.
            elements: Element types of the results.
            compute: Called on a Body and the operands' scalars; returns the results'.
        """
        maps = [dims for _, dims in inputs] + [range(len(shape))] * len(elements)
        results = self._generic(
            inputs, maps, ["parallel"] * len(shape),
            [self.empty(shape, element) for element in elements],
            [tensor_type(shape, element) for element in elements], elements,
            lambda body, scalars, _: compute(body, *scalars), stem,
        )  # fmt: skip
        return [Value(shape, element, name) for element, name in zip(elements, results)]

    def update(self, inputs, outs, compute, *, stem="v"):
        """Values of one shape that are computed element by element and written over
        others, the outs.

        Args:
            inputs: As of `generic`.
            compute: Called on a Body, the operands' scalars and the outs' old ones;
                returns their new ones.
        """
        shape = outs[0].shape
        names = self._generic(
            inputs, [*(dims for _, dims in inputs), *[range(len(shape))] * len(outs)],
            ["parallel"] * len(shape), [self.use(v) for v in outs], [v.type for v in outs],
            [v.element for v in outs], lambda body, scalars, old: compute(body, *scalars, *old), stem,
        )  # fmt: skip
        return [Value(shape, v.element, name) for v, name in zip(outs, names)]

    def reduction(self, value, axes, initial, element, compute, *, stem="v"):
        """The value reduced over axes, which are dropped.

        Args:
            initial: The number that the sums, or what they are, begin with.
            element: The result's element type.
            compute: Called on a Body, a scalar of the value and the result so far.
        """
        kept = [d for d in range(value.rank) if d not in axes]
        shape = [value.shape[d] for d in kept]
        kinds = ["reduction" if d in axes else "parallel" for d in range(value.rank)]
        (name,) = self._generic(
            [(value, range(value.rank))], [range(value.rank), kept], kinds,
            [self.fill(initial, shape, element)], [tensor_type(shape, element)], [element],
            lambda body, scalars, old: [compute(body, scalars[0], old[0])], stem,
        )  # fmt: skip
        return Value(shape, element, name)

    def contraction(self, inputs, result, kinds, shape, element, *, stem="v"):
        """Sums of products of two values, by the loops that are their dimensions and
        the result's; sums are of `element`, and of integers wrap."""

        def compute(body, scalars, old):
            x, y = (body.convert(s, v.element, element) for s, (v, _) in zip(scalars, inputs))
            suffix = "f" if is_float(element) else "i"
            product = body.binary(f"arith.mul{suffix}", x, y, element)
            return [body.binary(f"arith.add{suffix}", old[0], product, element)]

        (name,) = self._generic(
            inputs, [*(dims for _, dims in inputs), result], kinds,
            [self.fill(0, shape, element)], [tensor_type(shape, element)], [element], compute, stem,
        )  # fmt: skip
        return Value(shape, element, name)

    def _generic(self, inputs, maps, kinds, outs, types, elements, compute, stem):
        loops = ", ".join(f"d{d}" for d in range(len(kinds)))
        affine = ", ".join(
            f"affine_map<({loops}) -> ({', '.join(map(_affine, dims))})>" for dims in maps
        )
        iterators = ", ".join(f'"{kind}"' for kind in kinds)
        names = [self.use(value) for value, _ in inputs]
        body = Body(self)
        scalars = [self.fresh("in") for _ in inputs]
        old = [self.fresh("out") for _ in outs]
        yielded = compute(body, scalars, old)
        parameters = [f"{s}: {v.element}" for s, (v, _) in zip(scalars, inputs)]
        parameters += [f"{s}: {element}" for s, element in zip(old, elements)]
        ins = ""
        if inputs:
            ins = f"ins({', '.join(names)} : {', '.join(v.type for v, _ in inputs)}) "
        returned = types[0] if len(types) == 1 else f"({', '.join(types)})"
        lines = [
            f"linalg.generic {{indexing_maps = [{affine}], iterator_types = [{iterators}]}}",
            f"    {ins}outs({', '.join(outs)} : {', '.join(types)}) {{",
            f"  ^bb0({', '.join(parameters)}):",
            *(f"    {line}" for line in body.lines),
            f"    linalg.yield {', '.join(yielded)} : {', '.join(elements)}",
            f"  }} -> {returned}",
        ]
        result = self.new("\n  ".join(lines), stem, len(types))
        return [result] if len(types) == 1 else [f"{result}#{i}" for i in range(len(types))]

    # The text.

    def text(self, name, results: Sequence[tuple[Value, str]]):
        """The function, with its results and their labels."""
        names = [self.use(value) for value, _ in results]
        used = set(_NAMES.findall(" ".join(names)))
        kept = []
        for line in reversed(self.lines):
            if not line.result or line.result in used:
                used.update(_NAMES.findall(line.text))
                kept.append(line)
        # Weights that only what is gone has read.
        gone = {
            label for arg, _, label in self.arguments if label in self.weights and arg not in used
        }
        self.weights = {label: array for label, array in self.weights.items() if label not in gone}
        parameters = ",\n    ".join(
            f"{arg}: {type} {{varlen.name = {quote(label)}}}"
            for arg, type, label in self.arguments if label not in gone
        )  # fmt: skip
        types = [value.type for value, _ in results]
        returned = ", ".join(
            f"{type} {{varlen.name = {quote(label)}}}" for type, (_, label) in zip(types, results)
        )
        symbol = name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$.]*", name) else quote(name)
        body = "".join(f"  {_assign(line)}{line.text}\n" for line in reversed(kept))
        return (
            f"func.func @{symbol}(\n    {parameters})\n    -> ({returned}) {{\n{body}"
            f"  return {', '.join(names)} : {', '.join(types)}\n}}\n"
        )
