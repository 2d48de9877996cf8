"""Times of the kernels and of their peers, one configuration after the other, so that all
see the same machine in the same state; by both timers of timing.py."""

import os
import re
import traceback

import kernels
import ours
import peers
import plan
import rehearsal
import timing
import torch

BROKEN = 7


class Broken(Exception):
    """The GPU can no longer be used by this process."""


def _time_gradients(name, shared, inputs, results):
    """The times of the gradients of a peer, from what its own forward returns."""
    with torch.set_grad_enabled(name == "flex"), timing.side_stream():
        prepared = [peers.GRADIENTS[name](shared, *x) for x in inputs]
        got = prepared[0]()
        off = max(ours.difference(a, b) for a, b in zip(got, results, strict=False))
        return timing.both_ms(prepared) | {"difference": off}


def _time_forward(name, shared, inputs, out):
    make = peers.ALL[name](shared)
    prepare = getattr(make, "prepare", lambda *x: x)
    with torch.no_grad(), timing.side_stream():
        prepared = [prepare(*x) for x in inputs]
        calls = [lambda x=x: make(*x) for x in prepared]
        off = None
        if name != "padded":
            off = ours.difference(getattr(make, "packed", lambda x: x)(calls[0]()), out)
        return timing.both_ms(calls) | {"difference": off}


def _time_peer(name, item, shared, inputs, results):
    if item.gradients:
        return _time_gradients(name, shared, inputs, results)
    return _time_forward(name, shared, inputs, results[0])


def _ratios(times, of):
    """The time of a peer over ours by timer: more than 1 where ours is less."""
    return {timer: times[timer]["ms"] / of[timer]["ms"] for timer in of}


def measure(compiler, item, names, log, wanted):
    """Times an item and the peers with these names; adds the row."""
    config, batch, shared = item.config, item.config.batch, peers.Batch(item.config)
    inputs, calls, results = ours.prepare(compiler, item, shared)
    times = timing.both_ms(calls)
    calls[0].check()
    row = {
        "set": batch.set, "batch": batch.name, "direction": "backward" if item.gradients else "forward",
        "dtype": config.dtype, "head_dim": config.head_dim, "heads": batch.heads,
        "kv_heads": batch.kv_heads, "mask": config.mask, "score": item.score,
        "sequences": len(batch.q_lengths), "tokens": batch.tokens_k, "chip": kernels.find_chip(),
        "input_sets": len(inputs), "ours": times,
        "tflops": {timer: item.flops / t["ms"] / 1e9 for timer, t in times.items()},
        "peers": {}, "ratios": {}, "refused": {},
    }  # fmt: skip
    broken = {what for label, what in log.unfinished() if label == item.label}
    for peer in names:
        if not re.search(wanted, peer):
            row["refused"][peer] = "not asked for"
        elif peer in broken:
            row["refused"][peer] = "had ended the process or left the GPU unusable before"
        elif log.left() < (40 if peer == "flex" else 4) and not rehearsal.FOLDER:
            row["refused"][peer] = "no time"
        else:
            with log.attempt(item.label, peer):
                try:
                    row["peers"][peer] = _time_peer(peer, item, shared, inputs, results[0])
                    row["ratios"][peer] = _ratios(row["peers"][peer], times)
                except peers.Refused as reason:
                    row["refused"][peer] = str(reason)
                except Exception as error:  # whatever a peer's code may throw
                    row["refused"][peer] = " ".join(f"{type(error).__name__}: {error}".split())[
                        :300
                    ]
                    if not is_usable():
                        # The attempt has no end: the next process leaves the peer out.
                        raise Broken from error
    return row


def is_usable():
    try:
        torch.cuda.synchronize()
        return True
    except RuntimeError:
        return False


def _passes():
    """(kind, item, names of peers): first all without Flex, which compiles."""
    items = list(plan.timed())
    for item in items:
        names = () if item.score else tuple(peers.wanted(item.config, item.gradients))
        yield "speed", item, names
    for item in items:
        if not item.score and peers.wants_flex(item.config):
            yield "flex", item, ("flex",)


def line(label, row):
    tflops = " ".join(f"{timer} {value:6.1f}" for timer, value in row["tflops"].items())
    ratios = " ".join(
        f"{peer} {'/'.join(f'{x:.2f}' for x in of.values())}" for peer, of in row["ratios"].items()
    )
    return f"{label:42} TFLOP/s: {tflops}  {ratios}"


def main(log, arguments):
    rehearsal.start_torch()
    if not (rehearsal.FOLDER or torch.cuda.is_available()):
        raise SystemExit("expected a GPU that PyTorch can use, got none")
    torch.manual_seed(0)
    torch.zeros(1, device=rehearsal.DEVICE)  # its context is the one that is used
    work = [
        x
        for x in _passes()
        if re.search(arguments.labels, x[1].label) and not log.done(x[0], x[1].label)
    ]
    unfinished = log.unfinished()
    compiler = ours.Compiler([item for _, item, _ in work])
    for done, (kind, item, names) in enumerate(work):
        if log.left() < 6:
            return len(work) - done
        what = f"{kind}: ours"
        if {w for label, w in unfinished if label == item.label} == {what}:
            log.add(kind, item.label, failed="our kernels had ended the process")
            continue
        try:
            with log.attempt(item.label, what), timing.side_stream():
                row = measure(compiler, item, names, log, arguments.peers)
        except kernels.Missing as reason:
            log.add(kind, item.label, refused={"ours": str(reason)})
            continue
        except Broken:
            return BROKEN
        except Exception as error:  # one configuration must not end the others
            traceback.print_exc()
            log.add(kind, item.label, failed=f"{type(error).__name__}: {error}"[:500])
            if not is_usable():
                os._exit(BROKEN)
            continue
        print(line(item.label, log.add(kind, item.label, **row)), flush=True)
        del row
        torch.cuda.empty_cache()
    return 0
