"""A kernel of the sm_80 class: rows of softmax(A B).

Each block has a 64x64 tile of A and of B, in bf16. cp.async brings them to shared
memory with the columns of 16 bytes swizzled, ldmatrix and mma.sync multiply, four
lanes share a row of the softmax.
"""

from builder import Code, Host, module

LOG2E = 1.4426950408889634
BLOCKS = 2
FAULTS = ["commit", "wait", "barrier", "operands", "transpose", "shuffle"]


def copy_tile(code, thread, source, offset, shared, base):
    """64 rows of 128 bytes, 16 bytes at a time."""
    for i in range(4):
        chunk = thread + 128 * i
        row, column = chunk >> 3, chunk & 7
        to = row * 128 + (column ^ (row & 7)) * 16 + base
        target = code.address(shared, to, 3)
        origin = code.address(source, chunk * 16 + offset, 1)
        code.emit(
            f"nvvm.cp.async.shared.global {target}, {origin}, 16, cache = cg : "
            "!llvm.ptr<3>, !llvm.ptr<1>"
        )


def multiply(code, shared, lane, warp):
    """The fragments of the warp's 16 rows: 8 tiles of 8 columns."""
    row = lane & 15
    half = lane >> 4
    zero = code.constant(0, "f32")
    result = [[zero] * 4 for _ in range(8)]
    for k in range(4):
        column = (half + 2 * k) ^ (lane & 7)
        a = code.ldmatrix(
            code.address(shared, (warp * 16 + row) * 128 + column * 16, 3)
        )
        if code.has("operands"):
            a[1], a[2] = a[2], a[1]
        for n in range(4):
            column = (half + 2 * n) ^ (lane & 7)
            offset = (row + 16 * k) * 128 + column * 16 + 8192
            b = code.ldmatrix(
                code.address(shared, offset, 3), transposed=not code.has("transpose")
            )
            for h in range(2):
                result[2 * n + h] = code.mma(a, b[2 * h : 2 * h + 2], result[2 * n + h])
    return result


def kernel(code):
    thread, block = code.register("tid.x"), code.register("ctaid.x")
    shared = code.value("llvm.mlir.addressof @tiles : !llvm.ptr<3>")
    lane, warp = thread & 31, thread >> 5
    copy_tile(code, thread, "%a", block * 8192, shared, 0)
    copy_tile(code, thread, "%b", block * 8192, shared, 8192)
    code.sync("commit", "nvvm.cp.async.commit.group")
    code.sync("wait", "nvvm.cp.async.wait.group 0")
    code.sync("barrier", "nvvm.barrier0")
    scores = multiply(code, shared, lane, warp)
    group, quad = lane >> 2, lane & 3
    for h in range(2):
        values = [scores[n][2 * h + q] for n in range(8) for q in range(2)]
        largest = values[0]
        for x in values[1:]:
            largest = largest.max(x)
        largest = code.reduce_quad(largest, "max")
        powers = [code.exp2((x - largest) * LOG2E) for x in values]
        total = powers[0]
        for x in powers[1:]:
            total = total + x
        scale = code.reciprocal(code.reduce_quad(total, "sum"))
        row = warp * 16 + group + 8 * h
        for n in range(8):
            for q in range(2):
                column = quad * 2 + (8 * n + q)
                offset = (row * 64 + column) * 4 + block * 16384
                code.store(powers[2 * n + q] * scale, code.address("%out", offset, 1), 1)


def build(fault=None):
    code = Code(fault)
    kernel(code)
    tiles = f"memref<{BLOCKS}x64x64xbf16>"
    host = Host({"a": tiles, "b": tiles, "out": f"memref<{BLOCKS}x64x64xf32>"})
    pointers = [host.pointer(name) for name in host.arguments]
    host.launch("softmax", [BLOCKS], [128], pointers)
    arguments = [f"%{name}: !llvm.ptr<1>" for name in ("a", "b", "out")]
    return module(
        "softmax",
        code,
        host,
        arguments,
        "nvvm.reqntid = array<i32: 128>",
        [("tiles", "!llvm.array<16384 x i8>")],
    )


def inputs(numpy, round):
    random = numpy.random.default_rng(1)
    shape = (BLOCKS, 64, 64)
    return {
        "a": round(random.normal(size=shape)),
        "b": round(random.normal(size=shape)),
        "out": numpy.zeros(shape, numpy.float32),
    }


def expected(numpy, a, b, out):
    scores = a @ b
    powers = numpy.exp(scores - scores.max(-1, keepdims=True))
    return {"out": powers / powers.sum(-1, keepdims=True)}
