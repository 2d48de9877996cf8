"""Bad operands stop a program that was compiled with the checks of
generate-runtime-verification, with a message that says what is wrong with them;
good ones go through."""

# RUN: %python %s

import ctypes
import dataclasses
import os
import random
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
from attention import Kind, Tensor, call, check, compile_library, function, random_batch

KIND = Kind(seqused_q=True, seqused_k=True, q_offset=True, sink=True, right=0)
library = compile_library(
    function("attention", KIND),
    "generate-runtime-verification,varlen-decompose-attn,canonicalize,cse",
)


def outcome(batch):
    """What a call prints, and whether it aborts."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        # What a failed check prints must not wait in a buffer for the abort.
        libc = ctypes.CDLL(None)
        unbuffered = 2
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, unbuffered, 0)
        call(library, "attention", KIND, batch)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return text, os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT


def integers(*values):
    return Tensor("i32", (len(values),), list(values))


rng = random.Random(3)
for _ in range(20):
    check(library, "attention", KIND, random_batch(rng, KIND))


def packed(rows, heads, width):
    return Tensor("f32", (rows, heads, width), [0] * (rows * heads * width))


good = random_batch(rng, KIND, sequences=2, heads=(2, 2), dims=(4, 8))
good = dataclasses.replace(
    good,
    q=packed(5, 4, 4),
    k=packed(6, 2, 4),
    v=packed(6, 2, 8),
    cu_q=integers(0, 3, 5),
    cu_k=integers(0, 2, 6),
    seqused_q=integers(3, 1),
    seqused_k=integers(0, 4),
    q_offset=integers(0, 0),
)
assert outcome(good) == ("", False), outcome(good)

BAD = {
    "k and v must have the same number of rows": {"v": packed(5, 2, 8)},
    "k and v must have the same number of heads": {"v": packed(6, 1, 8)},
    "q and k must have the same head_dim": {"q": packed(5, 4, 3)},
    "k must have at least one head": {"k": packed(6, 0, 4), "v": packed(6, 0, 8)},
    "q must have at least one head": {"q": packed(5, 0, 4), "sink": Tensor("f32", (0,), [])},
    "q must have a positive head_dim": {"q": packed(5, 4, 0), "k": packed(6, 2, 0)},
    "v must have a positive head_dim": {"v": packed(6, 2, 0)},
    "query heads must be a multiple of kv heads": {"q": packed(5, 3, 4)},
    "sink must have one entry for each query head": {"sink": Tensor("f32", (2,), [0, 0])},
    "cu_seqlens_q must have at least one entry": {"cu_q": integers()},
    "cu_seqlens_q and cu_seqlens_k must have the same": {"cu_k": integers(0, 6)},
    "seqused_q must have one entry for each sequence": {"seqused_q": integers(0)},
    "seqused_k must have one entry for each sequence": {"seqused_k": integers(0, 0, 0)},
    "q_offset must have one entry for each sequence": {"q_offset": integers(0, 0, 0)},
    "cu_seqlens_q must start at 0": {"cu_q": integers(1, 3, 5)},
    "cu_seqlens_k must start at 0": {"cu_k": integers(-1, 2, 6)},
    "cu_seqlens_q must not decrease": {"cu_q": integers(0, 5, 4)},
    "cu_seqlens_k must not decrease": {"cu_k": integers(0, 2, 1)},
    "cu_seqlens_q must end at or before the last row of q": {"cu_q": integers(0, 3, 6)},
    "cu_seqlens_k must end at or before the last row of k": {"cu_k": integers(0, 2, 2**30)},
    "seqused_q must not be negative": {"seqused_q": integers(3, -1)},
    "seqused_k must not be negative": {"seqused_k": integers(-1, 4)},
    "seqused_q must fit the sequence's slot": {"seqused_q": integers(4, 1)},
    "seqused_k must fit the sequence's slot": {"seqused_k": integers(2, 5)},
}
for message, change in BAD.items():
    text, aborted = outcome(dataclasses.replace(good, **change))
    if not aborted or message not in text:
        raise SystemExit(f"expected '{message}', got '{text}'; aborted: {aborted}")
