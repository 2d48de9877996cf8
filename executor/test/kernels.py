# RUN: %python %s
# REQUIRES: venv
"""Kernels in the executor: clean and right in 27 configurations, and each fault
that is put into them is found, with its report."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))

import blocks
import clusters
import numpy as np
import sm80
import sm90
from launching import check, disagree, refuse, round_bf16, widen

IN_FLIGHT = "race at LINE (nvvm.ldmatrix): read of smem while an asynchronous copy into it is in flight"
SM80_FAULTS = {
    "commit": IN_FLIGHT,
    "wait": IN_FLIGHT,
    "barrier": "uninitialised at LINE (nvvm.ldmatrix): read of smem, which has not been written",
    "operands": None,
    "transpose": None,
    "shuffle": None,
}


def sm80_kernel():
    inputs = sm80.inputs(np, round_bf16)
    expected = sm80.expected(np, **widen(inputs))
    stats = check("sm80", sm80.build(), "sm_80", inputs, expected, 1e-5)
    assert stats["matrix_phases"] > 0 and stats["matrix_conflicts"] == 0
    check("sm80, numbers only", sm80.build(), "sm_80", inputs, expected, 1e-5, sim_detector="off")
    check("sm80 on two threads", sm80.build(), "sm_80", inputs, expected, 1e-5, threads=2)
    assert list(SM80_FAULTS) == sm80.FAULTS
    for fault, report in SM80_FAULTS.items():
        text = sm80.build(fault)
        if report:
            refuse(fault, text, "sm_80", inputs, report)
        else:
            disagree(fault, text, "sm_80", inputs, expected, 1e-3)


WGMMA = "(nvvm.wgmma.mma_async)"
LOAD = "(nvvm.cp.async.bulk.tensor.shared.cluster.global)"
STORE = "(nvvm.cp.async.bulk.tensor.global.shared.cta)"
UNFENCED = f"wgmma at LINE {WGMMA}: accumulator registers were written since the last wgmma.fence"
UNAWAITED = f"race at LINE {WGMMA}: async-proxy wgmma read of smem not ordered after the write by asynchronous work"
OVERWRITTEN = f"race at LINE {LOAD}: async-proxy write of smem not ordered after the read by asynchronous work"
UNREAD = "wgmma at LINE (llvm.extractvalue): accumulator register N is read before wgmma.wait_group"
STUCK = "deadlock: no thread can run and no asynchronous work is left"
SM90_FAULTS = {
    "init fence": f"proxy at LINE {LOAD}: the async proxy uses the mbarrier at smem without fence.mbarrier_init or fence.proxy.async after its initialisation",
    "init barrier": "mbarrier at LINE (nvvm.mbarrier.arrive.expect_tx): smem is no initialised mbarrier",
    "empty": f"race at LINE {LOAD}: async-proxy write of smem not ordered after the write by asynchronous work",
    "full k": UNAWAITED,
    "full v": UNAWAITED,
    "transactions": STUCK,
    "release": STUCK,
    "early release": OVERWRITTEN,
    "fence s": UNFENCED,
    "fence o": UNFENCED,
    "wait s": UNREAD,
    "wait o": OVERWRITTEN,
    "proxy p": f"proxy at LINE {WGMMA}: async-proxy wgmma read of smem written through the generic proxy by thread N without fence.proxy.async",
    "named barrier": f"race at LINE {WGMMA}: async-proxy wgmma read of smem not ordered after the write by thread N",
    "swizzle": None,
    "stride": f"race at LINE {WGMMA}: async-proxy wgmma read of smem not ordered after the write by thread N",
    "layout v": UNAWAITED,
    "proxy out": f"proxy at LINE {STORE}: async-proxy read of smem written through the generic proxy by thread N without fence.proxy.async",
    "barrier out": f"race at LINE {STORE}: async-proxy read of smem not ordered after the write by thread N",
    "wait out": "exit-with-pending at LINE (nvvm.cp.async.bulk.commit.group): the thread exits without waiting for its bulk stores, which may still read shared memory",
}


def sm90_kernel():
    inputs = sm90.inputs(np, round_bf16)
    for groups, registers in ((1, False), (1, True), (2, False)):
        expected = sm90.expected(np, **widen(inputs), groups=groups)
        text = sm90.build(groups=groups, registers=registers)
        check(f"sm90, {groups}, {registers}", text, "sm_90a", inputs, expected, 2e-2)
    assert list(SM90_FAULTS) == sm90.FAULTS
    expected = sm90.expected(np, **widen(inputs))
    for fault, report in SM90_FAULTS.items():
        text = sm90.build(fault)
        if report:
            refuse(fault, text, "sm_90a", inputs, report)
        else:
            disagree(fault, text, "sm_90a", inputs, expected, 2e-2)


UNWRITTEN = "uninitialised at LINE (llvm.load): read of smem, which has not been written"
CLUSTER_FAULTS = {
    "first barrier": "mbarrier at LINE (nvvm.mbarrier.try_wait.parity): smem is no initialised mbarrier",
    "multicast": STUCK,
    "last barrier": UNWRITTEN,
    "wait": UNWRITTEN,
    "reduce wait": SM90_FAULTS["wait out"],
}
ATOMIC_FAULTS = {
    "barrier": UNWRITTEN,
    "bounds": "out-of-bounds at LINE (llvm.load): access of 4 bytes at smem, of 512 bytes of shared memory",
    "atomic bounds": "out-of-bounds at LINE (llvm.atomicrmw): atomic access of 4 bytes, 128 bytes after the start of a block of 128 bytes of global memory",
}
UNORDERED = "race at LINE (llvm.load): read of global memory not ordered after the write by thread N of another CTA"
CHAIN_FAULTS = {
    "acquire": UNORDERED,
    # Nothing has been written yet that another CTA has read.
    "barrier before": "race at LINE (llvm.store): write of global memory not ordered after the read by thread N of another CTA",
    "barrier behind": UNORDERED,
    "release": UNORDERED,
}


def cluster_kernel():
    inputs = clusters.inputs(np)
    expected = clusters.expected(np, **inputs)
    check("clusters", clusters.build(), "sm_90a", inputs, expected, 0)
    assert list(CLUSTER_FAULTS) == clusters.FAULTS
    for fault, report in CLUSTER_FAULTS.items():
        refuse(fault, clusters.build(fault), "sm_90a", inputs, report)


def block_kernels():
    zeros = {"sums": np.zeros(32, np.float32)}
    expected = blocks.expected_atomics(np)
    text = blocks.build_atomics()
    check("atomics", text, "sm_80", zeros, expected, 0)
    check("atomics on two threads", text, "sm_80", zeros, expected, 0, threads=2)
    for fault, report in ATOMIC_FAULTS.items():
        refuse(fault, blocks.build_atomics(fault), "sm_80", zeros, report)
    inputs = blocks.chain_inputs(np)
    text = blocks.build_chain()
    check("chain", text, "sm_80", inputs, blocks.expected_chain(np), 0, sim_co_resident=0)
    for fault, report in CHAIN_FAULTS.items():
        refuse(fault, blocks.build_chain(fault), "sm_80", inputs, report, sim_co_resident=0)
    refuse("chain, one at a time", text, "sm_80", inputs,
           "deadlock: every thread left polls memory or waits")


for test in (sm80_kernel, sm90_kernel, cluster_kernel, block_kernels):
    test()
