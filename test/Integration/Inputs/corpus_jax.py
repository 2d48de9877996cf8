"""Functions of JAX for linalg-corpus.py, and how jaxlib lowers them to linalg."""

import jax
import jax.numpy as jnp
import numpy as np
from corpus import Case, choose, floats, integers, positive
from jax import lax, nn
from jaxlib.mlir import passmanager
from jaxlib.mlir.dialects import stablehlo

stablehlo.register_stablehlo_passes()

PASSES = """builtin.module(inline, symbol-dce, func.func(chlo-legalize-to-stablehlo),
    stablehlo-legalize-to-linalg)"""


def lower(case):
    """The module that jaxlib makes of a case."""
    module = jax.jit(case.function).lower(*case.inputs).compiler_ir("stablehlo")
    with module.context:
        passmanager.PassManager.parse(PASSES).run(module.operation)
    return str(module)


def evaluate(case, with_gradients):
    """Results, and the cotangents of the floats among the inputs, all in f64."""
    with jax.enable_x64(True):
        inputs = [jnp.asarray(x) for x in case.widened()]
        moving = [i for i, x in enumerate(inputs) if jnp.issubdtype(x.dtype, jnp.floating)]

        def function(*values):
            arguments = list(inputs)
            for i, value in zip(moving, values):
                arguments[i] = value
            results = case.function(*arguments)
            return results if isinstance(results, tuple) else (results,)

        @jax.jit
        def both(*values):
            results, pull_back = jax.vjp(function, *values)
            # Integers have cotangents of a type without values.
            cotangents = tuple(
                case.cotangent(x.shape) if jnp.issubdtype(x.dtype, jnp.floating)
                else np.zeros(x.shape, jax.dtypes.float0) for x in results
            )  # fmt: skip
            return results, pull_back(cotangents)

        values = [inputs[i] for i in moving]
        results, gradients = both(*values) if with_gradients else (jax.jit(function)(*values), ())
        return [np.asarray(x) for x in results], [np.asarray(x) for x in gradients]


def rope(x, positions):
    """Rotary positions in their usual form: halves of heads, one after the other."""
    half = x.shape[-1] // 2
    frequencies = 1e4 ** (-jnp.arange(half, dtype=x.dtype) / half)
    angles = positions[:, None, None] * frequencies
    sin, cos = jnp.sin(angles), jnp.cos(angles)
    left, right = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)


def rope_interleaved(x, positions):
    """The same of neighbouring elements."""
    half = x.shape[-1] // 2
    angles = positions[:, None, None] * (1e4 ** (-jnp.arange(half, dtype=x.dtype) / half))
    even, odd = x[..., ::2], x[..., 1::2]
    pairs = [even * jnp.cos(angles) - odd * jnp.sin(angles),
             odd * jnp.cos(angles) + even * jnp.sin(angles)]  # fmt: skip
    return jnp.stack(pairs, axis=-1).reshape(x.shape)


def layer_norm(x, weight, bias):
    return nn.standardize(x, axis=-1, epsilon=1e-5) * weight + bias


def rms_norm(x, weight):
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * weight


def cross_entropy(logits, labels):
    rows = jnp.arange(labels.shape[0])
    return -nn.log_softmax(logits)[rows, labels].mean()


def attention(q, k, v):
    scores = jnp.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
    mask = jnp.tril(jnp.ones(scores.shape[1:], bool))
    return jnp.einsum("hqk,khd->qhd", nn.softmax(jnp.where(mask, scores, -jnp.inf)), v)


def swiglu(x, gate, up, down):
    return (nn.silu(x @ gate) * (x @ up)) @ down


def huber(x, y):
    error = jnp.abs(x - y)
    return jnp.where(error < 1, 0.5 * error * error, error - 0.5).mean()


def alibi(x):
    """Slopes times distances, made of ranges."""
    positions = jnp.arange(x.shape[-1], dtype=x.dtype)
    slopes = 2.0 ** -jnp.arange(1, x.shape[0] + 1, dtype=x.dtype)
    return x + slopes[:, None, None] * (positions[None, :] - positions[:, None])


