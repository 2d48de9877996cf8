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
  bool fits = isPassableAs(entry.dtype, slot.dtype) &&
              entry.shape.size() == slot.shape.size();
  for (size_t i = 0; fits && i < slot.shape.size(); ++i)
    fits =
        ShapedType::isDynamic(slot.shape[i]) || slot.shape[i] == entry.shape[i];
  if (!fits)
    return makeError(file.getPath().str() + ": tensor '" + slot.name + "' is " +
                     getName(entry.dtype).str() + " " +
                     formatShape(entry.shape) + ": the function expects " +
                     describe(slot));
  return file.read(entry, slot.dtype);
}

static Error makeMissingError(const Slot &slot, const SafetensorsFile *file) {
  std::string wanted = "'" + slot.name + "' (" + describe(slot) + ")";
  if (!file)
    return makeError("no value for argument " + wanted +
                     ": expected a safetensors file, or --random=SEED");
  return makeError(file->getPath().str() + ": no tensor " + wanted +
                   ", which the function expects; the file has " +
                   llvm::join(file->getNames(), ", "));
}

//===----------------------------------------------------------------------===//
// Made up
//===----------------------------------------------------------------------===//

namespace {
/// What an argument is to an attention, and of which sequences.
struct Role {
  enum Kind { None, Rows, CuSeqlens, Used, Offset } kind = None;
  const std::vector<int64_t> *lengths = nullptr;
};

/// Makes the arguments that no file has.
class Maker {
public:
  Maker(const Signature &signature, const Options &options)
      : signature(signature), options(options),
        roles(signature.arguments.size()) {}

  /// Finds the arguments' roles.
  Error analyze();
  Expected<Tensor> make(size_t argument) const;

private:
  Error setRole(int64_t argument, Role::Kind kind,
                const std::vector<int64_t> *lengths);
  Error checkExtents() const;
  /// The extent that the lengths give to dimension 0 of a tensor.
  std::optional<int64_t> getDerivedExtent(const Role &role) const;
  Expected<llvm::SmallVector<int64_t>> makeShape(size_t argument) const;
  Error fillIntegers(const Slot &slot, const Role &role, Tensor &tensor) const;

  const Signature &signature;
  const Options &options;
  std::vector<Role> roles;
};
} // namespace

static int64_t sum(const std::vector<int64_t> &lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
}

Error Maker::setRole(int64_t argument, Role::Kind kind,
                     const std::vector<int64_t> *lengths) {
  if (argument < 0)
    return Error::success();
  Role &role = roles[argument];
  if (role.kind != Role::None && lengths &&
      (role.kind != kind || *role.lengths != *lengths))
    return makeError("argument '" + signature.arguments[argument].name +
                     "' is used for queries and for keys: --lengths-k must "
                     "not differ from --lengths");
  role = {kind, lengths};
  return Error::success();
}

Error Maker::analyze() {
  if (Error error = checkExtents())
    return error;
  const std::vector<int64_t> *q = options.lengths ? &*options.lengths : nullptr;
  const std::vector<int64_t> *k = options.lengthsK ? &*options.lengthsK : q;
  for (const Attention &attention : signature.attentions) {
    const std::tuple<int64_t, Role::Kind, const std::vector<int64_t> *> uses[] =
        {{attention.q, Role::Rows, q},
         {attention.k, Role::Rows, k},
         {attention.v, Role::Rows, k},
         {attention.cuQ, Role::CuSeqlens, q},
         {attention.cuK, Role::CuSeqlens, k},
         {attention.usedQ, Role::Used, q},
         {attention.usedK, Role::Used, k},
         {attention.offset, Role::Offset, q}};
    for (auto [argument, kind, lengths] : uses)
      if (Error error = setRole(argument, kind, lengths))
        return error;
  }
  return Error::success();
}

Error Maker::checkExtents() const {
  for (const auto &[key, extent] : options.extents) {
    auto [name, dim] = key;
    auto slot =
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
  llvm::SmallVector<int64_t> shape = slot.shape;
  for (auto [d, extent] : llvm::enumerate(shape)) {
    if (!ShapedType::isDynamic(extent))
      continue;
    auto given = options.extents.find({slot.name, static_cast<int64_t>(d)});
    if (given != options.extents.end())
      extent = given->second;
    else if (d == 0 && derived)
      extent = *derived;
    else
      return makeError("the size of dimension %zu of '%s' is not known: give "
                       "--extent=%s:%zu=SIZE%s",
                       d, slot.name.c_str(), slot.name.c_str(), d,
                       d == 0 && role.kind != Role::None ? " or --lengths"
                                                         : "");
  }
  // More is fine: rows beyond the last sequence, ghosts in cu_seqlens.
  int64_t sequences = role.lengths ? role.lengths->size() : 0;
  if (derived && role.kind != Role::Rows)
    derived = sequences + (role.kind == Role::CuSeqlens);
  if (derived && shape[0] < *derived)
    return makeError("argument '%s' has %" PRId64
                     " %s: the lengths need at least %" PRId64,
                     slot.name.c_str(), shape[0],
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
  if (slot.dtype >= DType::F16)
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
                       const SafetensorsFile *file) {
  Maker maker(signature, options);
  if (options.random)
    if (Error error = maker.analyze())
      return error;
  std::vector<Tensor> inputs;
  for (auto [i, slot] : llvm::enumerate(signature.arguments)) {
    const SafetensorsFile::Entry *entry =
        file ? file->find(slot.name) : nullptr;
    if (!entry && !options.random)
      return makeMissingError(slot, file);
    Expected<Tensor> input =
        entry ? readInput(slot, *file, *entry) : maker.make(i);
    if (!input)
      return input.takeError();
    inputs.push_back(std::move(*input));
  }
  return inputs;
}
