"""Command lines of varlen-run and varlen-opt, most of them wrong.

Options come from the tools' own --help, so that a new one is tried from its first
day; their values are good ones, hostile ones, and files of every kind. A command
line may fail, with a message; then nothing in its folder has changed. If it does not
fail, what it has written is whole, and what it has read or what is no regular file
is as it was.
"""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess

from safetensors import SafetensorError, deserialize

MAX_MESSAGE = 6000

HOSTILE = ["", "0", "-1", "1", "2", "3", "00", "+1", " 1", "1 ", "1e3", "0x10", "1.5"]
HOSTILE += ["2147483648", "4294967296", "281474976710656", "9223372036854775807"]
HOSTILE += ["-9223372036854775808", "18446744073709551616", "9" * 400, "a" * 5000]
HOSTILE += ["%s%n%d", "ü", "\x1b[31m", "\n", "\udcff", ",", "1,", ",1", "1,,1", "=", "a=b"]
HOSTILE += ["{", "}", "'", '"', "\\", "--", "-", "-o", "list", "on", "off", "true", "../"]

INPUTS = ["good.safetensors", "more.safetensors", "link", "empty", "broken.safetensors"]
INPUTS += ["absent", "folder", ".", "null", "fifo", "dangling", "loop", "attn.mlir"]
INPUTS += ["n" * 300, "/proc/self/mem", "folder/absent/x", "attn.mlir/x"]
OUTPUTS = ["out"] * 6 + ["out2", "folder/out", "./out", "link", "dangling", "sink"] * 2
OUTPUTS += ["null", "null", "full", "loop", "folder", ".", "/", "absent/out", "n" * 300, "out/"]
OUTPUTS += ["attn.mlir", "good.safetensors", "attn.mlir/x", "percent%d"]
MODULES = ["attn.mlir"] * 24 + ["two.mlir", "broken.mlir", "empty", "folder", "absent"]
MODULES += ["good.safetensors", "-", "null", "link", "dangling", "loop", "n" * 300]

# Values that make sense, of the options that most runs need.
GOOD = {
    "device": ["cpu", "sim:sm_80", "sim:sm_90a", "cuda", "sim:sm_", "sim:sm_12345678901"],
    "target": ["host", "generic", "avx2", "avx512", "neon", "sparc"],
    "random": ["0", "1", "281474976710656"],
    "threads": ["1", "2", "1024"],
    "repeat": ["1", "2"],
    "lengths": ["3", "3,0,4", "0", "", "1,1,1,1,1,1,1,1", "281474976710656"],
    "lengths-k": ["3", "3,0,4", "5,5,5", "0"],
    "cu-pad": ["1", "4", "9", "1000"],
    "extent": ["q:0=7", "q:0=0", "q:1=2", "cu_q:0=4", "v:2=281474976710656", "z:0=1", "q:9=1"],
    "entry": ["attn", "other", "absent"],
    "pipeline": ["varlen-to-cpu", "canonicalize", "varlen-to-nvvm{chip=sm_80 format=sim}"],
    "sim-schedule": ["round-robin", "random", "priority"],
    "sim-async": ["early", "late", "random"],
    "sim-runs": ["1", "3"],
    "sim-seed": ["1", "77"],
    "sim-co-resident": ["0", "1", "2"],
    "sim-mutant": ["0", "1", "99", "list"],
    "emit": ["ptx", "cubin", "fatbin", "elf"],
    "chip": ["sm_80", "sm_90a", "sm_90", "sm_20", "volta"],
    "ptx": ["80", "90", "1", "0"],
    "format": ["mlir", "ptx", "sim", "fatbin"],
    "degree": ["3", "6", "7"],
    "function": ["attn", "absent"],
    "wrt": ["0", "q", "99"],
    "results": ["0", "1", "99"],
}
# Those that ask for a run of a century.
UNBOUNDED = {"repeat", "sim-runs"}
OUTPUT_OPTIONS = {"o", "json", "trace"}

ATTN = """\
func.func @attn(
    %q: tensor<?x2x16xf32> {varlen.name = "q"},
    %k: tensor<?x2x16xf32> {varlen.name = "k"},
    %v: tensor<?x2x16xf32> {varlen.name = "v"},
    %cu: tensor<?xi32> {varlen.name = "cu"}) -> tensor<?x2x16xf32> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2x16xf32>, tensor<2x?xf32>)
  return %out : tensor<?x2x16xf32>
}
"""
OTHER = "func.func @other(%a: f32) -> f32 {\n  return %a : f32\n}\n"


