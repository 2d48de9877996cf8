#!/usr/bin/env python3
"""Predicts the time of attention kernels on Hopper from their machine code, without a GPU.

    model.py validate                      # the model beside times that were measured
    model.py speed --labels='pr164502.*d128'    # today's kernels, and what was measured last
    model.py experiments                   # pairs of experiments.py
    model.py kernel FILE.mlir --lengths=448,1280    # a function of yours

docs/gpu-model.md says what it is and when not to trust it. It needs ptxas (but for `validate`)
and nvdisasm, of CUDA's tools or by `pip install -r benchmarks/requirements-gpu.txt`.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import math
import multiprocessing
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
if not (HERE / "sets.py").exists():  # In the kit all modules are in one folder, with the wheel.
    sys.path[:0] = [
        *map(str, (HERE, HERE.parent, ROOT / "python", ROOT / "test/python")),
        *(str(ROOT / "test" / name / "Inputs") for name in ("Integration", "Python", "Package")),
    ]

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
    "ctas": "ctas", "slack": "slack", "lag": "lag", "rings": "rings", "few_part": "few_part",
    "producers": "producers", "five_products": "five_products",
}  # fmt: skip


def _tiles(text, has_tangents, owns_keys=False):
    """Tiles of `<warps = ..., ...>`; of a kernel that owns keys, these are the rows."""
    fields = dict(re.findall(r"(\w+) = (\d+)", text))
    found = {_FIELDS[name]: int(value) for name, value in fields.items() if name in _FIELDS}
    if owns_keys:
        found["rows"], found["columns"] = found["columns"], found["rows"]
    return batches.Tiles(**found, owns_keys=owns_keys, has_tangents=has_tangents)


def find_tiles(scheduled):
    """Tiles by the kernel's suffix, of a module in which varlen-assign-schedule has run."""
    result = {}
    has_tangents = re.search(r"varlen\.attn_jvp(_grad)? ", scheduled) is not None
    if found := re.search(r"#varlen\.gpu_schedule<([^>]*)>", scheduled):
        result["attn"] = _tiles(found[1], has_tangents)
    if found := re.search(r"#varlen\.gpu_grad_schedule<(.*?>)>", scheduled):
        parts = dict(re.findall(r"(dq|dk|dv) = <([^>]*)>", found[1]))
        has_five = re.search(r"five_products = 1", parts["dk"])
        if not has_five:
            result["dq"] = _tiles(parts["dq"], has_tangents)
        names = ("dqkv",) if has_five else ("dk", "dv") if "dv" in parts else ("dkv",)
        for name in names:
            result[name] = _tiles(
                parts["dv" if name == "dv" else "dk"], has_tangents, owns_keys=True
            )
    return result


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel's loops: over whole blocks, and over those that a mask cuts."""

    whole: list
    cut: list
    straight: int  # cycles of stalls of the code around the loops
    copies: int = 0  # of a block, by each warp of producers; 0: by TMA
    maps: int = 0  # tensor maps that a CTA makes


def take_apart(body):
    """The Kernel of a kernel's instructions; None: it has no products of wgmma."""
    body, producer = sass.roles(body)
    loops = sass.loops(body)
    if not loops:
        return None
    copies, maps = sass.copies(producer)

    def selects(span):
        return sum(x.kind == "select" for x in body[slice(*span)])

    ordered = sorted(loops, key=selects)
    whole, cut = (sass.path(body, *span) for span in (ordered[0], ordered[-1]))
    inside = {at for span in loops for at in range(*span)}
    around = [x for at, x in enumerate(body) if at not in inside]
    # Iterations that were peeled are blocks, which items count.
    products = sass.counts(whole)["wgmma"]
    peeled = sum(x.kind == "wgmma" for x in around) / products * sum(x.stall for x in whole)
    straight = max(0, sum(x.stall for x in around) - round(peeled))
    return Kernel(whole, cut, straight, copies, maps)


@dataclasses.dataclass(frozen=True)
class Function:
    """What a function is compiled to: kernels with their tiles by suffix, all kernels' names."""

    kernels: dict
    tiles: dict
    names: tuple
    scheduled: str  # the module, with schedules
    report: str  # what the compiler says of registers and spills


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
    return Function(kernels, tiles, tuple(bodies), scheduled, done.stderr)


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
            function.tiles[name], kernel.whole, kernel.cut, kernel.straight, head_dim, offsets,
            kernel.copies, kernel.maps,
        )
        for name, kernel in function.kernels.items()
    }  # fmt: skip
    if not models:
        raise sass.Unavailable("expected a kernel with products of wgmma, got none")
    times = {name: model.microseconds(batch, window) for name, model in models.items()}
    times["lists"] = batches.list_us(function.names, len(batch.q_lengths) + 1)
    if any(re.search(r"(^|_)delta$", name) for name in function.names):
        read = 2 * 2 * batch.heads * batch.tokens_q * head_dim
        times["delta"] = read / batches.CONSTANTS["delta_tb_s"].value / 1e6
    return Prediction(times, models)


