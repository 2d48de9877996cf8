"""Mutated modules through every pass and pipeline.

What is mutated are the modules of the tests, modules that are made from random
attentions, and what these become in front of each pass of the pipelines. A case is
some mutants of one module in one process, split by "// -----". If it crashes, each
mutant is run alone to find the one that did it. A mutant may be refused; whether
what is accepted is right is for other doors.
"""

import pathlib
import re
import shlex
import subprocess
import sys

import mutate

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))
from varlen import text  # pylint: disable=wrong-import-position

SECONDS = 20
MEMORY = 2 << 30
MUTANTS = 8
# Larger modules are slow, and mutants of them are much alike.
MAX_BYTES = 60_000

SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)
RUN = re.compile(r"^\s*//\s*RUN:.*?\bvarlen-opt\b([^|>]*)", re.MULTILINE)
DUMP = re.compile(r"^// -----// IR Dump Before \S+ \(([\w-]+)[^)]*\).*$", re.MULTILINE)
# Passes whose code, or whose interfaces' code, is ours.
OURS = re.compile(
    r"^ +--((?:varlen|kernel|convert-varlen|convert-nvvm-to-executor)[\w-]*) +- ",
    re.MULTILINE,
)
NO_PASS = re.compile(r"kernel-bare-ptr-calling-convention")
WITH_INTERFACES = [
    "--canonicalize",
    "--cse",
    "--inline",
    "--one-shot-bufferize=bufferize-function-boundaries",
    "--generate-runtime-verification",
    "--resolve-ranked-shaped-type-result-dims",
    "--loop-invariant-code-motion",
    "--verify-roundtrip",
    "--emit=ptx",
]
PIPELINES = ["--varlen-to-cpu=target=avx2", "--varlen-to-nvvm=chip=sm_80 format=sim"]


def read_runs(source):
    """The passes that the RUN lines of a test give to varlen-opt."""
    runs = []
    for line in RUN.findall(source.replace("\\\n//", " ").replace("\\\n", " ")):
        try:
            words = shlex.split(line)
        except ValueError:  # A quote goes on in the next line.
            continue
        passes = [
            word
            for word in words
            if word.startswith("--")
            and "%" not in word
            and not re.match(r"--(split|verify-diag|mlir-|emit-byte|allow)", word)
        ]
        if passes:
            runs.append(passes)
    return runs


def read_tests():
    """(module, passes) of the tests; without passes where a file has none."""
    seeds = []
    for path in sorted((ROOT / "test").rglob("*.mlir")):
        source = path.read_text()
        runs = read_runs(source)
        for module in SPLIT.split(source):
            module = COMMENT.sub("", module).strip()
            if module and len(module) < MAX_BYTES:
                seeds.append((module, runs))
    return seeds


def make_attention(rng):
    """A random attention, or gradient, that has code on every target."""
    heads = rng.choice([1, 2, 6])
    parameters = {
        "dtype": rng.choice(["f32", "bf16", "f16"]),
        "heads": heads,
        "kv_heads": rng.choice([n for n in (1, 2, 3, 6) if heads % n == 0]),
        "head_dim": rng.choice([8, 16, 20]),
        "v_head_dim": rng.choice([None, 8, 24]),
        "window": rng.choice([(-1, -1), (-1, 0), (3, 0), (0, 5)]),
        "alignment": rng.choice(["bottom_right", "top_left"]),
        "index": rng.choice(["i32", "i64"]),
    }
    for optional in ("sink", "seqused_q", "seqused_k", "q_offset", "same_cu"):
        parameters[optional] = rng.random() < 0.3
    return rng.choice([text.attn, text.attn_grad])(**parameters)


def make_stages(session, rng, passes, count):
    """(module, passes) of what random attentions are in front of each pass."""
    seeds = []
    for number in range(count):
        module = make_attention(rng)
        path = session.work / f"attention-{number}.mlir"
        path.write_text(module)
        seeds.append((module, [[pipeline] for pipeline in PIPELINES]))
        for pipeline in PIPELINES:
            dumps = [f"--mlir-print-ir-before={name}" for name in passes]
            # More than is kept of the output of a case.
            result = subprocess.run(
                [session.tool("varlen-opt"), path, pipeline, *dumps]
                + ["--mlir-print-ir-module-scope", "--mlir-disable-threading"]
                + ["-o", "/dev/null"],
                capture_output=True,
                check=True,
                text=True,
            )
            parts = DUMP.split(result.stderr)
            for name, dump in zip(parts[1::2], parts[2::2]):
                if len(dump) < MAX_BYTES:
                    seeds.append((dump.strip(), [[f"--{name}"]]))
    return seeds


class Door:
    """The seeds, and how a case is run."""

    def __init__(self, session, rng):
        self.session = session
        self.opt = session.tool("varlen-opt")
        help_text = session.execute([self.opt, "--help"]).stdout
        names = [n for n in OURS.findall(help_text) if not NO_PASS.search(n)]
        if len(names) < 30:
            raise RuntimeError(f"varlen-opt --help: wanted passes, got {names}")
        tests = read_tests()
        runs = {tuple(run) for _, runs in tests for run in runs}
        self.passes = [[f"--{name}"] for name in names]
        self.passes += [[word] for word in WITH_INTERFACES]
        self.passes += [list(run) for run in sorted(runs)]
        # Two thirds of the cases are from a test, one third from between two passes.
        stages = make_stages(session, rng, names, count=3)
        self.kinds = [tests, tests, stages]

    def run(self, case):
        rng = case.rng
        module, runs = rng.choice(rng.choice(self.kinds))
        if runs and rng.random() < 0.6:
            passes = rng.choice(runs)
        else:
            passes = self.passes[case.number % len(self.passes)]
        other = rng.choice(rng.choice(self.kinds))[0]
        mutants = [mutate.mutate_module(rng, module, other) for _ in range(MUTANTS)]
        path = case.folder / "all.mlir"
        path.write_text("\n// -----\n".join(mutants))
        outcome = self.execute(case, path.name, [*passes, "--split-input-file"])
        if not outcome.crash():
            accepted = MUTANTS - min(MUTANTS, outcome.stderr.count("error: "))
            self.session.note("or more accepted mutants", accepted)
            return None
        return self.attribute(case, mutants, passes, outcome)

    def execute(self, case, name, options):
        """Runs varlen-opt; a crash is not reported yet."""
        return case.execute(
            [self.opt, name, *options, "-o", "/dev/null"],
            seconds=SECONDS,
            memory=MEMORY,
        )

    def attribute(self, case, mutants, passes, together):
        """Finds the mutants that crash alone."""
        alone = False
        for number, mutant in enumerate(mutants):
            path = case.folder / f"mutant-{number}.mlir"
            path.write_text(mutant)
            outcome = self.execute(case, path.name, passes)
            if crash := outcome.crash():
                alone = True
                case.fail(f"{path}: {crash}", outcome)
            else:
                path.unlink()
        # Eight times as long may be too long for all of them.
        if not alone and not together.timed_out:
            case.fail(f"only together: {together.crash()}", together)


def run(session):
    # The same seeds for every case of a session, whatever it begins with.
    rng = mutate.make_random(f"ir {session.seed} seeds")
    door = Door(session, rng)
    for case in session.cases():
        door.run(case)
