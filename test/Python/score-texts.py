# RUN: %python %s
"""Scores as text: what is read, what is refused, and that nothing of a hostile text runs.
Parameters of scores that make no sense are errors."""

import copy
import pickle
import random

import numpy as np
import varlen
from checks import cumulate, normal, raises
from varlen import scores

rng = np.random.default_rng(0)
q, cu = normal(rng, "f32", 12, 2, 16), cumulate(5, 7)
slopes = np.array([0.5, 0.25], np.float32)


def attend(score, *captures, x=q):
    return varlen.attn(x, x, x, cu, score=score, captures=captures)


# A score of its text is the score, and twice the same object; long texts as well.
for score, *captures in (
    [scores.softcap(3.0)], [scores.alibi(), slopes], [scores.t5_bias(8, 6), np.ones((2, 8), np.float32)],
    [scores.compose(scores.key_bias(), scores.chunked(3)), normal(rng, "f32", 2, 12)],
):  # fmt: skip
    for compute, x in (("f32", q), ("f64", q.astype("f8"))):
        read = scores.parse(score.written(compute))
        same = scores.parse(score.written(compute)[:10] + score.written(compute)[10:])
        assert read is same and read.captures == score.captures and read.written(compute) == score.written(compute)
        given = [capture.astype(x.dtype) for capture in captures]
        assert np.array_equal(attend(read, *given, x=x), attend(score, *given, x=x))
        assert pickle.loads(pickle.dumps(read)).texts == read.texts
    assert pickle.loads(pickle.dumps(score)) is score and copy.deepcopy(score) is score
a, b = (scores.compose(scores.softcap(cap), scores.t5_bias()).written("f32") for cap in (2.0, 5.0))
assert len(a) == len(b) and scores.parse(a) is not scores.parse(b) is scores.parse(b)
# Another writer's: other names, spaces, comments, strings, and two captures of one kind.
text = """ captures ( %a : tensor<?xf32> , %b: tensor<?x?xf32>)
  score ( %s: f32, %i: i32, %j: i32, %a: f32, %b: f32 )  { // not the end: }
    %x = arith.mulf %s, %a { note = "}{ //" } : f32
    %y = arith.addf %x, %b : f32
    varlen.yield %y : f32
  } """
read = scores.parse(text)
assert read.captures == {"a": "head", "b": "query"}
out = attend(read, slopes, normal(rng, "f32", 2, 12))
assert out.shape == q.shape

# What is refused before anything is compiled.
HEAD, BODY = "score (%score: f32, %query: i32, %key: i32) ", "{ varlen.yield %score : f32 }"
for message, text in (
    ("expected the MLIR text of a score, [captures (...)] score (...) {...}, got 'softcap(5.0)'", "softcap(5.0)"),
    ("expected the MLIR text of a score", ""), ("expected the MLIR text of a score", HEAD),
    ("expected a score of f32 or f64, and the positions", "score (%s: f32, %i: i32) " + BODY),
    ("expected a score of f32 or f64, and the positions", "score (%s: i32, %i: i32, %j: i32) " + BODY),
    ("expected arguments as %name: f32, got '%s: bf16, %i: i32", "score (%s: bf16, %i: i32, %j: i32) " + BODY),
    ("expected arguments as %name: f32 and a comma between two of them", "score (%s: f32 %i: i32, %j: i32) " + BODY),
    ("expected arguments as %name: f32 and a comma between two of them", "score (%s: f32, %i: i32, %j: i32,) " + BODY),
    ("expected a region that ends with a brace", HEAD + "{ varlen.yield %score : f32"),
    ("expected a region that ends with a brace", HEAD + "{ // }"),
    ("expected strings that end", HEAD + '{ " }'),
    ("expected nothing behind the region, got '{}'", HEAD + BODY + "{}"),
    ("expected nothing behind the region, got 'return", HEAD + BODY + " return } func.func private @system(!llvm.ptr)"),
    ("expected nothing behind the region, got '// x", HEAD + BODY + "// x"),
    ("expected the types of 1 captures, one for each argument of the region, got 0",
     "score (%s: f32, %i: i32, %j: i32, %a: f32) " + BODY),
    ("expected the types of 0 captures", "captures(%a: tensor<?xf32>) " + HEAD + BODY),
    ("expected the capture %b, as the argument of the region, got '%a'",
     "captures(%a: tensor<?xf32>) score (%s: f32, %i: i32, %j: i32, %b: f32) " + BODY),
    ("expected %a: tensor<?xf32>, as a score is for all heads and lengths, got 'tensor<4xf32>'",
     "captures(%a: tensor<4xf32>) score (%s: f32, %i: i32, %j: i32, %a: f32) " + BODY),
    ("expected %a: tensor<?x?xf32>, as a score is for all heads and lengths, got 'tensor<4x?xf32>'",
     "captures(%a: tensor<4x?xf32>) score (%s: f32, %i: i32, %j: i32, %a: f32) " + BODY),
    ("expected captures as %name: tensor<?xf32>, got '%a: tensor<*xf32>'",
     "captures(%a: tensor<*xf32>) score (%s: f32, %i: i32, %j: i32, %a: f32) " + BODY),
    ("expected %a of f32, as the score is, got 'f64'",
     "captures(%a: tensor<?xf64>) score (%s: f32, %i: i32, %j: i32, %a: f64) " + BODY),
    ("expected %a, of which the region has a number, to be a tensor of rank 1 or 2, got 3",
     "captures(%a: tensor<?x?x?xf32>) score (%s: f32, %i: i32, %j: i32, %a: f32) " + BODY),
    ("expected %a, of which the region has a table, to be a tensor of rank 2, got 3",
     "captures(%a: tensor<?x?x?xf32>) score (%s: f32, %i: i32, %j: i32, %a: !varlen.table<f32, keys>) " + BODY),
    ("captures: expected names that no operand has, got 'sink'",
     "captures(%sink: tensor<?xf32>) score (%s: f32, %i: i32, %j: i32, %sink: f32) " + BODY),
    ("captures: expected names that no gradient has, got 'dx', which is the gradient of 'x'",
     "captures(%dx: tensor<?xf32>, %x: tensor<?xf32>) score (%s: f32, %i: i32, %j: i32, %dx: f32, %x: f32) " + BODY),
):  # fmt: skip
    raises(ValueError, message, scores.parse, text)
