# RUN: %python %s
"""torch.utils.flop_counter counts the pairs of a query and a key that masks let through, as the
definition does, and by PyTorch's formula where there is no mask."""

import itertools
import os
import random

import torch
from packed import offsets
from torch._subclasses.fake_tensor import FakeTensorMode

import varlen.torch
from varlen import reference
from varlen.torch import varlen_attn, varlen_attn_out
from varlen.torch._flops import count_pairs

device = os.environ.get("VARLEN_TEST_DEVICE", "cpu")
# It may be imported after varlen.torch.
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

WINDOWS = ((-1, -1), (-1, 0), (3, 0), (0, 0), (-1, 2), (2, -1), (4, 4), (1, 7), 1, 2, 5, 100)

# Sequences of every kind, against masks that are written out.
draw = random.Random(0)
for lengths in itertools.product(range(9), repeat=2):
    for window in WINDOWS:
        for offset in (0, draw.randrange(-20, 20)):
            wanted = int(reference.visible(*lengths, window, offset=offset).sum())
            found = count_pairs(*lengths, offset, window)
            assert found == wanted, (lengths, offset, window, found, wanted)
# In integers, which do not overflow.
assert count_pairs(10**9, 10**9, 0, (-1, 0)) == 10**9 * (10**9 + 1) // 2


def count(call):
    with FlopCounterMode(display=False) as mode:
        result = call()
    return result, mode.get_total_flops()


q, k, v = (
    torch.randn(shape, device=device, requires_grad=True)
    for shape in ((18, 4, 16), (20, 2, 16), (20, 2, 8))
)
cu_q, cu_k = (offsets(x).to(device) for x in ([5, 0, 9], [8, 1, 11]))
used_q, used_k, moved = (
    torch.tensor(x, dtype=torch.int32, device=device)
    for x in ([3, 0, 6], [7, 1, 9], [2, 5, -1])
)
operands = {"seqused_q": used_q, "seqused_k": used_k, "q_offset": moved}
for window, names in zip(
    ((-1, -1), (-1, 0), (3, 0), (1, 7), 5),
    ((), ("seqused_k",), ("seqused_q", "q_offset"), ("q_offset",), tuple(operands)),
):
    given = {name: operands[name] for name in names}
    mask = {"chunk": window} if isinstance(window, int) else {"window_size": window}
    pairs = reference.visible_pairs(
        cu_q.tolist(), cu_k.tolist(), window=window,
        **{name: x.tolist() for name, x in given.items()},
    )  # fmt: skip
    options = {"enable_gqa": True, **mask, **given}
    out, forward = count(lambda: varlen_attn(q, k, v, cu_q, cu_k, **options))
    assert forward == 2 * pairs * 4 * (16 + 8), (window, names)
    _, backward = count(lambda: out.sum().backward())
    assert backward == 2 * pairs * 4 * (3 * 16 + 2 * 8), (window, names)
    with torch.no_grad():
        _, into = count(lambda: varlen_attn_out(out.detach(), q, k, v, cu_q, cu_k, **options))
    assert into == forward

# Without a mask, one sequence is what PyTorch counts of its own operator.
x = torch.randn(1, 3, 30, 16, device=device, requires_grad=True)
cu = offsets([30]).to(device)
with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
    _, dense = count(lambda: torch.nn.functional.scaled_dot_product_attention(x, x, x))
rows = x.detach()[0].transpose(0, 1)
assert count(lambda: varlen_attn(rows, rows, rows, cu, cu))[1] == dense

# Without data, all rows are counted as one sequence, and so are those under torch.vmap counted
# of all examples.
causal = 2 * count_pairs(18, 20, 0, (-1, 0)) * 4 * (16 + 8)
meta = [x.to("meta") for x in (q, k, v, cu_q, cu_k)]
options = {"enable_gqa": True, "window_size": (-1, 0)}
assert count(lambda: varlen_attn(*meta, **options))[1] == causal
with FakeTensorMode() as fake:
    fakes = [fake.from_tensor(x) for x in (q, k, v, cu_q, cu_k)]
    assert count(lambda: varlen_attn(*fakes, **options))[1] == causal
_, one = count(lambda: varlen_attn(q, k, v, cu_q, cu_k, **options))
many = torch.stack([q.detach()] * 5)
_, all_of_them = count(
    lambda: torch.vmap(lambda x: varlen_attn(x, k, v, cu_q, cu_k, **options))(many)
)
assert all_of_them == 5 * one

# PyTorch's own operators on the provider have PyTorch's formulas.
varlen.torch.install()
torch.nn.attention.activate_flash_attention_impl("VARLEN")
from torch.nn.attention import varlen as upstream  # noqa: E402

_, provider = count(lambda: upstream.varlen_attn(rows, rows, rows, cu, cu, 30, 30))
assert provider == dense, (provider, dense)
