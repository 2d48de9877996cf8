"""Functions of a framework that another compiler has lowered to linalg: they are compiled
for a CPU as they come, and their gradients are made by varlen-differentiate; those of
dynamic extents run on a GPU, in the executor, too. What is computed is compared with the
framework's values in f64."""

import dataclasses
import functools
import re
import zlib
from collections.abc import Callable

import numpy as np

import varlen

rng = np.random.default_rng(29)


def floats(*shape):
    return np.asarray(rng.standard_normal(shape), np.float32)


def positive(*shape):
    return np.asarray(rng.uniform(0.5, 2, shape), np.float32)


def integers(end, *shape):
    return np.asarray(rng.integers(0, end, shape), np.int32)


def choose(*shape):
    """0 or 1."""
    return integers(2, *shape).astype(np.float32)


@dataclasses.dataclass
class Case:
    name: str
    function: Callable
    inputs: list
    # For each input the names of extents that the compiler does not know, by dimension.
    dynamic: list | None = None
    # Largest error of a result in f32, beside its largest element.
    tolerance: float = 1e-5

    def widened(self):
        """The inputs, floats in f64."""
        return [np.asarray(x, np.float64) if x.dtype == np.float32 else x for x in self.inputs]

    def cotangent(self, shape):
        seed = zlib.crc32(f"{self.name} {shape}".encode())
        return np.asarray(np.random.default_rng(seed).standard_normal(shape))


def differentiate(texts):
    """The modules with gradients of their functions @main. One for which varlen-opt has
    an error is left out."""
    module = "\n// -----\n".join(texts)
    passes = "builtin.module(inline,symbol-dce,varlen-differentiate{function=main})"
    return varlen.call("varlen-opt", "--split-input-file", f"--pass-pipeline={passes}",
                       text=module).split("// -----\n")  # fmt: skip


def is_float(array):
    return np.issubdtype(np.asarray(array).dtype, np.floating)


# So many functions are compiled together: most of what a small one costs is what a module does.
TOGETHER = 16


def merge(texts):
    """One module of several: each symbol ends with the number of its module."""
    aliases, bodies = "", ""
    for number, text in enumerate(texts):
        text = re.sub(r"#map(\d*)", rf"#map_{number}_\1", text)
        text = re.sub(r"@(\w+)", rf"@\1_{number}", text)
        before, body = re.split(r"^module.*\{$", text, maxsplit=1, flags=re.MULTILINE)
        aliases += before
        bodies += body[: body.rindex("}")]
    return f"{aliases}module {{\n{bodies}}}\n"


def compile_all(texts):
    """By name of a module a function that calls one of its functions on arrays."""
    found, names = {}, list(texts)
    for first in range(0, len(names), TOGETHER):
        some = names[first : first + TOGETHER]
        try:
            program = varlen.compile(merge([texts[name] for name in some]))
            for number, name in enumerate(some):
                found[name] = functools.partial(call, program, f"_{number}")
        except varlen.CompileError:
            # Each by itself, so that an error has a name.
            found |= {name: functools.partial(call_alone, texts[name]) for name in some}
    return found


def call(program, suffix, function, arguments):
    results = program[function + suffix](*arguments)
    return results if isinstance(results, tuple) else (results,)


def call_alone(text, function, arguments):
    return call(varlen.compile(text), "", function, arguments)


def run_on_gpu(text, inputs):
    """Results of @main in the executor of GPU code."""
    named = {f"arg{i}": array for i, array in enumerate(inputs)}
    return tuple(varlen.run(text, named, device="sim:sm_80").values())


def compare(what, got, wanted, tolerance):
    """What is wrong with results; empty: nothing."""
    if len(got) != len(wanted):
        return f"{what}: expected {len(wanted)} results, got {len(got)}"
    for i, (ours, theirs) in enumerate(zip(got, wanted)):
        ours = np.asarray(ours)
        if ours.shape != theirs.shape:
            return f"{what} {i}: expected {theirs.shape}, got {ours.shape}"
        if not is_float(theirs):
            if not np.array_equal(ours, theirs):
                return f"{what} {i}: expected {theirs}, got {ours}"
            continue
        if not np.array_equal(np.isnan(ours), np.isnan(theirs)):
            return f"{what} {i}: expected {theirs}, got {ours}"
        largest = np.nanmax(np.abs(theirs), initial=1e-3)
        error = np.nanmax(np.abs(ours - theirs), initial=0) / largest
        if not error <= tolerance:
            return f"{what} {i}: off by {error:.1e} of the largest element"
    return ""


def check_refusal(label, run, wanted):
    """What is wrong with an error: it has to have a place and to say what was wanted."""
    try:
        run()
    except (varlen.CompileError, varlen.Error) as error:
        if re.search(r":\d+:\d+", str(error)) and wanted in str(error):
            return ""
        return f"{label}: expected an error with '{wanted}' and a place, got: {error}"
    return f"{label}: expected the error '{wanted}', got none"


def check(cases, lower, evaluate, refused, refused_gradients):
    """Runs the cases.

    Args:
        lower: From a case to a module with a function @main.
        evaluate: From a case and whether gradients are wanted to its results, and the
            cotangents of its floats for `case.cotangent` of each float among the results.
        refused: What the compiler says to functions that it does not compile, by name.
        refused_gradients: What varlen-differentiate says, by name.
    """
    texts = {case.name: lower(case) for case in cases}
    assert len(texts) == len(cases), "two cases have one name"
    messages = []
    for name, wanted in refused.items():
        messages.append(check_refusal(name, lambda: varlen.compile(texts[name]), wanted))
    for name, wanted in refused_gradients.items():
        messages.append(check_refusal(f"{name}_vjp", lambda: differentiate([texts[name]]), wanted))
    compiled = [case for case in cases if case.name not in refused]
    smooth = [case for case in compiled if case.name not in refused_gradients]
    reverse = dict(zip((c.name for c in smooth), differentiate([texts[c.name] for c in smooth])))
    # Modules with gradients have the functions themselves, too.
    functions = compile_all({c.name: reverse.get(c.name, texts[c.name]) for c in compiled})
    for case in compiled:
        label = case.name
        try:
            results, gradients = evaluate(case, label in reverse)
            got = functions[label]("main", case.inputs)
            messages.append(compare(label, got, results, case.tolerance))
            if case.dynamic:
                got = run_on_gpu(texts[label], case.inputs)
                messages.append(compare(f"{label} on a GPU", got, results, case.tolerance))
            if label in reverse:
                cotangents = [
                    np.asarray(case.cotangent(x.shape), np.float32) for x in results if is_float(x)
                ]
                got = functions[label]("main_vjp", [*case.inputs, *cotangents])
                messages.append(compare(f"{label} gradient", got, gradients, case.tolerance))
        except (varlen.CompileError, varlen.Error) as error:
            messages.append(f"{label}: {error}")
    failed = [message for message in messages if message]
    print("\n".join(failed))
    print(f"{len(compiled)} functions, {len(reverse)} gradients, {len(refused)} functions and "
          f"{len(refused_gradients)} gradients refused, {len(failed)} failed")  # fmt: skip
    raise SystemExit(bool(failed))
