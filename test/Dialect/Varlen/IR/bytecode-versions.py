# RUN: %python %s
"""Files written by every version of the dialect are read as they were meant; one of a
version that is newer than the reader's is refused.

`Inputs/versions/N.mlirbc` was written by version N, and `N.mlir` is what it says, in
today's text. A file of a released version is never written again. The file of the next one
is, whenever the graph level gets something that a file can hold:

    varlen-opt N.mlir --emit-bytecode -o N.mlirbc
"""

import pathlib
import re
import subprocess

FILES = pathlib.Path(__file__).resolve().parent / "Inputs" / "versions"
GRAPH_LEVEL = pathlib.Path(__file__).resolve().parents[4] / "include/varlen/Dialect/Varlen/IR"

# MLIR's own versions of bytecode, all of which it can write.
ENCODINGS = range(7)


def run(data, *options):
    return subprocess.run(
        ["varlen-opt", "-", *options], input=data, capture_output=True, check=False
    )


def read(data):
    done = run(data)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def write(text, encoding):
    done = run(text, "--emit-bytecode", f"--emit-bytecode-version={encoding}")
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def find_operations():
    """The operations of the graph level, and what their regions hold."""
    text = (GRAPH_LEVEL / "VarlenOps.td").read_text()
    # Behind these are lists of work, which are on the way down.
    text = text[: text.index("\n// work_tiles\n")]
    return set(re.findall(r'^def \w+\s*:\s*\w+<"(\w+)"', text, re.M)) | {"lookup", "yield"}


def check_newest(text):
    """It has every operation, and what each takes and knows; MLIR's older encodings of
    it are read, too."""
    words = text.decode()
    missing = [name for name in find_operations() if not re.search(rf"\bvarlen\.{name} ", words)]
    missing += [
        clause
        for clause in (
            "seqused_q(", "seqused_k(", "q_offset(", "sink(", "dlse(", "outs(", "captures(",
            "block_table(", "k_scale(", "v_scale(", "scale =", "wrt_captures =", "#varlen.mask<", "#varlen.chunk_mask<",
            "top_left", "!varlen.table<", "memref<",
        )
        if clause not in words
    ]  # fmt: skip
    assert not missing, f"expected {missing} in the file of the newest version"
    for encoding in ENCODINGS:
        assert read(write(text, encoding)) == text, f"bytecode {encoding} of MLIR"


def check_newer(data, newest):
    """The version is a number in front of which nothing but its size tells it from
    others: whichever byte it is, the next number is refused. In MLIR's encoding a
    number below 128 is twice itself and one."""
    message = f"expected version 1 to {newest} of the varlen dialect, got {newest + 1}"
    places = [i for i, byte in enumerate(data) if byte == 2 * newest + 1]
    texts = (
        run(data[:i] + bytes([2 * newest + 3]) + data[i + 1 :]).stderr.decode(errors="replace")
        for i in places
    )
    assert any(message in text for text in texts), message


def main():
    versions = sorted(FILES.glob("*.mlirbc"), key=lambda file: int(file.stem))
    assert [int(file.stem) for file in versions] == list(range(1, len(versions) + 1))
    for file in versions:
        text = file.with_suffix(".mlir").read_bytes()
        assert read(file.read_bytes()) == text, file
    check_newest(text)
    check_newer(versions[-1].read_bytes(), len(versions))


if __name__ == "__main__":
    main()
