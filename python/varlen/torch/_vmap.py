"""The operators under torch.func.vmap: one call for all examples.

Examples are independent of each other, as sequences are: those of all are sequences of one
call, row after row. What is of heads, and of no row, has no place there if it differs between
examples: a sink and some captures, and their gradients. With these examples become heads of
one call, where they share their sequences, and else there is a call for each.
"""

import functools

import torch
from torch._C._functorch import is_legacy_batchedtensor
from torch._functorch.autograd_function import custom_function_call_vmap_helper
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from .._axes import HEADS, ROWS, SEQUENCES, find_axes
from ._checks import check
from ._operators import (
    attn, attn_backward, attn_jvp, attn_jvp_backward, attn_out, library, name_arguments,
    name_tensors,
)  # fmt: skip
from ._results import new_gradients, new_results

# Whose results are gradients.
_BACKWARD = (attn_backward, attn_jvp_backward)
_LARGEST_INT32 = torch.iinfo(torch.int32).max


class _Batch:
    """The operands of a call by name, with the examples first in those that are batched."""

    def __init__(self, op, size, in_dims, arguments):
        self._op, self.size = op, size
        self._options = name_arguments(op, arguments)
        tensors, self._captures = name_tensors(self._options)
        # Where captures are listed, their dimensions are.
        dims = name_arguments(op, in_dims)
        dims |= zip(self._captures, dims["captures"] or ())
        dims |= zip((f"t{name}" for name in self._captures), dims.get("tcaptures") or ())
        self.batched = {name for name in tensors if dims[name] is not None}
        self._tensors = {
            name: x.movedim(dims[name], 0) if name in self.batched else x
            for name, x in tensors.items()
        }

    def attend(self):
        """The results, and dimensions of the examples in them."""
        self.check()
        if not self.size:
            return self._list(self._make_empty())
        of_heads = [name for name in self._tensors if self._is_of_heads_alone(name)]
        if self._op not in _BACKWARD:
            of_heads = self.batched.intersection(of_heads)
        if "block_table" in self._tensors:
            attend = self._attend_one_by_one
        elif not of_heads:
            attend = self._attend_as_sequences
        elif self.batched.isdisjoint(SEQUENCES):
            attend = self._attend_as_heads
        else:
            attend = self._attend_one_by_one
        try:
            results = attend()
        except ValueError:
            # The index within its example, not within all of them.
            self._attend_one_by_one()
            raise
        return self._list(results)

    def check(self):
        """Of one example, before anything is made of all."""
        if self.size:
            check(self._name(self._select(0)))

    def _make_empty(self):
        """Results of no examples. One example has the shapes and strides that they have behind
        their first dimension."""
        example = {
            name: x.new_empty(x.shape[1:]) if name in self.batched else x
            for name, x in self._tensors.items()
        }
        if self._op is attn:
            results = new_results(example["q"], example["v"])
        elif self._op is attn_jvp:
            results = new_results(example["q"], example["v"]) * 2
        else:
            captures = [example[name] for name in self._captures]
            first = (example.get(name) for name in ("q", "k", "v", "sink"))
            results = new_gradients(*first, captures)
        named = self._name_results(results)
        return {name: (x.new_empty(0, *x.shape), 0) for name, x in named.items()}

    def _is_of_heads_alone(self, name):
        return name not in SEQUENCES and not self._find(name, ROWS)

    def _find(self, name, axes):
        """(the place of the axis that is one of axes, its name), None if there is none."""
        for place, axis in enumerate(find_axes(name, self._captures)):
            if axis in axes:
                return place, axis
        return None

    def _name(self, tensors):
        """The operator's arguments by name, with these tensors in them."""
        own = {name: x for name, x in tensors.items() if name in self._options}
        lists = {"captures": [tensors[name] for name in self._captures]}
        if self._options.get("tcaptures"):
            lists["tcaptures"] = [tensors[f"t{name}"] for name in self._captures]
        return self._options | own | lists

    def _call(self, tensors):
        """The results by name."""
        return self._name_results(self._op(*self._name(tensors).values()))

    def _name_results(self, results):
        if self._op not in _BACKWARD:
            return dict(zip(("out", "lse", "tout", "tlse"), results))
        *first, dcaptures = results
        named = dict(zip(("dq", "dk", "dv", "dsink"), first))
        if "sink" not in self._tensors:
            del named["dsink"]
        return named | {f"d{name}": x for name, x in zip(self._captures, dcaptures)}

    def _list(self, results):
        """Results (tensor, dimension) by name as the operator returns them."""
        if self._op not in _BACKWARD:
            return tuple(zip(*results.values()))
        q = self._tensors["q"]
        no_sink = q.new_empty(0), None
        first = [results.get(name, no_sink) for name in ("dq", "dk", "dv", "dsink")]
        captures = [results[f"d{name}"] for name in self._captures]
        return tuple(
            (*(pair[i] for pair in first), [pair[i] for pair in captures]) for i in range(2)
        )

    def _expand(self, name):
        x = self._tensors[name]
        return x if name in self.batched else x.expand(self.size, *x.shape)

    def _select(self, i):
        return {name: x[i] if name in self.batched else x for name, x in self._tensors.items()}

    def _attend_one_by_one(self):
        examples = [self._call(self._select(i)) for i in range(self.size)]
        return {name: (torch.stack([x[name] for x in examples]), 0) for name in examples[0]}

    def _attend_as(self, axes, tensors):
        """A call in which one of these axes has that of the examples in it, and other
        `tensors` are as they are."""
        extents = {}
        for name in self._tensors.keys() - tensors.keys():
            place, axis = self._find(name, axes)
            x = self._expand(name)
            extents[axis] = x.shape[place + 1]
            tensors[name] = x.movedim(0, place).flatten(place, place + 1)
        results = {}
        for name, x in self._call(tensors).items():
            place, axis = self._find(name, axes)
            results[name] = x.unflatten(place, (self.size, extents[axis])), place
        return results

    def _attend_as_heads(self):
        return self._attend_as(
            HEADS, {name: x for name, x in self._tensors.items() if name in SEQUENCES}
        )

    def _attend_as_sequences(self):
        of_heads = {
            name: x for name, x in self._tensors.items() if self._is_of_heads_alone(name)
        }
        return self._attend_as(ROWS, of_heads | self._join_sequences())

    def _join_sequences(self):
        """Operands that have something of each sequence, for those of all examples. Before
        them each example has one that is empty, as its cu_seqlens start at 0, and after them
        one of the rows that no sequence has."""
        rows = {side: self._expand(x).shape[1] for side, x in (("q", "q"), ("k", "k"))}
        given = {name: self._expand(name) for name in self._tensors if name in SEQUENCES}
        index = given["cu_seqlens_q"].dtype
        if self.size * max(rows.values()) > _LARGEST_INT32:
            index = torch.int64
        given = {name: x.to(index) for name, x in given.items()}
        starts = [given[f"cu_seqlens_{side}"][:, :1] for side in rows]
        joined = {}
        for side, count in rows.items():
            begin = torch.arange(self.size, dtype=index, device=starts[0].device)[:, None] * count
            offsets = torch.cat([begin, begin + given.pop(f"cu_seqlens_{side}")], 1)
            end = begin.new_full((1,), self.size * count)
            joined[f"cu_seqlens_{side}"] = torch.cat([offsets.flatten(), end])
        nothing = torch.zeros_like(starts[0])
        # A number of rows that no sequence can have, if one does not start at 0.
        wrong = -sum(start.abs() for start in starts)
        used = given.pop("seqused_q", None)
        if used is None:
            used = self._expand("cu_seqlens_q").to(index).diff(dim=1)
        joined["seqused_q"] = torch.cat([wrong, used, nothing], 1).flatten()
        for name, x in given.items():
            joined[name] = torch.cat([nothing, x, nothing], 1).flatten()
        return joined


