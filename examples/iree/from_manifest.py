#!/usr/bin/env python3
"""Writes a function for iree-compile that dispatches the kernels of a manifest.

    varlen-opt attention.mlir --emit=ptx --split-numbers --manifest=attention.json -o attention.ptx
    from_manifest.py attention.json attention.ptx --results=2 > attention-iree.mlir
    iree-compile attention-iree.mlir -o attention.vmfb

The last arguments of the function are its results (--results); IREE makes their memory,
and scratch. IREE's kernels take addresses and then numbers of 32 bits, which is what
--split-numbers makes them. It does not tell how many multiprocessors a device has, which
decides how many blocks there are: --multiprocessors, the default being an A100's.
"""

import argparse
import json
import sys

OPERATORS = {
    "add": "addi", "sub": "subi", "mul": "muli", "lshr": "shrui", "udiv": "divui",
    "sdiv": "divsi", "urem": "remui", "srem": "remsi", "smin": "minsi", "smax": "maxsi",
    "umin": "minui", "umax": "maxui", "and": "andi", "or": "ori", "xor": "xori",
}  # fmt: skip
COMPARISONS = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


class Function:
    """The host code of one function. Numbers are of type index, booleans 0 or 1."""

    def __init__(self, function, results, multiprocessors):
        self.function, self.lines, self.indent = function, [], 2
        self.names = {}
        self.fresh = self.loops = self.depth = 0
        count = len(function["arguments"])
        if results >= count:
            raise SystemExit(f"expected fewer than {count} results, got {results}")
        self.first_result = count - results
        self.kernels = {kernel["name"]: kernel for kernel in function["kernels"]}
        self.layouts = {}
        # By name: the tensor of memory that is written, its type and its extents.
        self.memory = {}
        self.multiprocessors = multiprocessors

    def add(self, line):
        self.lines.append("  " * self.indent + line)

    def new(self):
        self.fresh += 1
        return f"%t{self.fresh}"

    def constant(self, number, kind="index"):
        name = self.new()
        self.add(f"{name} = arith.constant {number} : {kind}")
        return name

    def read(self, operand):
        """A number of the manifest, of type index."""
        if isinstance(operand, int):
            return self.constant(operand)
        return self.names[operand]

    # What the function takes and makes.

    def begin(self):
        arguments = self.function["arguments"]
        types = [self.type_of(argument) for argument in arguments]
        inputs = ", ".join(
            f"%arg{i}: {types[i]}" for i in range(self.first_result)
        )
        results = ", ".join(types[self.first_result :])
        # The caller says how long results are.
        lengths = "".join(
            f", %arg{i}_size{d}: index"
            for i in range(self.first_result, len(arguments))
            for d, size in enumerate(arguments[i]["sizes"]) if size is None
        )  # fmt: skip
        self.lines.append(
            f"  func.func @{self.function['name']}({inputs}{lengths}) -> ({results}) {{"
        )
        for i, (argument, kind) in enumerate(zip(arguments, types)):
            extents = []
            for d, size in enumerate(argument["sizes"]):
                name = f"%arg{i}_size{d}"
                if size is not None:
                    self.names[f"arg{i}.size[{d}]"] = self.constant(size)
                    continue
                if i < self.first_result:
                    self.add(f"{name} = tensor.dim %arg{i}, {self.constant(d)} : {kind}")
                self.names[f"arg{i}.size[{d}]"] = name
                extents.append(name)
            self.memory[f"arg{i}"] = (f"%arg{i}", kind, extents)
            if i >= self.first_result:
                self.add(f"%arg{i} = flow.tensor.empty : {self.annotated(kind, extents)}")
        self.names["multiprocessors"] = self.constant(self.multiprocessors)
        zero = self.constant(0, "i64")
        self.add(f"%status = flow.tensor.splat {zero} : tensor<4xi64>")
        self.memory["status"] = ("%status", "tensor<4xi64>", [])

    @staticmethod
    def type_of(argument):
        if "strides" in argument:
            raise SystemExit("expected a manifest of dense tensors, got one with strides")
        sizes = "".join("?x" if size is None else f"{size}x" for size in argument["sizes"])
        return f"tensor<{sizes}{argument['element']}>"

    @staticmethod
    def annotated(kind, extents):
        return f"{kind}{{{', '.join(extents)}}}" if extents else kind

    def finish(self):
        names = [f"arg{i}" for i in range(self.first_result, len(self.function["arguments"]))]
        values, kinds, _ = zip(*(self.memory[name] for name in names))
        self.add(f"return {', '.join(values)} : {', '.join(kinds)}")
        self.lines.append("  }")

    # Steps.

    def take(self, steps):
        for step in steps:
            if "value" in step:
                self.compute(step)
            elif "scratch" in step:
                self.scratch(step)
            elif "launch" in step:
                self.launch(step)
            else:
                self.loop(step["loop"])

    def compute(self, step):
        op, operands = step["op"], [self.read(operand) for operand in step["operands"]]
        name = f"%{step['value']}"
        if op in COMPARISONS:
            flag = self.new()
            self.add(f"{flag} = arith.cmpi {op}, {', '.join(operands)} : index")
            self.add(f"{name} = arith.index_castui {flag} : i1 to index")
        elif op == "select":
            flag = self.flag(operands[0])
            self.add(f"{name} = arith.select {flag}, {operands[1]}, {operands[2]} : index")
        else:
            self.add(f"{name} = arith.{OPERATORS[op]} {', '.join(operands)} : index")
        self.names[step["value"]] = name

    def flag(self, number):
        flag = self.new()
        self.add(f"{flag} = arith.cmpi ne, {number}, {self.constant(0)} : index")
        return flag

    def scratch(self, step):
        size = self.read(step["bytes"][0])
        for factor in step["bytes"][1:]:
            name = self.new()
            self.add(f"{name} = arith.muli {size}, {self.read(factor)} : index")
            size = name
        name = f"%{step['scratch']}"
        self.add(f"{name} = flow.tensor.empty : tensor<?xi8>{{{size}}}")
        self.memory[step["scratch"]] = (name, "tensor<?xi8>", [size])

    def is_written(self, name):
        return not name.startswith("arg") or int(name[3:]) >= self.first_result

    def launch(self, step):
        kernel = self.kernels[step["launch"]]
        grid = [self.read(operand) for operand in step["grid"]]
        numbers, tensors = [], []
        for operand, bits in zip(step["parameters"], kernel["parameter_bits"], strict=True):
            if operand in self.memory:
                tensors.append(operand)
                continue
            if bits != 32:
                raise SystemExit("expected a manifest made with --split-numbers")
            name = self.new()
            self.add(f"{name} = arith.index_cast {self.read(operand)} : index to i32")
            numbers.append(name)
        self.layouts[kernel["name"]] = (
            len(numbers), [self.is_written(name) for name in tensors],
        )  # fmt: skip
        values = [*numbers, *(self.memory[name][0] for name in tensors)]
        kinds = ["i32"] * len(numbers)
        kinds += [self.annotated(*self.memory[name][1:]) for name in tensors]
        written = [name for name in tensors if self.is_written(name)]
        # What is written is a new value of the same memory.
        tied = []
        for name in written:
            value, kind, extents = self.memory[name]
            tied.append(value if not extents else f"{value}{{{', '.join(extents)}}}")
        made = [self.new() for _ in written]
        self.add(
            f"{', '.join(made)} = flow.dispatch @kernels::@{kernel['name']}[{', '.join(grid)}]"
            f"({', '.join(values)}) : ({', '.join(kinds)}) -> ({', '.join(tied)})"
        )
        for name, value in zip(written, made):
            self.memory[name] = (value, *self.memory[name][1:])

    def loop(self, loop):
        """Memory that the loop writes is carried by it, beside its numbers. IREE 3.13 expects as
        many of these behind the condition as before it, also after its own simplifications."""
        if self.loops and not self.depth:
            self.separate()
        self.loops += 1
        self.depth += 1
        carried = list(self.memory_written(loop["body"]))
        before = [self.memory[name] for name in carried]
        starts = [self.read(start) for _, start in loop["state"]]
        names = [f"%{name}" for name, _ in loop["state"]]
        heads = [self.new() for _ in carried]
        kinds = ["index"] * len(names) + [kind for _, kind, _ in before]
        inits = ", ".join(
            f"{name} = {start}"
            for name, start in zip([*names, *heads], [*starts, *(value for value, *_ in before)])
        )
        values = [f"%{name}" for name, _ in loop["values"]]
        passed = names[len(values) :]
        values += [self.new() for _ in passed]
        results = [f"{value}_r" for value in values]
        result_kinds = ["index"] * len(values) + [kind for _, kind, _ in before]
        outs = [self.new() for _ in carried]
        self.add(
            f"{', '.join([*results, *outs])} = scf.while ({inits}) : "
            f"({', '.join(kinds)}) -> ({', '.join(result_kinds)}) {{"
        )
        self.indent += 1
        for (name, _), value in zip(loop["state"], names):
            self.names[name] = value
        self.take(loop["head"])
        bound = [self.read(operand) for _, operand in loop["values"]] + passed
        flag = self.flag(self.read(loop["while"]))
        self.add(
            f"scf.condition({flag}) {', '.join([*bound, *heads])} : {', '.join(result_kinds)}"
        )
        self.indent -= 1
        self.add("} do {")
        insides = [self.new() for _ in carried]
        self.add(
            "^bb0("
            + ", ".join(f"{v}: {k}" for v, k in zip([*values, *insides], result_kinds))
            + "):"
        )
        self.indent += 1
        for value in values[len(loop["values"]) :]:
            self.add(f"{self.new()} = util.optimization_barrier {value} : index")
        for (name, _), value in zip(loop["values"], values):
            self.names[name] = value
        for name, value, (_, kind, extents) in zip(carried, insides, before):
            self.memory[name] = (value, kind, extents)
        self.take(loop["body"])
        following = [self.read(operand) for operand in loop["next"]]
        after = [self.memory[name][0] for name in carried]
        self.add(f"scf.yield {', '.join([*following, *after])} : {', '.join(kinds)}")
        self.indent -= 1
        self.depth -= 1
        self.add("}")
        for (name, _), value in zip(loop["values"], results):
            self.names[name] = value
        for name, value, (_, kind, extents) in zip(carried, outs, before):
            self.memory[name] = (value, kind, extents)

    def separate(self):
        """IREE 3.13 schedules what comes before a loop together with what comes after
        it, if that does not use the loop's results, and finds a circular dependency
        when the loop uses both. What is written so far is another value from here on."""
        for name, (value, kind, extents) in self.memory.items():
            if not self.is_written(name):
                continue
            made = self.new()
            self.add(f"{made} = util.optimization_barrier {value} : {kind}")
            if extents:
                value, made = made, self.new()
                self.add(f"{made} = flow.tensor.tie_shape {value} : {self.annotated(kind, extents)}")
            self.memory[name] = (made, kind, extents)

    def memory_written(self, steps):
        written = {}
        for step in steps:
            if "loop" in step:
                written |= self.memory_written(step["loop"]["body"])
            for operand in step.get("parameters", []):
                if operand in self.memory and self.is_written(operand):
                    written[operand] = True
        return written


