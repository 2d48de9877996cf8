//===- EmitLauncher.cpp - Launch plans as C -------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmitLauncher.h"

#include "CTypes.h"
#include "LauncherText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// Writes the launcher of one function.
class LauncherEmitter {
public:
  LauncherEmitter(const LaunchPlan &plan, llvm::raw_ostream &os)
      : plan(plan), os(os) {}

  LogicalResult declare(ModuleOp module, CTypes &types);
  void define();

private:
  static std::string print(const PlanOperand &operand);
  std::string print(const PlanStep &compute) const;
  /// "const varlen_f32_3 *q, ..." for `names` that begin with q, and for those
  /// that code has, which are these: "arg0, ...".
  std::string getParameters(ArrayRef<std::string> names) const;
  std::string getParameters() const;
  std::string getArguments() const;

  void defineLoad();
  void defineCheck(size_t argument);
  void defineRun();
  void defineLaunch();
  void emit(const std::vector<PlanStep> &steps, unsigned indent);
  void emitLaunch(const PlanStep &step, unsigned indent);
  void emitLoop(const PlanLoop &loop, unsigned indent);

  const LaunchPlan &plan;
  llvm::raw_ostream &os;
  std::vector<std::string> types;
};

} // namespace

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

std::string LauncherEmitter::getParameters(ArrayRef<std::string> names) const {
  std::string text;
  for (auto [type, name] : llvm::zip_equal(types, names))
    text += "const " + type + name + ", ";
  return text;
}

std::string LauncherEmitter::getParameters() const {
  return getParameters(
      getParameterNames(std::vector<std::string>(types.size())));
}

std::string LauncherEmitter::getArguments() const {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i)
    text += ("arg" + Twine(i) + ", ").str();
  return text;
}

LogicalResult LauncherEmitter::declare(ModuleOp module, CTypes &ctypes) {
  for (const LaunchPlan::Argument &argument : plan.arguments) {
    FailureOr<std::string> type = ctypes.get(module, argument.type);
    if (failed(type))
      return failure();
    types.push_back(*type);
  }
  const std::string &name = plan.name;
  std::vector<std::string> names;
  for (const LaunchPlan::Argument &argument : plan.arguments)
    names.push_back(argument.name);
  names = getParameterNames(
      names, {"kernels", "workspace", "size", "stream", "status"});
  std::string parameters = getParameters(names);
  os << "/* func @" << name << "\n";
  for (auto [parameter, argument] : llvm::zip_equal(names, plan.arguments))
    os << "   " << parameter << " : " << argument.type
       << (argument.name.empty() || argument.name == parameter
               ? ""
               : ", " + argument.name)
       << "\n";
  os << "   Tensors are in device memory; dense ones of rank 3, without "
        "strides above,\n   begin at multiples of 16 bytes. */\n"
     << "typedef struct " << name << "_kernels {\n  void *module;\n"
     << "  void *functions[" << plan.kernels.size()
     << "];\n  int64_t multiprocessors;\n} " << name << "_kernels;\n\n"
     << "/* Loads the kernels into the current context: those in this file, or "
        "those of\n   `image` if that is not null. */\nint "
     << name << "_load(" << name << "_kernels *kernels, const void *image);\n"
     << "int " << name << "_unload(" << name << "_kernels *kernels);\n\n"
     << "/* Stores the bytes of a workspace for tensors of these extents, "
        "whatever they\n   hold. */\nint "
     << name << "_workspace_size(const " << name << "_kernels *kernels, "
     << parameters << "uint64_t *size);\n\n"
     << "/* Launches the kernels in a stream, in the context that they were "
        "loaded in, and\n   does not wait. `workspace` is device memory, a "
        "multiple of 256, which is in\n   use until they are done. */\nint "
     << name << "_launch(const " << name << "_kernels *kernels, " << parameters
     << "void *workspace, uint64_t size, void *stream);\n\n"
     << "/* Waits for the stream and stores the error that the kernels of the "
        "last launch\n   with this workspace found: VARLEN_LAUNCH_INPUTS; they "
        "have then written\n   nothing. */\nint "
     << name
     << "_check(const void *workspace, void *stream,\n    "
        "varlen_launch_status *status);\n\n";
  return success();
}

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

