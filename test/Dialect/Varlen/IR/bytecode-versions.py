# RUN: %python %s
"""Files written by every version of the dialect are read as they were meant; one of a
version that is newer than the reader's is refused.

`Inputs/versions/N.mlirbc` was written by version N. Never write one again: with the
next version comes the next file.
"""

import pathlib
import subprocess

FILES = pathlib.Path(__file__).resolve().parent / "Inputs" / "versions"


def read(data):
    return subprocess.run(
        ["varlen-opt", "-"], input=data, capture_output=True, check=False
    )


def main():
    expected = (FILES / "expected.mlir").read_bytes()
    versions = sorted(FILES.glob("*.mlirbc"), key=lambda file: int(file.stem))
    assert [int(file.stem) for file in versions] == list(range(1, len(versions) + 1))
    for file in versions:
        done = read(file.read_bytes())
        assert done.returncode == 0, done.stderr
        assert done.stdout == expected, file

    # The version is a number in front of which nothing but its size tells it from
    # others: whichever byte it is, the next number is refused. In MLIR's encoding a
    # number below 128 is twice itself and one.
    newest = len(versions)
    data = versions[-1].read_bytes()
    message = f"expected version 1 to {newest} of the varlen dialect, got {newest + 1}"
    places = [i for i, byte in enumerate(data) if byte == 2 * newest + 1]
    texts = (
        read(data[:i] + bytes([2 * newest + 3]) + data[i + 1 :]).stderr.decode(errors="replace")
        for i in places
    )
    assert any(message in text for text in texts), message


if __name__ == "__main__":
    main()
