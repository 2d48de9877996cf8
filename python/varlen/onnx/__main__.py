"""The command varlen-import: python -m varlen.onnx."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile


def _count(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of bytes, got {text!r}")
    return int(text)


def _check_outputs(options):
    """That no file is written over another one of the command."""
    files = {"the model": options.model}
    for what, path in (("-o", options.output), ("--weights", options.weights)):
        if not path:
            continue
        for other, taken in files.items():
            if os.path.realpath(path) == os.path.realpath(taken):
                raise OSError(f"{what}: '{path}' is {other}: expected another file")
        files[what] = path


class _Version(argparse.Action):
    """Prints the version of the library, which is loaded for it alone."""

    def __call__(self, parser, *_):
        import varlen

        try:
            version = varlen.__version__
        except OSError as error:
            parser.exit(1, f"varlen-import: error: {error}\n")
        print(f"Varlen {version}")
        parser.exit()


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="varlen-import",
        description="Makes a function of MLIR of a model of ONNX, for varlen-opt and varlen-run.",
    )
    parser.add_argument("model", help="the model, a .onnx file")
    parser.add_argument("-o", "--output", help="the MLIR file; default: standard output")
    parser.add_argument("--weights", help="the safetensors file of the weights that become arguments; "
                        "default: all are constants in the text")  # fmt: skip
    parser.add_argument("--name", default="main", help="of the function; default: main")
    parser.add_argument("--inline-bytes", type=_count, default=1024, metavar="N",
                        help="with --weights: those of at most N bytes are constants all the same; default: 1024")  # fmt: skip
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version of Varlen and exit")
    return parser.parse_args(arguments)


def _write_all(files):
    """Writes files, by path a function that writes to a path: all of them or none."""
    written = []
    try:
        for path, write in files.items():
            descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            os.close(descriptor)
            written.append((temporary, path))
            write(pathlib.Path(temporary))
        for temporary, path in written:
            # As a file that is made in the ordinary way.
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, path)
    except BaseException:
        for temporary, _ in written:
            pathlib.Path(temporary).unlink(missing_ok=True)
        raise


def main(arguments=None):
    """Returns the status: 0, 1 after an error; 2 for wrong arguments comes from argparse."""
    options = _parse(arguments)
    try:
        from .. import safetensors
        from . import ModelError, import_model
    except ImportError as error:
        print(
            f"varlen-import: error: {error}: expected the packages that varlen[onnx] names",
            file=sys.stderr,
        )
        return 1
    try:
        _check_outputs(options)
        inline_bytes = options.inline_bytes if options.weights else sys.maxsize
        function = import_model(options.model, name=options.name, inline_bytes=inline_bytes)
        files = {}
        if options.output:
            files[pathlib.Path(options.output)] = lambda path: path.write_text(function.text)
        if options.weights:
            files[pathlib.Path(options.weights)] = lambda path: safetensors.write(
                path, function.weights
            )
        _write_all(files)
        if not options.output:
            sys.stdout.write(function.text)
    except (ModelError, OSError) as error:
        print(f"varlen-import: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
