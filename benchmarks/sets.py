"""The workloads: which batches are measured, and how much work each one is.

A batch is two lists of lengths, one for the queries and one for the keys, and
the number of entries its cu_seqlens has. Useful work is counted exactly: only
the (query, key) pairs that the mask leaves visible count, two multiply-adds per
pair, head and element of head_dim.
"""

import dataclasses
import random

# Windows are (left, right), inclusive; -1 is open.
FULL = (-1, -1)
CAUSAL = (-1, 0)


@dataclasses.dataclass(frozen=True)
class Batch:
    set: str  # the workload set the batch belongs to
    name: str  # the batch inside the set; empty if the set is one batch
    q_lengths: tuple
    k_lengths: tuple
    heads: int
    kv_heads: int

    @property
    def tokens_q(self):
        return sum(self.q_lengths)

    @property
    def tokens_k(self):
        return sum(self.k_lengths)

    @property
    def label(self):
        return f"{self.set}/{self.name}" if self.name else self.set


@dataclasses.dataclass(frozen=True)
class Config:
    batch: Batch
    dtype: str
    head_dim: int
    window: tuple
    threads: int | None  # None: not a CPU
    direction: str = "forward"
    page: int | None = None  # rows of a page; None: keys are packed
    kv_dtype: str | None = None  # of quantised keys and values; None: they are of dtype

    @property
    def mask(self):
        if self.window == FULL:
            return "full"
        if self.window == CAUSAL:
            return "causal"
        return f"window {self.window[0]},{self.window[1]}"

    @property
    def label(self):
        label = f"{self.batch.label} {self.dtype} d{self.head_dim} {self.mask}"
        if self.direction != "forward":
            label += f" {self.direction}"
        if self.page is not None:
            label += f" pages of {self.page}"
        if self.kv_dtype is not None:
            label += f" keys of {self.kv_dtype}"
        return label if self.threads is None else f"{label} {self.threads}t"

    @property
    def cache_bytes(self):
        """Bytes of all keys and values."""
        element = {"f32": 4, "bf16": 2, "f16": 2, "i8": 1, "f8E4M3FN": 1}[self.kv_dtype or self.dtype]
        return 2 * self.batch.tokens_k * self.batch.kv_heads * self.head_dim * element

    @property
    def flops(self):
        d = self.head_dim
        return useful_flops(self.batch, d, d, self.window, self.direction)


def visible_pairs(q_length, k_length, window):
    """How many (query, key) pairs of one sequence the window leaves visible.

    The last query is aligned with the last key (bottom_right).

    >>> visible_pairs(3, 5, FULL), visible_pairs(4, 4, CAUSAL)
    (15, 10)
    >>> visible_pairs(4, 4, (1, 0)), visible_pairs(2, 4, CAUSAL)
    (7, 7)
    >>> visible_pairs(4, 2, CAUSAL)
    3
    """
    left, right = window
    diagonal = k_length - q_length
    pairs = 0
    for row in range(q_length):
        begin = 0 if left < 0 else max(0, row + diagonal - left)
        end = k_length if right < 0 else min(k_length, row + diagonal + right + 1)
        pairs += max(0, end - begin)
    return pairs


def useful_flops(batch, d, dv, window, direction="forward"):
    pairs = {}
    for lengths in zip(batch.q_lengths, batch.k_lengths):
        if lengths not in pairs:
            pairs[lengths] = visible_pairs(*lengths, window)
    total = sum(pairs[lengths] for lengths in zip(batch.q_lengths, batch.k_lengths))
    # Forward: q k and p v. Backward: those of scores and of what comes back
    # through v, then dv, dk and dq.
    products = d + dv if direction == "forward" else 3 * d + 2 * dv
    return 2 * batch.heads * products * total


def _self_attention(set_name, name, lengths, heads):
    lengths = tuple(lengths)
    return Batch(set_name, name, lengths, lengths, heads, heads)


def pr164502():
    """The batch of PyTorch's pull request 164502, which brought varlen_attn."""
    lengths = [448, 1280, 1856, 960, 704, 512, 1856, 1344]
    return _self_attention("pr164502", "", lengths, 16)


def nanochat_documents(tokens=32768):
    """Document lengths of one micro-batch: log-normal, median 400, cut at 2048."""
    rng = random.Random(42)
    lengths = []
    while sum(lengths) < tokens:
        length = min(2048, max(1, round(rng.lognormvariate(5.99146, 0.8))))
        lengths.append(min(length, tokens - sum(lengths)))
    return lengths


def nanochat_d24():
    """nanochat's layers (12 heads of 128) on documents; ghosts pad cu_seqlens.

    The data loader of that project gives cu_seqlens a constant number of
    entries, so most batches end in empty sequences.
    """
    documents = nanochat_documents()
    batches = []
    for entries in [len(documents) + 1, 96, 128, 256, 512, 1024]:
        lengths = documents + [0] * (entries - 1 - len(documents))
        name = "exact" if entries == len(documents) + 1 else f"cu{entries}"
        batches.append(_self_attention("nanochat-d24", name, lengths, 12))
    return batches


