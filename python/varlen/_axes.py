"""Axes of the operands and results of attention, by name: what says of which tensor which
extents are the same, may be batched, or may be split over devices."""

from .scores import CAPTURES

# The axes of operands with heads; other operands are in SEQUENCES.
AXES = {
    "q": ("rows", "heads", "head_dim"),
    "k": ("kv_rows", "kv_heads", "head_dim"),
    "v": ("kv_rows", "kv_heads", "v_head_dim"),
    "out": ("rows", "heads", "v_head_dim"),
    "lse": ("heads", "rows"),
    "sink": ("heads",),
}
# Of gradients and of tangents, and of the gradients of these.
AXES |= {f"{of}{name}": axes for name, axes in AXES.items() for of in ("d", "t", "dt")}
# In place of these, of keys and values in pages.
_PAGED = {
    "k": ("pages", "page_rows", "kv_heads", "head_dim"),
    "v": ("pages", "page_rows", "kv_heads", "v_head_dim"),
}
HEADS = ("heads", "kv_heads")
ROWS = ("rows", "kv_rows")
# What has an entry of each sequence, cu_seqlens one more.
OFFSETS = ("cu_seqlens_q", "cu_seqlens_k")
SEQUENCES = {name: ("sequences + 1",) for name in OFFSETS}
SEQUENCES |= {name: ("sequences",) for name in ("seqused_q", "seqused_k", "q_offset")}
SEQUENCES["block_table"] = ("sequences", "table_pages")


# What a number of these is of, by their rank, without pages and with them.
SCALES = ("k_scale", "v_scale")
_SCALES = {1: ("kv_heads",), 2: ("kv_rows", "kv_heads")}
_PAGED_SCALES = {1: ("kv_heads",), 2: ("pages", "kv_heads"), 3: _PAGED["k"][:3]}
# The operands of varlen.append, which has no queries.
APPEND_AXES = {
    "k": AXES["k"],
    "v": AXES["v"],
    "cu_seqlens": ("sequences + 1",),
    "seqused_k": SEQUENCES["seqused_k"],
    "block_table": SEQUENCES["block_table"],
    "cos": ("positions", "pairs"),
    "sin": ("positions", "pairs"),
    "k_cache": _PAGED["k"],
    "v_cache": _PAGED["v"],
}
APPEND_AXES |= {name: _PAGED["k"][:3] for name in SCALES}


def find_axes(name, captures, paged=False, rank=None):
    """Names of the axes of an operand or a result, for captures (name: what it is of); of a
    table's entries there are as many as it likes. `paged` has keys and values in pages, and
    `rank` is that of a scale."""
    if name in SCALES:
        return (_PAGED_SCALES if paged else _SCALES)[rank]
    if paged and name in _PAGED:
        return _PAGED[name]
    capture = name if name in captures or name[:1] not in "dt" else name[1:]
    if of := captures.get(capture):
        return tuple(f"{capture}_entries" if x == "entries" else x for x in CAPTURES[of])
    return AXES.get(name) or SEQUENCES[name]


def explain(name, dim, axis, got, wanted, owner):
    """What is wrong with an extent that should be that of `axis` of another tensor."""
    if axis in ROWS:
        return f"{name} has {got} rows: expected {wanted}, as many as {owner}"
    if axis in ("pages", "positions"):
        return f"{name} has {got} {axis}: expected {wanted}, as many as {owner}"
    if axis == "page_rows":
        return f"expected {owner} and {name} to have the same rows in a page, got {wanted} and {got}"
    if axis == "sequences + 1" and name == "block_table":
        return f"block_table has {got} rows: expected {wanted - 1}, one for each sequence"
    if axis == "sequences + 1" and name == "cu_seqlens_k":
        return f"{owner} has {wanted} entries and {name} {got}: expected the same number"
    if axis == "sequences + 1":
        return f"{name} has {got} entries: expected {wanted - 1}, one for each sequence"
    return f"{name}: expected extent {dim} to be {wanted}, got {got}"
