"""The gradient of a whole language model (examples/train.mlir) against finite
differences in f64: embedding, norms, rotary positions, attention with GQA, SwiGLU,
cross entropy."""

# REQUIRES: venv
# RUN: %around-code %python %s %varlen-src/examples

import sys

import numpy as np

sys.path.insert(0, sys.argv[1])
import train
import varlen
from documents import pack

STEP = 1e-4

rng = np.random.default_rng(3)
# One token alone, two, and an empty document at the end.
documents = [rng.integers(0, 256, length).astype(np.uint8) for length in (1, 9, 2, 17)]
batch = train.weigh(pack(documents), np.float64)
batch["cu_seqlens"] = np.append(batch["cu_seqlens"], 29).astype(np.int32)
parameters = train.initial_parameters(np.float64, 5)
# Norms of 1 would hide what is multiplied by them.
parameters += 0.1 * rng.standard_normal(parameters.shape)
direction = rng.standard_normal(parameters.shape)
direction /= np.linalg.norm(direction)

module = train.compile_model(np.float64)
module = module.replace("func.func private @loss_vjp", "func.func @loss_vjp")


def run(entry, parameters, **more):
    return varlen.run(module, {"params": parameters, **batch, **more}, entry=entry)


values = run("loss_vjp", parameters, dloss=np.array(1.0))
slope = values["dparams"] @ direction
above = run("loss", parameters + STEP * direction)["loss"]
below = run("loss", parameters - STEP * direction)["loss"]
difference = (above - below) / (2 * STEP)
if not abs(slope - difference) <= 1e-7 * (1 + abs(slope)):
    raise SystemExit(f"the gradient gives {slope:.12g}, differences {difference:.12g}")
if not np.isclose(values["loss"], (above + below) / 2, rtol=1e-6):
    raise SystemExit(f"loss_vjp returns the loss {values['loss']}, loss about {above}")
# Every parameter that takes part has a gradient.
for name, part in train.split_parameters(values["dparams"]).items():
    if name != "embedding" and not np.count_nonzero(part) == part.size:
        raise SystemExit(f"{name} has gradients of 0")
