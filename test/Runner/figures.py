# RUN: %python %s
"""The figures of a run: all there, and those that do not depend on the machine
right."""

import varlen
from varlen import reference, text

lengths, lengths_k = [5, 0, 17], [9, 2, 3]
options = {"window": (4, 0), "alignment": "top_left"}
module = text.attn(
    dtype="bf16", heads=4, kv_heads=2, head_dim=32, v_head_dim=16, **options
)
figures = {}
results = varlen.run(
    module, random=3, lengths=lengths, lengths_k=lengths_k, threads=2, repeat=4,
    peak=True, figures=figures,
)  # fmt: skip
cu_q, cu_k = [0, 5, 5, 22], [0, 9, 11, 14]
pairs = reference.visible_pairs(cu_q, cu_k, **options)
assert figures["useful_flops"] == 4 * 2 * (32 + 16) * pairs, figures
assert figures["entry"] == "attention" and figures["threads"] == 2
assert figures["input_bytes"] == 2 * (22 * 4 * 32 + 14 * 2 * 48) + 2 * 4 * 4
assert figures["output_bytes"] == 2 * 22 * 4 * 16 + 4 * 22 * 4
assert figures["output_bytes"] == sum(r.nbytes for r in results.values())
# The list of work tiles and the threads' workspaces are memory too.
assert figures["workspace_bytes"] > 0
assert figures["peak_memory_bytes"] > figures["input_bytes"]
times = figures["ms_all"]
assert len(times) == 4 and min(times) == figures["ms_min"] > 0
assert sorted(times)[1] <= figures["ms_median"] <= sorted(times)[2]
assert figures["first_result_ms"] > figures["compile_ms"] > 0
assert figures["peak_gflops"] > 0 and figures["peak_kind"]
assert figures["gflops"] > 0 and figures["fraction"] > 0

# Gradients: five products of a block instead of two.
gradients = text.attn_grad(
    dtype="bf16", heads=4, kv_heads=2, head_dim=32, v_head_dim=16, dlse=True, **options
)
varlen.run(gradients, random=3, lengths=lengths, lengths_k=lengths_k, figures=figures)
assert figures["useful_flops"] == 4 * 2 * (3 * 32 + 2 * 16) * pairs, figures

# Without --peak, and without an attention that is seen, there is no such figure.
bare = {}
varlen.run(module, random=3, lengths=[1], figures=bare)
assert bare["peak_gflops"] is None and bare["fraction"] is None
assert len(bare["ms_all"]) == 1
varlen.run("func.func @f() {\n  return\n}\n", figures=bare)
assert bare["useful_flops"] is None and bare["gflops"] is None
