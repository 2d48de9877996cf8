"""Attention and its gradients on numbers of any magnitude.

Hypothesis draws extents, lengths, windows, offsets, scales, magnitudes and sinks,
and makes what fails smaller. Results are held to golden ones, within twice the error
of plain attention in the same type or what rounding may add up to (see
Inputs/error_bounds.py); which keys a query sees is exact. Scores beyond the limits of
docs/limits.md are run, and must not show in other sequences.

A case of the runner is a round of ROUND attentions. Rounds of the corpus come first: a
failure's case.json, copied there, is tried again in every run.
"""

import os
import pathlib
import sys
import time

import hypothesis
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir

# One process each: the arrays are small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "test/Fuzz/Inputs"), str(ROOT / "python")]

# pylint: disable=wrong-import-position
import attention_case
import varlen
from attention_case import Case, Sequence

ROUND = 10
# How long a failure is made smaller.
SHRINK_SECONDS = 60

MAGNITUDES = {
    "f16": [0.0, 1e-7, 1e-4, 0.1, 1.0, 1.0, 30.0, 1e3, 3e4],
    "bf16": [0.0, 1e-40, 1e-20, 1e-4, 1.0, 1.0, 30.0, 1e3, 1e6, 1e10, 1e18],
    "f32": [0.0, 1e-40, 1e-20, 1e-4, 1.0, 1.0, 30.0, 1e3, 1e6, 1e10, 1e18],
    "f64": [0.0, 1e-310, 1e-20, 1e-4, 1.0, 1.0, 30.0, 1e3, 1e6, 1e10, 1e18],
}
# Tensor cores have f32 in three parts of bf16, whose smallest number is 2^-133.
SMALLEST_IN_PARTS = 2.0**-100
SCALES = [
    None, None, 1.0, 0.76, 0.125, 30.0, 1e-30, 1e-10, 1e-3, 1e3, 1e6, 1e10,
]  # fmt: skip
EDGES = [(1 << bits) + i for bits in (31, 32, 60, 61, 62, 63) for i in (-2, -1, 0)]
LARGEST = (1 << 63) - 1


def bounds():
    """A side of a window: open, as long as a sequence, or of any size."""
    return st.one_of(
        st.just(-1), st.just(0), st.integers(0, 80),
        st.sampled_from([edge for edge in EDGES if edge <= LARGEST]),
        st.integers(0, LARGEST),
    )  # fmt: skip


@st.composite
def lengths(draw, seqused):
    """Rows of a slot, and those in use."""
    used = draw(st.one_of(st.integers(0, 20), st.integers(0, 150)))
    return used + (draw(st.integers(0, 3)) if seqused else 0), used


@st.composite
def offsets(draw, window, index):
    """A distance that moves the diagonal a little, or as far as a bound is large so
    that the two cancel, or anywhere."""
    offset = draw(st.integers(-90, 90))
    offset += draw(st.sampled_from([0, 0, window[0], -window[1], *EDGES]))
    if draw(st.booleans()):
        offset = -offset
    limit = 1 << int(index[1:]) - 1
    return min(max(offset, -limit), limit - 1)


