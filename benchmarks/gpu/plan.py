"""What is checked and what is timed on a GPU, and the functions that takes.

A function is known by its text: whoever has the text has the name of its file.
"""

import dataclasses
import random
import zlib

import harness
import parameters
import sets
import varlen


def name_of(text):
    return f"attn_{zlib.crc32(text.encode()):08x}"


def timed_text(config):
    return varlen.text.attn(
        dtype=config.dtype,
        heads=config.batch.heads,
        kv_heads=config.batch.kv_heads,
        head_dim=config.head_dim,
        window=config.window,
        buffers=True,
    )


def timed():
    return sets.gpu_configurations()


def _of_timed(config, rng):
    """A ragged batch for a function that is timed, with the shape of its use; its
    result is judged as a whole, as FlashAttention's tests do."""
    lengths = [70, 128, 193, 0, 5, 1, 64, 300, 517]
    sequences = []
    for k in lengths:
        q = min(k, 1) if config.batch.set == "decode" else k
        sequences.append(parameters.Sequence(q, k, q, k, (0, 0)))
    rng.shuffle(sequences)
    return parameters.Group(
        "timed", config.dtype, config.batch.heads, config.batch.kv_heads,
        config.head_dim, config.head_dim, config.window, tuple(sequences),
        past_q=3, past_k=3,
    )  # fmt: skip


def checked():
    """Groups of batches, first the functions that are timed, then a sample of
    FlashAttention's parameters with what they leave out."""
    rng = random.Random("gpu")
    seen = set()
    for config in timed():
        group = _of_timed(config, rng)
        if group.label not in seen:
            seen.add(group.label)
            yield group
    for group in parameters.sample_groups():
        if group.dtype == "f64":  # for gradient checks on the CPU
            continue
        # Long ones only make the golden results late.
        sequences = [s for s in group.sequences if s.k_slot <= 1100]
        yield dataclasses.replace(group, sequences=tuple(sequences))


def checked_text(group):
    return harness.module_text(group, buffers=True)


def texts():
    """Every function once, by name."""
    functions = {}
    for config in timed():
        functions.setdefault(name_of(timed_text(config)), timed_text(config))
    for group in checked():
        functions.setdefault(name_of(checked_text(group)), checked_text(group))
    return functions
