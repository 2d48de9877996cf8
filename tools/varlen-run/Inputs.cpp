//===- Inputs.cpp - The values of the entry function's arguments ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"

#include "Random.h"

#include "mlir/IR/BuiltinTypes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cinttypes>
#include <numeric>

using namespace varlen_run;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using mlir::ShapedType;

static std::string describe(const Slot &slot) {
  return (getName(slot.dtype) + " " + formatShape(slot.shape)).str();
}

//===----------------------------------------------------------------------===//
// From a file
//===----------------------------------------------------------------------===//

static Expected<Tensor> readInput(const Slot &slot, const SafetensorsFile &file,
                                  const SafetensorsFile::Entry &entry) {
  std::string where = file.getPath().str() + ": tensor " + quote(slot.name);
  std::string wanted = ": the function expects " + describe(slot);
  if (!entry.dtype)
    return makeError(where + " has dtype " + quote(entry.dtypeName) +
                     ", which is not supported" + wanted);
  bool fits = isPassableAs(*entry.dtype, slot.dtype) &&
              entry.shape.size() == slot.shape.size();
  for (size_t i = 0; fits && i < slot.shape.size(); ++i)
    fits =
        ShapedType::isDynamic(slot.shape[i]) || slot.shape[i] == entry.shape[i];
  if (!fits)
    return makeError(where + " is " + entry.dtypeName + " " +
                     formatShape(entry.shape) + wanted);
  return file.read(entry, slot.dtype);
}

static Error makeMissingError(const Slot &slot,
                              ArrayRef<const SafetensorsFile *> files) {
  std::string wanted = quote(slot.name) + " (" + describe(slot) + ")";
  if (files.empty())
    return makeError("no value for argument " + wanted +
                     ": expected a safetensors file, or --random=SEED");
  std::string message = files[0]->getPath().str() + ": no tensor " + wanted +
                        ", which the function expects; the file has " +
                        files[0]->describeNames();
  for (const SafetensorsFile *file : files.drop_front())
    message += ", " + file->getPath().str() + " has " + file->describeNames();
  return makeError(message);
}

//===----------------------------------------------------------------------===//
// Made up
//===----------------------------------------------------------------------===//

namespace {
/// What an argument is to an attention, and of which sequences.
struct Role {
  enum Kind { None, Rows, CuSeqlens, Used, Offset } kind = None;
  const std::vector<int64_t> *lengths = nullptr;
  /// The dimension whose extent the lengths give.
  int64_t dim = 0;
};

/// Makes the arguments that no file has.
class Maker {
public:
  Maker(const Signature &signature, const Options &options,
        ArrayRef<std::optional<Tensor>> given)
      : signature(signature), options(options), given(given),
        roles(signature.arguments.size()) {}

  /// Finds the arguments' shapes and roles.
  Error analyze();
  Expected<Tensor> make(size_t argument) const;

private:
  Error setRole(int64_t argument, const Role &role);
  Error setRoles(const Attention &attention);
  Error checkExtents() const;
  void findShapes();
  /// The extent that the lengths give to the role's dimension.
  std::optional<int64_t> getDerivedExtent(const Role &role) const;
  Expected<llvm::SmallVector<int64_t>> makeShape(size_t argument) const;
  Error fillIntegers(const Slot &slot, const Role &role, Tensor &tensor) const;

  const Signature &signature;
  const Options &options;
  ArrayRef<std::optional<Tensor>> given;
  std::vector<Role> roles;
  /// The shape of each argument; dynamic where only the lengths can say more.
  std::vector<llvm::SmallVector<int64_t>> shapes;
};
} // namespace

static int64_t sum(const std::vector<int64_t> &lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
}

static const char *describe(Role::Kind kind) {
  switch (kind) {
  case Role::None:
    break;
  case Role::Rows:
    return "rows";
  case Role::CuSeqlens:
    return "cu_seqlens";
  case Role::Used:
    return "seqused";
  case Role::Offset:
    return "q_offset";
  }
  return "nothing";
}

Error Maker::setRole(int64_t argument, const Role &role) {
  if (argument < 0 || given[argument])
    return Error::success();
  Role &old = roles[argument];
  const char *name = signature.arguments[argument].name.c_str();
  if (old.kind != Role::None && old.kind != role.kind)
    return makeError("argument '%s' is used as %s and as %s: --random cannot "
                     "make it, give it in a file",
                     name, describe(old.kind), describe(role.kind));
  if (old.lengths && *old.lengths != *role.lengths)
    return makeError("argument '%s' is used for queries and for keys: "
                     "--lengths-k must not differ from --lengths",
                     name);
  old = role;
  return Error::success();
}

