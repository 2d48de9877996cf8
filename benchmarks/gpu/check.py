"""Is what the kernels compute right, and the same twice?

Held against the reference of the tests in f64, by the tolerance rule.
"""

import concurrent.futures
import json
import re

import functions
import attn_gradients
import harness
import numpy
import plan
import varlen

# How many golden results are computed at once, beside the GPU.
JUDGES = 8


class Kit:
    """What is in the folder: functions by name, each for one chip or more."""

    def __init__(self, folder, runtime):
        self.folder, self.runtime = folder, runtime
        self.description = json.loads((folder / "functions.json").read_text())
        self.chips = ["sim"]
        if "sim" not in self.description["chips"]:
            self.chips = fitting_chips(self.description["chips"], runtime.capability)
        if not self.chips:
            raise functions.Error(
                f"the kit is for {', '.join(self.description['chips'])}, the GPU is "
                f"sm_{runtime.capability}: expected it to be as new"
            )

    def find(self, text):
        """(name, chip, kernels) of a function; raises Missing if there is none."""
        name = plan.name_of(text)
        entry = self.description["functions"].get(name)
        if entry is None:
            raise Missing("the kit was made without it")
        for chip in self.chips:
            if chip in entry["kernels"]:
                return name, chip, entry["kernels"][chip]
        raise Missing(next(iter(entry["errors"].values())))

    def load(self, name, chip):
        return self.runtime.function(self.folder / chip / f"{name}.so", name)


def fitting_chips(chips, capability):
    """Those whose code a GPU of that capability runs, the best first.

    Code for the GPU's own chip, else for the newest older one: what is not machine code
    for this GPU the driver compiles from PTX. What ends in "a" is for one chip only.

    >>> fitting_chips(["sm_80", "sm_90", "sm_90a", "sm_100"], 90)
    ['sm_90a', 'sm_90', 'sm_80']
    >>> fitting_chips(["sm_80", "sm_90a"], 100)
    ['sm_80']
    """

    def number(chip):
        return int(re.sub(r"\D", "", chip))

    fitting = (
        chip for chip in chips
        if number(chip) == capability or (number(chip) < capability and chip[-1] != "a")
    )  # fmt: skip
    return sorted(fitting, key=lambda chip: (number(chip), chip), reverse=True)


class Missing(Exception):
    pass


def _bytes(array):
    return array.view(numpy.uint8).tobytes()


def shapes_of(item, inputs):
    """The results of a function: shape and element type by name, in order."""
    group = item.group
    q = ((group.tokens_q, group.heads, group.d), group.dtype)
    if not item.gradients:
        out = ((group.tokens_q, group.heads, group.dv), group.dtype)
        return {"out": out, "lse": ((group.heads, group.tokens_q), "f32")}
    shapes = {
        "dq": q,
        "dk": ((group.tokens_k, group.kv_heads, group.d), group.dtype),
        "dv": ((group.tokens_k, group.kv_heads, group.dv), group.dtype),
    }
    if group.sink:
        shapes["dsink"] = ((group.heads,), "f32")
    for name in attn_gradients.capture_gradients(group):
        shapes[name] = (inputs[name[1:]].shape, "f32")
    return shapes


def arguments_of(item, inputs):
    """The inputs in the order of the function's arguments."""
    names = re.findall(r'varlen.name = "(\w+)"', plan.checked_text(item))
    return [varlen.dtypes.normalize(inputs[name]) for name in names if name in inputs]


def run(runtime, function, item, inputs):
    """The results of two calls by name, and whether they have the same bits."""
    shapes = shapes_of(item, inputs)
    buffers = [runtime.buffer(x) for x in arguments_of(item, inputs)]
    for shape, dtype in shapes.values():
        # Not zero: what is not written has to show.
        wrong = numpy.full(shape, 7.0)
        buffers.append(runtime.buffer(varlen.dtypes.narrow(wrong, dtype)))
    call = function.bind([(buffer.pointer, buffer.shape) for buffer in buffers])
    results = []
    try:
        for _ in range(2):
            call()
            runtime.raise_error()
            runtime.check()
            results.append([buffer.load() for buffer in buffers[-len(shapes) :]])
    finally:
        for buffer in buffers:
            buffer.free()
    same = all(_bytes(a) == _bytes(b) for a, b in zip(*results))
    return dict(zip(shapes, results[0])), same


def main(folder, log, device, only):
    runtime = functions.Runtime(folder, device)
    kit = Kit(folder, runtime)
    counts = {"right": 0, "wrong": 0, "not compiled": 0, "no time": 0}
    for row in log.earlier:
        if row["kind"] == "check":
            counts[row["outcome"]] += 1

    def finish(item, outcome, problems):
        counts[outcome] += 1
        log.add(kind="check", label=item.label, outcome=outcome, problems=problems)
        if problems and outcome == "wrong":
            print(f"WRONG {item.label}", *problems[:5], sep="\n  ", flush=True)

    def judge(item, inputs, outputs, same):
        judge = attn_gradients.judge if item.gradients else harness.judge
        problems = judge(item.group, inputs, outputs)
        if not same:
            problems.append("two runs differ")
        return problems

    pending, unfinished = [], log.unfinished()
    with concurrent.futures.ThreadPoolExecutor(JUDGES) as pool:
        for item in plan.checked():
            if not re.search(only, item.label) or log.done("check", item.label):
                continue
            if (item.label, "run") in unfinished:
                finish(item, "wrong", ["it has ended the process"])
                continue
            try:
                name, chip, _ = kit.find(plan.checked_text(item))
            except Missing as reason:
                finish(item, "not compiled", [str(reason)])
                continue
            if log.left() < 5:
                finish(item, "no time", [])
                continue
            make = attn_gradients.make_inputs if item.gradients else harness.make_inputs
            inputs = make(item.group)
            try:
                with log.attempt(item.label, "run"):
                    outputs, same = run(runtime, kit.load(name, chip), item, inputs)
            except functions.Error as error:
                finish(item, "wrong", [str(error)])
                continue
            pending.append((item, pool.submit(judge, item, inputs, outputs, same)))
        for item, future in pending:
            problems = future.result()
            finish(item, "wrong" if problems else "right", problems)
    total = sum(counts.values())
    text = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    print(f"{total} batches: {text or 'none'}", flush=True)
    log.add(kind="info", label="check", chips=kit.chips, device=device, **counts)
    return int(counts["wrong"] > 0 or counts["right"] == 0)
