#!/usr/bin/env python3
"""Says which sources lack the licence header, or a guard named as the file."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LICENCE = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
FOLDERS = ["cmake", "executor/include", "executor/lib", "include", "lib", "tools"]
SUFFIXES = {".h", ".c", ".cpp", ".td"}


def problems(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    head = text.split("\n", 1)[0]
    if path.name not in head:
        yield f"wanted a first line that names the file, got: {head}"
    if LICENCE not in text:
        yield f"wanted a line with '{LICENCE}'"
    if not text.isascii():
        yield "wanted ASCII only"
    if path.suffix == ".h":
        guard = re.search(r"^#ifndef (\w+)\n#define \1$", text, re.M)
        # A public header's guard is the path it is included by.
        root = next(i for i, part in enumerate(path.parts) if part != "executor")
        public = path.parts[root] == "include"
        wanted = re.sub(r"\W", "_", "_".join(path.parts[root + 1 :])).upper()
        if not guard or (public and guard[1] != wanted):
            yield f"wanted the guard {wanted}, got {guard[1] if guard else 'none'}"
        elif not re.search(rf"^#endif (//|/\*) {guard[1]}\b.*\n?\Z", text, re.M):
            yield f"wanted '#endif // {guard[1]}' as the last line"


def main():
    found = False
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in SUFFIXES:
                path = file.relative_to(ROOT)
                for problem in problems(path):
                    print(f"{path}: {problem}")
                    found = True
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