/// Not a sum of pointers: an empty tensor's may be null.
static std::string getAddress(int64_t argument) {
  std::string name = "arg" + std::to_string(argument);
  return "(uintptr_t)" + name + "->data + (uintptr_t)" + name +
         "->offset * sizeof *" + name + "->data";
}

std::string LauncherEmitter::print(const PlanOperand &operand) {
  using Kind = PlanOperand::Kind;
  std::string number = std::to_string(operand.number);
  std::string dim = "[" + std::to_string(operand.dim) + "]";
  switch (operand.kind) {
  case Kind::Constant:
    if (operand.number == std::numeric_limits<int64_t>::min())
      return "INT64_MIN";
    return llvm::isInt<32>(operand.number) ? number : "INT64_C(" + number + ")";
  case Kind::Value:
    return "v" + number;
  case Kind::Size:
    return "arg" + number + "->sizes" + dim;
  case Kind::Stride:
    return "arg" + number + "->strides" + dim;
  case Kind::Multiprocessors:
    return "kernels->multiprocessors";
  case Kind::Tensor:
    return getAddress(operand.number);
  case Kind::Scratch:
    return "s" + number;
  case Kind::Status:
    return "status";
  }
  llvm_unreachable("unknown kind of operand");
}

std::string LauncherEmitter::print(const PlanStep &compute) const {
  ArrayRef<PlanOperand> operands = compute.operands;
  std::string text;
  for (char c : compute.op->c)
    if (c == 'C')
      text += print(operands[0]);
    else if (c == 'L' || c == 'R')
      text += print(operands[operands.size() - (c == 'L' ? 2 : 1)]);
    else
      text += c;
  return text;
}

void LauncherEmitter::emitLaunch(const PlanStep &step, unsigned indent) {
  const PlanKernel &kernel = plan.kernels[step.kernel];
  os.indent(indent) << "if (is_launched) { /* " << kernel.name << " */\n";
  os.indent(indent + 2) << "const unsigned block[] = {" << kernel.block[0]
                        << ", " << kernel.block[1] << ", " << kernel.block[2]
                        << "};\n";
  std::string addresses;
  for (auto [i, operand] : llvm::enumerate(step.operands)) {
    unsigned bits = kernel.bits[i];
    os.indent(indent + 2) << "uint" << bits << "_t p" << i << " = (uint" << bits
                          << "_t)(" << print(operand) << ");\n";
    addresses += (i ? ", &p" : "&p") + std::to_string(i);
  }
  os.indent(indent + 2) << "void *parameters[] = {" << addresses << "};\n";
  os.indent(indent + 2) << "error = varlen_launch(kernels->functions["
                        << step.kernel << "], " << print(step.grid[0]) << ", "
                        << print(step.grid[1]) << ", " << print(step.grid[2])
                        << ", block, " << kernel.sharedBytes
                        << ", stream, parameters);\n";
  os.indent(indent + 2) << "if (error)\n";
  os.indent(indent + 4) << "return error;\n";
  os.indent(indent) << "}\n";
}

void LauncherEmitter::emitLoop(const PlanLoop &loop, unsigned indent) {
  os.indent(indent) << "for (;;) {\n";
  emit(loop.head, indent + 2);
  for (const auto &[number, operand] : loop.values)
    os.indent(indent + 2) << "v" << number << " = " << print(operand) << ";\n";
  os.indent(indent + 2) << "if (!" << print(loop.condition) << ")\n";
  os.indent(indent + 4) << "break;\n";
  emit(loop.body, indent + 2);
  // At once: a value may be the next of another.
  os.indent(indent + 2) << "{\n";
  for (auto [i, operand] : llvm::enumerate(loop.next))
    os.indent(indent + 4) << "const int64_t n" << i << " = " << print(operand)
                          << ";\n";
  for (auto [i, bound] : llvm::enumerate(loop.state))
    os.indent(indent + 4) << "v" << bound.first << " = n" << i << ";\n";
  os.indent(indent + 2) << "}\n";
  os.indent(indent) << "}\n";
}

