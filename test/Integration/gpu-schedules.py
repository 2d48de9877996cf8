# REQUIRES: ptxas, venv
# RUN: %if long %{ %python %s %} %else %{ %python %s --sample %}

"""What ptxas makes of each kernel of a shipped GPU schedule is what Inputs/gpu-schedules.json says:
bytes of registers that it spills, what it warns of (C75xx), and, where there is nvdisasm, what
the loops over blocks are made of.

    gpu-schedules.py --update       # writes the file anew; the difference is to be looked at

A change of a kernel changes counts. Fewer of them are faster (docs/gpu-model.md says by how much);
more need a reason.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "Inputs/gpu-schedules.json"
sys.path.insert(0, str(HERE.parent.parent / "benchmarks/gpu"))

import sass

FORWARD = """
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

# What both gradients are given, and return.
_OF_MEMORY = """
!q = memref<?x{heads}x{d}x{type}>
!k = memref<?x4x{d}x{type}>
!lse = memref<{heads}x?xf32>
!sink = memref<{heads}xf32>
!cu = memref<?xi32>
func.func @f(%q: !q, %k: !k, %lse: !lse, %cu: !cu, %sink: !sink, %dq: !q, %dk: !k, %dv: !k, %dsink: !sink) {{
"""

GRADIENTS = _OF_MEMORY + """\
  varlen.attn_grad %q, %q, %k, %k, %q, %lse, %cu, %cu dlse(%lse) seqused_k(%cu) sink(%sink)
      outs(%dq, %dk, %dv, %dsink) {{mask = #varlen.mask<{mask}>}}
      : (!q, !q, !k, !k, !q, !lse, !cu, !cu, !lse, !cu, !sink, !q, !k, !k, !sink) -> ()
  return
}}
"""

TANGENTS = """
!q = tensor<?x{heads}x{d}x{type}>
!k = tensor<?x4x{d}x{type}>
!v = tensor<?x4x{dv}x{type}>
!o = tensor<?x{heads}x{dv}x{type}>
!lse = tensor<{heads}x?xf32>
!sink = tensor<{heads}xf32>
!cu = tensor<?xi32>
func.func @f(%q: !q, %k: !k, %v: !v, %tq: !q, %tk: !k, %tv: !v, %cu: !cu, %sink: !sink) -> (!o, !lse, !o, !lse) {{
  %o, %l, %to, %tl = varlen.attn_jvp %q, %k, %v, %tq, %tk, %tv, %cu, %cu seqused_k(%cu) sink(%sink) tsink(%sink)
      {{mask = #varlen.mask<{mask}>}}
      : (!q, !k, !v, !q, !k, !v, !cu, !cu, !cu, !sink, !sink) -> (!o, !lse, !o, !lse)
  return %o, %l, %to, %tl : !o, !lse, !o, !lse
}}
"""

SECOND = _OF_MEMORY + """\
  varlen.attn_jvp_grad %q, %q, %k, %k, %q, %k, %k, %q, %lse, %q, %lse, %cu, %cu dtlse(%lse) dout(%q) dlse(%lse) seqused_k(%cu)
      sink(%sink) tsink(%sink) outs(%dq, %dk, %dv, %dsink) {{mask = #varlen.mask<{mask}>}}
      : (!q, !q, !k, !k, !q, !k, !k, !q, !lse, !q, !lse, !cu, !cu, !lse, !q, !lse, !cu, !sink, !sink, !q, !k, !k, !sink) -> ()
  return
}}
"""

PAGED = """
!q = tensor<?x{heads}x{d}x{type}>
!k = tensor<?x{page}x4x{d}x{type}>
!cu = tensor<?xi32>
func.func @f(%q: !q, %k: !k, %v: !k, %cu: !cu, %table: tensor<?x?xi32>) -> (!q, tensor<{heads}x?xf32>) {{
  %o, %l = varlen.attn %q, %k, %v, %cu seqused_k(%cu) block_table(%table) {{mask = #varlen.mask<{mask}>}}
      : (!q, !k, !k, !cu, !cu, tensor<?x?xi32>) -> (!q, tensor<{heads}x?xf32>)
  return %o, %l : !q, tensor<{heads}x?xf32>
}}
"""

QUANTISED = """
!q = tensor<?x{heads}x{d}x{type}>
!k = tensor<?x16x4x{d}x{element}>
!scale = tensor<?x16x4xf32>
!cu = tensor<?xi32>
func.func @f(%q: !q, %k: !k, %v: !k, %cu: !cu, %table: tensor<?x?xi32>, %k_scale: !scale, %v_scale: !scale)
    -> (!q, tensor<{heads}x?xf32>) {{
  %o, %l = varlen.attn %q, %k, %v, %cu seqused_k(%cu) block_table(%table) k_scale(%k_scale) v_scale(%v_scale)
      {{mask = #varlen.mask<{mask}>}}
      : (!q, !k, !k, !cu, !cu, tensor<?x?xi32>, !scale, !scale) -> (!q, tensor<{heads}x?xf32>)
  return %o, %l : !q, tensor<{heads}x?xf32>
}}
"""

