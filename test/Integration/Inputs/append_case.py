"""Arguments of varlen.append: sequences with every number of rows, in pages or slots."""

import numpy as np
from varlen import dtypes

# The keys that each sequence has, and new ones: none of either, one, ends of pages and of
# runs, several pages.
USED = [5, 0, 16, 15, 3, 40, 7]
NEW = [3, 0, 1, 1, 200, 0, 130]
KV_HEADS, DIM, VALUE_DIM = 2, 24, 40
# Operands that are written to.
CACHES = ("k_cache", "v_cache", "k_scale", "v_scale")
# Numbers of no page.
WILD = [-(2**31), 2**31 - 1, -1, 10**6]
rng = np.random.default_rng(0)


def offsets(lengths, index="i4"):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(index)


def draw(dtype, *shape):
    return dtypes.narrow(rng.standard_normal(shape), dtype)


class Case:
    """Arguments of an append to a cache of NaN: in pages of any order, or in slots."""

    def __init__(self, dtype, page=None, index="i4", used=USED, new=NEW):
        total = sum(new)
        # Rows behind the last one belong to no sequence.
        self.k = draw(dtype, total + 3, KV_HEADS, DIM)
        self.v = draw(dtype, total + 3, KV_HEADS, VALUE_DIM)
        self.k[total:], self.v[total:] = np.nan, np.nan
        self.cu, self.used = offsets(new, index), np.array(used, index)
        ends = [a + b for a, b in zip(used, new)]
        self.positions = max(ends)
        self.options = {}
        if page is None:
            count, page = len(used) + 2, max(ends) + 1
        else:
            counts = [-(-end // page) for end in ends]
            count = sum(counts) + 3
            order = iter(rng.permutation(count))
            # Rows of the table are apart.
            table = rng.choice(WILD, (len(used), max(counts) + 4)).astype("i4")[:, :-2]
            for s, before in enumerate(used):
                for slot in range(counts[s]):
                    at = next(order)
                    # Pages of the rows before are not looked at.
                    if slot >= before // page:
                        table[s, slot] = at
            self.options["block_table"] = table
        both = np.full((count, 2, page, KV_HEADS, VALUE_DIM), np.nan, self.k.dtype)
        self.k_cache, self.v_cache = both[:, 0, :, :, :DIM], both[:, 1]

    def add_rotary(self, pairs, dtype, interleaved):
        angles = rng.uniform(0, 6, (self.positions, pairs))
        self.options |= {"cos": dtypes.narrow(np.cos(angles), dtype)}
        self.options |= {"sin": dtypes.narrow(np.sin(angles), dtype), "interleaved": interleaved}
        return self

    def quantise(self, element):
        """Caches of `element`, and scales of them; v has a row of zeros, and one that is not
        finite."""
        self.k_cache, self.v_cache = (
            np.full(x.shape, 7).astype(element) for x in (self.k_cache, self.v_cache)
        )
        both = np.full((*self.k_cache.shape[:2], 2, KV_HEADS), np.nan, "f4")
        self.options |= {"k_scale": both[:, :, 0], "v_scale": both[:, :, 1]}
        self.v[2], self.v[5, 0, 3] = 0, np.inf
        return self

    def arguments(self):
        return self.k_cache, self.v_cache, self.k, self.v, self.cu, self.used


def list_operands(case):
    """Operands by name, in the order of the operation's."""
    given = dict(zip(("k_cache", "v_cache", "k", "v", "cu", "seqused_k"), case.arguments()))
    given |= case.options
    order = ("k", "v", "cu", "seqused_k", "block_table", "cos", "sin", *CACHES)
    return {name: np.ascontiguousarray(given[name]) for name in order if name in given}


def make_text(operands, interleaved):
    """A function that returns the caches with the new rows."""
    # Pages of as many rows as the type says, or any.
    static = {"k": 2, "v": 2, "cos": 1, "sin": 1, "k_cache": 3, "v_cache": 2, "k_scale": 1, "v_scale": 2}
    types = {}
    for name, x in operands.items():
        known = x.ndim - static.get(name, 0)
        extents = ["?"] * known + [str(n) for n in x.shape[known:]]
        types[name] = f"tensor<{'x'.join([*extents, dtypes.name_of(x)])}>"
    results = [types[name] for name in CACHES if name in types]
    clauses = {
        "block_table": ("block_table",), "rotary": ("cos", "sin"), "outs": CACHES[:2], "scales": CACHES[2:],
    }  # fmt: skip
    given = "".join(
        f" {clause}({', '.join('%' + name for name in names)})"
        for clause, names in clauses.items() if names[0] in types
    )  # fmt: skip
    parameters = ", ".join(f'%{name}: {type} {{varlen.name = "{name}"}}' for name, type in types.items())
    named = ", ".join(
        f'{type} {{varlen.name = "new_{name}"}}' for name, type in types.items() if name in CACHES
    )
    return (
        f"func.func @f({parameters}) -> ({named}) {{\n"
        f"  %0:{len(results)} = varlen.append %k, %v, %cu seqused_k(%seqused_k){given}"
        f"{' interleaved' if interleaved else ''}\n"
        f"    : ({', '.join(types.values())}) -> ({', '.join(results)})\n"
        f"  return {', '.join(f'%0#{i}' for i in range(len(results)))} : {', '.join(results)}\n"
        "}\n"
    )
