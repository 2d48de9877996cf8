"""The CUDA driver API by ctypes, as a host of kernels uses it; and how such a host
launches them by a manifest alone (docs/kernel-abi.md)."""

import ctypes

import numpy

pointer = ctypes.c_void_p


class Driver:
    """A context and a stream of device 0."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
        context, self.stream = pointer(), pointer()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)

    def call(self, name, *arguments):
        if error := getattr(self.library, name)(*arguments):
            raise RuntimeError(f"{name}: {error}")

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def free(self, address):
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def copy(self, to, source, size):
        if size:
            addresses = ctypes.c_uint64(to), ctypes.c_uint64(source)
            self.call("cuMemcpyAsync", *addresses, ctypes.c_size_t(size), self.stream)
        self.call("cuStreamSynchronize", self.stream)

    def store(self, array):
        """A dense copy of the array in device memory: its address."""
        array = numpy.ascontiguousarray(array)
        address = self.allocate(array.nbytes)
        self.copy(address, array.ctypes.data, array.nbytes)
        return address

    def load(self, address, like):
        array = numpy.empty_like(like)
        self.copy(array.ctypes.data, address, array.nbytes)
        return array


OPERATORS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "udiv": lambda a, b: a // b, "urem": lambda a, b: a % b,
    "lshr": lambda a, b: (a & 2**64 - 1) >> b,
    "smin": min, "smax": max, "umin": min, "umax": max,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b,
    "ult": lambda a, b: a < b, "ule": lambda a, b: a <= b,
    "ugt": lambda a, b: a > b, "uge": lambda a, b: a >= b,
    "select": lambda c, a, b: a if c else b,
}  # fmt: skip


class Manifest:
    """A function of a manifest, with the code of its kernels."""

    def __init__(self, driver, manifest, image):
        assert manifest["varlen_manifest"] == 1, "expected a manifest of version 1"
        (self.function,) = manifest["functions"]
        self.driver, self.status_bytes = driver, manifest["status_bytes"]
        self.kernels = {kernel["name"]: kernel for kernel in self.function["kernels"]}
        module, self.handles = pointer(), {}
        driver.call("cuModuleLoadDataEx", ctypes.byref(module), image, 0, None, None)
        for name, kernel in self.kernels.items():
            handle = self.handles[name] = pointer()
            driver.call("cuModuleGetFunction", ctypes.byref(handle), module, name.encode())
            if kernel["shared_bytes"] > 48 * 1024:
                driver.call("cuFuncSetAttribute", handle, 8, kernel["shared_bytes"])

    def launch(self, tensors, multiprocessors=108):
        """Launches the kernels on (address, sizes, strides); the address of the
        status."""
        self.values = {"multiprocessors": multiprocessors}
        for i, (address, sizes, strides) in enumerate(tensors):
            self.values[f"arg{i}"] = address
            for d, (size, stride) in enumerate(zip(sizes, strides)):
                self.values[f"arg{i}.size[{d}]"] = size
                self.values[f"arg{i}.stride[{d}]"] = stride
        status = self.driver.store(numpy.zeros(self.status_bytes, numpy.uint8))
        self.values["status"] = status
        self._take(self.function["steps"])
        return status

    def _read(self, operand):
        return operand if isinstance(operand, int) else self.values[operand]

    def _take(self, steps):
        for step in steps:
            if "value" in step:
                operands = map(self._read, step["operands"])
                self.values[step["value"]] = int(OPERATORS[step["op"]](*operands))
            elif "scratch" in step:
                size = numpy.prod(list(map(self._read, step["bytes"])), dtype=object)
                self.values[step["scratch"]] = self.driver.allocate(int(size))
            elif "launch" in step:
                self._launch(self.kernels[step["launch"]], step)
            else:
                self._loop(step["loop"])

    def _loop(self, loop):
        for name, start in loop["state"]:
            self.values[name] = self._read(start)
        while True:
            self._take(loop["head"])
            for name, value in loop["values"]:
                self.values[name] = self._read(value)
            if not self._read(loop["while"]):
                return
            self._take(loop["body"])
            following = [self._read(value) for value in loop["next"]]
            for (name, _), value in zip(loop["state"], following):
                self.values[name] = value

    def _launch(self, kernel, step):
        kinds = {32: ctypes.c_int32, 64: ctypes.c_int64}
        values = [
            kinds[bits](self._read(operand))
            for bits, operand in zip(kernel["parameter_bits"], step["parameters"], strict=True)
        ]
        parameters = (pointer * len(values))(*(ctypes.addressof(value) for value in values))
        self.driver.call(
            "cuLaunchKernel", self.handles[kernel["name"]],
            *map(self._read, step["grid"]), *kernel["block"], kernel["shared_bytes"],
            self.driver.stream, parameters, None,
        )  # fmt: skip
