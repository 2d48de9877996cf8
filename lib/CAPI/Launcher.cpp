//===- Launcher.cpp - Kernels of a function, compiled and loaded ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launcher.h"

#include "Kernels.h"
#include "varlen/Runtime/Runtime.h"

#include "llvm/ADT/STLExtras.h"

using namespace varlen_capi;
using namespace mlir;
using namespace mlir::varlen;

static Launcher *unwrap(VarlenLauncher launcher) {
  return static_cast<Launcher *>(launcher.ptr);
}

/// The error of the GPU runtime, which is then none any more.
static VarlenStatus failWithRuntime(VarlenStatus status) {
  const char *message = varlen_last_error();
  (void)fail(status, "%s", message ? message : "a call of the driver failed");
  varlen_clear_error();
  return status;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

VarlenStatus varlen_capi::finish(Launcher &launcher) {
  llvm::SmallVector<unsigned> ranks;
  for (Parameter &parameter : launcher.function.arguments) {
    parameter.finish();
    ranks.push_back(static_cast<unsigned>(parameter.getRank()));
  }
  llvm::Expected<PlanFacts> facts = verifyPlan(launcher.plan, ranks);
  if (!facts)
    return fail(VARLEN_UNSUPPORTED, "%s",
                llvm::toString(facts.takeError()).c_str());
  launcher.facts = *facts;
  return VARLEN_OK;
}

static VarlenStatus compile(Source &source, const VarlenKernelOptions &options,
                            Launcher &launcher) {
  std::vector<std::unique_ptr<Function>> functions;
  if (failed(
          readFunctions(source.getModule(), options.stridedTensors, functions)))
    return source.failWithDiagnostic(VARLEN_COMPILE_ERROR, "reading functions");
  if (functions.size() != 1)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a module with one public function, got %zu",
                functions.size());
  CompiledKernels kernels;
  if (VarlenStatus status = compileKernels(source, options, kernels))
    return status;
  launcher.image = std::move(kernels.image);
  launcher.plan = std::move(kernels.plans.front());
  launcher.function = std::move(*functions.front());
  llvm::append_range(
      launcher.function.arguments,
      llvm::make_range(
          std::make_move_iterator(launcher.function.results.begin()),
          std::make_move_iterator(launcher.function.results.end())));
  launcher.function.results.clear();
  return finish(launcher);
}

VarlenStatus varlenLauncherCompile(const void *source, size_t size,
                                   const VarlenKernelOptions *options,
                                   VarlenLauncher *launcher) {
  if (!source || !launcher)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a source and where to store a launcher, got null");
  VarlenKernelOptions values = readOptions(options);
  Source module(values.onDiagnostic, values.diagnosticContext);
  if (VarlenStatus status = module.parse(source, size))
    return status;
  auto result = std::make_unique<Launcher>();
  if (VarlenStatus status = compile(module, values, *result))
    return status;
  // Types of the plan belong to the context of the source.
  for (LaunchPlan::Argument &argument : result->plan.arguments)
    argument.type = nullptr;
  launcher->ptr = result.release();
  return VARLEN_OK;
}

size_t varlenLauncherGetNumTensors(VarlenLauncher launcher) {
  return launcher.ptr ? unwrap(launcher)->function.arguments.size() : 0;
}

const VarlenParameter *varlenLauncherGetTensor(VarlenLauncher launcher,
                                               size_t index) {
  return index < varlenLauncherGetNumTensors(launcher)
             ? &unwrap(launcher)->function.arguments[index].view
             : nullptr;
}

VarlenStatus varlenLauncherSetImage(VarlenLauncher launcher, const void *image,
                                    size_t size) {
  if (!launcher.ptr || !image)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a launcher and an image, got null");
  if (size == 0)
    return fail(VARLEN_INVALID_ARGUMENT, "expected an image, got 0 bytes");
  Launcher &owner = *unwrap(launcher);
  std::lock_guard<std::mutex> lock(owner.mutex);
  size_t contexts = llvm::count_if(
      owner.loaded, [](const auto &entry) { return entry.second != nullptr; });
  if (contexts > 0)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected an image before the kernels are loaded, got one when "
                "they are in %zu contexts",
                contexts);
  owner.image.assign(static_cast<const char *>(image), size);
  return VARLEN_OK;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// The kernels in the context of the stream, which may be captured meanwhile;
/// null with the runtime's error.
static const LoadedKernels *load(Launcher &launcher, void *stream) {
  const varlen_gpu_backend *backend = varlen_gpu_get_backend();
  uint64_t context = backend->get_context(stream);
  if (context == 0)
    return nullptr;
  std::lock_guard<std::mutex> lock(launcher.mutex);
  std::unique_ptr<LoadedKernels> &entry = launcher.loaded[context];
  if (entry)
    return entry.get();
  auto result = std::make_unique<LoadedKernels>();
  result->multiprocessors = backend->get_multiprocessors(stream);
  if (result->multiprocessors == 0)
    return nullptr;
  result->module =
      backend->load(launcher.image.c_str(), launcher.image.size(), stream);
  if (!result->module)
    return nullptr;
  for (const PlanKernel &kernel : launcher.plan.kernels) {
    void *function = backend->find(result->module, kernel.name.c_str());
    if (!function) {
      backend->unload(result->module, /*is_alive=*/1);
      return nullptr;
    }
    result->functions.push_back(function);
  }
  entry = std::move(result);
  return entry.get();
}

