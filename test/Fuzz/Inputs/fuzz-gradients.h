//===- fuzz-gradients.h - Gradients of a fuzzed attention ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A part of fuzz-cu-seqlens.cpp, which includes it once, in its namespace: the
// gradients of a case, after its forward has left out and lse. For a broken
// case they must report the error and write nothing; for a valid one be near
// loops in f64, with NaN in all rows that are not in use, and have the same
// bits whichever thread runs the items.
//
//===----------------------------------------------------------------------===//

using Pointer = void *;
using GradientEntry = void (*)(Pointer, Pointer, Pointer, Pointer, Pointer,
                               Pointer, Pointer, Pointer, Pointer, Pointer,
                               Pointer, Pointer, Pointer, Pointer, Pointer,
                               Pointer);

#define GRADIENT_ARGUMENTS                                                     \
  Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer,      \
      Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer
extern "C" {
void _mlir_ciface_window_top_left_grad(GRADIENT_ARGUMENTS);
void _mlir_ciface_gqa_used_sink_grad(GRADIENT_ARGUMENTS);
void _mlir_ciface_bf16_gqa_window_used_grad(GRADIENT_ARGUMENTS);
void _mlir_ciface_f16_full_sink_grad(GRADIENT_ARGUMENTS);
void _mlir_ciface_f64_causal_grad(GRADIENT_ARGUMENTS);
void _mlir_ciface_odd_dims_grad(GRADIENT_ARGUMENTS);
void _mlir_ciface_wide_index_grad(GRADIENT_ARGUMENTS);
}
#undef GRADIENT_ARGUMENTS

struct GradientFunction {
  const char *name;
  GradientEntry entry;
  bool dlse;
};

// In the order of fuzz-gradients.mlir.
const GradientFunction gradientFunctions[] = {
    {"window_top_left", _mlir_ciface_window_top_left_grad, false},
    {"gqa_used_sink", _mlir_ciface_gqa_used_sink_grad, true},
    {"bf16_gqa_window_used", _mlir_ciface_bf16_gqa_window_used_grad, true},
    {"f16_full_sink", _mlir_ciface_f16_full_sink_grad, false},
    {"f64_causal", _mlir_ciface_f64_causal_grad, true},
    {"odd_dims", _mlir_ciface_odd_dims_grad, false},
    {"wide_index", _mlir_ciface_wide_index_grad, true},
};

GuardedArray doutArray(mostRows * 4 * mostDim * 4),
    dlseArray(mostRows * mostHeads * 8), dqArray(mostRows * 4 * mostDim * 4),
    dkArray(mostRows * 2 * 128 * 4), dvArray(mostRows * 2 * 128 * 4),
    dsinkArray(mostHeads * 8);

void callGradients(const Case &c, GradientEntry entry) {
  const Function &f = *c.function;
  Operands o(c);
  auto dout = makeMemRef<3>(doutArray, {c.tq, f.heads, f.dv});
  auto dlse = makeMemRef<2>(dlseArray, {f.heads, c.tq});
  auto dq = makeMemRef<3>(dqArray, {c.tq, f.heads, f.d});
  auto dk = makeMemRef<3>(dkArray, {c.tk, f.kvHeads, f.d});
  auto dv = makeMemRef<3>(dvArray, {c.tk, f.kvHeads, f.dv});
  auto dsink = makeMemRef<1>(dsinkArray, {f.heads});
  entry(&dout, &o.q, &o.k, &o.v, &o.out, &o.lse, &o.cuQ, &o.cuK, &o.usedQ,
        &o.usedK, &o.sink, &dlse, &dq, &dk, &dv, &dsink);
}

/// A sum, and how large what was added up is: rounding is relative to that.
struct Sum {
  double value = 0, size = 0;
  void add(double x, double s) {
    value += x;
    size += s;
  }
  void add(double x) { add(x, std::fabs(x)); }
};

