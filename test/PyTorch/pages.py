# RUN: %python %s
"""Keys and values in pages: every way into them has the bits of attention without pages, and what
is wrong is said in the same words on every device."""

import torch
from device import HAS_F64, IS_FAKE, ON_CUDA, settle
from packed import fails, offsets
from paged import to_pages
from torch.nn.attention import activate_flash_attention_impl, restore_flash_attention_impl
from torch.nn.attention import varlen as upstream
from torch.utils.flop_counter import FlopCounterMode

import varlen.torch
from varlen import scores
from varlen.torch import AuxRequest, flash_attn_varlen_func, varlen_attn, varlen_attn_out

LSE = AuxRequest(lse=True)
ops = torch.ops.varlen
torch.manual_seed(0)
# No query, no key, more queries than keys; lengths at and around the ends of pages.
QUERIES, KEYS = [0, 3, 9, 1, 30, 2], [5, 0, 4, 256, 321, 129]
cu_q, cu_k = offsets(QUERIES), offsets(KEYS)


def draw(dtype=torch.float32):
    return [
        torch.randn(shape).to(dtype)
        for shape in ((sum(QUERIES), 6, 24), (sum(KEYS), 2, 24), (sum(KEYS), 2, 40))
    ]


q, k, v = draw()
pages_k, pages_v, table, used = to_pages(k, v, KEYS, 16)
given = {"seqused_k": used, "block_table": table, "enable_gqa": True}

# Bits, of any number of threads.
for dtype, page, options in (
    (torch.float32, 16, {"is_causal": True}),
    (torch.float64, 64, {"q_offset": torch.tensor([1, -2, 3, -4, 0, 5], dtype=torch.int32)}),
    (torch.bfloat16, 256, {"window_size": (70, 0), "sink": torch.randn(6)}),
    (torch.float16, 5, {"chunk": 50, "seqused_q": torch.tensor([0, 2, 9, 1, 21, 0], dtype=torch.int32)}),
    (torch.bfloat16, 64, {"score": scores.alibi(), "captures": [torch.rand(6)], "dropout_p": 0.2, "seed": 7}),
):  # fmt: skip
    if dtype == torch.float64 and not HAS_F64:
        continue
    packed = draw(dtype)
    *pages, paged_table, paged_used = to_pages(*packed[1:], KEYS, page)
    paged = {"seqused_k": paged_used, "block_table": paged_table, **options}
    wanted = varlen_attn(*packed, cu_q, cu_k, enable_gqa=True, return_aux=LSE, **options)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for cu in (None, cu_k):  # which is not read
            found = varlen_attn(
                packed[0], *pages, cu_q, cu, enable_gqa=True, return_aux=LSE, num_splits=3, **paged
            )
            assert all(map(torch.equal, found, wanted)), (dtype, page, options)
    buffer = torch.full((sum(QUERIES), 12, 40), torch.nan, dtype=dtype)[:, ::2]
    found = varlen_attn_out(
        buffer, packed[0], *pages, cu_q, None, enable_gqa=True, return_aux=LSE, **paged
    )
    assert found[0] is buffer and all(map(torch.equal, found, wanted))

wanted = varlen_attn(q, k, v, cu_q, cu_k, enable_gqa=True, return_aux=LSE)
# A sequence alone.
s = 4
alone = varlen_attn(
    q[cu_q[s] : cu_q[s + 1]], pages_k, pages_v, offsets(QUERIES[s : s + 1]), None,
    seqused_k=used[s : s + 1], block_table=table[s : s + 1], enable_gqa=True,
)  # fmt: skip
assert torch.equal(alone, wanted[0][cu_q[s] : cu_q[s + 1]])
# Tensors of any strides, and lists of 64 bits.
pool = torch.stack([pages_k, torch.full_like(pages_k, torch.nan)], 2).flatten(2, 3)
assert torch.equal(
    varlen_attn(
        q, pool[:, :, :2], pages_v.transpose(0, 1).contiguous().transpose(0, 1), cu_q.long(), None,
        seqused_k=used.long(), block_table=table.t().contiguous().t(), enable_gqa=True,
    ), wanted[0],
)  # fmt: skip

# flash-attn's function has lengths of keys from cu_seqlens_k, or from seqused_k.
for keys in ({"cu_seqlens_k": cu_k}, {"cu_seqlens_k": None, "seqused_k": used}, {"cu_seqlens_k": offsets([9] * 6), "seqused_k": used}):
    found = flash_attn_varlen_func(
        q, pages_k, pages_v, cu_q, causal=True, softcap=5.0, block_table=table,
        return_attn_probs=True, **keys,
    )  # fmt: skip
    same = flash_attn_varlen_func(
        q, k, v, cu_q, cu_k, causal=True, softcap=5.0, return_attn_probs=True
    )
    assert torch.equal(found[0], same[0]) and torch.equal(found[1], same[1])

