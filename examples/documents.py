"""What the training examples learn from: documents packed into batches, which keys the
layers see, and the options of the GPT. It needs numpy alone.

Tokens are bytes. A corpus is on the machine already: the pages of this repository, or the
sources of Python's standard library, of which there are 13 MB (400 steps of 32768 tokens)
wherever Python is.
"""

import argparse
import pathlib
import sysconfig

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
VOCABULARY = 256
# The target of a token without a successor, as torch.nn.functional.cross_entropy has it.
NO_TARGET = -100


def find_pages():
    return [ROOT / "LICENSE", ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def find_sources():
    """The documents of the standard library, without its tests and without packages."""
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    return [
        path for path in sorted(library.rglob("*.py"))
        if not {"test", "tests", "site-packages"} & {*path.relative_to(library).parts}
    ]  # fmt: skip


# How each corpus is found, and what stands between its documents: headings of pages, or the
# empty lines between the definitions of a module.
CORPORA = {"pages": (find_pages, b"\n## "), "python": (find_sources, b"\n\n\n")}


def read_documents(corpus, separator=None, longest=None):
    """Parts of the corpus between separators, uint8 arrays of two bytes or more. What is
    longer than `longest` is cut into pieces."""
    find, usual = CORPORA[corpus]
    parts = (
        part.strip() for path in find() for part in path.read_bytes().split(separator or usual)
    )
    documents = []
    for part in parts:
        whole = np.frombuffer(part, np.uint8)
        step = longest or max(len(whole), 1)
        documents += [whole[i : i + step] for i in range(0, len(whole), step)]
    return [document for document in documents if len(document) > 1]


def pack(parts):
    """One batch of these documents."""
    no_target = np.int32(NO_TARGET)
    return {
        "tokens": np.concatenate(parts).astype(np.int32),
        "targets": np.concatenate([np.append(part[1:], no_target) for part in parts]),
        "positions": np.concatenate([np.arange(len(part), dtype=np.int32) for part in parts]),
        "cu_seqlens": np.cumsum([0, *map(len, parts)], dtype=np.int32),
    }


def choose_documents(documents, steps, tokens, rng):
    """For each step the documents of its batch, the last of which is cut to make `tokens`.
    Each document is used before one is used again."""
    queue, chosen = [], []
    for _ in range(steps):
        parts, rows = [], 0
        while rows < tokens:
            if not queue:
                queue = list(rng.permutation(len(documents)))[::-1]
            parts.append(documents[queue.pop()][: tokens - rows])
            rows += len(parts[-1])
        chosen.append(parts)
    return chosen


def make_batches(steps, tokens, seed, corpus="pages", separator=None, longest=None):
    """`steps` batches, one after the other: tokens, targets (the next token of a document or
    NO_TARGET) and positions, each `tokens` x i32, and cu_seqlens. Batches with fewer documents
    end in empty ones, so all have one shape."""
    documents = read_documents(corpus, separator, longest)
    if not documents:
        raise FileNotFoundError(f"expected documents of the corpus {corpus!r}, found none")
    chosen = choose_documents(documents, steps, tokens, np.random.default_rng(seed))
    entries = 1 + max(map(len, chosen))
    for parts in chosen:
        batch = pack(parts)
        ends = batch["cu_seqlens"]
        yield batch | {"cu_seqlens": np.pad(ends, (0, entries - len(ends)), mode="edge")}


def layer_windows(pattern, layers, context):
    """How many keys before its own a query of each layer sees, -1 for all.

    `pattern` is repeated over the layers: L is `context` keys, S a quarter of them, and
    the last layer is always L, as in nanochat. Without a pattern all layers see all keys.
    Raises ValueError for other letters.
    """
    if set(pattern) - {"S", "L"}:
        raise ValueError(f"wanted a pattern of the letters S and L, got {pattern!r}")
    if not pattern:
        return [-1] * layers
    letters = (pattern * layers)[: layers - 1] + "L"
    return [{"S": context // 4, "L": context}[letter] for letter in letters]


def gpt_parser(description, dtypes, ways):
    """The options of the GPT, in either framework."""
    parser = argparse.ArgumentParser(description=description)
    for name, value in {
        "steps": 20, "tokens": 4096, "width": 256, "head-dim": 64, "layers": 4, "seed": 0
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--dtype", choices=dtypes, default="f32")
    parser.add_argument("--rate", type=float, default=1e-3, help="of learning")
    parser.add_argument(
        "--windows", default="",
        help="L and S for layers that see all and a quarter of the context, repeated, such as"
        " nanochat's SSSL; the last layer is L; default: layers see their whole document",
    )  # fmt: skip
    parser.add_argument("--context", type=int, default=2048, help="keys that a layer L sees")
    parser.add_argument(
        "--corpus", choices=CORPORA, default="pages" if (ROOT / "docs").is_dir() else "python",
        help="sections of this repository's pages, or definitions of Python's standard library",
    )  # fmt: skip
    parser.add_argument("--out", type=pathlib.Path, help="a folder for record.json")
    parser.add_argument("--longest", type=int, help="where longer documents are cut")
    parser.add_argument("--minutes", type=float, help="no step begins after these, data and models apart")
    parser.add_argument(
        "--ways", type=lambda text: text.split(","), help="to compute attention, of "
        + ", ".join(ways) + "; default: those of the device",
    )  # fmt: skip
    return parser


def options_of(parser, ways):
    """What the command line says, once it fits together."""
    options = parser.parse_args()
    if unknown := set(options.ways or ()) - set(ways):
        parser.error(f"--ways: expected some of {', '.join(ways)}, got {', '.join(sorted(unknown))}")
    if options.width % options.head_dim:
        parser.error(f"--width: expected a multiple of {options.head_dim}, got {options.width}")
    return options


def batches_of(options):
    """The batches of a run with these options."""
    return make_batches(
        options.steps, options.tokens, options.seed, options.corpus, longest=options.longest
    )
