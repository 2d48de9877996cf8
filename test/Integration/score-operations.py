# RUN: %around-code %python %s
# RUN: %if long %{ %python %s --whole %}

"""Every operation that a score region may have, for every type that it takes: on a CPU, by
the oracle and in kernels, against numbers that numpy has, with the derivatives of those that
have a rule.

A region computes all operations of a group. Row i of a sequence sees its own key alone and
has the number of operation i for a score, so that number is lse, and the derivatives by the
captures are those of the operation. Each head has operands of its own.

With --whole every type on every target, and derivatives; without it each target with one type
of floats or of integers at least.
"""

import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import varlen
from varlen import scores

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Fuzz/Inputs"))
import score_bodies

HEADS = 8
ORACLE = {"threads": 1, "pipeline": "builtin.module(varlen-decompose-attn,varlen-to-cpu)"}
TARGETS = {
    "cpu": {"threads": 1}, "oracle": ORACLE, "sm_80": {"device": "sim:sm_80"},
    "sm_90a": {"device": "sim:sm_90a"},
}  # fmt: skip
# Bits of a significand, with the first.
FLOATS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
INTEGERS = (1, 7, 8, 16, 32, 64, "index")
PART = {
    "f64": ("cpu", "sm_80"), "bf16": ("sm_80",), 7: ("cpu", "oracle", "sm_80"),
    "index": ("cpu", "sm_90a"),
}  # fmt: skip
# What the verifier refuses, and an example of each.
REFUSED = {
    "math.ipowi": "math.ipowi %query, %key : i32",
    "math.clampf": "math.clampf %x to [%x, %x] : f32",
    "arith.addui_extended": "arith.addui_extended %query, %key : i32, i1",
    "arith.mulsi_extended": "arith.mulsi_extended %query, %key : i32",
    "arith.mului_extended": "arith.mului_extended %query, %key : i32",
    "arith.scaling_extf": "arith.scaling_extf %h, %x : f16, f32 to f32",
    "arith.scaling_truncf": "arith.scaling_truncf %x, %x : f32, f32 to f16",
}
covered = {"arith.constant"}
rng = np.random.default_rng(0)


def draw(low, high):
    """Numbers that every type of floats has."""
    step = 2.0 ** (math.ceil(math.log2(max(abs(low), abs(high)))) - 6)
    return np.clip(np.round(rng.uniform(low, high, HEADS) / step) * step, low, high).astype("f4")


def power(x, n):
    return np.array([float(a) ** int(b) for a, b in zip(x, n)])