def _batch(op, size, in_dims, *arguments):
    return _Batch(op, size, in_dims, arguments).attend()


def _batch_out(size, in_dims, out, *arguments):
    if in_dims[0] is None:
        raise ValueError(
            "varlen::attn_out: expected out to be batched by vmap as other arguments are, got "
            "one for all examples"
        )
    outs = out.movedim(in_dims[0], 0)
    _Batch(attn_out, size, in_dims, (out, *arguments)).check()
    (result, lse), (dim, lse_dim) = _batch(attn, size, in_dims[1:], *arguments)
    outs.copy_(result.movedim(dim, 0))
    return lse, lse_dim


# What torch.autograd.grad(is_grads_batched=True) has in place of functorch's vmap: tensors
# that are batched at a level, of which they do not tell.
_NUM_LEVELS = 64


def _unwrap(x):
    """The tensor with the examples first, and the level at which it was batched."""
    for level in range(1, _NUM_LEVELS + 1):
        whole = torch._remove_batch_dim(x, level, 1, 0)
        if not is_legacy_batchedtensor(whole):
            return whole, level
    raise NotImplementedError("varlen: expected one level of is_grads_batched, got several")


def _attend_unwrapped(rule, *arguments):
    leaves, spec = tree_flatten(arguments)
    batched = [isinstance(x, torch.Tensor) and is_legacy_batchedtensor(x) for x in leaves]
    for i, is_batched in enumerate(batched):
        if is_batched:
            leaves[i], level = _unwrap(leaves[i])
            size = leaves[i].shape[0]
    dims = tree_unflatten([0 if x else None for x in batched], spec)
    results, out_dims = rule(size, dims, *tree_unflatten(leaves, spec))
    leaves, spec = tree_flatten(results)
    dims = tree_leaves(out_dims, is_leaf=lambda dim: dim is None)
    pairs = zip(leaves, dims, strict=True)
    return tree_unflatten(
        [x if d is None else torch._add_batch_dim(x, d, level) for x, d in pairs], spec
    )


_VMAP_MODE = torch._C._parse_dispatch_key("FuncTorchVmapMode")


def _register(op, rule):
    def batch(info, in_dims, *arguments):
        return rule(info.batch_size, in_dims, *arguments)

    def in_vmap(*arguments):
        interpreter = retrieve_current_functorch_interpreter()
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(_VMAP_MODE)):
            return custom_function_call_vmap_helper(interpreter, batch, op, *arguments)

    # As torch.library.register_vmap does, but for every call in a vmap: the dispatcher looks
    # for tensors that are batched in no optional list, and captures are one.
    library.impl(op._opname, in_vmap, "FuncTorchVmapMode")
    library.impl(op._opname, functools.partial(_attend_unwrapped, rule), "Batched")


_register(attn, functools.partial(_batch, attn))
_register(attn_backward, functools.partial(_batch, attn_backward))
_register(attn_jvp, functools.partial(_batch, attn_jvp))
_register(attn_jvp_backward, functools.partial(_batch, attn_jvp_backward))
_register(attn_out, _batch_out)
