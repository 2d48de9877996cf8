//===- FakeDevice.cpp - CUDA tensors in PyTorch's build for the CPU -------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A backend for PyTorch's CUDA dispatch key, for a build that has none: two
// devices, their streams, an allocator of memory of the strict fake driver
// (test/Runtime/Inputs/FakeCUDA), and the CPU's kernels for every operator, on
// that memory, when all streams are done. fake_device.py compiles and loads it.
// So PyTorch's dispatcher, autograd with its thread for each device, autocast
// and tracing take the paths that they take on a GPU.
//
//===----------------------------------------------------------------------===//

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <torch/library.h>
#include <unordered_set>

static constexpr int numDevices = 2;

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

template <typename... Arguments>
static void call(const char *name, Arguments... arguments) {
  static void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  auto *entry = reinterpret_cast<int (*)(Arguments...)>(
      driver ? dlsym(driver, name) : nullptr);
  TORCH_CHECK(entry, "no fake driver with ", name);
  int error = entry(arguments...);
  TORCH_CHECK_WITH(OutOfMemoryError, error != 2, name, ": out of memory");
  TORCH_CHECK(error == 0, name, ": error ", error);
}

/// Makes the primary context of a device current while it lives.
struct InContext {
  explicit InContext(int device) {
    static void *contexts[numDevices];
    static std::once_flag once;
    std::call_once(once, [] {
      call("cuInit", 0u);
      for (int i = 0; i < numDevices; ++i)
        call("cuDevicePrimaryCtxRetain", &contexts[i], i);
    });
    call("cuCtxPushCurrent_v2", contexts[device]);
  }
  ~InContext() {
    void *popped = nullptr;
    call("cuCtxPopCurrent_v2", &popped);
  }
};

/// cuThreadExchangeStreamCaptureMode, "relaxed", as PyTorch's allocator does.
struct Relaxed {
  int mode = 2;
  Relaxed() { call("cuThreadExchangeStreamCaptureMode", &mode); }
  ~Relaxed() { call("cuThreadExchangeStreamCaptureMode", &mode); }
};

//===----------------------------------------------------------------------===//
// Devices and streams
//===----------------------------------------------------------------------===//

static thread_local c10::DeviceIndex currentDevice = 0;
static thread_local c10::StreamId currentStreams[numDevices] = {};
static std::mutex mutex;
/// Those that were made, of each device; the default stream is 0.
static std::vector<void *> streams[numDevices];

static bool isCapturing(int device) {
  InContext context(device);
  int status = 0;
  auto *stream = reinterpret_cast<void *>(currentStreams[device]);
  if (stream)
    call("cuStreamIsCapturing", stream, &status);
  return status != 0;
}

/// Waits for all streams that are not captured.
static void waitForAll() {
  std::lock_guard<std::mutex> lock(mutex);
  Relaxed relaxed;
  for (int device = 0; device < numDevices; ++device) {
    InContext context(device);
    for (void *stream : streams[device]) {
      int status = 0;
      call("cuStreamIsCapturing", stream, &status);
      if (status == 0)
        call("cuStreamSynchronize", stream);
    }
  }
}

namespace {
struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = c10::DeviceType::CUDA;
  Guard() = default;
  explicit Guard(c10::DeviceType) {}
  c10::DeviceType type() const override { return static_type; }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device old = getDevice();
    setDevice(device);
    return old;
  }
  c10::Device getDevice() const override {
    return {static_type, currentDevice};
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() < numDevices, "no CUDA device ", device.index());
    uncheckedSetDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0)
      currentDevice = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    int index = device.index() < 0 ? currentDevice : device.index();
    c10::Device whole(static_type, static_cast<c10::DeviceIndex>(index));
    return c10::Stream(c10::Stream::UNSAFE, whole, currentStreams[index]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    c10::Stream old = getStream(stream.device());
    currentStreams[stream.device_index()] = stream.id();
    return old;
  }
  void record(void **event, const c10::Stream &stream, c10::DeviceIndex,
              c10::EventFlag) const override {
    InContext context(stream.device_index());
    if (!*event)
      call("cuEventCreate", event, 0u);
    call("cuEventRecord", *event, reinterpret_cast<void *>(stream.id()));
  }
  void block(void *event, const c10::Stream &stream) const override {
    InContext context(stream.device_index());
    call("cuStreamWaitEvent", reinterpret_cast<void *>(stream.id()), event, 0u);
  }
  bool queryEvent(void *) const override { return false; }
  c10::DeviceIndex deviceCount() const noexcept override { return numDevices; }
  void synchronizeDevice(c10::DeviceIndex) const override { waitForAll(); }
};

struct Hooks final : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  int getNumGPUs() const override { return numDevices; }
  c10::DeviceIndex deviceCount() const override { return numDevices; }
  c10::DeviceIndex current_device() const override { return currentDevice; }
  c10::DeviceIndex getCurrentDevice() const override { return currentDevice; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  void deviceSynchronize(c10::DeviceIndex) const override { waitForAll(); }
};
} // namespace

