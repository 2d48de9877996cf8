#!/usr/bin/env python3
"""Where the time of a compiled function goes: its innermost loops, by samples.

    hot_loops.py --build build attention.mlir --random=1 --lengths=448,1280 --threads=1

All else than --build and --seconds are arguments of varlen-run, which is sampled while it
repeats the function. A line is an innermost loop: its share of the samples in compiled
code, its instructions, and the most frequent of these. Shares are of time, so a machine
with other work shows the same. Linux on x86-64, with perf and LLVM's tools.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import tempfile
import time

REPETITIONS = 1_000_000
MOST_LOOPS = 16


def read_code(process):
    """The anonymous executable memory of a process, by address."""
    regions = {}
    with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb") as memory:
        for line in maps:
            addresses, access, *_, inode, name = [*line.split(), ""][:6]
            if "x" in access and inode == "0" and not name:
                begin, end = (int(address, 16) for address in addresses.split("-"))
                memory.seek(begin)
                regions[begin] = memory.read(end - begin)
    return regions


def disassemble(llvm, regions):
    """Mnemonic and operands of the instructions, by address."""
    instructions = {}
    with tempfile.TemporaryDirectory() as folder:
        binary, code = pathlib.Path(folder, "code.bin"), pathlib.Path(folder, "code.o")
        for begin, content in regions.items():
            binary.write_bytes(content)
            subprocess.run(
                [llvm / "llvm-objcopy", "-I", "binary", "-O", "elf64-x86-64",
                 "--rename-section", ".data=.text,code", binary, code], check=True,
            )  # fmt: skip
            text = subprocess.run(
                [llvm / "llvm-objdump", "-d", "--no-show-raw-insn", code],
                check=True, capture_output=True, text=True,
            ).stdout  # fmt: skip
            for offset, name, operands in re.findall(
                r"^\s*([0-9a-f]+):\s+(\S+)[ \t]*(.*)$", text, re.M
            ):
                instructions[begin + int(offset, 16)] = name, operands, begin
    return instructions


def find_loops(instructions):
    """First and last address of each loop, the shortest first."""
    loops = set()
    for address, (name, operands, begin) in instructions.items():
        target = re.match(r"0x([0-9a-f]+)", operands)
        if name.startswith("j") and target:
            first = begin + int(target[1], 16)
            if first in instructions and first <= address:
                loops.add((first, address))
    return sorted(loops, key=lambda loop: loop[1] - loop[0])


def sample(build, arguments, seconds):
    """Samples by address, and the code they are in."""
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder, "perf.data")
        command = [build / "bin" / "varlen-run", *arguments, f"--repeat={REPETITIONS}"]
        with subprocess.Popen(command) as process:
            try:
                # Behind compilation, which is over once there is code to run.
                while process.poll() is None and not read_code(process.pid):
                    time.sleep(0.1)
                if process.poll() is not None:
                    raise SystemExit(f"varlen-run ended with status {process.returncode}")
                subprocess.run(
                    ["perf", "record", "-q", "-o", data, "-e", "cpu-clock", "-F", "1999",
                     "-p", str(process.pid), "--", "sleep", str(seconds)], check=True,
                )  # fmt: skip
                code = read_code(process.pid)
            finally:
                process.kill()
        addresses = subprocess.run(
            ["perf", "script", "-i", data, "-F", "ip"], check=True, capture_output=True, text=True
        ).stdout
    return collections.Counter(int(address, 16) for address in addresses.split()), code


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--llvm", default="/usr/lib/llvm-22/bin", type=pathlib.Path)
    parser.add_argument("--seconds", default=10, type=float)
    own, arguments = parser.parse_known_args()
    samples, code = sample(own.build.resolve(), arguments, own.seconds)
    instructions = disassemble(own.llvm, code)
    loops = find_loops(instructions)
    shares = collections.Counter()
    for address, count in samples.items():
        if address in instructions:
            inner = next((loop for loop in loops if loop[0] <= address <= loop[1]), None)
            shares[inner] += count
    compiled = shares.total()
    print(f"{compiled / samples.total():.3f} of {samples.total()} samples in compiled code")
    for loop, count in shares.most_common(MOST_LOOPS):
        names = collections.Counter()
        if loop:
            names.update(
                name for at, (name, *_) in instructions.items() if loop[0] <= at <= loop[1]
            )
        what = ", ".join(f"{number} {name}" for name, number in names.most_common(6))
        print(f"{count / compiled:.3f} {f'{names.total()}: {what}' if loop else 'no loop'}")


if __name__ == "__main__":
    main()
