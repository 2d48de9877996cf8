//===- RuntimeVerification.cpp - Checks of an attention at run time -------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Transforms/RuntimeVerification.h"

#include "ExtentChecks.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/RuntimeVerifiableOpInterface.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {

using ErrorMessage = llvm::function_ref<std::string(Operation *, StringRef)>;

/// Emits an assertion for each rule of an attention that its types leave open.
/// An assertion stops the program, so each may rely on those before it.
class Checker {
public:
  Checker(ImplicitLocOpBuilder &b, AttentionOpInterface op,
          ErrorMessage message)
      : b(b), index{b}, op(op), message(message) {}

  void check() {
    checkExtents();
    checkSequenceCounts();
    checkCuSeqlens("q", op.getCuQ(), op.getSequsedQ(), op.getQ());
    if (op.isPaged())
      checkPages();
    else
      checkCuSeqlens("k", op.getCuK(), op.getSequsedK(), op.getK());
  }

private:
  void checkExtents();
  void checkSequenceCounts();
  void checkCuSeqlens(StringRef side, Value cu, Value seqused, Value packed);
  void checkUsed(StringRef side, Value used, Value rows, StringRef where);
  void checkPages();
  /// For each sequence.
  void forEach(Value count, function_ref<void(Value)> body) {
    auto loop =
        scf::ForOp::create(b, index.constant(0), count, index.constant(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  void require(Value condition, const Twine &what) {
    cf::AssertOp::create(b, condition, message(op, what.str()));
  }

  static int64_t extent(Value shaped, int64_t dim) {
    return cast<ShapedType>(shaped.getType()).getDimSize(dim);
  }
  Value dim(Value shaped, int64_t dim) {
    if (isa<MemRefType>(shaped.getType()))
      return memref::DimOp::create(b, shaped, dim);
    return tensor::DimOp::create(b, shaped, dim);
  }
  Value load(Value integers, ValueRange position) {
    Value element;
    if (isa<MemRefType>(integers.getType()))
      element = memref::LoadOp::create(b, integers, position);
    else
      element = tensor::ExtractOp::create(b, integers, position);
    return arith::IndexCastOp::create(b, b.getIndexType(), element);
  }

  /// Two extents that must agree; the verifier has compared static ones.
  void requireSame(Value a, int64_t aDim, Value other, int64_t otherDim,
                   const Twine &what) {
    if (ShapedType::isStatic(extent(a, aDim)) &&
        ShapedType::isStatic(extent(other, otherDim)))
      return;
    require(index.equal(dim(a, aDim), dim(other, otherDim)), what);
  }

  ImplicitLocOpBuilder &b;
  IndexBuilder index;
  AttentionOpInterface op;
  ErrorMessage message;
};

} // namespace

/// What an assertion of `rule` says.
static std::string describe(const ExtentRule &rule) {
  StringRef name = rule.extent.source.name, of = rule.bound.source.name;
  if (of == "capture")
    return name == of ? "capture must have at least one entry"
                      : (name + " must have as many entries as capture").str();
  RowExtent extent = getRowExtent(rule.extent);
  if (rule.kind == ExtentRule::Positive)
    return (name + " must have " +
            (extent == RowExtent::Heads      ? "at least one head"
             : extent == RowExtent::PageRows ? "at least one row in a page"
                                             : "a positive head_dim"))
        .str();
  if (rule.kind == ExtentRule::Multiple)
    return "query heads must be a multiple of kv heads";
  if (name == "sink" || name == "tsink")
    return (name + " must have one entry for each query head").str();
  // q, k and v have no shape from one another: their rules are mutual.
  if (name == "k" || name == "v") {
    constexpr StringLiteral extents[] = {"number of rows", "number of heads",
                                         "head_dim", "number of pages",
                                         "rows in a page"};
    return (of + " and " + name + " must have the same " +
            extents[static_cast<size_t>(extent)])
        .str();
  }
  constexpr StringLiteral meanings[] = {"as many rows as ", "as many heads as ",
                                        "the head_dim of ", "as many pages as ",
                                        "as many rows in a page as "};
  return (name + " must have " +
          meanings[static_cast<size_t>(getRowExtent(rule.bound))] + of)
      .str();
}

void Checker::checkExtents() {
  for (const ExtentRule &rule : getExtentRules(op))
    require(emitExtents(b, rule).emitHolds(b, rule.kind), describe(rule));
}

void Checker::checkSequenceCounts() {
  Value cu = op.getCuQ();
  if (ShapedType::isDynamic(extent(cu, 0)))
    require(index.less(0, dim(cu, 0)),
            "cu_seqlens_q must have at least one entry");
  if (!op.isPaged())
    requireSame(cu, 0, op.getCuK(), 0,
                "cu_seqlens_q and cu_seqlens_k must have the same number of "
                "entries");
  for (auto [name, value] : {std::pair("seqused_q", op.getSequsedQ()),
                             std::pair("seqused_k", op.getSequsedK()),
                             std::pair("q_offset", op.getQOffset()),
                             std::pair("block_table", op.getBlockTable())}) {
    if (!value || (ShapedType::isStatic(extent(cu, 0)) &&
                   ShapedType::isStatic(extent(value, 0))))
      continue;
    Value entries = index.add(dim(value, 0), 1);
    require(index.equal(entries, dim(cu, 0)),
            Twine(name) + " must have one " +
                (value == op.getBlockTable() ? "row" : "entry") +
                " for each sequence");
  }
}

void Checker::checkCuSeqlens(StringRef side, Value cu, Value seqused,
                             Value packed) {
  std::string name = ("cu_seqlens_" + side).str();
  require(index.equal(load(cu, index.constant(0)), 0),
          name + " must start at 0");
  Value sequences = index.sub(dim(cu, 0), 1);
  forEach(sequences, [&](Value sequence) {
    Value next = index.add(sequence, 1);
    Value begin = load(cu, sequence), end = load(cu, next);
    require(index.lessEqual(begin, end), name + " must not decrease");
    if (seqused)
      checkUsed(side, load(seqused, sequence), index.sub(end, begin),
                "the sequence's slot");
  });
  require(index.lessEqual(load(cu, sequences), dim(packed, 0)),
          name + " must end at or before the last row of " + side);
}

void Checker::checkUsed(StringRef side, Value used, Value rows,
                        StringRef where) {
  require(index.lessEqual(0, used),
          "seqused_" + side + " must not be negative");
  require(index.lessEqual(used, rows),
          "seqused_" + side + " must fit " + where);
}

void Checker::checkPages() {
  Value table = op.getBlockTable(), pageRows = dim(op.getK(), 1);
  Value all = dim(op.getK(), 0), width = dim(table, 1);
  forEach(dim(table, 0), [&](Value sequence) {
    Value used = load(op.getSequsedK(), sequence);
    checkUsed("k", used, index.mul(width, pageRows), "the sequence's pages");
    forEach(index.ceilDiv(used, pageRows), [&](Value slot) {
      Value page = load(table, {sequence, slot});
      require(index.both(index.lessEqual(0, page), index.less(page, all)),
              "block_table must have pages of k where sequences use them");
    });
  });
}

namespace {
template <typename OpTy>
struct AttentionRuntimeVerification
    : RuntimeVerifiableOpInterface::ExternalModel<
          AttentionRuntimeVerification<OpTy>, OpTy> {
  void generateRuntimeVerification(Operation *op, OpBuilder &builder,
                                   Location loc, ErrorMessage message) const {
    ImplicitLocOpBuilder b(loc, builder);
    Checker(b, cast<OpTy>(op), message).check();
  }
};
} // namespace

template <typename... OpTys>
static void attachVerification(MLIRContext &context) {
  (OpTys::template attachInterface<AttentionRuntimeVerification<OpTys>>(
       context),
   ...);
}

void varlen::registerRuntimeVerifiableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, VarlenDialect *) {
    attachVerification<AttnOp, AttnIntoOp, AttnGradOp, AttnGradIntoOp,
                       AttnJVPOp, AttnJVPIntoOp, AttnJVPGradOp,
                       AttnJVPGradIntoOp>(*context);
    // What the checks are made of.
    context->loadDialect<arith::ArithDialect, cf::ControlFlowDialect,
                         memref::MemRefDialect, scf::SCFDialect,
                         tensor::TensorDialect>();
  });
}
