"""Small transformers of PyTorch, and their models of ONNX."""

import os

import numpy as np
import onnx
import torch
import torch.nn.functional as functional
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads, is_causal, is_rotated):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, width // heads
        self.is_causal, self.is_rotated = is_causal, is_rotated
        self.q = nn.Linear(width, width)
        self.k, self.v = (nn.Linear(width, kv_heads * self.head_dim) for _ in range(2))
        self.out = nn.Linear(width, width)

    def rotate(self, x):
        half = self.head_dim // 2
        angle = torch.arange(x.shape[2])[:, None] * torch.pow(10000.0, -torch.arange(half) / half)
        a, b = x.chunk(2, -1)
        cos, sin = torch.cos(angle), torch.sin(angle)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def forward(self, x):
        q, k, v = (
            linear(x).view(*x.shape[:2], heads, self.head_dim).transpose(1, 2)
            for linear, heads in (
                (self.q, self.heads),
                (self.k, self.kv_heads),
                (self.v, self.kv_heads),
            )
        )
        if self.is_rotated:
            q, k = self.rotate(q), self.rotate(k)
        out = functional.scaled_dot_product_attention(
            q, k, v, is_causal=self.is_causal, enable_gqa=self.heads != self.kv_heads
        )
        return self.out(out.transpose(1, 2).flatten(2))


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate, self.up = nn.Linear(width, 3 * width), nn.Linear(width, 3 * width)
        self.down = nn.Linear(3 * width, width)

    def forward(self, x):
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, norm, attention, mlp, width):
        super().__init__()
        self.first, self.second = norm(width), norm(width)
        self.attention, self.mlp = attention, mlp

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class Llama(nn.Module):
    """Rotary embeddings, grouped heads, RMS norms and a gated MLP."""

    def __init__(self, vocabulary=50, width=32, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*(
            Block(nn.RMSNorm, Attention(width, 4, 2, True, True), Gated(width), width) for _ in range(layers)
        ))  # fmt: skip
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.tokens(ids))))


class GPT(nn.Module):
    """Learned positions, LayerNorm and GELU."""

    def __init__(self, vocabulary=50, width=32, layers=2, longest=64):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        self.blocks = nn.Sequential(*(
            Block(nn.LayerNorm, Attention(width, 4, 4, True, False),
                  nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width)), width)
            for _ in range(layers)
        ))  # fmt: skip
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


class Encoder(nn.Module):
    """PyTorch's own encoder layers, which see no padding (id 0), and a class for each
    sequence."""

    def __init__(self, vocabulary=50, width=32, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 3)

    def forward(self, ids):
        rows = self.layers(self.tokens(ids), src_key_padding_mask=ids == 0)
        return self.head(torch.tanh(rows.mean(1)))


def export(module, opset, path=None) -> onnx.ModelProto:
    """The model of ONNX; batch and sequence are dynamic."""
    batch, sequence = torch.export.Dim("batch"), torch.export.Dim("sequence", max=64)
    program = torch.onnx.export(
        module.eval(), (torch.zeros(2, 7, dtype=torch.int64),), dynamo=True, opset_version=opset,
        input_names=["ids"], output_names=["logits"], dynamic_shapes=({0: batch, 1: sequence},), verbose=False,
    )  # fmt: skip
    if path is not None:
        program.save(os.fspath(path))
    return program.model_proto


def random_ids(batch, rows, vocabulary=50):
    return np.random.default_rng(rows).integers(0, vocabulary, (batch, rows))