# Every row of the tables, by head_dim and by what fits the chip; a window on both
# sides takes the most registers.
CASES = (
    list(itertools.product(("bf16",), ("sm_80", "sm_90", "sm_86"), (64, 128, 256), ("window = (512, 64)",)))
    + list(itertools.product(("bf16",), ("sm_80",), (64, 96, 192), ("causal", "full")))
    + list(itertools.product(("bf16",), ("sm_90a",), (64, 128, 256), ("window = (512, 64)",)))
    + list(itertools.product(("bf16",), ("sm_90a",), (64, 96, 128, 192), ("causal", "full")))
    + list(itertools.product(("f32",), ("sm_80", "sm_86"), (64, 128), ("causal",)))
    + list(itertools.product(("f32",), ("sm_80",), (72, 128, 192, 224, 256), ("window = (512, 64)",)))
    + [("f32", "sm_80", 192, "causal"), ("f32", "sm_80", 224, "full")]
)

# Keys in pages: of a number of rows that types leave open, of 16, and of whole blocks.
PAGED_CASES = [
    (PAGED.replace("{page}", page), "bf16", chip, d, "causal")
    for chip in ("sm_80", "sm_90a") for d in (64, 128, 256) for page in ("?", "16", "256")
] + [(PAGED.replace("{page}", "16"), "f32", "sm_80", 128, "causal")]  # fmt: skip

# Quantised keys and values in such pages, with scales of each row and head.
I8, F8 = (QUANTISED.replace("{element}", element) for element in ("i8", "f8E4M3FN"))
QUANTISED_CASES = [
    *((I8, *case) for case in itertools.product(
        ("bf16",), ("sm_80", "sm_90a"), (64, 128, 256), ("causal", "window = (512, 64)")
    )),
    *((F8, "bf16", chip, d, "causal") for chip in ("sm_80", "sm_90a") for d in (64, 128)),
    *((I8, "f32", "sm_80", d, "causal") for d in (64, 128)),
]  # fmt: skip

TANGENT_CASES = [
    (TANGENTS, *case) for case in (
        *itertools.product(
            ("bf16",), ("sm_80", "sm_90a"), (64, 128), ("window = (512, 64)", "causal", "full")
        ),
        *itertools.product(("bf16",), ("sm_86",), (64, 128), ("window = (512, 64)",)),
        *itertools.product(("f32",), ("sm_80",), (32, 48), ("window = (512, 64)",)),
    )
]  # fmt: skip

SECOND_CASES = [
    (SECOND, *case) for case in (
        *itertools.product(
            ("bf16",), ("sm_80", "sm_90a"), (64, 128), ("window = (512, 64)", "causal", "full")
        ),
        *itertools.product(("bf16",), ("sm_86",), (64, 128), ("window = (512, 64)",)),
        *itertools.product(("f32",), ("sm_80",), (32,), ("window = (512, 64)",)),
    )
]  # fmt: skip

# Whose machine code is counted: the rows of the tables that a user's kernels have most.
COUNTED = {"sm_80": "mma", "sm_90a": "wgmma"}

KINDS = {
    FORWARD: "forward", GRADIENTS: "gradients", TANGENTS: "tangents",
    SECOND: "second derivatives",
}  # fmt: skip


def sample(cases):
    """A mask for each of the rest, on chips whose machine code is counted, with the head sizes
    that users have most; pages of 16 rows, and quantised keys of i8."""
    kept = {}
    for case in cases:
        text, dtype, chip, d, _ = case
        is_paged = text not in KINDS
        if d not in ((128,) if is_paged else (64, 128, 256)):
            continue
        is_sampled = dtype == "bf16" if text == I8 else "?x16x4x{d}x{type}" in text
        if chip in COUNTED and (not is_paged or is_sampled):
            kept.setdefault((text, dtype, chip, d), case)
    return list(kept.values())


def name_of(case):
    text, dtype, chip, d, mask = case
    page = re.search(r"!k = tensor<\?x(\?|\d+)x4x{d}x(.*)>", text)
    name = f"{KINDS.get(text, 'forward')} {dtype} {chip} d{d} {mask}"
    if not page:
        return name
    rows, element = page.groups()
    return f"{name}, pages of {rows}" + ("" if element == "{type}" else f" of {element}")


