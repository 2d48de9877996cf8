"""Every score of varlen.scores, and captures for it."""

import torch

from varlen import scores

# What those that have to be called with something are called with.
ARGUMENTS = {
    "softcap": [(4,)], "capped_alibi": [(4,)], "sliding_window": [(9, 4)], "dilated": [(3,)],
    "chunked": [(7,)], "t5_bias": [(8, 6), (6, 9, False)],
}  # fmt: skip

LIBRARY = [
    make(*arguments)
    for name, make in scores.LIBRARY.items()
    # The words of dropout have no differences: dropout.py.
    if make not in (scores.compose, scores.dropout)
    for arguments in ARGUMENTS.get(name, [()])
]
assert {"softcap", "alibi", "t5_bias", "tree"} <= {example.name for example in LIBRARY}


def captures_of(score, extents, dtype):
    """Captures. A key becomes visible at a whole number, from which bounds are far
    enough for differences; flags and numbers of documents are no smooth things."""
    for name, of in score.captures.items():
        values = torch.rand([extents[extent] for extent in scores.CAPTURES[of]], dtype=dtype)
        if name in ("begin", "end", "prefix"):
            values = torch.floor(values * 30 + 20 * (name == "end")) + 0.5
        if name in ("flags", "used"):
            yield (values - 0.5).clamp_(min=0)
        elif name == "ids":
            yield torch.floor(values * 3)
        else:
            yield values.add_(0.2).requires_grad_()
