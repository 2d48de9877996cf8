"""Writes kernels as text: SSA values with Python's operators.

A kernel is straight-line code of the llvm and nvvm dialects with scf and arith
around it, unrolled where registers are unrolled. `fault` names one statement
that is left out or changed, to see that the executor finds it.
"""

PTR = {0: "!llvm.ptr", 1: "!llvm.ptr<1>", 3: "!llvm.ptr<3>", 7: "!llvm.ptr<7>"}
ALIGNED = "{llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}"


class Value:
    """An SSA value; integers on the other side become constants."""

    def __init__(self, code, name, type="i32"):
        self.code, self.name, self.type = code, name, type

    def __str__(self):
        return self.name

    def _binary(self, op, other):
        other = self.code.constant(other, self.type)
        return self.code.value(f"arith.{op} {self}, {other} : {self.type}", self.type)

    def _kind(self, integer, real):
        return real if self.type == "f32" else integer

    def __add__(self, other):
        return self._binary(self._kind("addi", "addf"), other)

    def __sub__(self, other):
        return self._binary(self._kind("subi", "subf"), other)

    def __mul__(self, other):
        return self._binary(self._kind("muli", "mulf"), other)

    def __floordiv__(self, other):
        return self._binary("divui", other)

    def __mod__(self, other):
        return self._binary("remui", other)

    def __and__(self, other):
        return self._binary("andi", other)

    def __or__(self, other):
        return self._binary("ori", other)

    def __xor__(self, other):
        return self._binary("xori", other)

    def __rshift__(self, other):
        return self._binary("shrui", other)

    def max(self, other):
        return self._binary("maximumf", other)

    def compare(self, predicate, other):
        other = self.code.constant(other, self.type)
        return self.code.value(
            f"arith.cmpi {predicate}, {self}, {other} : {self.type}", "i1"
        )


class Code:
    """The lines of one function."""

    def __init__(self, fault=None):
        self.lines = []
        self.count = 0
        self.fault = fault
        self.faults = []
        self.indent = 2

    def emit(self, text):
        self.lines.append("  " * self.indent + text)

    def value(self, text, type="i32"):
        self.count += 1
        name = f"%v{self.count}"
        self.emit(f"{name} = {text}")
        return Value(self, name, type)

    def constant(self, number, type="i32"):
        if isinstance(number, Value):
            return number
        text = f"{float(number):.9e}" if type == "f32" else int(number)
        return self.value(f"arith.constant {text} : {type}", type)

    def has(self, fault):
        """Whether the statement of this name is the one at fault."""
        self.faults.append(fault)
        return self.fault == fault

    def sync(self, fault, text):
        """A statement that can be left out."""
        if not self.has(fault):
            self.emit(text)

    def open(self, text):
        self.emit(text + " {")
        self.indent += 1

    def close(self, text="}"):
        self.indent -= 1
        self.emit(text)

    def register(self, name):
        return self.value(f"nvvm.read.ptx.sreg.{name} : i32")

    def address(self, base, offset, space):
        offset = self.constant(offset)
        return self.value(
            f"llvm.getelementptr {base}[{offset}] : ({PTR[space]}, i32) -> {PTR[space]}, i8",
            PTR[space],
        )

    def extract(self, struct, count, type="f32"):
        members = ", ".join([type] * count)
        return [
            self.value(f"llvm.extractvalue {struct}[{i}] : !llvm.struct<({members})>", type)
            for i in range(count)
        ]

    # Arithmetic of the kernels.

    def exp2(self, x):
        return self.value(
            f'llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"({x}) : (f32) -> f32', "f32"
        )

    def reciprocal(self, x):
        return self.value(f"nvvm.rcp.approx.ftz.f {x} : f32", "f32")

    def pack(self, low, high):
        pair = self.value(
            f"nvvm.convert.f32x2.to.bf16x2 {high}, {low} "
            "{rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>"
        )
        return self.value(f"llvm.bitcast {pair} : vector<2xbf16> to i32")

    def reduce_quad(self, x, op):
        """Over the four lanes that hold one row of a fragment."""
        mask, clamp = self.constant(-1), self.constant(31)
        for distance in (1, 2):
            if distance == 2 and self.has("shuffle"):
                continue
            step = self.constant(distance)
            other = self.value(
                f"nvvm.shfl.sync bfly {mask}, {x}, {step}, {clamp} : f32 -> f32", "f32"
            )
            x = x.max(other) if op == "max" else x + other
        return x

    # Matrix instructions.

    def ldmatrix(self, address, transposed=False):
        layout = "col" if transposed else "row"
        words = self.value(
            f"nvvm.ldmatrix {address} {{num = 4 : i32, layout = #nvvm.mma_layout<{layout}>, "
            "shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
            "eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> "
            "!llvm.struct<(i32, i32, i32, i32)>"
        )
        return self.extract(words, 4, "i32")

    def mma(self, a, b, c):
        names = [", ".join(map(str, x)) for x in (a, b, c)]
        d = self.value(
            f"nvvm.mma.sync A[{names[0]}] B[{names[1]}] C[{names[2]}] "
            "{layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, "
            "multiplicandAPtxType = #nvvm.mma_type<bf16>, "
            "multiplicandBPtxType = #nvvm.mma_type<bf16>, "
            "shape = #nvvm.shape<m = 16, n = 8, k = 16>} : "
            "(i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>"
        )
        return self.extract(d, 4)

    def store(self, value, address, space):
        self.emit(f"llvm.store {value}, {address} : {value.type}, {PTR[space]}")