namespace at {
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, Hooks)
} // namespace at
static const c10::impl::DeviceGuardImplRegistrar
    registrar(c10::DeviceType::CUDA, new Guard());

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Whether memory that is freed is kept for the next allocation of its size, as
/// PyTorch's allocator does: without it the driver sees each of them.
static bool isCaching = false;
static std::map<size_t, std::vector<void *>> freeBlocks[numDevices];
static std::map<void *, size_t> sizes[numDevices];

/// Waits for the work of the device: it need not be the current one.
template <int device> static void release(void *memory) {
  if (isCaching) {
    std::lock_guard<std::mutex> lock(mutex);
    freeBlocks[device][sizes[device][memory]].push_back(memory);
    return;
  }
  Relaxed relaxed;
  InContext context(device);
  call("cuMemFree_v2",
       static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(memory)));
}

/// Memory of a graph is its own as long as it may be replayed: for good, here.
static void keep(void *) {}

namespace {
struct FakeAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    c10::Device device(c10::DeviceType::CUDA, currentDevice);
    if (bytes == 0)
      return {nullptr, device};
    static const c10::DeleterFnPtr releases[numDevices] = {release<0>,
                                                           release<1>};
    if (isCaching) {
      std::lock_guard<std::mutex> lock(mutex);
      std::vector<void *> &unused = freeBlocks[currentDevice][bytes];
      if (!unused.empty()) {
        void *memory = unused.back();
        unused.pop_back();
        return {memory, memory, releases[currentDevice], device};
      }
    }
    unsigned long long address = 0;
    bool isCaptured = isCapturing(currentDevice);
    Relaxed relaxed;
    InContext context(currentDevice);
    call("cuMemAlloc_v2", &address, bytes);
    auto *memory = reinterpret_cast<void *>(address);
    if (isCaching) {
      std::lock_guard<std::mutex> lock(mutex);
      sizes[currentDevice][memory] = bytes;
    }
    return {memory, memory, isCaptured ? keep : releases[currentDevice],
            device};
  }
  void copy_data(void *to, const void *from, size_t bytes) const override {
    waitForAll();
    memcpy(to, from, bytes);
  }
};
} // namespace

static FakeAllocator allocator;
static const bool hasAllocator = [] {
  c10::SetAllocator(c10::DeviceType::CUDA, &allocator, /*priority=*/1);
  return true;
}();

static const c10::DispatchKeySet keys(c10::DispatchKey::CUDA);

static void enter(c10::Device device) { Guard().setDevice(device); }

/// The device of an argument, in which the calling thread then works.
struct On {
  c10::DeviceIndex old = currentDevice;
  explicit On(std::optional<c10::Device> device) {
    if (device && device->has_index())
      enter(*device);
  }
  ~On() { currentDevice = old; }
};

static at::Tensor empty(at::IntArrayRef size,
                        std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout>,
                        std::optional<at::Device> device, std::optional<bool>,
                        std::optional<at::MemoryFormat> format) {
  On on(device);
  return at::detail::empty_generic(size, &allocator, keys,
                                   c10::dtype_or_default(dtype), format);
}

static at::Tensor emptyStrided(at::IntArrayRef size, at::IntArrayRef strides,
                               std::optional<at::ScalarType> dtype,
                               std::optional<at::Layout>,
                               std::optional<at::Device> device,
                               std::optional<bool>) {
  On on(device);
  return at::detail::empty_strided_generic(size, strides, &allocator, keys,
                                           c10::dtype_or_default(dtype));
}

static at::Tensor asStrided(const at::Tensor &self, at::IntArrayRef size,
                            at::IntArrayRef strides,
                            std::optional<int64_t> offset) {
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(self.storage()), self.key_set(),
      self.dtype());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(
      size, strides, offset.value_or(self.storage_offset()));
  return result;
}

static at::Tensor view(const at::Tensor &self, at::IntArrayRef wanted) {
  auto size = at::infer_size(wanted, self.numel());
  auto strides = at::detail::computeStride(self.sizes(), self.strides(), size);
  TORCH_CHECK(strides, "view size is not compatible with the tensor's strides");
  return asStrided(self, size, *strides, std::nullopt);
}

static at::Tensor reshapeAlias(const at::Tensor &self, at::IntArrayRef size,
                               at::IntArrayRef strides) {
  return asStrided(self, size, strides, std::nullopt);
}

