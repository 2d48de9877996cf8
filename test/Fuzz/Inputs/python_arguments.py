"""Hostile arguments of Python functions: what takes the place of an argument, and what it
means there."""

import dataclasses
import functools

import imported
import ml_dtypes
import numpy as np
import torch
import torch_cases

import jax
from jax import numpy as jnp

# What a value means that is in the place of an argument. A function of a Call in place of one
# of these makes of the call what it means with it.
REFUSED, SAME, ANY = "refused", "same", "any"


@dataclasses.dataclass
class Change:
    """A value for an argument. `may_refuse`: that it is refused is right, too."""

    value: object
    meaning: object
    may_refuse: bool = False


# -- Arrays of libraries ---------------------------------------------------------


def to_library(library, array):
    if library == "torch":
        # A copy, which is aligned as torch's own.
        return torch_cases.to_torch(np.array(array, order="C"))
    return jnp.asarray(array) if library == "jax" else array


def to_numpy(array):
    if isinstance(array, torch.Tensor):
        return torch_cases.to_numpy(array.detach().resolve_conj().resolve_neg().contiguous())
    return np.asarray(array)


# -- Layouts: the same numbers in memory of another form --------------------------


def _numpy_layouts(x):
    def strided():
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]

    def misaligned():
        raw = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
        raw[...] = x
        return raw

    def read_only():
        y = x.copy()
        y.flags.writeable = False
        return y

    def swapped():
        has_order = x.itemsize > 1 and x.dtype != ml_dtypes.bfloat16
        return x.astype(x.dtype.newbyteorder(">")) if has_order else x

    class Subclass(np.ndarray):
        pass

    return {
        "strided": strided, "misaligned": misaligned, "read-only": read_only,
        "reversed": lambda: x[::-1].copy()[::-1], "fortran": lambda: np.asfortranarray(x),
        "big-endian": swapped,
        "subclass": lambda: x.view(Subclass), "torch": lambda: to_library("torch", x),
        "jax": lambda: to_library("jax", x),
    }  # fmt: skip


class Subclass(torch.Tensor):
    """One for all arguments: PyTorch itself refuses several that know nothing of each other."""


def _torch_layouts(x, mixes):
    def strided():
        wide = x.new_zeros(*x.shape[:-1], 2 * x.shape[-1])
        wide[..., ::2] = x
        return wide[..., ::2]

    def misaligned():
        raw = bytearray(x.numel() * x.element_size() + 1)
        if not x.numel():
            return x
        y = torch.frombuffer(raw, dtype=x.dtype, offset=1).view(x.shape)
        return y.copy_(x)

    def behind_one():
        if not x.numel():
            return x
        return torch.cat([x.flatten()[:1], x.flatten()])[1:].view(x.shape)

    return {
        "strided": strided, "misaligned": misaligned,
        "fortran": lambda: x.movedim(-1, 0).contiguous().movedim(0, -1),
        "offset": behind_one,
        # PyTorch negates no f8.
        "negated": lambda: torch._neg_view(-x) if x.itemsize > 1 and x.is_floating_point() else x,
        "parameter": lambda: torch.nn.Parameter(x.clone(), requires_grad=False),
        "subclass": lambda: x.as_subclass(Subclass), "view": lambda: x[:],
    } | (_of_other_libraries(x) if mixes else {})  # fmt: skip


def _of_other_libraries(x):
    return {"numpy": lambda: to_numpy(x), "jax": lambda: jnp.asarray(to_numpy(x))}


def _jax_layouts(x):
    return {
        "numpy": lambda: np.asarray(x), "list": lambda: np.asarray(x).astype("f8").tolist(),
        "transposed": lambda: jnp.asarray(np.asarray(x).swapaxes(0, -1)).swapaxes(0, -1),
    }  # fmt: skip


# -- What is no array of that kind --------------------------------------------------


class Raising:
    """What says that it is an array, and is none."""

    shape, dtype, ndim = (3, 4, 16), np.dtype("f4"), 3

    def __dlpack__(self, **options):
        raise RuntimeError("no memory")

    def __dlpack_device__(self):
        return 1, 0


OBJECTS = (
    5, -1, 1.5, "x", "", b"x", (), [], {}, object(), Raising(), Raising, torch.Tensor, len,
    NotImplemented, [[0.0]], range(3), np.float32(3), np.array(0.0), np.array(["a"]),
    np.array([object()]), np.zeros(3, "M8[s]"), np.zeros(3, [("a", "f4")]), torch.tensor(0.0),
    jax.random.key(0), float("nan"), 2**70, True,
)  # fmt: skip


def _torch_objects(x, mixes):
    others = () if mixes else tuple(_of_other_libraries(x).values())
    return (
        lambda: x.to_sparse(), lambda: x.to("meta"), lambda: x.to(torch.complex64),
        lambda: x.to(torch.complex64).conj(), lambda: x.float().to(torch.float8_e4m3fn),
        lambda: x.bool(), lambda: x.to(torch.uint8), lambda: x.to(torch.int16),
        lambda: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8),
        lambda: torch.nested.nested_tensor([x[:1], x[1:]], layout=torch.jagged),
        lambda: torch.nested.nested_tensor([x[:1], x[1:]]),
        lambda: x.float().to_mkldnn(), *others,
    )  # fmt: skip


