# RUN: %python %s --build %varlen-build
# REQUIRES: venv
"""Faults in kernels that nothing notices: there are none without an explanation.

A sample here; all of them, and for more kernels, with --all (`make mutate`).
"""

import argparse
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

INPUTS = pathlib.Path(__file__).resolve().parent / "Inputs"
ROOT = INPUTS.parent.parent.parent
sys.path.insert(0, str(INPUTS))

import caches
import clusters
import numpy as np
import packed
import sm80
import sm90
import varlen
from launching import round_bf16


def equivalents(name):
    """Where survivors are explained: those of the list of tiles for all kernels."""
    paths = [INPUTS / f"equivalents-{part}.txt" for part in ("tiles", name)]
    return [path for path in paths if path.exists()]


# Attention of which every constant is changed; others differ from these in few.
THOROUGH = ("forward-causal", "gradients-causal")
# Mutants of synchronisation and of constants of attention in a sample.
SAMPLES = {
    "forward-pages": (2, 0), "forward-causal": (3, 0), "gradients-causal": (4, 0),
    "gradients-table": (2, 2), "tangents-causal": (2, 0), "second-causal": (2, 0), "gradients-documents": (2, 1), "gradients-five": (6, 0), "hopper-forward-d128": (3, 0),
    "hopper-roles": (4, 0), "hopper-maps": (4, 0),
}  # fmt: skip
# Of these, synchronisation alone: what else they have is that of other kernels.
SYNCHRONISED = (
    "gradients-hidden", "gradients-documents", "gradients-table", "gradients-tables",
    "forward-parts", "tangents-causal", "second-causal", "forward-quantised", "gradients-five",
)  # fmt: skip
# CTAs of these wait for each other.
CO_RESIDENT = ("gradients-five",)


def kernels():
    """Name, chip, text, inputs, and how many mutants of synchronisation and of
    constants: in a sample (null: it is not in it), and with --all (null: all)."""
    yield "sm80", "sm_80", sm80.build(), [sm80.inputs(np, round_bf16)], (3, 3), (None, 60)
    for name, text, inputs in itertools.chain(packed.kernels(), caches.kernels()):
        all = (None, None if name in THOROUGH else 0 if name in SYNCHRONISED else 60)
        yield name, "sm_80", text, inputs, SAMPLES.get(name), all
    for name, text, inputs in packed.hopper():
        yield name, "sm_90a", text, inputs, SAMPLES.get(name), (None, 0)
    yield "clusters", "sm_90a", clusters.build(), [clusters.inputs(np)], None, (None, 60)
    yield "sm90", "sm_90a", sm90.build(), [sm90.inputs(np, round_bf16)], None, (None, 60)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="", help="a regular expression on names")
    parser.add_argument("--constants", type=int, help="at most so many of a kernel")
    arguments = parser.parse_args()
    status = 0
    for name, chip, text, inputs, sample, all in kernels():
        counts = all if arguments.all else sample
        if not counts or not re.search(arguments.only, name):
            continue
        with tempfile.TemporaryDirectory(prefix="varlen-") as folder:
            module = pathlib.Path(folder) / f"{name}.mlir"
            module.write_text(text, encoding="utf-8")
            command = [
                ROOT / "tools" / "varlen-mutate", f"--build={arguments.build}",
                f"--device=sim:{chip}", "--device-checks", module,
            ]  # fmt: skip
            if name in CO_RESIDENT:
                command.append("--sim-co-resident=0")
            command += [f"--known={path}" for path in equivalents(name)]
            if counts[0] is not None:
                command.append(f"--sync={counts[0]}")
            constants = counts[1] if arguments.constants is None else arguments.constants
            if constants is not None:
                command.append(f"--constants={constants}")
            # A sample is of the first input only.
            inputs = inputs if arguments.all else itertools.islice(inputs, 1)
            for number, values in enumerate(inputs):
                tensors = module.with_name(f"{number}.safetensors")
                varlen.safetensors.write(tensors, values)
                command.append(tensors)
            print(f"{name}:", flush=True)
            status |= subprocess.run(command, check=False).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
