"""How long a kernel takes for a batch on Hopper: its items, as the list of tiles has them, on the
multiprocessors, from what a block of scores takes (sm90.py)."""

import dataclasses
import heapq
import math
import re

import sm90

MULTIPROCESSORS = 132

# The most segments of a list that one CTA makes, and pairs whose keys may be in parts
# (TileListBuilder.cpp, TileLoopParts.cpp).
CTA_SEGMENTS, FEW_PAIRS = 1024, 32

CONSTANTS = {
    "list_us": sm90.Constant(2.5, "h200/kernels.json: 1.0, 3.1, 1.8 us; micro: launch, gap 0.6"),
    "list_cta_us": sm90.Constant(1.6, "h200/kernels.json: the first of these, 1.0; launch, gap 0.6"),
    "list_search_cycles": sm90.Constant(60.0, "estimate: two loads of shared memory a step"),
    "merge_us": sm90.Constant(1.6, "as list_cta_us"),
    "merge_part_cycles": sm90.Constant(600.0, "estimate: loads of the second-level cache, products"),
    "map_cycles": sm90.Constant(1000.0, "estimate: its words to the second-level cache and the answer, "
                                "as copy_latency, and 16 fields in shared memory"),
    "delta_tb_s": sm90.Constant(2.2, "h200/kernels.json: delta of d128, d256; out, dout read once"),
    "item_bytes": sm90.Constant(18.0, "micro: bulk store l2_shared, bytes a cycle and SM"),
    "hbm_bytes": sm90.Constant(18.0, "micro: tma hbm_own_16MB, bytes a cycle and SM"),
}  # fmt: skip

# The clock in GHz by the share in which the tensor core multiplies. Source: micro, test clock,
# ex2_mix 1, after 200 ms, of an H200; an H100's was not measured.
CLOCK = ((0.0, 1.98), (0.4, 1.851), (0.6, 1.785), (0.8, 1.645), (1.0, 1.545))


def clock(tensor):
    """GHz under load, for the share of cycles in which the tensor core multiplies."""
    for (a, at_a), (b, at_b) in zip(CLOCK, CLOCK[1:]):
        if tensor <= b:
            return at_a + (at_b - at_a) * (tensor - a) / (b - a)
    return CLOCK[-1][1]


@dataclasses.dataclass(frozen=True)
class Tiles:
    """What a kernel's schedule says: `rows` of a tile that a CTA owns, and `columns` of a block
    that it goes over; queries and keys, or keys and queries (`owns_keys`)."""

    warps: int
    rows: int
    columns: int
    stages: int
    ctas: int
    slack: int = 0
    lag: int = 0
    rings: int = 1
    few_part: int = 0
    producers: int = 0
    five_products: int = 0  # tiles of keys add up dq, too, in their order
    owns_keys: bool = False
    has_tangents: bool = False  # beside all rows that are copied and written

    @property
    def warpgroups(self):
        return self.warps // 4

    def ring(self, head_dim, bytes_of_element=2):
        """The ring of the blocks of both matrices, and of their tangents."""
        size = 2 * self.columns * head_dim * bytes_of_element * (2 if self.has_tangents else 1)
        return sm90.Ring(
            self.stages, self.slack, self.lag, self.rings, size, self.producers > 0
        )  # fmt: skip


