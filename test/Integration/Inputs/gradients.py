"""Backward functions against finite differences, through varlen-run in f64.

A module's functions are differentiated by varlen-differentiate; a few at a time are
compiled into one function that calls them, each at two points near its inputs too,
and run. What is compared are numbers: with a random direction u for the inputs and
random cotangents c of the results, <vjp(c), u> and
<c, f(x + h u) - f(x - h u)> / 2 h.
"""

import re

import numpy as np

import varlen

STEP = 1e-5
# To compile more into one function takes more than proportionally long.
AT_ONCE = 6
SIGNATURE = re.compile(r"func\.func @(\w+)\(([^)]*)\)\s*->\s*(\([^)]*\)|[^\s{]+)\s*\{")


def signatures(text):
    """Argument and result types of the functions of a module, by name."""
    functions = {}
    text = re.sub(r" \{varlen.name = [^}]*\}", "", text)
    for name, arguments, results in SIGNATURE.findall(text):
        types = [part.split(":", 1)[1].strip() for part in re.split(r",\s*(?=%)", arguments)]
        results = re.split(r",\s*", re.sub(r"^\(|\)$", "", results))
        functions[name] = types, results
    return functions


def is_float(type):
    return type.endswith("f64>") or type == "f64"


def differentiate(text, functions, options=""):
    """The module with the backward functions of those named, as varlen-opt prints it."""
    passes = ",".join(
        f"varlen-differentiate{{function={name} {options}}}" for name in functions
    )
    return varlen.call("varlen-opt", f"--pass-pipeline=builtin.module({passes})", text=text)


class Program:
    """One function that calls others and returns all that they return."""

    def __init__(self):
        self.lines, self.parameters, self.inputs, self.results = [], [], {}, []

    def input(self, type, value):
        name = f"a{len(self.inputs)}"
        self.inputs[name] = np.asarray(value)
        self.parameters.append(f'%{name}: {type} {{varlen.name = "{name}"}}')
        return name

    def call(self, function, arguments, types, results):
        """The names of the results."""
        number = len(self.lines)
        names = [f"r{len(self.results) + i}" for i in range(len(results))]
        self.results += results
        self.lines.append(
            f"  %c{number}:{len(results)} = func.call @{function}"
            f"({', '.join('%' + name for name in arguments)})"
            f" : ({', '.join(types)}) -> ({', '.join(results)})\n"
        )
        return [(name, f"%c{number}#{i}") for i, name in enumerate(names)]

    def run(self, module, returned, **flags):
        results = ", ".join(
            f'{type} {{varlen.name = "r{i}"}}' for i, type in enumerate(self.results)
        )
        text = (
            f"func.func @program({', '.join(self.parameters)}) -> ({results}) {{\n"
            + "".join(self.lines)
            + f"  return {', '.join(returned)} : {', '.join(self.results)}\n}}\n"
        )
        whole = module[: module.rindex("}")] + text + "}\n"
        return varlen.run(whole, self.inputs, entry="program", **flags)


def check(text, cases, **options):
    """Checks functions of a module, see check_some; raises if any fails."""
    names = list(cases)
    failed = []
    for first in range(0, len(names), AT_ONCE):
        some = {name: cases[name] for name in names[first : first + AT_ONCE]}
        failed += check_some(text, some, **options)
    if failed:
        raise SystemExit("\n".join(failed))


def check_some(text, cases, *, tolerance=1e-6, module=None, options="", seed=0, wrt=None,
               **flags):  # fmt: skip
    """What is wrong with functions of a module: `cases` has the inputs of each by
    name, those of floats in f64. `module` is the differentiated module where that is not to
    be made here; `wrt` says which arguments a function is differentiated by."""
    rng = np.random.default_rng(seed)
    if module is None:
        module = differentiate(text, cases, options)
    types = signatures(text)
    program, returned, plans = Program(), [], {}
    for name, values in cases.items():
        arguments, results = types[name]
        chosen = (wrt or {}).get(name, [i for i, t in enumerate(arguments) if is_float(t)])
        directions = {i: rng.standard_normal(np.shape(values[i])) for i in chosen}

        def place(sign):
            return [
                program.input(type, value + sign * STEP * directions[i] if i in directions else value)
                for i, (type, value) in enumerate(zip(arguments, values))
            ]

        here, plus, minus = place(0), place(1), place(-1)
        ups = program.call(name, plus, arguments, results)
        downs = program.call(name, minus, arguments, results)
        plans[name] = [here, ups, downs, directions, chosen]
        returned += [value for _, value in ups + downs]
    # Cotangents need the shapes of results: a first run gives them.
    first = program.run(module, returned, **flags)
    for name, plan in plans.items():
        arguments, results = types[name]
        here, ups, downs, directions, chosen = plan
        floats = [i for i, type in enumerate(results) if is_float(type)]
        cotangents = [rng.standard_normal(first[ups[i][0]].shape) for i in floats]
        inputs = [program.input(results[i], c) for i, c in zip(floats, cotangents)]
        gradients = program.call(
            f"{name}_vjp", here + inputs, arguments + [results[i] for i in floats],
            [arguments[i] for i in chosen],
        )  # fmt: skip
        returned += [value for _, value in gradients]
        plan += [floats, cotangents, gradients]
    got = program.run(module, returned, **flags)
    failed = []
    for name, (_, ups, downs, directions, chosen, floats, cotangents, gradients) in plans.items():
        slope = sum(
            np.sum(c * (got[ups[i][0]] - got[downs[i][0]])) / (2 * STEP)
            for i, c in zip(floats, cotangents)
        )
        terms = [np.sum(got[gradient] * directions[i]) for i, (gradient, _) in zip(chosen, gradients)]
        total = sum(terms)
        scale = 1 + sum(map(abs, terms))
        if not abs(total - slope) <= tolerance * scale:
            failed.append(f"{name}: gradients give {total:.12g}, differences {slope:.12g}")
    return failed
