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
using Kind = PlanOperand::Kind;

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

/// Counts the values of steps; false if scratch depends on the device, which
/// is in `values` those that do.
static bool readSteps(const std::vector<PlanStep> &steps, int64_t &numValues,
                      llvm::DenseSet<int64_t> &values) {
  auto dependsOnDevice = [&](const PlanOperand &operand) {
    return operand.kind == Kind::Multiprocessors ||
           (operand.kind == Kind::Value && values.contains(operand.number));
  };
  auto bind = [&](int64_t number, bool depends) {
    numValues = std::max(numValues, number + 1);
    if (depends)
      values.insert(number);
  };
  for (const PlanStep &step : steps) {
    bool depends = llvm::any_of(step.operands, dependsOnDevice);
    if (step.kind == PlanStep::Kind::Compute)
      bind(step.number, depends);
    else if (step.kind == PlanStep::Kind::Scratch && depends)
      return false;
    else if (step.kind == PlanStep::Kind::Loop) {
      const PlanLoop &loop = step.loop.front();
      for (const auto &[number, operand] : loop.state)
        bind(number, dependsOnDevice(operand));
      if (!readSteps(loop.head, numValues, values))
        return false;
      for (const auto &[number, operand] : loop.values)
        bind(number, dependsOnDevice(operand));
      if (!readSteps(loop.body, numValues, values))
        return false;
      // From the second turn on, all may follow from what changes.
      if (llvm::any_of(loop.next, dependsOnDevice))
        for (const auto *bound : {&loop.state, &loop.values})
          for (const auto &[number, operand] : *bound)
            bind(number, true);
    }
  }
  return true;
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
  for (Parameter &parameter : launcher.function.arguments)
    parameter.finish();
  llvm::DenseSet<int64_t> ofDevice;
  if (!readSteps(launcher.plan.steps, launcher.numValues, ofDevice))
    return fail(VARLEN_UNSUPPORTED,
                "expected scratch whose size follows from extents");
  return VARLEN_OK;
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

/// The kernels in the context of the stream; null with the runtime's error.
static const LoadedKernels *load(Launcher &launcher, void *stream) {
  const varlen_gpu_backend *backend = varlen_gpu_get_backend();
  uint64_t context = backend->get_context(stream);
  if (context == 0)
    return nullptr;
  std::lock_guard<std::mutex> lock(launcher.mutex);
  std::unique_ptr<LoadedKernels> &entry = launcher.loaded[context];
  if (entry)
    return entry.get();
  if (backend->is_capturing(stream) != 0) {
    varlen_gpu_fail("kernels cannot be loaded while a stream is captured: "
                    "expected varlenLauncherLoad before");
    return nullptr;
  }
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
  *bytes = LaunchRun(*unwrap(launcher), binding).measure();
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

VarlenStatus varlenLauncherLaunch(VarlenLauncher launcher,
                                  const VarlenTensor *const *tensors,
                                  size_t numTensors, void *workspace,
                                  size_t bytes, void *stream) {
  if (!launcher.ptr || !workspace)
    return fail(VARLEN_INVALID_ARGUMENT,
                "expected a launcher and a workspace, got null");
  Binding binding(unwrap(launcher)->function, /*onDevice=*/true);
  if (VarlenStatus status =
          binding.addArguments(tensors, numTensors, /*needsData=*/true))
    return status;
  if (VarlenStatus status = checkAlignment(*unwrap(launcher), binding))
    return status;
  auto address = reinterpret_cast<uintptr_t>(workspace);
  uint64_t wanted = LaunchRun(*unwrap(launcher), binding).measure();
  if (bytes < wanted || address % workspaceAlignment != 0)
    return fail(VARLEN_WORKSPACE_TOO_SMALL,
                "expected a workspace of %llu bytes at a multiple of %llu, got "
                "%zu bytes at %p",
                static_cast<unsigned long long>(wanted),
                static_cast<unsigned long long>(workspaceAlignment), bytes,
                workspace);
  varlen_clear_error();
  const LoadedKernels *kernels = load(*unwrap(launcher), stream);
  if (!kernels ||
      !LaunchRun(*unwrap(launcher), binding).launch(*kernels, address, stream))
    return failWithRuntime(VARLEN_DEVICE_ERROR);
  return VARLEN_OK;
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
