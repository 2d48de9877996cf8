"""Calls of the functions of varlen, varlen.torch and varlen.jax: each is a Call of
python_meaning in the words of one of them."""

import contextlib
import dataclasses
import functools

import imported
import numpy as np
import python_arguments as arguments
import python_meaning as meaning
import torch
import varlen
import varlen.torch
from doors.importers import make_case
from python_arguments import ANY, REFUSED, SAME, Change
from torch.nn.attention import activate_flash_attention_impl, restore_flash_attention_impl
from torch.nn.attention import varlen as upstream
from varlen import kv_cache, scores
from varlen._arrays import name_layout

import jax
import varlen.jax

jax.config.update("jax_enable_x64", True)

FLAGS = {"return_aux": varlen.torch.AuxRequest(lse=True), "enable_gqa": True}
OPTIONAL = (*meaning.SEQUENCES, "sink")
# Of quantised keys and values.
LARGEST = dict(zip(meaning.QUANTISED, (127, 448), strict=True))


class Surface:
    """A function and a Call in its words, of which arguments may be changed. `words` has the
    keyword of each operand; options that the function does not have are not in `keywords`.
    `mixes`: its arrays may be of several libraries; `optional`: operands that may be None;
    `refused`: those that must be; `differentiates`: whether it has gradients."""

    library, words, keywords, below_is_open = "numpy", {}, {}, False
    mixes, optional, refused, differentiates = False, OPTIONAL, (), True

    def __init__(self, rng, numbers):
        case = self.adapt(rng, make_case(rng))
        self.call = meaning.make_call(case, numbers)
        self.case = case
        self.finish_call(rng)
        self.arguments = self.spell()
        self.captures = self.arguments.get("captures", [])

    def adapt(self, rng, case):
        return case

    def finish_call(self, rng):
        pass

    def word(self, name):
        return self.words.get(name, name)

    def spell(self):
        call = self.call
        given = {name: arguments.to_library(self.library, x) for name, x in call.given.items()}
        captures = [given.pop(name) for name in call.captures]
        spelled = {self.word(name): x for name, x in given.items()}
        for name, keyword in self.keywords.items():
            spelled[keyword] = {"score": call.score, "captures": captures}.get(
                name, call.options.get(name)
            )
        return {name: x for name, x in spelled.items() if x is not None}

    def change(self, rng):
        """Puts a hostile value in the place of an argument. Returns the Change, and of what."""
        given = list(self.call.given)
        options = {
            "window": lambda: arguments.windows(rng, self.below_is_open),
            "chunk": lambda: arguments.chunks(rng), "scale": lambda: arguments.scales(rng),
            "alignment": lambda: arguments.alignments(rng),
            "score": lambda: arguments.wrong_scores(rng),
            "captures": lambda: arguments.wrong_captures(rng, self.captures),
        }  # fmt: skip
        options = {name: make for name, make in options.items() if name in self.keywords}
        options |= self.other_options(rng)
        if rng.random() < 0.4 and options:
            name = rng.choice(sorted(options))
            if name in arguments.OF_DROPOUT:
                self.arguments |= {"dropout_p": 0.5, "seed": 1}
            change = options[name]()
            self.arguments[self.keywords.get(name, name)] = change.value
            return change, name
        name = rng.choice(given + [x for x in OPTIONAL if self.takes(x)] + list(self.refused))
        if name in self.refused:
            change = Change(self.make_other(rng, np.zeros(3, "i4")), REFUSED)
        elif name not in given:
            # An operand that there was none of.
            shape = self.call.given["cu_seqlens_q"].shape
            array = np.zeros(1, "f4") if name == "sink" else np.zeros(shape, "i4")
            change = Change(self.make_other(rng, array), ANY, True)
        else:
            optional = name in self.optional and name not in self.call.captures
            change = arguments.change_array(
                rng, name, self.library, self.call.given[name], optional, self.mixes
            )
        if name in self.call.captures and "captures" in self.keywords:
            captures = list(self.captures)
            captures[self.call.captures.index(name)] = change.value
            self.arguments["captures"] = captures
        else:
            self.arguments[self.word(name)] = change.value
        return change, name

    def make_other(self, rng, array):
        """An argument that the call has none for: an array or what is none."""
        return rng.choice((arguments.to_library(self.library, array), *arguments.OBJECTS))

    def other_options(self, rng):
        count = len(self.call.given["cu_seqlens_q"]) - 1
        return {"is_causal": lambda: arguments.causals(rng, self.below_is_open)} | {
            name: lambda name=name: arguments.of_dropout(rng, name, self.library, count)
            for name in arguments.OF_DROPOUT
        }

    def takes(self, name):
        return True

    def make_out(self):
        """An array for the out of the call that is meant; of some shape where that is none."""
        q, v = self.call.given["q"], self.call.given["v"]
        shape = (*q.shape[:2], *v.shape[-1:])
        return arguments.to_library(self.library, np.full(shape, 7).astype(q.dtype))

    def forward(self):
        """out and lse."""

    def backward(self, results):
        """Gradients by name, of results that forward has returned."""


