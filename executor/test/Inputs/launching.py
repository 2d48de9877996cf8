"""Runs a kernel's text in the executor and compares."""

import re

import numpy as np

import varlen

RUNS = 27


def round_bf16(array):
    return varlen.dtypes.narrow(array, "bf16")


def widen(tensors):
    return {name: varlen.dtypes.widen(array) for name, array in tensors.items()}


def check(name, text, chip, inputs, expected, tolerance, runs=RUNS, **flags):
    """All configurations are clean and give the same result, near the expected."""
    figures = {}
    results = varlen.run(
        text, inputs, device=f"sim:{chip}", sim_runs=runs, figures=figures, **flags
    )
    for key, golden in expected.items():
        error = np.abs(varlen.dtypes.widen(results[key]) - golden).max()
        assert error <= tolerance, f"{name}: '{key}' is wrong by {error}"
    assert figures["executor"]["runs"] == runs
    return figures["executor"]


def refuse(name, text, chip, inputs, report, runs=RUNS, **flags):
    """The first hazard that is reported is this one; LINE stands for a place."""
    try:
        varlen.run(text, inputs, device=f"sim:{chip}", sim_runs=runs, **flags)
    except varlen.Error as error:
        lines = [line for line in str(error).splitlines() if line.startswith("hazard: ")]
        assert lines, f"{name}: wanted a hazard, got: {error}"
        first = re.sub(r"at (<stdin>|-):\d+:\d+", "at LINE", lines[0][len("hazard: "):])
        first = re.sub(r" \[cta .*\]$", "", first)
        first = re.sub(r"smem\+0x[0-9a-f]+", "smem", first)
        first = re.sub(r"(thread|register) \d+", r"\1 N", first)
        assert first == report, f"{name}: wanted '{report}', got '{first}'"
        return
    raise AssertionError(f"{name}: the executor has seen nothing")


def disagree(name, text, chip, inputs, expected, tolerance, **flags):
    """No hazard: wrong numbers are what tells."""
    results = varlen.run(text, inputs, device=f"sim:{chip}", sim_runs=1, **flags)
    errors = [
        np.abs(varlen.dtypes.widen(results[key]) - golden).max()
        for key, golden in expected.items()
    ]
    assert not max(errors) <= tolerance, f"{name}: the numbers are right"
