"""Is what the kernels compute right, and the same twice?

Held against the reference of the tests in f64, by the tolerance rule. Each batch is the
work of a process that has several one after the other: it compiles the function, runs it
on the CUDA driver, without a framework, and judges the result.
"""

import os
import re
import sys

import attn_gradients
import farm
import harness
import kernels
import numpy
import plan
import rehearsal
import varlen
from cuda import Driver

# The seconds that one batch may take, with the start of its process.
LIMIT = 90 * rehearsal.SLACK


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


def run(driver, launcher, item, inputs):
    """The results of two calls by name, and whether they have the same bits."""
    shapes = shapes_of(item, inputs)
    # Not zero: what is not written has to show.
    wrong = [
        varlen.dtypes.narrow(numpy.full(shape, 7.0), dtype) for shape, dtype in shapes.values()
    ]
    arrays = [*arguments_of(item, inputs), *wrong]
    addresses = [driver.store(array) for array in arrays]
    tensors = [
        kernels.tensor(address, array.shape, str(array.dtype))
        for address, array in zip(addresses, arrays)
    ]
    size = launcher.workspace_size(tensors)
    workspace = driver.allocate(size)
    results = []
    try:
        for _ in range(2):
            launcher.launch(tensors, workspace, size, driver.stream)
            launcher.check(workspace, driver.stream)
            results.append([driver.load(a, x) for a, x in zip(addresses[-len(wrong) :], wrong)])
    finally:
        for address in (*addresses, workspace):
            driver.free(address)
    same = all(a.tobytes() == b.tobytes() for a, b in zip(*results))
    return dict(zip(shapes, results[0])), same


def judge(driver, item):
    """The row of a batch."""
    try:
        launcher = kernels.compile(plan.checked_text(item))
    except kernels.Missing as reason:
        return {"outcome": "not compiled", "problems": [str(reason)]}
    inputs = (attn_gradients if item.gradients else harness).make_inputs(item.group)
    try:
        outputs, same = run(driver, launcher, item, inputs)
    except (ValueError, RuntimeError) as error:
        return {"outcome": "wrong", "problems": [str(error)]}
    problems = (attn_gradients if item.gradients else harness).judge(item.group, inputs, outputs)
    if not same:
        problems.append("two runs differ")
    return {"outcome": "wrong" if problems else "right", "problems": problems[:5]}


def work():
    """Answers labels until there are no more."""
    rehearsal.start()
    driver = Driver()
    items = {item.label: item for item in (*plan.checked(), *plan.sanitized())}
    for line in sys.stdin:
        farm.answer(**judge(driver, items[line.rstrip("\n")]))


def worker_environment():
    """Of processes that share the cores: numpy's products take one thread each."""
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1"}


def main(log, arguments):
    labels = [
        item.label for item in plan.checked()
        if re.search(arguments.labels, item.label) and not log.done("check", item.label)
    ]  # fmt: skip

    def take(label, row):
        log.add("check", label, chip=kernels.find_chip(), **row)
        if row["outcome"] not in ("right", "not compiled"):
            print(f"{row['outcome']}: {label}", *row["problems"], sep="\n  ", flush=True)

    command = [sys.executable, __file__]
    workers = max(2, len(os.sched_getaffinity(0)) - 2)
    late = farm.run(command, labels, workers, LIMIT, log.left, take, worker_environment())
    return len(late)


if __name__ == "__main__":
    work()
