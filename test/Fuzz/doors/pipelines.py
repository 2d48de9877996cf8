"""Random pipelines in a stock mlir-opt with the plugin, over small functions with attention.

Passes of ours and of upstream in any order make a module that verifies, and is read again
where it is printed, or an error; never a crash. A crash of upstream's that a module without
operations of ours causes without the plugin, too, is counted, not reported. Then varlen-run
takes some passes and a way down to the llvm dialect: where that is one, the function returns
what the oracle does.
"""

import os
import pathlib
import re
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "test/Fuzz/Inputs"), str(ROOT / "python")]

# pylint: disable=wrong-import-position
import numpy as np
import pipeline_functions
import varlen

SECONDS, MEMORY = 120, 4 << 30
OURS = re.compile(r"\b(?:varlen|kernel)\.|[#!](?:varlen|kernel)\b")
# Of upstream's tests, or what prints, writes files, reads them or runs other programs; and
# what changes kernels so that they are wrong; and an attribute that upstream prints and does not
# read again, without profiles; and two that crash a stock mlir-opt without the plugin, the one on
# operations at call sites outside of an llvm.func, the other on any llvm.func.
NO_PASS = re.compile(
    r"test-|print-|view-|snapshot-|mlir-reduce|reduction-tree|opt-reduction|gpu-module-to-binary|"
    r"transform-preload|gpu-lower-to|varlen-mutate-kernels|tosa-attach-target|"
    r"ensure-debug-info-scope-on-llvm-func|xegpu-propagate-layout|xegpu-blocking"
)
# Passes that say something for such functions, in which what varlen-run runs is found.
COMMON = (
    "canonicalize", "cse", "inline", "symbol-dce", "sccp", "loop-invariant-code-motion",
    "linalg-generalize-named-ops", "linalg-fuse-elementwise-ops", "linalg-fold-unit-extent-dims",
    "one-shot-bufferize", "convert-elementwise-to-linalg", "eliminate-empty-tensors",
    "resolve-ranked-shaped-type-result-dims", "control-flow-sink", "fold-tensor-subset-ops",
    "convert-linalg-to-loops", "scf-for-loop-canonicalization", "generate-runtime-verification",
    "buffer-deallocation-pipeline", "lower-affine", "expand-strided-metadata", "remove-dead-values",
)  # fmt: skip
OPTIONS = {
    "one-shot-bufferize": (
        "bufferize-function-boundaries",
        "bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map",
    ),
    "varlen-to-cpu": ("", "target=avx2"), "varlen-lower-attn-to-cpu": ("", "target=avx2"),
    "varlen-to-nvvm": ("chip=sm_80", "chip=sm_90a"),
    "varlen-lower-attn-to-gpu": ("chip=sm_80", "chip=sm_90a"),
    "varlen-differentiate": ("function=main", "function=attend"),
    # Without one it fails, on a module without operations too, and does not say why.
    "sparse-vectorization": ("vl=4", "vl=16"),
}  # fmt: skip
# What a loop carries may be a new buffer each time.
BUFFERIZE = (
    "one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops "
    "function-boundary-type-conversion=identity-layout-map},"
    "buffer-deallocation-pipeline,convert-bufferization-to-memref"
)
HOST = (
    "convert-linalg-to-loops,convert-vector-to-scf,expand-strided-metadata,lower-affine,"
    "convert-scf-to-cf,convert-vector-to-llvm{enable-x86vector},convert-to-llvm,"
    "reconcile-unrealized-casts"
)
WAYS_DOWN = (
    "varlen-to-cpu", "varlen-to-cpu{target=avx2}", "varlen-decompose-attn,varlen-to-cpu",
    f"varlen-lower-attn-to-cpu,{BUFFERIZE},{HOST}", f"{BUFFERIZE},varlen-lower-attn-to-cpu,{HOST}",
)  # fmt: skip
ORACLE = "varlen-decompose-attn,varlen-to-cpu"
ALLOWED = {"f32": 2e-4, "bf16": 4e-2}


def is_ours(name):
    return name.startswith(("varlen-", "kernel-", "convert-varlen"))


def find_passes(session, optimizer):
    """The names of passes, and of pipelines."""
    text = session.execute([*optimizer, "--help"]).stdout
    text = text[text.index("Compiler passes to run") :]
    return [
        [
            x
            for x in re.findall(r"^ {6}--([a-z][\w-]*) +-", part, re.MULTILINE)
            if not NO_PASS.match(x)
        ]
        for part in text.split("Pass Pipelines:", 1)
    ]


def find_anchors(session, tool, names):
    """What passes run on that do not run on modules, by name."""
    # Passes on modules between them, so that each has an anchor of its own.
    flags = [flag for name in names for flag in (f"--{name}", "--symbol-dce")]
    dump = session.execute([tool, *flags, "--dump-pass-pipeline"], stdin=b"").stderr
    return {
        name: anchor for anchor, name in re.findall(r"([a-z]+\.[a-z]+)\(\s*([a-z][\w-]*)", dump)
    }