raises(TypeError, "score: expected the MLIR text of a score, got 5", scores.parse, 5)

# What the compiler refuses: other operations than those of numbers, calls among them.
for message, body in (
    ("use of undeclared SSA value name", "varlen.yield %no : f32"),
    ("expected operations of arith and math on numbers", "%x = func.call @system(%score) : (f32) -> f32\nvarlen.yield %x : f32"),
    ("custom op 'arith.nothing' is unknown", "%x = arith.nothing %score : f32\nvarlen.yield %x : f32"),
    ("expected the score region to end with varlen.yield", "%x = arith.negf %score : f32"),
    ("expected operations of arith and math on numbers", '"llvm.inline_asm"() <{asm_string = "ud2", constraints = ""}> : () -> ()\nvarlen.yield %score : f32'),
):
    raises(ValueError, message, attend, scores.parse(HEAD + "{" + body + "}"))
raises(ValueError, "score: expected a text for scores of f64, got another one",
       lambda: attend(scores.parse(HEAD + BODY), x=q.astype("f8")))  # fmt: skip

# Any change of a text is read or a ValueError.
draw = random.Random(0)
text = scores.compose(scores.alibi(), scores.key_padding()).written("f32")
for _ in range(3000):
    at = draw.randrange(len(text))
    pieces = ["", "{", "}", "(", ")", "%", '"', "//", "\n", ",", "score", "captures(", "\0", "ü", text[at : at + 40]]
    try:
        scores.parse(text[:at] + draw.choice(pieces) + text[at + draw.randrange(4) :])
    except ValueError:
        pass

# No score, and parameters that make none.
raises(TypeError, "score: expected None or a varlen.scores.Score, such as varlen.scores.alibi(), got 'alibi'",
       attend, "alibi")  # fmt: skip
raises(TypeError, "compose: expected two scores, got 'alibi'", scores.compose, scores.causal(), "alibi")
raises(NotImplementedError, "compose: expected scores with their definitions in numpy, got one that came as text",
       scores.compose, scores.causal(), scores.parse(HEAD + BODY))  # fmt: skip
# Values of the second score that have the names of captures of the first, one of them
# with the end that another one is renamed to.
shift = scores.Score(
    "shift", lambda type: f"%new = arith.addf %score, %x : {type}\n%unused = arith.addf %x, %x_0 : {type}",
    lambda s, query, key, x, x_0: s + x, None, {"x": "head", "x_0": "head"},
)  # fmt: skip
double = scores.Score(
    "double", lambda type: f"%x = arith.addf %score, %score : {type}\n%new = arith.negf %x : {type}",
    lambda s, query, key: -2 * s, None,
)  # fmt: skip
got = attend(scores.compose(shift, double), slopes, slopes)
np.testing.assert_allclose(got, attend(double), rtol=1e-5, atol=1e-5)  # softmax has no shift
for cap in (0, -1.0, float("nan"), float("inf"), 1e-300, 1e300, "5", None, 5j):
    raises(ValueError, f"softcap: expected a positive number from 2^-126 to 2^126, got {cap!r}", scores.softcap, cap)
    raises(ValueError, "softcap: expected a positive number", scores.capped_alibi, cap)
for size in (0, -3, 2.5, 2**31, None, "3"):
    raises(ValueError, f"chunked: size: expected an integer from 1 to 2147483647, got {size!r}", scores.chunked, size)
    raises(ValueError, f"dilated: step: expected an integer from 1 to 2147483647, got {size!r}", scores.dilated, size)
raises(ValueError, "sliding_window: left: expected an integer from 0", scores.sliding_window, -1, 0)
raises(ValueError, "sliding_window: right: expected an integer from 0", scores.sliding_window, 1, 0.5)
raises(ValueError, "t5_bias: buckets: expected an integer from 2 to 4096, got 0", scores.t5_bias, 0)
raises(ValueError, "t5_bias: max_distance: expected an integer from 1", scores.t5_bias, 8, float("nan"))
raises(ValueError, "t5_bias: expected 2 buckets a side", scores.t5_bias, 8, 2)
raises(ValueError, "a: expected a capture of one of head, query, ", scores.Score, "x", str, None, None, {"a": "rows"})
raises(ValueError, "captures: expected names that no gradient has, got 'dx'", scores.Score, "x", str, None, None, {"x": "head", "dx": "head"})
# Numbers of numpy are numbers, and bounds of buckets do not take long.
assert scores.chunked(np.int64(7)).texts == scores.chunked(7).texts
assert scores.softcap(np.float32(0.5)).texts == scores.softcap(0.5).texts
bounds = [int(line.split()[3]) for line in scores.t5_bias(32, 2**31 - 1).texts[0].split("\n") if "%bound" in line and "constant" in line]
assert bounds == sorted(bounds) and len(bounds) == 7 and 8 < bounds[0] and bounds[-1] < 2**31
