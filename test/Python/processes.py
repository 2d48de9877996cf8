# RUN: %python %s

"""Threads call at once; forked processes go on; importing the package is cheap."""

import os
import subprocess
import sys
import threading

import numpy as np
import varlen
from checks import cumulate, normal

rng = np.random.default_rng(0)
CU = cumulate(30, 0, 70)
CASES = []
for heads, head_dim in ((1, 16), (2, 8), (4, 16), (3, 32)):
    CASES.append([normal(rng, "f32", 100, heads, head_dim) for _ in range(3)])
failures = []


def work(index, wanted=None):
    """Many calls of all cases; what one thread does must not show in another."""
    try:
        for turn in range(20):
            case = (index + turn) % len(CASES)
            out = varlen.attn(*CASES[case], CU, num_threads=1 + index % 3)
            if wanted is not None:
                assert np.array_equal(out, wanted[case])
            try:
                varlen.attn(*CASES[case], cumulate(30, 71 + index))
            except ValueError as error:
                assert f"cu_seqlens_q[2] = {101 + index}" in str(error), error
            else:
                raise AssertionError("bad cu_seqlens were accepted")
    except BaseException as error:
        failures.append(error)


def run_threads(wanted):
    threads = [threading.Thread(target=work, args=(i, wanted)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


# The first calls, of all threads at once, compile.
run_threads(None)
wanted = [varlen.attn(*case, CU) for case in CASES]
run_threads(wanted)

# A child has no thread but one; it uses what is compiled, and compiles more.
child = os.fork()
if child == 0:
    work(0, wanted)
    q = normal(rng, "f32", 100, 5, 16)
    same = np.array_equal(varlen.attn(q, q, q, CU, num_threads=1), varlen.attn(q, q, q, CU))
    os._exit(0 if same and not failures else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
run_threads(wanted)

# The end of a process waits for what a daemon thread compiles; handlers may still compile.
EXIT = """
import atexit, sys, threading, time
from varlen import _library

def compile(n):
    x, lse = f"tensor<{n}x4x64xf32>", f"tensor<4x{n}xf32>"
    _library.compile(
        f"func.func @f(%x: {x}, %cu: tensor<3xi32>) -> {x} {{ "
        f"%out, %lse = varlen.attn %x, %x, %x, %cu, %cu : ({x}, {x}, {x}, tensor<3xi32>, "
        f"tensor<3xi32>) -> ({x}, {lse}) return %out : {x} }}"
    )
    begun.set()

def work():
    for n in range(1, 10000):
        compile(n)

begun = threading.Event()
atexit.register(compile, 10000)
threading.Thread(target=work, daemon=True).start()
assert begun.wait(100)
time.sleep(float(sys.argv[1]))
"""
for seconds in (0.01, 0.03, 0.05):
    exited = subprocess.run(
        [sys.executable, "-c", EXIT, str(seconds)], capture_output=True, text=True, timeout=100
    )
    assert exited.returncode == 0 and not exited.stderr, exited

# Nothing but the standard library is imported, and no library is loaded.
CHECK = """
import sys
before = set(sys.modules)
import varlen
new = {name.partition(".")[0] for name in set(sys.modules) - before}
assert new <= {"varlen", *sys.stdlib_module_names}, new
assert "ctypes" not in sys.modules
varlen.get_num_threads()
assert "numpy" not in sys.modules
assert set(varlen.__all__) <= set(dir(varlen))
try:
    varlen.attention
except AttributeError as error:
    assert "has no attribute 'attention'" in str(error)
"""
subprocess.run([sys.executable, "-c", CHECK], check=True)
