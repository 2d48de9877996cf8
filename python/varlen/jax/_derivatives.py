"""Derivatives of the primitive of attention, from which JAX makes both of its modes.

The forward mode computes values and tangents in one call, attn_jvp. Where values have to be known
before tangents are (`linearize`, and `grad`, which transposes what that gives) there are two: attn
for the values, and for the tangents attn_tangents, which is linear in those of operands, and whose
transpose is attn_grad. That is linear in its cotangents, and its transpose by these is attn_tangents.
"""

import jax
from jax import numpy as jnp
from jax.extend.core import Literal, Primitive
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe

from ._operation import apply, attn_p, make_operation, make_parameters

_VALUES = ("out", "lse")
_TANGENTS = ("tout", "tlse")


def _is_zero(tangent):
    return type(tangent) is ad.Zero


# The forward mode.


def _push_forward(primals, tangents, *, operation, call):
    """The results, and a tangent of each."""
    given = dict(zip(operation.operands, primals))
    moved = {
        name: tangent
        for name, tangent in zip(operation.operands, tangents)
        # Where out and lse are operands they follow from the others, and so do their tangents.
        if not _is_zero(tangent) and name not in _VALUES
    }
    if operation.name == "attn":
        results, pushed = _push_attn(given, moved, operation.options)
    else:
        results = apply(operation.name, given, operation.options)
        push = _push_gradients if operation.name == "attn_grad" else _push_tangents
        pushed = push(operation, given, moved, results)
    return list(results.values()), [
        pushed[name] if name in pushed else ad.Zero(jax.typeof(x).to_tangent_aval())
        for name, x in results.items()
    ]


ad.primitive_jvps[attn_p] = _push_forward


def _push_attn(given, moved, options):
    if "block_table" in given:
        raise NotImplementedError("varlen_attn: keys in pages, by a block_table, have no gradient")
    tangents = {f"t{name}": tangent for name, tangent in moved.items()}
    both = apply("attn_jvp", given | tangents, options)
    return {x: both[x] for x in _VALUES}, {x: both[f"t{x}"] for x in _VALUES}


def _push_tangents(operation, given, moved, results):
    """Of attn_jvp and attn_tangents, which are linear in tangents."""
    values = {name: x for name, x in given.items() if name not in operation.tangents}
    values |= {name: results[name] for name in _VALUES if name in results}
    of_tangents = {name: x for name, x in moved.items() if name in operation.tangents}
    of_values = {f"t{name}": x for name, x in moved.items() if name not in operation.tangents}
    pushed = {}
    if of_tangents:
        pushed = apply("attn_tangents", values | of_tangents, operation.options)
    if of_values:
        if operation.name == "attn_jvp":
            own = apply("attn_tangents", values | of_values, operation.options)
            pushed |= {name: own[f"t{name}"] for name in _VALUES}
        _add(pushed, _derive_twice({x: results[x] for x in _TANGENTS}, of_values))
    return pushed


def _push_gradients(operation, given, moved, results):
    """Of attn_grad, which is linear in cotangents."""
    cotangents = {name: moved.pop(name) for name in ("dout", "dlse") if name in moved}
    pushed = {}
    if cotangents:
        others = {name: x for name, x in given.items() if name != "dlse"}
        others["dout"] = jnp.zeros_like(given["dout"])
        pushed = apply("attn_grad", others | cotangents, operation.options)
    if moved:
        _add(pushed, _derive_twice(results, moved))
    return pushed


def _add(sums, terms):
    for name, x in terms.items():
        sums[name] = sums[name] + x if name in sums else x


# The reverse mode: transposes.


def _transpose(cotangents, *arrays, operation, call):
    given = dict(zip(operation.operands, arrays))
    linear = [name for name, x in given.items() if ad.is_undefined_primal(x)]
    known = {name: x for name, x in given.items() if name not in linear}
    cotangents = {
        name: x for name, x in zip(operation.results, cotangents) if not _is_zero(x)
    }  # fmt: skip
    if operation.name == "attn_grad":
        found = _transpose_gradients(operation, known, cotangents)
    else:
        found = _transpose_tangents(operation, known, cotangents)
    return [found[name] if name in linear else None for name in given]


ad.primitive_transposes[attn_p] = _transpose


def _transpose_tangents(operation, known, cotangents):
    """Of attn_tangents, and of attn_jvp by its tangents: a cotangent of each tangent."""
    values = {name: x for name, x in known.items() if name not in operation.tangents}
    if "out" not in values:
        values |= apply("attn", values, operation.options)
    of_results = {f"d{name}": cotangents.get(f"t{name}") for name in _VALUES}
    if of_results["dlse"] is None:
        del of_results["dlse"]
    if of_results["dout"] is None:
        of_results["dout"] = jnp.zeros_like(values["out"])
    gradients = apply("attn_grad", values | of_results, operation.options)
    return {f"t{name[1:]}": x for name, x in gradients.items()}