def visited(begin, end, length, shift, left, right, columns):
    """(blocks that the mask or the end of the sequence cuts, those that all rows begin to end - 1
    see as a whole), each in the order in which a tile visits them: row r sees columns
    r + shift - left to r + shift + right of `length`; a limit of -1 is none.

    >>> visited(0, 64, 200, 0, -1, -1, 64)
    ([3], [0, 1, 2])
    >>> visited(256, 320, 512, 0, 128, 0, 64)
    ([2, 4], [3])
    >>> visited(0, 64, 0, 0, -1, -1, 64)
    ([], [])
    """

    def first(row):
        return 0 if left < 0 else max(0, row + shift - left)

    def last(row):
        return length if right < 0 else max(0, min(length, row + shift + right + 1))

    low, high = first(begin), last(end - 1)
    if low >= high:
        return [], []
    low_block, high_block = low // columns, math.ceil(high / columns)
    whole_begin = min(max(math.ceil(first(end - 1) / columns), low_block), high_block)
    whole_end = min(max(last(begin) // columns, whole_begin), high_block)
    cut = [*range(low_block, whole_begin), *range(whole_end, high_block)]
    return cut, list(range(whole_begin, whole_end))


def blocks_of(begin, end, length, shift, left, right, columns):
    """(blocks that all rows begin to end - 1 see as a whole, blocks that the mask or the end of
    the sequence cuts): row r sees columns r + shift - left to r + shift + right of `length`;
    a limit of -1 is none.

    >>> blocks_of(0, 64, 200, 0, -1, -1, 64)
    (3, 1)
    >>> blocks_of(64, 128, 128, 0, -1, 0, 64)
    (1, 1)
    >>> blocks_of(256, 320, 512, 0, 128, 0, 64)
    (1, 2)
    >>> blocks_of(0, 64, 0, 0, -1, -1, 64)
    (0, 0)
    """

    cut, whole = visited(begin, end, length, shift, left, right, columns)
    return len(whole), len(cut)


def parts_of(queries, keys, group, tiles):
    """How many parts the keys of a sequence are in.

    >>> parts_of(1, 1025, 4, Tiles(4, 64, 64, 2, 1, few_part=8))
    3
    >>> parts_of(9, 1025, 4, Tiles(4, 64, 64, 2, 1, few_part=8))
    1
    """
    is_few = 0 < queries * group <= min(FEW_PAIRS, tiles.rows)
    return max(1, math.ceil(keys / (tiles.few_part * tiles.columns))) if tiles.few_part and is_few else 1


def list_us(names, segments):
    """What the kernels that make the lists of tiles take, of a function that has kernels of these
    names: one with so many segments makes each list, or one for each step."""
    in_one = sum(name.endswith("_in_one_cta") for name in names)
    if in_one and segments <= CTA_SEGMENTS:
        steps = max(1, math.ceil(math.log2(segments)))
        # A pass for each factor of 2, in which a thread searches a run.
        searches = steps * steps * CONSTANTS["list_search_cycles"].value / clock(0) / 1e3
        return in_one * (CONSTANTS["list_cta_us"].value + searches)
    kernels = [name for name in names if re.search(r"tiles(_(segments|merge|weights))?$", name)]
    merges = max(1, math.ceil(math.log(segments, 16))) if segments > 1 else 0
    launches = sum(merges if name.endswith("_merge") else 1 for name in kernels)
    return launches * CONSTANTS["list_us"].value


@dataclasses.dataclass(frozen=True)
class Item:
    """A tile of a head: active warpgroups, whole blocks and cut ones."""

    warpgroups: int
    whole: int
    cut: int


def items_of(batch, tiles, window):
    """(item, how many there are of it), for a batch of sets.py. A tile of queries has
    the rows of all query heads of a kv head, one query after the other; a tile of keys visits the
    queries of each of these heads."""
    result = []
    left, right = window
    group = batch.heads // batch.kv_heads
    for q, k in zip(batch.q_lengths, batch.k_lengths):
        own, other, shift = (k, q, q - k) if tiles.owns_keys else (q, k, k - q)
        sides = (right, left) if tiles.owns_keys else (left, right)
        packed, each = (1, group) if tiles.owns_keys else (group, 1)
        for begin in range(0, own * packed, tiles.rows):
            end = min(own * packed, begin + tiles.rows)
            rows = begin // packed, math.ceil(end / packed)
            whole, cut = blocks_of(*rows, other, shift, *sides, tiles.columns)
            active = min(tiles.warpgroups, math.ceil((end - begin) / 64))
            if (parts := parts_of(q, k, group, tiles)) > 1:
                # Of few queries one block is cut, the last.
                total = whole + cut
                for part in range(parts):
                    count = max(0, min(tiles.few_part, total - part * tiles.few_part))
                    is_last = part == parts - 1
                    result.append((Item(active, count - is_last * cut, is_last * cut), batch.kv_heads))
                continue
            result.append((Item(active, whole * each, cut * each), batch.kv_heads))
    return result


def ordered_items(batch, tiles, window):
    """The items of tiles of keys that add up sums in their order, as the list has them: of each
    (sequence, kv head, tile), and [(head, block, is_cut)] in the order of its blocks."""
    left, right = window
    group = batch.heads // batch.kv_heads
    lengths = list(enumerate(zip(batch.q_lengths, batch.k_lengths)))
    for sequence, (q, k) in sorted(lengths, key=lambda entry: -entry[1][0]):
        for tile in reversed(range(math.ceil(k / tiles.rows))):
            begin = tile * tiles.rows
            cut, whole = visited(
                begin, min(k, begin + tiles.rows), q, q - k, right, left, tiles.columns
            )
            blocks = [
                (member, block, blocks is cut)
                for blocks in (cut, whole) for member in range(group) for block in blocks
            ]  # fmt: skip
            for head in range(batch.kv_heads):
                yield (sequence, head, tile), blocks


class KernelModel:
    """One kernel: its tiles, and the cycles of its loops over whole and over cut blocks."""

    def __init__(
        self, tiles, whole, cut, straight, head_dim, offsets=sm90.OFFSETS, copies=0, maps=0
    ):
        """`whole` and `cut` are instructions of the loops, `straight` cycles of the code around
        them, once an item, `copies` those of a block by each warp of producers, and `maps` how
        many tensor maps a CTA makes before its first copy."""
        # One warp of four is on each sub-partition.
        self.copies = copies * tiles.producers / 4
        self.maps = maps
        self.tiles, self.straight, self.head_dim = tiles, straight, head_dim
        self.bodies, self.offsets = {"whole": whole, "cut": cut}, offsets
        self.times = {}

    def loop(self, name, warpgroups=None):
        """The LoopTime of a loop with so many active warpgroups a CTA."""
        key = name, warpgroups or self.tiles.warpgroups
        if key not in self.times:
            # One offset is enough for what is a small part of a batch.
            is_main = key == ("whole", self.tiles.warpgroups)
            self.times[key] = sm90.loop_time(
                self.bodies[name], key[1], self.tiles.ctas, self.tiles.ring(self.head_dim),
                offsets=self.offsets if is_main else self.offsets[:1], copies=self.copies,
            )  # fmt: skip
        return self.times[key]

    def overhead(self):
        """Cycles of an item around its blocks: the first copies, the code around the loops, and
        results to memory. Other CTAs of the multiprocessor go on meanwhile, but, as measured,
        no faster than before."""
        own = self.tiles.rows * self.head_dim * 2 * (2 if self.tiles.has_tangents else 1)
        block = self.tiles.ring(self.head_dim).block_bytes
        first = sm90.constant("copy_latency") + own / sm90.constant("copy_bytes")
        written = own / CONSTANTS["item_bytes"].value
        if self.tiles.producers:
            # Blocks are there, and the rows of the tile come while the last results are written.
            return max(first, written) + self.straight
        return first + block / sm90.constant("copy_bytes") + written + self.straight

    def item_cycles(self, item, is_reused):
        """Cycles of an item on a multiprocessor that has as many CTAs as fit. Blocks that no
        other item reads come from memory."""
        warps = item.warpgroups * self.tiles.ctas
        ring = self.tiles.ring(self.head_dim)
        least = (
            0 if is_reused else ring.block_bytes * self.tiles.ctas / CONSTANTS["hbm_bytes"].value
        )
        total = self.overhead()
        for name, count in (("whole", item.whole), ("cut", item.cut)):
            if count:
                total += count * max(self.loop(name, item.warpgroups).cycles * warps, least)
        return total

    def ordered_cycles(self, batch, window, waits=True):
        """When the last of the items ends that wait for each other at the blocks of a head: from
        one to the next it takes a load of the counter, one of the sums, and a fence."""
        handed_on = 2 * sm90.UNITS["load"].latency + sm90.constant("fence")
        bytes_moved = self.tiles.ring(self.head_dim).block_bytes + 2 * self.sum_bytes
        least = bytes_moved * self.tiles.ctas / sm90.constant("copy_bytes")
        warps = self.tiles.warpgroups * self.tiles.ctas
        cost = {
            is_cut: max(self.loop("cut" if is_cut else "whole").cycles * warps, least)
            for is_cut in (False, True)
        }
        slots, ends, overhead = [0.0] * (MULTIPROCESSORS * self.tiles.ctas), {}, self.overhead()
        for (sequence, head, tile), blocks in ordered_items(batch, self.tiles, window):
            time = heapq.heappop(slots) + overhead
            for member, block, is_cut in blocks:
                time += cost[is_cut]
                if waits:
                    before = ends.get((sequence, head, tile + 1, member, block), -handed_on)
                    time = max(time, before + handed_on)
                    ends[sequence, head, tile, member, block] = time
            heapq.heappush(slots, time)
        return max(slots)

    @property
    def sum_bytes(self):
        """Bytes of the f32 sums of a block."""
        return 4 * self.tiles.columns * self.head_dim

    def microseconds(self, batch, window):
        """The kernel alone takes so long: the longest item first, to the CTA that is free first."""
        if self.tiles.five_products:
            return self.ordered_cycles(batch, window) / clock(self.loop("whole").tensor) / 1e3
        items = items_of(batch, self.tiles, window)
        own = batch.k_lengths if self.tiles.owns_keys else batch.q_lengths
        group = 1 if self.tiles.owns_keys else batch.heads // batch.kv_heads
        readers = max(math.ceil(length * group / self.tiles.rows) for length in own)
        cost = {item: self.item_cycles(item, readers > 1) for item, _ in set(items)}
        slots = [0.0] * (MULTIPROCESSORS * self.tiles.ctas)
        for cycles in sorted(
            (cost[item] for item, count in items for _ in range(count)), reverse=True
        ):
            heapq.heappush(slots, heapq.heappop(slots) + cycles)
        tensor = self.loop("whole").tensor
        # A warp each.
        rounds = math.ceil(self.maps / max(1, self.tiles.producers))
        made = rounds * CONSTANTS["map_cycles"].value
        return max(slots) / clock(tensor) / 1e3 + made / clock(0) / 1e3 + self.merge_us(batch)

    def merge_us(self, batch):
        """The kernel that merges the states of parts, whose longest chain decides."""
        if not self.tiles.few_part:
            return 0
        group = batch.heads // batch.kv_heads
        parts = [parts_of(q, k, group, self.tiles) for q, k in zip(batch.q_lengths, batch.k_lengths)]
        rounds = math.ceil(len(parts) * batch.kv_heads / (MULTIPROCESSORS * self.tiles.ctas))
        cycles = rounds * max(parts) * CONSTANTS["merge_part_cycles"].value
        return CONSTANTS["merge_us"].value + cycles / clock(0) / 1e3
