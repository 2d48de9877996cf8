"""Attentions that frameworks run and importers read: every score of the library and every
option, and how an imported module is run."""

import dataclasses
import os
import pathlib
import re
import subprocess

import numpy as np
import varlen
from checks import NUMPY_TYPES, cumulate, normal
from varlen import scores

ENTRIES = 8

# What those functions of the library are called with that have to be.
_ARGUMENTS = {
    "softcap": (2.0,), "capped_alibi": (3.0,), "sliding_window": (4, 1), "dilated": (2,),
    "chunked": (3,), "t5_bias": (8, 6), "dropout": (0.3,),
}  # fmt: skip
SCORES = [
    make(*_ARGUMENTS.get(name, ()))
    for name, make in scores.LIBRARY.items()
    if make is not scores.compose
]
SCORES += [
    scores.compose(scores.softcap(5.0), scores.query_alibi()),
    scores.compose(scores.key_bias(), scores.compose(scores.key_padding(), scores.causal())),
    scores.t5_bias(6, 9, False),
]


@dataclasses.dataclass(frozen=True)
class Case:
    """One attention. Flags say which operands it has."""

    score: scores.Score | None = None
    element: str = "f32"
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    v_head_dim: int = 8
    window: tuple = (-1, -1)
    chunk: int | None = None
    alignment: str = "bottom_right"
    scale: float | None = None
    sink: bool = False
    seqused_q: bool = False
    seqused_k: bool = False
    q_offset: bool = False
    lse: bool = True  # whether lse has a gradient
    # Empty sequences, more keys than queries and the reverse, rows behind the last sequence.
    queries: tuple = (0, 9, 1, 4, 0)
    keys: tuple = (3, 9, 6, 2, 0)
    rows_behind: int = 2

    def __str__(self):
        given = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        }
        if self.score:
            given["score"] = self.score.name
        return ", ".join(f"{name}={value}" for name, value in given.items()) or "nothing"


# One at a time.
OPTIONS = [
    {}, {"window": (-1, 0)}, {"window": (3, 2)}, {"window": (2, -1)}, {"chunk": 3},
    {"window": (3, 0), "alignment": "top_left"}, {"chunk": 4, "alignment": "top_left"},
    {"scale": 0.1}, {"sink": True}, {"seqused_q": True}, {"seqused_k": True},
    {"q_offset": True, "window": (-1, 0)}, {"kv_heads": 4}, {"kv_heads": 1},
    {"v_head_dim": 16}, {"element": "f64"}, {"element": "bf16"}, {"element": "f16"},
    {"lse": False},
    {"window": (5, 1), "alignment": "top_left", "scale": 0.3, "sink": True, "seqused_q": True,
     "seqused_k": True, "q_offset": True},
]  # fmt: skip


# Each value of a parameter once: importers read one parameter after the other.
_SAMPLE = [
    {"chunk": 4, "alignment": "top_left"},
    {"window": (-1, 0), "q_offset": True, "kv_heads": 4, "element": "bf16"},
    {"window": (3, 2), "sink": True, "seqused_q": True, "element": "f64"},
    {"window": (2, -1), "v_head_dim": 16, "scale": 0.1, "lse": False},
    {"chunk": 3, "kv_heads": 1, "seqused_k": True, "element": "f16"},
    {}, OPTIONS[-1],
]  # fmt: skip


def _kinds(score):
    """What a capture may be of, for those of a score; a score may have none."""
    return set(score.captures.values()) or {None}


def _sample_scores():
    """Scores with each kind of capture."""
    wanted = {None, *scores.CAPTURES}
    for score in SCORES:
        if wanted & _kinds(score):
            wanted -= _kinds(score)
            yield score
    assert not wanted, wanted


def grid(whole):
    """All options with every score; of a sample each value of an option and each kind of capture."""
    if whole:
        return [Case(score, **options) for score in (None, *SCORES) for options in OPTIONS]
    some = list(_sample_scores())
    return [Case(), *(Case(some[i % len(some)], **options) for i, options in enumerate(_SAMPLE))]


def captures_of(score, extents):
    """Shapes of the captures of a score by their names."""
    return {
        name: tuple(extents[extent] for extent in scores.CAPTURES[of])
        for name, of in (score.captures.items() if score else ())
    }


