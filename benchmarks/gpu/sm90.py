"""How long a loop of machine code takes on Hopper: one of the four sub-partitions of a
multiprocessor, with a warp of each warpgroup, simulated instruction by instruction.

Warps issue in order, one instruction a cycle among them, as the scoreboards and stall counts of
the machine code let them. Products of wgmma go through a queue of each warp to the tensor core,
which takes from the queues in turn. Tensor core and CUDA cores share something, most likely ports
of the register file: an instruction beside a product makes the product later. A product whose
operands shared memory gives too slowly waits anyway, and instructions during that cost nothing.
"""

import collections
import dataclasses
import math

# ---- Constants


@dataclasses.dataclass(frozen=True)
class Unit:
    """What executes instructions of a kind. Cycles of one warp's instruction: between two of
    them `alone` and `beside` a product, what it `takes` from the tensor core, and until its
    result is there. `op` is the row of benchmarks/results/h200/micro.jsonl (test "contention",
    three warpgroups, products SS_n128; test "latency") that the numbers are from; None: `why`."""

    alone: float
    beside: float
    takes: float
    latency: float
    op: str | None
    why: str = ""
    # Takes from shared memory, too: a product that waits for its operands waits longer.
    is_shared: bool = False


UNITS = {
    "fp32": Unit(1.029, 1.083, 1.005, 4.0, "FFMA"),
    "alu": Unit(2.019, 3.435, 0.897, 4.0, "FMNMX"),
    "exp2": Unit(8.018, 10.414, 0.240, 16.97, "MUFU.EX2"),
    "shuffle": Unit(3.972, 4.618, 3.755, 23.67, "SHFL", is_shared=True),
    "shared": Unit(4.004, 7.707, 2.877, 23.09, "LDS.32", is_shared=True),
    "shared128": Unit(15.685, 20.775, 14.130, 32.0, "LDS.128", "latency: assumed", is_shared=True),
    "load": Unit(4.0, 4.0, 1.0, 400.0, None, "assumed: few a loop, hidden by what is ahead of it"),
    "copy": Unit(32.0, 32.0, 12.0, 30.0, None, "fitted, of 0, 6, 12 and 16; near LDS.128",
                 is_shared=True),
}  # fmt: skip

