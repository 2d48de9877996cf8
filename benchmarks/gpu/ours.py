"""Our kernels on PyTorch's tensors: calls that can be captured in a graph."""

import concurrent.futures
import os

import kernels
import plan
import rehearsal
import timing
import torch
import varlen
from varlen.kv_cache import quantise

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
QUANTISED = {"i8": torch.int8}


class Compiler:
    """Compiles functions on all cores, ahead of their use."""

    def __init__(self, items):
        # Two cores are for what is timed meanwhile.
        cores = max(1, len(os.sched_getaffinity(0)) - 2)
        self.pool = concurrent.futures.ThreadPoolExecutor(cores)
        self.launchers = {}
        for item in items:
            # A backward is timed on what the forward of its schedule returns, tangents beside it.
            for needed in (item, item.forward):
                key = plan.timed_text(needed), needed.strided
                if key not in self.launchers:
                    self.launchers[key] = self.pool.submit(kernels.compile, *key)

    def find(self, item):
        """The launcher of an item; raises Missing."""
        return self.launchers[plan.timed_text(item), item.strided].result()


class Call:
    """A launch on tensors, arguments and then results, in PyTorch's current stream."""

    def __init__(self, launcher, tensors):
        self.launcher, self.kept = launcher, tensors
        self.tensors = [
            kernels.tensor(t.data_ptr(), t.shape, str(t.dtype).removeprefix("torch."), t.stride())
            for t in tensors
        ]
        self.size = launcher.workspace_size(self.tensors)
        self.workspace = torch.empty(
            max(1, self.size) + 256, dtype=torch.uint8, device=rehearsal.DEVICE
        )
        address = self.workspace.data_ptr()
        self.address = address + -address % 256

    def __call__(self):
        stream = torch.cuda.current_stream().cuda_stream
        self.launcher.launch(self.tensors, self.address, self.size, stream)

    def check(self):
        """Waits; raises what kernels have found wrong."""
        self.launcher.check(self.address, torch.cuda.current_stream().cuda_stream)


def make_inputs(config, count):
    """`count` sets of q, k, v on the GPU."""
    batch, d = config.batch, config.head_dim

    def normal(rows, heads):
        return torch.randn(rows, heads, d, device=rehearsal.DEVICE, dtype=TYPES[config.dtype])

    return [
        (normal(batch.tokens_q, batch.heads), normal(batch.tokens_k, batch.kv_heads),
         normal(batch.tokens_k, batch.kv_heads))
        for _ in range(count)
    ]  # fmt: skip


def packed_views(q, k, v):
    """The same numbers in one tensor (rows, heads of all three, head_dim), as a model's fused
    projection has them."""
    heads = [x.shape[1] for x in (q, k, v)]
    return torch.cat([q, k, v], 1).split(heads, 1)


def make_captures(item):
    """The captures of a score: those that have a number for each head, like slopes."""
    extents = {"heads": item.config.batch.heads}
    return [
        0.1 * torch.rand(*(extents[name] for name in varlen.scores.CAPTURES[of]), device=rehearsal.DEVICE)
        for of in item.captures.values()
    ]  # fmt: skip