def _transpose_gradients(operation, known, cotangents):
    """Of attn_grad: cotangents of dout and dlse."""
    values = {name: x for name, x in known.items() if name not in ("dout", "dlse")}
    tangents = {f"t{name[1:]}": x for name, x in cotangents.items()}
    pushed = apply("attn_tangents", values | tangents, operation.options)
    return {f"d{name}": pushed[f"t{name}"] for name in _VALUES}


# Where values are known before tangents are.


def _can_split(operation, unknown):
    """Whether the values are known where operands of these names are not."""
    return operation.name == "attn_jvp" and set(unknown) <= set(operation.tangents)


def _partially_evaluate(trace, *tracers, operation, call):
    given = dict(zip(operation.operands, tracers))
    known = {name: x.pval.get_known() for name, x in given.items() if x.pval.is_known()}
    unknown = [name for name in given if name not in known]
    if not unknown or not _can_split(operation, unknown):
        parameters = {"operation": operation, "call": call}
        return trace.default_process_primitive(attn_p, tracers, parameters)
    values = {name: x for name, x in known.items() if name not in operation.tangents}
    results = apply("attn", values, operation.options)
    given |= {name: trace.new_const(x) for name, x in results.items()}
    later = make_operation("attn_tangents", given, operation.options)
    operands = [given[name] for name in later.operands]
    parameters = make_parameters(later, [x.aval for x in operands])
    tangents = trace.default_process_primitive(attn_p, operands, parameters)
    return [*(given[name] for name in _VALUES), *tangents]


pe.custom_partial_eval_rules[attn_p] = _partially_evaluate


def _partially_evaluate_equation(is_saveable, is_unknown, is_there, equation):
    """The same in a jaxpr whose unknown part may compute values again (jax.checkpoint)."""
    operation = equation.params["operation"]
    given = dict(zip(operation.operands, equation.invars))
    there = {name for name, x in zip(given, is_there) if x}
    unknown = [name for name, x in zip(given, is_unknown) if x]
    count = len(equation.outvars)

    def find_residuals(names):
        return [x for name in names if name not in there and type(x := given[name]) is not Literal]

    if unknown and not _can_split(operation, unknown):
        return None, equation, [True] * count, [True] * count, find_residuals(given)
    known, num_known = equation, count
    if unknown:
        values = {name: x for name, x in given.items() if name not in operation.tangents}
        of_values = make_operation("attn", values, operation.options)
        num_known = len(_VALUES)
        known = _replace(equation, of_values, given, equation.outvars[:num_known])
    is_unknown = [False] * num_known + [True] * (count - num_known)
    types = [x.aval for x in known.invars]
    if is_saveable(attn_p, *types, **known.params) is not True:
        return known, equation, is_unknown, [True] * count, find_residuals(given)
    if not unknown:
        return known, None, is_unknown, is_unknown, []
    given |= zip(_VALUES, known.outvars)
    later = make_operation("attn_tangents", given, operation.options)
    tangents = _replace(equation, later, given, equation.outvars[num_known:])
    return known, tangents, is_unknown, is_unknown, find_residuals(later.operands)


def _replace(equation, operation, given, results):
    """An equation of that operation for variables by name."""
    operands = [given[name] for name in operation.operands]
    parameters = make_parameters(operation, [x.aval for x in operands])
    return equation.replace(invars=operands, outvars=results, params=parameters)


pe.partial_eval_jaxpr_custom_rules[attn_p] = _partially_evaluate_equation


# Second derivatives: derivatives of these results. They are refused where they are computed, as
# what nothing uses is not.

_second_p = Primitive("varlen_attn_second_derivative")
_second_p.multiple_results = True


def _derive_twice(results, moved):
    """The tangents of results for those of operands, by name."""
    return dict(zip(results, _second_p.bind(*results.values(), *moved.values(), count=len(results))))


@_second_p.def_abstract_eval
def _find_types(*types, count):
    return list(types[:count])


@_second_p.def_impl
def _refuse(*_, **__):
    raise NotImplementedError("varlen_attn: second derivatives are not offered")


mlir.register_lowering(_second_p, _refuse)
ad.primitive_jvps[_second_p] = _refuse
ad.primitive_transposes[_second_p] = _refuse
batching.primitive_batchers[_second_p] = _refuse
