# RUN: %python %s
"""varlen.torch.append: the bits of indexed assignments and of a rotary embedding in PyTorch, tensors of
any strides; as an operator under PyTorch's checks and in graphs, where the cache changes in place; and
errors, after which the cache is what it was."""

import torch
from device import ON_CUDA, settle
from packed import fails, offsets

import varlen.torch
from varlen.kv_cache import quantise
from varlen.torch import append
from varlen.torch._rotary import rotate

USED, NEW = [5, 0, 16, 15, 3], [3, 0, 1, 1, 200]
TOTAL, PAGE, WIDTH = sum(NEW), 16, 13
torch.manual_seed(0)
op = torch.ops.varlen.append.default


def draw(dtype=torch.float32):
    """k, v and caches of 70 pages, keys and values side by side."""
    k, v = torch.randn(TOTAL, 2, 24).to(dtype), torch.randn(TOTAL, 2, 40).to(dtype)
    both = torch.randn(70, 2, PAGE, 2, 40).to(dtype)
    return k, v, both[:, 0, :, :, :24], both[:, 1]


table = torch.randperm(70)[: 5 * WIDTH].view(5, WIDTH).to(torch.int32)
cu, used = offsets(NEW), torch.tensor(USED, dtype=torch.int32)
positions = torch.cat([u + torch.arange(n) for u, n in zip(USED, NEW)])
sequences = torch.repeat_interleave(torch.arange(5), torch.tensor(NEW))
places = table[sequences, positions // PAGE].long(), positions % PAGE
angles = torch.rand(203, 7) * 6


def write(k_cache, v_cache, k, v, rotary=None, interleaved=False):
    """What append does."""
    k_cache[places] = k if rotary is None else rotate(k, *rotary, positions, interleaved)
    v_cache[places] = v


for dtype, of_tables, interleaved in (
    (torch.float32, None, False), (torch.bfloat16, None, False), (torch.float64, torch.float64, True),
    (torch.bfloat16, torch.float32, False), (torch.float16, torch.float16, True),
    (torch.float32, torch.float32, False),
):  # fmt: skip
    k, v, k_cache, v_cache = draw(dtype)
    rotary = of_tables and (angles.cos().to(of_tables), angles.sin().to(of_tables))
    wanted = k_cache.clone(), v_cache.clone()
    write(*wanted, k, v, rotary, interleaved)
    options = {"block_table": table}
    if rotary:
        options |= {"cos": rotary[0], "sin": rotary[1], "interleaved": interleaved}
    old = k_cache.clone(), v_cache.clone()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        assert append(k_cache, v_cache, k, v, cu, used, **options) is None
        assert torch.equal(k_cache, wanted[0]) and torch.equal(v_cache, wanted[1]), (dtype, of_tables)
        k_cache.copy_(old[0]), v_cache.copy_(old[1])
    # Operands of any strides, and lists of 64 bits.
    apart = torch.stack([k, k], 3)[..., 0], v.transpose(0, 1).contiguous().transpose(0, 1)
    options["block_table"] = table.t().contiguous().t()
    append(k_cache, v_cache, *apart, cu.long(), used.long(), **options)
    assert torch.equal(k_cache, wanted[0]) and torch.equal(v_cache, wanted[1]), (dtype, of_tables)

# Slots.
k, v, *_ = draw()
caches = torch.zeros(6, 250, 2, 24), torch.zeros(6, 250, 2, 40)
append(*caches, k, v, cu, used)
assert torch.equal(caches[1][4, 3:203], v[-200:]) and not caches[1][4, 203:].any() and not caches[0][5].any()

# Quantised on the way, by the definition of a cache.
for element in (torch.int8, torch.float8_e4m3fn):
    k, v, *caches = draw(torch.bfloat16)
    caches = [torch.zeros(x.shape).to(element) for x in caches]
    scales = [torch.zeros(x.shape[:3]) for x in caches]
    named = dict(zip(("k_scale", "v_scale"), scales))
    append(*caches, k, v, cu, used, block_table=table, **named)
    for cache, scale, x in zip(caches, scales, (k, v)):
        numbers, wanted = quantise(x, element)
        assert torch.equal(cache[places].view(torch.int8), numbers.view(torch.int8)), element
        assert torch.equal(scale[places], wanted), element
    if element is torch.int8:  # Its checks do not compare tensors of f8.
        torch.library.opcheck(op, (*caches, k, v, cu, used, table), named)
    given = {"k_cache": caches[0], "v_cache": caches[1], "k": k, "v": v, "cu_seqlens": cu, "seqused_k": used}
    for words, changed in (
        ("k_cache: expected a tensor of torch.bfloat16", {"k_scale": None, "v_scale": None}),
        ("expected k_scale and v_scale, or neither", {"v_scale": None}),
        ("expected caches of torch.int8 or torch.float8_e4m3fn beside k_scale", {"k_cache": caches[0].float()}),
        ("v_scale: expected shape (70, 16, 2), got (69, 16, 2)", {"v_scale": scales[1][1:]}),
        ("k_scale: expected a tensor of torch.float32 and rank 3, got one of torch.float64", {"k_scale": scales[0].double()}),
    ):  # fmt: skip
        fails(ValueError, words, lambda: append(**given | named | changed, block_table=table))

# The operator: its schema, and graphs, in which extents are symbols, too.
k, v, k_cache, v_cache = draw()
k_cache, v_cache = k_cache.contiguous(), v_cache.contiguous()
rotary = {"cos": angles.cos(), "sin": angles.sin()}
arguments = k_cache, v_cache, k, v, cu, used, table, *rotary.values(), True
torch.library.opcheck(op, arguments)
torch.library.opcheck(op, (torch.zeros(6, 250, 2, 24), torch.zeros(6, 250, 2, 40), *arguments[2:6]))


def step(k_cache, v_cache, k, v, cu, used, table):
    append(k_cache, v_cache, k * 2, v, cu, used, block_table=table, **rotary)
    return k_cache.sum()


compiled = torch.compile(step, backend="aot_eager", fullgraph=True, dynamic=True)
with torch.no_grad():
    for count in (70, 71):
        first = [x.new_zeros(count, *x.shape[1:]) for x in (k_cache, v_cache)]
        second = [x.clone() for x in first]
        found = compiled(*first, k, v, cu, used, table)
        assert torch.equal(found, step(*second, k, v, cu, used, table))
        assert all(map(torch.equal, first, second)) and first[0].any()


class Step(torch.nn.Module):
    def forward(self, *arguments):
        return step(*arguments)


caches = k_cache.clone(), v_cache.clone()
program = torch.export.export(Step(), (*caches, k, v, cu, used, table)).module()
program(*caches, k, v, cu, used, table)
wanted = k_cache.clone(), v_cache.clone()
step(*wanted, k, v, cu, used, table)
assert all(map(torch.equal, caches, wanted))


def refuse(kind, words, **changed):
    given = {
        "k_cache": k_cache, "v_cache": v_cache, "k": k, "v": v, "cu_seqlens": cu, "seqused_k": used,
        "block_table": table, **rotary,
    }  # fmt: skip
    kept = k_cache.clone(), v_cache.clone()
    fails(kind, words, lambda: (append(**given | changed), settle()))
    assert torch.equal(k_cache, kept[0]) and torch.equal(v_cache, kept[1]), words


twice = table.clone()
twice[4, 5] = twice[3, 0]
for words, changed in (
    ("block_table[3, 0] = -1: expected 0 to 69", {"block_table": table.index_fill(1, torch.tensor(0), -1).where(torch.arange(5)[:, None] == 3, table)}),
    ("expected a page that nothing else writes to, and block_table[3, 0] is the same", {"block_table": twice}),
    ("seqused_k[4] = 9: expected 0 to 8, as 200 new rows must fit", {"seqused_k": used + 6}),
    ("cos has 202 rows: expected at least 203", {name: x[:202] for name, x in rotary.items()}),
    ("sin: expected shape (203, 7), got (202, 7)", {"sin": angles[:202]}),
    ("seqused_k: expected shape (5,), got (4,)", {"seqused_k": used[1:]}),
    ("block_table: expected shape (5, 13), got (6, 13)", {"block_table": torch.cat([table, table[:1]])}),
    ("sequence 4 of cu_seqlens has 200 rows: expected at most 192", {"block_table": table[:, :12]}),
    ("a page of k_cache has 0 rows", {"k_cache": k_cache[:, :0], "v_cache": v_cache[:, :0]}),
    ("v_cache: expected shape (70, 16, 2, 40), got (69, 16, 2, 40)", {"v_cache": v_cache[:69]}),
    ("k_cache: expected shape (70, 16, 2, 24), got (70, 16, 2, 23)", {"k_cache": k_cache[..., :23]}),
    ("v: expected shape (205, 2, 40), got (204, 2, 40)", {"v": v[1:]}),
    ("v: expected a tensor of torch.float32 and rank 3, got one of torch.float64", {"v": v.double()}),
    ("block_table: expected a tensor of torch.int32 and rank 2, got one of torch.int64", {"block_table": table.long()}),
    ("expected cos and sin, which interleaved goes with, or none", {"sin": None}),
    ("k_cache: expected stride 3 to be 1, got 2", {"k_cache": torch.zeros(70, 16, 2, 48)[..., ::2]}),
    ("k_cache: expected an array that can be written, got a view with the negative bit", {"k_cache": torch._neg_view(k_cache)}),
    ("v_cache: expected an array that can be written, got a view with the negative bit", {"v_cache": torch._neg_view(v_cache)}),
    ("k_cache: expected memory that no other tensor of the call has, got some of k", {"k": k_cache.flatten(0, 1)[-TOTAL:]}),
    ("expected cos and sin for at most 12 pairs", {"cos": torch.ones(300, 13), "sin": torch.ones(300, 13)}),
):  # fmt: skip
    refuse(ValueError, words, **changed)
refuse(TypeError, "k: expected a torch.Tensor, got a list", k=[1.0])
for name in ("k_cache", "v_cache", "k", "v", "cu_seqlens", "seqused_k"):
    refuse(TypeError, f"{name}: expected a torch.Tensor, got a NoneType", **{name: None})
refuse(TypeError, "interleaved: expected", interleaved="yes")
if ON_CUDA:
    refuse(ValueError, "k_cache: expected a tensor on cuda:0, as k is, got one on cpu", k_cache=k_cache.cpu())
    refuse(ValueError, "cu_seqlens: expected a tensor on cuda:0, as k is, got one on cpu", cu_seqlens=cu.cpu())
refuse(NotImplementedError, "k: expected a tensor that needs no gradient", k=k.clone().requires_grad_())
meta = {name: x.to("meta") for name, x in {"k_cache": k_cache, "v_cache": v_cache, "k": k, "v": v[1:]}.items()}
fails(ValueError, "v: expected shape (205, 2, 40), got (204, 2, 40)", lambda: append(**meta, cu_seqlens=cu.to("meta"), seqused_k=used.to("meta")))
assert varlen.torch.append is append