void LauncherEmitter::emit(const std::vector<PlanStep> &steps,
                           unsigned indent) {
  for (const PlanStep &step : steps) {
    switch (step.kind) {
    case PlanStep::Kind::Compute:
      os.indent(indent) << "const int64_t v" << step.number << " = "
                        << print(step) << ";\n";
      break;
    case PlanStep::Kind::Scratch: {
      os.indent(indent) << "const uint64_t s" << step.number
                        << " = base + varlen_take(used, " << step.unit << "u";
      for (const PlanOperand &operand : step.operands)
        os << " * (uint64_t)" << print(operand);
      os << ");\n";
      break;
    }
    case PlanStep::Kind::Launch:
      emitLaunch(step, indent);
      break;
    case PlanStep::Kind::Loop:
      for (const auto &[number, operand] : step.loop.front().state)
        os.indent(indent) << "int64_t v" << number << " = " << print(operand)
                          << ";\n";
      for (const auto &[number, operand] : step.loop.front().values)
        os.indent(indent) << "int64_t v" << number << ";\n";
      emitLoop(step.loop.front(), indent);
      break;
    }
  }
}

void LauncherEmitter::defineLoad() {
  const std::string &name = plan.name;
  size_t count = plan.kernels.size();
  os << "int " << name << "_load(" << name << R"(_kernels *kernels,
    const void *image) {
  static const char *const names[] = {)";
  llvm::interleaveComma(plan.kernels, os, [&](const PlanKernel &kernel) {
    os << '"' << kernel.name << '"';
  });
  os << "};\n  static const int shared_bytes[] = {";
  llvm::interleaveComma(plan.kernels, os, [&](const PlanKernel &kernel) {
    os << kernel.sharedBytes;
  });
  os << R"(};
  int error, device, multiprocessors, i;
  if (!kernels)
    return VARLEN_LAUNCH_NULL;
  kernels->module = NULL;
  if ((error = cuCtxGetDevice(&device)) ||
      (error = cuDeviceGetAttribute(&multiprocessors, VARLEN_MULTIPROCESSORS,
                                    device)) ||
      (error = cuModuleLoadDataEx(&kernels->module,
                                  image ? image : varlen_image, 0, NULL, NULL)))
    return error;
  kernels->multiprocessors = multiprocessors;
  for (i = 0; i < )"
     << count << R"( && !error; ++i) {
    error = cuModuleGetFunction(&kernels->functions[i], kernels->module,
                                names[i]);
    /* What a kernel has without being asked. */
    if (!error && shared_bytes[i] > 49152)
      error = cuFuncSetAttribute(kernels->functions[i], VARLEN_SHARED_BYTES,
                                 shared_bytes[i]);
  }
  if (error)
    )"
     << name << R"(_unload(kernels);
  return error;
}

int )"
     << name << "_unload(" << name << R"(_kernels *kernels) {
  int error;
  if (!kernels)
    return VARLEN_LAUNCH_NULL;
  error = kernels->module ? cuModuleUnload(kernels->module) : 0;
  kernels->module = NULL;
  return error;
}

)";
}

void LauncherEmitter::defineCheck(size_t argument) {
  MemRefType type = plan.arguments[argument].type;
  std::string arg = "arg" + std::to_string(argument);
  bool isDense = type.getLayout().isIdentity();
  auto list = [&](StringRef name, ArrayRef<int64_t> numbers) {
    os << "    static const int64_t " << name << "[] = {";
    llvm::interleaveComma(numbers, os, [&](int64_t number) {
      os << (ShapedType::isStatic(number) ? number : -1);
    });
    // C has no empty lists.
    os << (numbers.empty() ? "0" : "") << "};\n";
  };
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)type.getStridesAndOffset(strides, offset);
  os << "  {\n";
  list("sizes", type.getShape());
  // Strides of dense memory follow from extents.
  if (!isDense)
    list("steps", strides);
  std::string sizes = arg + "->sizes", steps = arg + "->strides";
  if (type.getRank() == 0)
    sizes = steps = "NULL";
  os << "    if (!" << arg << ")\n      return VARLEN_LAUNCH_NULL;\n"
     << "    if (!varlen_is_tensor("
     << getAddress(static_cast<int64_t>(argument)) << ", " << arg
     << "->offset, " << type.getRank() << ", " << sizes
     << ",\n                          " << steps << ", sizes, "
     << (isDense ? "NULL" : "steps") << ", "
     << (isDense && type.getRank() > 2 ? "16" : "sizeof *" + arg + "->data")
     << "))\n      return VARLEN_LAUNCH_TENSOR - " << argument << ";\n  }\n";
}

