"""Derivatives against finite differences, compiled for a CPU in f64.

A module's functions are differentiated by varlen-differentiate, in both modes; what is
compiled is called at the inputs and at two points near them. With a random direction u
for the inputs and random cotangents c of the results, <vjp(c), u> is compared with
<c, f(x + h u) - f(x - h u)> / 2 h, and jvp(u) element by element with the difference.
"""

import numpy as np

import varlen

STEP = 1e-5


def differentiate(text, functions, options=""):
    """The module with derivatives of the functions named, backward functions unless the
    options say `mode=forward`, as varlen-opt prints it."""
    passes = ",".join(
        f"varlen-differentiate{{function={name} {options}}}" for name in functions
    )
    return varlen.call("varlen-opt", f"--pass-pipeline=builtin.module({passes})", text=text)


def check(text, cases, tolerance=1e-6):
    """Checks functions of a module: `cases` has the inputs of each by name, those of
    floats in f64. Raises if any fails."""
    rng = np.random.default_rng(0)
    program = varlen.compile(differentiate(differentiate(text, cases), cases, "mode=forward"))
    failed = []
    for name, values in cases.items():

        def call(function, *arguments):
            results = program[function](*arguments)
            return results if isinstance(results, tuple) else (results,)

        # Arithmetic on arrays of rank 0 gives numbers.
        def like(value, number):
            return np.asarray(number) if isinstance(value, np.ndarray) else number

        def floats(values):
            return [value for value in values if np.asarray(value).dtype == np.float64]

        directions = [
            rng.standard_normal(np.shape(value)) if floats([value]) else None for value in values
        ]

        def split(values):
            return values[: len(values) // 2], values[len(values) // 2 :]

        def near(sign):
            arguments = [
                value if direction is None else like(value, value + sign * STEP * direction)
                for value, direction in zip(values, directions)
            ]
            return floats(call(name, *arguments))

        above, below = near(1), near(-1)
        cotangents = [like(result, rng.standard_normal(np.shape(result))) for result in above]
        gradients = call(f"{name}_vjp", *values, *cotangents)
        slope = sum(
            np.sum(c * (plus - minus)) / (2 * STEP)
            for c, plus, minus in zip(cotangents, above, below)
        )
        directions = [direction for direction in directions if direction is not None]
        terms = [np.sum(g * direction) for g, direction in zip(gradients, directions, strict=True)]
        if not abs(sum(terms) - slope) <= tolerance * (1 + sum(map(abs, terms))):
            failed.append(f"{name}: gradients give {sum(terms):.12g}, differences {slope:.12g}")
        results, tangents = split(floats(call(f"{name}_jvp", *values, *directions)))
        # By other tiles, for an attention.
        for result, wanted in zip(results, floats(call(name, *values)), strict=True):
            if not np.allclose(result, wanted, rtol=1e-12, atol=1e-12, equal_nan=True):
                failed.append(f"{name}: the forward mode has other results")
        for number, (tangent, plus, minus) in enumerate(zip(tangents, above, below, strict=True)):
            # An lse of no key is -inf, however inputs change.
            difference = np.where(plus == minus, 0, plus - minus) / (2 * STEP)
            error = np.abs(tangent - difference).max(initial=0)
            if not error <= tolerance * (1 + np.abs(difference).max(initial=0)):
                failed.append(f"{name}: tangent #{number} is {error:.3g} away from the difference")
    if failed:
        raise SystemExit("\n".join(failed))
