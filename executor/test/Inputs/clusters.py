"""Clusters: a tile that each block brings half of to both, stores to the other
block's shared memory, and reductions by TMA."""

from builder import ALIGNED, Code, Host, module

BLOCKS, THREADS = 8, 128
FAULTS = ["first barrier", "multicast", "last barrier", "wait", "reduce wait"]


def cluster_barrier(code, fault):
    if not code.has(fault):
        code.emit("nvvm.cluster.arrive")
        code.emit("nvvm.cluster.wait")


def kernel(code):
    thread, rank = code.register("tid.x"), code.register("cluster.ctarank")
    block = code.register("ctaid.x")
    tile = code.value("llvm.mlir.addressof @tile : !llvm.ptr<3>")
    inbox = code.value("llvm.mlir.addressof @inbox : !llvm.ptr<3>")
    barrier = code.value("llvm.mlir.addressof @barrier : !llvm.ptr<3>")
    zero = code.constant(0)
    is_first = thread.compare("eq", 0)
    code.open(f"scf.if {is_first}")
    one = code.constant(1)
    code.emit(f"nvvm.mbarrier.init {barrier}, {one} : !llvm.ptr<3>, i32")
    code.emit("nvvm.fence.mbarrier.init")
    code.close()
    # Both barriers are there before either block's copy arrives.
    cluster_barrier(code, "first barrier")
    code.open(f"scf.if {is_first}")
    bytes = code.constant(4096)
    code.emit(f"nvvm.mbarrier.arrive.expect_tx {barrier}, {bytes} : !llvm.ptr<3>, i32")
    half = code.address(tile, rank * 2048, 3)
    to = code.value(f"llvm.addrspacecast {half} : !llvm.ptr<3> to !llvm.ptr<7>")
    mask = code.constant(1 if code.has("multicast") else 3, "i16")
    code.emit(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global "
        f"{to}, %source, {barrier}, box [{zero}, {rank * 16}] multicast_mask = {mask} : "
        "!llvm.ptr<7>, !llvm.ptr"
    )
    code.close()
    ticks = code.constant(1000000)
    code.sync(
        "wait",
        f"nvvm.mbarrier.try_wait.parity {barrier}, {zero}, {ticks} : !llvm.ptr<3>, i32, i32",
    )
    place = code.address(tile, (thread * 8 + rank) * 4, 3)
    value = code.value(f"llvm.load {place} : !llvm.ptr<3> -> f32", "f32")
    index = (block * THREADS + thread) * 4
    code.store(value, code.address("%out", index, 1), 1)

    other = code.value(
        f"nvvm.mapa {inbox}, {rank ^ 1} : !llvm.ptr<3> -> !llvm.ptr<7>"
    )
    place = code.value(
        f"llvm.getelementptr {other}[{thread * 4}] : (!llvm.ptr<7>, i32) -> !llvm.ptr<7>, i8"
    )
    code.emit(f"llvm.store {rank * 1000 + thread}, {place} : i32, !llvm.ptr<7>")
    # What the other block has stored can be read, and neither exits before.
    cluster_barrier(code, "last barrier")
    place = code.address(inbox, (thread ^ 1) * 4, 3)
    value = code.value(f"llvm.load {place} : !llvm.ptr<3> -> i32")
    code.store(value, code.address("%mail", index, 1), 1)

    code.open(f"scf.if {is_first}")
    code.emit(
        f"nvvm.cp.async.bulk.tensor.reduce %sum, {tile}, box [{zero}, {zero}] "
        "{redKind = #nvvm.tma_redux_kind<add>} : !llvm.ptr, !llvm.ptr<3>"
    )
    code.emit("nvvm.cp.async.bulk.commit.group")
    code.sync("reduce wait", "nvvm.cp.async.bulk.wait_group 0")
    code.close()


def build(fault=None):
    code = Code(fault)
    kernel(code)
    host = Host(
        {
            "source": "memref<32x32xf32>",
            "sum": "memref<32x32xf32>",
            "out": f"memref<{BLOCKS}x{THREADS}xf32>",
            "mail": f"memref<{BLOCKS}x{THREADS}xi32>",
        }
    )
    source = host.tensor_map("source", [32, 32], [16, 32], 0, 7, 4)
    sum = host.tensor_map("sum", [32, 32], [32, 32], 0, 7, 4)
    arguments = [source, sum, host.pointer("out"), host.pointer("mail")]
    host.launch("exchange", [BLOCKS], [THREADS], arguments, cluster=[2])
    return module(
        "exchange",
        code,
        host,
        [
            f"%source: !llvm.ptr {ALIGNED}",
            f"%sum: !llvm.ptr {ALIGNED}",
            "%out: !llvm.ptr<1>",
            "%mail: !llvm.ptr<1>",
        ],
        f"nvvm.reqntid = array<i32: {THREADS}>, nvvm.cluster_dim = array<i32: 2, 1, 1>",
        [
            ("tile", "!llvm.array<4096 x i8>"),
            ("inbox", f"!llvm.array<{THREADS} x i32>"),
            ("barrier", "!llvm.array<1 x i64>"),
        ],
    )


def inputs(numpy):
    return {
        "source": numpy.arange(1024, dtype=numpy.float32).reshape(32, 32),
        "sum": numpy.ones((32, 32), numpy.float32),
        "out": numpy.zeros((BLOCKS, THREADS), numpy.float32),
        "mail": numpy.zeros((BLOCKS, THREADS), numpy.int32),
    }


def expected(numpy, source, **_):
    block, thread = numpy.mgrid[:BLOCKS, :THREADS]
    rank = block & 1
    return {
        "sum": 1 + BLOCKS * source,
        "out": source.reshape(-1)[thread * 8 + rank],
        "mail": (rank ^ 1) * 1000 + (thread ^ 1),
    }