def recurrence(x):
    """A gated sum over time."""
    _, sums = lax.scan(lambda h, row: (0.9 * h + row, 0.9 * h + row), jnp.zeros_like(x[0]), x)
    return sums


M, N, V = (4, 6), (3, 6), (6,)

# Of one number, of a vector and of the numbers beside which they bend.
UNARY = {
    "abs": jnp.abs, "cbrt": jnp.cbrt, "ceil": jnp.ceil, "cos": jnp.cos, "cosh": jnp.cosh,
    "exp": jnp.exp, "exp2": jnp.exp2, "expm1": jnp.expm1, "floor": jnp.floor,
    "negative": jnp.negative, "rint": jnp.rint, "round": jnp.round, "sign": jnp.sign,
    "sin": jnp.sin, "sinh": jnp.sinh, "square": jnp.square, "tanh": jnp.tanh, "tan": jnp.tan,
    "trunc": jnp.trunc, "arctan": jnp.arctan, "arcsinh": jnp.arcsinh, "erf": lax.erf,
    "erfc": lax.erfc, "relu": nn.relu, "relu6": nn.relu6, "sigmoid": nn.sigmoid,
    "softplus": nn.softplus, "silu": nn.silu, "elu": nn.elu, "selu": nn.selu,
    "gelu": nn.gelu, "gelu_exact": lambda x: nn.gelu(x, approximate=False),
    "leaky_relu": nn.leaky_relu, "hard_swish": nn.hard_swish, "log_sigmoid": nn.log_sigmoid,
    "mish": nn.mish, "softsign": nn.soft_sign, "logistic": lax.logistic,
    "nan_to_num": jnp.nan_to_num,
}  # fmt: skip
UNARY_POSITIVE = {
    "log": jnp.log, "log2": jnp.log2, "log10": jnp.log10, "log1p": jnp.log1p,
    "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt, "reciprocal": jnp.reciprocal,
    "power": lambda x: x**2.5, "cube": lambda x: x**3,
}  # fmt: skip
BINARY = {
    "add": jnp.add, "subtract": jnp.subtract, "multiply": jnp.multiply,
    "maximum": jnp.maximum, "minimum": jnp.minimum, "arctan2": jnp.arctan2,
    "hypot": jnp.hypot, "logaddexp": jnp.logaddexp, "copysign": jnp.copysign,
    "squared_distance": lambda x, y: (x - y) ** 2,
}  # fmt: skip

# Without gradients.
PREDICATES = {"isfinite": jnp.isfinite}
COMPARISONS = {"greater": jnp.greater}


def together(name, functions, draw):
    """A case of several functions, of which each has its own inputs and a result: JAX takes
    a tenth of a second to compile one."""
    inputs = [draw() for _ in functions]
    count = len(inputs[0])

    def all_of(*values):
        return tuple(
            f(*values[i * count : (i + 1) * count]) for i, f in enumerate(functions.values())
        )

    return Case(name, all_of, [x for of_one in inputs for x in of_one])


