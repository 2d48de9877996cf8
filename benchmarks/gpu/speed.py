"""Times of the kernels and of their peers, one configuration after the other, so
that all see the same machine in the same state."""

import re
import traceback

import check
import functions
import peers
import plan
import timing
import torch

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
BROKEN = 7


class Broken(Exception):
    """The GPU can no longer be used by this process."""


def info(log, kit):
    properties = torch.cuda.get_device_properties(0)
    peak = timing.matmul_tflops()
    row = {
        "gpu": properties.name, "multiprocessors": properties.multi_processor_count,
        "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
        "cuda": torch.version.cuda, "chips": kit.chips, "ptxas": kit.description["ptxas"],
        "matmul_tflops": peak,
    }  # fmt: skip
    log.add(kind="info", label="speed", **row)
    print(f"{row['gpu']}, torch {row['torch']}, cuDNN {row['cudnn']}; code for {', '.join(kit.chips)}; "
          f"a product of 8192 x 8192 matrices reaches {peak:.0f} TFLOP/s", flush=True)  # fmt: skip
    return peak


def make_inputs(config, count):
    """`count` sets of q, k, v on the GPU."""
    batch, d = config.batch, config.head_dim

    def normal(rows, heads):
        return torch.randn(rows, heads, d, device="cuda", dtype=TYPES[config.dtype])

    return [
        (normal(batch.tokens_q, batch.heads), normal(batch.tokens_k, batch.kv_heads),
         normal(batch.tokens_k, batch.kv_heads))
        for _ in range(count)
    ]  # fmt: skip


def bind(runtime, function, tensors):
    bound = function.bind([(t.data_ptr(), t.shape) for t in tensors])

    # The tensors live as long as the call does.
    def call(bound=bound, tensors=tensors):
        runtime.library.varlen_gpu_set_stream(torch.cuda.current_stream().cuda_stream)
        bound()

    return call


def ours(runtime, function, config, inputs, shared):
    """Our calls on the inputs, and the buffers that the first one fills."""
    batch = config.batch
    calls, results = [], []
    for q, k, v in inputs:
        out = torch.empty_like(q)
        lse = torch.empty(batch.heads, batch.tokens_q, device="cuda")
        tensors = (q, k, v, shared.cu_q, shared.cu_k, out, lse)
        calls.append(bind(runtime, function, tensors))
        results.append((out, lse))
    return calls, results


def our_gradients(runtime, function, inputs, forward, shared):
    """The same for (dout, q, k, v) and what the forward has made of them."""
    calls, results = [], []
    for (dout, q, k, v), (out, lse) in zip(inputs, forward):
        gradients = tuple(torch.empty_like(x) for x in (q, k, v))
        tensors = (dout, q, k, v, out, lse, shared.cu_q, shared.cu_k, *gradients)
        calls.append(bind(runtime, function, tensors))
        results.append(gradients)
    return calls, results


def difference(a, b):
    a, b = a.float(), b.float()
    return float((a - b).norm() / b.norm().clamp(min=1e-20))


def time_gradients(name, shared, inputs, ours):
    """The same for the gradients of a peer, from what its own forward returns."""
    prepared = [peers.GRADIENTS[name](shared, *x) for x in inputs]
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        off = max(difference(a, b) for a, b in zip(prepared[0](), ours))
    ms, least, how = timing.median_ms(prepared, stream)
    return {"ms": ms, "ms_min": least, "how": how, "difference": off}


def time_peer(name, shared, inputs, out):
    """The row of a peer."""
    make = peers.ALL[name](shared)
    prepare = getattr(make, "prepare", lambda *x: x)
    prepared = [prepare(*x) for x in inputs]
    calls = [lambda x=x: make(*x) for x in prepared]
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        result = calls[0]()
        if name != "padded":
            result = getattr(make, "packed", lambda x: x)(result)
            off = difference(result, out)
        else:
            off = None
        del result
    ms, least, how = timing.median_ms(calls, stream)
    return {"ms": ms, "ms_min": least, "how": how, "difference": off}