@st.composite
def cases(draw, device):
    # A GPU has no kernels for f64.
    dtypes = ["bf16", "f16", "f32"] + (["f64"] if device == "cpu" else [])
    dtype = draw(st.sampled_from(dtypes))
    index = draw(st.sampled_from(["i32", "i64"]))
    window = (draw(bounds()), draw(bounds()))
    seqused, q_offset = draw(st.booleans()), draw(st.booleans())
    head_dim = draw(st.sampled_from([16, 64, 8, 17, 40, 96, 128]))
    in_parts = device != "cpu" and dtype == "f32"
    magnitudes = st.sampled_from(
        [m for m in MAGNITUDES[dtype] if not in_parts or m == 0 or m >= SMALLEST_IN_PARTS]
    )
    sequences = []
    for _ in range(draw(st.integers(1, 6))):
        (q_slot, q_used), (k_slot, k_used) = draw(lengths(seqused)), draw(lengths(seqused))
        offset = draw(offsets(window, index)) if q_offset else 0
        factors = [draw(magnitudes) for _ in range(4)]
        sequences.append(Sequence(q_slot, k_slot, q_used, k_used, offset, *factors))
    sinks = [0.0, 1.5, 1e4, -1e4, 4e37, -4e37, 3.4e38, -3.4e38, -float("inf")]
    logit = st.sampled_from(sinks)
    return Case(
        dtype=dtype,
        kv_heads=draw(st.integers(1, 2)),
        group=draw(st.sampled_from([1, 2, 3])),
        head_dim=head_dim,
        v_head_dim=draw(st.sampled_from([head_dim, head_dim, 24, 64])),
        window=window,
        alignment=draw(st.sampled_from(["bottom_right", "top_left"])),
        scale=draw(st.sampled_from(SCALES)),
        sinks=draw(st.none() | st.tuples(logit, logit)),
        seqused=seqused,
        q_offset=q_offset,
        index=index,
        gradients=draw(st.booleans()),
        sequences=tuple(sequences),
        seed=draw(st.integers(0, 2**32 - 1)),
    )


class Failure(Exception):
    """What is wrong with an attention; `outcome` is that of the tool, if it failed."""

    def __init__(self, message, outcome=None):
        super().__init__(message)
        self.outcome = outcome


class Runner:
    """Runs attentions in a folder and raises a Failure for those that are wrong."""

    def __init__(self, session, folder):
        self.session, self.folder = session, folder
        # Once there is a failure: until when it is made smaller, and those so far.
        self.deadline, self.failures = None, {}

    def call(self, text, inputs):
        module, output = self.folder / "module.mlir", self.folder / "out.safetensors"
        module.write_text(text)
        varlen.safetensors.write(self.folder / "in.safetensors", inputs)
        output.unlink(missing_ok=True)
        command = [self.session.tool("varlen-run"), module.name, "in.safetensors"]
        command += ["-o", output.name, f"--device={self.session.device}", "--threads=1"]
        outcome = self.session.execute(command, cwd=self.folder, seconds=120)
        if outcome.crash() or outcome.status:
            raise Failure(outcome.crash() or "a valid attention is refused", outcome)
        return varlen.safetensors.read(output)

    def check(self, case):
        if self.deadline and time.monotonic() > self.deadline:
            if case in self.failures:
                raise self.failures[case]
            return
        self.session.note("attentions")
        self.session.note("sequences", len(case.sequences))
        try:
            problems = attention_case.judge(case, self.call)
            if problems:
                raise Failure("\n  ".join(problems[:5]))
        except Failure as failure:
            self.deadline = self.deadline or time.monotonic() + SHRINK_SECONDS
            self.failures[case] = failure
            raise


def replay(session):
    """The corpus: each file is an attention that must be right."""
    folder = session.work / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(session.corpus.glob("*.json")):
        try:
            Runner(session, folder).check(Case.from_json(path.read_text()))
        except Failure as failure:
            session.fail(f"{path}: {failure}", failure.outcome)


def run_round(session, work):
    """Draws ROUND attentions, all from the random numbers of `work`, a case of the
    runner; of those that are wrong the smallest is reported and kept."""
    runner = Runner(session, work.folder)

    @hypothesis.seed(work.rng.getrandbits(64))
    @hypothesis.settings(
        max_examples=ROUND, database=None, deadline=None, print_blob=False,
        suppress_health_check=list(hypothesis.HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    @hypothesis.given(cases(session.device))
    def check(case):
        runner.check(case)

    try:
        check()
    except Failure as failure:
        smallest = next(c for c, f in runner.failures.items() if f is failure)
        (work.folder / "case.json").write_text(smallest.to_json() + "\n")
        work.fail(f"{failure}\n  {smallest}", failure.outcome)


def run(session):
    set_hypothesis_home_dir(session.work / "hypothesis")
    if session.first == 0:
        replay(session)
    for work in session.cases():
        run_round(session, work)
