#!/usr/bin/env python3
"""Random and hostile inputs at one door of the project.

A door is a module in doors/: a kind of input and what may happen to it. Case N of
seed S is the same case whenever it is run, so a failure is run again from the two
numbers that it prints. Exits with 1 after a failure.
"""

import argparse
import importlib
import pathlib
import random
import shutil
import sys
import time
import traceback

import tool

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUZZ = ROOT / "test" / "Fuzz"
DOORS = sorted(
    path.stem.replace("_", "-")
    for path in (FUZZ / "doors").glob("*.py")
    if path.stem != "__init__"
)
# Of failures that are printed in full and whose files are kept.
MAX_REPORTS = 20


class Case:
    """One case: its number, its own random numbers and an empty folder."""

    def __init__(self, session, number):
        self.session = session
        self.number = number
        self.rng = random.Random(f"{session.door} {session.seed} {number}")
        self.folder = session.work / f"seed-{session.seed}-case-{number}"
        self.failed = False
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def execute(self, command, **limits):
        """Runs a command in the case's folder. See tool.run for the limits."""
        return self.session.execute(command, cwd=self.folder, **limits)

    def run(self, command, **limits):
        """The same, and reports it if it crashes or hangs."""
        outcome = self.execute(command, **limits)
        if crash := outcome.crash():
            self.fail(crash, outcome)
        return outcome

    def fail(self, message, outcome=None):
        """Reports a failure of this case, as Session.fail does. Its folder stays."""
        self.failed = True
        self.session.fail(message, outcome, number=self.number, files=self.folder)

    def close(self):
        if not self.failed or self.session.failures > MAX_REPORTS:
            shutil.rmtree(self.folder, ignore_errors=True)


class Session:
    """What a door is given: where things are, how long to go on, what to tell."""

    def __init__(self, arguments):
        self.door = arguments.door
        self.build = arguments.build.resolve()
        self.llvm = arguments.llvm
        self.device = arguments.device
        self.seed = arguments.seed
        self.work = (arguments.work or self.build / "fuzz" / self.door).resolve()
        self.corpus = FUZZ / "corpus" / self.door
        self.first = arguments.case or 0
        self.limit = 1 if arguments.case is not None else arguments.cases
        self.seconds = arguments.seconds
        self.sanitized = tool.is_sanitized(self.build)
        self.start = time.monotonic()
        self.done = self.failures = 0
        self.notes = {}
        self.known_crashes = tool.read_known_crashes(FUZZ / "known-crashes.json")

    def tool(self, name):
        return self.build / "bin" / name

    def execute(self, command, **options):
        """Runs a tool of the build. See tool.run for the options."""
        return tool.run(command, sanitized=self.sanitized, **options)

    def remaining(self):
        """Seconds that are left."""
        if self.seconds is None:
            return float("inf")
        return self.seconds - (time.monotonic() - self.start)

    def batches(self, size):
        """Ranges of at most `size` case numbers, for doors that run many cases at
        once, until the time is over or their number is reached. Time starts here:
        what a door prepares is no part of it."""
        self.start = time.monotonic()
        while self.remaining() > 0 if self.limit is None else self.done < self.limit:
            count = size if self.limit is None else min(size, self.limit - self.done)
            first = self.first + self.done
            yield range(first, first + count)
            self.done += count

    def cases(self):
        """Cases, one at a time."""
        for numbers in self.batches(1):
            case = Case(self, numbers[0])
            yield case
            case.close()

    def note(self, what, count=1):
        """Counts something for the summary."""
        self.notes[what] = self.notes.get(what, 0) + count

    def rerun(self, number):
        number = "" if number is None else f" --case={number}"
        device = "" if self.device == "cpu" else f" --device={self.device}"
        return (
            f"{sys.executable} {FUZZ / 'fuzz.py'} --door={self.door} --build={self.build}"
            f"{device} --seed={self.seed}{number}"
        )

    def fail(self, message, outcome=None, *, number=None, files=None):
        """Reports a failure: in `outcome`, of case `number`, which left `files`. A
        crash that is known in upstream's code is counted apart."""
        crash = outcome.find_known_crash(self.known_crashes) if outcome else None
        if crash:
            self.note(f"known: {crash['name']}")
            return
        self.failures += 1
        if self.failures > MAX_REPORTS:
            return
        lines = [f"FAILURE: {message}"]
        if files:
            lines.append(f"  files: {files}")
        if outcome:
            lines.append(f"  command: {outcome}")
            lines.append(outcome.excerpt())
        lines.append(f"  again: {self.rerun(number)}")
        print("\n".join(lines), flush=True)

    def summary(self):
        spent = time.monotonic() - self.start
        notes = "".join(f", {count} {what}" for what, count in sorted(self.notes.items()))
        return (
            f"{self.door}: {self.done} cases{notes}, seed {self.seed}, "
            f"{spent:.0f} s, {self.failures} failures"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--door", required=True, choices=DOORS)
    parser.add_argument("--seconds", type=float, help="for how long; default: 60")
    parser.add_argument("--cases", type=int, help="how many, instead of --seconds")
    parser.add_argument("--case", type=int, help="run this case of the seed only")
    parser.add_argument("--seed", type=int, help="default: another one each time")
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--llvm", default="/usr/lib/llvm-22", type=pathlib.Path)
    parser.add_argument("--device", default="cpu", help="cpu or sim:CHIP")
    parser.add_argument("--work", type=pathlib.Path, help="default: in the build")
    arguments = parser.parse_args()
    if arguments.seconds is None and arguments.cases is None:
        arguments.seconds = 60
    if arguments.seed is None:
        if arguments.case is not None:
            parser.error("--case needs the --seed that it is of")
        arguments.seed = random.SystemRandom().randrange(2**31)

    # A command line may have bytes that are no text.
    sys.stdout.reconfigure(errors="backslashreplace")
    session = Session(arguments)
    session.work.mkdir(parents=True, exist_ok=True)
    print(f"{session.door}: seed {session.seed}", flush=True)
    module = importlib.import_module("doors." + session.door.replace("-", "_"))
    try:
        module.run(session)
    except KeyboardInterrupt:
        pass
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        session.fail("the door itself failed")
    if session.done == 0 and session.failures == 0:
        session.fail("no case was run")
    print(session.summary(), flush=True)
    return int(session.failures != 0)


if __name__ == "__main__":
    sys.exit(main())
