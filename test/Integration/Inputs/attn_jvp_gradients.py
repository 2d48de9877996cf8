"""The gradients of the tangents of a group: its module and its inputs, for runs that are compared
with each other. second_batch.py has golden results.

As attn_tangents.py has it for tangents: rows that are not in use hold NaN, in cotangents too.
"""

import zlib

import attn_tangents
import harness
import numpy
import varlen

_COTANGENTS = {"dtout": "out", "dtlse": "lse", "dout": "out", "dlse": "lse"}


def module_text(group):
    return varlen.text.attn_jvp_grad(
        dtlse=True, dout=True, dlse=True, wrt_captures=bool(group.score), **harness.text_options(group)
    )


def make_inputs(group):
    """The inputs of tangents, what these return, and normal random cotangents."""
    inputs = attn_tangents.make_inputs(group)
    wide = numpy.float64 if group.dtype == "f64" else numpy.float32
    shapes = {
        "out": (group.tokens_q, group.heads, group.dv), "lse": (group.heads, group.tokens_q),
    }  # fmt: skip
    results = {
        name: numpy.full(shapes[name.removeprefix("t")], numpy.nan)
        for name in ("out", "lse", "tout", "tlse")
    }
    for rows, alone in attn_tangents.sequences(group, inputs):
        forward = varlen.reference.attention(
            *harness.packed(alone), **harness.reference_options(group, alone)
        )
        made = dict(zip(("out", "lse"), forward))
        made |= attn_tangents.derive(group, alone, varlen.reference.tangents)
        for name, values in made.items():
            results[name][rows if name.endswith("out") else (slice(None), rows)] = values
    rng = numpy.random.default_rng(zlib.crc32(f"second {group.label}".encode()))
    unused = ~harness.rows_in_use(group, inputs, "q")
    for name, of in _COTANGENTS.items():
        results[name] = rng.standard_normal(shapes[of])
        results[name][unused if of == "out" else (slice(None), unused)] = numpy.nan
    for name, values in results.items():
        is_rows = name.endswith("out")
        inputs[name] = varlen.dtypes.narrow(values, group.dtype) if is_rows else values.astype(wide)
    return inputs