vector = np.vectorize
ANY, POSITIVE = (-4, 4), (0.125, 8)
# Functions of one number: its definition and from where operands are.
UNARY = {
    "arith.negf": (np.negative, ANY),
    "math.absf": (np.abs, ANY),
    "math.acos": (np.arccos, (-0.9, 0.9)),
    "math.acosh": (np.arccosh, (1.25, 8)),
    "math.asin": (np.arcsin, (-0.9, 0.9)),
    "math.asinh": (np.arcsinh, ANY),
    "math.atan": (np.arctan, ANY),
    "math.atanh": (np.arctanh, (-0.9, 0.9)),
    "math.cbrt": (np.cbrt, POSITIVE),
    "math.ceil": (np.ceil, ANY),
    "math.cos": (np.cos, ANY),
    "math.cosh": (np.cosh, ANY),
    "math.erf": (vector(math.erf), ANY),
    "math.erfc": (vector(math.erfc), ANY),
    "math.exp": (np.exp, ANY),
    "math.exp2": (np.exp2, ANY),
    "math.expm1": (np.expm1, ANY),
    "math.floor": (np.floor, ANY),
    "math.log": (np.log, POSITIVE),
    "math.log10": (np.log10, POSITIVE),
    "math.log1p": (np.log1p, POSITIVE),
    "math.log2": (np.log2, POSITIVE),
    "math.round": (lambda x: np.copysign(np.floor(abs(x) + 0.5), x), ANY),
    "math.roundeven": (np.rint, ANY),
    "math.rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE),
    "math.sin": (np.sin, ANY),
    "math.sinh": (np.sinh, ANY),
    "math.sqrt": (np.sqrt, POSITIVE),
    "math.tan": (np.tan, (-1.25, 1.25)),
    "math.tanh": (np.tanh, ANY),
    "math.trunc": (np.trunc, ANY),
}
BINARY = {
    "arith.addf": (np.add, ANY, ANY),
    "arith.subf": (np.subtract, ANY, ANY),
    "arith.mulf": (np.multiply, ANY, ANY),
    "arith.divf": (np.divide, ANY, POSITIVE),
    "arith.remf": (np.fmod, ANY, POSITIVE),
    "arith.maximumf": (np.maximum, ANY, ANY),
    "arith.minimumf": (np.minimum, ANY, ANY),
    "arith.maxnumf": (np.fmax, ANY, ANY),
    "arith.minnumf": (np.fmin, ANY, ANY),
    "math.atan2": (np.arctan2, ANY, ANY),
    "math.copysign": (np.copysign, ANY, ANY),
    "math.powf": (np.power, POSITIVE, (-2, 2)),
}
CLASSES = {
    "math.isnan": np.isnan, "math.isinf": np.isinf, "math.isfinite": np.isfinite,
    "math.isnormal": lambda x: np.isfinite(x) & (x != 0),
}  # fmt: skip
ORDERED = {
    "eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
    "ne": np.not_equal,
}  # fmt: skip


class Group:
    """Operations that one region computes."""

    def __init__(self, name):
        self.name, self.rows = name, []

    def add(self, text, value, x, y=None, *, error=1e-6, has_rule=True):
        """A row of what `text` computes, lines that end with the number %r of f32."""
        y = np.zeros(HEADS, "f4") if y is None else y
        covered.update(re.findall(r"(?:arith|math)\.\w+", text))
        number = len(self.rows)
        text = re.sub(
            r"%(\w+)", lambda m: f"%{m[1]}" if m[1] in "xy" else f"%{m[1]}_{number}", text
        )
        with np.errstate(all="ignore"):
            golden = np.asarray(value(x.astype("f8"), y.astype("f8")), "f8")
        self.rows.append((text, golden, x, y, error, has_rule))

    @staticmethod
    def write(rows, guarded):
        """The body. Guarded, an operation has the operands of its first head in other rows
        than its own, where a derivative that is not finite would make NaN of a 0."""
        lines = ["%zero = arith.constant 0.0 : f32"]
        last = "%zero"
        for number, (text, _, x, y, *_) in enumerate(rows):
            lines += [
                f"%at{number} = arith.constant {number} : i32",
                f"%is{number} = arith.cmpi eq, %query, %at{number} : i32",
            ]
            if guarded:
                for name, numbers in (("x", x), ("y", y)):
                    lines += [
                        f"%safe_{name}{number} = arith.constant {numbers[0]:e} : f32",
                        f"%own_{name}{number} = arith.select %is{number}, %{name}, "
                        f"%safe_{name}{number} : f32",
                    ]
                text = re.sub(r"%([xy])\b", rf"%own_\g<1>{number}", text)
            result = re.findall(r"(%r_\d+) =", text)[-1]
            lines += [text, f"%s{number} = arith.select %is{number}, {result}, {last} : f32"]
            last = f"%s{number}"
        lines += [
            f"%new = arith.addf %score, {last} : f32",
            "%visible = arith.cmpi eq, %query, %key : i32",
        ]
        return "\n".join(lines)

    def score(self, rows, guarded=False):
        text = self.write(rows, guarded)
        captures = {"x": "query", "y": "query"}
        return scores.Score(
            self.name, lambda type: text, lambda *_: 0, None, captures, lambda *_: 0
        )