Error Maker::setRoles(const Attention &attention) {
  const std::vector<int64_t> *q = options.lengths ? &*options.lengths : nullptr;
  const std::vector<int64_t> *k = options.lengthsK ? &*options.lengthsK : q;
  for (auto [extent, lengths] :
       {std::pair(Extent::QueryRows, q), std::pair(Extent::KeyRows, k)})
    for (auto [argument, dim] : attention[extent].dims)
      if (Error error = setRole(argument, {Role::Rows, lengths, dim}))
        return error;
  const std::pair<int64_t, Role> lists[] = {
      {attention.cuQ, {Role::CuSeqlens, q}},
      {attention.cuK, {Role::CuSeqlens, k}},
      {attention.usedQ, {Role::Used, q}},
      {attention.usedK, {Role::Used, k}},
      {attention.offset, {Role::Offset, q}}};
  for (const auto &[argument, role] : lists)
    if (Error error = setRole(argument, role))
      return error;
  return Error::success();
}

Error Maker::analyze() {
  if (Error error = checkExtents())
    return error;
  findShapes();
  for (const Attention &attention : signature.attentions)
    if (Error error = setRoles(attention))
      return error;
  return Error::success();
}

void Maker::findShapes() {
  for (auto [slot, tensor] : llvm::zip_equal(signature.arguments, given)) {
    shapes.push_back(tensor ? tensor->shape : slot.shape);
    for (auto [d, extent] : llvm::enumerate(shapes.back()))
      if (auto found = options.extents.find({slot.name, d});
          found != options.extents.end() && ShapedType::isDynamic(extent))
        extent = found->second;
  }
  // One argument of an attention gives extents to others, which may be
  // arguments of another attention.
  auto extentOf = [&](ArgumentDim of) -> int64_t & {
    return shapes[of.argument][of.dim];
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Attention &attention : signature.attentions)
      for (const Attention::ExtentSource &source : attention.extents) {
        int64_t known = source.known.value_or(ShapedType::kDynamic);
        for (ArgumentDim of : source.dims)
          if (ShapedType::isDynamic(known))
            known = extentOf(of);
        for (ArgumentDim of : source.dims)
          if (ShapedType::isStatic(known) &&
              ShapedType::isDynamic(extentOf(of))) {
            extentOf(of) = known;
            changed = true;
          }
      }
  }
}

Error Maker::checkExtents() const {
  for (const auto &[key, extent] : options.extents) {
    auto [name, dim] = key;
    const auto *slot =
        llvm::find_if(signature.arguments, [name = name](const Slot &slot) {
          return slot.name == name;
        });
    if (slot == signature.arguments.end() ||
        dim >= static_cast<int64_t>(slot->shape.size()))
      return makeError("--extent: the function has no argument '%s' with a "
                       "dimension %" PRId64,
                       name.c_str(), dim);
    if (!ShapedType::isDynamic(slot->shape[dim]) && slot->shape[dim] != extent)
      return makeError("--extent: dimension %" PRId64 " of '%s' is %" PRId64
                       " in the function, got %" PRId64,
                       dim, name.c_str(), slot->shape[dim], extent);
  }
  return Error::success();
}

std::optional<int64_t> Maker::getDerivedExtent(const Role &role) const {
  if (!role.lengths)
    return std::nullopt;
  auto sequences = static_cast<int64_t>(role.lengths->size());
  // --cu-pad counts entries of cu_seqlens.
  int64_t entries = options.cuPad.value_or(sequences + 1);
  switch (role.kind) {
  case Role::None:
    return std::nullopt;
  case Role::Rows:
    return sum(*role.lengths);
  case Role::CuSeqlens:
    return entries;
  case Role::Used:
  case Role::Offset:
    return entries - 1;
  }
  return std::nullopt;
}

