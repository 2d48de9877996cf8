"""Partial evaluation of the primitive of attention: where values have to be known before tangents
are (`linearize`, and `grad`, which transposes what that gives), attn_jvp becomes two calls, attn for
the values, and for the tangents attn_tangents, which is linear in those of operands."""

from jax.extend.core import Literal
from jax.interpreters import partial_eval as pe

from ._operation import apply, attn_p, make_operation, make_parameters

_VALUES = ("out", "lse")


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
