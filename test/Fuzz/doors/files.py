"""Safetensors files, whole and broken, against varlen-run.

A file of the corpus is changed in its bytes, in its header's text or in what the
header says. Whether it is to be accepted is what the format's own library says, but
for the differences that `classify` knows.
"""

import json
import pathlib
import re
import struct

from safetensors import SafetensorError, deserialize

MODULE = pathlib.Path(__file__).resolve().parents[1] / "Inputs" / "files.mlir"
# As varlen-run has them.
DTYPES = "BOOL U8 I8 U16 I16 U32 I32 U64 I64 F16 BF16 F32 F64".split()
OTHER_DTYPES = "F8_E4M3 F8_E5M2 F8_E8M0 F4 F6_E2M3 C64 F9 f32".split() + [""]
MAX_DEPTH = 8
MAX_MESSAGE = 1000
NUMBERS = (
    "0 1 2 3 4 7 8 12 -1 -0 00 01 1.0 1e1 1E400 0.5 255 4294967295 4294967296 "
    "2147483648 4611686018427387904 9223372036854775807 9223372036854775808 "
    "18446744073709551615 18446744073709551616 -9223372036854775808 NaN Infinity"
).split()
LENGTHS = [0, 1, 2, 7, 8, 99999999, 100000000, 100000001, 104857600, 2**31, 2**32]
LENGTHS += [2**63 - 9, 2**63 - 8, 2**63 - 1, 2**63, 2**64 - 9, 2**64 - 8, 2**64 - 1]
NAMES = ["x", "n", "", "__metadata__", "a\0b", "\x1b[31m", "ü", "\ufffd", "\U0001f600"]
NAMES += ["n" * 300, "dtype", "shape"]
# JSON that might be taken for something else.
TEXTS = ["{}", "[]", "null", "true", '""', "{", "}", "[", "]", ",", ":", '"', "\\", " "]
TEXTS += ['"x":', '"\\u0078"', '"\\ud800"', '"\\udc00\\ud800"', "/**/", "'x'", "\ufeff"]
TEXTS += ["[" * 9 + "]" * 9, "[" * 200, '{"a":' * 7 + "1" + "}" * 7]


def split(content):
    (size,) = struct.unpack_from("<Q", content)
    return content[8 : 8 + size], content[8 + size :]


def join(header, data):
    return struct.pack("<Q", len(header)) + header + data


# What is changed, each in its own way. A function takes random numbers and the
# corpus beside the file, and returns a file.


def change_bytes(rng, _, content):
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        # The header is most of what is read.
        at = rng.randrange(min(len(content), rng.choice((9, 80, 1000))) or 1)
        match rng.randrange(5):
            case 0 if content:
                content[at % len(content)] ^= 1 << rng.randrange(8)
            case 1 if content:
                content[at % len(content)] = rng.choice((0, 0x22, 0x5C, 0x80, 0xFF))
            case 2:
                content[at:at] = rng.randbytes(rng.choice((1, 3, 8)))
            case 3:
                del content[at : at + rng.choice((1, 4, 8))]
            case _:
                end = at + rng.randrange(40)
                content[at:at] = content[at:end]
    return bytes(content)


def cut(rng, _, content):
    return content[: rng.randrange(len(content))]


def append(rng, corpus, content):
    more = (b"\0", rng.randbytes(8), b"\0" * 4096, rng.choice(corpus))
    return content + rng.choice(more)


def change_length(rng, _, content):
    (size,) = struct.unpack_from("<Q", content)
    near = size + rng.choice((-8, -1, 1, 8))
    size = rng.choice((near, len(content), len(content) - 8, *LENGTHS))
    return struct.pack("<Q", size % 2**64) + content[8:]


def change_text(rng, _, content):
    """Tokens of the header's JSON against others."""
    header, data = split(content)
    tokens = re.findall(r'"(?:\\.|[^"\\])*"|[-+.\w]+|\s+|.', header.decode(), re.S)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(tokens))
        if rng.random() < 0.5:
            numbers = [i for i, token in enumerate(tokens) if token.isdigit()]
            at = rng.choice(numbers or [at])
        some = NUMBERS if tokens[at].isdigit() else TEXTS + NUMBERS
        match rng.randrange(5):
            case 0:
                tokens.insert(at, rng.choice(TEXTS))
            case 1:
                del tokens[at]
                tokens = tokens or [""]
            case 2:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case _:
                tokens[at] = rng.choice(some)
    return join("".join(tokens).encode(), data)


def change_entries(rng, _, content):
    """What the header says, as pairs: names may come twice."""
    header, data = split(content)
    pairs = list(json.loads(header).items()) or [("x", {})]
    for _ in range(rng.choice((1, 1, 2))):
        i = rng.randrange(len(pairs))
        name, entry = pairs[i]
        entry = dict(entry)
        match rng.randrange(11):
            case 0:
                pairs.insert(rng.randrange(len(pairs) + 1), pairs[i])
            case 1:
                del pairs[i]
            case 2:
                name = rng.choice(NAMES)
            case 3:
                entry["dtype"] = rng.choice(DTYPES + OTHER_DTYPES)
            case 4:
                extents = [0, 1, 2, 3, 2**31, 2**61, 2**62, 2**63, 2**64 - 1, -1]
                entry["shape"] = rng.choices(extents, k=rng.choice((0, 1, 2, 3, 40)))
            case 5:
                moved = [
                    at + rng.choice((-4, -1, 0, 1, 4)) for at in entry.get("data_offsets", [0, 0])
                ]
                entry["data_offsets"] = moved
            case 6:
                other = rng.choice(pairs)[1].get("data_offsets", [])
                entry["data_offsets"] = other
            case 7:
                entry[rng.choice(("extra", "dtype ", "Shape"))] = rng.choice(
                    (None, 1, "a", [[1]], {"a": {"b": []}}, [[[[[[[1]]]]]]])
                )
            case 8:
                entry.pop(rng.choice(("dtype", "shape", "data_offsets")), None)
            case 9:
                entry = {"dtype": "F32", "shape": [0], "data_offsets": [len(data)] * 2}
                name = rng.choice(NAMES)
            case _:
                # A tensor of a dtype that is not read, at the end.
                end = len(data) + rng.choice((0, 3))
                data, entry = data + b"\0" * (end - len(data)), {
                    "dtype": rng.choice(OTHER_DTYPES),
                    "shape": [end - len(data)],
                    "data_offsets": [len(data), end],
                }
                pairs.append(("z", entry))
                continue
        if i < len(pairs):
            pairs[i] = (name, entry)
        pairs = pairs or [("x", {})]
    rng.shuffle(pairs)
    text = ", ".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in pairs)
    return join(f"{{{text}}}".encode(), data)