def _move_to_pages(k, v, shared, page):
    """The same keys and values in pages, which are in any order, and the table of these."""
    lengths = torch.diff(shared.cu_k).tolist()
    counts = [-(-length // page) for length in lengths]
    order = torch.randperm(sum(counts))
    table = torch.zeros(len(counts), max(counts), dtype=torch.int32)
    rows = []
    for s, (length, pages) in enumerate(zip(lengths, order.split(counts))):
        table[s, : len(pages)] = pages
        rows.append((pages[:, None] * page + torch.arange(page)).flatten()[:length])
    rows = torch.cat(rows).to(k.device)
    moved = [x.new_zeros(len(order) * page, *x.shape[1:]) for x in (k, v)]
    for to, x in zip(moved, (k, v)):
        to[rows] = x
    return *(x.unflatten(0, (-1, page)) for x in moved), table.to(k.device)


def _forward(launcher, item, inputs, shared, captures):
    """Calls on the inputs, and the buffers that they fill."""
    batch = item.config.batch
    calls, results = [], []
    for q, k, v in inputs:
        out = torch.empty_like(q, memory_format=torch.contiguous_format)
        lse = torch.empty(batch.heads, batch.tokens_q, device=rehearsal.DEVICE)
        operands = q, k, v, shared.cu_q, shared.cu_k, *captures
        if item.page:
            k, v, table = _move_to_pages(k, v, shared, item.page)
            operands = q, k, v, shared.cu_q, torch.diff(shared.cu_k), table
        if item.kv_dtype:
            (k, k_scale), (v, v_scale) = (quantise(x, QUANTISED[item.kv_dtype]) for x in (k, v))
            operands = q, k, v, *operands[3:], k_scale, v_scale
        calls.append(Call(launcher, (*operands, out, lse)))
        results.append((out, lse))
    return calls, results


def _gradients(launcher, inputs, forward, shared, captures):
    """The same for (dout, q, k, v) and what the forward has made of them."""
    calls, results = [], []
    for (dout, q, k, v), (out, lse) in zip(inputs, forward):
        gradients = tuple(torch.empty_like(x) for x in (q, k, v, *captures))
        tensors = dout, q, k, v, out, lse, shared.cu_q, shared.cu_k, *captures, *gradients
        calls.append(Call(launcher, tensors))
        results.append(gradients)
    return calls, results


def _tangents(launcher, inputs, results, shared):
    """The same for (q, k, v) along a direction, whose values go where the forward's were."""
    calls = []
    for x, of_values in zip(inputs, results):
        moved = (torch.randn_like(t) for t in x)
        of_tangents = tuple(map(torch.empty_like, of_values))
        operands = *x, *moved, shared.cu_q, shared.cu_k
        calls.append(Call(launcher, (*operands, *of_values, *of_tangents)))
    return calls, results


def _second(launcher, inputs, forward, shared):
    """Calls for (q, k, v) and what the forward has made of them, with directions, tangents of
    results and cotangents of these that are random numbers. What is compared with the forward's
    results stays these: nothing else has made such gradients."""
    calls = []
    for x, of_values in zip(inputs, forward):
        dout, tout, tlse = map(torch.randn_like, (of_values[0], *of_values))
        moved, gradients = map(torch.randn_like, x), tuple(map(torch.empty_like, x))
        operands = dout, *x, *moved, *of_values, tout, tlse, shared.cu_q, shared.cu_k
        calls.append(Call(launcher, (*operands, *gradients)))
    return calls, forward


def prepare(compiler, item, shared):
    """Inputs, calls, and the buffers that these have filled once."""
    config, batch = item.config, item.config.batch
    launcher = compiler.find(item)
    one = (
        2
        * config.head_dim
        * (2 * batch.tokens_q * batch.heads + 2 * batch.tokens_k * batch.kv_heads)
    )
    # q, dout, out and dq; k, v, dk and dv; the same of tangents.
    one *= 1 + item.gradients + item.tangents
    inputs, captures = make_inputs(config, timing.sets_for(one)), make_captures(item)
    if item.strided:
        inputs = [packed_views(*x) for x in inputs]
    forward = compiler.find(item.forward)
    calls, results = _forward(forward, item, inputs, shared, captures)
    if item.gradients:
        for call in calls:
            call()
    if item.gradients and not item.tangents:
        inputs = [(torch.randn_like(out), *x) for x, (out, _) in zip(inputs, results)]
        calls, results = _gradients(launcher, inputs, results, shared, captures)
    if item.tangents:
        derive = _second if item.gradients else _tangents
        calls, results = derive(launcher, inputs, results, shared)
    for call in calls:
        call()
        call.check()
    return inputs, calls, results


def difference(a, b):
    a, b = a.float(), b.float()
    return float((a - b).norm() / b.norm().clamp(min=1e-20))