def enqueue(runtime, calls):
    """Runs calls once, on a stream that is returned."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
        runtime.raise_error()
        runtime.check(stream.cuda_stream)
    return stream


def measure(runtime, kit, item, log, peak):
    config = item.config
    try:
        name, chip, kernels = kit.find(plan.timed_text(item))
        forward, forward_chip, _ = kit.find(plan.timed_text(item.forward))
    except check.Missing as reason:
        log.add(kind="skipped", label=item.label, why=str(reason))
        return None
    batch, shared = config.batch, peers.Batch(config)
    one = 2 * config.head_dim * (
        2 * batch.tokens_q * batch.heads + 2 * batch.tokens_k * batch.kv_heads
    )
    if item.gradients:  # q, dout, out and dq; k, v, dk and dv
        one *= 2
    inputs = make_inputs(config, timing.sets_for(one))
    function = kit.load(forward, forward_chip)
    calls, results = ours(runtime, function, config, inputs, shared)
    if item.gradients:
        enqueue(runtime, calls)
        inputs = [(torch.randn_like(out), *x) for x, (out, _) in zip(inputs, results)]
        function = kit.load(name, chip)
        calls, results = our_gradients(runtime, function, inputs, results, shared)
    stream = enqueue(runtime, calls[:1])
    ms, least, how = timing.median_ms(calls, stream)
    runtime.raise_error()
    tflops = item.flops / ms / 1e9
    row = {
        "set": batch.set, "batch": batch.name, "direction": "backward" if item.gradients else "forward",
        "dtype": config.dtype, "head_dim": config.head_dim, "heads": batch.heads,
        "kv_heads": batch.kv_heads, "mask": config.mask,
        "sequences": len(batch.q_lengths), "tokens": batch.tokens_k,
        "ms": ms, "ms_min": least, "how": how, "input_sets": len(inputs),
        "tflops": tflops, "peak_tflops": peak, "fraction": tflops / peak,
        "chip": chip, "kernels": kernels, "peers": {}, "refused": {},
    }  # fmt: skip
    broken = log.broken()
    for peer in peers.GRADIENTS if item.gradients else peers.wanted(config):
        if peer in broken:
            row["refused"][peer] = "had left the GPU unusable before"
        elif log.left() < (40 if peer == "flex" else 5):
            row["refused"][peer] = "no time"
        else:
            try:
                if item.gradients:
                    row["peers"][peer] = time_gradients(peer, shared, inputs, results[0])
                else:
                    row["peers"][peer] = time_peer(peer, shared, inputs, results[0][0])
            except peers.Refused as reason:
                row["refused"][peer] = str(reason)
            except Exception as error:  # whatever a peer's code may throw
                row["refused"][peer] = f"{type(error).__name__}: {error}"[:300]
                try:
                    torch.cuda.synchronize()
                except RuntimeError:
                    log.add(kind="broken", label=item.label, what=peer)
                    raise Broken from error
    if row["peers"]:
        best = min(row["peers"], key=lambda p: row["peers"][p]["ms"])
        row["peer"], row["peer_ms"] = best, row["peers"][best]["ms"]
        row["ratio"] = row["peer_ms"] / ms
    log.add(kind="speed", label=item.label, **row)
    return row


def line(label, row):
    fa2 = row["peers"].get("fa2", {}).get("ms")
    texts = [f"{label:42}", f"{row['ms']:8.4f} ms", f"{row['tflops']:6.1f} TF",
             f"{row['fraction']:6.1%}"]  # fmt: skip
    if "ratio" in row:
        texts.append(f"{row['peer']:>12} {row['peer_ms']:8.4f} ms {row['ratio']:5.2f}x")
    if fa2:
        texts.append(f"fa2 {fa2 / row['ms']:5.2f}x")
    if row["how"] != "graph":
        texts.append(row["how"])
    return "  ".join(texts)


def main(folder, log, only):
    if not torch.cuda.is_available():
        print("speed: no GPU that PyTorch could use: nothing is timed")
        log.add(kind="info", label="speed", problem="no GPU that PyTorch could use")
        return 1
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")  # its context is the one that is used
    runtime = functions.Runtime(folder)
    kit = check.Kit(folder, runtime)
    peak = info(log, kit)
    status = 0
    for item in plan.timed():
        if not re.search(only, item.label) or log.done("speed", item.label):
            continue
        if log.left() < 8:
            log.add(kind="skipped", label=item.label, why="no time")
            continue
        try:
            row = measure(runtime, kit, item, log, peak)
        except Broken:
            return BROKEN
        except Exception as error:  # one configuration must not end the others
            traceback.print_exc()
            log.add(kind="failed", label=item.label, why=str(error)[:500])
            status = 1
            continue
        if row:
            print(line(item.label, row), flush=True)
        torch.cuda.empty_cache()
    return status
