# RUN: %python %s

"""varlen.bench measures what it is asked for."""

import json
import subprocess
import sys

import varlen
from checks import raises

figures = varlen.bench.bench([30, 0, 50], dtype="f32", heads=2, threads=1, repeat=3)
# Two products for each pair of rows, of 64 multiply-adds and as many.
assert figures["useful_flops"] == 2 * (30**2 + 50**2) * 2 * 2 * 64
assert len(figures["ms_all"]) == 3 and 0 < figures["ms_min"] <= figures["ms_median"]
assert figures["threads"] == 1 and figures["peak_gflops"] > 0
backward = varlen.bench.bench([30, 50], lengths_k=[20, 60], heads=2, gradients=True, repeat=1)
assert backward["useful_flops"] > 0

COMMAND = [sys.executable, "-m", "varlen.bench"]


def call(*arguments):
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


status, out, err = call("--lengths", "9,4", "--heads=2", "--causal", "--repeat=2")
assert status == 0 and "GFLOP/s" in out and "of the measured peak" in out, (out, err)
status, out, err = call("--lengths", "9,4", "--heads=2", "--window", "2,0", "--repeat=2", "--json")
assert status == 0 and json.loads(out)["useful_flops"] < figures["useful_flops"], err
status, out, err = call("--lengths", "9,4", "--heads=3", "--kv-heads=2")
assert status == 1 and "multiple of kv heads" in err, err
status, out, err = call("--lengths", "9,4", "--window", "1,2,3")
assert status == 2 and "--window: expected two numbers, got 3" in err, err
raises(varlen.Error, "kv heads", varlen.bench.bench, [4], heads=3, kv_heads=2)
