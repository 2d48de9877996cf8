"""Attentions of `imported` in JAX, and as what JAX lowers to."""

import imported
import jax
import numpy as np

from varlen.jax import varlen_attn

jax.config.update("jax_enable_x64", True)


# Calls of functions that JAX makes around each attention are no part of what is imported.
PIPELINE = "varlen-import-stablehlo,inline,symbol-dce"


def function(case):
    """out, lse and gradients of all numbers, of operands, dout and dlse, all by name."""

    def attend(numbers, others):
        given = numbers | others
        names = case.score.captures if case.score else {}
        captures = [given.pop(name) for name in names]
        first = [given.pop(name) for name in ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")]
        return varlen_attn(
            *first, window=case.window, chunk=case.chunk, alignment=case.alignment,
            scale=case.scale, score=case.score, captures=captures, return_lse=case.lse, **given,
        )  # fmt: skip

    def everything(given, dout, dlse):
        numbers = {name: x for name, x in given.items() if jax.numpy.issubdtype(x.dtype, np.floating)}
        others = {name: x for name, x in given.items() if name not in numbers}
        results, differentiate = jax.vjp(lambda x: attend(x, others), numbers)
        (gradients,) = differentiate((dout, dlse) if case.lse else dout)
        return jax.tree.leaves((results, gradients))

    return everything


def lower(case, arguments):
    """The module in StableHLO's generic form, and its arguments in their order."""
    lowered = jax.jit(function(case), keep_unused=True).lower(*arguments)
    text = lowered.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True)
    return text, jax.tree.leaves(arguments)


def check(case, rng):
    """That the imported module computes what JAX does. Returns the text of the module."""
    arguments = imported.operands(case, rng)
    text, arrays = lower(case, arguments)
    module = imported.import_module(text, PIPELINE)
    got = imported.run(module, [np.asarray(x) for x in arrays])
    imported.check(str(case), case.element, got, jax.jit(function(case))(*arguments))
    return text


def check_scores():
    """That each score of the library is imported as it is written."""
    q, k, v = (np.zeros((6, heads, 16), np.float32) for heads in (4, 2, 2))
    extents = {"heads": 4, "rows": 6, "kv_rows": 6, "entries": 8}
    captures = [
        [np.zeros(shape, np.float32) for shape in imported.captures_of(score, extents).values()]
        for score in imported.SCORES
    ]

    def attend(q, k, v, cu, captures):
        return [
            varlen_attn(q, k, v, cu, score=score, captures=own)
            for score, own in zip(imported.SCORES, captures)
        ]

    lowered = jax.jit(attend).lower(q, k, v, np.array([0, 6], np.int32), captures)
    text = lowered.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True)
    # As they come: what inlines a function simplifies it.
    imported.check_scores(imported.import_module(text, "varlen-import-stablehlo"))