def change_metadata(rng, _, content):
    header, data = split(content)
    values = ["{}", '{"a": "b"}', '{"a": 1}', "null", "[]", '"a"', '{"a": {}}', "3"]
    values += ['{"a": "b", "a": "c"}', '{"a": null}']
    text = f'{{"__metadata__": {rng.choice(values)}, {header.decode().lstrip()[1:]}'
    return join(text.encode(), data)


def leave(_, __, content):
    return content


CHANGES = [leave, change_bytes, change_bytes, cut, append, change_length]
CHANGES += [change_text] * 4 + [change_entries] * 4 + [change_metadata]


def classify(content):
    """Which of the differences from the format's own library a file has: the names
    of those by which varlen-run refuses what the library may accept, and of those by
    which it accepts what the library may refuse."""
    stricter, looser = set(), set()
    depth = 0

    def number(text):
        if not re.fullmatch(r"0|-?[1-9]\d*", text) or not -(2**63) <= int(text) < 2**63:
            stricter.add("numbers that are no integers of 64 bits")
        return text

    def pairs(items):
        names = [name for name, _ in items]
        if len(set(names)) != len(names):
            stricter.add("a name twice")
        if any("\ud800" <= c <= "\udfff" for name in names for c in name):
            # They are read as U+FFFD, and may then be one name twice.
            stricter.add("half of a character")
            looser.add("half of a character")
        return dict(items)

    try:
        header, _ = split(content)
        text = header.decode()
        value = json.loads(
            text, object_pairs_hook=pairs, parse_int=number, parse_float=number
        )
    except (ValueError, struct.error, RecursionError):
        return stricter, looser

    for token in re.findall(r'"(?:\\.|[^"\\])*"|[\[{]|[\]}]', text, re.S):
        if token in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                stricter.add("deep nesting")
        elif token in "]}":
            depth -= 1
    if re.search(r"\\u[dD][89a-fA-F]", text):
        looser.add("half of a character")
    entries = value.items() if isinstance(value, dict) else ()
    for name, entry in entries:
        if name == "__metadata__":
            continue
        if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str):
            stricter.add("an entry in another form")
        elif entry["dtype"] not in DTYPES:
            looser.add("a dtype that is not supported")
    return stricter, looser


def fits(tensors):
    """Whether @identity can take the tensors."""
    wanted = {"x": (("F32",), 2), "n": (("I32", "U32"), 1)}
    return all(
        name in tensors
        and tensors[name]["dtype"] in dtypes
        and len(tensors[name]["shape"]) == rank
        for name, (dtypes, rank) in wanted.items()
    )


def check(case, content, outcome, entry):
    out = case.folder / "out.safetensors"
    stricter, looser = classify(content)
    try:
        tensors = dict(deserialize(content))
        accepted = entry == "nothing" or fits(tensors)
    except SafetensorError:
        tensors, accepted = None, False
    case.session.note("accepted" if outcome.status == 0 else "refused")
    if len(outcome.message()) > MAX_MESSAGE:
        case.fail(f"a message of {len(outcome.message())} characters", outcome)
    left = sorted(path.name for path in case.folder.iterdir())
    if left != ["in.safetensors"] + ["out.safetensors"] * (outcome.status == 0):
        case.fail(f"the run has left {left}", outcome)
    elif outcome.status and not outcome.message().startswith(
        "error: in.safetensors: "
    ):
        case.fail("wanted a message that names the file", outcome)
    elif outcome.status and accepted and not stricter:
        case.fail("a good file is refused", outcome)
    elif outcome.status == 0 and not accepted and not looser:
        case.fail("a broken file is accepted", outcome)
    elif outcome.status == 0 and accepted and entry == "identity":
        results = dict(deserialize(out.read_bytes()))
        for name in ("x", "n"):
            same = ("shape", "data")
            if any(results[name][key] != tensors[name][key] for key in same):
                case.fail(f"'{name}' is not what the file has", outcome)


def run(session):
    corpus = [path.read_bytes() for path in sorted(session.corpus.iterdir())]
    for case in session.cases():
        rng = case.rng
        content = rng.choice(corpus)
        for _ in range(rng.choice((1, 1, 1, 2))):
            try:
                content = rng.choice(CHANGES)(rng, corpus, content)
            except (ValueError, AttributeError, struct.error, TypeError):
                # What is broken already cannot be read to be changed again.
                break
        (case.folder / "in.safetensors").write_bytes(content)
        entry = rng.choice(("nothing", "identity"))
        outcome = case.run(
            [session.tool("varlen-run"), MODULE, "in.safetensors", f"--entry={entry}"]
            + ["-o", "out.safetensors", "--threads=1"]
        )
        if not outcome.crash():
            check(case, content, outcome, entry)