# PyTorch's own functions.
if hasattr(upstream, "varlen_attn_out"):
    varlen.torch.install()
    activate_flash_attention_impl("VARLEN")
    for cu in (None, cu_k):
        found = upstream.varlen_attn(
            q, pages_k, pages_v, cu_q, cu, 30, 321, return_aux=LSE, num_splits=1, **given
        )
        assert all(map(torch.equal, found, wanted))
        buffer = torch.full((sum(QUERIES), 6, 40), torch.nan)
        found = upstream.varlen_attn_out(
            buffer, q, pages_k, pages_v, cu_q, cu, 30, 321, return_aux=LSE, **given
        )
        assert found[0] is buffer and all(map(torch.equal, found, wanted))
    arguments = (q, pages_k, pages_v, cu_q, None, 30, 321, False, None, [-1, -1], True, used, table)
    torch.library.opcheck(torch.ops.torch_attn._varlen_attn, arguments)
    torch.library.opcheck(torch.ops.torch_attn._varlen_attn_out, (buffer, *arguments))
    compiled = torch.compile(upstream.varlen_attn, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        assert torch.equal(compiled(q, pages_k, pages_v, cu_q, None, 30, 321, **given), wanted[0])
    for fewer, kind, words in (
        ({"enable_gqa": False}, ValueError, "but got Hq=6 and Hkv=2. Try setting enable_gqa=True"),
        ({"seqused_k": None}, ValueError, "expected seqused_k with a block_table, got none"),
        ({"seqused_k": used + 400}, ValueError, "seqused_k[0] = 405: expected 0 to 368, the rows"),
        ({"block_table": table + 99}, ValueError, "block_table[0, 0] = "),
    ):
        options = given | fewer
        fails(
            kind, words,
            lambda o=options: (upstream.varlen_attn(q, pages_k, pages_v, cu_q, None, 30, 321, **o), settle()),
        )  # fmt: skip
    fails(
        RuntimeError, "is an inference-only parameter",
        lambda: upstream.varlen_attn(q.clone().requires_grad_(), pages_k, pages_v, cu_q, None, 30, 321, **given),
    )  # fmt: skip
    restore_flash_attention_impl()

# The operators under PyTorch's checks, and in graphs, where extents of pages are symbols, too.
arguments = q, pages_k, pages_v, cu_q, None, used
torch.library.opcheck(ops.attn.default, arguments, {"block_table": table})
torch.library.opcheck(
    ops.attn_out.default, (torch.empty_like(wanted[0]), *arguments), {"block_table": table}
)


def attend(q, k, v, cu, used, table):
    return varlen_attn(q * 2, k, v, cu, None, seqused_k=used, block_table=table, enable_gqa=True)


compiled = torch.compile(attend, backend="aot_eager", fullgraph=True, dynamic=True)
for page in (16, 48):
    *tensors, paged_table, paged_used = to_pages(k, v, KEYS, page)
    assert torch.equal(
        compiled(q, *tensors, cu_q, paged_used, paged_table),
        attend(q, *tensors, cu_q, paged_used, paged_table),
    )



class Decode(torch.nn.Module):
    def forward(self, *arguments):
        return attend(*arguments)


arguments = q, pages_k, pages_v, cu_q, used, table
program = torch.export.export(Decode(), arguments)
assert torch.equal(program.module()(*arguments), attend(*arguments))

# Examples of vmap with pages and tables of their own, or one of each.
queries, tables = torch.stack([q, -q]), torch.stack([table, table.flip(1).flip(1)])
for in_dims, pools in (
    ((0, None, None, 0), (pages_k, pages_v)),
    ((0, 1, 0, 0), (torch.stack([pages_k] * 2, 1), torch.stack([pages_v] * 2))),
    ((0, None, None, None), (pages_k, pages_v)),
):
    call = torch.vmap(
        lambda q, k, v, t: varlen_attn(q, k, v, cu_q, None, **given | {"block_table": t}),
        in_dims=in_dims,
    )
    found = call(queries, *pools, tables if in_dims[3] == 0 else table)
    assert torch.equal(found[0], wanted[0])
    assert torch.equal(found[1], varlen_attn(-q, k, v, cu_q, cu_k, enable_gqa=True))

# Flops are those without pages.
counts = []
for call in (
    lambda: varlen_attn(q, pages_k, pages_v, cu_q, None, is_causal=True, **given),
    lambda: varlen_attn(q, k, v, cu_q, cu_k, is_causal=True, enable_gqa=True),
):
    with FlopCounterMode(display=False) as mode:
        call()
    counts.append(mode.get_total_flops())
assert counts[0] == counts[1] > 0

# There is no gradient, by any operand.
for name in ("query", "key", "value", "sink"):
    tensors = {"query": q, "key": pages_k, "value": pages_v, "sink": torch.zeros(6)}
    tensors[name] = tensors[name].clone().requires_grad_()
    words = "varlen::attn: block_table is an inference-only parameter"
    call = lambda: varlen_attn(cu_seq_q=cu_q, cu_seq_k=None, **tensors, **given)  # noqa: E731
    fails(NotImplementedError, words, call)
    with torch.no_grad():
        call()

# What is wrong, in the words of tensors without data where those see it.
for changes, words, is_seen in (
    ({"k": pages_k[0]}, "expected q of rank 3 (rows, heads, head_dim), and k and v of rank 4 (pages, rows, heads, head_dim), got shapes", True),
    ({"v": pages_v[:-1]}, f"v has {len(pages_v) - 1} pages: expected {len(pages_k)}, as many as k", True),
    ({"v": pages_v[:, 1:]}, "expected k and v to have the same rows in a page, got 16 and 15", True),
    ({"k": pages_k[:, :0], "v": pages_v[:, :0]}, "expected positive rows in a page of k, got 0", True),
    ({"k": pages_k[..., :8]}, "k: expected extent 3 to be 24, got 8", True),
    ({"v": pages_v[:, :, :1]}, "v: expected extent 2 to be 2, got 1", True),
    ({"block_table": table.long()}, "block_table: expected a tensor of torch.int32 and rank 2, got one of torch.int64", True),
    ({"block_table": table[0]}, "block_table: expected a tensor of torch.int32 and rank 2, got one of torch.int32 and rank 1", True),
    ({"block_table": table[:-1]}, "block_table has 5 rows: expected 6, one for each sequence", True),
    ({"seqused_k": None}, "expected seqused_k with a block_table, got none", True),
    ({"seqused_k": used[:-1]}, "seqused_k has 5 entries: expected 6, one for each sequence", True),
    ({"seqused_k": used.long()}, "seqused_k: expected a tensor of torch.int32 and rank 1", True),
    ({"cu_seqlens_k": cu_k}, "cu_seqlens_k: expected None beside a block_table", True),
    ({"block_table": None, "k": k, "v": v}, "expected cu_seqlens_k, or a block_table, got neither", True),
    ({"score": scores.key_bias().written("f32"), "captures": [torch.zeros(6, len(k))]}, "expected no table of keys with a block_table, got capture 0", True),
    ({"block_table": table.where(table < len(pages_k), -1).roll(1, 1)}, "block_table[0, 0] = -1: expected 0 to ", False),
    ({"seqused_k": used + 400}, "seqused_k[0] = 405: expected 0 to 368, the rows of the pages", False),
):  # fmt: skip
    named = {
        "q": q, "k": pages_k, "v": pages_v, "cu_seqlens_q": cu_q, "cu_seqlens_k": None,
        "seqused_k": used, "block_table": table, **changes,
    }  # fmt: skip
    message = fails(ValueError, words, lambda: (ops.attn(**named), settle()))
    out = torch.full((sum(QUERIES), 6, 40), 7.0)
    assert fails(ValueError, words, lambda: (ops.attn_out(out, **named), settle())) == message
    # On a GPU kernels find what values are wrong, and results are NaN.
    assert (out == 7).all() or (ON_CUDA and not is_seen), f"{words}: written"
    if is_seen:
        meta = torch.utils._pytree.tree_map_only(torch.Tensor, lambda x: x.to("meta"), named)
        assert fails(ValueError, words, lambda: ops.attn(**meta)) == message
for kind, changes, words in (
    (TypeError, {"block_table": [[0]]}, "block_table: expected a torch.Tensor, got a list"),
    (TypeError, {"seqused_k": [1]}, "seqused_k: expected a torch.Tensor, got a list"),
    (ValueError, {"enable_gqa": False}, "but got Hq=6 and Hkv=2"),
):
    fails(kind, words, lambda c=changes: varlen_attn(q, pages_k, pages_v, cu_q, None, **given | c))
if not IS_FAKE:  # It has no sparse tensors.
    sparse = given | {"block_table": table.to_sparse()}
    words = "block_table: expected a dense tensor, got one of layout"
    fails(ValueError, words, lambda: varlen_attn(q, pages_k, pages_v, cu_q, None, **sparse))
fails(
    ValueError,
    "expected query of rank 3 (rows, heads, head_dim), and key, value of rank 4 (pages, rows, heads, head_dim), got shapes query (45, 6, 24), key (",
    lambda: varlen_attn(q, k, v, cu_q, None, **given),
)  # fmt: skip
fails(
    ValueError, "expected seqused_k with a block_table, got none",
    lambda: flash_attn_varlen_func(q, pages_k, pages_v, cu_q, None, block_table=table),
)  # fmt: skip
