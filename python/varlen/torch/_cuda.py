"""The operators on tensors of CUDA devices: those of the CPU, as kernels are compiled for the
device that tensors are on."""

from ._cpu import attn_backward_cpu, attn_cpu, attn_out_cpu
from ._operators import library

library.impl("attn", attn_cpu, "CUDA")
library.impl("attn_out", attn_out_cpu, "CUDA")
library.impl("attn_backward", attn_backward_cpu, "CUDA")
