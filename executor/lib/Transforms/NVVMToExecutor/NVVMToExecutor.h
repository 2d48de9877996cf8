//===- NVVMToExecutor.h - Parts of one pass ---------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the files of convert-nvvm-to-executor share: a builder that knows the
// executor's calls, and one function per group of operations. Each of these
// says whether it knew the operation; it has replaced and erased it then.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_EXECUTOR_LIB_TRANSFORMS_NVVMTOEXECUTOR_NVVMTOEXECUTOR_H
#define VARLEN_EXECUTOR_LIB_TRANSFORMS_NVVMTOEXECUTOR_NVVMTOEXECUTOR_H

#include "varlen/Executor/Device.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

#include <array>
#include <string>
#include <vector>

namespace mlir::varlen::executor {

/// No: the caller asks the next group, and if no group knows the operation says
/// so, with what CallBuilder::refuse was told.
enum class Lowered { No, Yes };

/// Builds in front of one operation of a kernel after the other.
class CallBuilder : public ImplicitLocOpBuilder {
public:
  explicit CallBuilder(ModuleOp module);

  /// What follows is built in front of `op`, with its location.
  void setOp(Operation *newOp);
  Operation *getOp() const { return op; }

  /// Calls a function of the executor, declaring it first. Pure calls read
  /// nothing that changes while a kernel runs.
  Value call(StringRef function, Type result, ValueRange arguments,
             bool isPure = false);
  void call(StringRef function, ValueRange arguments) {
    call(function, Type(), arguments);
  }
  /// The index of "file:line:col (op)".
  int64_t siteIndex();
  Value site() { return i32Constant(siteIndex()); }

  Value i32Constant(int64_t value);
  /// The same pointer in address space 0.
  Value flat(Value address);
  /// The same pointer in another address space.
  Value castTo(Type type, Value address);
  /// `count` elements on the thread's stack.
  Value stackSlot(Type element, int64_t count);
  /// The same, but always the same one in a function: for what is gone before
  /// the next operation needs it.
  Value sharedStackSlot(Type element, int64_t count);
  /// Constants in memory.
  Value constantWords(ArrayRef<int32_t> words);
  /// The address of element i.
  Value element(Value base, Type type, int64_t i);
  /// A stack slot with these values, each in a word of 32 bits.
  Value storeWords(ValueRange values);
  /// A value of the type (a struct of words or one word) from consecutive
  /// words.
  Value loadWords(Value base, Type type);
  /// The struct with another member i.
  Value setMember(Value aggregate, Value member, int64_t i);
  /// A struct of the type.
  Value pair(Type type, Value first, Value second);
  /// The same bits as another type of that width.
  Value bitcast(Value value, Type type);
  /// The value's bits, extended by zeros or cut.
  Value toInteger(Value value, unsigned width);
  /// Inverse of toInteger.
  Value fromInteger(Value value, Type type);
  /// Whether an i32 is not 0.
  Value toBool(Value value);

  /// Uses the value in place of the operation's result and erases it.
  Lowered replaceOp(Value value);
  Lowered eraseOp();
  /// Calls a function without a result in place of the operation, with its site
  /// behind the arguments.
  Lowered replaceWithCall(StringRef function, ValueRange arguments = {});
  /// Notes which form of the operation the executor lacks.
  Lowered refuse(const Twine &what);
  StringRef getRefusal() const { return refusal; }

  /// Bytes of a value in memory.
  uint64_t getSize(Type type) { return layout.getTypeSize(type); }

  ArrayRef<std::string> getSites() const { return sites; }

  Type i32, i64, f32, pointer;

private:
  ModuleOp module;
  DataLayout layout;
  Operation *op = nullptr;
  std::vector<std::string> sites;
  unsigned numWords = 0;
  std::string refusal;
  llvm::StringMap<LLVM::LLVMFuncOp> functions;
  llvm::DenseMap<std::tuple<Operation *, Type, int64_t>, Value> sharedSlots;
};

/// What varlen_sim_mma has to know of an mma.sync.
struct MmaKind {
  int64_t type, k, accumulator;
  bool operator==(const MmaKind &other) const {
    return type == other.type && k == other.k &&
           accumulator == other.accumulator;
  }
};
/// Nothing if the executor does not have it.
std::optional<MmaKind> getMmaKind(NVVM::MmaOp op);
/// Whether the tiles are those that varlen_sim_ldmatrix has.
bool hasMatrixShape(NVVM::LdMatrixOp op);

/// Whether accesses of several CTAs to global memory are ordered by what is in
/// the function: fences, or loads and stores that acquire and release.
bool hasGlobalOrder(LLVM::LLVMFuncOp function);

// Synchronisation: barriers, mbarriers, fences, clusters, control.
Lowered lowerSync(CallBuilder &b);
// Warp collectives: shuffles, votes, matrices.
Lowered lowerWarp(CallBuilder &b);
// wgmma but for its accumulators.
Lowered lowerWgmma(CallBuilder &b);
// Asynchronous copies.
Lowered lowerCopy(CallBuilder &b);
// Special registers, conversions, functions of libdevice.
Lowered lowerMath(CallBuilder &b);
// Intrinsics that are called by name.
Lowered lowerIntrinsic(CallBuilder &b);
// Loads, stores, atomics, memory intrinsics.
Lowered lowerMemory(CallBuilder &b);
// mma.sync and ldmatrix, where several can go in one call.
void lowerBatches(CallBuilder &b, LLVM::LLVMFuncOp function);
// wgmma: everything in the function that its accumulators are part of.
LogicalResult lowerAccumulators(CallBuilder &b, LLVM::LLVMFuncOp function);

/// The special register of this name; null if the executor has none. The
/// operation stays.
Value readSpecialRegister(CallBuilder &b, StringRef name);

/// A kernel on its way to the host.
struct HostKernel {
  LLVM::LLVMFuncOp function;
  /// As launches know it.
  std::string name;
  LLVM::LLVMFuncOp entry;
  /// Up to where dynamic shared memory starts.
  uint32_t sharedBytes = 0;
  /// Zeros: any.
  std::array<int32_t, 3> requiredBlock = {}, requiredCluster = {};
  int32_t maxThreads = 0, registers = 0;
  /// Whether its module says so (Runtime/GPU.h).
  bool waitsForGrids = false;
};

/// Where the globals in shared memory lie; sets the kernels' sharedBytes.
FailureOr<llvm::DenseMap<LLVM::GlobalOp, uint32_t>>
layoutSharedMemory(Operation *kernelModule,
                   MutableArrayRef<HostKernel> kernels);
/// The global is in shared memory.
bool isShared(LLVM::GlobalOp global);

/// Adds the table of kernels and sites and the constructor that registers it
/// (varlen_gpu_executor_image in Runtime/GPUExecutor.h) under this name.
void addImage(ModuleOp module, Location loc, StringRef name,
              ArrayRef<HostKernel> kernels, ArrayRef<std::string> sites,
              ArrayRef<LLVM::GlobalOp> globals);

} // namespace mlir::varlen::executor

#endif // VARLEN_EXECUTOR_LIB_TRANSFORMS_NVVMTOEXECUTOR_NVVMTOEXECUTOR_H