/// The gradients by their definition from the out and lse at hand; empty if
/// those computed are near enough.
std::string compareGradients(const Case &c, bool hasDlse) {
  const Function &f = *c.function;
  Type compute = f.type == Type::F64 ? Type::F64 : Type::F32;
  double tolerance = f.type == Type::F64    ? 1e-12
                     : f.type == Type::F32  ? 1e-5
                     : f.type == Type::BF16 ? 2e-2
                                            : 3e-3;
  double scale = 1 / std::sqrt(static_cast<double>(f.d));
  std::vector<Sum> dq(c.tq * f.heads * f.d), dk(c.tk * f.kvHeads * f.d),
      dv(c.tk * f.kvHeads * f.dv), dsink(f.heads);
  std::vector<char> any(c.tq, 0), anyKey(c.tk, 0);
  bool anySink = false;
  for (size_t s = 0; s + 1 < c.cuQ.size(); ++s) {
    int64_t lq = f.seqused ? c.usedQ[s] : c.cuQ[s + 1] - c.cuQ[s];
    int64_t lk = f.seqused ? c.usedK[s] : c.cuK[s + 1] - c.cuK[s];
    int64_t diagonal = f.bottomRight ? lk - lq : 0;
    if (static_cast<int64_t>(s) == c.poisoned) {
      std::fill_n(any.begin() + c.cuQ[s], lq, 1);
      std::fill_n(anyKey.begin() + c.cuK[s], lk, 1);
      anySink |= lq > 0;
      continue;
    }
    for (int64_t h = 0; h < f.heads; ++h) {
      int64_t kvHead = h / (f.heads / f.kvHeads);
      for (int64_t i = 0; i < lq; ++i) {
        int64_t row = c.cuQ[s] + i;
        double lse = load(lseArray.data, compute, h * c.tq + row);
        Sum delta;
        int64_t outRow = (row * f.heads + h) * f.dv;
        for (int64_t e = 0; e < f.dv; ++e)
          delta.add(load(doutArray.data, f.type, outRow + e) *
                    load(outArray.data, f.type, outRow + e));
        if (hasDlse)
          delta.add(-load(dlseArray.data, compute, h * c.tq + row));
        if (f.sink) {
          double p = std::exp(load(sinkArray.data, Type::F32, h) - lse);
          dsink[h].add(-p * delta.value, p * delta.size);
        }
        int64_t begin =
            f.left < 0 ? 0 : std::max<int64_t>(0, i + diagonal - f.left);
        int64_t end =
            f.right < 0 ? lk : std::min(lk, i + diagonal + f.right + 1);
        for (int64_t j = begin; j < end; ++j) {
          int64_t key = (c.cuK[s] + j) * f.kvHeads + kvHead;
          int64_t query = row * f.heads + h;
          double score = 0;
          for (int64_t e = 0; e < f.d; ++e)
            score += load(qArray.data, f.type, query * f.d + e) *
                     load(kArray.data, f.type, key * f.d + e);
          double p = std::exp(score * scale - lse);
          Sum dp;
          for (int64_t e = 0; e < f.dv; ++e) {
            double x = load(doutArray.data, f.type, outRow + e);
            dp.add(x * load(vArray.data, f.type, key * f.dv + e));
            dv[key * f.dv + e].add(p * x);
          }
          double ds = scale * p * (dp.value - delta.value);
          double size = scale * p * (dp.size + delta.size);
          for (int64_t e = 0; e < f.d; ++e) {
            double qe = load(qArray.data, f.type, query * f.d + e);
            double ke = load(kArray.data, f.type, key * f.d + e);
            dq[query * f.d + e].add(ds * ke, size * std::fabs(ke));
            dk[key * f.d + e].add(ds * qe, size * std::fabs(qe));
          }
        }
      }
    }
  }
  auto check = [&](const char *name, const GuardedArray &array, Type type,
                   const std::vector<Sum> &wanted, auto isAny) -> std::string {
    // Half the distance of numbers that are subnormal.
    double least = type == Type::F16 ? 0x1p-25 : 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      double got = load(array.data, type, i);
      if (isAny(i) || std::fabs(got - wanted[i].value) <=
                          tolerance * wanted[i].size + least)
        continue;
      return std::string(name) + "[" + std::to_string(i) + "]: got " +
             std::to_string(got) + ", wanted " +
             std::to_string(wanted[i].value);
    }
    return "";
  };
  auto row = [](const std::vector<char> &any, int64_t width) {
    return [&any, width](size_t i) { return any[i / width] != 0; };
  };
  std::string problem =
      check("dq", dqArray, f.type, dq, row(any, f.heads * f.d));
  if (problem.empty())
    problem = check("dk", dkArray, f.type, dk, row(anyKey, f.kvHeads * f.d));
  if (problem.empty())
    problem = check("dv", dvArray, f.type, dv, row(anyKey, f.kvHeads * f.dv));
  if (problem.empty() && f.sink)
    problem = check("dsink", dsinkArray, compute, dsink,
                    [&](size_t) { return anySink; });
  return problem;
}

