#!/usr/bin/env python3
"""Compares the machine code of our attention kernel with IREE's. Needs no GPU.

Both compile dense attention of f16 for sm_80; IREE once with the blocks that it
chooses itself and once with ours. Counted are the registers and spills that ptxas
reports and the PTX instructions of the innermost loop over keys that has no mask,
per score: an element of the product of queries and keys that the loop needs (IREE
computes scores again for each part of the value's columns, where it cuts those).

    tools/venv.sh build benchmarks/requirements-iree.txt
    build/venv/bin/python benchmarks/gpu_code.py

It needs ptxas.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import varlen

CHIP = "sm_80"
HEADS, ROWS = 16, 4096
HEAD_DIMS = [64, 128]
MOVES = ("ld", "st", "cp", "ldmatrix", "bar", "cvta", "prefetch")


def run(*command, text=None):
    done = subprocess.run(
        list(map(str, command)), input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout + done.stderr


# ---- PTX


def blocks_of(body):
    """Basic blocks of a kernel by label: (opcodes, labels that it may jump to)."""
    blocks, name, falls = {"": ([], [])}, "", True
    for line in map(str.strip, body.splitlines()):
        if match := re.match(r"(\$\w+):", line):
            if falls:
                blocks[name][1].append(match[1])
            name, falls = match[1], True
            blocks[name] = ([], [])
            continue
        match = re.match(r"(@!?%\w+\s+)?([a-z][\w.]*)", line)
        if not match:
            continue
        if not falls:  # a block without a label follows a jump
            continue
        blocks[name][0].append(match[2])
        if match[2].startswith("bra"):
            blocks[name][1].append(re.search(r"(\$\w+);", line)[1])
            falls = bool(match[1])
        elif match[2].startswith("ret"):
            falls = bool(match[1])
    return blocks


def loops_of(blocks):
    """The bodies of the innermost loops, as sets of labels."""
    loops, state = {}, {}
    before = collections.defaultdict(set)
    for name, (_, targets) in blocks.items():
        for target in targets:
            before[target].add(name)

    def add(header, tail):
        body, work = {header}, [tail]
        while work:
            block = work.pop()
            if block not in body:
                body.add(block)
                work.extend(before[block])
        loops.setdefault(header, set()).update(body)

    def visit(name):
        state[name] = "open"
        for target in blocks[name][1]:
            if state.get(target) == "open":
                add(target, name)
            elif target not in state:
                visit(target)
        state[name] = "done"

    visit("")
    return [
        body for header, body in loops.items()
        if not any(other in body for other in loops if other != header)
    ]  # fmt: skip


def inner_loop(ptx):
    """Counts of opcodes in the shortest innermost loop with products: the one
    that has no mask."""
    found = []
    for body in re.split(r"\.entry", ptx)[1:]:
        blocks = blocks_of(body)
        for loop in loops_of(blocks):
            names = [opcode for label in loop for opcode in blocks[label][0]]
            if any(opcode.startswith("mma") for opcode in names):
                found.append(collections.Counter(x.split(".")[0] for x in names))
    if not found:
        sys.exit("expected a loop with mma.sync, found none")
    return min(found, key=lambda counts: counts.total())


def registers(ptx, folder):
    """(registers, bytes of spills) of the kernel that has the products."""
    source = folder / "kernel.ptx"
    source.write_text(ptx)
    log = run("ptxas", f"-arch={CHIP}", "-v", source, "-o", folder / "kernel.cubin")
    parts = re.split(r"Compiling entry function", log)[1:]
    most = max(parts, key=lambda part: int(re.search(r"Used (\d+) reg", part)[1]))
    spills = sum(map(int, re.findall(r"(\d+) bytes spill", most)))
    return int(re.search(r"Used (\d+) registers", most)[1]), spills


# ---- The two compilers


def ours(d, folder):
    """(PTX, queries and keys of a block, warps)."""
    text = varlen.text.attn(dtype="f16", heads=HEADS, head_dim=d, lse=False)
    compiler, ptx = varlen.find_tool("varlen-opt"), folder / "ours.ptx"
    run(compiler, "-", "--emit=ptx", f"--chip={CHIP}", "-o", ptx, text=text)
    scheduled = run(compiler, "-", f"--varlen-assign-schedule=chip={CHIP}", text=text)
    warps, queries, keys = (
        int(re.search(rf"#varlen.gpu_schedule<.*?\b{name} = (\d+)", scheduled)[1])
        for name in ("warps", "block_m", "kv_block")
    )
    return ptx.read_text(), (queries, keys), warps


def attention(d, block, warps):
    """IREE's operation; `block` forces its tiles to that many queries and keys, and
    as many warps."""
    tensor = f"tensor<{HEADS}x{ROWS}x{d}xf16>"
    results = ("b, m, d", "b, n, d", "b, n, k", "", "b, m, k")
    maps = ", ".join(f"affine_map<(b, m, n, d, k) -> ({r})>" for r in results)
    inner = outer = ""
    if block:
        thread = "#iree_gpu.derived_thread_config"
        kind = "mma_kind = #iree_gpu.mma_layout<NV_MMA_SYNC_F32_16x8x16_F16>"
        basis = f"subgroup_basis = [[1, {warps}, 1, 1, 1]"
        inner = (
            ", decomposition_config = {qk_attrs = {lowering_config = "
            f"#iree_gpu.lowering_config<{{{kind}, promote_operands = [0, 1], "
            f"promotion_types = [{thread}, {thread}], {basis}, [0, 1, 2, 3]]}}>}}, "
            f"pv_attrs = {{lowering_config = #iree_gpu.lowering_config<{{{kind}, "
            f"promote_operands = [1], promotion_types = [{thread}], "
            f"{basis}, [0, 1, 2, 4]]}}>}}}}"
        )
        outer = (
            "{compilation_info = #iree_codegen.compilation_info<lowering_config = "
            "#iree_gpu.lowering_config<{promote_operands = [0, 1, 2], "
            f"promotion_types = [{thread}, {thread}, {thread}], workgroup = "
            f"[1, {block[0]}, 0, 0, {d}], reduction = [0, 0, {block[1]}, 0, 0]}}>, "
            "translation_info = #iree_codegen.translation_info<pipeline = "
            "#iree_gpu.pipeline<VectorDistribute> workgroup_size = "
            f"[{32 * warps}, 1, 1] subgroup_size = 32>>}}"
        )
    return f"""
