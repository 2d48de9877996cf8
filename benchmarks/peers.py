"""PyTorch's ways to run a packed batch on a CPU, each prepared at its best.

Whatever a framework user would do once per batch and not once per layer (cut the
packed tensors into sequences, pad, build masks, compile) is prepared outside the
measured function, and the layout is the one the kernel likes best: that is in the
peer's favour.
"""

import statistics
import time

import torch
import torch.nn.functional as functional

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


class Inputs:
    """Packed random q, k, v of a configuration, rows x heads x head_dim."""

    def __init__(self, config, seed=0):
        generator = torch.Generator().manual_seed(seed)
        batch, d = config.batch, config.head_dim

        def normal(rows, heads):
            values = torch.randn(rows, heads, d, generator=generator)
            return values.to(DTYPES[config.dtype])

        self.q = normal(batch.tokens_q, batch.heads)
        self.k = normal(batch.tokens_k, batch.kv_heads)
        self.v = normal(batch.tokens_k, batch.kv_heads)


def _visible(config, q_length, k_length):
    """The mask of one sequence as a bool tensor; None if every pair is visible."""
    left, right = config.window
    if left < 0 and right < 0:
        return None
    q = torch.arange(q_length)[:, None] + (k_length - q_length)
    k = torch.arange(k_length)[None, :]
    mask = torch.ones(q_length, k_length, dtype=torch.bool)
    if left >= 0:
        mask &= k >= q - left
    if right >= 0:
        mask &= k <= q + right
    return mask


def sequences_of(packed, lengths):
    """Views 1 x heads x length x head_dim of the non-empty sequences' rows."""
    rows = 0
    for length in lengths:
        if length:
            yield packed[rows : rows + length].transpose(0, 1)[None]
        rows += length


def sdpa_per_sequence(config, inputs, contiguous):
    """scaled_dot_product_attention, one call per sequence."""
    batch = config.batch
    gqa = batch.heads != batch.kv_heads
    left, right = config.window
    masks = {}
    calls = []
    q, k, v = (
        list(sequences_of(packed, lengths))
        for packed, lengths in (
            (inputs.q, batch.q_lengths),
            (inputs.k, batch.k_lengths),
            (inputs.v, batch.k_lengths),
        )
    )
    if contiguous:
        q, k, v = ([t.contiguous() for t in ts] for ts in (q, k, v))
    for one_q, one_k, one_v in zip(q, k, v):
        lengths = (one_q.shape[2], one_k.shape[2])
        # is_causal skips what a mask tensor would only hide, so it is used
        # wherever it means the same, which is where the window does not bind; a
        # mask is shared by all sequences of equal lengths.
        binds = 0 <= left < lengths[1] - 1
        causal = right == 0 and not binds and lengths[0] == lengths[1]
        if not causal and lengths not in masks:
            masks[lengths] = _visible(config, *lengths)
        mask = None if causal else masks[lengths]
        calls.append((one_q, one_k, one_v, mask, causal))

    def attend(one_q, one_k, one_v, mask, causal):
        return functional.scaled_dot_product_attention(
            one_q, one_k, one_v, mask, is_causal=causal, enable_gqa=gqa
        )

    def run(requires_grad=False):
        if not requires_grad:
            return [attend(*call) for call in calls]
        results = []
        for *tensors, mask, causal in calls:
            leaves = [t.detach().requires_grad_() for t in tensors]
            results.append((attend(*leaves, mask, causal), leaves))
        return results

    return run


def sdpa_backward(config, inputs):
    """The backward of scaled_dot_product_attention, one call per sequence, from
    the results of a forward that is not measured."""
    forward = sdpa_per_sequence(config, inputs, contiguous=True)
    calls = [
        (out, leaves, torch.randn_like(out))
        for out, leaves in forward(requires_grad=True)
    ]

    def run():
        return [
            torch.autograd.grad(out, leaves, dout, retain_graph=True)
            for out, leaves, dout in calls
        ]

    return run


