"""Runs a tool under limits and says whether it crashed, and in whose code."""

import itertools
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import threading
import time

# What only a crash prints, on stderr. LLVM's tools end so where they cannot write,
# too, which is no crash.
CRASH = re.compile(
    r"ERROR: (?:AddressSanitizer|LeakSanitizer|libFuzzer): [^\n]*|[^\n]*: runtime error: [^\n]*|"
    r"PLEASE submit a bug report|[^\n]*Assertion [^\n]* failed[^\n]*|"
    r"LLVM ERROR: (?!IO failure on output stream)[^\n]*|terminate called[^\n]*|"
    r"free\(\): [^\n]*|malloc\(\): [^\n]*"
)
# "#3 0x1 in f(int) file.cpp:1", "#3 0x1 f(int) (/lib/libx.so+0x1)" and, where there
# is no symbol, "#3 0x1 (/lib/libx.so+0x1)".
FRAME = re.compile(r"^ *#\d+ 0x[0-9a-f]+ (?:in )?(.*)$", re.MULTILINE)
# Frames of every crash, whatever caused it.
NEUTRAL = re.compile(
    r"PrintStackTrace|SignalHandler|RunSignalHandlers|CrashHandler|libc\.so|"
    r"linux-vdso|fuzzer::|__asan|__ubsan|__sanitizer|__lsan|__interceptor|asan_|libclang_rt|"
    r"report_fatal_error|report_bad_alloc|llvm_unreachable|libstdc\+\+|"
    r"^(?:abort|raise|malloc|calloc|realloc|free|mem\w+|operator new|operator delete|"
    r"\w*pthread_kill\w*)\b"
)
UPSTREAM = re.compile(r"lib(?:MLIR|LLVM)\.so")
# What varlen-run says of its progress when the machine is slow.
PROGRESS = re.compile(r"^[a-z][\w ,%]*, \d+ s\n", re.MULTILINE)
# Of output that is kept and shown.
MAX_OUTPUT = 1 << 20
MAX_SHOWN = 4000
# Seconds that a tool has to print where it was stopped.
SYMBOLISING = 30
# How much longer a tool with sanitizers in it may take.
SANITIZED_SLOWDOWN = 4
# What a tool has of the limit on its time: threads' CPU time, and time on the clock.
CPU_SHARE, CLOCK_SHARE = 2, 10

ENVIRONMENT = dict(
    os.environ,
    # Without a symboliser the frames of a crash cannot be told apart.
    LLVM_SYMBOLIZER_PATH="/usr/lib/llvm-22/bin/llvm-symbolizer",
    ASAN_SYMBOLIZER_PATH="/usr/lib/llvm-22/bin/llvm-symbolizer",
    # An allocation that is refused is the tool's to report.
    # What our code poisons by inline functions of LLVM the library does not know.
    ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=0:allow_user_poisoning=0",
    UBSAN_OPTIONS="print_stacktrace=1",
)


class Outcome:
    """What came of a command."""

    def __init__(self, command, status, stdout, stderr, seconds, timed_out):
        self.command = [str(part) for part in command]
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.seconds = seconds
        self.timed_out = timed_out

    def crash(self):
        """What is wrong however the input is, or None."""
        if self.timed_out:
            return f"has not ended after {self.seconds:.0f} s"
        if found := CRASH.search(self.stderr):
            return found[0].strip()
        if self.status < 0:
            return f"ended by {signal.Signals(-self.status).name}"
        if self.status and not self.message().strip():
            return f"status {self.status} without a message"
        return None

    def message(self):
        """What it says on stderr, without how far it has come."""
        return PROGRESS.sub("", self.stderr)

    def frames(self):
        return [
            frame for frame in FRAME.findall(self.stderr) if not NEUTRAL.search(frame)
        ]

    def find_known_crash(self, known):
        """The entry of known-crashes.json that this is, if it is one. Only frames
        of upstream's libraries that are above all of ours count: which function
        crashed is often too general to tell."""
        if not self.crash():
            return None
        frames = list(itertools.takewhile(UPSTREAM.search, self.frames()))
        return next(
            (
                entry
                for entry in known
                if any(re.search(entry["frame"], frame) for frame in frames)
            ),
            None,
        )

    def excerpt(self):
        text = self.stderr.strip()
        if len(text) > MAX_SHOWN:
            text = f"{text[:MAX_SHOWN // 2]}\n[...]\n{text[-MAX_SHOWN // 2:]}"
        return "\n".join(f"  | {line}" for line in text.splitlines())

    def __str__(self):
        return shlex.join(self.command)


def is_sanitized(build):
    """Whether the tools of a build have sanitizers in them."""
    return "VARLEN_SANITIZE:STRING=a" in (build / "CMakeCache.txt").read_text()


def read_known_crashes(path):
    """A list of {"name", "frame", "issue"}: what to call the crash, a regular
    expression for a frame of upstream's that tells it from others, and upstream's
    issue or what happens there."""
    entries = json.loads(path.read_text())
    for entry in entries:
        if entry.keys() != {"name", "frame", "issue"}:
            raise ValueError(f"{path}: expected name, frame and issue, got {entry}")
    return entries


def run(
    command,
    *,
    cwd=None,
    stdin=None,
    seconds=60,
    memory=8 << 30,
    sanitized=False,
    **options,
):
    """Runs a command in a process group of its own, within `seconds` of CPU time on each of
    two cores, and ten times as long on the clock: the machine may be busy. `stdin` is bytes,
    `memory` the address space that it may have (None: any), or what it may use where it is
    `sanitized`: sanitizers reserve more than there is. `options` go to subprocess.Popen."""
    command = [str(part) for part in command]
    env = dict(options.pop("env", ENVIRONMENT))
    if sanitized:
        seconds *= SANITIZED_SLOWDOWN
        if memory:
            env["ASAN_OPTIONS"] += f":soft_rss_limit_mb={memory >> 20}"
        memory = None

    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # LLVM's tools say where they are, which tells whose loop it is.
        cpu = int(CPU_SHARE * seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + SYMBOLISING))
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    options.setdefault("stdout", subprocess.PIPE)
    start = time.monotonic()
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        command,
        cwd=cwd,
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=env,
        preexec_fn=limit,
        start_new_session=True,
        **options,
    )
    timed_out = threading.Event()

    def stop():
        timed_out.set()
        os.killpg(process.pid, signal.SIGABRT)

    timers = [
        threading.Timer(CLOCK_SHARE * seconds, stop),
        threading.Timer(
            CLOCK_SHARE * (seconds + SYMBOLISING), os.killpg, (process.pid, signal.SIGKILL)
        ),
    ]
    for timer in timers:
        timer.start()
    try:
        stdout, stderr = process.communicate(stdin)
    finally:
        for timer in timers:
            timer.cancel()
    texts = [
        (text or b"")[:MAX_OUTPUT].decode(errors="replace") for text in (stdout, stderr)
    ]
    spent = time.monotonic() - start
    has_timed_out = timed_out.is_set() or process.returncode == -signal.SIGXCPU
    return Outcome(command, process.returncode, *texts, spent, has_timed_out)