void LauncherEmitter::defineRun() {
  const std::string &name = plan.name;
  os << "/* Counts the bytes of the workspace, which begins at `base`, and "
        "launches, or\n   counts only. */\nstatic int "
     << name << "_run(const " << name << "_kernels *kernels, "
     << getParameters()
     << "uint64_t base, uint64_t *used, int is_launched, void *stream) {\n"
     << "  int error;\n  uint64_t status;\n"
     << "  if (!kernels || !kernels->module || !used)\n"
     << "    return VARLEN_LAUNCH_NULL;\n";
  for (size_t i = 0; i < plan.arguments.size(); ++i)
    defineCheck(i);
  os << R"(  *used = 0;
  status = base + varlen_take(used, sizeof(varlen_launch_status));
  if (is_launched) {
    error = cuMemsetD8Async(status, 0, sizeof(varlen_launch_status), stream);
    if (error)
      return error;
  }
  {
)";
  emit(plan.steps, 4);
  os << "  }\n  return 0;\n}\n\n";
}

void LauncherEmitter::defineLaunch() {
  const std::string &name = plan.name;
  os << "int " << name << "_workspace_size(const " << name
     << "_kernels *kernels, " << getParameters() << "uint64_t *size) {\n"
     << "  return " << name << "_run(kernels, " << getArguments()
     << "0, size, 0, NULL);\n}\n\nint " << name << "_launch(const " << name
     << "_kernels *kernels, " << getParameters()
     << R"(void *workspace, uint64_t size, void *stream) {
  uint64_t base = (uint64_t)(uintptr_t)workspace, wanted = 0;
  int error = )"
     << name << "_run(kernels, " << getArguments() << R"(0, &wanted, 0, NULL);
  if (error)
    return error;
  if (!workspace)
    return VARLEN_LAUNCH_NULL;
  if (size < wanted || base % 256 != 0)
    return VARLEN_LAUNCH_WORKSPACE;
  return )"
     << name << "_run(kernels, " << getArguments()
     << R"(base, &wanted, 1, stream);
}

int )"
     << name << R"(_check(const void *workspace, void *stream,
    varlen_launch_status *status) {
  int error;
  if (!workspace || !status)
    return VARLEN_LAUNCH_NULL;
  error = cuMemcpyAsync((uintptr_t)status, (uintptr_t)workspace,
                        sizeof *status, stream);
  if (!error)
    error = cuStreamSynchronize(stream);
  return error ? error : status->code ? VARLEN_LAUNCH_INPUTS : 0;
}
)";
}

void LauncherEmitter::define() {
  defineLoad();
  defineRun();
  defineLaunch();
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static constexpr char opening[] =
    "#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
static constexpr char closing[] = "\n#ifdef __cplusplus\n}\n#endif\n";

/// The bytes of the image; text ends with a zero.
static void emitImage(StringRef image, llvm::raw_ostream &os) {
  std::string bytes = image.str();
  bytes.resize(llvm::alignTo(image.size() + 1, 8));
  os << "static const uint64_t varlen_image[] = {";
  for (size_t i = 0; i < bytes.size(); i += 8)
    os << (i % 32 ? " " : "\n  ")
       << llvm::format("0x%016llx,",
                       static_cast<unsigned long long>(
                           llvm::support::endian::read64le(bytes.data() + i)));
  os << "\n};\n\n";
}

LogicalResult varlen::emitLauncher(ModuleOp module, ArrayRef<LaunchPlan> plans,
                                   StringRef image, llvm::raw_ostream &os) {
  os << launcherBanner << "#include <stddef.h>\n#include <stdint.h>\n\n"
     << opening << launcherDeclarations;
  CTypes types(os, /*withMakers=*/false);
  std::vector<LauncherEmitter> emitters;
  for (const LaunchPlan &plan : plans)
    if (failed(emitters.emplace_back(plan, os).declare(module, types)))
      return failure();
  os << launcherPrelude;
  emitImage(image, os);
  for (LauncherEmitter &emitter : emitters)
    emitter.define();
  os << closing;
  return success();
}

LogicalResult varlen::emitLauncherHeader(ModuleOp module,
                                         ArrayRef<LaunchPlan> plans,
                                         llvm::raw_ostream &os) {
  os << launcherBanner << "#pragma once\n\n#include <stdint.h>\n\n"
     << opening << launcherDeclarations;
  CTypes types(os, /*withMakers=*/true);
  for (const LaunchPlan &plan : plans)
    if (failed(LauncherEmitter(plan, os).declare(module, types)))
      return failure();
  os << closing;
  return success();
}