def _predicted_us(work):
    text, config = work
    try:
        found = predict(
            compile(text), config.batch, config.head_dim, config.window, sm90.OFFSETS[:1]
        )
    except (CannotCompile, sass.Unavailable, sm90.Deadlock):
        return None
    return found.microseconds


def predict_all(works):
    """Microseconds by label of {label: (text, configuration)}, on all cores; those that cannot be
    compiled, or have no products of wgmma, are left out."""
    # A process that uses a GPU cannot be forked.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(mp_context=context) as pool:
        found = dict(zip(works, pool.map(_predicted_us, works.values())))
    return {label: us for label, us in found.items() if us is not None}


def choose(items, predicted, best):
    """Keeps of each configuration of plan.tuned the table's schedule, which comes first, and the
    `best` with the least predicted times. Those without a prediction are kept, too."""
    result, group = [], []

    def finish():
        known = sorted((x for x in group if x.label in predicted), key=lambda x: predicted[x.label])
        taken = {x.label for x in known[:best]}
        result.extend(x for x in group if x.label in taken or x.label not in predicted)
        group.clear()

    for item in items:
        if item.schedule:
            group.append(item)
        else:
            finish()
            result.append(item)
    finish()
    return result


# ---- Validation


def pin(function):
    """What a row of PINNED keeps of a Function."""
    return {
        "names": list(function.names),
        "kernels": {
            name: {
                "tiles": dataclasses.asdict(function.tiles[name]), "straight": kernel.straight,
                "whole": pinned.write(kernel.whole), "cut": pinned.write(kernel.cut),
            }
            for name, kernel in function.kernels.items()
        },
    }  # fmt: skip


def unpin(row):
    """The Function of a row of PINNED."""
    kernels = {
        name: Kernel(pinned.read(k["whole"]), pinned.read(k["cut"]), k["straight"])
        for name, k in row["kernels"].items()
    }
    tiles = {name: batches.Tiles(**k["tiles"]) for name, k in row["kernels"].items()}
    return Function(kernels, tiles, tuple(row["names"]), "", "")


def validation(rows, offsets=sm90.OFFSETS):
    """(label, GPU, measured us, predicted us) of rows of PINNED."""
    configurations = {config.label: config for config in sets.gpu_configurations()}
    for row in rows:
        config = configurations[row["configuration"]]
        predicted = predict(unpin(row), config.batch, config.head_dim, config.window, offsets)
        for gpu, ms in row["measured_ms"].items():
            yield row["label"], gpu, ms * 1e3, predicted.microseconds


def errors(found):
    """(mean, root mean square, largest) of the logarithms of predicted over measured."""
    logs = [math.log(predicted / measured) for _, _, measured, predicted in found]
    return (
        statistics.mean(logs), math.sqrt(statistics.mean(x * x for x in logs)), max(map(abs, logs))
    )  # fmt: skip


# ---- Commands


def _summary(found):
    mean, rms, largest = errors(found)
    return (
        f"{len(found)} measurements: mean {mean:+.1%}, root mean square {rms:.1%}, "
        f"largest {largest:.1%}"
    )


def _validate(arguments):
    found = list(validation(pinned.load(PINNED)))
    print(f"{'kernels':56} {'GPU':5} {'measured us':>11} {'predicted':>10} {'ratio':>6}")
    for label, gpu, measured, predicted in found:
        print(f"{label:56} {gpu:5} {measured:11.1f} {predicted:10.1f} {predicted / measured:6.2f}")
    print(_summary(found))


def _measured():
    """Rows of the last run on an H100, by label."""
    rows = json.loads((HERE.parent / "results/h100/speed.json").read_text())
    return {row["label"]: row for row in rows if row["kind"] == "speed" and "ms" in row}


def _speed(arguments):
    import plan

    measured, known, ratios = _measured(), {}, []
    print(
        f"{'configuration':52} {'predicted us':>12} {'TFLOP/s':>8} {'measured':>9} {'ratio':>6}"
        "  kernels"
    )
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
        print(
            f"{item.label:52} {us:12.1f} {item.flops / us / 1e6:8.0f} {against}  {parts}",
            flush=True,
        )
    if ratios:
        print(_summary(ratios))


