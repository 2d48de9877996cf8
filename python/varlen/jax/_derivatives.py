"""Derivatives of the primitive of attention, from which JAX makes both of its modes.

With the Jacobian J of an attention of operands x, tangents t of x, and cotangents y of its
results, the operations and their derivatives are

    operation        what it is                       along x          transpose
    attn             the results                      attn_tangents
    attn_tangents    J t                              second tangents  attn_grad
    attn_grad        J^T y                            attn_jvp_grad    attn_tangents
    attn_jvp_grad    the gradient of <y, J t> by x    not offered      by t: itself
    second tangents  the derivative of J t along s    not offered      by s: attn_jvp_grad

Second derivatives are symmetric: that gradient, times s, is the same with s and t exchanged, so as a
function of t it is its own transpose. Nothing computes second tangents: where they are transposed,
they are not needed.

The forward mode computes values and tangents in one call, attn_jvp; `_partial_evaluation` makes two
of it where values have to be known before.
"""

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import _partial_evaluation  # noqa: F401  # registers its rules
from ._operation import apply, attn_p

_QUANTISED = ("int8", "float8_e4m3fn")
_VALUES = ("out", "lse")
_TANGENTS = ("tout", "tlse")
_COTANGENTS = ("dout", "dlse")
_OF_TANGENTS = ("dtout", "dtlse")


def _is_zero(tangent):
    return type(tangent) is ad.Zero


def _take(named, names):
    return {name: named[name] for name in names if name in named}


def _prefix(prefix, named):
    """Tangents ("t") or cotangents ("d") by the names of what they are of."""
    return {f"{prefix}{name}": x for name, x in named.items()}


def _strip(named):
    """The opposite, of a prefix of one letter."""
    return {name[1:]: x for name, x in named.items()}


def _add(sums, terms):
    for name, x in terms.items():
        sums[name] = sums[name] + x if name in sums else x


def _take_values(operation, named):
    """The operands of the attention, and its results where they are there."""
    others = *operation.tangents, *_TANGENTS, *_COTANGENTS, *_OF_TANGENTS
    return {name: x for name, x in named.items() if name not in others}


# The forward mode.


def _push_forward(primals, tangents, *, operation, call):
    """The results, and a tangent of each."""
    given = dict(zip(operation.operands, primals))
    pairs = zip(operation.operands, tangents)
    moved = {name: tangent for name, tangent in pairs if not _is_zero(tangent)}
    results, pushed = _PUSH[operation.name](operation, given, moved)
    return list(results.values()), [
        pushed[name] if name in pushed else ad.Zero(jax.typeof(x).to_tangent_aval())
        for name, x in results.items()
    ]


ad.primitive_jvps[attn_p] = _push_forward


def _push_attn(operation, given, moved):
    if "block_table" in given:
        raise NotImplementedError("varlen_attn: keys in pages, by a block_table, have no gradient")
    if str(given["k"].dtype) in _QUANTISED:
        raise NotImplementedError("varlen_attn: quantised keys and values have no gradient")
    both = apply("attn_jvp", given | _prefix("t", moved), operation.options)
    return _take(both, _VALUES), _strip(_take(both, _TANGENTS))


def _push_tangents(operation, given, moved):
    """Of attn_jvp and attn_tangents, which are linear in tangents."""
    results, options = apply(operation.name, given, operation.options), operation.options
    given = given | results
    values, pushed = _take_values(operation, given), {}
    if tangents := _take(moved, operation.tangents):
        pushed = apply("attn_tangents", values | tangents, options)
    if along := _prefix("t", _take(moved, operation.differentiable)):
        if operation.name == "attn_jvp":
            pushed |= _strip(apply("attn_tangents", values | along, options))
        _add(pushed, _push_twice(given, along, options))
    return results, pushed


def _push_gradients(operation, given, moved):
    """Of attn_grad, which is linear in cotangents."""
    results, options = apply("attn_grad", given, operation.options), operation.options
    values, cotangents = _take_values(operation, given), _take(moved, _COTANGENTS)
    if along := _prefix("t", _take(moved, operation.differentiable)):
        tangents = along | _find_tangents(_prefix("t", moved), values, along, options)
        of_tangents = _prefix("dt", _strip(_take(given, _COTANGENTS)))
        operands = values | tangents | of_tangents | cotangents
        return results, apply("attn_jvp_grad", operands, options)
    return results, apply("attn_grad", values | cotangents, options) if cotangents else {}


def _find_tangents(moved, values, along, options):
    """tout and tlse. Where out and lse are operands they follow from the others: their tangents
    are these."""
    found = _take(moved, _TANGENTS)
    return found if len(found) == len(_TANGENTS) else apply("attn_tangents", values | along, options)


def _push_second_gradients(operation, given, moved):
    """Of attn_jvp_grad, which is linear in tangents with dout and dlse, and in dtout and dtlse."""
    results, options = apply("attn_jvp_grad", given, operation.options), operation.options
    values, pushed = _take_values(operation, given), {}
    cotangents = _take(moved, _COTANGENTS)
    if along := _take(moved, operation.tangents):
        tangents = along | _find_tangents(moved, values, along, options)
        operands = values | tangents | _take(given, _OF_TANGENTS) | cotangents
        pushed = apply("attn_jvp_grad", operands, options)
    elif cotangents:
        pushed = apply("attn_grad", values | cotangents, options)
    if of_tangents := _take(moved, _OF_TANGENTS):
        tangents = _take(given, (*operation.tangents, *_TANGENTS))
        _add(pushed, apply("attn_jvp_grad", values | tangents | of_tangents, options))
    if third := _take(moved, operation.differentiable):
        like = list(results.values())
        _add(pushed, dict(zip(results, _third_p.bind(*like, *third.values(), count=len(like)))))
    return results, pushed


