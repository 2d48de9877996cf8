#!/usr/bin/env python3
"""Blocks that intervals take for hidden have no visible pair.

Score regions of random operations on positions and captures, NaN and infinity among
their numbers, say which keys are visible. A block that is skipped though some pair of
it is visible changes results; they are compared with attention in f64 that knows of no
blocks. Numbers are small, so that conditions change within a sequence.

    hidden-blocks.py --build build --regions 300 [--seed 1]
"""
# RUN: %around-code %python %s --build %varlen-build --regions 12 | FileCheck %s
# RUN: %python %s --build %varlen-build --seed 13 --regions 3 --device=sim:sm_80 | FileCheck %s
# RUN: %if long %{ %python %s --build %varlen-build --regions 300 | FileCheck %s %}
# RUN: %if long %{ %python %s --build %varlen-build --regions 30 --device=sim:sm_80 | FileCheck %s %}
# CHECK: {{[1-9][0-9]*}} regions, 0 failed

import argparse
import os
import pathlib
import random
import sys

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import varlen
from varlen import scores

F32 = numpy.float32
HEADS, KV_HEADS, HEAD_DIM = 2, 1, 64
CAPTURES = {"a": "head", "b": "query", "c": "query"}


def truncate(x, y):
    return numpy.sign(x) * (numpy.abs(x) // y)


class Region:
    """Random operations: the text, and what each of them computes of arrays."""

    INTEGERS = {
        "addi": numpy.add, "subi": numpy.subtract, "minsi": numpy.minimum,
        "maxsi": numpy.maximum,
    }  # fmt: skip
    BY_CONSTANT = {
        "muli": numpy.multiply, "divsi": truncate, "floordivsi": numpy.floor_divide,
        "ceildivsi": lambda x, y: -(-x // y), "remsi": numpy.fmod,
        "shrsi": lambda x, y: x >> y,
    }  # fmt: skip
    # Vectorised maxnumf and minimumf are for one operand that may be NaN.
    FLOATS = {
        "addf": numpy.add, "subf": numpy.subtract, "mulf": numpy.multiply,
        "maximumf": numpy.maximum, "minnumf": numpy.fmin,
    }  # fmt: skip
    CLAMP = {"maxnumf": (numpy.fmax, -1000), "minnumf": (numpy.fmin, 1000)}
    SIGNED = {
        "slt": numpy.less, "sle": numpy.less_equal, "sgt": numpy.greater,
        "sge": numpy.greater_equal, "eq": numpy.equal, "ne": numpy.not_equal,
    }  # fmt: skip

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.steps = [], []
        visible = self.condition(4)
        self.lines.append(f"%visible = arith.ori {visible}, {visible} : i1")
        self.result = visible

    def add(self, text, type, compute):
        name = f"%v{len(self.steps)}"
        self.lines.append(f"{name} = {text} : {type}")
        self.steps.append((name, compute))
        return name

    def binary(self, op, type, function, lhs, rhs):
        return self.add(
            f"arith.{op} {lhs}, {rhs}", type, lambda at: function(at[lhs], at[rhs])
        )

    def constant(self, value, type):
        text = f"{value}" if type == "i32" else f"{float(value)}"
        number = numpy.int32(value) if type == "i32" else F32(value)
        return self.add(f"arith.constant {text}", type, lambda at: number)

    def select(self, make, type, depth):
        condition, lhs, rhs = self.condition(depth), make(depth), make(depth)
        return self.add(
            f"arith.select {condition}, {lhs}, {rhs}", type,
            lambda at: numpy.where(at[condition], at[lhs], at[rhs]),
        )  # fmt: skip

    def integer(self, depth):
        choice = self.random.randrange(12)
        if depth == 0 or choice < 3:
            leaf = self.random.randrange(5)
            if leaf == 4:
                return self.constant(self.random.randrange(-300, 300), "i32")
            return ("%query", "%key")[leaf % 2]
        if choice < 6:
            op, function = self.random.choice(list(self.INTEGERS.items()))
            lhs, rhs = self.integer(depth - 1), self.integer(depth - 1)
            return self.binary(op, "i32", function, lhs, rhs)
        if choice < 9:
            op, function = self.random.choice(list(self.BY_CONSTANT.items()))
            most = {"muli": 4, "shrsi": 6}.get(op, 400)
            least = -4 if op == "muli" else 1
            number = self.constant(self.random.randint(least, most), "i32")
            return self.binary(op, "i32", function, self.integer(depth - 1), number)
        if choice == 9:
            x = self.integer(depth - 1)
            return self.add(f"math.absi {x}", "i32", lambda at: numpy.abs(at[x]))
        if choice == 10:
            return self.select(self.integer, "i32", depth - 1)
        # What does not fit an integer is poison.
        x = self.real(depth - 1)
        for op, (function, bound) in self.CLAMP.items():
            x = self.binary(op, "f32", function, x, self.constant(bound, "f32"))
        return self.add(
            f"arith.fptosi {x}", "f32 to i32", lambda at: numpy.trunc(at[x]).astype(numpy.int32)
        )

    def real(self, depth):
        choice = self.random.randrange(10)
        if depth == 0 or choice < 3:
            leaf = self.random.randrange(5)
            if leaf == 4:
                return self.constant(self.random.randrange(-600, 600) / 2, "f32")
            return f"%{'abcb'[leaf]}"
        if choice < 5:
            x = self.integer(depth - 1)
            return self.add(
                f"arith.sitofp {x}", "i32 to f32", lambda at: numpy.asarray(at[x]).astype(F32)
            )
        if choice < 8:
            op, function = self.random.choice(list(self.FLOATS.items()))
            rhs = self.real(depth - 1)
            if op == "mulf" and self.random.random() < 0.7:
                rhs = self.constant(self.random.randrange(-8, 8) / 4, "f32")
            return self.binary(op, "f32", function, self.real(depth - 1), rhs)
        if choice == 8:
            x = self.real(depth - 1)
            op, function = self.random.choice([
                ("arith.negf", numpy.negative), ("math.absf", numpy.abs),
                ("math.floor", numpy.floor), ("math.ceil", numpy.ceil),
            ])  # fmt: skip
            return self.add(f"{op} {x}", "f32", lambda at: function(at[x]))
        return self.select(self.real, "f32", depth - 1)

    def condition(self, depth):
        choice = self.random.randrange(8)
        if depth <= 1 or choice < 4:
            if self.random.random() < 0.5:
                predicate, function = self.random.choice(list(self.SIGNED.items()))
                lhs, rhs = self.integer(max(depth, 1)), self.integer(max(depth - 1, 0))
                return self.binary(f"cmpi {predicate},", "i32", function, lhs, rhs)
            return self.compare_reals(depth)
        if choice == 7:
            return self.select(self.condition, "i1", depth - 1)
        op, function = self.random.choice([
            ("andi", numpy.logical_and), ("ori", numpy.logical_or), ("xori", numpy.logical_xor),
        ])  # fmt: skip
        rhs = self.condition(depth - 1)
        if op == "xori":
            rhs = self.add("arith.constant true", "i1", lambda at: numpy.bool_(True))
            self.lines[-1] = self.lines[-1].removesuffix(" : i1")
        return self.binary(op, "i1", function, self.condition(depth - 1), rhs)

    def compare_reals(self, depth):
        lhs, rhs = self.real(max(depth, 1)), self.real(max(depth - 1, 0))
        name, function = self.random.choice(
            [("lt", numpy.less), ("le", numpy.less_equal), ("gt", numpy.greater),
             ("ge", numpy.greater_equal), ("eq", numpy.equal), ("ne", numpy.not_equal)]
        )  # fmt: skip
        isordered = self.random.random() < 0.6

        def compute(at):
            unordered = numpy.isnan(at[lhs]) | numpy.isnan(at[rhs])
            return numpy.where(unordered, not isordered, function(at[lhs], at[rhs]))

        return self.add(
            f"arith.cmpf {'o' if isordered else 'u'}{name}, {lhs}, {rhs}", "f32", compute
        )

    def visible(self, query, key, *captures):
        shape = numpy.broadcast_shapes(query.shape, key.shape)
        at = {"%query": query.astype(numpy.int32), "%key": key.astype(numpy.int32)}
        at |= {f"%{name}": values for name, values in zip(CAPTURES, captures)}
        with numpy.errstate(all="ignore"):
            for name, compute in self.steps:
                at[name] = compute(at)
        return numpy.broadcast_to(at[self.result], shape)

    def score(self):
        return scores.Score(
            "random", lambda type: "\n".join(self.lines), None, None, dict(CAPTURES), self.visible
        )


def make_captures(rng, rows):
    """Numbers that change now and then, as those of documents; few are none."""
    of_query = rng.uniform(-100, 700, (2, HEADS, rows // 40 + 2)).round(1)
    of_query[rng.random(of_query.shape) < 0.05] = numpy.nan
    of_query[rng.random(of_query.shape) < 0.05] = numpy.inf
    of_query[rng.random(of_query.shape) < 0.03] = -1e30
    b, c = numpy.repeat(of_query, 40, axis=2)[:, :, :rows].astype(F32)
    return {
        "a": rng.uniform(-2, 300, HEADS).astype(F32), "b": numpy.ascontiguousarray(b),
        "c": numpy.ascontiguousarray(c),
    }  # fmt: skip


def attention(q, k, v, dout, visible):
    """out, dq, dk, dv of one head, in f64, and lse."""
    scale = HEAD_DIM**-0.5
    s = numpy.where(visible, scale * (q @ k.T), -numpy.inf)
    most = s.max(axis=1, keepdims=True, initial=-numpy.inf)
    p = numpy.exp(s - numpy.where(numpy.isinf(most), 0, most))
    total = p.sum(axis=1, keepdims=True)
    p = p / numpy.where(total == 0, 1, total)
    out = p @ v
    ds = p * (dout @ v.T - (dout * out).sum(axis=1, keepdims=True))
    with numpy.errstate(divide="ignore"):
        lse = numpy.where(numpy.isinf(most), 0, most) + numpy.log(total)
    return out, scale * ds @ k, scale * ds.T @ q, p.T @ dout, lse[:, 0]


def check(number, lengths, device, rng):
    """The worst error of out and of gradients, by the size of what is expected."""
    region = Region(number)
    chip = device != "cpu"
    dtype = "bf16" if chip else "f32"
    cu = numpy.cumsum([0, *lengths]).astype(numpy.int32)
    rows = int(cu[-1])

    def draw(heads):
        return varlen.dtypes.narrow(rng.standard_normal((rows, heads, HEAD_DIM), F32), dtype)

    inputs = {"q": draw(HEADS), "k": draw(KV_HEADS), "v": draw(KV_HEADS), "dout": draw(HEADS)}
    wide = {name: varlen.dtypes.widen(x).astype(numpy.float64) for name, x in inputs.items()}
    captures = make_captures(rng, rows)
    expected = {name: numpy.zeros(wide[of].shape) for name, of in
                (("out", "q"), ("dq", "q"), ("dk", "k"), ("dv", "v"))}  # fmt: skip
    lse = numpy.zeros((HEADS, rows), F32)
    for begin, end in zip(cu, cu[1:]):
        at = slice(begin, end)
        position = numpy.arange(end - begin)
        for head in range(HEADS):
            numbers = [captures["a"][head], *(captures[x][head, at][:, None] for x in "bc")]
            visible = region.visible(position[:, None], position[None], *numbers)
            q, dout = (wide[x][at, head] for x in ("q", "dout"))
            k, v = (wide[x][at, head // (HEADS // KV_HEADS)] for x in "kv")
            out, dq, dk, dv, lse[head, at] = attention(q, k, v, dout, visible)
            expected["out"][at, head], expected["dq"][at, head] = out, dq
            expected["dk"][at, head * KV_HEADS // HEADS] += dk
            expected["dv"][at, head * KV_HEADS // HEADS] += dv
    options = {"dtype": dtype, "heads": HEADS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM,
               "score": region.score(), "same_cu": True}  # fmt: skip
    forward = {name: inputs[name] for name in "qkv"} | {"cu_seqlens_q": cu} | captures
    got = varlen.run(varlen.text.attn(**options), forward, device=device)
    backward = {**inputs, "out": varlen.dtypes.narrow(expected["out"].astype(F32), dtype)}
    backward |= {"lse": lse, "cu_seqlens_q": cu} | captures
    got |= varlen.run(varlen.text.attn_grad(**options), backward, device=device)
    return max(
        numpy.max(numpy.abs(varlen.dtypes.widen(got[name]) - values))
        / max(numpy.max(numpy.abs(values)), 1)
        for name, values in expected.items()
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--device", default="cpu", help="as varlen-run has it")
    parser.add_argument("--regions", default=10, type=int)
    parser.add_argument("--seed", default=0, type=int)
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    chip = arguments.device != "cpu"
    lengths = (200, 70) if chip else (600, 150, 9)
    tolerance = 0.05 if chip else 1e-4
    failed = 0
    for number in range(arguments.seed, arguments.seed + arguments.regions):
        rng = numpy.random.default_rng(number)
        error = check(number, lengths, arguments.device, rng)
        if not error < tolerance:
            failed += 1
            print(f"region {number}: error {error}")
            print("\n".join(Region(number).lines))
    print(f"{arguments.regions} regions, {failed} failed")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