def float_operands(type):
    """Lines that make operands %a and %b of a type."""
    if type == "f32":
        zero = "%zero = arith.constant -0.0 : f32\n"
        return zero + "%a = arith.addf %x, %zero : f32\n%b = arith.addf %y, %zero : f32"
    name = "extf" if type == "f64" else "truncf"
    return "\n".join(
        f"%{to} = arith.{name} %{of} : f32 to {type}" for to, of in (("a", "x"), ("b", "y"))
    )


def from_float(value, type):
    """A line for %r, of a float."""
    if type == "f32":
        return f"%one = arith.constant 1.0 : f32\n%r = arith.mulf {value}, %one : f32"
    return f"%r = arith.{'truncf' if type == 'f64' else 'extf'} {value} : {type} to f32"


def float_group(type):
    group, error = Group(type), max(2.0 ** (1 - FLOATS[type]), 1e-6) * 4
    head = float_operands(type)

    def add(operation, value, x, y=None, result="%v", **options):
        text = f"{head}\n{operation}\n{from_float(result, type)}"
        group.add(text, value, x, y, error=error, **options)

    def test(operation, value, x, y=None):
        text = f"{head}\n{operation}\n%r = arith.uitofp %v : i1 to f32"
        group.add(text, value, x, y)

    for name, (value, bounds) in UNARY.items():
        add(f"%v = {name} %a : {type}", lambda x, y, f=value: f(x), draw(*bounds))
    for name, (value, *bounds) in BINARY.items():
        x, y = (draw(*of) for of in bounds)
        add(f"%v = {name} %a, %b : {type}", value, x, y)
    add(f"%v = math.fma %a, %b, %a : {type}", lambda x, y: x * y + x, draw(*ANY), draw(*ANY))
    for i, f in enumerate((np.sin, np.cos)):
        both = f"%v0, %v1 = math.sincos %a : {type}"
        add(both, lambda x, y, f=f: f(x), draw(*ANY), result=f"%v{i}")
    signs = np.array([-1, 1, -1, 1, -2, 0.5, -0.5, 1.5], "f4")
    for width in (7, 8, 16, 32, 64):
        n = np.array([3, -2, 0, 5, -3, 4, 2, -1], "f4")
        integer = f"%n = arith.fptosi %y : f32 to i{width}\n"
        add(f"{integer}%v = math.fpowi %a, %n : {type}, i{width}", power, signs, n)
        if width >= 32:  # Odd, which no f32 is.
            far = (
                integer
                + f"%c = arith.constant 33554432 : i{width}\n%m = arith.addi %n, %c : i{width}\n"
            )
            ones, odd = np.array([-1, 1] * 4, "f4"), np.arange(HEADS).astype("f4")
            add(f"{far}%v = math.fpowi %a, %m : {type}, i{width}", power, ones, odd, has_rule=False)
    for name, value in CLASSES.items():
        x = np.array([0, 1, -1.5, np.inf, -np.inf, np.nan, 4, -0.0], "f4")
        test(f"%v = {name} %a : {type}", lambda x, y, f=value: f(x), x)
    x, y = draw(-2, 2), draw(-2, 2)
    x[:2], x[2], y[3] = y[:2], np.nan, np.nan
    for name, value in ORDERED.items():
        for prefix in "ou":

            def compare(x, y, f=value, unordered=prefix == "u"):
                return np.where(np.isnan(x) | np.isnan(y), unordered, f(x, y))

            test(f"%v = arith.cmpf {prefix}{name}, %a, %b : {type}", compare, x, y)
    test(f"%v = arith.cmpf ord, %a, %b : {type}", lambda x, y: ~(np.isnan(x) | np.isnan(y)), x, y)
    test(f"%v = arith.cmpf uno, %a, %b : {type}", lambda x, y: np.isnan(x) | np.isnan(y), x, y)
    choose = f"%c = arith.cmpf olt, %a, %b : {type}\n%v = arith.select %c, %b, %a : {type}"
    add(choose, np.maximum, draw(*ANY), draw(*ANY))
    # Among floats, and of the bits of one.
    for other, bits in FLOATS.items():
        if bits != FLOATS[type]:
            wider = {"f16": 1, "bf16": 1, "f32": 2, "f64": 3}
            if wider[other] == wider[type]:
                continue
            there, back = ("extf", "truncf") if wider[other] > wider[type] else ("truncf", "extf")
            through = f"%t = arith.{there} %a : {type} to {other}\n"
            through += f"%v = arith.{back} %t : {other} to {type}"
            add(through, lambda x, y: x, draw(*ANY))
    width = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}[type]
    bits = f"%i = arith.bitcast %a : {type} to i{width}\n%v = arith.bitcast %i : i{width} to {type}"
    add(bits, lambda x, y: x, draw(*ANY), has_rule=False)
    # And integers.
    for width in INTEGERS[:-1]:
        low = -(1 << (width - 1))
        x = np.array([0, 1, -1, 100, -100, 2.5, -3.75, 12], "f4")
        for sign in "su":

            def convert(x, y, width=width, signed=sign == "s"):
                integer = score_bodies.to_integer(x, width, signed)
                if not signed:
                    return (
                        score_bodies.unsigned(integer, width).astype("f8")
                        if width < 64
                        else integer
                    )
                return integer

            there = f"%i = arith.fpto{sign}i %a : {type} to i{width}\n"
            add(
                f"{there}%v = arith.{sign}itofp %i : i{width} to {type}", convert, x, has_rule=False
            )
    return group


