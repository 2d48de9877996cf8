# RUN: %python %s
# RUN: %if long %{ %python %s --whole %}

"""PyTorch's gradcheck in f64 of both orders and of every composition of modes: reverse and
forward, reverse over reverse, forward over reverse, reverse over forward. `make check-all` takes
every mask with a sink and every score of the library, otherwise this takes a few of them."""

import sys

import torch
from library import LIBRARY, captures_of
from packed import offsets
from torch.autograd import gradcheck, gradgradcheck
from torch.func import jvp

from varlen import scores
from varlen.torch import AuxRequest, varlen_attn

torch.manual_seed(0)
# Empty sequences, more queries than keys and the opposite, rows that no sequence has.
QUERIES, KEYS = (3, 0, 5, 1), (4, 2, 3, 1)
HEADS, KV_HEADS, D, DV = 4, 2, 3, 2
ROWS_Q, ROWS_K = sum(QUERIES) + 1, sum(KEYS) + 2
EXTENTS = {"heads": HEADS, "rows": ROWS_Q, "kv_rows": ROWS_K, "entries": 9}
MASKS = {
    "full": {},
    "causal": {"is_causal": True},
    "to the left": {"window_size": (1, 0)},
    "to the right": {"window_size": (0, 2)},
    "both": {"window_size": (1, 1)},
    "open to the left": {"window_size": (-1, 1)},
    "open to the right": {"window_size": (1, -1)},
}
cu_q, cu_k = offsets(QUERIES), offsets(KEYS)


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64).requires_grad_()


def check(mask, score=None, with_sink=False):
    captures = [] if score is None else [*captures_of(score, EXTENTS, torch.float64)]
    inputs = [draw(ROWS_Q, HEADS, D), draw(ROWS_K, KV_HEADS, D), draw(ROWS_K, KV_HEADS, DV)]
    sink = [draw(HEADS)] if with_sink else []
    rest = [x for x in captures if not x.requires_grad]
    moved = [x for x in captures if x.requires_grad]

    def attend(q, k, v, *more):
        given, fixed = iter(more[len(sink) :]), iter(rest)
        out, lse = varlen_attn(
            q, k, v, cu_q, cu_k, enable_gqa=True, return_aux=AuxRequest(lse=True), **MASKS[mask],
            sink=more[0] if sink else None, score=score,
            captures=[next(given if x.requires_grad else fixed) for x in captures],
        )  # fmt: skip
        # Rows without a key have -inf.
        return out, lse[:, : sum(QUERIES)].exp()

    inputs += sink + moved
    assert gradcheck(attend, inputs, fast_mode=True, check_forward_ad=True)
    assert gradgradcheck(attend, inputs, fast_mode=True, check_fwd_over_rev=True)
    tangents = [torch.randn_like(x) for x in inputs]
    assert gradcheck(lambda *x: jvp(attend, x, tuple(tangents))[1], inputs, fast_mode=True)


if "--whole" in sys.argv:
    cases = [(mask, score) for mask in MASKS for score in (None, *LIBRARY)]
else:
    cases = [("causal", None), ("both", scores.softcap(4))]
for mask, score in cases:
    try:
        check(mask, score, with_sink=score is None)
    except Exception as error:
        error.add_note(f"mask {mask}, score {score and score.name}")
        raise
print(f"{len(cases)} cases")