def executable(function, layouts, path):
    """The kernels. In the generic form, which does not change with IREE's syntax."""
    lines = [
        '  "hal.executable.source"() <{sym_name = "kernels", sym_visibility = "private",',
        "    objects = #hal.executable.objects<{",
        f"      #target = [#hal.executable.object<{{path = {json.dumps(path)}}}>]}}>}}> ({{",
    ]
    for ordinal, kernel in enumerate(function["kernels"]):
        constants, written = layouts[kernel["name"]]
        bindings = ", ".join(
            "#hal.pipeline.binding<storage_buffer>" if is_written
            else "#hal.pipeline.binding<storage_buffer, ReadOnly>"
            for is_written in written
        )  # fmt: skip
        block = ", ".join(f"{threads} : index" for threads in kernel["block"])
        lines += [
            f'    "hal.executable.export"() <{{sym_name = "{kernel["name"]}",',
            f"      ordinal = {ordinal} : index, workgroup_size = [{block}],",
            f"      workgroup_local_memory = {kernel['shared_bytes']} : index,",
            f"      layout = #hal.pipeline.layout<constants = {constants}, bindings = [{bindings}]>",
            "    }> ({",
            "    ^bb0(%device: !hal.device, %x: index, %y: index, %z: index):",
            "      hal.return %x, %y, %z : index, index, index",
            "    }, {}) : () -> ()",
        ]
    return [*lines, '    "hal.executable.source_end"() : () -> ()', "  }) : () -> ()"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("manifest")
    parser.add_argument("ptx")
    parser.add_argument("--results", type=int, required=True)
    parser.add_argument("--multiprocessors", type=int, default=108)
    options = parser.parse_args()
    with open(options.manifest) as file:
        manifest = json.load(file)
    if manifest.get("varlen_manifest") != 1 or manifest["format"] != "ptx":
        sys.exit(f"{options.manifest}: expected a manifest of PTX, version 1")
    if len(manifest["functions"]) != 1:
        sys.exit(f"{options.manifest}: expected one function, got {len(manifest['functions'])}")
    host = Function(manifest["functions"][0], options.results, options.multiprocessors)
    host.begin()
    host.take(host.function["steps"])
    host.finish()
    chip = manifest["chip"]
    print(f'#target = #hal.executable.target<"cuda", "cuda-nvptx-fb", {{target_arch = "{chip}"}}>')
    print('#device = #hal.device.target<"cuda", [#target]> : !hal.device')
    print("module attributes {hal.device.targets = [#device]} {")
    print("\n".join(executable(host.function, host.layouts, options.ptx)))
    print("\n".join(host.lines))
    print("}")


main()