def draw_integers(width):
    """Numbers of f32 that are integers, and what they are in a width."""
    least = -(2.0 ** (width - 1))
    edges = [0, 1, -1, least, -least / 2, 3, width, -7]
    wide = [
        float(rng.integers(-(1 << 23), 1 << 23)) * 2.0 ** rng.integers(0, max(1, width - 24))
        for _ in range(8)
    ]
    numbers = [edges[rng.integers(8)] if rng.random() < 0.6 else wide[i] for i in range(8)]
    return np.array(numbers, "f4")


def integer_group(type):
    width = 64 if type == "index" else type
    name = type if type == "index" else f"i{type}"
    group = Group(name)

    def operand(to, of):
        lines = f"%{to}w = arith.fptosi %{of} : f32 to i64\n"
        if name == "i64":
            return (
                lines + f"%{to}0 = arith.constant 0 : i64\n%{to} = arith.ori %{to}w, %{to}0 : i64\n"
            )
        change = "index_cast" if name == "index" else "trunci"
        return lines + f"%{to} = arith.{change} %{to}w : i64 to {name}\n"

    def read(x):
        return score_bodies.wrap(score_bodies.to_integer(x, 64, True), width)

    def to_float(value, of):
        """Lines for %r of f32 that has to do with all bits."""
        lines = ""
        if of == "index":
            lines = f"%e = arith.index_castui {value} : index to i64\n"
        elif of != "i64":
            lines = f"%e = arith.extui {value} : {of} to i64\n"
        else:
            lines = f"%e0 = arith.constant 0 : i64\n%e = arith.ori {value}, %e0 : i64\n"
        last = "%e"
        for places in (48, 24, 12):
            lines += f"%c{places} = arith.constant {places} : i64\n"
            lines += f"%h{places} = arith.shrui {last}, %c{places} : i64\n"
            lines += f"%m{places} = arith.xori {last}, %h{places} : i64\n"
            last = f"%m{places}"
        lines += f"%low = arith.constant 4095 : i64\n%l = arith.andi {last}, %low : i64\n"
        return lines + "%r = arith.uitofp %l : i64 to f32"

    def fold(integer, bits=width):
        integer = (
            score_bodies.unsigned(np.asarray(integer), bits)
            if bits < 64
            else np.asarray(integer).astype("i8").astype("u8")
        )
        for places in (48, 24, 12):
            integer = integer ^ (integer >> np.uint64(places))
        return (integer & np.uint64(4095)).astype("f8")

    def add(text, value, of=name, bits=width):
        x, y = draw_integers(width), draw_integers(width)
        text = operand("a", "x") + operand("b", "y") + text + "\n" + to_float("%v", of)
        group.add(text, lambda x, y: fold(value(read(x), read(y)), bits), x, y)

    for op, value in score_bodies.BINARY.items():
        add(f"%v = {op} %a, %b : {name}", lambda x, y, f=value: f(x, y, width))
    for op, value in score_bodies.UNARY.items():
        add(f"%v = {op} %a : {name}", lambda x, y, f=value: f(x, width))
    for predicate, value in score_bodies.COMPARISONS.items():
        compare = lambda x, y, f=value: f(x, y, width).astype("i8")
        add(f"%v = arith.cmpi {predicate}, %a, %b : {name}", compare, "i1", 1)
    choose = f"%c = arith.cmpi slt, %a, %b : {name}\n%v = arith.select %c, %b, %a : {name}"
    add(choose, np.maximum)
    if name == "index":
        for other in INTEGERS[:-1]:
            for cast in ("index_cast", "index_castui"):
                add(
                    f"%v = arith.{cast} %a : index to i{other}",
                    lambda x, y, w=other: score_bodies.wrap(x, w),
                    f"i{other}",
                    other,
                )

                def widen(x, y, w=other, signed=cast == "index_cast"):
                    low = score_bodies.wrap(x, w)
                    return low if signed or w == 64 else score_bodies.unsigned(low, w).astype("i8")

                # Not of a cast from index: upstream's canonicalizer takes both for none.
                low = f"%t = arith.trunci %aw : i64 to i{other}"
                if other == 64:
                    low = "%t0 = arith.constant 0 : i64\n%t = arith.ori %aw, %t0 : i64"
                add(f"{low}\n%v = arith.{cast} %t : i{other} to index", widen)
        return group
    for other in INTEGERS[:-1]:
        if other > width:
            add(f"%v = arith.extsi %a : {name} to i{other}", lambda x, y: x, f"i{other}", other)
            add(
                f"%v = arith.extui %a : {name} to i{other}",
                lambda x, y: score_bodies.unsigned(x, width).astype("i8"),
                f"i{other}",
                other,
            )
        if other < width:
            add(
                f"%v = arith.trunci %a : {name} to i{other}",
                lambda x, y, w=other: score_bodies.wrap(x, w),
                f"i{other}",
                other,
            )
    return group


