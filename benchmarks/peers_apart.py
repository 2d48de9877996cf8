#!/usr/bin/env python3
"""Peers in a process and an environment of their own: zentorch and onnxruntime.

    build/peers/venv/bin/python benchmarks/peers_apart.py LABEL      # of benchmarks/cpu.py --list
    build/peers/venv/bin/python benchmarks/peers_apart.py --overhead

prints a JSON object, the median milliseconds of each peer. With --overhead these are of a
call with 10 rows, 4 heads and head_dim 64 on one thread, ours and PyTorch's among them:
what is around the arithmetic.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "python")]

import sets

OVERHEAD = sets.Config(sets.Batch("overhead", "", (10,), (10,), 4, 4), "f32", 64, sets.CAUSAL, 1)


def measure(config, build):
    """Milliseconds of each peer that can run the configuration; none if there is no
    environment of theirs."""
    python = pathlib.Path(build) / "peers" / "venv" / "bin" / "python"
    if (
        not python.exists()
        or config.direction != "forward"
        or config.window not in (sets.FULL, sets.CAUSAL)
    ):
        return {}
    done = subprocess.run(
        [python, __file__, config.label], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(
            f"{config.label}: no peers of {python}: {done.stderr.strip()[-500:]}", file=sys.stderr
        )
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def _contiguous(config, inputs):
    import peers

    batch = config.batch
    pairs = (inputs.q, batch.q_lengths), (inputs.k, batch.k_lengths), (inputs.v, batch.k_lengths)
    return [[t.contiguous() for t in peers.sequences_of(*pair)] for pair in pairs]


def zentorch(config, inputs):
    """zentorch's operator, one call per sequence, on contiguous heads."""
    import torch
    import zentorch  # noqa: F401  It registers the operator.

    sequences = list(zip(*_contiguous(config, inputs)))
    is_causal = config.mask == "causal"

    def run():
        return [
            torch.ops.zentorch.zentorch_sdpa(*qkv, 0.0, is_causal, attn_mask=None, scale=None)
            for qkv in sequences
        ]

    return run


class _Session:
    """A node of onnxruntime's own operators, called on each sequence in place."""

    def __init__(self, config, op, names, outputs, **attributes):
        import onnx
        import onnxruntime

        type, integer = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32
        node = onnx.helper.make_node(op, names, [*outputs], domain="com.microsoft", **attributes)
        present = [name for name in names if name]
        kinds = {"seqlens_k": (integer, [1]), "total": (integer, [1])}
        infos = [
            onnx.helper.make_tensor_value_info(name, *kinds.get(name, (type, [1, None, None])))
            for name in present
        ]
        results = [onnx.helper.make_tensor_value_info(name, type, None) for name in outputs]
        graph = onnx.helper.make_graph([node], op, infos, results)
        opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = config.threads
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self.bindings = []

    def bind(self, outputs, **arrays):
        binding = self.session.io_binding()
        for name, array in arrays.items():
            binding.bind_cpu_input(name, array)
        for name in outputs:
            binding.bind_output(name, "cpu")
        self.bindings.append(binding)

    def run(self):
        for binding in self.bindings:
            self.session.run_with_iobinding(binding)


def _rows(config, inputs):
    """The rows of q, k and v of each sequence, 1 x rows x width, in numpy."""
    import torch

    batch, result = config.batch, []
    for packed, lengths in (
        (inputs.q, batch.q_lengths),
        (inputs.k, batch.k_lengths),
        (inputs.v, batch.k_lengths),
    ):
        flat = packed.reshape(1, packed.shape[0], -1)
        result.append([t.contiguous().numpy() for t in torch.split(flat, list(lengths), 1)])
    return list(zip(*result))


def onnxruntime_mha(config, inputs):
    """com.microsoft.MultiHeadAttention, one call per sequence."""
    heads = config.batch.heads
    session = _Session(config, "MultiHeadAttention", ["query", "key", "value"], ["out"],
                       num_heads=heads, unidirectional=int(config.mask == "causal"))  # fmt: skip
    for q, k, v in _rows(config, inputs):
        session.bind(["out"], query=q, key=k, value=v)
    return session.run


def onnxruntime_gqa(config, inputs):
    """com.microsoft.GroupQueryAttention, which is causal, one call per sequence."""
    import numpy

    outputs = ["out", "present_key", "present_value"]
    session = _Session(
        config, "GroupQueryAttention", ["query", "key", "value", "", "", "seqlens_k", "total"], outputs,
        num_heads=config.batch.heads, kv_num_heads=config.batch.kv_heads,
    )  # fmt: skip
    for q, k, v in _rows(config, inputs):
        rows = k.shape[1]
        session.bind(outputs, query=q, key=k, value=v, seqlens_k=numpy.array([rows - 1], numpy.int32),
                     total=numpy.array([rows], numpy.int32))  # fmt: skip
    return session.run


def functions(config, inputs):
    """What can run a configuration, by name."""
    yield "zentorch", lambda: zentorch(config, inputs)
    if config.dtype != "f32":  # onnxruntime has no other on CPUs.
        return
    batch = config.batch
    if batch.heads == batch.kv_heads:
        yield "onnxruntime MHA", lambda: onnxruntime_mha(config, inputs)
    if config.mask == "causal" and batch.q_lengths == batch.k_lengths:
        yield "onnxruntime GQA", lambda: onnxruntime_gqa(config, inputs)


def overhead_functions(config, inputs):
    import numpy

    import peers
    import varlen

    arrays = [t.numpy() for t in (inputs.q, inputs.k, inputs.v)]
    tensors = inputs.q, inputs.k, inputs.v
    cu = numpy.array([0, *config.batch.q_lengths], numpy.int32)
    out = numpy.empty_like(arrays[0])
    varlen.set_num_threads(config.threads)
    yield "varlen.attn (numpy)", lambda: lambda: varlen.attn(*arrays, cu, is_causal=True, out=out)
    import torch
    from varlen.torch import varlen_attn

    cu_torch = torch.from_numpy(cu)
    yield (
        "varlen.torch.varlen_attn",
        lambda: lambda: varlen_attn(*tensors, cu_torch, cu_torch, window_size=(-1, 0)),
    )
    yield "PyTorch sdpa", lambda: peers.sdpa_per_sequence(config, inputs, contiguous=True)
    yield from functions(config, inputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("label", nargs="?")
    parser.add_argument("--overhead", action="store_true")
    arguments = parser.parse_args()
    known = {config.label: config for config in sets.configurations()}
    if not arguments.overhead and arguments.label not in known:
        sys.exit(f"expected a label of benchmarks/cpu.py --list, got {arguments.label!r}")
    config = OVERHEAD if arguments.overhead else known[arguments.label]

    import peers

    inputs, times = peers.Inputs(config), {}
    for name, prepare in (overhead_functions if arguments.overhead else functions)(config, inputs):
        times[name] = peers.measure(prepare(), config.threads)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
