#!/usr/bin/env python3
"""Predicts the time of attention kernels on Hopper from their machine code, without a GPU.

    model.py validate                      # the model beside times that were measured
    model.py speed --labels='pr164502.*d128'    # today's kernels, and what was measured last
    model.py kernel FILE.mlir --lengths=448,1280 --window=-1,0

docs/gpu-model.md says what it is and when not to trust it. It needs ptxas (but for `validate`)
and nvdisasm, of CUDA's tools or by `pip install -r benchmarks/requirements-gpu.txt`.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "python")]

import batches
import pinned
import sass
import sets
import sm90
import varlen

CHIP = "sm_90a"
PINNED = HERE.parent / "results/loops-sm_90a.jsonl"


# ---- Kernels of a function


class CannotCompile(Exception):
    pass


def _run(*command, text=None):
    done = subprocess.run(
        list(map(str, command)), input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CannotCompile(done.stderr.strip()[:600])
    return done.stdout


_FIELDS = {
    "warps": "warps", "block_m": "rows", "kv_block": "columns", "stages": "stages",
    "ctas": "ctas", "slack": "slack", "lag": "lag", "rings": "rings",
}  # fmt: skip


def _tiles(text, owns_keys=False):
    """Tiles of `<warps = ..., ...>`; of a kernel that owns keys, these are the rows."""
    found = {_FIELDS[name]: int(value) for name, value in re.findall(r"(\w+) = (\d+)", text)}
    if owns_keys:
        found["rows"], found["columns"] = found["columns"], found["rows"]
    return batches.Tiles(**found, owns_keys=owns_keys)


def find_tiles(scheduled):
    """Tiles by the kernel's suffix, of a module in which varlen-assign-schedule has run."""
    result = {}
    if found := re.search(r"#varlen\.gpu_schedule<([^>]*)>", scheduled):
        result["attn"] = _tiles(found[1])
    if found := re.search(r"#varlen\.gpu_grad_schedule<(.*?>)>", scheduled):
        parts = dict(re.findall(r"(dq|dk|dv) = <([^>]*)>", found[1]))
        result["dq"] = _tiles(parts["dq"])
        names = ("dk", "dv") if "dv" in parts else ("dkv",)
        for name in names:
            result[name] = _tiles(parts["dv" if name == "dv" else "dk"], owns_keys=True)
    return result


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel's loops: over whole blocks, and over those that a mask cuts."""

    whole: list
    cut: list
    straight: int  # cycles of stalls of the code around the loops
    instructions: list


def take_apart(body):
    """The Kernel of a kernel's instructions; None: it has no products of wgmma."""
    loops = sass.loops(body)
    if not loops:
        return None

    def selects(span):
        return sum(x.kind == "select" for x in body[slice(*span)])

    ordered = sorted(loops, key=selects)
    inside = {at for span in loops for at in range(*span)}
    straight = sum(x.stall for at, x in enumerate(body) if at not in inside)
    whole, cut = (sass.path(body, *span) for span in (ordered[0], ordered[-1]))
    return Kernel(whole, cut, straight, body)


@dataclasses.dataclass(frozen=True)
class Function:
    """What a function is compiled to: kernels with their tiles by suffix, all kernels' names."""

    kernels: dict
    tiles: dict
    names: tuple
    report: str