def run(*command, text=None):
    done = subprocess.run(
        list(map(str, command)), input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout + done.stderr


def find_version():
    return re.search(r"release ([\d.]+)", run("ptxas", "--version"))[1]


def counts_of(body, begin, end):
    """What a loop over blocks is made of, of each warp."""
    path = sass.path(body, begin, end)
    counts = sass.counts(path)
    row = {
        "instructions": len(path),
        "products": counts["wgmma"] + counts["mma"],
        "selects": counts["select"],
        "R2UR": sum(x.name.startswith("R2UR") for x in path),
        "local": sum(x.name.startswith(("LDL", "STL")) for x in path),
    }
    if counts["wgmma"]:
        before, exponentials = sass.exp2_before_last_wait(path)
        row["exp2 before the last wait"] = f"{before} of {exponentials}"
    return row


def measure(case, has_nvdisasm):
    """{kernel: what is known of it} of a case; registers beside it, which are only printed."""
    text, dtype, chip, d, mask = case
    source = text.format(d=d, dv=d, type=dtype, heads=8, mask=mask)
    with tempfile.TemporaryDirectory() as folder:
        ptx, cubin = os.path.join(folder, "a.ptx"), os.path.join(folder, "a.cubin")
        run("varlen-opt", "-", "--emit=ptx", f"--chip={chip}", "-o", ptx, text=source)
        notes = run("ptxas", f"-arch={chip}", "-v", ptx, "-o", cubin)
        bodies = sass.read(cubin) if has_nvdisasm and dtype == "bf16" and chip in COUNTED else {}
    kernels, registers = {}, {}
    for part in notes.split("Compiling entry function")[1:]:
        kernel = re.search(r"'f_(\w+)'", part)[1]
        registers[kernel] = int(re.search(r"Used (\d+) registers", part)[1])
        row = {}
        if spilled := int(re.search(r"(\d+) bytes spill stores", part)[1]):
            row["spills"] = spilled
        if f"f_{kernel}" in bodies:
            body = bodies[f"f_{kernel}"]
            loops = [counts_of(body, *span) for span in sass.loops(body, COUNTED[chip])]
            if loops:
                row["loops"] = loops
        if row:
            kernels[kernel] = row
    if warned := sorted(set(re.findall(r"\bC75\d\d\b", notes))):
        kernels["ptxas warns of"] = warned
    return kernels, registers


def compare(name, expected, got, has_counts):
    """Lines that say what differs."""

    def seen(kernels):
        if has_counts:
            return kernels
        rows = {
            name: {k: v for k, v in row.items() if k != "loops"} if isinstance(row, dict) else row
            for name, row in kernels.items()
        }
        return {name: row for name, row in rows.items() if row}

    expected, got = seen(expected), seen(got)
    for kernel in sorted({*expected, *got}):
        a, b = expected.get(kernel, {}), got.get(kernel, {})
        if a != b:
            yield f"{name}, {kernel}: expected\n    {json.dumps(a)}\n  got\n    {json.dumps(b)}"


def format_table(version, found):
    """The table as JSON, a line to each loop, so that differences are read line by line."""
    text = json.dumps({"ptxas": version, "kernels": found})
    return re.sub(r' ?(\{"instructions"|"(?:forward|gradients|tangents|second derivatives) )', r"\n  \1", text) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--sample", action="store_true", help="one mask of each kind")
    arguments = parser.parse_args()
    update = arguments.update
    if update and arguments.sample:
        parser.error("--update: expected all kinds, got --sample")
    try:
        sass.find_nvdisasm()
        has_nvdisasm = True
    except sass.Unavailable as error:
        if update:
            sys.exit(f"gpu-schedules.py --update: {error}")
        print(f"instructions are not counted: {error}")
        has_nvdisasm = False
    table = {} if update else json.loads(TABLE.read_text())
    version = find_version()
    if not update and version != table["ptxas"]:
        print(f"instructions are not counted: expected ptxas {table['ptxas']}, got {version}")
        has_nvdisasm = False
    cases = [(text, *case) for text in (FORWARD, GRADIENTS) for case in CASES]
    cases += TANGENT_CASES + SECOND_CASES + PAGED_CASES + QUANTISED_CASES
    if arguments.sample:
        cases = sample(cases)
    found, failed = {}, 0
    with ThreadPoolExecutor(2) as pool:
        for case, (kernels, registers) in zip(
            cases, pool.map(lambda case: measure(case, has_nvdisasm), cases)
        ):
            name = name_of(case)
            shown = (f"{k} {n}" for k, n in registers.items() if not re.search("tiles|segments", k))
            print(f"{name}: registers", *shown, flush=True)
            if kernels:
                found[name] = kernels
            if not update:
                for line in compare(name, table["kernels"].get(name, {}), kernels, has_nvdisasm):
                    failed += 1
                    print(line)
    if update:
        TABLE.write_text(format_table(version, found))
    if failed:
        print("where this is what was wanted: gpu-schedules.py --update")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
