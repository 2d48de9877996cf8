"""Score regions of random operations, on a CPU, by the oracle and in kernels.

A case is an attention and its gradients with a region that Inputs/score_bodies.py draws,
for sequences whose lengths are no multiples of tiles, so padding has positions that no
pair has. Results are held to a reference in f64 that computes the region in numpy.
"""

import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "test/Fuzz/Inputs"), str(ROOT / "python")]

# pylint: disable=wrong-import-position
import numpy as np
import score_bodies
import varlen
from varlen import reference

HEADS, KV_HEADS, HEAD_DIM = 2, 1, 16
ORACLE = "--pipeline=builtin.module(varlen-decompose-attn,varlen-to-cpu)"


def targets(device):
    return {"a CPU": ["--threads=2"], "the oracle": [ORACLE], device: [f"--device={device}"]}


def lengths(rng):
    return [rng.choice((0, 1, 5, rng.randrange(1, 70))) for _ in range(rng.randrange(1, 4))]


def draw_case(rng):
    """The text of gradients, which have the forward's scores in them, its inputs and the
    golden results."""
    score = score_bodies.random_score(rng)
    queries, keys = lengths(rng), lengths(rng)
    count = min(len(queries), len(keys))
    cu_q, cu_k = (np.cumsum([0, *x[:count]]).astype("i4") for x in (queries, keys))
    tq, tk = int(cu_q[-1]) + 1, int(cu_k[-1]) + 1
    numbers = np.random.default_rng(rng.getrandbits(64))
    q, dout = (numbers.standard_normal((tq, HEADS, HEAD_DIM)).astype("f4") for _ in range(2))
    k, v = (numbers.standard_normal((tk, KV_HEADS, HEAD_DIM)).astype("f4") for _ in range(2))
    captures = score_bodies.draw_captures(rng, HEADS, tq, tk)
    given = {"score": score, "captures": captures}
    if rng.random() < 0.4:
        # Near ones, and such that move queries farther than scores know of.
        offsets = [
            rng.choice((0, 1, -3, rng.randrange(-40, 40), 2**31 - 1, -(2**31))) for _ in cu_q[1:]
        ]
        given["q_offset"] = np.array(offsets, "i4")
    out, lse = (x.astype("f4") for x in reference.attention(q, k, v, cu_q, cu_k, **given))
    dq, dk, dv, *_ = reference.gradients(dout, q, k, v, cu_q, cu_k, **given)
    shape = {"dtype": "f32", "heads": HEADS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM}
    shape["q_offset"] = "q_offset" in given
    inputs = {"q": q, "k": k, "v": v, "cu_seqlens_q": cu_q, "cu_seqlens_k": cu_k}
    inputs |= {name: x for name, x in given.items() if name == "q_offset"}
    inputs |= dict(zip(score.captures, captures))
    forward = varlen.text.attn(**shape, score=score), inputs, {"out": out, "lse": lse}
    inputs = {"dout": dout, "out": out, "lse": lse, **inputs}
    backward = varlen.text.attn_grad(**shape, score=score), inputs, {"dq": dq, "dk": dk, "dv": dv}
    return forward, backward


def difference(results, golden):
    """What is wrong with results; empty if nothing is."""
    for name, wanted in golden.items():
        got, wanted = results[name].astype("f8"), wanted.astype("f8")
        finite = np.isfinite(wanted)
        if not np.array_equal(got[~finite], wanted[~finite], equal_nan=True):
            return f"{name}: {got[~finite][:4]} in place of {wanted[~finite][:4]}"
        error = abs(got[finite] - wanted[finite])
        if not (error <= 1e-4 * max(1, abs(wanted[finite]).max(initial=0))).all():
            return f"{name}: an error of {np.nanmax(error)}"
    return ""


def run_case(case, device):
    for number, (text, inputs, golden) in enumerate(draw_case(case.rng)):
        module, file = case.folder / f"module{number}.mlir", case.folder / f"in{number}.safetensors"
        module.write_text(text)
        varlen.safetensors.write(file, inputs)
        for target, options in targets(device).items():
            output = case.folder / "out.safetensors"
            output.unlink(missing_ok=True)
            command = [case.session.tool("varlen-run"), module.name, file.name, "-o", output.name]
            outcome = case.run([*command, *options], seconds=120)
            if case.failed:
                return
            if outcome.status:
                case.fail(f"{target}: a valid region is refused", outcome)
                return
            if problem := difference(varlen.safetensors.read(output), golden):
                case.fail(f"{target}: {problem}", outcome)
                return
            case.session.note("results")


def run(session):
    device = session.device if session.device != "cpu" else "sim:sm_80"
    for case in session.cases():
        run_case(case, device)