_PUSH = {
    "attn": _push_attn, "attn_jvp": _push_tangents, "attn_tangents": _push_tangents,
    "attn_grad": _push_gradients, "attn_jvp_grad": _push_second_gradients,
}  # fmt: skip


# The reverse mode: transposes.


def _transpose(cotangents, *arrays, operation, call):
    given = dict(zip(operation.operands, arrays))
    linear = {name for name, x in given.items() if ad.is_undefined_primal(x)}
    known = {name: x for name, x in given.items() if name not in linear}
    pairs = zip(operation.results, cotangents)
    cotangents = {name: x for name, x in pairs if not _is_zero(x)}
    found = _TRANSPOSE[operation.name](operation, known, linear, cotangents)
    # tout and tlse follow from tangents of operands: the cotangents of these are all there is.
    return [found.get(name) if name in linear else None for name in given]


ad.primitive_transposes[attn_p] = _transpose


def _transpose_tangents(operation, known, linear, cotangents):
    """Of attn_tangents, and of attn_jvp by its tangents: a cotangent of each tangent."""
    values = _take_values(operation, known)
    if "out" not in values:
        values |= apply("attn", values, operation.options)
    of_results = _prefix("d", _strip(_take(cotangents, _TANGENTS)))
    gradients = apply("attn_grad", values | of_results, operation.options)
    return _prefix("t", _strip(gradients))


def _transpose_gradients(operation, known, linear, cotangents):
    """Of attn_grad: cotangents of dout and dlse."""
    operands = _take_values(operation, known) | _prefix("t", _strip(cotangents))
    return _prefix("d", _strip(apply("attn_tangents", operands, operation.options)))


def _transpose_second_gradients(operation, known, linear, cotangents):
    """Of attn_jvp_grad: cotangents of tangents, dout and dlse, or of dtout and dtlse."""
    options, along = operation.options, _prefix("t", _strip(cotangents))
    if linear.isdisjoint((*operation.tangents, *_COTANGENTS)):
        return _prefix("d", _push_twice(known, along, options))
    values = _take_values(operation, known)
    pushed = apply("attn_tangents", values | along, options)
    operands = values | along | pushed | _take(known, _OF_TANGENTS)
    gradients = apply("attn_jvp_grad", operands, options)
    return _prefix("d", _strip(pushed)) | _prefix("t", _strip(gradients))


_TRANSPOSE = {
    "attn_jvp": _transpose_tangents, "attn_tangents": _transpose_tangents,
    "attn_grad": _transpose_gradients, "attn_jvp_grad": _transpose_second_gradients,
}  # fmt: skip


# What nothing computes. It is refused where it would be computed: what nothing uses is not.


def _define_refused(name, what):
    """A primitive of operands of which the first `count` have the types of its results, and the
    function that refuses it."""
    refused_p = Primitive(name)
    refused_p.multiple_results = True

    @refused_p.def_abstract_eval
    def find_types(*types, count, **parameters):
        return list(types[:count])

    @refused_p.def_impl
    def refuse(*_, **__):
        raise NotImplementedError(f"varlen_attn: {what} are not offered")

    mlir.register_lowering(refused_p, refuse)
    for rules in (ad.primitive_jvps, ad.primitive_transposes, batching.primitive_batchers):
        rules[refused_p] = refuse
    return refused_p, refuse


_third_p, _ = _define_refused("varlen_attn_third_derivatives", "third derivatives")
# Linear in its last operands, the tangents of operands of an attention.
_second_tangents_p, _refuse_second_tangents = _define_refused(
    "varlen_attn_second_tangents", "tangents of tangents"
)


def _push_twice(given, along, options):
    """The derivatives of tout and tlse, which are among those given, along tangents of operands."""
    given = _take(given, _TANGENTS) | given
    tangents = _second_tangents_p.bind(
        *given.values(), *along.values(), count=len(_TANGENTS), given=tuple(given),
        along=tuple(along), options=options,
    )  # fmt: skip
    return dict(zip(_TANGENTS, tangents))


def _push_second_tangents(primals, tangents, *, count, **parameters):
    results = _second_tangents_p.bind(*primals, count=count, **parameters)
    moved = [tangent for tangent in tangents if not _is_zero(tangent)]
    return results, _third_p.bind(*results, *moved, count=count)


ad.primitive_jvps[_second_tangents_p] = _push_second_tangents


def _transpose_second_tangents(cotangents, *arrays, count, given, along, options):
    known = dict(zip(given, arrays))
    if any(map(ad.is_undefined_primal, known.values())):
        _refuse_second_tangents()
    pairs = zip(_OF_TANGENTS, cotangents)
    of_tangents = {name: x for name, x in pairs if not _is_zero(x)}
    found = _prefix("t", _strip(apply("attn_jvp_grad", known | of_tangents, options)))
    return [None] * len(known) + [found[name] for name in along]


ad.primitive_transposes[_second_tangents_p] = _transpose_second_tangents
