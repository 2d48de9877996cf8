"""Prints the tensors of a safetensors file, sorted by name."""

import sys

import varlen

for name, array in sorted(varlen.safetensors.read(sys.argv[1]).items()):
    label = array.dtype.name
    if array.dtype == varlen.bfloat16:
        label, array = "bf16", varlen.dtypes.widen(array)
    print(name, label, list(array.shape), array.reshape(-1).tolist())