def sdpa_grouped(config, inputs):
    """For one query per sequence: the heads that share a kv head as rows of it."""
    batch = config.batch
    group = batch.heads // batch.kv_heads
    if set(batch.q_lengths) != {1} or config.mask != "full":
        raise ValueError("wanted one query per sequence and no mask")
    calls = [
        (
            inputs.q[i].view(1, batch.kv_heads, group, config.head_dim),
            k.contiguous(),
            v.contiguous(),
        )
        for i, (k, v) in enumerate(
            zip(
                sequences_of(inputs.k, batch.k_lengths),
                sequences_of(inputs.v, batch.k_lengths),
            )
        )
    ]

    def run():
        return [functional.scaled_dot_product_attention(*call) for call in calls]

    return run


def sdpa_padded(config, inputs):
    """scaled_dot_product_attention, one call, padded to the longest sequence."""
    batch = config.batch
    present = [(q, k) for q, k in zip(batch.q_lengths, batch.k_lengths) if q]
    longest_q = max(q for q, _ in present)
    longest_k = max(k for _, k in present)

    def pad(packed, lengths, longest):
        sequences = list(sequences_of(packed, lengths))
        shape = (len(sequences), packed.shape[1], longest, packed.shape[2])
        padded = torch.zeros(shape, dtype=packed.dtype)
        for i, sequence in enumerate(sequences):
            padded[i, :, : sequence.shape[2]] = sequence[0]
        return padded

    q = pad(inputs.q, batch.q_lengths, longest_q)
    k = pad(inputs.k, batch.k_lengths, longest_k)
    v = pad(inputs.v, batch.k_lengths, longest_k)
    mask = torch.zeros(len(present), 1, longest_q, longest_k, dtype=torch.bool)
    for i, (q_length, k_length) in enumerate(present):
        visible = _visible(config, q_length, k_length)
        mask[i, 0, :q_length, :k_length] = True if visible is None else visible
    gqa = batch.heads != batch.kv_heads
    return lambda: functional.scaled_dot_product_attention(
        q, k, v, mask, enable_gqa=gqa
    )


def flex_attention(config, inputs):
    """Compiled FlexAttention on the packed tensors, with a document mask."""
    from torch.nn.attention import flex_attention as flex

    batch = config.batch

    def documents(lengths):
        return torch.repeat_interleave(
            torch.arange(len(lengths)), torch.tensor(lengths)
        )

    q_document = documents(batch.q_lengths)
    k_document = documents(batch.k_lengths)
    left, right = config.window
    if batch.q_lengths != batch.k_lengths and (left >= 0 or right >= 0):
        raise ValueError("wanted equal lengths of queries and keys under a window")

    # Queries and keys of a sequence have the same packed positions here, so
    # packed positions are as good as positions inside the sequence.
    def visible(_b, _h, q, k):
        same = q_document[q] == k_document[k]
        if left >= 0:
            same = same & (k >= q - left)
        if right >= 0:
            same = same & (k <= q + right)
        return same

    block_mask = flex.create_block_mask(
        visible, None, None, batch.tokens_q, batch.tokens_k, device="cpu"
    )
    q, k, v = (
        t.transpose(0, 1)[None].contiguous() for t in (inputs.q, inputs.k, inputs.v)
    )
    torch._dynamo.reset()
    compiled = torch.compile(flex.flex_attention, dynamic=False)
    gqa = batch.heads != batch.kv_heads
    return lambda: compiled(q, k, v, block_mask=block_mask, enable_gqa=gqa)


def measure_reading(threads, bytes=2**28):
    """GB/s that the threads read of an array that no cache has."""
    torch.set_num_threads(threads)
    array = torch.zeros(bytes // 4)
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        array.sum()
        times.append(time.perf_counter() - begin)
    return bytes / statistics.median(times) / 1e9


def measure(run, threads, repeat=3, least_seconds=0.4):
    """Median milliseconds of a call, after a call that does not count."""
    torch.set_num_threads(threads)
    # Autograd works inside of it on what was recorded outside.
    with torch.no_grad():
        run()
        times = []
        begin = time.perf_counter()
        while len(times) < repeat or time.perf_counter() - begin < least_seconds:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)
