# RUN: %python %s
"""Quantised keys and values in PyTorch: varlen_attn with k_scale and v_scale, flash-attn's
function with descales, a quantised cache, a traced call, and errors."""

import torch
from device import ON_CUDA, settle
from packed import fails

from varlen import scores
from varlen.kv_cache import KVCache, quantise
from varlen.torch import flash_attn_varlen_func, varlen_attn

torch.manual_seed(0)
HEADS, KV_HEADS, DIM = 4, 2, 32
CU_Q = torch.tensor([0, 3, 3, 4, 44], dtype=torch.int32)
CU_K = torch.tensor([0, 5, 9, 150, 213], dtype=torch.int32)
F8 = torch.float8_e4m3fn


def draw(*shape):
    return torch.randn(*shape, DIM)


def close(found, wanted, limit=2e-3):
    error = (found.float() - wanted.float()).abs().max().item()
    assert error < limit, error


def check_varlen_attn():
    q, k, v = draw(44, HEADS), draw(213, KV_HEADS), draw(213, KV_HEADS)
    for element in (torch.int8, F8):
        (k8, k_scale), (v8, v_scale) = quantise(k, element), quantise(v, element)
        exact = [x.float() * scale[..., None] for x, scale in ((k8, k_scale), (v8, v_scale))]
        wanted = varlen_attn(q, *exact, CU_Q, CU_K, is_causal=True, enable_gqa=True)
        options = {"enable_gqa": True, "k_scale": k_scale, "v_scale": v_scale}
        found = varlen_attn(q, k8, v8, CU_Q, CU_K, is_causal=True, **options)
        close(found, wanted, 1e-5)
        # A sink, a window, the rows that count and captures, of any memory, are as without scales.
        more = {
            "score": scores.alibi(), "captures": [torch._neg_view(torch.rand(HEADS))],
            "window_size": (20, 0), "sink": torch.randn(HEADS),
            "seqused_k": torch.tensor([5, 2, 140, 63], dtype=torch.int32),
        }  # fmt: skip
        wanted = varlen_attn(q, *exact, CU_Q, CU_K, enable_gqa=True, **more)
        close(varlen_attn(q, k8, v8, CU_Q, CU_K, **options, **more), wanted, 1e-5)
        narrow = varlen_attn(q.bfloat16(), k8, v8, CU_Q, CU_K, **options)
        assert narrow.dtype is torch.bfloat16
        close(narrow, varlen_attn(q, *exact, CU_Q, CU_K, enable_gqa=True), 4e-2)