Expected<llvm::SmallVector<int64_t>> Maker::makeShape(size_t argument) const {
  const Slot &slot = signature.arguments[argument];
  const Role &role = roles[argument];
  std::optional<int64_t> derived = getDerivedExtent(role);
  llvm::SmallVector<int64_t> shape = shapes[argument];
  for (auto [d, extent] : llvm::enumerate(shape)) {
    if (!ShapedType::isDynamic(extent))
      continue;
    bool hasRole =
        role.kind != Role::None && static_cast<int64_t>(d) == role.dim;
    if (!hasRole || !derived)
      return makeError("the size of dimension %zu of '%s' is not known: give "
                       "--extent=%s:%zu=SIZE%s",
                       d, slot.name.c_str(), slot.name.c_str(), d,
                       hasRole ? " or --lengths" : "");
    extent = *derived;
  }
  // More is fine: rows beyond the last sequence, ghosts in cu_seqlens.
  int64_t sequences = role.lengths ? role.lengths->size() : 0;
  if (derived && role.kind != Role::Rows)
    derived = sequences + (role.kind == Role::CuSeqlens);
  if (derived && shape[role.dim] < *derived)
    return makeError("argument '%s' has %" PRId64
                     " %s: the lengths need at least %" PRId64,
                     slot.name.c_str(), shape[role.dim],
                     role.kind == Role::Rows ? "rows" : "entries", *derived);
  return shape;
}

Error Maker::fillIntegers(const Slot &slot, const Role &role,
                          Tensor &tensor) const {
  if (role.kind == Role::None || role.kind == Role::Rows)
    return makeError("argument '" + slot.name + "' (" + describe(slot) +
                     ") is no cu_seqlens and no seqused: --random cannot make "
                     "it, give it in a file");
  if (!role.lengths)
    return makeError("argument '" + slot.name +
                     "' is made from the lengths: expected --lengths=L,L,...");
  const std::vector<int64_t> &lengths = *role.lengths;
  if (getBytes(tensor.dtype) == 4 && sum(lengths) > INT32_MAX)
    return makeError("argument '%s' is of i32, which cannot hold %" PRId64
                     " rows",
                     slot.name.c_str(), sum(lengths));
  int64_t size = tensor.getNumElements(), total = 0;
  for (int64_t i = 0; i < size; ++i) {
    int64_t length = i < static_cast<int64_t>(lengths.size()) ? lengths[i] : 0;
    if (role.kind == Role::CuSeqlens)
      tensor.setInteger(i, total);
    else
      tensor.setInteger(i, role.kind == Role::Used ? length : 0);
    total += length;
  }
  return Error::success();
}

Expected<Tensor> Maker::make(size_t argument) const {
  const Slot &slot = signature.arguments[argument];
  Expected<llvm::SmallVector<int64_t>> shape = makeShape(argument);
  if (!shape)
    return shape.takeError();
  Expected<Tensor> tensor = Tensor::create(slot.dtype, *shape);
  if (!tensor)
    return tensor;
  // Bytes that are rows of an attention are quantised ones.
  bool isQuantised =
      slot.dtype == DType::I8 && roles[argument].kind == Role::Rows;
  if (slot.dtype >= DType::F8E4M3 || isQuantised)
    fillNormal(*tensor, *options.random, slot.name);
  else if (Error error = fillIntegers(slot, roles[argument], *tensor))
    return error;
  return tensor;
}

//===----------------------------------------------------------------------===//
// makeInputs
//===----------------------------------------------------------------------===//

Expected<std::vector<Tensor>>
varlen_run::makeInputs(const Signature &signature, const Options &options,
                       ArrayRef<const SafetensorsFile *> files) {
  std::vector<std::optional<Tensor>> given(signature.arguments.size());
  for (auto [slot, tensor] : llvm::zip_equal(signature.arguments, given)) {
    const auto *file =
        llvm::find_if(files, [name = slot.name](const SafetensorsFile *file) {
          return file->find(name);
        });
    if (file == files.end() && !options.random)
      return makeMissingError(slot, files);
    if (file == files.end())
      continue;
    Expected<Tensor> input = readInput(slot, **file, *(*file)->find(slot.name));
    if (!input)
      return input.takeError();
    tensor = std::move(*input);
  }
  Maker maker(signature, options, given);
  if (options.random)
    if (Error error = maker.analyze())
      return error;
  std::vector<Tensor> inputs;
  for (auto [i, tensor] : llvm::enumerate(given)) {
    Expected<Tensor> input = tensor ? std::move(*tensor) : maker.make(i);
    if (!input)
      return input.takeError();
    inputs.push_back(std::move(*input));
  }
  return inputs;
}
