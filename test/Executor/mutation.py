# RUN: %python %s --build %varlen-build
# REQUIRES: venv
"""Faults in kernels that nothing notices: there are none without an explanation.

A sample here; all of them, and for more kernels, with --all (`make mutate`).
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

INPUTS = pathlib.Path(__file__).resolve().parent / "Inputs"
ROOT = INPUTS.parent.parent.parent
sys.path.insert(0, str(INPUTS))

import clusters
import numpy as np
import sm80
import sm90
import varlen
from harness import round_bf16

FORWARD = """
!rows = tensor<?x2x{d}x{type}>
func.func @f(%q: !rows, %k: !rows, %v: !rows, %cu: tensor<?xi32>) -> (!rows, tensor<2x?xf32>) {{
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {{mask = #varlen.mask<{mask}>}}
      : (!rows, !rows, !rows, tensor<?xi32>, tensor<?xi32>) -> (!rows, tensor<2x?xf32>)
  return %out, %lse : !rows, tensor<2x?xf32>
}}
"""


def forward(d, type, mask):
    """Tiles that are whole, cut short, empty, and more than the ring holds."""
    return FORWARD.format(d=d, type=type, mask=mask), ["--random=1", "--lengths=200,3,0,64"]


def kernels():
    """Name, chip, text, tensors or options, and how many mutants of synchronisation
    and of constants: in a sample (null: it is not in it), and with --all (null: all).

    Which constants of compiled kernels are dead changes with every pass."""
    yield "sm80", "sm_80", sm80.build(), sm80.inputs(np, round_bf16), (4, 6), (None, 60)
    yield "forward", "sm_80", *forward(64, "bf16", "causal"), (6, 0), (None, 0)
    yield "clusters", "sm_90a", clusters.build(), clusters.inputs(np), None, (None, 60)
    yield "sm90", "sm_90a", sm90.build(), sm90.inputs(np, round_bf16), None, (None, 60)
    yield "forward-full", "sm_80", *forward(64, "bf16", "full"), None, (None, 0)
    yield "forward-d128", "sm_80", *forward(128, "f16", "causal"), None, (None, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    status = 0
    for name, chip, text, inputs, sample, all in kernels():
        counts = all if arguments.all else sample
        if not counts:
            continue
        with tempfile.TemporaryDirectory(prefix="varlen-") as folder:
            module = pathlib.Path(folder) / f"{name}.mlir"
            module.write_text(text, encoding="utf-8")
            command = [
                ROOT / "tools" / "varlen-mutate", f"--build={arguments.build}",
                f"--device=sim:{chip}", module,
            ]  # fmt: skip
            known = INPUTS / f"equivalents-{name}.txt"
            if known.exists():
                command.append(f"--known={known}")
            if counts[0] is not None:
                command.append(f"--sync={counts[0]}")
            command.append(f"--constants={counts[1]}")
            if isinstance(inputs, dict):
                varlen.safetensors.write(module.with_suffix(".safetensors"), inputs)
                command.append(module.with_suffix(".safetensors"))
            else:
                command += inputs
            print(f"{name}:", flush=True)
            status |= subprocess.run(command, check=False).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
