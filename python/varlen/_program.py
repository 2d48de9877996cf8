"""varlen.compile: functions of MLIR text, called on arrays."""

from __future__ import annotations

import ctypes
import os
import re
import struct
from typing import Any

from . import _cache, _library
from ._arrays import ELEMENTS, Array, check_writable, export, export_all, maker_of
from ._options import check_threads

# How `struct` packs a scalar of that MLIR name.
_FORMATS = {
    "f16": "e", "f32": "f", "f64": "d", "i1": "?", "i8": "b", "i16": "h", "i32": "i",
    "i64": "q",
}  # fmt: skip


# A line that ends as the name of a file does; a module ends with a brace, or in a comment.
_FILE_NAME = re.compile(r"(?!\s*//)[^\n{}]+\.mlir(bc)?")


def _pack(parameter, value):
    """The bytes of a Python number as a scalar argument."""
    element = ELEMENTS[parameter.code, parameter.bits]
    try:
        if element != "bf16":
            return struct.pack(_FORMATS[element], value)
        # Rounded to nearest, even; a NaN stays one.
        (bits,) = struct.unpack("I", struct.pack("f", value))
        bits |= 0x400000 * (value != value)
        return struct.pack("H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF)
    except (struct.error, OverflowError) as error:
        raise TypeError(
            f"expected a number of {element}, got {value!r} ({error})"
        ) from None


def _export_scalar(parameter, value):
    """The address of a scalar's DLTensor, and what has to live as long."""
    if hasattr(value, "__dlpack__"):
        return export(value)
    data = ctypes.create_string_buffer(_pack(parameter, value))
    tensor = _library.Tensor(
        ctypes.addressof(data), _library.CPU, 0, 0, parameter.code, parameter.bits, 1
    )
    return ctypes.addressof(tensor), (tensor, data)


class Function:
    """A compiled function; called on arrays with DLPack, and numbers for scalars.

    `name`; `arguments` and `results` are tuples of parameters: name, shape (None: a
    dynamic extent), ...
    """

    def __init__(self, function: _library.Function):
        self._function, self._frames = function, _library.Frames(function)
        self.name, self.arguments = function.name, function.arguments
        self.results = function.results
        self._has_scalars = any(p.is_scalar for p in self.arguments)
        self._written = [(i, p.name) for i, p in enumerate(self.arguments) if p.is_written]
        # Shapes of the arguments and of the results of the last call that needed them.
        self._last_shapes = None, None

    def _export(self, arguments):
        """Addresses of DLTensors, and what has to live as long."""
        if not self._has_scalars:
            try:
                return export_all(arguments)
            except (TypeError, BufferError):
                pass  # Which one it was, is found below.
        exported = []
        for parameter, value in zip(self.arguments, arguments):
            try:
                if parameter.is_scalar:
                    exported.append(_export_scalar(parameter, value))
                else:
                    exported.append(export(value))
            except (TypeError, BufferError) as error:
                raise type(error)(f"{parameter.name}: {error}") from None
        return [address for address, _ in exported], exported

    def _find_shapes(self, addresses, arguments):
        """The shapes of the results, which follow from those of the arguments, or
        from scalars."""
        if self._has_scalars:
            return self._ask_shapes(addresses)
        key = tuple([array.shape for array in arguments])
        last = self._last_shapes
        if key != last[0]:
            # Whole, for other threads.
            self._last_shapes = last = key, self._ask_shapes(addresses)
        return last[1]

    def _ask_shapes(self, addresses):
        return self._function.result_shapes(self._function.pointers(*addresses))

    def __repr__(self):
        return f"<varlen function {self.name} of {len(self.arguments)} arguments>"

    def __call__(
        self, *arguments: Array | float, out: Any = None, num_threads: int | None = None
    ) -> Any:
        """The function's result, or a tuple of them, in the library that the first
        array is of (numpy, if there is none).

        Args:
            out: Arrays for the results, one or a sequence of them; they are returned.
            num_threads: Threads of this call; None: what set_num_threads says.

        Raises:
            TypeError: too few or too many arguments, or what is no array or number.
            ValueError: an argument is not what the function's type says, or it holds
                what compiled code refuses.
        """
        if len(arguments) != len(self.arguments):
            raise TypeError(
                f"{self.name}: expected {len(self.arguments)} arguments, got {len(arguments)}"
            )
        addresses, _owners = self._export(arguments)
        for i, name in self._written:
            check_writable(name, arguments[i])
        made = finish = None
        if out is None:
            first = next((a for a in arguments if hasattr(a, "__dlpack__")), None)
            maker = maker_of(first)
            finish = maker.finish
            made = [
                maker.empty(shape, maker.dtype_of(ELEMENTS[result.code, result.bits]))
                for shape, result in zip(self._find_shapes(addresses, arguments), self.results)
            ]
        else:
            made = list(out) if isinstance(out, (list, tuple)) else [out]
            if len(made) != len(self.results):
                raise TypeError(
                    f"{self.name}: expected {len(self.results)} results in out, got {len(made)}"
                )
            for result, array in zip(self.results, made):
                check_writable(result.name, array)
        outputs, _result_owners = export_all(made)
        frame = self._frames.take()
        try:
            frame.options.num_threads = 0 if num_threads is None else check_threads(num_threads)
            frame.set_addresses(*addresses, *outputs)
            status = frame.call()
        finally:
            self._frames.give_back(frame)
        if status:
            _library.raise_error(status)
        if finish is not None:
            made = list(map(finish, made))
        return made[0] if len(made) == 1 else tuple(made)


class Program:
    """A compiled module. `program[name]` is its public function of that name;
    `program(...)` calls the only one."""

    def __init__(self, program: _library.Program):
        self._program = program
        self._functions: dict[str | None, Function] = {}

    def __getitem__(self, name: str | None) -> Function:
        if name not in self._functions:
            self._functions[name] = Function(self._program[name])
        return self._functions[name]

    def __call__(self, *arguments, **options):
        return self[None](*arguments, **options)


def compile(
    source: str | bytes | os.PathLike,
    *,
    strided: bool = True,
    runtime_checks: bool = False,
    target: str | None = None,
) -> Program:
    """Compiles MLIR for this machine's CPU; what was compiled before comes from the
    cache.

    Args:
        source: Text, bytecode, or the path of a file with either: os.PathLike, or a string
            that ends in .mlir or .mlirbc, which is no text of a module.
        strided: Tensors may have any strides but the last, which is 1.
        runtime_checks: Also check what linalg, tensor and memref operations assume of
            dynamic extents. Attention is always checked.
        target: A row of the table of CPU targets ("avx2", ...); None: the best.

    Raises:
        CompileError: the module is not valid, or cannot be compiled.
        OSError: the file cannot be read.
        ValueError: there is no such target. NotImplementedError: this machine lacks it.
    """
    if isinstance(source, os.PathLike) or isinstance(source, str) and _FILE_NAME.fullmatch(source):
        with open(source, "rb") as file:
            source = file.read()
    return Program(
        _cache.load(source, strided=strided, runtime_checks=runtime_checks, target=target)
    )