def check_flash_attn():
    lengths = 44, 213
    q8, k8, v8 = (draw(n, heads).to(F8) for n, heads in zip((44, 213, 213), (HEADS, KV_HEADS, KV_HEADS)))
    each = [torch.rand(1, KV_HEADS) + 0.5 for _ in range(3)]
    of_sequences = [torch.rand(4, KV_HEADS) + 0.5 for _ in range(3)]
    for q_d, k_d, v_d in ([x.expand(4, -1) for x in each], of_sequences):
        sequence = [torch.repeat_interleave(torch.arange(4), cu.diff()) for cu in (CU_Q, CU_K)]
        q = q8.float() * q_d[sequence[0]].repeat_interleave(HEADS // KV_HEADS, 1)[..., None]
        k, v = (x.float() * d[sequence[1]][..., None] for x, d in ((k8, k_d), (v8, v_d)))
        wanted = flash_attn_varlen_func(q, k, v, CU_Q, CU_K, *lengths, causal=True)
        descales = {"q_descale": q_d, "k_descale": k_d, "v_descale": v_d}
        found = flash_attn_varlen_func(q8, k8, v8, CU_Q, CU_K, *lengths, causal=True, **descales)
        assert found.dtype is torch.bfloat16
        close(found, wanted, 4e-2)
        del descales["q_descale"]
        q = q8.float()
        wanted = flash_attn_varlen_func(q, k, v, CU_Q, CU_K, *lengths)
        close(flash_attn_varlen_func(q, k8, v8, CU_Q, CU_K, *lengths, **descales), wanted, 1e-5)


def check_cache():
    """What append has quantised is what attention reads."""
    for element in (torch.int8, F8):
        pools = [torch.zeros(12, 8, KV_HEADS, DIM).to(element) for _ in range(2)]
        cache = KVCache(*pools, *(torch.zeros(12, 8, KV_HEADS) for _ in range(2)))
        step = cache.extend({"a": 30, "b": 5})
        k, v = draw(35, KV_HEADS).bfloat16(), draw(35, KV_HEADS).bfloat16()
        cache.append(step, k, v)
        cache.fork("a", "c")
        step = cache.extend({"c": 1, "a": 1})
        cache.append(step, k[:2], v[:2])
        q = draw(2, HEADS)
        found = varlen_attn(
            q, cache.k[0], cache.v[0], step.cu_seqlens_q, None, is_causal=True, enable_gqa=True,
            block_table=step.block_table, seqused_k=step.seqused_k, k_scale=cache.k_scale[0],
            v_scale=cache.v_scale[0],
        )  # fmt: skip
        for row, request in enumerate(("c", "a")):
            exact = cache.read(request)
            assert (exact[0][:30] - k[:30]).abs().max() < (0.03 if element is torch.int8 else 0.3)
            ends = [torch.tensor([0, n], dtype=torch.int32) for n in (1, 31)]
            wanted = varlen_attn(q[row : row + 1], *exact, *ends, enable_gqa=True)
            close(found[row], wanted[0], 1e-5)


def check_traced():
    q, k, v = draw(44, HEADS), draw(213, KV_HEADS), draw(213, KV_HEADS)
    (k8, k_scale), (v8, v_scale) = quantise(k, torch.int8), quantise(v, torch.int8)

    def attend(q):
        return 2 * varlen_attn(
            q, k8, v8, CU_Q, CU_K, enable_gqa=True, k_scale=k_scale, v_scale=v_scale[0].contiguous()
        )

    wanted = attend(q)
    assert torch.equal(torch.compile(attend, backend="eager", fullgraph=True)(q), wanted)


def check_errors():
    q, k, v = draw(44, HEADS), draw(213, KV_HEADS), draw(213, KV_HEADS)
    k8, v8 = quantise(k, torch.int8)[0], quantise(v, torch.int8)[0]
    rest = CU_Q, CU_K
    heads, options = torch.ones(KV_HEADS), {"enable_gqa": True}

    def refuse(message, q=q, k=k8, v=v8, error=ValueError, call=varlen_attn, **more):
        fails(error, message, lambda: call(q, k, v, *rest, **options, **more))

    refuse("k_scale: expected shape (2,), got (3,)", k_scale=torch.ones(3))
    refuse("v_scale: expected a tensor of torch.float32 and rank 1 or 2", v_scale=heads.double())
    refuse("k_scale: expected finite numbers, got nan", k_scale=heads * float("nan"))
    refuse("expected k_scale and v_scale beside keys and values of torch.int8", k=k, v=v, k_scale=heads)
    refuse("expected k and v both of torch.int8 or torch.float8_e4m3fn", v=v)
    refuse("expected q of torch.float16, torch.bfloat16 or torch.float32", q=q.double())
    refuse(
        "expected tensors that need no gradient", q=q.requires_grad_(), error=NotImplementedError
    )
    q.requires_grad_(False)
    options = {}
    flash = {"call": flash_attn_varlen_func}
    refuse("k_descale: expected a tensor of torch.float32 and shape (4, 2)", k_descale=heads, **flash)
    refuse("v_descale: expected k and v of torch.float8_e4m3fn or torch.int8", k=k, v=v,
           v_descale=torch.ones(4, 2), **flash)  # fmt: skip
    refuse("expected q of torch.float16, torch.bfloat16 or", q=q.to(torch.uint8), k_descale=torch.rand(4, 2), **flash)
    refuse("q_descale: expected q of torch.float8_e4m3fn", q_descale=torch.ones(4, 2), **flash)
    for words, more in (("k_scale", {"enable_gqa": True}), ("v_descale", flash)):
        refuse(f"{words}: expected a torch.Tensor, got a list", error=TypeError, **{words: [1.0]}, **more)
        refuse(f"{words}: expected a dense tensor", **{words: torch.ones(4, 2).to_sparse()}, **more)


check_varlen_attn()
check_flash_attn()
check_cache()
check_traced()
settle()
# Nothing waits for a GPU to see which scales are finite.
if not ON_CUDA:
    check_errors()
