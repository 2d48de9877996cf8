"""Kernels whose blocks communicate in global memory: sums by atomics, and blocks that wait
for each other."""

from builder import Code, Host, module

BLOCKS, THREADS = 64, 128


def build_atomics(fault=None):
    """Each thread adds what another has stored, through shared memory, to one of 32
    sums."""
    code = Code(fault)
    thread = code.register("tid.x")
    shared = code.value("llvm.mlir.addressof @values : !llvm.ptr<3>")
    number = code.value(f"arith.uitofp {thread} : i32 to f32", "f32")
    code.store(number, code.address(shared, thread * 4, 3), 3)
    code.sync("barrier", "nvvm.barrier0")
    # One past the end of the dynamic shared memory, with the fault.
    last = THREADS if code.has("bounds") else THREADS - 1
    other = code.address(shared, (code.constant(last) - thread) * 4, 3)
    value = code.value(f"llvm.load {other} : !llvm.ptr<3> -> f32", "f32")
    # Past the end of the sums, with the fault.
    slot = (thread & 31) + (1 if code.has("atomic bounds") else 0)
    place = code.address("%sums", slot * 4, 1)
    code.value(
        f'llvm.atomicrmw fadd {place}, {value} syncscope("device") monotonic : '
        "!llvm.ptr<1>, f32",
        "f32",
    )
    host = Host({"sums": "memref<32xf32>"})
    pointers = [host.pointer(name) for name in host.arguments]
    host.launch("sums", [BLOCKS], [THREADS], pointers, shared=4 * THREADS)
    return module(
        "sums",
        code,
        host,
        [f"%{name}: !llvm.ptr<1>" for name in host.arguments],
        f"nvvm.maxntid = array<i32: {THREADS}>",
        [("values", "!llvm.array<0 x f32>")],
    )


def expected_atomics(numpy):
    thread = numpy.arange(THREADS)
    sums = numpy.zeros(32)
    numpy.add.at(sums, thread & 31, BLOCKS * (THREADS - 1 - thread))
    return {"sums": sums}


CHAIN, CHAIN_THREADS = 6, 64


def build_chain(fault=None):
    """Each block waits for the one after it, takes its total and adds its own
    number."""
    code = Code(fault)
    block, thread = code.register("ctaid.x"), code.register("tid.x")
    is_first = thread.compare("eq", 0)
    code.open(f"scf.if {is_first}")
    flag = code.address("%flags", (block + 1) * 4, 1)
    code.open("scf.while : () -> ()")
    acquire = "monotonic" if code.has("acquire") else "acquire"
    ready = code.value(
        f'llvm.load {flag} atomic syncscope("device") {acquire} {{alignment = 4 : i64}} : '
        "!llvm.ptr<1> -> i32"
    )
    waits = ready.compare("eq", 0)
    code.emit(f"scf.condition({waits})")
    code.close("} do {")
    code.indent += 1
    code.emit("scf.yield")
    code.close()
    code.close()
    # Another thread reads what the first has waited for, and the first tells
    # others of what that thread writes.
    code.sync("barrier before", "nvvm.barrier0")
    is_last = thread.compare("eq", CHAIN_THREADS - 1)
    code.open(f"scf.if {is_last}")
    next = code.address("%totals", (block + 1) * 4, 1)
    total = code.value(f"llvm.load {next} : !llvm.ptr<1> -> i32")
    code.store(total * 2 + block, code.address("%totals", block * 4, 1), 1)
    code.close()
    code.sync("barrier behind", "nvvm.barrier0")
    code.open(f"scf.if {is_first}")
    own = code.address("%flags", block * 4, 1)
    one = code.constant(1)
    release = "monotonic" if code.has("release") else "release"
    code.emit(
        f'llvm.store {one}, {own} atomic syncscope("device") {release} {{alignment = 4 : i64}} : '
        "i32, !llvm.ptr<1>"
    )
    code.close()
    host = Host(
        {"flags": f"memref<{CHAIN + 1}xi32>", "totals": f"memref<{CHAIN + 1}xi32>"}
    )
    pointers = [host.pointer(name) for name in host.arguments]
    host.launch("chain", [CHAIN], [CHAIN_THREADS], pointers)
    return module(
        "chain",
        code,
        host,
        [f"%{name}: !llvm.ptr<1>" for name in host.arguments],
        f"nvvm.reqntid = array<i32: {CHAIN_THREADS}>",
    )


def chain_inputs(numpy):
    flags = numpy.zeros(CHAIN + 1, numpy.int32)
    flags[CHAIN] = 1
    return {"flags": flags, "totals": numpy.zeros(CHAIN + 1, numpy.int32)}


def expected_chain(numpy):
    totals = numpy.zeros(CHAIN + 1, numpy.int32)
    for block in reversed(range(CHAIN)):
        totals[block] = 2 * totals[block + 1] + block
    return {"flags": numpy.ones(CHAIN + 1, numpy.int32), "totals": totals}
