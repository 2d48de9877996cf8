"""Runs the examples of Markdown pages and looks for the files they name.

An example is a block marked as mlir that has a RUN line, or that has a function
and leaves nothing out by "..." (varlen-opt has to read it). Other blocks are
fragments, or files of run-page.py, which begin with their name. Commands that load
$VARLEN_PLUGIN are left out where there is none. A name within backquotes that starts
with a folder of the repository has to exist, and so has what a link leads to.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDERS = "benchmarks|cmake|docs|examples|include|lib|python|test|tools"
NAME = re.compile(rf"`((?:{FOLDERS})/[\w./-]+)`|\]\(([^):#\s]+)(?:#[^)]*)?\)")


def examples(text):
    for match in re.finditer(r"^( *)```mlir\n(.*?)^ *```$", text, re.M | re.S):
        block = textwrap.dedent(match[2])
        line = text[: match.start()].count("\n") + 1
        joined = re.sub(r" \\\n// RUN: *", " ", block)
        runs = re.findall(r"^// RUN: (.*)$", joined, re.M)
        is_file = re.match(r"// [\w-]+\.mlir\n", block)
        whole = not is_file and "..." not in block and re.search(r"^ *func\.func", block, re.M)
        if runs or whole:
            yield line, block, runs or ["varlen-opt %s"]


def run(command, file):
    script = "set -o pipefail; " + re.sub(r"%s\b", str(file), command)
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False
    )


def main():
    work = pathlib.Path(sys.argv[1])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    count = failed = 0
    for page in map(pathlib.Path, sys.argv[2:]):
        text = page.read_text()
        for line, block, runs in examples(text):
            file = work / f"{page.stem}-{line}.mlir"
            file.write_text(block)
            for command in runs:
                if "$VARLEN_PLUGIN" in command and "VARLEN_PLUGIN" not in os.environ:
                    continue
                count += 1
                result = run(command, file)
                if result.returncode:
                    failed += 1
                    print(f"{page}:{line}: {command}\n{result.stdout}{result.stderr}")
        for match in NAME.finditer(text):
            path = ROOT / match[1] if match[1] else page.parent / match[2]
            if not path.exists():
                failed += 1
                print(f"{page}: names {match[1] or match[2]}, which is not there")
    print(f"{count} examples, {failed} failed")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
