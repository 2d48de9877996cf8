# REQUIRES: jax
# RUN: %python %s %t
# RUN: %python %s %t --load
# RUN: %if long %{ %python %s %t --whole %}
"""What JAX lowers is imported and computes the same: every option, each kind of capture, out, lse
and all gradients; each score of the library is imported as it is written. Exported functions with
scores run in a process that has made no such score. `make check-all` takes all options with every
score."""

import argparse
import pathlib
import pickle

import imported
import jax
import numpy as np
from imported import Case
from jax import export
from jax_cases import PIPELINE, check, check_scores, function

from varlen import scores
from varlen.jax import varlen_attn


def save(folder):
    """Functions with scores, their arguments and results."""
    folder.mkdir(parents=True, exist_ok=True)
    allowed = [export.DisabledSafetyCheck.custom_call(f"varlen.{x}") for x in ("attn", "attn_grad")]
    cases = [
        Case(scores.compose(scores.softcap(3.0), scores.alibi()), window=(5, 0)),
        Case(scores.t5_bias(8, 6), sink=True), Case(scores.chunked(5)),
    ]  # fmt: skip
    for i, case in enumerate(cases):
        arguments = imported.operands(case, np.random.default_rng(i))
        exported = export.export(jax.jit(function(case)), disabled_checks=allowed)(*arguments)
        (folder / f"{i}.bin").write_bytes(exported.serialize(vjp_order=0))
        results = [np.asarray(x) for x in jax.jit(function(case))(*arguments)]
        (folder / f"{i}.pickle").write_bytes(pickle.dumps((arguments, results)))


def load(folder):
    """Runs them; this process makes no score."""
    found = sorted(folder.glob("*.bin"))
    assert len(found) == 3
    for path in found:
        exported = export.deserialize(bytearray(path.read_bytes()))
        arguments, results = pickle.loads(path.with_suffix(".pickle").read_bytes())
        assert all(map(np.array_equal, exported.call(*arguments), results))


def check_tangents(rng):
    """Rows, a sink and one of two captures have tangents; and gradients of all, too."""
    case = Case(scores.compose(scores.gains(), scores.key_bias()), window=(5, 0), sink=True)
    given, *_ = imported.operands(case, rng)
    arrays = list(given.values())

    def push(*arrays):
        values = dict(zip(given, arrays))

        def attend(q, k, v, sink, gains, bias=values["bias"]):
            cu = values["cu_seqlens_q"], values["cu_seqlens_k"]
            return varlen_attn(
                q, k, v, *cu, window=case.window, sink=sink, score=case.score,
                captures=[gains, bias], return_lse=True,
            )  # fmt: skip

        def pull(*primals):
            results, pull_back = jax.vjp(attend, *primals)
            return pull_back(results)

        primals = tuple(values[name] for name in ("q", "k", "v", "sink", "gains", "bias"))
        return jax.tree.leaves(
            (jax.jvp(attend, primals[:-1], primals[:-1]), jax.jvp(pull, primals, primals))
        )

    text = jax.jit(push).lower(*arrays).compiler_ir("stablehlo").operation.get_asm(
        print_generic_op_form=True
    )  # fmt: skip
    got = imported.run(imported.import_module(text, PIPELINE), arrays)
    imported.check("tangents", case.element, got, jax.jit(push)(*arrays))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--whole", action="store_true")
    arguments = parser.parse_args()
    if arguments.load:
        load(arguments.folder)
        return
    save(arguments.folder)
    rng = np.random.default_rng(0)
    cases = imported.grid(arguments.whole)
    for case in cases:
        check(case, rng)
    check_scores()
    check_tangents(rng)
    print(f"{len(cases)} cases")


main()