# FlashAttention's distributions of lengths, by its names. FlashAttention runs
# them with heads * head_dim = 2048; on a CPU it is 256, and the longest sequence
# is 2048, so that all of them fit a few minutes of two cores.
DISTRIBUTION_TOKENS = 32768
CPU_LONGEST, CPU_WIDTH = 2048, 256
GPU_LONGEST, GPU_WIDTH = 4096, 2048


def _distribution_lengths(name, tokens, longest):
    rng = random.Random(0)
    lengths = []
    while sum(lengths) < tokens:
        i = len(lengths)
        if name == "constant":
            length = longest
        elif name == "uniform":
            length = rng.randint(longest // 2, longest)
        elif name == "wide":
            length = rng.randint(1, longest)
        elif name == "longtail":
            length = (
                longest if i % 8 == 0 else rng.randint(longest // 16, longest // 8)
            )
        elif name == "bimodal":
            length = longest if i % 2 == 0 else longest // 8
        elif name == "skew":
            # One long sequence first, then ever shorter ones.
            length = max(1, longest // (1 + i // 4))
        else:
            raise ValueError(f"wanted a distribution of lengths, got '{name}'")
        lengths.append(min(length, tokens - sum(lengths)))
    return lengths


DISTRIBUTIONS = ["constant", "uniform", "wide", "longtail", "bimodal", "skew"]


def fa_distributions(head_dim, longest=CPU_LONGEST, width=CPU_WIDTH):
    heads = width // head_dim
    return [
        _self_attention(
            "fa-distributions",
            name,
            _distribution_lengths(name, DISTRIBUTION_TOKENS, longest),
            heads,
        )
        for name in DISTRIBUTIONS
    ]


def decode():
    """One new token per sequence against long key caches, 4 query heads a kv head."""
    rng = random.Random(7)
    k_lengths = tuple(rng.randint(512, 4096) for _ in range(32))
    return Batch("decode", "", (1,) * 32, k_lengths, 16, 4)


def configurations(quick=False):
    """Every configuration that is measured, in the order it is measured."""
    dtypes = ["f32", "bf16"]
    configs = []
    for dtype in dtypes:
        for d in [64, 128] if quick else [64, 128, 256]:
            for window in [FULL, CAUSAL] if quick else [FULL, CAUSAL, (256, 0)]:
                configs.append(Config(pr164502(), dtype, d, window, 2))
            # How it scales with threads no mask changes.
            if not quick:
                configs.append(Config(pr164502(), dtype, d, FULL, 1))
    for window in [(512, 0)] if quick else [(512, 0), (2048, 0)]:
        for batch in nanochat_d24():
            if not quick or batch.name in ("exact", "cu1024"):
                configs.append(Config(batch, "bf16", 128, window, 2))
    for dtype in dtypes:
        for d in [128] if quick else [64, 128, 256]:
            for window in [CAUSAL] if quick or d != 128 else [CAUSAL, FULL]:
                for batch in fa_distributions(d):
                    if not quick or batch.name in ("constant", "longtail"):
                        configs.append(Config(batch, dtype, d, window, 2))
    for dtype in dtypes:
        for d in [128] if quick else [64, 128, 256]:
            for threads in [2] if quick or d != 128 else [2, 1]:
                configs.append(Config(decode(), dtype, d, FULL, threads))
                configs.append(Config(decode(), dtype, d, FULL, threads, page=64))
                if dtype == "bf16":
                    for kv_dtype in ["i8", "f8E4M3FN"]:
                        configs.append(
                            Config(decode(), dtype, d, FULL, threads, page=64, kv_dtype=kv_dtype)
                        )
    return configs + backward_configurations(quick)


def backward_configurations(quick=False):
    """The gradients of a part of them."""
    configs = []

    def add(batch, dtype, d, window, threads=2):
        configs.append(Config(batch, dtype, d, window, threads, "backward"))

    for dtype in ["f32", "bf16"]:
        for d in [64, 128]:
            for window in [FULL] if quick else [FULL, CAUSAL]:
                add(pr164502(), dtype, d, window)
        if not quick:
            add(pr164502(), dtype, 64, FULL, threads=1)
            add(pr164502(), dtype, 256, FULL)
            for batch in fa_distributions(128):
                add(batch, dtype, 128, CAUSAL)
    for batch in nanochat_d24():
        if batch.name == "exact" or (batch.name == "cu1024" and not quick):
            add(batch, "bf16", 128, (2048, 0))
    return configs


def gpu_configurations():
    """What is measured on a GPU, first what is missed most if time runs out."""
    configs = []

    def add(batch, dtype, d, window):
        configs.append(Config(batch, dtype, d, window, None))

    for dtype in ["bf16", "f16"]:
        for d in [64, 128, 256]:
            for window in [FULL, CAUSAL, (256, 0)]:
                if dtype == "bf16" or (d < 256 and window != (256, 0)):
                    add(pr164502(), dtype, d, window)
    for window in [(512, 0), (2048, 0)]:
        for batch in nanochat_d24():
            add(batch, "bf16", 128, window)
    for d in [64, 128, 256]:
        add(decode(), "bf16", d, FULL)
    for d in [128, 64, 256]:
        for window in [CAUSAL, FULL]:
            for batch in fa_distributions(d, GPU_LONGEST, GPU_WIDTH):
                add(batch, "bf16", d, window)
    return configs
