"""The queue: what is done on a GPU, the most valuable part first."""

import dataclasses
import importlib


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    module: str  # whose `main(log, arguments)` returns how many labels are left
    seconds: float  # the most it takes of one call
    stall: float  # a part that writes no row for so long hangs, and is started again
    what: str

    def run(self, log, arguments):
        return importlib.import_module(self.module).main(log, arguments)


PARTS = [
    Part("machine", "machine", 25, 60, "what the GPU and its software are, and their peaks"),
    Part("check", "check", 120, 100, "results of every family of kernels, against f64"),
    Part("torch", "suite_torch", 75, 120, "the tests of varlen.torch on CUDA"),
    Part("jax", "suite_jax", 60, 120, "the tests of varlen.jax on CUDA"),
    Part("speed", "speed", 150, 70, "times beside peers"),
    Part("sanitize", "sanitize", 60, 120, "memcheck, racecheck and initcheck of kernels"),
    Part("programs", "programs", 30, 60, "programs in C that launch kernels"),
    Part("training", "training", 120, 150, "a model's training, by each way to attend"),
    Part("experiments", "experiments", 60, 60, "pairs of ways in turns, with predictions"),
    Part("counters", "counters", 45, 90, "ncu's counters of kernels, with predictions"),
]
# Beside the queue, when they are asked for.
OTHERS = [Part("tune", "tune", 480, 60, "all candidates of schedules.py beside the table")]


def find(names):
    """Parts by name, in the queue's order; without names the whole queue."""
    if not names:
        return PARTS
    known = {part.name: part for part in (*PARTS, *OTHERS)}
    if unknown := sorted(set(names) - set(known)):
        raise SystemExit(f"expected parts of {', '.join(known)}, got {', '.join(unknown)}")
    return [part for part in known.values() if part.name in names]