static const at::Tensor &resizeTo(const at::Tensor &self, at::IntArrayRef size,
                                  std::optional<at::MemoryFormat>) {
  auto *impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  size_t bytes = (self.storage_offset() + self.numel()) * self.itemsize();
  c10::StorageImpl *storage = self.storage().unsafeGetStorageImpl();
  if (bytes > storage->nbytes()) {
    On on(self.device());
    c10::DataPtr data = allocator.allocate(bytes);
    if (storage->nbytes())
      allocator.copy_data(data.get(), storage->data(), storage->nbytes());
    storage->set_data_ptr_noswap(std::move(data));
    storage->set_nbytes(bytes);
  }
  return self;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

namespace {
/// Tensors of a device and their memory as tensors of the CPU.
struct Aliases {
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs; // ours, the CPU's
  std::unordered_set<c10::TensorImpl *> others;         // the CPU's already
  std::optional<c10::Device> device;

  at::Tensor enter(const at::Tensor &tensor) {
    if (!tensor.defined() || !tensor.is_cuda()) {
      if (tensor.defined())
        others.insert(tensor.unsafeGetTensorImpl());
      return tensor;
    }
    device = tensor.device();
    void *memory = const_cast<void *>(tensor.storage().data());
    c10::Storage storage(
        c10::Storage::use_byte_size_t(), tensor.storage().nbytes(),
        c10::DataPtr(memory, memory, keep, c10::Device(c10::DeviceType::CPU)),
        c10::GetAllocator(c10::DeviceType::CPU), /*resizable=*/true);
    at::Tensor alias = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
        tensor.dtype());
    alias.unsafeGetTensorImpl()->set_sizes_and_strides(
        tensor.sizes(), tensor.strides(), tensor.storage_offset());
    pairs.emplace_back(tensor, alias);
    return alias;
  }

  c10::IValue enter(const c10::IValue &value) {
    if (value.isTensor())
      return enter(value.toTensor());
    if (value.isTensorList()) {
      std::vector<at::Tensor> tensors;
      for (const at::Tensor &tensor : value.toTensorVector())
        tensors.push_back(enter(tensor));
      return tensors;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (std::optional<at::Tensor> tensor : value.toOptionalTensorList())
        tensors.push_back(tensor ? std::optional(enter(*tensor)) : tensor);
      return tensors;
    }
    if (value.isDevice() && value.toDevice().is_cuda()) {
      device = value.toDevice();
      return c10::Device(c10::DeviceType::CPU);
    }
    return value;
  }

  /// A result: one of the arguments, a view of one, or something new.
  at::Tensor leave(const at::Tensor &result) {
    if (!result.defined() || !device ||
        others.count(result.unsafeGetTensorImpl()))
      return result;
    for (auto &[ours, alias] : pairs)
      if (result.is_same(alias))
        return ours;
    for (auto &[ours, alias] : pairs)
      if (result.storage().data() &&
          result.storage().data() == ours.storage().data())
        return asStrided(ours, result.sizes(), result.strides(),
                         result.storage_offset());
    On on(device);
    at::Tensor copy = at::detail::empty_strided_generic(
        result.sizes(), result.strides(), &allocator, keys,
        result.scalar_type());
    if (result.numel())
      memcpy(copy.mutable_data_ptr(), result.const_data_ptr(),
             at::detail::computeStorageNbytes(result.sizes(), result.strides(),
                                              result.itemsize()));
    return copy;
  }

  c10::IValue leave(const c10::IValue &value) {
    if (value.isTensor())
      return leave(value.toTensor());
    if (!value.isTensorList())
      return value;
    std::vector<at::Tensor> tensors;
    for (const at::Tensor &tensor : value.toTensorVector())
      tensors.push_back(leave(tensor));
    return tensors;
  }

  /// Results that the operator has resized.
  void resizeAll() {
    for (auto &[ours, alias] : pairs)
      if (alias.sizes() != ours.sizes()) {
        resizeTo(ours, alias.sizes(), std::nullopt);
        if (alias.storage().data() != ours.storage().data() && alias.numel())
          memcpy(ours.mutable_data_ptr(), alias.const_data_ptr(),
                 alias.nbytes());
      }
  }
};
} // namespace

static void runOnCPU(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  waitForAll();
  Aliases aliases;
  size_t count = op.schema().arguments().size();
  for (auto it = stack->end() - count; it != stack->end(); ++it)
    *it = aliases.enter(*it);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  aliases.resizeAll();
  size_t results = op.schema().returns().size();
  for (auto it = stack->end() - results; it != stack->end(); ++it)
    *it = aliases.leave(*it);
}

TORCH_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&runOnCPU>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", emptyStrided);
  m.impl("as_strided", asStrided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshapeAlias);
  m.impl("resize_", resizeTo);
  // Generic kernels, which look for a part for CUDA.
  m.impl("copy_", torch::CppFunction::makeFromBoxedFunction<&runOnCPU>());
}

//===----------------------------------------------------------------------===//
// For fake_device.py
//===----------------------------------------------------------------------===//

extern "C" {

int fakeGetDevice() { return currentDevice; }
void fakeSetDevice(int device) { currentDevice = device; }
uint64_t fakeGetStream(int device) { return currentStreams[device]; }
void fakeSetStream(int device, uint64_t stream) {
  currentStreams[device] = static_cast<c10::StreamId>(stream);
}
/// A stream that does not wait for the default one.
uint64_t fakeNewStream(int device) {
  std::lock_guard<std::mutex> lock(mutex);
  InContext context(device);
  void *stream = nullptr;
  call("cuStreamCreate", &stream, 1u);
  streams[device].push_back(stream);
  return reinterpret_cast<uintptr_t>(stream);
}
void fakeSynchronize() { waitForAll(); }
/// For memory from here on.
void fakeKeepMemory() { isCaching = true; }
}
