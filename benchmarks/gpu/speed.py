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
import varlen

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


def make_captures(item):
    """The captures of a score: those that have a number for each head, like slopes."""
    extents = {"heads": item.config.batch.heads}
    return [
        0.1 * torch.rand(*(extents[name] for name in varlen.scores.CAPTURES[of]), device="cuda")
        for of in item.captures.values()
    ]  # fmt: skip


def ours(runtime, function, config, inputs, shared, captures):
    """Our calls on the inputs, and the buffers that the first one fills."""
    batch = config.batch
    calls, results = [], []
    for q, k, v in inputs:
        out = torch.empty_like(q)
        lse = torch.empty(batch.heads, batch.tokens_q, device="cuda")
        tensors = (q, k, v, shared.cu_q, shared.cu_k, *captures, out, lse)
        calls.append(bind(runtime, function, tensors))
        results.append((out, lse))
    return calls, results


def our_gradients(runtime, function, inputs, forward, shared, captures):
    """The same for (dout, q, k, v) and what the forward has made of them."""
    calls, results = [], []
    for (dout, q, k, v), (out, lse) in zip(inputs, forward):
        gradients = tuple(torch.empty_like(x) for x in (q, k, v, *captures))
        tensors = (
            dout, q, k, v, out, lse, shared.cu_q, shared.cu_k, *captures, *gradients,
        )  # fmt: skip
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
    measure = (
        timing.kernels_ms if getattr(make, "only_kernels", False) else timing.median_ms
    )
    ms, least, how = measure(calls, stream)
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


def prepare(runtime, kit, item, shared):
    """What there is of an item: its kernels, the chip they are for, inputs, calls, and
    the buffers that these fill."""
    config, batch = item.config, item.config.batch
    name, chip, kernels = kit.find(plan.timed_text(item))
    forward, forward_chip, _ = kit.find(plan.timed_text(item.forward))
    one = 2 * config.head_dim * (
        2 * batch.tokens_q * batch.heads + 2 * batch.tokens_k * batch.kv_heads
    )
    if item.gradients:  # q, dout, out and dq; k, v, dk and dv
        one *= 2
    inputs, captures = make_inputs(config, timing.sets_for(one)), make_captures(item)
    function = kit.load(forward, forward_chip) if item.gradients else kit.load(name, chip)
    calls, results = ours(runtime, function, config, inputs, shared, captures)
    if item.gradients:
        enqueue(runtime, calls)
        inputs = [(torch.randn_like(out), *x) for x, (out, _) in zip(inputs, results)]
        function = kit.load(name, chip)
        calls, results = our_gradients(runtime, function, inputs, results, shared, captures)
    return kernels, chip, inputs, calls, results


def measure(runtime, kit, item, log, peak, wanted):
    config, batch, shared = item.config, item.config.batch, peers.Batch(item.config)
    try:
        kernels, chip, inputs, calls, results = prepare(runtime, kit, item, shared)
    except check.Missing as reason:
        log.add(kind="skipped", label=item.label, why=str(reason))
        return None
    stream = enqueue(runtime, calls[:1])
    ms, least, how = timing.median_ms(calls, stream)
    runtime.raise_error()
    tflops = item.flops / ms / 1e9
    row = {
        "set": batch.set, "batch": batch.name, "direction": "backward" if item.gradients else "forward",
        "dtype": config.dtype, "head_dim": config.head_dim, "heads": batch.heads,
        "kv_heads": batch.kv_heads, "mask": config.mask, "score": item.score,
        "sequences": len(batch.q_lengths), "tokens": batch.tokens_k,
        "ms": ms, "ms_min": least, "how": how, "input_sets": len(inputs),
        "tflops": tflops, "peak_tflops": peak, "fraction": tflops / peak,
        "chip": chip, "kernels": kernels, "peers": {}, "refused": {},
    }  # fmt: skip
    broken = {what for _, what in log.unfinished()}
    for peer in peers_of(item):
        if not re.search(wanted, peer):
            row["refused"][peer] = "not asked for"
        elif peer in broken:
            row["refused"][peer] = "had ended the process or left the GPU unusable before"
        elif log.left() < (40 if peer == "flex" else 5):
            row["refused"][peer] = "no time"
        else:
            with log.attempt(item.label, peer):
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
                        raise Broken from error
    if row["peers"]:
        best = min(row["peers"], key=lambda p: row["peers"][p]["ms"])
        row["peer"], row["peer_ms"] = best, row["peers"][best]["ms"]
        row["ratio"] = row["peer_ms"] / ms
    log.add(kind="speed", label=item.label, **row)
    return row


def peers_of(item):
    if item.score:
        return ()
    return peers.GRADIENTS if item.gradients else peers.wanted(item.config)


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


def tune(runtime, kit, items, log):
    """Times schedules beside those of the table. What they compute is that of the
    table's but for the order of sums."""
    first = None  # (ms, results) of the item as the table has it
    for item in items:
        if log.left() < 5:
            log.add(kind="skipped", label=item.label, why="no time")
            continue
        torch.manual_seed(0)
        try:
            kernels, chip, _, calls, results = prepare(
                runtime, kit, item, peers.Batch(item.config)
            )
            stream = enqueue(runtime, calls)
            torch.cuda.synchronize()
            ms, least, how = timing.median_ms(calls, stream, target_ms=40.0)
            runtime.raise_error()
        except check.Missing as reason:
            log.add(kind="skipped", label=item.label, why=str(reason))
            continue
        except functions.Error as error:
            log.add(kind="skipped", label=item.label, why=str(error))
            print(f"{item.label:64} {error}", flush=True)
            continue
        if not item.schedule:
            first = ms, results[0]
        off = max(difference(a, b) for a, b in zip(results[0], first[1]))
        log.add(kind="tune", label=item.label, ms=ms, ms_min=least, how=how, chip=chip,
                kernels=kernels, of_table=first[0] / ms, difference=off)  # fmt: skip
        registers = "/".join(str(kernel["registers"]) for kernel in kernels if not re.search("_tiles", kernel["name"]))
        print(f"{item.label:64} {ms:8.4f} ms  {first[0] / ms:5.3f}  {registers}  off {off:.1e}", flush=True)
        del calls, results
        torch.cuda.empty_cache()
    return 0


def main(folder, log, only, wanted, tuning):
    if not torch.cuda.is_available():
        print("speed: no GPU that PyTorch could use: nothing is timed")
        log.add(kind="info", label="speed", problem="no GPU that PyTorch could use")
        return 1
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")  # its context is the one that is used
    runtime = functions.Runtime(folder)
    kit = check.Kit(folder, runtime)
    peak = info(log, kit)
    if tuning:
        items = [item for item in plan.tuned(kit.chips) if re.search(only, item.label)]
        return tune(runtime, kit, items, log)
    status = 0
    for item in plan.timed():
        if not re.search(only, item.label) or log.done("speed", item.label):
            continue
        if log.left() < 8:
            log.add(kind="skipped", label=item.label, why="no time")
            continue
        try:
            row = measure(runtime, kit, item, log, peak, wanted)
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