def compile(text, chip=CHIP):
    """The Function of a module's text, by varlen-opt and ptxas."""
    compiler = varlen.find_tool("varlen-opt")
    scheduled = _run(compiler, "-", f"--varlen-assign-schedule=chip={chip}", text=text)
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder) / "kernels.cubin"
        done = subprocess.run(
            [compiler, "-", "--emit=cubin", f"--chip={chip}", "--report", "-o", cubin],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise CannotCompile(done.stderr.strip()[:600])
        bodies = sass.read(cubin)
    tiles, kernels = find_tiles(scheduled), {}
    for suffix in tiles:
        body = next((b for name, b in bodies.items() if name.endswith(f"_{suffix}")), None)
        if body is not None and (kernel := take_apart(body)):
            kernels[suffix] = kernel
    return Function(kernels, tiles, tuple(bodies), done.stderr)


# ---- Predictions


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Microseconds by kernel; `lists` are those that make the lists of tiles."""

    kernels: dict
    models: dict

    @property
    def microseconds(self):
        return sum(self.kernels.values())


def predict(function, batch, head_dim, window, offsets=sm90.OFFSETS):
    models = {
        name: batches.KernelModel(
            function.tiles[name], kernel.whole, kernel.cut, kernel.straight, head_dim, offsets
        )
        for name, kernel in function.kernels.items()
    }  # fmt: skip
    if not models:
        raise sass.Unavailable("expected a kernel with products of wgmma, got none")
    times = {name: model.microseconds(batch, window) for name, model in models.items()}
    lists = sum(bool(re.search(r"tiles(_\w+)?$", name)) for name in function.names)
    times["lists"] = lists * batches.CONSTANTS["list_us"].value
    if any(name.endswith("_delta") for name in function.names):
        read = 2 * 2 * batch.heads * batch.tokens_q * head_dim
        times["delta"] = read / batches.CONSTANTS["delta_tb_s"].value / 1e6
    return Prediction(times, models)


# ---- Validation


def _model_of(row, offsets):
    tiles = batches.Tiles(**row["tiles"])
    bodies = [pinned.read(row[name]) for name in ("whole", "cut")]
    return batches.KernelModel(tiles, *bodies, row["straight"], row["head_dim"], offsets)


def constant_batch(head_dim):
    """Eight sequences of 4096 rows, 2048 / head_dim heads: what schedules were tuned on."""
    return next(
        c.batch for c in sets.gpu_configurations()
        if c.batch.label == "fa-distributions/constant" and c.head_dim == head_dim
    )  # fmt: skip


def validation(rows, offsets=sm90.OFFSETS):
    """(label, GPU, measured us, predicted us) of measured schedules."""
    for row in rows:
        model = _model_of(row, offsets)
        batch = constant_batch(row["head_dim"])
        predicted = model.microseconds(batch, sets.FULL) + 3 * batches.CONSTANTS["list_us"].value
        for gpu, ms in row["measured_ms"].items():
            yield f"d{row['head_dim']} {row['label']}", gpu, ms * 1e3, predicted


def errors(found):
    """(mean, root mean square, largest) of the logarithms of predicted over measured."""
    logs = [math.log(predicted / measured) for _, _, measured, predicted in found]
    return (
        statistics.mean(logs), math.sqrt(statistics.mean(x * x for x in logs)), max(map(abs, logs))
    )  # fmt: skip


# ---- Commands


def _validate(arguments):
    found = list(validation(pinned.load(PINNED)))
    print(f"{'schedule':40} {'GPU':5} {'measured us':>11} {'predicted':>10} {'ratio':>6}")
    for label, gpu, measured, predicted in found:
        print(f"{label:40} {gpu:5} {measured:11.1f} {predicted:10.1f} {predicted / measured:6.2f}")
    mean, rms, largest = errors(found)
    print(f"{len(found)} measurements: mean {mean:+.1%}, root mean square {rms:.1%}, largest {largest:.1%}")


def _measured():
    """Rows of the last run on an H100, by label."""
    rows = json.loads((HERE.parent / "results/h100/speed.json").read_text())
    return {row["label"]: row for row in rows if row["kind"] == "speed" and "ms" in row}


def _speed(arguments):
    import plan

    measured, known, ratios = _measured(), {}, []
    print(f"{'configuration':52} {'predicted us':>12} {'TFLOP/s':>8} {'measured':>9} {'ratio':>6}  kernels")
    for item in plan.timed():
        if not re.search(arguments.labels, item.label):
            continue
        config, text = item.config, plan.timed_text(item)
        if text not in known:
            known[text] = compile(text)
        found = predict(known[text], config.batch, config.head_dim, config.window)
        us = found.microseconds
        row = measured.get(item.label)
        against = f"{row['ms'] * 1e3:9.1f} {us / row['ms'] / 1e3:6.2f}" if row else " " * 16
        if row:
            ratios.append((item.label, "h100", row["ms"] * 1e3, us))
        parts = ", ".join(f"{name} {time:.1f}" for name, time in found.kernels.items())
        print(f"{item.label:52} {us:12.1f} {item.flops / us / 1e6:8.0f} {against}  {parts}", flush=True)
    if ratios:
        mean, rms, largest = errors(ratios)
        print(f"{len(ratios)} measurements: mean {mean:+.1%}, root mean square {rms:.1%}, largest {largest:.1%}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("validate").set_defaults(run=_validate)
    speed = commands.add_parser("speed")
    speed.add_argument("--labels", default="", help="regular expression of configurations")
    speed.set_defaults(run=_speed)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except (sass.Unavailable, CannotCompile) as error:
        sys.exit(f"model.py: {error}")


if __name__ == "__main__":
    main()