/// Empty if the gradients of the case are what they must be.
std::string runGradients(const Case &c, Random &random, bool valid,
                         const std::vector<char> &queriesInUse) {
  const Function &f = *c.function;
  const GradientFunction *function = std::find_if(
      std::begin(gradientFunctions), std::end(gradientFunctions),
      [&](const GradientFunction &g) { return !std::strcmp(g.name, f.name); });
  if (function == std::end(gradientFunctions))
    return "";
  Type compute = f.type == Type::F64 ? Type::F64 : Type::F32;
  fill(doutArray, random, f.type, c.tq, f.heads * f.dv, queriesInUse);
  // Rows of lse are heads.
  fill(dlseArray, random, compute, f.heads, c.tq,
       std::vector<char>(f.heads, 1));
  auto place = [&](GuardedArray &array, int64_t elements, Type type) {
    array.place(elements * bytesOf(type), chance(random, 0.7), bytesOf(type));
  };
  place(dqArray, c.tq * f.heads * f.d, f.type);
  place(dkArray, c.tk * f.kvHeads * f.d, f.type);
  place(dvArray, c.tk * f.kvHeads * f.dv, f.type);
  place(dsinkArray, f.heads, compute);
  // What the forward says of rows that belong to no sequence is not read.
  if (valid)
    for (int64_t i = 0; i < c.tq; ++i)
      if (!queriesInUse[i]) {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        for (int64_t e = 0; e < f.heads * f.dv; ++e)
          store(outArray.data, f.type, i * f.heads * f.dv + e, nan);
        for (int64_t h = 0; h < f.heads; ++h) {
          store(lseArray.data, compute, h * c.tq + i, nan);
          store(dlseArray.data, compute, h * c.tq + i, nan);
        }
      }
  const GuardedArray *results[] = {&dqArray, &dkArray, &dvArray, &dsinkArray};
  std::vector<std::vector<char>> first;
  for (bool ownThreads : {false, true}) {
    for (const GuardedArray *array : results)
      std::memset(array->data, pattern, array->bytes);
    const char *error =
        runOnce(ownThreads, random, [&] { callGradients(c, function->entry); });
    for (const GuardedArray *array :
         {&qArray, &kArray, &vArray, &cuQArray, &cuKArray, &usedQArray,
          &usedKArray, &sinkArray, &outArray, &lseArray, &doutArray, &dlseArray,
          &dqArray, &dkArray, &dvArray, &dsinkArray})
      if (!array->intact())
        return "gradients: wrote outside of an array";
    if (!workspaceIntact)
      return "gradients: wrote outside of the workspace";
    if (!valid) {
      if (!error)
        return "gradients: wanted an error, got none";
      for (const GuardedArray *array : results)
        // A sum over no rows is 0 whatever cu_seqlens are.
        if ((array != &dsinkArray || c.tq > 0) &&
            !std::all_of(array->data, array->data + array->bytes,
                         [](char byte) { return byte == pattern; }))
          return "gradients: wrote a result in spite of the error";
      return "";
    }
    if (error)
      return std::string("gradients: wanted results, got the error: ") + error;
    if (!ownThreads) {
      std::string difference = compareGradients(c, function->dlse);
      if (!difference.empty())
        return difference;
      for (const GuardedArray *array : results)
        first.emplace_back(array->data, array->data + array->bytes);
      continue;
    }
    for (size_t i = 0; i < std::size(results); ++i)
      if (std::memcmp(first[i].data(), results[i]->data, results[i]->bytes))
        return "gradients: the runtime's threads gave other bits than one item "
               "at a time";
  }
  return "";
}
