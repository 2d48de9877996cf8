"""A kernel of the sm_90a class: attention with a ring of key and value tiles.

One warp brings tiles by TMA into a ring guarded by mbarriers. Each warpgroup of
consumers has 64 rows of queries: S = Q K^T by wgmma, the softmax in registers, then
O += P V, with P either in shared memory (written through the generic proxy, so
fenced) or in registers. The result leaves by stmatrix and TMA.
"""

from builder import ALIGNED, Code, Host, module

LOG2E = 1.4426950408889634
HEADS, TILES, DIM, ROWS = 2, 3, 64, 64
TILE = ROWS * DIM * 2
STAGES = 2
FAULTS = [
    "init fence", "init barrier", "empty", "full k", "full v", "transactions",
    "release", "early release", "fence s", "fence o", "wait s", "wait o", "proxy p",
    "named barrier", "swizzle", "stride", "layout v", "proxy out", "barrier out",
    "wait out",
]  # fmt: skip


class Attention(Code):
    def __init__(self, groups, registers, fault):
        super().__init__(fault)
        self.groups, self.in_registers = groups, registers
        self.q = 0
        self.k = self.q + groups * TILE
        self.v = self.k + STAGES * TILE
        self.p = self.v + STAGES * TILE
        self.barriers = self.p + groups * TILE
        self.bytes = self.barriers + 256

    # Shared memory and its barriers.

    def at(self, offset):
        return self.address(self.shared, offset, 3)

    def barrier(self, kind, stage):
        """q, or one for each stage of full k, full v, empty."""
        offset = self.barriers + {"q": 0, "k": 8, "v": 8 + 8 * STAGES,
                                  "empty": 8 + 16 * STAGES}[kind]  # fmt: skip
        return self.at(self.constant(stage) * 8 + offset)

    def wait(self, fault, barrier, parity):
        ticks = self.constant(1000000)
        self.sync(
            fault,
            f"nvvm.mbarrier.try_wait.parity {barrier}, {parity}, {ticks} : "
            "!llvm.ptr<3>, i32, i32",
        )

    def expect(self, barrier, count):
        count = self.constant(count)
        self.emit(f"nvvm.mbarrier.arrive.expect_tx {barrier}, {count} : !llvm.ptr<3>, i32")

    def load(self, offset, map, row, barrier):
        to = self.value(
            f"llvm.addrspacecast {self.at(offset)} : !llvm.ptr<3> to !llvm.ptr<7>"
        )
        self.emit(
            "nvvm.cp.async.bulk.tensor.shared.cluster.global "
            f"{to}, {map}, {barrier}, box [{self.constant(0)}, {row}] : "
            "!llvm.ptr<7>, !llvm.ptr"
        )

    # wgmma.

    def descriptor(self, offset):
        base = self.value(f"llvm.ptrtoint {self.shared} : !llvm.ptr<3> to i32")
        low = ((base + offset) & 0x3FFFF) >> 4
        stride = 512 if self.has("stride") else 1024
        high = (1 << 62) | ((stride >> 4) << 32) | (1 << 16)
        wide = self.value(f"arith.extui {low} : i32 to i64", "i64")
        return wide | high

    def wgmma(self, a, b, accumulator, first, b_layout):
        scale = "zero" if first else "one"
        one = "#nvvm.wgmma_scale_in<one>"
        type = f"!llvm.struct<({', '.join(['f32'] * 32)})>"
        return self.value(
            f"nvvm.wgmma.mma_async {a}, {b}, {accumulator}, <m = 64, n = 64, k = 16>, "
            f"D[<f32>, <{scale}>], A[<bf16>, {one}, <row>], B[<bf16>, {one}, <{b_layout}>] : "
            f"{type} -> {type}",
            type,
        )

    def wgmma_registers(self, a, b, accumulator):
        """A in registers: NVVM has no operation for it."""
        type = f"!llvm.struct<({', '.join(['f32'] * 32)})>"
        return self.value(
            f"kernel.wgmma bf16 a({', '.join(map(str, a))}) b({b}) acc({accumulator}) {{b_t}} : "
            f"i32, i32, i32, i32 into {type}",
            type,
        )

    def finish_group(self, fault):
        self.emit("nvvm.wgmma.commit.group.sync.aligned")
        if fault != "wait o":
            self.sync(fault, "nvvm.wgmma.wait.group.sync.aligned 0")