def check_scores(text):
    """That the attentions of an imported module, in f32, have all SCORES, in their order."""
    written = "\n".join(
        varlen.text.attn(dtype="f32", heads=4, kv_heads=2, head_dim=16, score=score, name=f"f{i}")
        for i, score in enumerate(SCORES)
    )
    got, wanted = _regions(text), _regions(import_module(written, ""))
    assert len(got) == len(wanted) == len(SCORES), (len(got), len(wanted))
    for score, ours, theirs in zip(SCORES, got, wanted):
        assert ours == theirs, f"{score.name}:\n{ours}\nwanted\n{theirs}"


def _regions(text):
    """The score regions of a module, with the values of each numbered by itself."""

    def number(region):
        names = {}
        return re.sub(r"%\w+", lambda found: names.setdefault(found[0], f"%{len(names)}"), region)

    found = re.findall(r"varlen\.attn [^\n]* score (\(.*?varlen\.yield [^\n]*)", text, re.S)
    return [number(region) for region in found]


def operands(case, rng):
    """The operands of the attention by name, in the op's order, captures last, and dout and dlse."""
    wide = np.float64 if case.element == "f64" else np.float32
    rows, kv_rows = sum(case.queries) + case.rows_behind, sum(case.keys) + 1
    given = {
        "q": normal(rng, case.element, rows, case.heads, case.head_dim),
        "k": normal(rng, case.element, kv_rows, case.kv_heads, case.head_dim),
        "v": normal(rng, case.element, kv_rows, case.kv_heads, case.v_head_dim),
        "cu_seqlens_q": cumulate(*case.queries), "cu_seqlens_k": cumulate(*case.keys),
    }  # fmt: skip
    if case.seqused_q:
        given["seqused_q"] = rng.integers(0, np.add(case.queries, 1)).astype(np.int32)
    if case.seqused_k:
        given["seqused_k"] = rng.integers(0, np.add(case.keys, 1)).astype(np.int32)
    if case.q_offset:
        given["q_offset"] = rng.integers(-3, 6, len(case.queries)).astype(np.int32)
    if case.sink:
        given["sink"] = rng.standard_normal(case.heads).astype(wide)
    extents = {"heads": case.heads, "rows": rows, "kv_rows": kv_rows, "entries": ENTRIES}
    for name, shape in captures_of(case.score, extents).items():
        x = rng.uniform(0.1, 1.5, shape)
        if name in ("begin", "end", "prefix"):
            x = np.floor(6 * x + 6 * (name == "end")) - 1.5
        elif name in ("flags", "used"):
            x = np.floor(1.4 * x)
        elif name == "ids":
            x = np.floor(2 * x)
        given[name] = x.astype(wide)
    dout = normal(rng, case.element, rows, case.heads, case.v_head_dim)
    dlse = rng.standard_normal((case.heads, rows)).astype(wide)
    return given, dout, dlse


def import_module(text, pipeline):
    """What varlen-opt makes of the text of a module. Raises ValueError with what it says."""
    tool = pathlib.Path(os.environ["VARLEN_BUILD"]) / "bin" / "varlen-opt"
    done = subprocess.run(
        [tool, "--allow-unregistered-dialect", f"--pass-pipeline=builtin.module({pipeline})"],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ValueError(done.stderr)
    return done.stdout


def run(text, arrays, name="main"):
    """The results of the imported function `name` on arrays."""
    results = varlen.compile(text)[name](*arrays)
    return results if isinstance(results, tuple) else (results,)


# Both compile the same operation, for rows of any number and of this one.
_TOLERANCE = {"f64": 1e-12, "f32": 1e-5, "bf16": 2e-2, "f16": 2e-3}


def check(label, element, got, wanted):
    """That imported code computes what the framework does."""
    assert len(got) == len(wanted), f"{label}: {len(got)} results, wanted {len(wanted)}"
    for i, (a, b) in enumerate(zip(got, wanted)):
        a, b = (np.asarray(x, np.float64) for x in (a, b))
        assert a.shape == b.shape, f"{label}: result {i} of shape {a.shape}, wanted {b.shape}"
        infinite = np.isneginf(b)
        assert np.array_equal(np.isneginf(a), infinite), f"{label}: result {i}: other rows of -inf"
        error = np.abs(np.where(infinite, 0, a) - np.where(infinite, 0, b)).max(initial=0)
        allowed = _TOLERANCE[element] * max(1, np.abs(np.where(infinite, 0, b)).max(initial=0))
        assert error <= allowed, f"{label}: result {i}: error {error:.2e}, allowed {allowed:.2e}"


__all__ = [
    "NUMPY_TYPES", "SCORES", "Case", "captures_of", "check", "check_scores", "grid", "import_module",
    "operands", "run",
]  # fmt: skip
