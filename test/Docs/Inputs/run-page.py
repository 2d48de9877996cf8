"""Does what Markdown pages tell their reader, one page after the other in one folder.

A block whose first line is a comment with a file's name ("// step.mlir") becomes that
file. A block marked as sh is run, and what it prints has to be the block marked as text
that follows, if one does; "..." there stands for anything. Other blocks are not run.

The environment is empty, but for what the page has its reader export or give an alias to, in
lines of four spaces, where the build is VARLEN_BUILD and what is installed VARLEN.

usage: run-page.py FOLDER PAGE...
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
INSTALL = re.compile(r"^    ((?:export|alias) .*)$", re.M)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"(?://|#|/\*) ([\w-]+\.\w+)(?: \*/)?$", re.M)


# What a tool says to stderr while it runs for more than a second.
PROGRESS = re.compile(r"^(?:compiling|run \d+ of \d+), \d+ s\n", re.M)


def matches(expected, output):
    output = PROGRESS.sub("", output)
    pattern = ".*?".join(map(re.escape, expected.strip().split("...")))
    return re.fullmatch(pattern, output.strip(), re.S)


def read_install(text):
    """The commands that a page wants in each shell."""
    places = {
        "$PWD/build/prefix": os.environ.get("VARLEN", ""), "$HOME/varlen": os.environ.get("VARLEN", ""),
        "$PWD/build": os.environ.get("VARLEN_BUILD", ""), "$PWD": str(ROOT),
    }  # fmt: skip
    commands = ["shopt -s expand_aliases", *INSTALL.findall(text)]
    for place, path in places.items():
        commands = [command.replace(place, path) for command in commands]
    return "".join(f"{command}\n" for command in commands)


def main():
    folder = pathlib.Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # python3 is the one that runs this. A cache and limits of threads change nothing else.
    kept = ("VARLEN_CACHE_DIR", "OPENBLAS_NUM_THREADS")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment["PATH"] = f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin"
    environment["HOME"] = str(folder)
    files = commands = 0
    for page in map(pathlib.Path, sys.argv[2:]):
        text, output = page.read_text(), None
        install = read_install(text)
        for block in BLOCK.finditer(text):
            language, body = block.groups()
            place = f"{page}:{text[: block.start()].count(chr(10)) + 1}"
            if language == "sh":
                result = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", install + body], cwd=folder, text=True,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, check=False, env=environment,
                )  # fmt: skip
                # What varlen-run says on a busy machine.
                output = re.sub(r"^compiling, \d+ s\n", "", result.stdout, flags=re.M)
                commands += 1
                if result.returncode:
                    sys.exit(f"{place}: status {result.returncode}:\n{output}")
            elif language == "text" and output is not None:
                if not matches(body, output):
                    sys.exit(f"{place}: expected\n{body}\ngot\n{output}")
                output = None
            elif name := FILE.match(body):
                (folder / name[1]).write_text(body)
                files += 1
    print(f"{files} files, {commands} commands")


if __name__ == "__main__":
    main()
