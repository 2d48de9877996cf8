"""Machine code of kernels: the instructions of a cubin as nvdisasm says them, their loops with
products of wgmma, and what these are made of.

nvdisasm is of CUDA's tools, or of the package nvidia-cuda-nvdisasm (requirements-gpu.txt).
"""

import collections
import dataclasses
import functools
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess


class Unavailable(Exception):
    """What is needed to read machine code and is not there."""


@functools.cache
def find_nvdisasm():
    """The path of nvdisasm: the environment's VARLEN_NVDISASM, one in PATH, that of the package."""
    named = os.environ.get("VARLEN_NVDISASM") or shutil.which("nvdisasm")
    if named:
        return named
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else ():
        for path in sorted(pathlib.Path(folder).glob("cu*/bin/nvdisasm")):
            return str(path)
    raise Unavailable("expected nvdisasm in PATH or the package nvidia-cuda-nvdisasm, got neither")


# The kinds of instructions, by their name without modifiers. What is none of these is "other",
# and a test says if a kernel has such.
KINDS = {
    "wgmma": "HGMMA IGMMA QGMMA",
    "mma": "HMMA IMMA",
    "fp32": "FFMA FMUL FADD IMAD HADD2 HFMA2 HMUL2",
    "exp2": "MUFU",
    "max": "FMNMX FMNMX3",
    "convert": "F2FP F2F I2F F2I I2FP",
    "select": "FSEL SEL FSETP ISETP PLOP3 FSET ISET P2R R2P VOTE PSETP",
    "integer": (
        "IADD3 LOP3 LEA SHF VIADD IABS PRMT VIMNMX IMNMX SGXT VIADDMNMX BMSK POPC FLO BREV LOP"
    ),
    "move": "MOV CS2R S2R LDC",
    "shuffle": "SHFL REDUX MATCH",
    "shared": "LDS LDSM STS STSM ATOMS MOVM",
    "load": "LDG LD LDL ATOMG ATOM",
    "store": "STG ST STL RED",
    "copy": "LDGSTS UTMALDG UBLKCP UTMAREDG UTMASTG UTMAPF",
    "wait": "WARPGROUP",
    "barrier": (
        "BAR SYNCS ARRIVES DEPBAR LDGDEPBAR MEMBAR FENCE ERRBAR CCTL NANOSLEEP ACQBULK"
        " PREEXIT UTMACMDFLUSH UTMACCTL UCGABAR_ARV UCGABAR_WAIT CGAERRBAR"
    ),
    "branch": "BRA BRX JMP BSSY BSYNC BREAK EXIT NOP YIELD CALL RET BMOV WARPSYNC KILL ELECT",
    "uniform": "R2UR S2UR VOTEU USETMAXREG",
}
_KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One instruction. `stall` is how many cycles the next one of the warp is issued later at
    least; the scoreboards `sets` (results) and `reads` (operands read) are None or 0 to 5, and
    bits of `waits` are those it waits for. `operands` are kept where they say what it does."""

    name: str
    operands: str = ""
    predicate: str = ""
    stall: int = 1
    sets: int | None = None
    reads: int | None = None
    waits: int = 0
    target: int | None = None  # of a branch: an index

    @property
    def kind(self):
        base = self.name.split(".")[0]
        if self.name.startswith("IMAD.MOV"):
            return "move"
        known = _KIND_OF.get(base)
        if known:
            return known
        return "uniform" if base.startswith("U") else "other"

    @property
    def is_predicated(self):
        return self.predicate not in ("", "@PT")

    @property
    def columns(self):
        """How many columns B has, for a product of wgmma."""
        return int(re.search(r"64x(\d+)x", self.name)[1])

    @property
    def is_a_shared(self):
        """Whether A is read from shared memory, too, for a product of wgmma."""
        return self.operands.startswith("gdesc")

    @property
    def address(self):
        """The constant part of the address of an mbarrier, which all mbarriers of an array of
        slots have."""
        inside = re.search(r"\[([^\]]*)\]", self.operands)
        found = re.search(r"0x[0-9a-f]+", inside[1]) if inside else None
        return int(found[0], 16) if found else 0


# Operands that say what an instruction does to others; those of arithmetic do not.
_TELLING = re.compile(r"WARPGROUP\.DEPBAR|SYNCS|ARRIVES|DEPBAR")


def _operands(name, text):
    if "GMMA" in name:
        first = text.split(",")[1].strip()
        kept = "gdesc" if first.startswith("gdesc") else "registers"
        return kept + (" gsb0" if "gsb0" in text else "")
    return re.sub(r"\s+", " ", text).strip() if _TELLING.match(name) else ""


_SECTION = re.compile(r"\.text\.(\S+):")
_LABEL = re.compile(r"(\.L\w+):")
_LINE = re.compile(
    r"/\*([0-9a-f]{4,6})\*/\s+(@!?U?P\w+\s+)?(\S+)\s*(.*?)\s*;\s+/\* 0x[0-9a-f]{16} \*/"
)
_SECOND = re.compile(r"/\* 0x([0-9a-f]{16}) \*/")


def _decode(found, second):
    """An instruction of its line and of the upper half of its 128 bits."""
    _, predicate, name, rest = found.groups()
    control = int(_SECOND.search(second)[1], 16) >> 41
    sets, reads = (control >> 5) & 7, (control >> 8) & 7
    return Instruction(
        name, _operands(name, rest), (predicate or "").strip(), max(1, control & 15),
        None if sets == 7 else sets, None if reads == 7 else reads, (control >> 11) & 63,
    )  # fmt: skip


def _kernel(lines):
    """The instructions of the lines of a section, with targets of branches as indices."""
    body, labels, branches = [], {}, {}
    for number, line in enumerate(lines):
        if label := _LABEL.match(line):
            labels[label[1]] = len(body)
        elif found := _LINE.search(line):
            target = re.search(r"`\((\.L\w+)\)", found[4])
            if target and found[3].startswith("BRA"):
                branches[len(body)] = target[1]
            body.append(_decode(found, lines[number + 1]))
    for at, label in branches.items():
        body[at] = dataclasses.replace(body[at], target=labels.get(label))
    return body


def parse(text):
    """Instructions by the name of the kernel, of what `nvdisasm -hex -c` prints."""
    sections, lines = {}, []
    for line in text.splitlines():
        if section := _SECTION.match(line):
            lines = sections[section[1]] = []
        lines.append(line)
    return {name: _kernel(lines) for name, lines in sections.items()}


def read(cubin):
    """Instructions by the name of the kernel, of a cubin."""
    done = subprocess.run(
        [find_nvdisasm(), "-hex", "-c", str(cubin)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(f"{find_nvdisasm()} {cubin}: {done.stderr.strip()[:200]}")
    return parse(done.stdout)


def roles(body):
    """(instructions of the warps that compute, those of producers) of a kernel whose warpgroups
    give registers to each other, each with what comes before they part; the second is empty, and
    the first everything, if they do not."""
    starts = {
        role: next((at for at, x in enumerate(body) if x.name.startswith(f"USETMAXREG.{what}")), None)
        for role, what in (("producers", "DEALLOC"), ("consumers", "TRY_ALLOC"))
    }
    if None in starts.values():
        return body, []
    first, second = sorted(starts.values())
    shared = body[:first]

    def moved(begin, end):
        # Targets are indices.
        off = begin - first
        return shared + [
            dataclasses.replace(x, target=x.target - off)
            if x.target is not None and begin <= x.target < end else x
            for x in body[begin:end]
        ]  # fmt: skip

    parts = moved(first, second), moved(second, len(body))
    return parts if starts["consumers"] == first else parts[::-1]


def loops(body, kind="wgmma"):
    """(begin, end) of the innermost loops with products, or instructions of another kind, that
    store no result, but for sums that CTAs share: those over blocks, in the order of the code."""
    found = [
        (x.target, at + 1) for at, x in enumerate(body) if x.target is not None and x.target <= at
    ]
    found = [
        (begin, end) for begin, end in found
        if any(x.kind == kind for x in body[begin:end])
        and (
            not any(x.name.startswith("STG") for x in body[begin:end])
            or any(x.name.startswith("STG") and "STRONG" in x.name for x in body[begin:end])
        )
    ]  # fmt: skip
    return sorted(
        (begin, end) for begin, end in found
        if not any((b, e) != (begin, end) and begin <= b and e <= end for b, e in found)
    )  # fmt: skip


def copies(producer):
    """(copies of a block by each warp of producers, 0 where whole blocks come by TMA; tensor maps
    that are made), of what sass.roles gives."""
    maps = sum(x.name.startswith("UTMACCTL") for x in producer)
    if any(x.name.startswith("UTMALDG") for x in producer):
        return 0, maps
    found = [counts(producer[slice(*span)])["copy"] for span in loops(producer, "copy")]
    return max(found, default=0), maps


def counts(body):
    return collections.Counter(x.kind for x in body)


def exp2_before_last_wait(body):
    """(exponentials in front of the last wait for a product in a loop, all exponentials): where
    the first is 0 and the last product was issued before, it overlaps none of them."""
    waits = [at for at, x in enumerate(body) if x.name.startswith("WARPGROUP.DEPBAR")]
    exponentials = [at for at, x in enumerate(body) if x.name.startswith("MUFU.EX2")]
    last = waits[-1] if waits else len(body)
    return sum(at < last for at in exponentials), len(exponentials)


# What a branch in a loop may leave out in the steady state.
_ARITHMETIC = {"fp32", "exp2", "max", "convert", "select", "integer", "move", "uniform"}


def _is_left_out(code):
    """Whether a branch leaves it out in the steady state: arithmetic alone, as the factor of a
    maximum that stays, or results that are written once, not the sums of each block, which are
    in accesses of 16 bytes."""
    if all(x.kind in _ARITHMETIC for x in code):
        return True
    stores = [x.name for x in code if x.name.startswith("STG")]
    of_block = any(x.kind == "wgmma" or x.name.startswith("LDG") for x in code)
    return bool(stores) and not of_block and not any(".128" in x for x in stores)


def path(body, begin, end):
    """What the loop body[begin:end] executes in its steady state: all of it, but what a branch
    may leave out."""
    result, at = [], begin
    while at < end:
        x = body[at]
        result.append(x)
        at += 1
        if x.target is not None and x.is_predicated and at < x.target < end:
            left_out = body[at : x.target]
            if len(left_out) >= 8 and _is_left_out(left_out):
                at = x.target
    return result