def read_help(tool):
    """The options of a tool with the placeholder of their value, and those of its
    passes."""
    text = subprocess.run([tool, "--help"], capture_output=True, text=True, check=True)
    options, passes, last = {}, {}, None
    for indent, name, value in re.findall(
        r"^( +)--?([\w-]+)(?:[= ]([A-Z<][^ ]*))? ", text.stdout, re.M
    ):
        if len(indent) == 2:
            options[name] = value
        elif len(indent) == 6:
            last = name
            passes.setdefault(name, {})
        elif len(indent) == 8 and last:
            passes[last][name] = value
    return options, passes


class Folder:
    """What a command line may name."""

    def __init__(self, session, folder):
        self.folder = folder
        for path in session.corpus.iterdir():
            shutil.copy(path, folder)
        (folder / "attn.mlir").write_text(ATTN)
        (folder / "two.mlir").write_text(ATTN + OTHER)
        (folder / "broken.mlir").write_text(ATTN[:300])
        (folder / "empty").touch()
        (folder / "out2").write_text("old")
        (folder / "folder").mkdir()
        (folder / "link").symlink_to("folder/target")
        (folder / "folder" / "target").write_bytes(
            (folder / "good.safetensors").read_bytes()
        )
        (folder / "dangling").symlink_to("folder/new")
        (folder / "loop").symlink_to("loop")
        for name in ("fifo", "sink"):
            os.mkfifo(folder / name)
        # Devices of our own, where that is allowed: a tool that replaces them must
        # not get at the machine's.
        for name, minor in (("null", 3), ("full", 7)):
            try:
                os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            except PermissionError:
                pass
        # What is written to the sink is read; nothing is written to the FIFO.
        self.sink = os.open(folder / "sink", os.O_RDWR | os.O_NONBLOCK)
        self.before = self.read()

    def read(self):
        """What each name is, and what is in it."""
        found = {}
        for path in sorted(self.folder.rglob("*")):
            mode = path.lstat().st_mode
            content = path.read_bytes() if stat.S_ISREG(mode) else b""
            link = os.readlink(path) if stat.S_ISLNK(mode) else ""
            found[str(path.relative_to(self.folder))] = (stat.S_IFMT(mode), link, content)
        return found

    def close(self):
        os.close(self.sink)


def pick(rng, name, kind):
    if name in OUTPUT_OPTIONS:
        return rng.choice(OUTPUTS if rng.random() < 0.9 else HOSTILE)
    if name in GOOD and (rng.random() < 0.75 or name in UNBOUNDED):
        return rng.choice(GOOD[name])
    return rng.choice(HOSTILE + INPUTS if rng.random() < 0.9 else [kind])


def write_option(rng, name, value, dashes="--"):
    if len(name) == 1:
        return ["-" + name, value]
    return [f"{dashes}{name}", value] if rng.random() < 0.2 else [f"{dashes}{name}={value}"]


def make_run(rng, options):
    """A command line of varlen-run: one that works, and changes to it."""
    line = [[rng.choice(MODULES)]]
    if rng.random() < 0.6:
        line += [["--random=1"], ["--lengths=3,0,4"]]
    elif rng.random() < 0.8:
        line += [[rng.choice(INPUTS[:3] if rng.random() < 0.8 else INPUTS)]]
    if rng.random() < 0.3:
        line += [[rng.choice(["--device=sim:sm_80", "--device=sim:sm_90a", "--device=cpu"])]]
    if rng.random() < 0.5:
        line += [["-o", rng.choice(OUTPUTS)]]
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 3, 6))):
        name = rng.choice(list(options))
        is_sim = name == "trace" or name.startswith("sim-")
        if is_sim and rng.random() < 0.7 and not any("--device" in part[0] for part in line):
            line.append(["--device=sim:sm_80"])
        if options[name] or rng.random() < 0.1:
            line.append(write_option(rng, name, pick(rng, name, options[name])))
        elif name != "help" or rng.random() < 0.2:
            line.append(["--" + name])
    if rng.random() < 0.05:
        line.append([rng.choice(HOSTILE)])
    if rng.random() < 0.3:
        rng.shuffle(line)
    return [argument for part in line for argument in part]


