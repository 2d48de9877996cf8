"""Random cu_seqlens, valid and broken, against compiled code.

Compiles Inputs/fuzz-cu-seqlens.mlir, and the gradients in Inputs/fuzz-gradients.mlir,
through the whole pipeline, links it with the runtime and Inputs/fuzz-cu-seqlens.cpp,
all under the address sanitizer, and runs the cases. With --device=sim:sm_80 the
functions become kernels for a GPU, in 16-bit types, and run in the executor, which
looks for races and checks every access itself.
"""

import pathlib
import re
import subprocess
import sys

import tool

ROOT = pathlib.Path(__file__).resolve().parents[3]
INPUTS = ROOT / "test" / "Fuzz" / "Inputs"
# In one run of the program, which takes about as long to start as 100 of them.
BATCH = {"cpu": 2000, "sim": 100}
SUMMARY = re.compile(r"^(\d+) valid and (\d+) broken cases, (\d+) failures$", re.M)


def execute(command):
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def read_functions():
    names = ("fuzz-cu-seqlens.mlir", "fuzz-gradients.mlir")
    return "\n".join((INPUTS / name).read_text() for name in names)


def compile_module(build, llvm, work):
    """The compiled functions as an object whose accesses are instrumented too."""
    lowered, text = work / "fuzz.mlir", work / "functions.mlir"
    text.write_text(read_functions())
    # To verify each pass takes as long as all passes; the door `ir` does.
    execute(
        [build / "bin" / "varlen-opt", text, "--varlen-to-cpu", "--verify-each=0", "-o", lowered]
    )
    ir = execute([llvm / "bin" / "mlir-translate", "--mlir-to-llvmir", lowered])
    # The sanitizer instruments the functions that ask for it.
    ir, functions = re.subn(
        r"^(define [^\n]*?)((?: ![^\n]*)? \{)$",
        r"\1 sanitize_address\2",
        ir,
        flags=re.MULTILINE,
    )
    if not functions:
        sys.exit(f"{lowered}: wanted functions, got none")
    (work / "fuzz.ll").write_text(ir)
    execute(
        # Every access is checked at -O0, too, which runs as fast: the passes have
        # optimized the code. -O2 takes two minutes for what it instruments.
        [llvm / "bin" / "clang", "-O0", "-march=native", "-fsanitize=address", "-c"]
        + ["-Wno-override-module", work / "fuzz.ll", "-o", work / "module.o"]
    )
    return work / "module.o"


def compile_kernels(build, llvm, work, chip):
    """The compiled functions as GPU code for the executor."""
    text = read_functions()
    # Tensors of rank 3 are inputs and results; lse and sinks stay f32.
    text = re.sub(r"(memref<\?x\d+x\d+x)f32>", r"\1bf16>", text)
    text = re.sub(r"(memref<\?x\d+x\d+x)f64>", r"\1f16>", text)
    text = text.replace("xf64>", "xf32>")
    (work / "kernels.mlir").write_text(text)
    lowered = work / "fuzz.mlir"
    execute(
        [build / "bin" / "varlen-opt", work / "kernels.mlir", "--verify-each=0", "-o", lowered]
        + [f"--varlen-to-nvvm=chip={chip} format=sim"]
    )
    ir = execute([llvm / "bin" / "mlir-translate", "--mlir-to-llvmir", lowered])
    (work / "fuzz.ll").write_text(ir)
    execute(
        [llvm / "bin" / "clang", "-O0", "-march=native", "-c"]
        + ["-Wno-override-module", work / "fuzz.ll", "-o", work / "module.o"]
    )
    return work / "module.o"


def link(session):
    """The program that runs the cases."""
    program = session.work / "fuzz"
    compiler = [session.llvm / "bin" / "clang++", "-std=c++17", "-O1", "-g"]
    compiler += ["-march=native", "-pthread", f"-I{ROOT}/include", f"-I{ROOT}/executor/include"]
    compiler += [INPUTS / "fuzz-cu-seqlens.cpp"]
    kind, _, chip = session.device.partition(":")
    if kind == "sim":
        names = ["GPUExecutor", "MGPU", "GPURuntime", "Executor", "Runtime"]
        libraries = [session.build / "lib" / f"libVarlen{name}.a" for name in names]
        compiler += ["-DFUZZ_EXECUTOR", "-fuse-ld=lld"]
        compiler += [compile_kernels(session.build, session.llvm, session.work, chip)]
        execute([*compiler, *libraries, "-ldl", "-o", program])
    else:
        compiler += ["-fsanitize=address", *(ROOT / "lib/Runtime").glob("*.cpp")]
        compiler += [compile_module(session.build, session.llvm, session.work)]
        execute([*compiler, "-o", program])
    return program


def run(session):
    program = link(session)
    base = session.seed << 32
    for numbers in session.batches(BATCH[session.device.partition(":")[0]]):
        outcome = tool.run(
            [program, len(numbers), base + numbers[0]], seconds=600, memory=None
        )
        found = SUMMARY.search(outcome.stdout)
        if found:
            session.note("valid", int(found[1]))
            session.note("broken", int(found[2]))
        for line in re.findall(r"^FAIL (.*\n.*)", outcome.stdout, re.M):
            number = int(re.search(r"seed (\d+)", line)[1]) - base
            session.fail(line, number=number)
        # A fault ends the program; it has said which case that was.
        if not found or (outcome.status and not int(found[3])):
            named = re.search(r"seed (\d+)", outcome.stderr)
            number = int(named[1]) - base if named else numbers[0]
            session.fail(outcome.crash() or "the program failed", outcome, number=number)