def _experiments(arguments):
    import experiments
    import plan

    print(f"{'experiment':48} {'table us':>9} {'tried us':>9} {'ratio':>6} {'written down':>13}")
    for experiment in experiments.EXPERIMENTS:
        if not experiment.tiles or not re.search(arguments.labels, experiment.name):
            continue
        item = plan.find_timed(experiment.label)
        tried = dataclasses.replace(
            item, schedule=experiments.schedules.Schedule(experiment.tiles, "")
        )
        table_us, tried_us = (
            predict(
                compile(plan.timed_text(x)), x.config.batch, x.config.head_dim, x.config.window
            ).microseconds
            for x in (item, tried)
        )
        print(f"{experiment.name:48} {table_us:9.1f} {tried_us:9.1f} {tried_us / table_us:6.2f} "
              f"{experiment.predicted:13.2f}", flush=True)  # fmt: skip


def find_attention(scheduled):
    """(heads, kv heads, head_dim, window) of the attention of a module."""
    found = re.search(
        r"varlen\.attn(_grad|_jvp_grad|_jvp)? [^{\n]*\{([^}\n]*)\} : \(([^)]*)\)", scheduled
    )
    # A full mask is not printed.
    attributes = found.group(2) if found else "mask"
    mask = re.search(r"mask = #varlen\.mask<(\w+)(?: = \((-?\d+), (-?\d+)\))?>", attributes)
    if not mask and re.search(r"\bmask\b", attributes):
        raise CannotCompile(
            "expected a varlen.attn, varlen.attn_grad, varlen.attn_jvp or varlen.attn_jvp_grad with "
            "a mask that is full, causal or a window and aligned at the end, got none"
        )
    derivative, _, types = found.groups()
    kind, left, right = mask.groups() if mask else ("full", None, None)
    window = {"full": sets.FULL, "causal": sets.CAUSAL}.get(kind) or (int(left), int(right))
    shapes = [re.findall(r"(\d+|\?)x", text) for text in types.split(", ")]
    q, k = shapes[1:3] if (derivative or "").endswith("_grad") else shapes[:2]
    return int(q[1]), int(k[1]), int(q[2]), window


def _print_kernel(name, kernel, model):
    """What a kernel's loops are made of, and what each kind takes from the tensor core."""
    print(f"{name}: {model.tiles}")
    print(f"  {'':24}{'whole':>8}{'cut':>8}")
    bodies = kernel.whole, kernel.cut
    counts = [sass.counts(body) for body in bodies]
    for kind in sorted({*counts[0], *counts[1]}, key=lambda kind: -counts[0][kind]):
        print(f"  {kind:24}{counts[0][kind]:8}{counts[1][kind]:8}")
    rows = {"instructions": [len(body) for body in bodies]}
    for what in sm90.COSTS:
        rows[f"cycles: {what}"] = [round(sm90.costs(body)[what]) for body in bodies]
    rows["cycles: simulated"] = [round(model.loop(part).cycles) for part in ("whole", "cut")]
    rows["exp2 before the last wait"] = [
        "{} of {}".format(*sass.exp2_before_last_wait(body)) for body in bodies
    ]  # fmt: skip
    for what, (whole, cut) in rows.items():
        print(f"  {what:24}{whole:>8}{cut:>8}")


def _lengths(text):
    if not re.fullmatch(r"\d+(,\d+)*", text):
        raise CannotCompile(f"expected lengths with commas, got '{text}'")
    return [int(length) for length in text.split(",")]


def _kernel(arguments):
    function = compile(pathlib.Path(arguments.file).read_text())
    heads, kv_heads, head_dim, window = find_attention(function.scheduled)
    k_lengths = _lengths(arguments.lengths)
    q_lengths = _lengths(arguments.queries or arguments.lengths)
    if len(q_lengths) != len(k_lengths):
        raise CannotCompile(
            f"expected as many --queries as --lengths, got {len(q_lengths)} and {len(k_lengths)}"
        )
    batch = sets.Batch("", "", tuple(q_lengths), tuple(k_lengths), heads, kv_heads)
    found = predict(function, batch, head_dim, window)
    for name, model in found.models.items():
        _print_kernel(name, function.kernels[name], model)
    for name, us in found.kernels.items():
        print(f"{name:24}  {us:8.1f} us")
    print(f"{'predicted':24}  {found.microseconds:8.1f} us")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("validate").set_defaults(run=_validate)
    speed = commands.add_parser("speed")
    speed.add_argument("--labels", default="", help="regular expression of configurations")
    speed.set_defaults(run=_speed)
    experiments = commands.add_parser("experiments")
    experiments.add_argument("--labels", default="", help="regular expression of names")
    experiments.set_defaults(run=_experiments)
    kernel = commands.add_parser("kernel")
    kernel.add_argument("file", help="a module with a varlen.attn or varlen.attn_grad")
    kernel.add_argument("--lengths", required=True, help="keys of each sequence, with commas")
    kernel.add_argument("--queries", help="queries of each sequence; those of --lengths")
    kernel.set_defaults(run=_kernel)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except (sass.Unavailable, CannotCompile, OSError, ValueError) as error:
        sys.exit(f"model.py: {error}")


if __name__ == "__main__":
    main()