_UNIT_OF = {
    "fp32": "fp32", "mma": "alu", "exp2": "exp2", "max": "alu", "convert": "alu", "select": "alu",
    "integer": "alu", "move": "alu", "shuffle": "shuffle", "shared": "shared", "load": "load",
    "copy": "copy",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Constant:
    value: float
    source: str


CONSTANTS = {
    # A product of n columns takes n / 2 cycles, and a bit: 33.1 for 32, 64.7 for 64.
    "product_gap": Constant(0.9, "micro: mma_alone RS_n64 and SS_n128"),
    "shared_bytes": Constant(104.2, "micro: mma_alone SS_n64, 4096 bytes in 39.3 cycles"),
    "queue": Constant(8, "micro: depth, products of a warp before its issue waits"),
    "to_tensor": Constant(20.0, "micro: depth, distance of two issues"),
    "to_warp": Constant(34.0, "micro: latency of one SS_n64 and its wait, 87, less 33 and 20"),
    "mixed": Constant(1.15, "fitted: what mixed instructions take from products, over one kind "
                      "alone; micro: MIX_FA3 takes 1.24, its parts up to 1.0"),
    "barrier": Constant(50.2, "micro: latency, bar.sync/arrive hand-over"),
    "mbarrier": Constant(103.7, "micro: latency, mbarrier hand-over"),
    "copy_latency": Constant(900.0, "micro: tma latency_32KB, one CTA 828, all 988"),
    "copy_bytes": Constant(38.5, "micro: tma l2_heads_of_8_ctas, bytes a cycle and multiprocessor"),
    "fence": Constant(600.0, "estimate: what a warp has stored is in the second-level cache"),
    "tma_takes": Constant(0.0027, "micro: tma beside products, 73.6 cycles for 64.7 at 44 B"),
}  # fmt: skip


def constant(name):
    return CONSTANTS[name].value


# ---- Programs


@dataclasses.dataclass(frozen=True)
class Ring:
    """The ring of blocks of a CTA: `stages` slots of `rings` rings, `slack` of them kept free,
    `lag` of the product with the values, and bytes that a CTA copies for a block."""

    stages: int
    slack: int
    lag: int
    rings: int
    block_bytes: int
    has_producers: bool = False

    @property
    def ahead(self):
        """How many blocks copies are ahead of products."""
        return self.stages - 1 - (self.slack if self.rings == 1 else 0)

    @property
    def is_apart(self):
        """Whether slots have mbarriers, so that warpgroups need not be at the same block."""
        return self.slack > 0 or self.rings > 1 or self.has_producers


@dataclasses.dataclass(frozen=True)
class _Step:
    """An instruction as the simulation has it."""

    what: str  # a unit, or what is done
    stall: int
    sets: int | None
    reads: int | None
    waits: tuple
    # product: (cycles, cycles that its operands take, ends a group); wait: groups that may be
    # in flight; others: number of the ring
    of: object = None


def product_cycles(columns, is_a_shared):
    """(cycles that the tensor core multiplies, cycles that shared memory takes)."""
    read = 32 * columns + (2048 if is_a_shared else 0)
    return columns / 2 + constant("product_gap"), read / constant("shared_bytes")


def _unit(x):
    """The unit that executes an instruction, or "issue": none that others wait for."""
    base = x.name.split(".")[0]
    if x.predicate == "@!PT":
        return "issue"
    if x.kind == "shared" and (".128" in x.name or ".4" in x.name):
        return "shared128"
    if base in ("I2F", "F2I", "F2F"):
        return "exp2"
    if base == "R2UR":
        return "alu"
    return _UNIT_OF.get(x.kind, "issue")


def decode(body):
    """Steps of a loop. Rings are numbered by the addresses of their mbarriers: what copies
    arrive at is full; without copies, those of a producer, what is waited for and not freed."""
    freed = sorted({x.address for x in body if x.name.startswith("SYNCS.ARRIVE")})
    full = sorted({x.address for x in body if x.name.startswith("ARRIVES")}) or sorted(
        {x.address for x in body if "TRYWAIT" in x.name} - set(freed)
    )
    steps = []
    for x in body:
        what, of = _unit(x), None
        if x.kind == "wgmma":
            what, of = "product", (*product_cycles(x.columns, x.is_a_shared), "gsb0" in x.operands)
        elif x.name.startswith("WARPGROUP.DEPBAR"):
            what, of = "wait", int(x.operands.split(",")[-1], 16)
        elif "TRYWAIT" in x.name and x.address in full:
            what, of = "full", full.index(x.address)
        elif "TRYWAIT" in x.name and x.address in freed:
            what, of = "empty", freed.index(x.address)
        elif x.name.startswith("SYNCS.ARRIVE"):
            what, of = "release", freed.index(x.address)
        elif x.name.startswith("ARRIVES"):
            what, of = "commit", full.index(x.address)
        elif x.name.startswith("BAR."):
            what, of = "barrier", 0
        waits = tuple(bit for bit in range(6) if x.waits >> bit & 1)
        stall = x.stall
        if x.name.startswith("MEMBAR.ALL.GPU"):
            stall = max(stall, round(constant("fence")))
        steps.append(_Step(what, stall, x.sets, x.reads, waits, of))
    return steps


# What the cycles of a block are for, in `costs`.
COSTS = ("products", "their operands", "softmax", "copies", "other memory")


def costs(body):
    """Cycles of the tensor core by what they are for: products; what shared memory adds to those
    whose operands it gives too slowly; and what instructions beside products take. The simulated
    cycles above their sum are waits; below it, instructions in the shadow of operands."""
    result = dict.fromkeys(COSTS, 0.0)
    for step in decode(body):
        if step.what == "product":
            cycles, fed, _ = step.of
            result["products"] += cycles
            result["their operands"] += max(0.0, fed - cycles)
        elif step.what in UNITS:
            unit = UNITS[step.what]
            where = (
                "copies" if step.what == "copy" else "other memory" if unit.is_shared else "softmax"
            )
            result[where] += unit.takes * (1 if unit.is_shared else constant("mixed"))
    return result


# ---- Simulation


class _TensorCore:
    """Serves the queues of warps in turn. Times are of the sub-partition's clock."""

    def __init__(self, warps):
        self.queues = [collections.deque() for _ in range(warps)]  # (cycles, fed, group, since)
        self.groups = [[] for _ in range(warps)]  # times at which groups of products are done
        self.turn, self.warp, self.group = 0, None, None
        self.multiplied = self.fed = self.end = 0.0
        self.multiplying = 0.0

    def is_busy(self, time):
        return self.warp is not None and time < self.end

    def put(self, warp, cycles, fed, ends_group, time):
        group = None
        if ends_group:
            self.groups[warp].append(None)
            group = len(self.groups[warp]) - 1
        self.queues[warp].append((cycles, fed, group, time + constant("to_tensor")))

    def take(self, unit):
        """An instruction beside the product that runs."""
        cycles = unit.takes * (1 if unit.is_shared else constant("mixed"))
        self.multiplied += cycles
        if unit.is_shared:
            self.fed += cycles
        self.end = max(self.multiplied, self.fed)

    def next_event(self):
        """When the product that runs ends, or else the next one starts; None: there is none."""
        if self.warp is not None:
            return self.end
        heads = [queue[0][3] for queue in self.queues if queue]
        return max(self.end, min(heads)) if heads else None

    def advance(self, time):
        """Ends and starts products up to a time; whether there were such."""
        changed = False
        while (event := self.next_event()) is not None and event <= time:
            changed = True
            if self.warp is not None:
                if self.group is not None:
                    self.groups[self.warp][self.group] = self.end
                self.warp = None
                continue
            count = len(self.queues)
            order = ((self.turn + k) % count for k in range(count))
            warp = next(w for w in order if self.queues[w] and self.queues[w][0][3] <= event)
            cycles, fed, self.group, _ = self.queues[warp].popleft()
            self.warp, self.turn = warp, (warp + 1) % count
            self.multiplied, self.fed = event + cycles, event + fed
            self.end = max(self.multiplied, self.fed)
            self.multiplying += cycles
        return changed


class _Rings:
    """When slots are full and free, of each CTA and ring: the time at which all warpgroups have
    arrived, and what follows from it."""

    def __init__(self, ring, warpgroups, by_producer):
        self.ring, self.warpgroups, self.by_producer = ring, warpgroups, by_producer
        self.arrived = collections.defaultdict(list)
        self.full, self.free = {}, {}
        self.link = 0.0  # when the path to the second-level cache has time for the next copy

    def _copy(self, time):
        start = max(time, self.link)
        self.link = start + self.ring.block_bytes / self.ring.rings / constant("copy_bytes")
        latency = constant("copy_latency")
        return max(time + latency, self.link + latency / 2)

    def _all(self, key, time):
        """The latest time of the arrivals at a key, once all warpgroups have arrived."""
        times = self.arrived[key]
        times.append(time)
        return max(times) if len(times) == self.warpgroups else None

    def commit(self, cta, number, block, time):
        done = self._all(("full", cta, number, block), time)
        if done is not None:
            self.full[cta, number, block] = self._copy(done)

    def release(self, cta, number, block, time):
        done = self._all(("free", cta, number, block), time)
        if done is not None:
            self.free[cta, number, block] = done
            if self.by_producer:
                following = block + self.ring.stages
                self.full[cta, number, following] = self._copy(done + 2 * constant("mbarrier"))

    def full_at(self, cta, number, block):
        """None: not known yet. The blocks that were copied before the loop are there."""
        first = self.ring.stages if self.by_producer else self.ring.ahead
        return 0.0 if block < first else self.full.get((cta, number, block))

    def free_at(self, cta, number, block):
        return 0.0 if block < 0 else self.free.get((cta, number, block))


class Deadlock(Exception):
    """No warp can go on: the loop is not one of the protocol of Ring."""


def _simulate(steps, warpgroups, ctas, ring, iterations, offset):
    """(cycles of an iteration, share of them in which the tensor core multiplies)."""
    warps, length = warpgroups * ctas, len(steps)
    by_producer = ring.is_apart and not any(step.what == "commit" for step in steps)
    core, rings = _TensorCore(warps), _Rings(ring, warpgroups, by_producer)
    at, iteration, starts = [0] * warps, [0] * warps, [[] for _ in range(warps)]
    ready = [float(offset * w) for w in range(warps)]
    boards = [[0.0] * 6 for _ in range(warps)]
    free = dict.fromkeys(UNITS, 0.0)
    barriers, port = collections.defaultdict(dict), 0.0
    queue, to_warp = constant("queue"), constant("to_warp")
    barrier, mbarrier = constant("barrier"), constant("mbarrier")
    never = math.inf

    def earliest(w, step, time):
        """When a warp's next instruction may be issued, as far as is known; never: not yet."""
        time = max(time, port)
        board = boards[w]
        for bit in step.waits:
            time = max(time, board[bit])
        what, cta = step.what, w // warpgroups
        if what in free:
            return max(time, free[what])
        if what == "issue":
            return time
        known = 0.0
        if what == "product":
            known = None if len(core.queues[w]) >= queue else 0.0
        elif what == "wait":
            groups = core.groups[w]
            needed = len(groups) - step.of
            if needed > 0:
                known = groups[needed - 1]
                known = None if known is None else known + to_warp
        elif what == "full" and ring.is_apart:
            known = rings.full_at(cta, step.of, iteration[w])
            known = None if known is None else known + mbarrier
        elif what == "empty" and ring.is_apart:
            known = rings.free_at(cta, step.of, iteration[w] + ring.ahead - ring.stages)
            known = None if known is None else known + mbarrier
        elif what == "barrier":
            there = barriers[cta, iteration[w], at[w]]
            there.setdefault(w, time)
            known = None if len(there) < warpgroups else max(there.values()) + barrier
            if known is not None and not ring.is_apart:
                copied = rings.full_at(cta, 0, iteration[w])
                known = None if copied is None else max(known, copied)
        return never if known is None else max(time, known)

    while min(iteration) < iterations:
        w = min(range(warps), key=ready.__getitem__)
        time = ready[w]
        if never in ready:
            # A product that ends before that may be what another warp waits for.
            event = core.next_event()
            if event is not None:
                time = min(time, event)
            elif time == never:
                raise Deadlock(", ".join(f"{steps[a].what} {i}" for a, i in zip(at, iteration)))
        if core.advance(time):
            ready = [time if r == never else r for r in ready]
            continue
        step = steps[at[w]]
        if step.what == "issue" and not step.waits:
            start = max(time, port)
        else:
            start = earliest(w, step, time)
        if start > time:
            ready[w] = start
            continue
        # Issued.
        what, cta = step.what, w // warpgroups
        latency, reading = 6.0, 4.0
        if at[w] == 0:
            starts[w].append(time)
        if what in free:
            unit, beside = UNITS[what], core.is_busy(time)
            free[what] = time + (unit.beside if beside else unit.alone)
            if beside:
                core.take(unit)
            latency, reading = unit.latency, unit.alone
        elif what == "product":
            core.put(w, *step.of, time)
        elif what == "release":
            rings.release(cta, step.of, iteration[w] - ring.lag, time)
        elif what == "commit" or (what == "barrier" and not ring.is_apart):
            rings.commit(cta, step.of, iteration[w] + ring.ahead, time)
        if what in ("release", "commit", "barrier"):
            ready = [time if r == never else r for r in ready]
        if step.sets is not None:
            boards[w][step.sets] = max(boards[w][step.sets], time + latency)
        if step.reads is not None:
            boards[w][step.reads] = max(boards[w][step.reads], time + reading + 8)
        port = time + 1
        ready[w] = time + step.stall
        at[w] += 1
        if at[w] == length:
            at[w], iteration[w] = 0, iteration[w] + 1
    # The first third is not the steady state.
    skipped, last = iterations // 3, iterations - 1
    cycles = sum((s[last] - s[skipped]) / (last - skipped) for s in starts) / warps
    return cycles, core.multiplying / port


# How far apart warps start, in cycles, which changes what an iteration takes by some percent.
OFFSETS = (37, 300, 777)


@dataclasses.dataclass(frozen=True)
class LoopTime:
    """`cycles` of a sub-partition for one block of one warpgroup (its 64 rows), the mean over the
    offsets of warps, with the least and the most; `tensor` is the share in which the tensor core
    multiplies."""

    cycles: float
    least: float
    most: float
    tensor: float


def loop_time(body, warpgroups, ctas, ring, iterations=11, offsets=OFFSETS, copies=0):
    """The LoopTime of a loop's instructions (sass.path), with as many CTAs a multiprocessor.
    Producers copy a block by so many instructions of a sub-partition; 0: by TMA."""
    steps = decode(body)
    if ring.is_apart and not any(step.what == "commit" for step in steps):
        # Copies of a producer take from products, too.
        total = sum(step.of[0] for step in steps if step.what == "product")
        taken = (
            copies * UNITS["copy"].takes if copies else constant("tma_takes") * ring.block_bytes
        )
        more = taken / warpgroups / total
        steps = [
            dataclasses.replace(s, of=(s.of[0] * (1 + more), s.of[1] * (1 + more), s.of[2]))
            if s.what == "product" else s
            for s in steps
        ]  # fmt: skip
    found = [_simulate(steps, warpgroups, ctas, ring, iterations, o) for o in offsets]
    blocks = [cycles / (warpgroups * ctas) for cycles, _ in found]
    tensor = sum(share for _, share in found) / len(found)
    return LoopTime(sum(blocks) / len(blocks), min(blocks), max(blocks), tensor)
