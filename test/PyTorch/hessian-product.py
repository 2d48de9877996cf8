# RUN: %python %s %varlen-src/examples

"""A product of the Hessian of a language model's loss (examples/train.mlir) with a direction, by
the forward mode of its backward function, against PyTorch's double backward, in f64."""

import sys

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, sys.argv[1])
import train
import varlen
from documents import pack

rng = np.random.default_rng(3)
# One token alone, two, and an empty document at the end.
documents = [rng.integers(0, 256, length).astype(np.uint8) for length in (1, 9, 2, 17)]
batch = train.weigh(pack(documents), np.float64)
batch["cu_seqlens"] = np.append(batch["cu_seqlens"], 29).astype(np.int32)
parameters = train.initial_parameters(np.float64, 5)
direction = rng.standard_normal(parameters.shape)
direction /= np.linalg.norm(direction)

text = train.compile_model(np.float64).replace("func.func private @loss_vjp", "func.func @loss_vjp")
module = varlen.call(
    "varlen-opt", "--varlen-differentiate=function=loss_vjp mode=forward wrt=params", text=text
)
assert module.split("@loss_vjp_jvp")[1].count("varlen.attn_jvp_grad") == train.LAYERS
values = varlen.run(
    module,
    {"params": parameters, **batch, "dloss": np.array(1.0), "tparams": direction},
    entry="loss_vjp_jvp",
)

loss = train.make_torch_loss()
vector = torch.from_numpy(parameters.copy()).requires_grad_()
with sdpa_kernel(SDPBackend.MATH):  # the others have no second derivative
    (gradient,) = torch.autograd.grad(loss(vector, batch), vector, create_graph=True)
    (product,) = torch.autograd.grad(gradient, vector, torch.from_numpy(direction))
for name, got, wanted in (
    ("gradient", values["dparams"], gradient.detach()), ("product", values["tdparams"], product)
):  # fmt: skip
    wanted = wanted.numpy()
    error = np.abs(got - wanted).max() / np.abs(wanted).max()
    assert error <= 1e-11, f"{name}: off by {error} of the largest number"
slope = gradient.detach().numpy() @ direction
assert abs(values["tloss"] - slope) <= 1e-11 * abs(slope)