class Arrays(Surface):
    """varlen.attn and varlen.attn_grad."""

    keywords = {x: x for x in ("window", "chunk", "scale", "alignment", "score", "captures")}
    mixes, optional = True, (*OPTIONAL, "cu_seqlens_k")
    libraries = "numpy", "numpy", "torch", "jax"

    def __init__(self, rng, numbers):
        self.library = rng.choice(self.libraries)
        super().__init__(rng, numbers)
        self.gives_out = rng.random() < 0.3 and self.library != "jax"

    def other_options(self, rng):
        return super().other_options(rng) | {"num_threads": lambda: arguments.threads(rng)}

    def forward(self):
        given = self.make_out() if self.gives_out else None
        out, lse = varlen.attn(**self.arguments, out=given, return_lse=True)
        assert given is None or out is given, "out is another array than the one given"
        if given is None and isinstance(self.arguments["q"], torch.Tensor):
            assert isinstance(out, torch.Tensor), f"out is a {type(out)} where q is torch's"
        return {"out": out, "lse": lse}

    def backward(self, results):
        call = self.call
        dout, dlse = (
            x if x is None else arguments.to_library(self.library, x)
            for x in (call.dout, call.dlse)
        )
        gradients = varlen.attn_grad(
            dout, out=results["out"], lse=results["lse"], dlse=dlse, **self.arguments
        )
        names = ["dq", "dk", "dv", *(["dsink"] if "sink" in call.given else [])]
        return dict(zip([*names, *(f"d{x}" for x in call.captures)], gradients, strict=True))


