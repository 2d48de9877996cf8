"""Runs the Python examples of a page, one after the other in one namespace."""

import pathlib
import re
import sys


def main():
    page = pathlib.Path(sys.argv[1])
    text = page.read_text()
    namespace, count = {}, 0
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
        # Lines of an error are those of the page.
        line = text[: match.start(1)].count("\n")
        exec(compile("\n" * line + match[1], str(page), "exec"), namespace)
        count += 1
    print(f"{count} examples")


main()
