"""Reads assembly that llc wrote and prints the innermost loops that multiply.

One line for each loop whose body has at least `--fma` multiply-adds (or dot
products) on vectors: how many, on which registers, and how many vector registers
are spilled or reloaded within the loop.
"""

import argparse
import re
import sys


def inner_loops(lines):
    """Yields the instructions of each innermost loop, in order."""
    for start, line in enumerate(lines):
        if "Inner Loop Header" not in line:
            continue
        label = start
        while not re.match(r"\.LBB\w+:", lines[label]):
            label -= 1
        name = lines[label].split(":")[0]
        jump = re.compile(
            r"\s+(j\w+|b|b\.\w+|cbn?z|tbn?z)\s.*" + re.escape(name) + r"\b"
        )
        ends = [i for i in range(label, len(lines)) if jump.match(lines[i])]
        if ends:
            yield [
                line
                for line in lines[label : ends[-1] + 1]
                if re.match(r"\s+[a-z]", line)
            ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fma", type=int, default=8)
    arguments = parser.parse_args()
    fma = re.compile(r"\s+(vfmadd|vdpbf16ps|fmla)\w*\s.*?(zmm|ymm|xmm|\bv)")
    for body in inner_loops(sys.stdin.read().split("\n")):
        products = [m for m in map(fma.match, body) if m]
        if len(products) < arguments.fma:
            continue
        kinds = ", ".join(sorted({" ".join(m.groups()) for m in products}))
        spills = sum(int(size) >= 16 for size in re.findall(
            r"(\d+)-byte (?:Folded )?(?:Spill|Reload)", "\n".join(body)))  # fmt: skip
        print(
            f"loop: {len(products)} products ({kinds}), "
            f"{len(body)} instructions, {spills} spills"
        )


if __name__ == "__main__":
    main()