class Door:
    def __init__(self, session):
        self.session = session
        plugin = session.build / "lib" / "VarlenPlugin.so"
        self.plain = [session.llvm / "bin" / "mlir-opt"]
        self.optimizer = [*self.plain, f"--load-dialect-plugin={plugin}"]
        passes, pipelines = find_passes(session, self.optimizer)
        ours, others = ([x for x in passes if is_ours(x) == mine] for mine in (True, False))
        # A stock mlir-opt reads names of the plugin's passes in a pipeline only.
        self.anchors = find_anchors(session, session.tool("varlen-opt"), ours)
        self.anchors |= find_anchors(session, *self.plain, others)
        names, ours = passes + pipelines, ours + list(filter(is_ours, pipelines))
        if len(ours) < 50 or len(self.anchors) < 20:
            raise RuntimeError(f"mlir-opt --help: expected passes of the plugin, got {ours}")
        self.kinds = (ours, ours, COMMON, COMMON, names)

    def draw(self, rng, count):
        return [self.spell(rng, rng.choice(rng.choice(self.kinds))) for _ in range(count)]

    def spell(self, rng, name):
        options = rng.choice(OPTIONS.get(name, ("",)))
        text = f"{name}{{{options}}}" if options else name
        anchor = self.anchors.get(name, "builtin.module")
        return text if anchor == "builtin.module" else f"{anchor}({text})"

    def run(self, case):
        rng = case.rng
        function = pipeline_functions.Function(rng)
        (case.folder / "module.mlir").write_text(function.text)
        self.check_modules(case, self.draw(rng, rng.randrange(1, 9)))
        if not case.failed and rng.random() < 0.5:
            self.check_values(case, function, self.draw(rng, rng.randrange(0, 4)))

    # -- In mlir-opt -----------------------------------------------------------------

    def optimize(self, case, passes, source, output, optimizer=None):
        command = [
            *(optimizer or self.optimizer),
            source,
            f"--pass-pipeline=builtin.module({','.join(passes)})",
        ]
        return case.execute([*command, "-o", output], seconds=SECONDS, memory=MEMORY)

    def check_modules(self, case, passes):
        outcome = self.optimize(case, passes, "module.mlir", "out.mlir")
        if outcome.crash():
            self.attribute(case, passes, outcome)
            return
        self.session.note("refused" if outcome.status else "accepted")
        if not outcome.status:
            again = case.run([*self.optimizer, "out.mlir", "-o", "again.mlir"], seconds=SECONDS)
            if again.status and not case.failed:
                case.fail("what was printed is refused", again)

    def attribute(self, case, passes, together):
        """Finds the pass that crashes, and the module that it does so on."""
        source = "module.mlir"
        for number, name in enumerate(passes):
            outcome = self.optimize(case, [name], source, f"step{number}.mlir")
            if outcome.crash():
                self.report(case, name, source, outcome)
                return
            if outcome.status:
                break
            source = f"step{number}.mlir"
        case.fail(f"only together: {together.crash()}", together)

    def report(self, case, name, source, outcome):
        text = (case.folder / source).read_text()
        if not OURS.search(text):
            alone = self.optimize(case, [name], source, "alone.mlir", self.plain)
            if alone.crash():
                self.session.note("crashes of upstream's without us")
                return
        case.fail(f"{name} on {source}: {outcome.crash()}", outcome)

    # -- In varlen-run ----------------------------------------------------------------

    def execute(self, case, pipeline, output):
        command = [self.session.tool("varlen-run"), "module.mlir", "in.safetensors", "-o", output]
        command += ["--entry=main", f"--pipeline=builtin.module({pipeline})", "--threads=2"]
        return case.execute(command, seconds=SECONDS, memory=MEMORY)

    def check_values(self, case, function, passes):
        varlen.safetensors.write(case.folder / "in.safetensors", function.inputs)
        oracle = self.execute(case, ORACLE, "oracle.safetensors")
        if oracle.crash() or oracle.status:
            case.fail(oracle.crash() or "the oracle refuses the function", oracle)
            return
        outcome = self.execute(
            case, ",".join([*passes, case.rng.choice(WAYS_DOWN)]), "out.safetensors"
        )
        if outcome.crash():
            self.attribute_run(case, passes, outcome)
            return
        if outcome.status:
            self.session.note("not runnable" if passes else "not runnable as it is")
            if not passes:
                case.fail("a function is refused", outcome)
            return
        self.session.note("runs")
        wanted, got = (
            varlen.safetensors.read(case.folder / f"{name}.safetensors")
            for name in ("oracle", "out")
        )
        for name, golden in wanted.items():
            if problem := difference(got[name], golden, ALLOWED[function.element]):
                case.fail(f"{name}: {problem}", outcome)
                return

    def attribute_run(self, case, passes, outcome):
        """A crash in a pass is one of mlir-opt, where it is attributed."""
        again = self.optimize(case, passes, "module.mlir", "out.mlir") if passes else outcome
        if again.crash() and passes:
            self.attribute(case, passes, again)
        else:
            case.fail(outcome.crash(), outcome)


def difference(got, wanted, allowed):
    got, wanted = (varlen.dtypes.widen(x) for x in (got, wanted))
    if got.shape != wanted.shape:
        return f"shape {got.shape}, expected {wanted.shape}"
    finite = np.isfinite(wanted)
    if not np.array_equal(got[~finite], wanted[~finite], equal_nan=True):
        return f"{got[~finite][:4]} in place of {wanted[~finite][:4]}"
    error = abs(got[finite] - wanted[finite]).max(initial=0)
    # Not so of NaN.
    if not error <= allowed * max(1, abs(wanted[finite]).max(initial=0)):
        return f"an error of {error}"
    return ""


def run(session):
    door = Door(session)
    for case in session.cases():
        door.run(case)