CASES = [
    together("unary", UNARY, lambda: [floats(5)]),
    together("unary_positive", UNARY_POSITIVE, lambda: [positive(5)]),
    together("binary", BINARY, lambda: [floats(*M), floats(*M)]),
    *(Case(name, f, [floats(5)]) for name, f in PREDICATES.items()),
    *(Case(name, f, [floats(*M), floats(*M)]) for name, f in COMPARISONS.items()),
    Case("divide", jnp.divide, [floats(*M), positive(*M)]),
    Case("mod", jnp.mod, [floats(*M), positive(*M)]),
    Case("remainder", lax.rem, [floats(*M), positive(*M)]),
    Case("floor_divide", jnp.floor_divide, [integers(9, 5) - 4, integers(3, 5) + 1]),
    Case("integer_sum", jnp.sum, [integers(9, 4, 5)]),
    Case("bitwise", lambda x, y: (x & y) ^ (x << 1) | (y >> 1), [integers(9, 5), integers(9, 5)]),
    Case("logical", lambda x, y: (x > 0) & ~(y > 0) | (x > y), [floats(*M), floats(*M)]),
    # Without loops, and of extents 0 and 1.
    Case("scalar", lambda x, y: jnp.tanh(x) * y + 1, [floats(), floats()]),
    Case("scalar_select", lambda x: jnp.where(x > 0, x, 2 * x), [floats()]),
    Case("scalar_to_vector", lambda x: jnp.full((4,), 1.0) * x, [floats()]),
    Case("empty", lambda x: jnp.exp(x).sum(axis=0), [floats(0, 3)]),
    Case("empty_mean", lambda x: (2 * x).sum(), [floats(0)]),
    Case("one_row", lambda x: nn.softmax(x), [floats(1, 6)]),
    Case("one_column", lambda x: nn.softmax(x), [floats(6, 1)]),
    Case("one_element", lambda x: nn.softmax(x).mean(), [floats(1, 1)]),
    Case("one_product", lambda x, y: x @ y, [floats(1, 1), floats(1, 1)]),
    # Reductions.
    Case("sum", jnp.sum, [floats(*M)]),
    Case("sum_rows", lambda x: x.sum(axis=0), [floats(*M)]),
    Case("sum_columns", lambda x: x.sum(axis=-1, keepdims=True), [floats(*M)]),
    Case("mean", jnp.mean, [floats(*M)]),
    Case("mean_square", lambda x: (x**2).mean(), [floats(*M)]),
    Case("var", jnp.var, [floats(*M)]),
    Case("std", lambda x: x.std(axis=1), [floats(*M)]),
    Case("max", jnp.max, [floats(*M)]),
    Case("min_rows", lambda x: x.min(axis=0), [floats(*M)]),
    Case("prod", lambda x: x.prod(axis=1), [floats(*M)]),
    Case("argmax", lambda x: jnp.argmax(x, axis=1), [floats(*M)]),
    Case("argmin", jnp.argmin, [floats(*V)]),
    Case("any", lambda x: (x > 1).any(axis=1), [floats(*M)]),
    Case("all", lambda x: (x > -9).all(), [floats(*M)]),
    Case("norm", jnp.linalg.norm, [floats(*V)]),
    Case("logsumexp", lambda x: nn.logsumexp(x, axis=-1), [floats(*M)]),
    Case("sum_middle", lambda x: x.sum(axis=1), [floats(2, 3, 4)]),
    Case("sum_outer", lambda x: x.sum(axis=(0, 2)), [floats(2, 3, 4)]),
    Case("count", lambda x: (x > 0).sum(), [floats(*M)]),
    Case("trace", jnp.trace, [floats(5, 5)]),
    Case("cumsum", jnp.cumsum, [floats(*V)]),
    Case("cumsum_rows", lambda x: jnp.cumsum(x, axis=0), [floats(*M)]),
    Case("cumprod", jnp.cumprod, [floats(*V)]),
    Case("cummax", lambda x: lax.cummax(x), [floats(*V)]),
    Case("average_pool", lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (2,), "VALID") / 2,
         [floats(*V)]),
    # Norms, losses.
    Case("softmax", nn.softmax, [floats(*M)]),
    Case("softmax_first", lambda x: nn.softmax(x, axis=0), [floats(*M)]),
    Case("log_softmax", nn.log_softmax, [floats(*M)]),
    Case("layer_norm", layer_norm, [floats(*M), floats(*V), floats(*V)]),
    Case("rms_norm", rms_norm, [floats(*M), floats(*V)]),
    Case("standardize", lambda x: nn.standardize(x, axis=0), [floats(*M)]),
    Case("l2_normalize", lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True), [floats(*M)]),
    Case("cross_entropy", cross_entropy, [floats(*M), integers(6, 4)]),
    Case("huber", huber, [floats(*M), floats(*M)]),
    Case("one_hot_loss", lambda x, i: -(nn.one_hot(i, 6) * nn.log_softmax(x)).sum(),
         [floats(*M), integers(6, 4)]),
    Case("binary_cross_entropy", lambda x, y: (nn.softplus(x) - x * y).mean(),
         [floats(*M), choose(*M)]),
    Case("kl_divergence", lambda x, y: (jnp.exp(y) * (y - nn.log_softmax(x))).sum(axis=-1),
         [floats(*M), floats(*M)]),
    # Shapes.
    Case("reshape", lambda x: x.reshape(2, 12), [floats(*M)]),
    Case("ravel", jnp.ravel, [floats(*M)]),
    Case("transpose", jnp.transpose, [floats(2, 3, 4)]),
    Case("swap", lambda x: jnp.swapaxes(x, 0, 1), [floats(2, 3, 4)]),
    Case("squeeze", lambda x: jnp.squeeze(x, 1), [floats(4, 1, 3)]),
    Case("expand", lambda x: x[:, None] * jnp.ones((4, 5)), [floats(4)]),
    Case("broadcast", lambda x: jnp.broadcast_to(x, (3, 6)), [floats(*V)]),
    Case("outer", jnp.outer, [floats(4), floats(5)]),
    Case("flip", jnp.flip, [floats(*V)]),
    Case("roll", lambda x: jnp.roll(x, 2), [floats(*V)]),
    Case("roll_rows", lambda x: jnp.roll(x, -1, axis=0), [floats(*M)]),
    Case("tile", lambda x: jnp.tile(x, (2, 3)), [floats(2, 3)]),
    Case("repeat", lambda x: jnp.repeat(x, 2, axis=0), [floats(*N)]),
    Case("stack", lambda x, y: jnp.stack([x, y]), [floats(*V), floats(*V)]),
    Case("concatenate", lambda x, y: jnp.concatenate([x, y]), [floats(*M), floats(*N)]),
    Case("concatenate_columns", lambda x, y, z: jnp.concatenate([jnp.sin(x), y, x * z], axis=1),
         [floats(3, 2), floats(3, 4), floats(3, 1)]),
    Case("split", lambda x: tuple(jnp.split(x, 3, axis=1)), [floats(*M)]),
    Case("slice", lambda x: x[1:3, ::2], [floats(*M)]),
    Case("slice_back", lambda x: x[::-1, 1:], [floats(*M)]),
    Case("pad", lambda x: jnp.pad(x, 2), [floats(*M)]),
    Case("pad_value", lambda x: jnp.pad(x, ((1, 0), (0, 2)), constant_values=7.0), [floats(*M)]),
    Case("pad_inside", lambda x, v: lax.pad(x, v, [(1, 0, 1)]), [floats(*V), floats()]),
    Case("pad_reflect", lambda x: jnp.pad(x, 2, mode="reflect"), [floats(*V)]),
    Case("tril", jnp.tril, [floats(5, 5)]),
    Case("triu", lambda x: jnp.triu(x, 1), [floats(5, 5)]),
    Case("diagonal", jnp.diagonal, [floats(5, 5)]),
    Case("diag", jnp.diag, [floats(4)]),
    Case("eye", lambda x: x * jnp.eye(4), [floats(4, 4)]),
    Case("where", lambda c, x, y: jnp.where(c, x, y), [choose(*M) > 0, floats(*M), floats(*M)]),
    Case("clip", lambda x: jnp.clip(x, -0.5, 0.5), [floats(*M)]),
    Case("linspace", lambda x: x * jnp.linspace(0, 1, 6, dtype=x.dtype), [floats(*V)]),
    Case("meshgrid", lambda x, y: tuple(jnp.meshgrid(x, y)), [floats(3), floats(4)]),
    Case("cast", lambda x: x.astype(jnp.int32), [3 * floats(*M)]),
    Case("cast_back", lambda x, i: x * i.astype(x.dtype), [floats(*V), integers(9, 6)]),
    # Places.
    Case("take", lambda x, i: x[i], [floats(*M), integers(4, 5)]),
    Case("take_columns", lambda x, i: jnp.take(x, i, axis=1), [floats(*M), integers(6, 3)]),
    Case("take_along", lambda x, i: jnp.take_along_axis(x, i, axis=1),
         [floats(*M), integers(6, 4, 2)]),
    Case("take_scalar", lambda x, i: x[i], [floats(*M), integers(4)]),
    Case("take_pairs", lambda x, i, j: x[i, j], [floats(*M), integers(4, 5), integers(6, 5)]),
    Case("set", lambda x, y: x.at[2].set(y), [floats(*M), floats(6)]),
    Case("scatter_add", lambda x, i, y: x.at[i].add(y), [floats(*M), integers(4, 3), floats(3, 6)]),
    Case("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 4), [floats(*M), integers(4, 4)]),
    Case("dynamic_slice", lambda x, i: lax.dynamic_slice_in_dim(x, i, 2),
         [floats(*M), integers(3)]),
    Case("dynamic_update", lambda x, y, i: lax.dynamic_update_slice_in_dim(x, y, i, 0),
         [floats(*M), floats(2, 6), integers(3)]),
    Case("sort", jnp.sort, [floats(*V)]),
    Case("argsort", jnp.argsort, [floats(*V)]),
    Case("top_k", lambda x: lax.top_k(x, 2)[0], [floats(*M)]),
    # Products.
    Case("matmul", jnp.matmul, [floats(4, 6), floats(6, 5)]),
    Case("matmul_batch", jnp.matmul, [floats(2, 4, 6), floats(2, 6, 5)]),
    Case("matvec", jnp.matmul, [floats(4, 6), floats(6)]),
    Case("dot", jnp.dot, [floats(6), floats(6)]),
    Case("tensordot", lambda x, y: jnp.tensordot(x, y, axes=2), [floats(2, 3, 4), floats(3, 4, 5)]),
    Case("einsum_heads", lambda x, y: jnp.einsum("qhd,khd->hqk", x, y),
         [floats(4, 2, 3), floats(5, 2, 3)]),
    Case("einsum_weight", lambda x, w: jnp.einsum("btd,dhe->bthe", x, w),
         [floats(2, 3, 4), floats(4, 2, 3)]),
    Case("einsum_diagonal", lambda x: jnp.einsum("ii->i", x), [floats(5, 5)]),
    Case("bilinear", lambda x, w, y: jnp.einsum("i,ij,j->", x, w, y),
         [floats(4), floats(4, 5), floats(5)]),
    Case("convolve", lambda x, y: jnp.convolve(x, y, mode="valid"), [floats(8), floats(3)]),
    # Parts of models.
    Case("rope", rope, [floats(5, 2, 8), np.arange(5, dtype=np.float32)]),
    Case("rope_interleaved", rope_interleaved, [floats(5, 2, 8), np.arange(5, dtype=np.float32)]),
    Case("attention", attention, [floats(5, 2, 4), floats(5, 2, 4), floats(5, 2, 4)]),
    Case("dot_product_attention", nn.dot_product_attention,
         [floats(1, 5, 2, 4), floats(1, 5, 2, 4), floats(1, 5, 2, 4)]),
    Case("swiglu", swiglu, [floats(3, 4), floats(4, 6), floats(4, 6), floats(6, 4)]),
    Case("embedding", lambda table, i: table[i] * 2.0, [floats(7, 4), integers(7, 2, 3)]),
    Case("alibi", alibi, [floats(2, 4, 4)]),
    Case("linear", lambda x, w, b: nn.gelu(x @ w + b), [floats(3, 4), floats(4, 5), floats(5)]),
    Case("recurrence", recurrence, [floats(5, 3)]),
    Case("newton", lambda x: lax.fori_loop(0, 4, lambda _, y: 0.5 * (y + x / y), x), [positive(4)]),
    Case("branch", lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), [floats(4)]),
    Case("vmap", jax.vmap(lambda x, y: jnp.tanh(x @ y).sum()), [floats(3, 4), floats(3, 4)]),
]  # fmt: skip
