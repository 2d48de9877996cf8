"""Mutated bytecode of the modules of the tests.

The reader is upstream's and trusts counts and indices, so what broken bytecode does to
it depends on the machine: this door is run by hand only. Ours is what a stock mlir-opt
survives.
"""

import mutate

from doors import ir

MUTANTS = 8


class Door:
    """The modules, and how a case is run."""

    def __init__(self, session):
        self.session = session
        self.opt = session.tool("varlen-opt")
        self.modules = [module for module, _ in ir.read_tests()]

    def execute(self, case, program, name):
        return case.execute(
            [program, name, "-o", "/dev/null", "--allow-unregistered-dialect"],
            seconds=ir.SECONDS,
            memory=ir.MEMORY,
        )

    def is_upstreams(self, case, path):
        """Whether a stock mlir-opt crashes on a file, too. A heap that the reader has
        broken leaves no frames to tell by, or the frames of its first reader."""
        stock = self.session.llvm / "bin" / "mlir-opt"
        if not self.execute(case, stock, path.name).crash():
            return False
        self.session.note("known: broken bytecode, as in a stock mlir-opt")
        return True

    def run(self, case):
        """Flips bits of a module's bytecode and reads it again."""
        plain = case.folder / "plain.mlir"
        plain.write_text(case.rng.choice(self.modules))
        whole = case.folder / "whole.mlirbc"
        self.session.execute(
            [self.opt, plain, "--emit-bytecode", "-o", whole]
            + ["--allow-unregistered-dialect"],
            seconds=ir.SECONDS,
        )
        if not whole.exists():
            return
        for number in range(MUTANTS):
            path = case.folder / f"mutant-{number}.mlirbc"
            path.write_bytes(mutate.mutate_bytes(case.rng, whole.read_bytes()))
            outcome = self.execute(case, self.opt, path.name)
            # Upstream's reader refuses some without a message.
            silent = outcome.status == 1 and not outcome.stderr
            crash = outcome.crash()
            if crash and not silent and not self.is_upstreams(case, path):
                case.fail(f"{path}: {crash}", outcome)
            else:
                path.unlink()
            self.session.note("mutants")


def run(session):
    door = Door(session)
    for case in session.cases():
        door.run(case)