class Host:
    """The function that launches a kernel; memrefs are memory of the GPU."""

    def __init__(self, arguments):
        self.code = Code()
        self.arguments = arguments

    def pointer(self, name):
        """The address of a memref argument."""
        code = self.code
        type = self.arguments[name]
        index = code.value(
            f"memref.extract_aligned_pointer_as_index %{name} : {type} -> index", "index"
        )
        word = code.value(f"arith.index_cast {index} : index to i64", "i64")
        return code.value(f"llvm.inttoptr {word} : i64 to !llvm.ptr<1>", PTR[1])

    def words(self, values, type):
        code = self.code
        count = code.constant(len(values), "i32")
        slot = code.value(
            f"llvm.alloca {count} x {type} : (i32) -> !llvm.ptr", PTR[0]
        )
        for i, value in enumerate(values):
            place = code.value(
                f"llvm.getelementptr {slot}[{i}] : (!llvm.ptr) -> !llvm.ptr, {type}", PTR[0]
            )
            code.emit(f"llvm.store {code.constant(value, type)}, {place} : {type}, !llvm.ptr")
        return slot

    def tensor_map(self, name, shape, box, swizzle, type, size):
        """The value of a tensor map of a matrix; `type` and `swizzle` are the driver's."""
        code = self.code
        address = code.value(
            f"llvm.addrspacecast {self.pointer(name)} : !llvm.ptr<1> to !llvm.ptr", PTR[0]
        )
        one = code.constant(1)
        slot = code.value(
            f"llvm.alloca {one} x !llvm.array<128 x i8> {{alignment = 64 : i64}} : "
            "(i32) -> !llvm.ptr",
            PTR[0],
        )
        extents = self.words(shape[::-1], "i64")
        strides = self.words([shape[1] * size], "i64")
        boxes = self.words(box[::-1], "i32")
        ones = self.words([1, 1], "i32")
        zero, rank = code.constant(0), code.constant(2)
        kind, swizzled = code.constant(type), code.constant(swizzle)
        code.emit(
            f"func.call @mgpuTensorMapEncodeTiled({slot}, {kind}, {rank}, {address}, "
            f"{extents}, {strides}, {boxes}, {ones}, {zero}, {swizzled}, {zero}, {zero}) : "
            "(!llvm.ptr, i32, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, "
            "i32, i32, i32, i32) -> ()"
        )
        return code.value(
            f"llvm.load {slot} : !llvm.ptr -> !llvm.array<128 x i8>",
            "!llvm.array<128 x i8>",
        )

    def launch(self, kernel, grid, block, arguments, cluster=None, shared=0):
        code = self.code

        def triple(sizes):
            sizes = list(sizes) + [1] * (3 - len(sizes))
            return ", ".join(str(code.constant(x, "index")) for x in sizes)

        clusters = f"clusters in ({triple(cluster)}) " if cluster else ""
        dynamic = code.constant(shared)
        values = ", ".join(f"{x} : {x.type}" for x in arguments)
        code.emit(
            f"gpu.launch_func @kernels::@{kernel} {clusters}blocks in ({triple(grid)}) "
            f"threads in ({triple(block)}) dynamic_shared_memory_size {dynamic} "
            f"args({values})"
        )


def module(kernel, code, host, arguments, attributes, shared=()):
    """The text of a module. `arguments` are the kernel's, `shared` pairs of a name
    and an LLVM type."""
    lines = ["module attributes {gpu.container_module} {", "  gpu.module @kernels {"]
    for name, type in shared:
        lines.append(
            f"    llvm.mlir.global external @{name}() "
            f"{{addr_space = 3 : i32, alignment = 1024 : i64}} : {type}"
        )
    lines.append(
        f"    llvm.func @{kernel}({', '.join(arguments)}) attributes "
        f"{{gpu.kernel, nvvm.kernel, {attributes}}} {{"
    )
    lines += ["    " + line for line in code.lines]
    lines += ["      llvm.return", "    }", "  }"]
    if any("mgpuTensorMapEncodeTiled" in line for line in host.code.lines):
        lines.append(
            "  func.func private @mgpuTensorMapEncodeTiled(!llvm.ptr, i32, i32, !llvm.ptr, "
            "!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32, i32, i32, i32)"
        )
    parameters = ", ".join(
        f'%{name}: {type} {{varlen.name = "{name}"}}' for name, type in host.arguments.items()
    )
    lines.append(f"  func.func @main({parameters}) {{")
    lines += host.code.lines
    lines += ["    return", "  }", "}", ""]
    return "\n".join(lines)
