# RUN: rm -rf %t && mkdir %t
# RUN: %python %s %t
# REQUIRES: torch, onnxscript

"""Transformers that PyTorch has exported compute what they do in PyTorch, by
varlen.compile and by varlen-import and varlen-run."""

import pathlib
import sys
import warnings

import numpy as np
import torch
import varlen
from models import GPT, Encoder, Llama, export, random_ids
from varlen.onnx import import_model
from varlen.onnx.__main__ import main

warnings.filterwarnings("ignore")
folder = pathlib.Path(sys.argv[1])
torch.manual_seed(0)


def check(name, logits, module, ids):
    with torch.no_grad():
        wanted = module(torch.from_numpy(ids)).numpy()
    assert logits.shape == wanted.shape, (name, logits.shape, wanted.shape)
    error = np.abs(logits - wanted).max() / np.abs(wanted).max()
    assert error < 2e-6, f"{name}: {error}"


# From opset 23 on PyTorch exports attention as such; before it as products and masks.
modules = {"llama": Llama(), "encoder": Encoder(layers=1), "gpt20": GPT(layers=1)}
functions = {}
for name, module in modules.items():
    model = export(module, 20 if name == "gpt20" else 23, folder / f"{name}.onnx")
    functions[name] = import_model(model, name=name)
    assert (
        functions[name].text.count("varlen.attn") == {"llama": 2, "encoder": 1, "gpt20": 0}[name]
    ), name
program = varlen.compile("\n".join(f.text for f in functions.values()))
for name, module in modules.items():
    for batch, rows in ((2, 7), (1, 1), (3, 40)):
        ids = random_ids(batch, rows)
        check(name, program[name](ids, *functions[name].weights.values()), module, ids)

# By files.
for weights in ([], ["--weights", str(folder / "weights.safetensors")]):
    mlir = folder / "llama.mlir"
    assert main([str(folder / "llama.onnx"), "-o", str(mlir), *weights]) == 0
    ids = random_ids(2, 9)
    flags = {"weights": weights[1]} if weights else {}
    results = varlen.run(mlir, {"ids": ids}, **flags)
    check("varlen-run", results["logits"], modules["llama"], ids)
