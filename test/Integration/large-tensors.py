#!/usr/bin/env python3
"""Tensors with more elements than 32 bits count, and the longest sequence.

As a test it takes few elements. By hand, on a machine with 16 GB of memory, in bf16:

    large-tensors.py --build build --elements 2147500000

Tensors that are this large are 0 but for some rows at their beginning, in the middle
and at the end, so that files of them have holes. All scores are 0 then: out is the
mean of the values that a query sees.
"""
# RUN: %python %s --build %varlen-build --elements 30000 | FileCheck %s
# CHECK: {{[1-9][0-9]*}} cases, 0 failed

import argparse
import json
import math
import os
import pathlib
import resource
import struct
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import numpy
import varlen

DIM = 64


class Large:
    """A bf16 tensor of zeros, but for some of its rows."""

    def __init__(self, shape, rows=None):
        self.shape, self.rows = shape, rows or {}


def write(path, tensors):
    """A safetensors file in which the zeros of large tensors are holes."""
    header, offset = {}, 0
    for name, tensor in tensors.items():
        if isinstance(tensor, Large):
            label, size = "BF16", 2 * math.prod(tensor.shape)
        else:
            label, size = varlen.dtypes.safetensors_name_of(tensor), tensor.nbytes
        header[name] = {
            "dtype": label,
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        begin = file.tell()
        for name, tensor in tensors.items():
            first = begin + header[name]["data_offsets"][0]
            file.seek(first)
            if not isinstance(tensor, Large):
                file.write(tensor.tobytes())
                continue
            stride = 2 * math.prod(tensor.shape[1:])
            for row, values in tensor.rows.items():
                file.seek(first + row * stride)
                file.write(varlen.dtypes.narrow(values, "bf16").tobytes())
        file.truncate(begin + offset)


def read(path):
    """The tensors of a safetensors file, mapped."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return {
        name: numpy.memmap(
            path, varlen.dtypes.by_safetensors_name[entry["dtype"]], "r",
            8 + size + entry["data_offsets"][0], tuple(entry["shape"]),
        )
        for name, entry in header.items()
    }  # fmt: skip


def run(folder, text, tensors):
    module, inputs, output = (folder / n for n in ("m.mlir", "in", "out"))
    module.write_text(text)
    write(inputs, tensors)
    # Large outputs and inputs take up the disk, so that one case has them at a time.
    varlen.call("varlen-run", module, inputs, "-o", output)
    inputs.unlink()
    return read(output)


def cu_seqlens(lengths):
    return numpy.cumsum([0, *lengths], dtype=numpy.int64)


def special(rng, rows, columns):
    """Values of some rows of so many: where 32-bit offsets would wrap around, too."""
    wrapped = [limit // columns + i for limit in (2**31, 2**32) for i in (-1, 0, 1)]
    places = {0, 1, rows // 2, rows - 2, rows - 1, *(r for r in wrapped if r < rows)}
    return {row: rng.integers(-8, 9, columns) / 4 for row in sorted(places)}


def differs(name, got, wanted):
    got = varlen.dtypes.widen(numpy.ascontiguousarray(got))
    wanted = numpy.broadcast_to(wanted, got.shape)
    if numpy.allclose(got, wanted, rtol=0.01, atol=1e-6):
        return []
    return [f"{name}: got {got.ravel()[:4]}, wanted {wanted.ravel()[:4]}"]


def keys_of(elements):
    """How many keys of which head_dim have so many elements, in one sequence."""
    keys = min(elements, 2**30)
    return keys, -(-elements // keys)


def keys_of_one_sequence(folder, elements, rng):
    """The queries see the last keys, or the first."""
    keys, dim = keys_of(elements)
    values = special(rng, keys, dim)
    tensors = {
        "q": numpy.zeros((3, 1, dim), varlen.bfloat16),
        "k": Large((keys, 1, dim)),
        "v": Large((keys, 1, dim), values),
        "cu_seqlens_q": cu_seqlens([3]),
        "cu_seqlens_k": cu_seqlens([keys]),
    }
    problems = []
    for window, alignment in [((7, 0), "bottom_right"), ((-1, 4), "top_left")]:
        text = varlen.text.attn(
            dtype="bf16", heads=1, head_dim=dim, window=window, alignment=alignment,
            index="i64",
        )  # fmt: skip
        results = run(folder, text, tensors)
        for i in range(3):
            if alignment == "bottom_right":
                end = keys - 2 + i
                seen = range(max(end - 8, 0), end)
            else:
                seen = range(i + 5)
            wanted = sum(values.get(j, numpy.zeros(dim)) for j in seen) / len(seen)
            problems += differs(f"out[{i}] {alignment}", results["out"][i, 0], wanted)
            problems += differs("lse", results["lse"][0, i : i + 1], math.log(len(seen)))
    return problems


def last_keys(folder, elements, rng):
    """The last key that a query sees has all the weight."""
    keys, dim = keys_of(elements)
    values = special(rng, keys, dim)
    scores = {keys - 3 + i: 30.0 * (i + 1) for i in range(3)}
    last = {row: numpy.full(dim, score / dim) for row, score in scores.items()}
    tensors = {
        "q": varlen.dtypes.narrow(numpy.ones((3, 1, dim)), "bf16"),
        "k": Large((keys, 1, dim), last),
        "v": Large((keys, 1, dim), values),
        "cu_seqlens_q": cu_seqlens([3]),
        "cu_seqlens_k": cu_seqlens([keys]),
    }
    text = varlen.text.attn(
        dtype="bf16", heads=1, head_dim=dim, window=(-1, 0), scale=1.0, index="i64"
    )
    results = run(folder, text, tensors)
    problems = []
    for i, (row, score) in enumerate(scores.items()):
        wanted = values.get(row, numpy.zeros(dim))
        problems += differs(f"out[{i}]", results["out"][i, 0], wanted)
        problems += differs(f"lse[{i}]", results["lse"][0, i : i + 1], score)
    return problems


def queries(folder, elements, rng):
    """q and out with as many elements, in sequences of 512 queries and 4 keys."""
    rows = -(-elements // (DIM * 512)) * 512
    count = rows // 512
    v = (rng.integers(-8, 9, (4 * count, 1, DIM)) / 4).astype(numpy.float32)
    tensors = {
        "q": Large((rows, 1, DIM)),
        "k": numpy.zeros((4 * count, 1, DIM), varlen.bfloat16),
        "v": varlen.dtypes.narrow(v, "bf16"),
        "cu_seqlens_q": cu_seqlens([512] * count),
        "cu_seqlens_k": cu_seqlens([4] * count),
    }
    text = varlen.text.attn(dtype="bf16", heads=1, head_dim=DIM, index="i64")
    results = run(folder, text, tensors)
    problems = []
    for row in special(rng, rows, DIM):
        s = row // 512
        wanted = v[4 * s : 4 * s + 4, 0].mean(axis=0)
        problems += differs(f"out[{row}]", results["out"][row, 0], wanted)
        problems += differs(f"lse[{row}]", results["lse"][:, row], math.log(4))
    return problems


def gradients_of_keys(folder, elements, rng):
    """k and dk with as many elements, in sequences of 1 query and 512 keys. With
    p = 1/512 for each key, dlse = 512 and nothing else, dk is the query."""
    rows = -(-elements // (DIM * 512)) * 512
    count = rows // 512
    q = (rng.integers(-8, 9, (count, 1, DIM)) / 4).astype(numpy.float32)
    tensors = {
        "dout": numpy.zeros((count, 1, 1), varlen.bfloat16),
        "q": varlen.dtypes.narrow(q, "bf16"),
        "k": Large((rows, 1, DIM)),
        "v": numpy.zeros((rows, 1, 1), varlen.bfloat16),
        "out": numpy.zeros((count, 1, 1), varlen.bfloat16),
        "lse": numpy.full((1, count), math.log(512), numpy.float32),
        "cu_seqlens_q": cu_seqlens([1] * count),
        "cu_seqlens_k": cu_seqlens([512] * count),
        "dlse": numpy.full((1, count), 512, numpy.float32),
    }
    text = varlen.text.attn_grad(
        dtype="bf16", heads=1, head_dim=DIM, v_head_dim=1, dlse=True, scale=1.0,
        index="i64",
    )  # fmt: skip
    results = run(folder, text, tensors)
    problems = []
    for row in special(rng, rows, DIM):
        wanted = q[row // 512, 0]
        problems += differs(f"dk[{row}]", results["dk"][row, 0], wanted)
    return problems


CASES = (keys_of_one_sequence, last_keys, queries, gradients_of_keys)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--elements", default=30000, type=int)
    parser.add_argument("--only", default="", help="a part of the name of a case")
    arguments = parser.parse_args()
    os.environ["VARLEN_BUILD"] = str(arguments.build.resolve())
    done = failed = 0
    for case in CASES:
        if arguments.only not in case.__name__:
            continue
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="varlen-") as folder:
            rng = numpy.random.default_rng(1)
            problems = case(pathlib.Path(folder), arguments.elements, rng)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 << 20)
        print(
            f"{case.__name__}: {time.monotonic() - begin:.0f} s, largest process so far "
            f"{peak:.1f} GiB", flush=True,
        )  # fmt: skip
        print(*problems[:5], sep="\n", end="\n" if problems else "", flush=True)
        done, failed = done + 1, failed + bool(problems)
    print(f"{done} cases, {failed} failed")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