def make_opt(rng, passes):
    """A command line of varlen-opt: some of our passes, with options."""
    ours = [name for name in passes if re.search("varlen|^kernel|executor", name)]
    # Upstream's mlir-opt truncates -o before it has read what it has mapped.
    # Nor is the sink large enough for PTX.
    outputs = [
        name for name in OUTPUTS if not name.startswith(("attn", "good", "sink"))
    ]
    line = [[rng.choice(MODULES)]]
    if rng.random() < 0.3:
        line += [["--emit=" + rng.choice(GOOD["emit"])]]
        for name in rng.sample(["chip", "ptx", "allow-spills", "report"], rng.randrange(3)):
            takes = name in GOOD
            line += [[f"--{name}={pick(rng, name, '')}" if takes else f"--{name}"]]
    else:
        for name in rng.choices(ours, k=rng.choice((0, 1, 1, 2))):
            some = []
            for option in rng.sample(list(passes[name]), rng.randrange(len(passes[name]) + 1)):
                value = pick(rng, option, passes[name][option])
                some.append(f"{option}={value}" if passes[name][option] else option)
            line += [[f"--{name}" + ("=" + " ".join(some) if some else "")]]
    if rng.random() < 0.5:
        line += [["-o", rng.choice(outputs)]]
    if rng.random() < 0.1:
        line += [[rng.choice(["--split-input-file", "--verify-each=0", *HOSTILE])]]
    rng.shuffle(line)
    return [argument for part in line for argument in part]


def is_whole(path, content):
    """Whether a file that a run has written is one of those it writes."""
    if path.name.startswith("varlen-"):
        return False
    try:
        deserialize(content)
        return True
    except SafetensorError:
        pass
    try:
        json.loads(content)
        return True
    except ValueError:
        return False


def check(case, folder, outcome, is_run):
    after = folder.read()
    changed = [name for name in after if folder.before.get(name) != after[name]]
    gone = [name for name in folder.before if name not in after]
    several = is_run and sum(argument == "-o" for argument in outcome.command) > 1
    if outcome.status not in (0, 1):
        case.fail(f"wanted status 0 or 1, got {outcome.status}", outcome)
    # It may say what it was given.
    elif (
        len(outcome.message()) > MAX_MESSAGE + len(str(outcome))
        and is_run
        and "list" not in str(outcome)
    ):
        case.fail(f"a message of {len(outcome.message())} characters", outcome)
    # Upstream's ToolOutputFile removes what it has begun to write.
    elif gone and is_run:
        case.fail(f"has removed {gone}", outcome)
    elif outcome.status and changed and is_run and not several:
        case.fail(f"has failed, and has written {changed}", outcome)
    for name in changed:
        if name in folder.before and folder.before[name][0] != stat.S_IFREG:
            case.fail(f"has replaced {name}", outcome)
        elif name in ("attn.mlir", "two.mlir", "good.safetensors") and (
            name in outcome.command or not is_run
        ):
            read = [part for part in outcome.command if part == name]
            if len(read) > 1 or not is_run:
                case.fail(f"has written over {name}", outcome)
        elif is_run and not is_whole(pathlib.Path(name), after[name][2]):
            case.fail(f"has written half of {name}", outcome)


def run(session):
    run_options, _ = read_help(session.tool("varlen-run"))
    _, opt_passes = read_help(session.tool("varlen-opt"))
    for case in session.cases():
        rng = case.rng
        is_run = rng.random() < 0.7
        line = make_run(rng, run_options) if is_run else make_opt(rng, opt_passes)
        line = [part.replace("\0", "") for part in line]
        name = "varlen-run" if is_run else "varlen-opt"
        # varlen-opt prints what it makes: not of interest, but where it cannot.
        stdout = rng.choice([subprocess.PIPE] * 9 + ["/dev/full"])
        # Nothing is written to the FIFO: as a module it would be waited for.
        line = ["absent" if part == "fifo" and not is_run else part for part in line]
        if is_run and next((p for p in line if not p.startswith("-")), "") == "fifo":
            line = ["attn.mlir", *line]
        folder = Folder(session, case.folder)
        try:
            file = open(stdout, "wb") if isinstance(stdout, str) else stdout
            outcome = case.run(
                [session.tool(name), *line], stdin=OTHER.encode(), stdout=file, seconds=60
            )
            session.note(f"{name}, status {outcome.status}")
            if not outcome.crash():
                check(case, folder, outcome, is_run)
        finally:
            folder.close()
            if isinstance(stdout, str):
                file.close()
