"""Batches with keys in pages, and what may stand where no sequence looks."""

import torch
from device import NAME
from packed import offsets

# Numbers of no page.
WILD = torch.tensor([-(2**31), 2**31 - 1, -1, 10**6], dtype=torch.int32)


def to_pages(k, v, lengths, page, seed=0):
    """(pages of k, pages of v, block_table, seqused_k) of packed rows: pages in any order, with
    others between them, NaN in rows and no page in entries that are not used."""
    generator = torch.Generator().manual_seed(seed)
    counts = [-(-length // page) for length in lengths]
    order = iter(torch.randperm(sum(counts) + 3, generator=generator).tolist())
    pages = [
        torch.full((sum(counts) + 3, page, *x.shape[1:]), torch.nan, dtype=x.dtype, device=NAME)
        for x in (k, v)
    ]
    width = max(counts, default=0) + 2
    wild = torch.randint(4, (len(counts), width + 3), generator=generator, device="cpu")
    # Rows of the table are apart.
    table = WILD[wild].to(NAME)[:, :width]
    row = 0
    for s, length in enumerate(lengths):
        for slot in range(counts[s]):
            at = next(order)
            table[s, slot] = at
            used = min(page, length - slot * page)
            for x, x_pages in zip((k, v), pages):
                x_pages[at, :used] = x[row : row + used]
            row += used
    return *pages, table, offsets(lengths).diff()
