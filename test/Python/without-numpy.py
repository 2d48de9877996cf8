# RUN: %python %s

"""The package needs no numpy to make text, of scores too, to compile and to find the
plan of a call: arrays may be of another library."""

import sys

sys.modules["numpy"] = None  # An import of it fails.

import varlen  # noqa: E402
from varlen import scores, text  # noqa: E402

score = scores.compose(scores.softcap(30.0), scores.alibi())
for module in (text.attn(window=(-1, 0)), text.attn(score=score), text.attn_grad(score=score)):
    assert "varlen.attn" in module
    assert varlen.compile(module)[None].arguments
assert varlen.attn.__doc__ and varlen.attn_grad.__doc__