def _array_objects(x):
    x = np.asarray(x)
    return tuple(
        functools.partial(x.astype, dtype)
        for dtype in ("c8", "?", "i1", "u1", "i2", "g", "O", "S3", ml_dtypes.float8_e4m3fn)
    ) + (lambda: np.ma.masked_array(x, x > 0),)  # fmt: skip


# -- Other numbers, extents and ranks -----------------------------------------------


def _change_numbers(rng, name, x):
    """Another array for an operand, whose meaning follows from it."""
    integer = x.dtype.kind == "i" and x.itemsize > 1
    changes = ["rank", "rank", "shorter", "longer", "none", "dtype", "axis"]
    kind = rng.choice(changes + ["value"] * 7 * integer)
    if kind == "value" and x.size:
        y, extent = x.copy(), x.shape[0] if x.ndim else 0
        edges = (-1, 0, 1, 2**31 - 1, -(2**31), extent, int(x.max()) + 1)
        limits = np.iinfo(x.dtype)
        edges = [edge for edge in edges if limits.min <= edge <= limits.max]
        y.flat[rng.randrange(x.size)] = rng.choice(edges)
        return y
    if kind == "dtype":
        other = (
            ("i4", "i8", "u4", "u8", "i2") if integer else ("f2", "f4", "f8", ml_dtypes.bfloat16)
        )
        return x.astype(rng.choice(other))
    if kind == "rank":
        return rng.choice((x[None], x[..., None], x.reshape(-1), np.asarray(x.sum(0), x.dtype)))
    axis = rng.randrange(x.ndim)
    if kind == "longer":
        return np.concatenate([x, x], axis)
    if kind in ("none", "shorter"):
        return np.take(x, range(0 if kind == "none" else max(0, x.shape[axis] - 1)), axis)
    return x.swapaxes(0, -1).copy() if x.ndim > 1 else x[:1].copy()


def change_array(rng, name, library, array, optional, mixes):
    """A Change of an operand: `array` is numpy's, in a call of arrays of that library, and of
    others, too, if the function `mixes` them."""

    def put(call, new):
        # Integers have no sign: those of a list of sequences are read as if they had one.
        is_unsigned = new.dtype.kind == "u" and new.dtype.itemsize >= 4
        call.given[name] = new.view(f"i{new.dtype.itemsize}") if is_unsigned else new

    def drop(call):
        call.given.pop(name, None)

    kind = rng.random()
    if kind < 0.35:
        new = _change_numbers(rng, name, array)
        return Change(
            to_library(library, new), functools.partial(put, new=new), new.dtype.kind == "u"
        )
    if kind < 0.7:
        x = to_library(library, array)
        make = {"jax": _jax_layouts, "numpy": _numpy_layouts}
        layouts = _torch_layouts(x, mixes) if library == "torch" else make[library](x)
        layout = rng.choice(sorted(layouts))
        return Change(layouts[layout](), SAME, may_refuse=True)
    if kind < 0.85:
        x = to_library(library, array)
        try:
            make = rng.choice(_torch_objects(x, mixes) if library == "torch" else _array_objects(x))
            # Some of them are of the types of quantised keys and values.
            is_wrong = array.size and array.ndim and array.itemsize > 1
            return Change(make(), REFUSED if is_wrong else ANY, may_refuse=True)
        except (RuntimeError, ValueError, TypeError):
            pass  # No such array of these numbers.
    if kind < 0.9:
        return Change(None, drop if optional else REFUSED)
    return Change(rng.choice(OBJECTS), REFUSED)


# -- Options ------------------------------------------------------------------------


def _option(name, value):
    """As the option has it."""

    def put(call):
        call.options[name] = value

    return put


def windows(rng, below_is_open):
    """Windows, with what they mean."""
    sides = (-1, 0, 1, 5, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, -(2**63) - 1, -2, -7)
    left, right = rng.choice(sides), rng.choice(sides)
    if rng.random() < 0.4:
        wrong = rng.choice((
            5, None, "ab", (), (1,), (1, 2, 3), (1.0, 0), (0, "0"), (None, 0), (True, 0),
            {1: 2, 3: 4}, [[1], [2]], {1, 2}, np.array([1.5, 2]), torch.ones(2),
            (np.float32(1), 0), object(), (float("nan"), 0), (0, float("inf")), b"ab",
        ))  # fmt: skip
        return Change(
            wrong, _option("window", (-1, -1)) if wrong is None and below_is_open else REFUSED
        )
    if max(left, right) >= 2**63 and not below_is_open:
        return Change((left, right), REFUSED)
    if below_is_open:
        # And so is what no sequence is long enough for.
        meant = tuple(-1 if side > 2**62 else max(side, -1) for side in (left, right))
    elif min(left, right) < -1:
        return Change((left, right), REFUSED)
    else:
        meant = left, right
    # numpy's integers, a list and an array say the same.
    fits = -(2**63) <= min(left, right) <= max(left, right) < 2**63
    kind = rng.randrange(4 if fits else 2)
    if kind < 2:
        return Change(((left, right), [left, right])[kind], _option("window", meant))
    number = (np.int64, torch.tensor)[kind - 2]
    return Change((number(left), right), _option("window", meant), may_refuse=kind == 3)


