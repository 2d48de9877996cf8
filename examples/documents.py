"""What the training examples learn from: documents packed into batches, which keys the
layers see, and the options of the small GPT. It needs numpy alone.

The documents are parts of this repository's pages, as bytes.
"""

import argparse
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
VOCABULARY = 256
# The target of a token without a successor, as torch.nn.functional.cross_entropy has it.
NO_TARGET = -100


def read_documents(separator):
    """Parts of the pages between separators, uint8 arrays of at least two bytes."""
    pages = [ROOT / "LICENSE", ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    parts = [part.strip() for page in pages for part in page.read_bytes().split(separator)]
    return [np.frombuffer(part, np.uint8) for part in parts if len(part) > 1]


def pack(documents, tokens):
    """One batch of `tokens` tokens from the front of a list of documents; the last one
    is cut. Returns it and how many documents it has."""
    no_target = np.int32(NO_TARGET)
    parts, rows = [], 0
    while rows < tokens:
        parts.append(documents[len(parts)][: tokens - rows])
        rows += len(parts[-1])
    batch = {
        "tokens": np.concatenate(parts).astype(np.int32),
        "targets": np.concatenate([np.append(part[1:], no_target) for part in parts]),
        "positions": np.concatenate([np.arange(len(part), dtype=np.int32) for part in parts]),
        "cu_seqlens": np.cumsum([0, *map(len, parts)], dtype=np.int32),
    }
    return batch, len(parts)


def make_batches(steps, tokens, seed, separator=b"\n## "):
    """`steps` batches: tokens, targets (the next token of a document or NO_TARGET) and
    positions, each `tokens` x i32, and cu_seqlens. Each document is used before one is
    used again. Batches with fewer documents end in empty ones, so all have one shape."""
    rng = np.random.default_rng(seed)
    documents, queue, batches = read_documents(separator), [], []
    for _ in range(steps):
        while sum(map(len, queue)) < tokens:
            queue += [documents[i] for i in rng.permutation(len(documents))]
        batch, used = pack(queue, tokens)
        batches.append(batch)
        queue = queue[used:]
    entries = max(len(batch["cu_seqlens"]) for batch in batches)
    for batch in batches:
        cu_seqlens = batch["cu_seqlens"]
        batch["cu_seqlens"] = np.pad(cu_seqlens, (0, entries - len(cu_seqlens)), mode="edge")
    return batches


def layer_windows(pattern, layers, context):
    """How many keys before its own a query of each layer sees, -1 for all.

    `pattern` is repeated over the layers: L is `context` keys, S a quarter of them, and
    the last layer is always L, as in nanochat. Without a pattern all layers see all keys.
    Raises ValueError for other letters.
    """
    if set(pattern) - {"S", "L"}:
        raise ValueError(f"wanted a pattern of the letters S and L, got {pattern!r}")
    if not pattern:
        return [-1] * layers
    letters = (pattern * layers)[: layers - 1] + "L"
    return [{"S": context // 4, "L": context}[letter] for letter in letters]


def gpt_parser(description, dtypes):
    """The options of the small GPT, whoever trains it."""
    parser = argparse.ArgumentParser(description=description)
    for name, value in {
        "steps": 20, "tokens": 4096, "width": 256, "head-dim": 64, "layers": 4, "seed": 0
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--dtype", choices=dtypes, default="f32")
    parser.add_argument(
        "--windows", default="",
        help="L and S for layers that see all and a quarter of the context, repeated, such as"
        " nanochat's SSSL; the last layer is L; default: layers see their whole document",
    )  # fmt: skip
    parser.add_argument("--context", type=int, default=2048, help="keys that a layer L sees")
    return parser