GPU = "<warps = 1, block_m = 16, kv_block = 16, stages = 2, ctas = 1>"
SCHEDULES = {
    "attn": f"#varlen.gpu_schedule{GPU}",
    "attn_grad": f"#varlen.gpu_grad_schedule<dq = {GPU}, dk = {GPU}>",
}


def run(name, score, captures, target, **more):
    rows = captures[0].shape[1]
    cu = np.array([0, rows], "i4")
    zero = np.zeros((rows, HEADS, 16), "f4")
    inputs = {"q": zero, "k": zero[:, :1], "v": zero[:, :1], "cu_seqlens_q": cu, "cu_seqlens_k": cu}
    inputs |= {"x": captures[0], "y": captures[1], **more}
    options = {"dlse": True} if name == "attn_grad" else {}
    text = getattr(varlen.text, name)(
        dtype="f32", heads=HEADS, kv_heads=1, head_dim=16, score=score, **options
    )
    if target.startswith("sm_"):
        text = text.replace("{mask", f"{{varlen.schedule = {SCHEDULES[name]}, mask")
    return varlen.run(text, inputs, **TARGETS[target])


def check(group, targets):
    """Prints what is wrong; whether anything is."""
    score = group.score(group.rows)
    captures = [np.stack([row[i] for row in group.rows], axis=1).astype("f4") for i in (2, 3)]
    golden = np.stack([row[1] for row in group.rows], axis=1)
    limits = np.array([row[4] for row in group.rows]) * np.maximum(1, abs(golden))
    failed = False
    for target in targets:
        got = run("attn", score, captures, target)["lse"].astype("f8")
        wrong = ~(abs(got - golden) <= limits)
        for row in np.flatnonzero(wrong.any(axis=0)):
            at = wrong[:, row].argmax(), row
            x, y = (capture[at] for capture in captures)
            print(
                f"FAIL {group.name} on {target}, of {x} and {y}: wanted {golden[at]}, got {got[at]}"
            )
            print(group.rows[row][0])
            failed = True
    return failed