VarlenStatus varlenLauncherLoad(VarlenLauncher launcher, void *stream) {
  if (!launcher.ptr)
    return fail(VARLEN_INVALID_ARGUMENT, "expected a launcher, got null");
  varlen_clear_error();
  return load(*unwrap(launcher), stream) ? VARLEN_OK
                                         : failWithRuntime(VARLEN_DEVICE_ERROR);
}

void varlenOverlapLaunches(bool overlap) {
  varlen_gpu_overlap_launches(overlap);
}

void varlenLauncherDestroy(VarlenLauncher launcher) {
  std::unique_ptr<Launcher> owner(unwrap(launcher));
  if (!owner)
    return;
  for (auto &[context, kernels] : owner->loaded)
    if (kernels)
      varlen_gpu_get_backend()->unload(kernels->module, /*is_alive=*/0);
  varlen_clear_error();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

VarlenStatus varlenLauncherGetWorkspaceSize(VarlenLauncher launcher,
                                            const VarlenTensor *const *tensors,
                                            size_t numTensors, size_t *bytes) {
  if (!launcher.ptr || !bytes)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a launcher and where to store a size, got null");
  Binding binding(unwrap(launcher)->function, /*onDevice=*/true);
  if (VarlenStatus status =
          binding.addArguments(tensors, numTensors, /*needsData=*/false))
    return status;
  varlen_clear_error();
  uint64_t measured = 0;
  if (!LaunchRun(*unwrap(launcher), binding).measure(measured))
    return failWithRuntime(VARLEN_UNSUPPORTED);
  *bytes = measured;
  return VARLEN_OK;
}

/// Whole rows of dense tensors are copied at once.
static VarlenStatus checkAlignment(const Launcher &launcher,
                                   const Binding &binding) {
  constexpr int64_t bytes = 16;
  for (auto [i, parameter] : llvm::enumerate(launcher.function.arguments)) {
    int64_t address = binding.getAddress(i);
    if (parameter.isDense && parameter.getRank() > 2 && address % bytes != 0)
      return fail(VARLEN_INVALID_ARGUMENT,
                  "%s: expected data that begins at a multiple of %lld bytes, "
                  "got address %p",
                  parameter.name.c_str(), static_cast<long long>(bytes),
                  reinterpret_cast<void *>(address));
  }
  return VARLEN_OK;
}

/// The device that all tensors are on, of which managed memory is every one's;
/// -1 if there is no other.
static VarlenStatus findDevice(const Launcher &launcher,
                               const VarlenTensor *const *tensors,
                               int32_t &device) {
  const char *first = nullptr;
  device = -1;
  for (auto [i, parameter] : llvm::enumerate(launcher.function.arguments)) {
    const auto &found = tensors[i]->device;
    if (found.device_type != VARLEN_CUDA)
      continue;
    if (first && found.device_id != device)
      return fail(VARLEN_INVALID_ARGUMENT,
                  "%s: expected a tensor on CUDA device %d, as %s is, got one "
                  "on CUDA device %d",
                  parameter.name.c_str(), device, first, found.device_id);
    device = found.device_id;
    first = parameter.name.c_str();
  }
  return VARLEN_OK;
}

static VarlenStatus checkWorkspace(const Launcher &launcher,
                                   const Binding &binding,
                                   const void *workspace, size_t bytes) {
  uint64_t wanted = 0;
  varlen_clear_error();
  if (!LaunchRun(launcher, binding).measure(wanted))
    return failWithRuntime(VARLEN_UNSUPPORTED);
  if (bytes >= wanted &&
      reinterpret_cast<uintptr_t>(workspace) % workspaceAlignment == 0)
    return VARLEN_OK;
  return fail(VARLEN_WORKSPACE_TOO_SMALL,
              "expected a workspace of %llu bytes at a multiple of %llu, got "
              "%zu bytes at %p",
              static_cast<unsigned long long>(wanted),
              static_cast<unsigned long long>(workspaceAlignment), bytes,
              workspace);
}

namespace {
/// The calling thread is in the context of a stream while this lives. Default
/// streams are those of the device, unless it is negative.
class InContextOf {
public:
  InContextOf(void *stream, int32_t device)
      : isEntered(backend->enter(stream, device) == 0) {}
  ~InContextOf() {
    if (isEntered)
      backend->leave();
  }
  InContextOf(const InContextOf &) = delete;
  InContextOf &operator=(const InContextOf &) = delete;
  explicit operator bool() const { return isEntered; }

private:
  const varlen_gpu_backend *backend = varlen_gpu_get_backend();
  bool isEntered;
};
} // namespace

/// Takes the error out of a record that kernels may store to at any time: false
/// if there is none. They change nothing as long as there is one.
static bool takeError(varlen_gpu_status &record, varlen_gpu_status &taken) {
  auto load = [&] { return __atomic_load_n(&record.code, __ATOMIC_ACQUIRE); };
  if (load() <= 0)
    return false;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  // Another thread may have taken it.
  taken.code = load();
  if (taken.code <= 0)
    return false;
  taken.index = record.index;
  taken.value = record.value;
  taken.bound = record.bound;
  __atomic_store_n(&record.code, 0, __ATOMIC_RELEASE);
  return true;
}

/// VARLEN_BAD_DATA if kernels in the context of the stream have reported an
/// error since the last call.
static VarlenStatus poll(void *stream, varlen_gpu_status *&report) {
  report = static_cast<varlen_gpu_status *>(
      varlen_gpu_get_backend()->get_report(stream));
  if (!report)
    return failWithRuntime(VARLEN_DEVICE_ERROR);
  varlen_gpu_status found = {};
  if (!takeError(*report, found))
    return VARLEN_OK;
  varlen_gpu_report(&found);
  VarlenStatus status =
      fail(VARLEN_BAD_DATA, "an earlier launch: %s", varlen_last_error());
  varlen_clear_error();
  return status;
}

/// `isPolled`: kernels report to memory of the host, which is read before.
static VarlenStatus launch(VarlenLauncher handle,
                           const VarlenTensor *const *tensors,
                           size_t numTensors, void *workspace, size_t bytes,
                           void *stream, bool isPolled) {
  if (!handle.ptr || !workspace)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a launcher and a workspace, got null");
  Launcher &launcher = *unwrap(handle);
  Binding binding(launcher.function, /*onDevice=*/true);
  int32_t device = -1;
  if (VarlenStatus status =
          binding.addArguments(tensors, numTensors, /*needsData=*/true))
    return status;
  if (VarlenStatus status = findDevice(launcher, tensors, device))
    return status;
  if (VarlenStatus status = checkAlignment(launcher, binding))
    return status;
  if (VarlenStatus status = checkWorkspace(launcher, binding, workspace, bytes))
    return status;
  if (VarlenStatus status = binding.checkOverlap())
    return status;
  varlen_clear_error();
  InContextOf entered(stream, device);
  const LoadedKernels *kernels = entered ? load(launcher, stream) : nullptr;
  if (!kernels)
    return failWithRuntime(VARLEN_DEVICE_ERROR);
  void *report = workspace;
  if (isPolled) {
    varlen_gpu_status *ofHost = nullptr;
    if (VarlenStatus status = poll(stream, ofHost))
      return status;
    report = ofHost;
  } else if (varlen_gpu_get_backend()->fill(
                 workspace, 0, 1, sizeof(varlen_gpu_status), stream)) {
    return failWithRuntime(VARLEN_DEVICE_ERROR);
  }
  if (!LaunchRun(launcher, binding)
           .launch(*kernels, reinterpret_cast<uintptr_t>(workspace),
                   reinterpret_cast<uintptr_t>(report), stream))
    return failWithRuntime(VARLEN_DEVICE_ERROR);
  return VARLEN_OK;
}

VarlenStatus varlenLauncherLaunch(VarlenLauncher launcher,
                                  const VarlenTensor *const *tensors,
                                  size_t numTensors, void *workspace,
                                  size_t bytes, void *stream) {
  return launch(launcher, tensors, numTensors, workspace, bytes, stream,
                /*isPolled=*/false);
}

VarlenStatus varlenLauncherEnqueue(VarlenLauncher launcher,
                                   const VarlenTensor *const *tensors,
                                   size_t numTensors, void *workspace,
                                   size_t bytes, void *stream) {
  return launch(launcher, tensors, numTensors, workspace, bytes, stream,
                /*isPolled=*/true);
}

VarlenStatus varlenLauncherPoll(int32_t device) {
  if (device < 0)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected the number of a CUDA device, got %d", device);
  varlen_clear_error();
  InContextOf entered(/*stream=*/nullptr, device);
  if (!entered)
    return failWithRuntime(VARLEN_DEVICE_ERROR);
  varlen_gpu_status *report = nullptr;
  return poll(/*stream=*/nullptr, report);
}

VarlenStatus varlenLauncherCheck(const void *workspace, void *stream) {
  if (!workspace)
    return fail(VARLEN_INVALID_ARGUMENT, "expected a workspace, got null");
  varlen_clear_error();
  const varlen_gpu_backend *backend = varlen_gpu_get_backend();
  varlen_gpu_status found = {};
  if (backend->copy(&found, workspace, sizeof found, stream) ||
      backend->synchronize(stream))
    return failWithRuntime(VARLEN_DEVICE_ERROR);
  if (found.code == 0)
    return VARLEN_OK;
  varlen_gpu_report(&found);
  return failWithRuntime(VARLEN_BAD_DATA);
}
