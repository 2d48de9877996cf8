# REQUIRES: ptxas, venv
# RUN: %python %s

"""No kernel of a shipped GPU schedule spills registers: ptxas says so."""

import itertools
import os
import re
import subprocess
import sys
import tempfile

from concurrent.futures import ThreadPoolExecutor

TEXT = """
!q = tensor<?x{heads}x{d}x{type}>
!k = tensor<?x4x{d}x{type}>
!v = tensor<?x4x{dv}x{type}>
!o = tensor<?x{heads}x{dv}x{type}>
!cu = tensor<?xi32>
func.func @f(%q: !q, %k: !k, %v: !v, %cu: !cu, %sink: tensor<{heads}xf32>) -> (!o, tensor<{heads}x?xf32>) {{
  %o, %l = varlen.attn %q, %k, %v, %cu, %cu seqused_k(%cu) sink(%sink) {{mask = #varlen.mask<{mask}>}}
      : (!q, !k, !v, !cu, !cu, !cu, tensor<{heads}xf32>) -> (!o, tensor<{heads}x?xf32>)
  return %o, %l : !o, tensor<{heads}x?xf32>
}}
"""

# Every row of the tables, by head_dim and by what fits the chip; a window on both
# sides takes the most registers.
CASES = (
    list(itertools.product(("bf16",), ("sm_80", "sm_90", "sm_86"), (64, 128, 256), ("window = (512, 64)",)))
    + list(itertools.product(("bf16",), ("sm_80",), (64, 96, 192), ("causal", "full")))
    + list(itertools.product(("f32",), ("sm_80", "sm_86"), (64, 128), ("causal",)))
)


def check(case):
    dtype, chip, d, mask = case
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "a.mlir")
        with open(source, "w") as file:
            file.write(TEXT.format(d=d, dv=d, type=dtype, heads=8, mask=mask))
        command = ["varlen-opt", source, "--emit=cubin", f"--chip={chip}", "--report"]
        result = subprocess.run(
            command + ["-o", os.path.join(folder, "a.cubin")], capture_output=True, text=True
        )
    registers = re.search(r"f_attn uses (\d+) registers", result.stderr)
    return case, registers and int(registers[1]), result


failed = 0
with ThreadPoolExecutor(2) as pool:
    for case, registers, result in pool.map(check, CASES):
        print(*case, f"{registers} registers")
        if result.returncode or not registers:
            print(result.stderr)
            failed += 1
sys.exit(failed != 0)