def chunks(rng):
    value = rng.choice((
        0, -1, 1, 3, 7, 2**28, 2**28 + 1, 2**31, 2**63, 2.0, True, "3", (), [3], np.int32(3),
        np.float32(2), torch.tensor(3), None, float("nan"), object(),
    ))  # fmt: skip
    if value is None:
        return Change(None, _option("chunk", None))
    if type(value) in (int, np.int32, torch.Tensor) and 1 <= value <= 2**28:
        return Change(value, _option("chunk", int(value)), may_refuse=type(value) is torch.Tensor)
    return Change(value, REFUSED)


def scales(rng):
    value = rng.choice((
        0, 1, 0.25, 2, -1.0, float("nan"), float("inf"), 1e-300, 2.0**-126, 2.0**-127, 2.0**127,
        "1", True, np.float32(0.5), np.float64(0.3), np.float16(2), torch.tensor(0.5), jnp.ones(()),
        np.array(0.5), [0.5], (), object(), 1j, 10**400, -0.0,
    ))  # fmt: skip
    if value is True or not isinstance(value, (int, float, np.floating)) or not 0 < value < 1e300:
        return Change(value, REFUSED)
    if not 2.0**-126 <= float(value) <= 2.0**126:
        return Change(value, REFUSED)
    return Change(value, _option("scale", float(value)))


def alignments(rng):
    value = rng.choice(
        ("bottom_right", "top_left", "left", None, 0, b"top_left", ["top_left"], object())
    )
    known = isinstance(value, str) and value != "left"
    return Change(value, _option("alignment", value) if known else REFUSED)


def causals(rng, below_is_open):
    """is_causal beside the window and chunk that the call has."""

    def mean(call):
        left, right = call.options["window"]
        if call.options["chunk"] is not None or right > 0 or not below_is_open and left >= 0:
            raise ValueError("several options that say the same")
        call.options["window"] = (left, 0)

    value = rng.choice(
        (True, True, True, False, 1, 0, np.True_, "no", None, [], np.ones(2, bool), 0.0, object())
    )
    if isinstance(value, (bool, int, np.bool_)):
        return Change(value, mean if value else SAME)
    return Change(value, REFUSED)


def auxiliaries(rng):
    return Change(rng.choice((5, True, "lse", object(), [], {"lse": True})), REFUSED)


def wrong_scores(rng):
    return Change(rng.choice(("alibi", 5, len, object(), (), b"", imported.SCORES, type)), REFUSED)


def wrong_captures(rng, captures):
    value = rng.choice((
        None, 5, "ab", {}, object(), [*captures, *captures, np.zeros(2, "f4")], [None], [5], ["a"],
        (object(),), np.zeros((2, 2), "f4"), iter(()), {"a": 1},
    ))  # fmt: skip
    empty = isinstance(value, (dict,)) and not value and not captures
    return Change(value, ANY if empty else REFUSED, may_refuse=True)


OF_DROPOUT = ("dropout_p", "seed", "sequence_ids")


def of_dropout(rng, name, library, count):
    """Rates, seeds, and numbers of `count` sequences; results with them are not compared."""
    if name == "dropout_p":
        values = 0, -0.0, 1, 1 - 1e-12, 1e-300, -1e-9, np.float32(0.5), 0.5 + 0j, 10**400
    elif name == "seed":
        values = 0, -1, -(2**63), 2**64 - 1, 2**64, np.uint64(2**64 - 1), None
    else:
        ids = to_library(library, np.arange(count, dtype="i4"))
        if library == "torch":
            values = tuple(make() for make in _torch_objects(ids, False)[:2])
            values += (torch.nested.nested_tensor([ids[:1].float()]),)
        else:
            values = tuple(make() for make in _array_objects(ids)[:4])
        values += (ids, ids[None], ids[:-1], None)
    if library == "torch" and name == "seed":
        values += (
            torch.tensor(3), torch.tensor([3], device="meta"), torch.nested.nested_tensor([[3]]),
        )  # fmt: skip
    return Change(rng.choice((*values, *rng.sample(OBJECTS, 3))), ANY, may_refuse=True)


def threads(rng):
    value = rng.choice(
        (0, -1, 1, 2, 3, 2**31, 2**63, 2**64 + 1, 1.5, "1", True, None, np.int64(2), ())
    )
    if value is None or type(value) is int and 0 < value < 100:
        return Change(value, SAME)
    return Change(
        value, SAME if type(value) in (np.int64, int) and value > 0 else REFUSED, may_refuse=True
    )
