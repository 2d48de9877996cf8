"""Schedules that are tried beside those of the table in lib/Target/GPUTiles.cpp.

`run.py --tune` times them. A schedule that spills registers or that does not fit the
shared memory of the chip is in the lists all the same: the time says what that costs.
"""

import dataclasses


def _tiles(
    warps, block_m, kv_block, stages, ctas, slack=0, lag=0, rings=1, threshold=0, scores_first=0,
    few_part=0, producers=0, maps=0, five_products=0
):
    return (
        f"<warps = {warps}, block_m = {block_m}, kv_block = {kv_block}, "
        f"stages = {stages}, ctas = {ctas}, slack = {slack}, lag = {lag}, rings = {rings}, "
        f"rescale_threshold = {threshold}, scores_first = {scores_first}, few_part = {few_part}, "
        f"producers = {producers}, maps = {maps}, five_products = {five_products}>"
    )


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Tiles (warps, block_m, kv_block, stages, ctas, and slack, lag, rings, rescale_threshold,
    scores_first, few_part, producers, maps and five_products) of each kernel: of the forward one, of
    gradients dq and dk, which computes dv too unless dv has one of its own."""

    tiles: tuple
    label: str

    def __str__(self):
        if len(self.tiles) == 1:
            return f"#varlen.gpu_schedule{_tiles(*self.tiles[0])}"
        kernels = zip(("dq", "dk", "dv"), self.tiles)
        text = ", ".join(f"{name} = {_tiles(*tiles)}" for name, tiles in kernels)
        return f"#varlen.gpu_grad_schedule<{text}>"


FORWARD = {
    64: [
        (4, 64, 64, 2, 3), (4, 128, 32, 2, 2), (4, 128, 48, 2, 2), (4, 128, 64, 3, 2),
        (4, 128, 128, 2, 2),
    ],
    128: [
        (4, 64, 64, 3, 2), (4, 64, 128, 2, 1), (4, 128, 32, 2, 2), (4, 128, 48, 2, 2),
        (4, 128, 64, 2, 2), (8, 128, 128, 2, 1),
    ],
    256: [(4, 64, 32, 2, 1), (4, 64, 64, 2, 1), (8, 128, 48, 2, 1), (8, 128, 64, 2, 1)],
}  # fmt: skip

# The first of each list is that of the table, for a mask without or with one bound.
DQ = {
    64: [
        (4, 64, 64, 2, 2), (4, 64, 32, 2, 3), (4, 64, 128, 2, 2), (4, 128, 32, 2, 2),
        (4, 128, 48, 2, 2), (4, 128, 64, 2, 2),
    ],
    128: [
        (4, 64, 32, 2, 2), (4, 64, 48, 2, 2), (4, 64, 64, 2, 1), (4, 128, 16, 2, 2),
        (4, 128, 32, 2, 2), (8, 128, 64, 2, 1),
    ],
    256: [(8, 128, 16, 2, 1), (4, 64, 16, 2, 1), (4, 64, 32, 2, 1), (8, 128, 32, 2, 1)],
}  # fmt: skip
DK = {
    64: [
        ((4, 64, 64, 2, 2),), ((4, 32, 64, 2, 2),), ((4, 48, 64, 2, 2),), ((4, 16, 128, 2, 2),),
        ((4, 32, 128, 2, 2),), ((4, 64, 64, 3, 2),),
    ],
    128: [
        ((4, 32, 64, 2, 2),), ((4, 16, 64, 2, 2),), ((4, 64, 64, 2, 1),), ((8, 64, 128, 2, 1),),
        ((4, 16, 128, 2, 2), (4, 16, 128, 2, 2)), ((4, 32, 128, 2, 2), (4, 32, 128, 2, 2)),
    ],
    256: [
        ((8, 16, 128, 2, 1), (8, 16, 128, 2, 1)), ((8, 32, 128, 2, 1), (8, 32, 128, 2, 1)),
        ((4, 32, 64, 2, 1), (4, 32, 64, 2, 1)), ((8, 16, 128, 2, 1), (8, 32, 128, 2, 1)),
        ((8, 32, 128, 2, 1), (8, 16, 128, 2, 1)),
    ],
}  # fmt: skip


# The same with wgmma.
FORWARD_WGMMA = {
    64: [
        (4, 64, 128, 2, 3), (4, 64, 64, 2, 4), (8, 128, 64, 3, 2, 1), (8, 128, 128, 3, 1, 1),
        (12, 192, 96, 3, 1, 1, 1), (12, 192, 128, 3, 1, 1), (12, 192, 128, 4, 1, 1, 1),
        (4, 64, 96, 2, 3), (4, 64, 64, 2, 4, 0, 0, 2), (12, 192, 128, 2, 1, 0, 0, 2),
    ],
    128: [
        (4, 64, 48, 2, 3), (8, 128, 112, 3, 1, 1, 1), (12, 192, 80, 3, 1, 1, 1),
        (12, 192, 96, 3, 1, 1), (12, 192, 96, 3, 1, 1, 1), (12, 192, 64, 4, 1, 2, 1),
        (4, 64, 64, 2, 2, 0, 0, 2), (4, 64, 48, 2, 3, 0, 0, 2), (8, 128, 64, 2, 1, 0, 0, 2),
        (8, 128, 96, 2, 1, 0, 0, 2), (12, 192, 96, 2, 1, 0, 0, 2),
    ],
    256: [
        (4, 64, 32, 2, 2), (8, 128, 64, 2, 1), (8, 128, 48, 3, 1, 1), (8, 128, 48, 3, 1, 1, 1),
        (4, 64, 32, 2, 2, 0, 0, 2), (4, 64, 64, 2, 1, 0, 0, 2), (8, 128, 48, 2, 1, 0, 0, 2),
        (8, 128, 64, 2, 1, 0, 0, 2), (8, 128, 80, 2, 1, 0, 0, 2),
    ],
}  # fmt: skip
DQ_WGMMA = {
    64: [
        (4, 64, 64, 2, 3), (4, 64, 64, 2, 2), (4, 64, 64, 3, 2, 1, 1), (4, 64, 96, 3, 2, 1, 1),
        (8, 128, 64, 3, 1, 1, 1), (12, 192, 64, 3, 1, 1), (4, 64, 64, 2, 3, 0, 0, 2),
        (4, 64, 48, 2, 3),
    ],
    128: [
        (4, 64, 64, 2, 2), (4, 64, 48, 2, 2), (4, 64, 48, 3, 2, 1, 1), (8, 128, 64, 3, 1, 1, 1),
        (8, 128, 80, 3, 1, 1, 1), (4, 64, 64, 2, 2, 0, 0, 2), (8, 128, 64, 2, 1, 0, 0, 2),
    ],
    256: [
        (8, 128, 32, 2, 1, 0, 0, 2), (8, 128, 32, 2, 1), (4, 64, 64, 2, 1), (8, 128, 32, 3, 1, 1, 1),
        (4, 64, 32, 2, 1, 0, 0, 2), (4, 64, 48, 2, 1, 0, 0, 2),
    ],
}  # fmt: skip
DK_WGMMA = {
    64: [
        ((4, 64, 64, 2, 2),), ((4, 64, 64, 3, 2, 1, 1),), ((8, 64, 128, 3, 1, 1, 1),),
        ((12, 48, 192, 3, 1, 1),), ((4, 64, 64, 2, 2, 0, 0, 2),), ((4, 48, 64, 2, 2),),
    ],
    128: [
        ((4, 64, 64, 2, 2),), ((4, 48, 64, 2, 2),), ((8, 48, 128, 3, 1, 1, 1),),
        ((8, 64, 128, 3, 1, 1, 1),), ((4, 64, 64, 2, 2, 0, 0, 2),), ((4, 48, 64, 2, 2, 0, 0, 2),),
    ],
    256: [
        ((8, 32, 128, 2, 1, 0, 0, 2), (8, 32, 128, 2, 1, 0, 0, 2)),
        ((8, 32, 128, 2, 1), (8, 32, 128, 2, 1)), ((8, 48, 128, 2, 1, 0, 0, 2),) * 2,
        ((4, 64, 64, 2, 1), (4, 64, 64, 2, 1)),
        ((8, 32, 128, 3, 1, 1, 1), (8, 32, 128, 3, 1, 1, 1)),
    ],
}  # fmt: skip


def _text(tiles):
    return "x".join(map(str, tiles))


def candidates(head_dim, gradients, wgmma):
    """The schedules of a head_dim; in gradients, either dq or dk changes."""
    if not gradients:
        for tiles in (FORWARD_WGMMA if wgmma else FORWARD).get(head_dim, ()):
            yield Schedule((tiles,), _text(tiles))
        return
    of_dq, of_dk = (DQ_WGMMA, DK_WGMMA) if wgmma else (DQ, DK)
    for dq in of_dq.get(head_dim, ())[1:]:
        yield Schedule((dq, *of_dk[head_dim][0]), f"dq {_text(dq)}")
    for dk in of_dk.get(head_dim, ()):
        label = f"dk {_text(dk[0])}" + (" apart" if len(dk) == 2 else "")
        yield Schedule((of_dq[head_dim][0], *dk), label)