def to_pages(rng, given, may_share=True):
    """Puts the keys and values of a call into pages, of any order, which sequences may share.
    Rows that no sequence has are NaN, and entries that none uses any numbers."""
    page, lengths = rng.choice((1, 2, 3, 8)), np.diff(given["cu_seqlens_k"]).tolist()
    counts = [-(-length // page) for length in lengths]
    total = sum(counts) + rng.choice((0, 1, 3))
    is_shared = rng.random() < 0.3 and may_share
    free = rng.choices(range(total), k=total) if is_shared else rng.sample(range(total), total)
    width = max(counts, default=0) + rng.choice((0, 0, 2))
    table = np.full((len(lengths), width), rng.choice((-1, 0, 2**31 - 1, -(2**31))), "i4")
    pools = {}
    for name in ("k", "v"):
        tail, kind = given[name].shape[1:], given[name].dtype
        pools[name] = np.full((total, page, *tail), np.nan).astype(kind)
    for number, (first, length) in enumerate(zip(given["cu_seqlens_k"], lengths)):
        for entry in range(counts[number]):
            table[number, entry] = place = free.pop()
            begin, end = entry * page, min(length, (entry + 1) * page)
            for name, pool in pools.items():
                pool[place, : end - begin] = given[name][first + begin : first + end]
    del given["cu_seqlens_k"]
    given |= pools | {"seqused_k": np.array(lengths, "i4"), "block_table": table}


class InPages:
    """Calls of a function with keys in pages."""

    optional, refused = ("seqused_q", "q_offset", "sink"), ("cu_seqlens_k",)
    differentiates, may_share = False, True

    def adapt(self, rng, case):
        of = case.score.captures.values() if case.score else ()
        if any("kv_rows" in scores.CAPTURES[x] for x in of) and rng.random() < 0.9:
            case = dataclasses.replace(case, score=None)  # Its captures are of packed keys.
        return super().adapt(rng, dataclasses.replace(case, seqused_k=False))

    def finish_call(self, rng):
        super().finish_call(rng)
        to_pages(rng, self.call.given, self.may_share)

    def backward(self, results):
        return {}


class Pages(InPages, Arrays):
    """varlen.attn of keys in pages."""


def take_new(given, counts):
    """The caches of a call without the last rows of each sequence, NaN or -128 in their places, and
    these rows, packed: k_cache, v_cache, k and v by name."""
    page, taken = given["k"].shape[1], {}
    for name in ("k", "v"):
        cache, rows = given[name].copy(), []
        for entries, length, count in zip(given["block_table"], given["seqused_k"].tolist(), counts):
            for position in range(length - count, length):
                at = entries[position // page], position % page
                rows.append(cache[at].copy())
                cache[at] = -128 if cache.dtype == np.int8 else np.nan
        taken[f"{name}_cache"] = cache
        taken[name] = np.array(rows, cache.dtype).reshape(len(rows), *cache.shape[2:])
    return taken


def write_whole(write, caches, given):
    """Calls a function that writes to caches, which may not change where it refuses."""
    caches = [x for x in caches if isinstance(x, (np.ndarray, torch.Tensor)) and x.ndim in (3, 4)]
    readable = [x for x in caches if not isinstance(x, torch.Tensor) or x.layout is torch.strided]
    readable = [x for x in readable if isinstance(x, np.ndarray) or not (x.is_meta or x.is_quantized)]
    before = [arguments.to_numpy(x).tobytes() for x in readable]
    try:
        return write(**given)
    except Exception:
        after = [arguments.to_numpy(x).tobytes() for x in readable]
        assert before == after, "a cache has changed, in spite of an error"
        raise


class Appends:
    """Calls that append some of the keys and values first. Arguments of that have `append_` before
    their names."""

    may_share = False
    take_new = staticmethod(take_new)
    # Names of what is written, there and in the attention.
    written = {"k_cache": "k", "v_cache": "v"}

    def spell(self):
        given = self.call.given
        lengths = given["seqused_k"]
        counts = [self.draw.randint(0, length) for length in lengths.tolist()]
        operands = self.take_new(given, counts) | {
            "cu_seqlens": np.cumsum([0, *counts]).astype(lengths.dtype),
            "seqused_k": lengths - np.array(counts, lengths.dtype),
            "block_table": given["block_table"],
        }
        self.operands = operands
        library = self.library
        spelled = {f"append_{name}": arguments.to_library(library, x) for name, x in operands.items()}
        return super().spell() | spelled

    def finish_call(self, rng):
        super().finish_call(rng)
        self.draw = rng

    def change(self, rng):
        while rng.random() < 0.4:
            before = dict(self.arguments)
            change, name = super().change(rng)
            if name not in self.written.values():
                return change, name
            self.arguments = before  # What is written is in their places.
        name = rng.choice(sorted(self.operands))
        change = arguments.change_array(
            rng, name, self.library, self.operands[name], name == "block_table", self.mixes
        )
        self.arguments[f"append_{name}"] = change.value
        meant = change.meaning if change.meaning in (SAME, REFUSED) else ANY
        return Change(change.value, meant, True), f"append_{name}"

    def write(self, append):
        """Arguments of the attention to what has been appended."""
        given, others = {}, {}
        for name, x in self.arguments.items():
            own = name.removeprefix("append_")
            (others if own == name else given)[own] = x
        write_whole(append, [given[name] for name in self.written], given)
        return others | {self.word(of): given[name] for name, of in self.written.items()}


class QuantisedAppends(Appends):
    """Calls that quantise what they append."""

    written = {**Appends.written, "k_scale": "k_scale", "v_scale": "v_scale"}

    def adapt(self, rng, case):
        case = super().adapt(rng, case)
        return dataclasses.replace(case, element="f32") if case.element == "f64" else case

    def finish_call(self, rng):
        super().finish_call(rng)
        given, element = self.call.given, rng.choice(meaning.QUANTISED)
        self.rows = {name: given[name] for name in ("k", "v")}
        for name, of in meaning.SCALES.items():
            given[of], given[name] = kv_cache.quantise(given[of], element)

    def take_new(self, given, counts):
        """The rows before they are quantised, and caches and scales without them."""
        taken, rows = take_new(given, counts), take_new({**given, **self.rows}, counts)
        for name, of in meaning.SCALES.items():
            taken[of] = rows[of]
            spread = {**given, "k": given[name][..., None], "v": given[name][..., None]}
            taken[name] = take_new(spread, counts)[f"{of}_cache"][..., 0]
        return taken


def quantise(rng, given):
    """Makes keys and values of a call quantised ones, with scales of any rank or without. What rows
    are multiplied by that no sequence has is NaN."""
    element = rng.choice(meaning.QUANTISED)
    numbers = np.random.default_rng(rng.getrandbits(32))
    for name, of in meaning.SCALES.items():
        rows = np.asarray(given[of], "f8")
        rank = rng.randrange(rows.ndim)
        scale = np.ones((*rows.shape[: max(rank, 1) - 1], rows.shape[-2]))
        if rank:
            largest = np.nanmax(np.abs(rows), initial=1.0)
            scale *= numbers.uniform(1, 2, scale.shape) * largest / LARGEST[element]
        given[of] = rows / meaning.spread(scale, rows)
        if element == np.int8:
            given[of] = np.nan_to_num(np.rint(given[of]), nan=-128)
        given[of] = given[of].astype(element)
        if rank > 1:
            shared = tuple(range(rank - 1, rows.ndim - 2))
            scale[np.isnan(rows).all((*shared, -1))] = np.nan
        if rank:
            given[name] = scale.astype("f4")


class Quantised:
    """Calls of a function with quantised keys and values."""

    differentiates = False

    def quantise(self, rng):
        quantise(rng, self.call.given)

    def adapt(self, rng, case):
        case = super().adapt(rng, case)
        return dataclasses.replace(case, element="f32") if case.element == "f64" else case

    def finish_call(self, rng):
        super().finish_call(rng)
        self.quantise(rng)
        self.optional = (*self.optional, *meaning.SCALES)

    def backward(self, results):
        return {}


class QuantisedArrays(Quantised, Arrays):
    """varlen.attn of quantised keys."""


class QuantisedPages(Quantised, Pages):
    """varlen.attn of quantised keys in pages."""


class Append(Appends, Pages):
    """varlen.append, and varlen.attn of what it has written."""

    libraries = "numpy", "torch"

    def forward(self):
        mine = self.arguments
        self.arguments = self.write(varlen.append)
        try:
            return super().forward()
        finally:
            self.arguments = mine


class QuantisedAppend(QuantisedAppends, Append):
    """varlen.append that quantises, and varlen.attn of what it has written."""


class Torch(Surface):
    """varlen.torch.varlen_attn."""

    library, below_is_open = "torch", True
    words = {
        "q": "query", "k": "key", "v": "value", "cu_seqlens_q": "cu_seq_q",
        "cu_seqlens_k": "cu_seq_k",
    }  # fmt: skip
    keywords = {
        "window": "window_size", "chunk": "chunk", "scale": "scale", "score": "score",
        "captures": "captures",
    }  # fmt: skip

    def adapt(self, rng, case):
        self.mode = rng.choice(("eager",) * 6 + ("no_grad", "inference"))
        return dataclasses.replace(case, alignment="bottom_right")

    def require_gradients(self):
        """The tensors that results may depend on, by the names of their gradients."""
        given, leaves = self.arguments, {}
        if self.mode != "eager" or not self.differentiates:
            return leaves
        names = {self.word(x): f"d{x}" for x in ("q", "k", "v", "sink")}
        found = {names[x]: given.get(x) for x in names}
        if isinstance(given.get("captures"), list):
            found |= zip((f"d{x}" for x in self.call.captures), given["captures"])
        for name, x in found.items():
            if (
                isinstance(x, torch.Tensor)
                and x.is_floating_point()
                and x.is_leaf
                and not x.is_meta
            ):
                leaves[name] = x.requires_grad_()
        return leaves

    @contextlib.contextmanager
    def in_mode(self):
        with contextlib.ExitStack() as stack:
            if self.mode == "no_grad":
                stack.enter_context(torch.no_grad())
            elif self.mode == "inference":
                stack.enter_context(torch.inference_mode())
            yield

    def other_options(self, rng):
        return super().other_options(rng) | {"return_aux": lambda: arguments.auxiliaries(rng)}

    def attend(self):
        return varlen.torch.varlen_attn(**{**FLAGS, **self.arguments})

    def forward(self):
        self.leaves = self.require_gradients()
        with self.in_mode():
            out, lse = self.attend()
        return {"out": out, "lse": lse}

    def backward(self, results):
        dout, dlse = self.call.dout, self.call.dlse
        outputs, cotangents = [results["out"]], [arguments.to_library("torch", dout)]
        if dlse is not None:
            outputs.append(results["lse"])
            cotangents.append(arguments.to_library("torch", dlse))
        if not self.leaves:
            return {}
        gradients = torch.autograd.grad(outputs, list(self.leaves.values()), cotangents)
        return dict(zip(self.leaves, gradients))


class TorchOut(Torch):
    """varlen.torch.varlen_attn_out."""

    def adapt(self, rng, case):
        case = super().adapt(rng, case)
        self.mode = "no_grad"
        return case

    def attend(self):
        out = self.make_out()
        results = varlen.torch.varlen_attn_out(out, **{**FLAGS, **self.arguments})
        assert results[0] is out
        return results


class Meta(Torch):
    """varlen.torch.varlen_attn of tensors without data: it refuses the same calls."""

    def attend(self):
        mine = dict(self.arguments)
        places = {self.word(name) for name in self.call.given} | {"captures"}
        for name in mine.keys() & places:
            move = torch.utils._pytree.tree_map_only
            try:
                self.arguments[name] = move(
                    torch.Tensor, lambda x: x.detach().to("meta"), mine[name]
                )
            except (RuntimeError, NotImplementedError):
                pass  # A layout that is not offered there.
        try:
            return super().attend()
        finally:
            self.arguments = mine


class InTorchPages(InPages):
    refused = ()  # cu_seq_k is not read: PyTorch takes one beside a block_table.

    def spell(self):
        return {"cu_seq_k": None, **super().spell()}


class TorchPages(InTorchPages, Torch):
    """varlen.torch.varlen_attn of keys in pages."""


class TorchAppend(Appends, TorchPages):
    """varlen.torch.append, and varlen.torch.varlen_attn of what it has written."""

    def attend(self):
        mine = self.arguments
        self.arguments = self.write(varlen.torch.append)
        try:
            return super().attend()
        finally:
            self.arguments = mine


class QuantisedTorchAppend(QuantisedAppends, TorchAppend):
    """varlen.torch.append that quantises, and varlen.torch.varlen_attn of what it has written."""


class TorchOutPages(InTorchPages, TorchOut):
    """varlen.torch.varlen_attn_out of keys in pages."""


class MetaPages(InTorchPages, Meta):
    """varlen.torch.varlen_attn of keys in pages without data."""


class QuantisedTorch(Quantised, Torch):
    """varlen.torch.varlen_attn of quantised keys."""


class QuantisedTorchPages(Quantised, TorchPages):
    """varlen.torch.varlen_attn of quantised keys in pages."""


class QuantisedMeta(Quantised, Meta):
    """varlen.torch.varlen_attn of quantised keys without data."""


class Flash(Torch):
    """varlen.torch.flash_attn_varlen_func."""

    def other_options(self, rng):
        return {}

    words = {"sink": "learnable_sink"}
    keywords = {"window": "window_size", "scale": "softmax_scale"}

    def takes(self, name):
        return name != "q_offset"

    def adapt(self, rng, case):
        case = super().adapt(rng, case)
        self.cap, self.rank = rng.choice((0, 0.0, 2.5, 30)), rng.choice((0, 0, 1, 2))
        chunked = case.chunk is not None
        return dataclasses.replace(
            case, score=None, q_offset=False, window=(-1, -1) if chunked else case.window
        )

    def finish_call(self, rng):
        call, count = self.call, len(self.case.queries)
        self.more = {}
        if call.options["chunk"] is not None:
            self.more |= {"causal": True, "attention_chunk": call.options["chunk"]}
        elif call.options["window"][1] == 0 and rng.random() < 0.5:
            self.more["causal"] = True
        rank = self.rank if count else min(self.rank, 1)
        cap = scores.softcap(self.cap) if self.cap else None
        bias = (None, scores.alibi(), scores.query_alibi())[rank]
        call.score = scores.compose(cap, bias) if cap and bias else cap or bias
        if self.cap:
            self.more["softcap"] = self.cap
        if rank:
            wide = (
                call.dlse.dtype
                if call.dlse is not None
                else np.dtype("f8" if call.element == "f64" else "f4")
            )
            heads = call.given["q"].shape[1]
            slopes = np.array(
                [rng.uniform(0.1, 1) for _ in range(heads * count ** (rank - 1))], wide
            ).reshape((count, heads)[2 - rank :])  # fmt: skip
            self.more["alibi_slopes"] = arguments.to_library("torch", slopes)
            rows = len(call.given["q"])
            sequence = np.searchsorted(
                call.given["cu_seqlens_q"][1:], np.arange(rows), side="right"
            )
            per_row = slopes[sequence.clip(max=count - 1)].T.copy() if rank == 2 else slopes
            call.given["slopes"] = per_row

    def spell(self):
        spelled = {**super().spell(), **self.more}
        spelled.pop("slopes", None)
        return spelled

    def change(self, rng):
        kind = rng.random()
        if kind < 0.2:
            name = rng.choice(("softcap", "alibi_slopes", "attention_chunk", "dropout_p", "causal"))
            value = rng.choice((*arguments.OBJECTS, 2**63, -3, 0.5, float("inf")))
            self.arguments[name] = value
            # Some of them are what the function takes.
            return Change(value, ANY, True), name
        while True:
            change, name = super().change(rng)
            if name != "slopes":
                break
            del self.arguments[name]  # Its numbers are not those of the call.
        if name == "window" and callable(change.meaning) and "causal" in self.more:
            change.meaning = functools.partial(self.mean_causal, change.meaning)
        if name == "sink" and callable(change.meaning):
            change.meaning = functools.partial(self.mean_sink, change.meaning)
        return change, name

    @staticmethod
    def mean_sink(put, call):
        """A sink of any float type, which is converted."""
        put(call)
        sink = call.given.get("sink")
        if sink is not None and sink.dtype in meaning.NAMES:
            wide = np.float64 if call.given["q"].dtype == np.float64 else np.float32
            call.given["sink"] = sink.astype(wide)

    @staticmethod
    def mean_causal(put, call):
        """A window beside causal=True, whatever its right side says."""
        put(call)
        left, _ = call.options["window"]
        is_chunk = call.options["chunk"] is not None
        call.options["window"] = (left, -1 if is_chunk and left < 0 else 0)

    def attend(self):
        return varlen.torch.flash_attn_varlen_func(**self.arguments, return_attn_probs=True)[:2]

    def backward(self, results):
        self.leaves.pop("dslopes", None)
        return super().backward(results)


class QuantisedFlash(Quantised, Flash):
    """varlen.torch.flash_attn_varlen_func of quantised keys."""

    def quantise(self, rng):
        given, element = self.call.given, rng.choice(meaning.QUANTISED)
        count, heads = len(given["cu_seqlens_q"]) - 1, given["k"].shape[-2]
        numbers = np.random.default_rng(rng.getrandbits(32))
        lengths = np.diff(given["cu_seqlens_k"])
        self.descales = {}
        for name, of in meaning.SCALES.items():
            descale = numbers.uniform(0.01, 0.02, (count, heads)).astype("f4")
            if rng.random() < 0.5:
                descale = np.broadcast_to(descale[:1], descale.shape)
            rows = numbers.integers(-99, 100, given[of].shape)
            given[of] = rows.astype(element)
            # For the results: of each row, of which some are behind the last sequence.
            given[name] = np.ones((len(rows), heads), "f4")
            given[name][: lengths.sum()] = np.repeat(descale, lengths, 0)
            self.descales[f"{of}_descale"] = arguments.to_library("torch", descale)

    def spell(self):
        spelled = super().spell()
        return {x: y for x, y in spelled.items() if x not in meaning.SCALES} | self.descales

    def change(self, rng):
        if rng.random() < 0.3:
            name = rng.choice(sorted(self.descales))
            change = arguments.change_array(
                rng, name, "torch", self.descales[name].numpy(), False, False
            )
            self.arguments[name] = change.value
            # None is 1.
            meant = SAME if change.meaning is SAME else ANY
            return Change(change.value, meant, True), name
        while True:
            change, name = super().change(rng)
            if name not in meaning.SCALES:
                return change, name
            del self.arguments[name]


class FlashPages(InTorchPages, Flash):
    """varlen.torch.flash_attn_varlen_func of keys in pages."""

    words = {**Flash.words, "cu_seq_k": "cu_seqlens_k"}

    def spell(self):
        spelled = super().spell()
        spelled["cu_seqlens_k"] = spelled.pop("cu_seq_k")
        return spelled


class FlashCache(FlashPages):
    """varlen.torch.flash_attn_with_kvcache."""

    may_share = False

    def adapt(self, rng, case):
        length = rng.choice((0, 1, 3))
        queries = (length,) * len(case.queries)
        case = dataclasses.replace(case, queries=queries, rows_behind=0, seqused_q=False)
        return super().adapt(rng, case)

    def finish_call(self, rng):
        super().finish_call(rng)
        lengths = self.call.given["seqused_k"].tolist()
        self.new = rng.randint(0, min(lengths, default=0))

    def spell(self):
        given, spelled = self.call.given, super().spell()
        count = len(given["seqused_k"])
        taken = take_new(given, [self.new] * count)
        taken["cache_seqlens"] = given["seqused_k"] - self.new
        for name in ("k", "v"):
            rows = taken[name].reshape(count, self.new, *taken[name].shape[1:])
            taken[name] = rows if self.new else None
        for name in ("cu_seqlens_q", "cu_seqlens_k", "seqused_k"):
            spelled.pop(name)
        q = spelled["q"]
        spelled["q"] = q.view(count, len(q) // max(count, 1), *q.shape[1:])
        return spelled | {
            name: x if x is None else arguments.to_library("torch", x) for name, x in taken.items()
        }

    def change(self, rng):
        name = rng.choice(sorted(self.arguments))
        x = self.arguments[name]
        if isinstance(x, torch.Tensor):
            change = arguments.change_array(rng, name, "torch", arguments.to_numpy(x), False, False)
            value, is_wrong = change.value, change.meaning is REFUSED and change.value is not None
        else:
            value, is_wrong = rng.choice((*arguments.OBJECTS, 2**63, -3, 0.5, float("inf"))), False
        self.arguments[name] = value
        return Change(value, REFUSED if is_wrong else ANY, True), name

    def attend(self):
        caches = self.arguments["k_cache"], self.arguments["v_cache"]
        given = self.arguments | {"return_softmax_lse": True}
        out, lse = write_whole(varlen.torch.flash_attn_with_kvcache, caches, given)
        return out.flatten(0, 1), lse.transpose(0, 1).flatten(1)


class FlashDense(Flash):
    """varlen.torch.flash_attn_func: sequences of one length."""

    def takes(self, name):
        return name == "sink"

    def adapt(self, rng, case):
        case = super().adapt(rng, case)
        self.cap, self.rank = self.cap, min(self.rank, 1)
        count = len(case.queries)
        queries, keys = rng.choice((0, 1, 5)), rng.choice((0, 1, 7))
        return dataclasses.replace(
            case, queries=(queries,) * count, keys=(keys,) * count, rows_behind=0,
            seqused_q=False, seqused_k=False,
        )  # fmt: skip

    def finish_call(self, rng):
        given = self.call.given
        for name in ("k", "v"):
            given[name] = given[name][:-1]
        super().finish_call(rng)

    def spell(self):
        spelled, count = super().spell(), len(self.case.queries)
        lengths = {"q": self.case.queries, "k": self.case.keys, "v": self.case.keys}
        for name, of in lengths.items():
            length = of[0] if of else 0
            spelled[name] = spelled[name].view(count, length, *spelled[name].shape[1:])
        return {x: y for x, y in spelled.items() if x not in (*meaning.OFFSETS, "slopes")}

    def change(self, rng):
        while True:
            change, name = super().change(rng)
            if name not in meaning.OFFSETS:
                break
            del self.arguments[name]
        if name in "qkv":
            # Of packed rows; here they lack an extent, or mean another batch.
            return Change(change.value, REFUSED if change.meaning is REFUSED else ANY, True), name
        return change, name

    def attend(self):
        out, lse, _ = varlen.torch.flash_attn_func(**self.arguments, return_attn_probs=True)
        return out.flatten(0, 1), lse.transpose(0, 1).flatten(1)

    def backward(self, results):
        return {
            x: y.flatten(0, 1) if x in ("dq", "dk", "dv") else y
            for x, y in super().backward(results).items()
        }


class Provider(Torch):
    """torch.nn.attention.varlen.varlen_attn on the provider."""

    def other_options(self, rng):
        return {}

    keywords = {"window": "window_size", "scale": "scale"}

    def takes(self, name):
        return name == "seqused_k"

    def adapt(self, rng, case):
        case = super().adapt(rng, case)
        if case.seqused_k:
            self.mode = "no_grad"  # It has no gradients with that.
        # Its lse has no gradient.
        return dataclasses.replace(
            case, score=None, chunk=None, sink=False, seqused_q=False, q_offset=False, lse=False
        )

    def change(self, rng):
        before = dict(self.arguments)
        while True:
            change, name = super().change(rng)
            # PyTorch's dispatcher refuses other types and layouts, nested tensors without a
            # sequence too, before a provider's kernel is called.
            strided = isinstance(change.value, torch.Tensor) and not name_layout(change.value)
            strided = strided and change.meaning is not REFUSED
            if strided and name not in ("scale", "window") and change.value.dim():
                return change, name
            self.arguments = dict(before)

    def attend(self):
        varlen.torch.install()
        activate_flash_attention_impl("VARLEN")
        try:
            return upstream.varlen_attn(
                max_q=9,
                max_k=9,
                **self.arguments,
                return_aux=upstream.AuxRequest(lse=True),
                enable_gqa=True,
            )
        finally:
            restore_flash_attention_impl()


class ProviderPages(InTorchPages, Provider):
    """torch.nn.attention.varlen.varlen_attn of keys in pages on the provider."""

    def takes(self, name):
        return False


class Jax(Surface):
    """varlen.jax.varlen_attn, at once and traced."""

    library = "jax"
    keywords, optional = Arrays.keywords, Arrays.optional

    def adapt(self, rng, case):
        self.jit = rng.random() < 0.5
        return case

    def attend(self, numbers, others, lists):
        given = {**self.arguments, **numbers, **others}
        if lists:
            given["captures"] = lists
        return varlen.jax.varlen_attn(**given, return_lse=True)

    def split(self):
        """Arrays that have gradients, and those that have none."""
        numbers, others = {}, {}
        for name, x in self.arguments.items():
            if isinstance(x, jax.Array) and x.ndim and name not in self.keywords.values():
                floating = jax.numpy.issubdtype(x.dtype, jax.numpy.floating)
                (numbers if floating else others)[name] = x
        lists = self.arguments.get("captures")
        is_list = isinstance(lists, list) and all(isinstance(x, jax.Array) for x in lists)
        is_list = is_list and all(jax.numpy.issubdtype(x.dtype, jax.numpy.floating) for x in lists)
        return numbers, others, lists if is_list else []

    def forward(self):
        numbers, others, lists = self.split()
        attend = jax.jit(self.attend) if self.jit else self.attend
        if self.differentiates and numbers.keys() >= {"q", "k", "v"}:
            results, self.vjp = jax.vjp(lambda x, y: attend(x, others, y), numbers, lists)
        else:
            results, self.vjp = attend(numbers, others, lists), None
        return dict(zip(("out", "lse"), jax.block_until_ready(results)))

    def backward(self, results):
        if self.vjp is None:
            return {}
        dlse = self.call.dlse
        dlse = jax.numpy.zeros_like(results["lse"]) if dlse is None else jax.numpy.asarray(dlse)
        gradients, of_captures = self.vjp((jax.numpy.asarray(self.call.dout), dlse))
        found = {f"d{name}": x for name, x in gradients.items()}
        return found | {f"d{name}": x for name, x in zip(self.call.captures, of_captures)}


class JaxPages(InPages, Jax):
    """varlen.jax.varlen_attn of keys in pages, at once and traced."""


SURFACES = (
    Arrays, Torch, Torch, TorchOut, Meta, Flash, FlashDense, Provider, Jax,
    Arrays, TorchAppend, FlashCache, TorchOut, Meta, FlashPages, FlashDense, ProviderPages, Jax,
    Arrays, Append, Pages, TorchPages, TorchOutPages, MetaPages, JaxPages,
    QuantisedArrays, QuantisedPages, QuantisedTorch, QuantisedTorchPages, QuantisedMeta, QuantisedFlash,
    QuantisedAppend, QuantisedTorchAppend,
)  # fmt: skip

__all__ = ["ANY", "REFUSED", "SAME", "SURFACES", "Meta", "imported"]
