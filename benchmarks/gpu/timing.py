"""Times of work on a GPU: CUDA graphs over rotated inputs, medians."""

import statistics

import torch

# Calls in one graph take their inputs from as many sets as do not fit the L2
# cache three times, so that none finds its own there.
CACHES = 3
MOST_SETS = 12


def sets_for(bytes_of_set):
    cache = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20)
    return min(MOST_SETS, max(2, -(-CACHES * cache // max(bytes_of_set, 1))))


def _capture(calls, stream):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
        for call in calls:
            call()
    return graph.replay


def kernels_ms(calls, stream, rounds=4):
    """(median, least) time of one call in ms whose host code takes longer than its
    kernels, and how it was measured: the sum of the kernels' times, without what is
    between them."""
    calls = calls[:3]  # more only take longer: what is between them empties no cache
    activities = [torch.profiler.ProfilerActivity.CUDA]
    times = []
    with torch.cuda.stream(stream):
        for round in range(rounds + 1):
            torch.cuda.synchronize()
            with torch.profiler.profile(activities=activities) as profile:
                for call in calls:
                    call()
                torch.cuda.synchronize()
            of_kernels = sum(event.device_time_total for event in profile.key_averages())
            if round > 0:
                times.append(of_kernels / 1e3 / len(calls))
    return statistics.median(times), min(times), "kernels"


def median_ms(calls, stream, target_ms=120.0, most=200):
    """(median, least) time of one call in ms, and how it was measured. Each of
    `calls` has its own inputs and works on the current stream."""

    def run():
        for call in calls:
            call()

    with torch.cuda.stream(stream):
        for _ in range(2):
            run()
        torch.cuda.synchronize()
        how = "graph"
        try:
            run = _capture(calls, stream)
        except RuntimeError as error:
            how = "no graph: " + str(error).split("\n")[0][:100]
            torch.cuda.synchronize()

        def event():
            return torch.cuda.Event(enable_timing=True)

        run()
        begin, end = event(), event()
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        estimate = max(begin.elapsed_time(end), 1e-3)
        count = int(max(10, min(most, target_ms / estimate)))
        # Clocks rise with load: the first milliseconds are slower by up to a fifth.
        for _ in range(count // 3):
            run()
        events = [event() for _ in range(count + 1)]
        events[0].record()
        for i in range(count):
            run()
            events[i + 1].record()
        torch.cuda.synchronize()
    times = [a.elapsed_time(b) / len(calls) for a, b in zip(events, events[1:])]
    return statistics.median(times), min(times), how


def matmul_tflops(dtype=torch.bfloat16, n=8192):
    """What the GPU reaches in a large matrix product of random numbers."""
    stream = torch.cuda.Stream()
    with torch.no_grad():
        a, b = (torch.randn(n, n, device="cuda", dtype=dtype) for _ in range(2))
        ms, _, _ = median_ms([lambda: torch.matmul(a, b)] * 4, stream, target_ms=300)
    return 2 * n**3 / ms / 1e9
