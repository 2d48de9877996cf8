"""Text and bytecode that libFuzzer makes, through the parser, the verifier and back.

Needs a build of varlen-parser-fuzzer (`make fuzz-parser`, cmake --preset fuzz). The
modules of the tests are what it begins with. What crashed is kept in a file, which
the fuzzer run with it alone shows again.
"""

import pathlib
import re
import subprocess
import sys

import tool
from doors import ir

# A case is a run of the fuzzer for at most so many seconds, of many inputs. Each
# begins with all that the corpus has, which takes minutes on a busy machine.
RUN_SECONDS = 600
INPUTS = re.compile(r"^#(\d+): cov", re.MULTILINE)
LIMITS = ["-timeout=20", "-rss_limit_mb=2048", "-max_len=8192"]


def write_seeds(session, folder):
    """The modules of the tests, as text and as bytecode."""
    folder.mkdir(exist_ok=True)
    # A build for the fuzzer has no other tool.
    builds = (session.build, ir.ROOT / "build")
    tools = [build / "bin" / "varlen-opt" for build in builds]
    opt = next(filter(pathlib.Path.exists, tools), None)
    for number, (module, _) in enumerate(ir.read_tests()):
        path = folder / f"{number}.mlir"
        path.write_text(module)
        if opt:
            tool.run(
                [opt, path, "--emit-bytecode", "-o", folder / f"{number}.mlirbc"],
                seconds=20,
            )


def report(session, fuzzer, path, number):
    outcome = tool.run([fuzzer, *LIMITS, path], seconds=60, memory=None)
    if crash := outcome.crash():
        session.fail(crash, outcome, number=number, files=path)
    elif outcome.status:
        session.fail(f"status {outcome.status}", outcome, number=number, files=path)


def run(session):
    fuzzer = session.tool("varlen-parser-fuzzer")
    if not fuzzer.exists():
        sys.exit(f"{fuzzer}: wanted a fuzzer; make fuzz-parser builds and runs it")
    corpus = session.work / "corpus"
    write_seeds(session, corpus)
    for numbers in session.batches(1):
        found = session.work / f"found-{numbers[0]}"
        found.mkdir(exist_ok=True)
        limits = [*LIMITS, f"-seed={(session.seed + numbers[0]) % 2**32 or 1}"]
        seconds = max(1, int(min(RUN_SECONDS, session.remaining())))
        limits.append(f"-max_total_time={seconds}")
        # It goes on after a crash: what is upstream's must not hide the rest.
        limits += ["-fork=1", "-ignore_crashes=1", "-ignore_timeouts=1", "-ignore_ooms=1"]
        log = session.work / "fuzzer.log"
        with log.open("w") as stderr:
            subprocess.run(
                [fuzzer, *limits, f"-artifact_prefix={found}/", corpus],
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=tool.ENVIRONMENT,
                check=False,
            )
        done = INPUTS.findall(log.read_text(errors="replace"))
        session.note("inputs", int(done[-1]) if done else 0)
        for path in sorted(found.iterdir()):
            report(session, fuzzer, path, numbers[0])
    if not session.notes.get("inputs"):
        session.fail("the time was too short for an input beside the corpus")
    session.note("in the corpus", len(list(corpus.iterdir())))