func.func @attention(%q: {tensor}, %k: {tensor}, %v: {tensor}) -> {tensor} {{
  %scale = arith.constant {d**-0.5} : f16
  %e = tensor.empty() : {tensor}
  %o = iree_linalg_ext.attention <indexing_maps = [{maps}]{inner}> {outer}
      ins(%q, %k, %v, %scale : {tensor}, {tensor}, {tensor}, f16) outs(%e : {tensor}) {{
  ^bb0(%s: f32):
    iree_linalg_ext.yield %s : f32
  }} -> {tensor}
  return %o : {tensor}
}}
"""


def iree(d, block, warps, folder):
    """(PTX, its block, the share of its scores that are not computed again)."""
    source, dump = folder / "iree.mlir", folder / f"iree-{bool(block)}"
    source.write_text(attention(d, block, warps))
    compiler = pathlib.Path(sys.executable).parent / "iree-compile"
    if not compiler.exists():
        sys.exit(f"no {compiler}: see --help")
    run(
        compiler, source, "--iree-hal-target-device=cuda", f"--iree-cuda-target={CHIP}",
        f"--iree-hal-dump-executable-files-to={dump}", "-o", folder / "iree.vmfb",
    )  # fmt: skip
    configured = next(dump.glob("configured*.mlir")).read_text()
    queries, columns = re.search(
        r"workgroup = \[1, (\d+), 0, 0, (\d+)\]", configured
    ).groups()
    keys = re.search(r"reduction = \[0, 0, (\d+), 0, 0\]", configured)[1]
    ptx = next(dump.glob("*.ptx")).read_text()
    return ptx, (int(queries), int(keys)), int(columns) / d


def row(d, who, ptx, block, warps, share, folder):
    count, spills = registers(ptx, folder)
    opcodes = inner_loop(ptx)
    scores = block[0] * block[1] / (32 * warps) * share
    moves = sum(opcodes[name] for name in MOVES)
    cells = [
        d, who, f"{block[0]} x {block[1]}", count, spills, opcodes.total(),
        opcodes["mma"], f"{opcodes.total() / scores:.1f}",
        f"{(opcodes.total() - moves) / scores:.1f}",
    ]  # fmt: skip
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ours", action="store_true", help="leave IREE out")
    arguments = parser.parse_args()
    print("| head_dim | compiler | queries x keys | registers | bytes spilled "
          "| instructions in the loop | of them mma | per score | without moves |")  # fmt: skip
    print("|" + "---|" * 9)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for d in HEAD_DIMS:
            ptx, block, warps = ours(d, folder)
            row(d, "ours", ptx, block, warps, 1, folder)
            for forced in () if arguments.ours else (block, None):
                ptx, used, share = iree(d, forced, warps, folder)
                who = "IREE, our block" if forced else "IREE, its choice"
                row(d, who, ptx, used, warps, share, folder)


if __name__ == "__main__":
    main()