def check_gradients(group, targets):
    """The derivatives of operations that have a rule, of each target beside the oracle's: that
    a rule is right is shown by its own test."""
    rows = [row for row in group.rows if row[5]]
    score = group.score(rows, guarded=True)
    captures = [np.stack([row[i] for row in rows], axis=1).astype("f4") for i in (2, 3)]
    out = np.zeros((len(rows), HEADS, 16), "f4")
    # Rounding of the last operation, and of one before it, of a narrow type.
    limit = max(3e-5, 2.0 ** (1 - FLOATS[group.name]))

    def differentiate(target):
        # Of what the target itself has rounded: else the probability is not 1.
        lse = run("attn", score, captures, target)["lse"]
        given = {"dout": out, "out": out, "lse": lse, "dlse": np.ones_like(lse)}
        return run("attn_grad", score, captures, target, **given)

    wanted, failed = differentiate("oracle"), False
    for target in targets:
        got = differentiate(target)
        for name in ("dx", "dy"):
            golden, found = (x[name].astype("f8") for x in (wanted, got))
            wrong = ~(abs(found - golden) <= limit * np.maximum(1, abs(golden)))
            for row in np.flatnonzero(wrong.any(axis=0)):
                at = wrong[:, row].argmax(), row
                print(
                    f"FAIL {name} of {group.name} on {target}: wanted {golden[at]}, got {found[at]}"
                )
                print(rows[row][0])
                failed = True
    return failed


def check_refused():
    """That the verifier names each operation that a region may not have."""
    failed = False
    for name, text in REFUSED.items():
        body = "%h = arith.truncf %x : f32 to f16\n" + text + "\n%new = arith.negf %score : f32"
        body = re.sub(
            r"^(?=arith|math)", "%r:2 = " if "extended" in name else "%r = ", body, flags=re.M
        )
        score = scores.Score(
            "refused", lambda type, body=body: body, lambda *_: 0, None, {"x": "head"}
        )
        shape = {"heads": 2, "head_dim": 16, "score": score}
        try:
            varlen.call("varlen-opt", "-", text=varlen.text.attn(**shape))
            failed = True
            print(f"FAIL {name} is accepted")
        except varlen.Error as error:
            if f"'{name}' op is no operation of score regions: expected" not in str(error):
                failed = True
                print(f"FAIL {name}: {error}")
    return failed


def check_complete():
    """That upstream has no operation of arith and math that is not here."""
    folder = pathlib.Path(shutil.which("mlir-tblgen")).resolve().parents[1] / "include"
    for dialect in ("Arith", "Math"):
        file = folder / f"mlir/Dialect/{dialect}/IR/{dialect}Ops.td"
        command = ["mlir-tblgen", "--gen-op-doc", f"-I{folder}", file]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        operations = set(re.findall(r"^### `((?:arith|math)\.\w+)`", text, flags=re.M))
        assert len(operations) > 40, text
        if missing := operations - covered - REFUSED.keys():
            print(f"FAIL not tested: {sorted(missing)}")
            return True
    return False


if __name__ == "__main__":
    whole = "--whole" in sys.argv
    part = dict.fromkeys((*FLOATS, *INTEGERS), tuple(TARGETS)) if whole else PART
    groups = {type: (float_group if type in FLOATS else integer_group)(type) for type in part}
    failures = [check(group, part[type]) for type, group in groups.items()]
    for type in FLOATS if whole else ():
        failures.append(check_gradients(groups[type], ("cpu", "sm_80", "sm_90a")))
    failures += [check_refused(), check_complete()]
    sys.exit(any(failures))
