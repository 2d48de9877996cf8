# RUN: %python %s %varlen-src
# REQUIRES: venv
"""A row whose fraction of the peak is above 1 is measured again, and marked if that
does not help."""

import pathlib
import sys
import types

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "benchmarks"))

import ours

config = types.SimpleNamespace(flops=100e6)


def attempts(*peaks):
    """Runs of 100 GFLOP/s on a machine whose peak seems to be each of these."""
    runs = iter(peaks)
    ours.measure = lambda *_: {"ms_median": 1.0, "peak_gflops": next(runs)}
    figures, gflops, steady = ours.measure_steadily("build", config, 3)
    assert gflops == 100 and figures["peak_gflops"] in peaks
    return figures["peak_gflops"], steady, list(runs)


assert attempts(110, 90) == (110, True, [90])
assert attempts(90, 80, 120) == (120, True, [])
assert attempts(90, 80, 70, 120) == (70, False, [120])
