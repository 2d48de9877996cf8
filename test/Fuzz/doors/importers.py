"""Attention of frameworks through importers.

A case is an attention with any options and any score, composed of those of the library. JAX
lowers it, and its gradients, or torch.export has them of PyTorch's operators; the importer
reads the module, and what is imported computes what the framework does. Of JAX's calls one
entry of the configuration is then changed: what runs the call says otherwise, so importing
it is an error.
"""

import os
import pathlib
import re
import sys

import numpy as np

# One process: the arrays are small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["JAX_PLATFORMS"] = "cpu"

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [
    str(ROOT / path)
    for path in ("python", *(f"test/{x}/Inputs" for x in ("Python", "JAX", "PyTorch")))
]


def make_score(rng, depth):
    """A score of the library with any parameters, or some of them composed."""
    from varlen import scores

    if depth and rng.random() < 0.5:
        for _ in range(9):
            try:
                return scores.compose(make_score(rng, depth - 1), make_score(rng, depth - 1))
            except ValueError:
                pass  # Captures of one name.
    arguments = {
        "softcap": lambda: [rng.choice([0.1, 0.37, 1, 5.0, 50.0, 1e4])],
        "capped_alibi": lambda: [rng.choice([0.5, 3, 20.0])],
        "sliding_window": lambda: [rng.randrange(9), rng.randrange(9)],
        "dropout": lambda: [rng.choice([0.1, 0.5, 0.99])],
        "dilated": lambda: [rng.randrange(1, 7)], "chunked": lambda: [rng.randrange(1, 12)],
        "t5_bias": lambda: [rng.choice([4, 6, 8]), rng.randrange(5, 40), rng.random() < 0.5],
    }  # fmt: skip
    name = rng.choice([name for name in scores.LIBRARY if name != "compose"])
    return scores.LIBRARY[name](*arguments.get(name, list)())


def make_case(rng):
    from imported import Case

    kv_heads, count = rng.choice([1, 2, 3]), rng.randrange(6)
    options = {
        "score": make_score(rng, 2) if rng.random() < 0.9 else None,
        "element": rng.choice(["f32"] * 4 + ["f64", "bf16", "f16"]), "kv_heads": kv_heads,
        "heads": kv_heads * rng.choice([1, 2, 4]), "head_dim": rng.choice([1, 8, 16, 20]),
        "v_head_dim": rng.choice([1, 8, 16, 24]), "rows_behind": rng.choice([0, 0, 3]),
        "queries": tuple(rng.choice([0, 1, 2, 7, 17]) for _ in range(count)),
        "keys": tuple(rng.choice([0, 1, 3, 9, 20]) for _ in range(count)),
        "scale": rng.choice([None, None, 1.0, 0.125, 0.3]),
        "alignment": rng.choice(["bottom_right", "bottom_right", "top_left"]),
    }  # fmt: skip
    mask = rng.random()
    if mask < 0.4:
        options["window"] = rng.choice([-1, 0, 2, 9]), rng.choice([-1, 0, 0, 3])
    elif mask < 0.55:
        options["chunk"] = rng.randrange(1, 12)
    flags = ("sink", "seqused_q", "seqused_k", "q_offset", "lse")
    return Case(**options, **{name: rng.random() < 0.4 for name in flags})


OTHER_SCORE = (
    "score (%s: f32, %i: i32, %j: i32) { %x = arith.negf %s : f32 varlen.yield %x : f32 }"
)


def change(rng, text):
    """The module with one entry of one configuration changed; None if there is none."""
    changes = [
        (r"(window_left|window_right|chunk) = (-?\d+)", lambda m: f"{m[1]} = {int(m[2]) + 1}"),
        (r"top_left = true", lambda m: "top_left = false"),
        (r"top_left = false", lambda m: "top_left = true"),
        (r"scale = (\d\S*)", lambda m: f"scale = {float(m[1]) * 1.5!r}"),
        (r'operands = "(\w+),(\w+)', lambda m: f'operands = "{m[2]},{m[1]}'),
        (r'operands = "(\w+)', lambda m: f'operands = "x{m[1]}'),
        (r"top_left = (true|false)", lambda m: m[0] + ", dropout = 0.5 : f64"),
        # In place of the score of the source.
        (r"top_left = (true|false)", lambda m: f'{m[0]}, score = "{OTHER_SCORE}"'),
    ]  # fmt: skip
    # A scale in the text of the source is one of these: then that says otherwise.
    found = [(m, new) for pattern, new in changes for m in re.finditer(pattern, text)]
    if not found:
        return None
    match, new = rng.choice(found)
    return text[: match.start()] + new(match) + text[match.end() :]


def run_case(session, work, frameworks):
    import imported

    case, numbers = make_case(work.rng), np.random.default_rng(work.rng.getrandbits(64))
    name = work.rng.choice(list(frameworks))
    framework = frameworks[name]
    if name == "torch" and not framework.is_offered(case):
        name, framework = "jax", frameworks["jax"]
    session.note(name)
    text = framework.check(case, numbers)
    if name == "jax" and (changed := change(work.rng, text)):
        session.note("changed")
        try:
            imported.import_module(changed, framework.PIPELINE)
        except ValueError as error:
            if "error: " not in str(error):
                raise
        else:
            (work.folder / "changed.mlir").write_text(changed)
            work.fail(f"{case}: expected an error for a changed configuration")


def run(session):
    os.environ["VARLEN_BUILD"] = str(session.build)
    import jax_cases
    import torch_cases

    for work in session.cases():
        try:
            run_case(session, work, {"jax": jax_cases, "torch": torch_cases})
        except (AssertionError, ValueError, TypeError, RuntimeError) as error:
            work.fail(f"{type(error).__name__}: {error}")
