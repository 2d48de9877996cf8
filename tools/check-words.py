#!/usr/bin/env python3
"""Refuses words that CONTRIBUTING.md replaces, in the files that git tracks.

  tools/check-words.py [FILE...]

The table under "Words" is the list: the left column has forms, separated by commas, and says
in brackets which of them count at the beginning of a sentence only. Prints file:line: form,
and exits with 1 if there is any."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = {".md", ".td", ".h", ".c", ".cpp", ".py", ".cmake", ".sh", ".mlir"}
# The list itself, and text that stays as it was written.
EXCLUDED = ("CONTRIBUTING.md", "CHANGELOG.md", "docs/notes/", "tools/check-words.py")
# A sentence begins after a full stop, or with a comment, a docstring or a line of a list.
BEGINNING = r"(?:(?<=[.;:] )|(?:^|(?<=//|\*\*|##)|(?<=[#|*-])|(?<=///)|(?<=\"\"\"))\s*)"


def read_forms():
    """A regular expression for all forms of the table."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| (.+?) \| .+ \|$", page.partition("\n## Words\n")[2], re.MULTILINE)
    anywhere, first = [], []
    for row in rows[1:]:
        forms, bracket, _ = row.partition(" (")
        (first if bracket else anywhere).extend(re.escape(f) for f in forms.split(", "))
    assert anywhere and first, "expected a table of words in CONTRIBUTING.md"
    # "That of" in the middle of a line of prose may be the end of a sentence that
    # began before: only a capital shows a beginning.
    capital = "|".join(form[0].upper() + form[1:] for form in first)
    return re.compile(rf"(?i:\b(?:{'|'.join(anywhere)})\b)|{BEGINNING}(?:{capital})\b")


def main():
    names = sys.argv[1:] or subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    forms = read_forms()
    found = 0
    for name in names:
        path = ROOT / name
        if path.suffix not in SUFFIXES or name.startswith(EXCLUDED) or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(errors="replace").split("\n"), 1):
            for form in forms.findall(line):
                print(f"{name}:{number}: '{form.strip()}': see Words in CONTRIBUTING.md")
                found += 1
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
