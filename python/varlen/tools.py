"""Calls the command-line tools."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile


class Error(Exception):
    """A tool has refused its input; the message is the tool's."""


def find_tool(name):
    """The path of a tool: of the build that VARLEN_BUILD names, else next to this
    package, in an installation's bin/ or a checkout's build/bin/."""
    package = pathlib.Path(__file__).resolve().parent
    build = os.environ.get("VARLEN_BUILD")
    places = [pathlib.Path(build) / "bin"] if build else [
        package / "bin",
        package.parent.parent / "bin",
        package.parent.parent / "build" / "bin",
    ]  # fmt: skip
    for place in places:
        if (place / name).is_file():
            return place / name
    raise FileNotFoundError(
        f"no {name} in {', '.join(map(str, places))}: build it, or set VARLEN_BUILD"
    )


def call(name, *arguments, text=None):
    """Runs a tool with `text` as its standard input; returns its output."""
    command = [str(find_tool(name)), *map(str, arguments)]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        message = done.stderr.strip() or f"{name} ended with status {done.returncode}"
        raise Error(message)
    return done.stdout


def run(module, inputs=None, *, entry=None, threads=None, figures=None, **flags):
    """Runs a function of `module` (MLIR text, or the path of a file) on a dict of
    arrays; returns its results as a dict of arrays. With a list of such inputs it is
    compiled once, runs on each of them, and returns a list of results.

    Other flags are those of varlen-run: repeat=3, target="avx2", peak=True,
    lengths=[3, 5], extent={"q:0": 8}, ... A dict given as `figures` receives what
    the run has measured.
    """
    from . import safetensors  # Wants numpy, which the rest of this does not.

    options = []
    for key, value in {"entry": entry, "threads": threads, **flags}.items():
        if value is None or value is False:
            continue
        option = "--" + key.replace("_", "-")
        if isinstance(value, dict):
            options += [f"{option}={k}={v}" for k, v in value.items()]
            continue
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        options.append(option if value is True else f"{option}={value}")
    is_text = isinstance(module, str) and "\n" in module
    with tempfile.TemporaryDirectory(prefix="varlen-") as folder:
        folder = pathlib.Path(folder)
        arguments = ["-" if is_text else module]
        several = isinstance(inputs, (list, tuple))
        if several and not inputs:
            raise ValueError("inputs: expected a dict or a list of at least one, got no input")
        outputs = []
        for number, given in enumerate(inputs if several else [inputs]):
            outputs.append(folder / f"out{number}.safetensors")
            arguments += ["-o", outputs[-1]]
            if given:
                safetensors.write(folder / f"in{number}.safetensors", given)
                arguments.append(folder / f"in{number}.safetensors")
        arguments += options
        if figures is not None:
            arguments.append(f"--json={folder / 'figures.json'}")
        call("varlen-run", *arguments, text=module if is_text else None)
        if figures is not None:
            figures.update(json.loads((folder / "figures.json").read_text()))
        results = [safetensors.read(output) for output in outputs]
        return results if several else results[0]


def _become(name):
    """Runs a tool in place of this process, with its arguments."""
    path = str(find_tool(name))
    os.execv(path, [path, *sys.argv[1:]])


def varlen_opt():
    """The command varlen-opt."""
    _become("varlen-opt")


def varlen_run():
    """The command varlen-run."""
    _become("varlen-run")
