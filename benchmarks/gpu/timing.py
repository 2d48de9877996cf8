"""Times of work on a GPU, by two timers that ours and peers have alike.

`sustained` replays a CUDA graph of calls on rotated inputs for 120 ms, after 40 ms of the
same: clocks are those that the GPU holds under such load. `burst` replays the graph of three
calls once after a pause of 30 ms: clocks are near the highest. What a GPU gives in a
burst is up to a tenth more than what it sustains, so times are compared within one timer.
"""

import contextlib
import statistics
import time

import rehearsal
import torch

# Calls in one graph take their inputs from as many sets as do not fit the L2
# cache three times, so that none finds its own there.
CACHES = 3
MOST_SETS = 12
# Of sustained load, in ms, and the most replays.
WARM_UP, TARGET, MOST_REPLAYS = 40.0, 120.0, 200
# Of bursts: the pause in s, how often, and the calls of one.
PAUSE, BURSTS, BURST_CALLS = 0.03, 7, 3


def sets_for(bytes_of_set):
    cache = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20)
    return min(MOST_SETS, max(2, -(-CACHES * cache // max(bytes_of_set, 1))))


def clock():
    """The clock of the multiprocessors in MHz, or None."""
    try:
        return torch.cuda.clock_rate()
    except Exception:  # no NVML, or one that refuses
        return None


def capture(calls, stream):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
        for call in calls:
            call()
    return graph.replay


def _event():
    return torch.cuda.Event(enable_timing=True)


def _row(times, mhz, count):
    return {"ms": statistics.median(times), "ms_min": min(times), "sm_mhz": mhz, "replays": count}


def _sustained(replay, calls, target):
    replay()
    begin, end = _event(), _event()
    begin.record()
    replay()
    end.record()
    torch.cuda.synchronize()
    estimate = max(begin.elapsed_time(end), 1e-3)
    count = int(max(10, min(MOST_REPLAYS, target / estimate)))
    for _ in range(int(max(3, WARM_UP / TARGET * count))):
        replay()
    events = [_event() for _ in range(count + 1)]
    events[0].record()
    for i in range(count):
        replay()
        events[i + 1].record()
    mhz = clock()  # while it works
    torch.cuda.synchronize()
    times = [a.elapsed_time(b) / calls for a, b in zip(events, events[1:])]
    return _row(times, mhz, count)


def _burst(replay, calls):
    times = []
    for _ in range(BURSTS):
        torch.cuda.synchronize()
        time.sleep(0 if rehearsal.FOLDER else PAUSE)
        begin, end = _event(), _event()
        begin.record()
        replay()
        end.record()
        mhz = clock()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / calls)
    # The first loads what the graph needs.
    return _row(times[1:], mhz, BURSTS - 1)


@contextlib.contextmanager
def side_stream():
    """A stream that can be captured, as the current one. What is to be timed is prepared in
    it, as autograd runs a backward where its forward has run."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        yield stream
        torch.cuda.synchronize()


def both_ms(calls, target=TARGET):
    """Times of one call in ms by timer. Each of `calls` has its own inputs and works on the
    current stream, which is a side stream; a call that cannot be captured is an error."""
    stream = torch.cuda.current_stream()
    for call in calls:
        call()
    torch.cuda.synchronize()
    long, short = capture(calls, stream), capture(calls[:BURST_CALLS], stream)
    # Bursts come first: clocks are high after the pause of a capture, too.
    burst = _burst(short, min(len(calls), BURST_CALLS))
    return {"burst": burst, "sustained": _sustained(long, len(calls), target)}


def turns_ms(sides, rounds=9, target=TARGET):
    """Sustained times of several lists of calls in turns: the median time of one call of
    each, and the medians of the others' ratios to the first, round by round."""
    stream = torch.cuda.current_stream()
    replays = []
    for calls in sides:
        for _ in range(2):
            for call in calls:
                call()
        torch.cuda.synchronize()
        replays.append(capture(calls, stream))
    times = [[] for _ in sides]
    for _ in range(rounds):
        for i, replay in enumerate(replays):
            times[i].append(_sustained(replay, len(sides[i]), target / 3)["ms"])
    ratios = [[t / first for t, first in zip(side, times[0])] for side in times]
    return [
        {
            "ms": statistics.median(side), "ratio": statistics.median(ratio),
            "least": min(ratio), "most": max(ratio),
        }
        for side, ratio in zip(times, ratios)
    ]  # fmt: skip


def matmul_tflops(dtype=torch.bfloat16, n=8192):
    """What the GPU reaches in a large matrix product of random numbers, by timer."""
    n = 64 if rehearsal.FOLDER else n
    with torch.no_grad(), side_stream():
        a, b = (torch.randn(n, n, device=rehearsal.DEVICE, dtype=dtype) for _ in range(2))
        times = both_ms([lambda: torch.matmul(a, b)] * 4, target=1000)
    return {timer: 2 * n**3 / row["ms"] / 1e9 for timer, row in times.items()}


def copy_tb_s(size=2 << 30):
    """Bytes read and written in a copy of device memory, TB/s."""
    size = 1 << 16 if rehearsal.FOLDER else size
    with side_stream():
        source = torch.ones(size, dtype=torch.uint8, device=rehearsal.DEVICE)
        target = torch.empty_like(source)
        times = both_ms([lambda: target.copy_(source)] * 2)
    return {timer: 2 * size / row["ms"] / 1e9 for timer, row in times.items()}
