import numpy as np
import varlen


def check(q, k, cu_seqlens, given):
    """That results and gradients of attention have the same bits with any number of
    threads, also of a sequence that they share."""
    results = []
    for threads in (1, 2, 3):
        options = given | {"num_threads": threads}
        out, lse = varlen.attn(q, k, k, cu_seqlens, return_lse=True, **options)
        results.append([out, *varlen.attn_grad(q, q, k, k, out, lse, cu_seqlens, **options)])
    for other in results[1:]:
        assert all(map(np.array_equal, results[0], other)), given["score"].name