def start(code):
    """Thread 0 initialises the barriers."""
    is_first = code.thread.compare("eq", 0)
    code.open(f"scf.if {is_first}")
    one, all = code.constant(1), code.constant(128 * code.groups)
    barriers = [("q", 0, one)]
    for stage in range(STAGES):
        barriers += [("k", stage, one), ("v", stage, one), ("empty", stage, all)]
    for kind, stage, count in barriers:
        barrier = code.barrier(kind, stage)
        code.emit(f"nvvm.mbarrier.init {barrier}, {count} : !llvm.ptr<3>, i32")
    code.sync("init fence", "nvvm.fence.mbarrier.init")
    code.close()
    code.sync("init barrier", "nvvm.barrier0")


def produce(code, rows):
    code.emit("nvvm.setmaxregister decrease 40")
    is_elected = code.thread.compare("eq", 128 * code.groups)
    code.open(f"scf.if {is_elected}")
    query = code.barrier("q", 0)
    code.expect(query, TILE * code.groups)
    first = rows + code.block * (ROWS * code.groups)
    for group in range(code.groups):
        code.load(code.q + group * TILE, "%q", first + ROWS * group, query)
    zero, one = code.constant(0), code.constant(1)
    code.open(f"scf.for %j = {zero} to %tiles step {one} : i32")
    j = code.step
    stage, phase = j % STAGES, (j // STAGES) & 1
    code.wait("empty", code.barrier("empty", stage), phase ^ 1)
    row = rows + j * ROWS
    full = code.barrier("k", stage)
    code.expect(full, TILE + (16 if code.has("transactions") else 0))
    code.load(stage * TILE + code.k, "%k", row, full)
    full = code.barrier("v", stage)
    code.expect(full, TILE)
    code.load(stage * TILE + code.v, "%v", row, full)
    code.close()
    code.close()


def softmax(code, scores, state):
    """The step on fragments: powers, new maxima and sums, and the corrections."""
    scale = LOG2E / 8
    powers, maxima, sums, corrections = [None] * 32, [], [], []
    for h in range(2):
        own = [i for i in range(32) if (i >> 1) & 1 == h]
        largest = state[h]
        for i in own:
            largest = largest.max(scores[i])
        largest = code.reduce_quad(largest, "max")
        scaled = largest * scale
        correction = code.exp2(state[h] * scale - scaled)
        total = code.constant(0, "f32")
        for i in own:
            powers[i] = code.exp2(scores[i] * scale - scaled)
            total = total + powers[i]
        maxima.append(largest)
        sums.append(state[2 + h] * correction + total)
        corrections.append(correction)
    return powers, maxima, sums, corrections


def store_powers(code, powers, group, warp, lane):
    """P as the A operand in shared memory, swizzled by 128 bytes."""
    row = (group * 64 + warp * 16 + (lane >> 2)) * 128 + (lane & 3) * 4 + code.p
    for n in range(8):
        swizzled = code.constant(n) if code.has("swizzle") else (lane >> 2) ^ n
        for h in range(2):
            packed = code.pack(powers[4 * n + 2 * h], powers[4 * n + 2 * h + 1])
            code.store(packed, code.at(row + swizzled * 16 + h * 1024), 3)
    code.sync(
        "proxy p",
        "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, "
        "space = #nvvm.shared_space<cta>}",
    )
    id, threads = group + 1, code.constant(128)
    code.sync("named barrier", f"nvvm.barrier id = {id} number_of_threads = {threads}")


def attend(code, group, warp, lane, state, output):
    """One tile of keys."""
    j = code.step
    stage, phase = j % STAGES, (j // STAGES) & 1
    struct = f"!llvm.struct<({', '.join(['f32'] * 32)})>"
    code.wait("full k", code.barrier("k", stage), phase)
    scores = code.value(f"llvm.mlir.zero : {struct}", struct)
    code.sync("fence s", "nvvm.wgmma.fence.aligned")
    for k in range(4):
        a = code.descriptor(group * TILE + (code.q + 32 * k))
        b = code.descriptor(stage * TILE + (code.k + 32 * k))
        scores = code.wgmma(a, b, scores, k == 0, "col")
    code.finish_group("wait s")
    powers, maxima, sums, corrections = softmax(code, code.extract(scores, 32), state)
    if not code.in_registers:
        store_powers(code, powers, group, warp, lane)
    code.wait("full v", code.barrier("v", stage), phase)
    old = code.extract(output, 32)
    result = code.value(f"llvm.mlir.undef : {struct}", struct)
    for i in range(32):
        scaled = old[i] * corrections[(i >> 1) & 1]
        result = code.value(f"llvm.insertvalue {scaled}, {result}[{i}] : {struct}", struct)
    fragments = [
        [code.pack(powers[8 * k + 2 * i], powers[8 * k + 2 * i + 1]) for i in range(4)]
        for k in range(4)
    ]
    code.sync("fence o", "nvvm.wgmma.fence.aligned")
    layout = "col" if code.has("layout v") else "row"
    for k in range(4):
        b = code.descriptor(stage * TILE + (code.v + 2048 * k))
        if code.in_registers:
            result = code.wgmma_registers(fragments[k], b, result)
        else:
            a = code.descriptor(group * TILE + (code.p + 32 * k))
            result = code.wgmma(a, b, result, False, layout)
    code.finish_group("wait o")
    early = code.has("early release")
    empty = f"nvvm.mbarrier.arrive {code.barrier('empty', stage)} : !llvm.ptr<3>"
    if early:
        code.emit(empty)
    code.sync("wait o", "nvvm.wgmma.wait.group.sync.aligned 0")
    if not early:
        code.sync("release", empty)
    return maxima + sums, result


def consume(code, rows):
    code.emit("nvvm.setmaxregister increase 232")
    group, lane = code.thread >> 7, code.thread & 31
    warp = (code.thread >> 5) & 3
    struct = f"!llvm.struct<({', '.join(['f32'] * 32)})>"
    zero, lowest = code.constant(0, "f32"), code.constant(-1e30, "f32")
    initial = code.value(f"llvm.mlir.zero : {struct}", struct)
    code.wait("q", code.barrier("q", 0), code.constant(0))
    first, one = code.constant(0), code.constant(1)
    code.open(
        f"%r:5 = scf.for %j = {first} to %tiles step {one} iter_args("
        f"%m0 = {lowest}, %m1 = {lowest}, %l0 = {zero}, %l1 = {zero}, %o = {initial}) "
        f"-> (f32, f32, f32, f32, {struct}) : i32"
    )
    from builder import Value

    state = [Value(code, name, "f32") for name in ("%m0", "%m1", "%l0", "%l1")]
    state, output = attend(code, group, warp, lane, state, "%o")
    code.emit(f"scf.yield {', '.join(map(str, state))}, {output} : f32, f32, f32, f32, {struct}")
    code.close()
    values = code.extract("%r#4", 32)
    scales = [
        code.reciprocal(code.reduce_quad(Value(code, f"%r#{2 + h}", "f32"), "sum"))
        for h in range(2)
    ]
    # The tile of Q is free: the result goes there.
    row = (group * 64 + warp * 16 + ((lane >> 3) & 1) * 8 + (lane & 7)) * 128
    for n in range(0, 8, 2):
        words = [
            code.pack(values[4 * (n + t) + 2 * h] * scales[h],
                      values[4 * (n + t) + 2 * h + 1] * scales[h])
            for t in range(2) for h in range(2)
        ]  # fmt: skip
        column = ((lane >> 4) + n) ^ (lane & 7)
        code.emit(
            f"nvvm.stmatrix {code.at(row + column * 16 + code.q)}, {', '.join(map(str, words))} "
            "{layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
            "eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32, i32, i32, i32"
        )
    code.sync(
        "proxy out",
        "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, "
        "space = #nvvm.shared_space<cta>}",
    )
    id, threads = group + 1, code.constant(128)
    code.sync("barrier out", f"nvvm.barrier id = {id} number_of_threads = {threads}")
    elected = code.value("nvvm.elect.sync -> i1")
    is_warp = warp.compare("eq", 0)
    stores = code.value(f"arith.andi {elected}, {is_warp} : i1")
    code.open(f"scf.if {stores}")
    to = rows + code.block * (ROWS * code.groups) + group * 64
    code.emit(
        f"nvvm.cp.async.bulk.tensor.global.shared.cta %out, {code.at(group * TILE + code.q)}, "
        f"box [{code.constant(0)}, {to}] : !llvm.ptr, !llvm.ptr<3>"
    )
    code.emit("nvvm.cp.async.bulk.commit.group")
    code.sync("wait out", "nvvm.cp.async.bulk.wait_group 0")
    code.close()


def build(fault=None, groups=1, registers=False):
    from builder import Value

    code = Attention(groups, registers, fault)
    code.thread, code.block = code.register("tid.x"), code.register("ctaid.x")
    code.shared = code.value("llvm.mlir.addressof @shared : !llvm.ptr<3>")
    code.step = Value(code, "%j")
    start(code)
    rows = code.register("ctaid.y") * (TILES * ROWS)
    is_producer = (code.thread >> 7).compare("eq", groups)
    code.open(f"scf.if {is_producer}")
    produce(code, rows)
    code.close("} else {")
    code.indent += 1
    consume(code, rows)
    code.close()

    tensor = f"memref<{HEADS}x{TILES * ROWS}x{DIM}xbf16>"
    host = Host({name: tensor for name in ("q", "k", "v", "out")})
    shape = [HEADS * TILES * ROWS, DIM]
    maps = [host.tensor_map(name, shape, [ROWS, DIM], 3, 9, 2) for name in host.arguments]
    tiles = host.code.constant(TILES)
    # Only whole tiles of queries: the rest of `out` stays.
    host.launch(
        "attention",
        [TILES // groups, HEADS],
        [128 * groups + 128],
        [*maps, tiles],
        shared=code.bytes,
    )
    arguments = [f"%{name}: !llvm.ptr {ALIGNED}" for name in host.arguments] + ["%tiles: i32"]
    threads = 128 * groups + 128
    return module(
        "attention",
        code,
        host,
        arguments,
        f"nvvm.reqntid = array<i32: {threads}>, nvvm.maxnreg = 168 : i32",
        [("shared", "!llvm.array<0 x i8>")],
    )


def inputs(numpy, round):
    random = numpy.random.default_rng(1)
    shape = (HEADS, TILES * ROWS, DIM)
    tensors = {name: round(random.normal(size=shape)) for name in ("q", "k", "v")}
    tensors["out"] = round(numpy.zeros(shape))
    return tensors


def expected(numpy, q, k, v, out, groups=1):
    scores = q @ k.transpose(0, 2, 1) / 8
    powers = numpy.exp(scores - scores.max(-1, keepdims=True))
    result = powers / powers.sum(-1, keepdims=True) @ v
    written = TILES // groups * groups * ROWS
    result[:, written:] = out[:, written:]
    return {"out": result}
