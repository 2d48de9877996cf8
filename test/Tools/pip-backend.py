# RUN: rm -rf %t && mkdir -p %t/checkout/tools %t/bin %t/wheels
# RUN: cp %varlen-src/tools/pip_backend.py %t/checkout/tools
# RUN: cp %varlen-src/pyproject.toml %t/checkout
# RUN: %python %s %t

"""What pip gets of a checkout, of a `make` that makes a wheel and of one that fails."""

import importlib
import os
import pathlib
import sys
import tomllib

folder = pathlib.Path(sys.argv[1])
checkout = folder / "checkout"
with open(checkout / "pyproject.toml", "rb") as file:
    system = tomllib.load(file)["build-system"]
sys.path[:0] = [str(checkout / path) for path in system["backend-path"]]
backend = importlib.import_module(system["build-backend"])
os.environ["PATH"] = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
make = folder / "bin" / "make"


def write_make(text):
    make.write_text(f"#!/bin/sh\n{text}\n")
    make.chmod(0o755)


name = "varlen-0.1.0-py3-none-any.whl"
write_make(f'test "$*" = wheel && test -z "$PYTHONPATH" && mkdir -p build-release && echo made > build-release/{name}')
assert backend.build_wheel(str(folder / "wheels")) == name
assert (folder / "wheels" / name).read_text() == "made\n"
write_make("exit 3")
try:
    backend.build_wheel(str(folder / "wheels"))
except SystemExit as error:
    assert "`make wheel` has failed" in str(error)
else:
    raise AssertionError("expected an error")
