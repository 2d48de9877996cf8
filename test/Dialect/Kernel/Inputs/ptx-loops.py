"""Reads PTX, or a module with a gpu.binary of PTX, from its standard input and
prints what the innermost loops that use the tensor cores are made of.

    ptx-loops.py [--at-most N] [--ptxas FILE]

One line for each such loop: its instructions by kind, most first. Fails if one
has more than N instructions. With --ptxas, FILE gets the PTX, ptxas assembles
it for the target that it names, and a line says what it needs.
"""

import argparse
import collections
import re
import subprocess
import sys

# Types, rounding and such: what does not make an instruction another one.
DETAIL = re.compile(
    r"\.(rn|ftz|aligned|sync|approx|row|col|shared|global|to|x2|x4|m8n8|m16n8k16"
    r"|b16|b32|b64|s32|u32|s64|u64|f16|f16x2|bf16|bf16x2|f32)\b"
)


def ptx_of(text):
    """The PTX in the assembly attribute of a module, or the text itself."""
    match = re.search(r'(?:assembly|bin) = "((?:[^"\\]|\\.)*)"', text)
    if not match:
        return text
    code = re.sub(r"\\([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), match[1])
    return code.replace('\\"', '"').replace("\\\\", "\\").rstrip("\0")


def loops(ptx):
    """Yields the instructions of each innermost loop: from a label to a jump back
    to it, with no such loop in between."""
    names, labels, found = [], {}, []
    for line in map(str.strip, ptx.split("\n")):
        if match := re.match(r"(\$\w+):", line):
            labels[match[1]] = len(names)
            continue
        match = re.match(r"(?:@!?%\w+\s+)?([a-z][\w.]*)", line)
        if not match:
            continue
        names.append(match[1])
        target = re.search(r"(\$\w+);", line)
        if match[1].startswith("bra") and target and target[1] in labels:
            found.append((labels[target[1]], len(names)))
    for begin, end in found:
        if not any(begin <= b and e <= end and (b, e) != (begin, end) for b, e in found):
            yield names[begin:end]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-most", type=int)
    parser.add_argument("--ptxas", metavar="FILE")
    arguments = parser.parse_args()
    ptx = ptx_of(sys.stdin.read())
    found = 0
    for body in loops(ptx):
        if not any(name.startswith("mma") for name in body):
            continue
        found += 1
        counts = collections.Counter(DETAIL.sub("", name) for name in body)
        kinds = ", ".join(f"{n} {name}" for name, n in counts.most_common())
        print(f"loop of {len(body)} instructions: {kinds}")
        if arguments.at_most and len(body) > arguments.at_most:
            sys.exit(f"expected at most {arguments.at_most} instructions")
    if not found:
        sys.exit("expected a loop with mma.sync, got none")
    if arguments.ptxas:
        with open(arguments.ptxas, "w", encoding="ascii") as file:
            file.write(ptx)
        chip = re.search(r"^\.target (\w+)", ptx, re.M)[1]
        result = subprocess.run(
            ["ptxas", f"-arch={chip}", "-v", arguments.ptxas, "-o", arguments.ptxas + ".cubin"],
            check=False,
            capture_output=True,
            text=True,
        )
        if result.returncode:
            sys.exit(result.stderr)
        registers = re.search(r"Used (\d+) registers", result.stderr)[1]
        spills = sum(map(int, re.findall(r"(\d+) bytes spill", result.stderr)))
        print(f"ptxas: {registers} registers, {spills} bytes spilled")


if __name__ == "__main__":
    main()
