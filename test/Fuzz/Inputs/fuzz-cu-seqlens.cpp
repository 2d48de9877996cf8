//===- fuzz-cu-seqlens.cpp - Random cu_seqlens against compiled code ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls the functions of fuzz-cu-seqlens.mlir with random batches, valid ones
// and ones broken in every way. Each call must give the right result or a
// clear error, and touch nothing it was not given:
//
//  * every array ends (or begins) at a page that cannot be accessed, so that an
//    access out of bounds faults, and has canaries on its other side;
//  * rows that belong to no sequence hold NaN, and now and then so does a whole
//    sequence, which must not show in any other; outputs hold a pattern;
//  * the workspace is one of those arrays too, full of NaN before every item;
//  * the same call with the runtime's own threads must give the same bits as
//    the items in random order, one at a time.
//
// The runtime is compiled together with this file under the address sanitizer.
// With FUZZ_EXECUTOR defined the functions are GPU code in the executor. It
// knows every array and checks each access; instead of other threads, a second
// call has another order of warps and timing of copies. There f32 stands for
// bf16, and f64 for f16.
//
//   fuzz-cu-seqlens [COUNT [SEED]]
//
// Case number i has the seed SEED + i: `fuzz-cu-seqlens 1 SEED` repeats it.
//
//===----------------------------------------------------------------------===//

#include "fuzz-arrays.h"
#include "varlen/Runtime/Runtime.h"
#ifdef FUZZ_EXECUTOR
#include "varlen/Runtime/GPUExecutor.h"
#endif

#include <algorithm>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using Random = std::mt19937_64;

int64_t draw(Random &random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}
bool chance(Random &random, double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random) < probability;
}

//===----------------------------------------------------------------------===//
// The compiled functions
//===----------------------------------------------------------------------===//

#ifdef FUZZ_EXECUTOR
constexpr Type singleType = Type::BF16, doubleType = Type::F16;
#else
constexpr Type singleType = Type::F32, doubleType = Type::F64;
#endif

struct Function {
  const char *name;
  void (*entry)();
  Type type;
  int indexBytes;
  int64_t heads, kvHeads, d, dv;
  int64_t left, right;
  bool bottomRight, seqused, sink;
};

extern "C" {
void _mlir_ciface_full();
void _mlir_ciface_causal();
void _mlir_ciface_causal_top_left();
void _mlir_ciface_window();
void _mlir_ciface_window_top_left();
void _mlir_ciface_future();
void _mlir_ciface_diagonal();
void _mlir_ciface_left_open();
void _mlir_ciface_gqa_used_sink();
void _mlir_ciface_mqa_used_window();
void _mlir_ciface_used_top_left();
void _mlir_ciface_bf16_causal();
void _mlir_ciface_bf16_gqa_window_used();
void _mlir_ciface_f16_full_sink();
void _mlir_ciface_f64_causal();
void _mlir_ciface_odd_dims();
void _mlir_ciface_wide_index();
}

// In the order and with the meaning of fuzz-cu-seqlens.mlir. The head size 24
// is no multiple of a vector, 64 and 128 have the fast route.
const Function functions[] = {
    {"full", _mlir_ciface_full, singleType, 4, 2, 2, 64, 64, -1, -1, true,
     false, false},
    {"causal", _mlir_ciface_causal, singleType, 4, 2, 2, 64, 64, -1, 0, true,
     false, false},
    {"causal_top_left", _mlir_ciface_causal_top_left, singleType, 4, 1, 1, 32,
     32, -1, 0, false, false, false},
    {"window", _mlir_ciface_window, singleType, 4, 2, 2, 32, 32, 7, 3, true,
     false, false},
    {"window_top_left", _mlir_ciface_window_top_left, singleType, 4, 1, 1, 32,
     32, 20, 0, false, false, false},
    {"future", _mlir_ciface_future, singleType, 4, 1, 1, 32, 32, 0, 100, true,
     false, false},
    {"diagonal", _mlir_ciface_diagonal, singleType, 4, 1, 1, 16, 16, 0, 0, true,
     false, false},
    {"left_open", _mlir_ciface_left_open, singleType, 4, 1, 1, 16, 16, 150, -1,
     true, false, false},
    {"gqa_used_sink", _mlir_ciface_gqa_used_sink, singleType, 4, 6, 2, 32, 32,
     -1, 0, true, true, true},
    {"mqa_used_window", _mlir_ciface_mqa_used_window, singleType, 8, 4, 1, 64,
     64, 33, 0, true, true, false},
    {"used_top_left", _mlir_ciface_used_top_left, singleType, 4, 2, 1, 32, 32,
     -1, 5, false, true, true},
    {"bf16_causal", _mlir_ciface_bf16_causal, Type::BF16, 4, 2, 2, 64, 64, -1,
     0, true, false, false},
    {"bf16_gqa_window_used", _mlir_ciface_bf16_gqa_window_used, Type::BF16, 4,
     4, 2, 128, 128, 40, 0, true, true, true},
    {"f16_full_sink", _mlir_ciface_f16_full_sink, Type::F16, 4, 2, 1, 64, 64,
     -1, -1, true, false, true},
    {"f64_causal", _mlir_ciface_f64_causal, doubleType, 8, 2, 1, 32, 32, -1, 0,
     true, false, false},
    {"odd_dims", _mlir_ciface_odd_dims, singleType, 4, 2, 1, 24, 40, -1, 0,
     true, true, false},
    {"wide_index", _mlir_ciface_wide_index, singleType, 8, 2, 2, 64, 32, -1, -1,
     true, false, false},
};

//===----------------------------------------------------------------------===//
// A case
//===----------------------------------------------------------------------===//

struct Case {
  const Function *function;
  int64_t tq, tk;
  std::vector<int64_t> cuQ, cuK, usedQ, usedK;
  int64_t poisoned = -1; // the sequence that holds NaN
};

// Small sequences mostly; now and then some that cross a kv block.
int64_t drawLength(Random &random) {
  switch (draw(random, 0, 9)) {
  case 0:
  case 1:
    return 0;
  case 2:
    return draw(random, 30, 140);
  case 3:
    return 1;
  default:
    return draw(random, 1, 24);
  }
}

constexpr int64_t mostRows = 1400;

std::vector<int64_t> drawCuSeqlens(Random &random, int64_t n) {
  std::vector<int64_t> cu{0};
  for (int64_t i = 0; i < n; ++i) {
    int64_t length = drawLength(random);
    if (n == 1 && chance(random, 0.1))
      length = draw(random, 200, 600);
    cu.push_back(cu.back() + std::min(length, (mostRows - 60 - cu.back())));
  }
  return cu;
}

int64_t drawExtreme(Random &random, int indexBytes) {
  int64_t low = indexBytes == 4 ? INT32_MIN : INT64_MIN;
  int64_t high = indexBytes == 4 ? INT32_MAX : INT64_MAX;
  const int64_t values[] = {low,      low + 1, -1,      -2,        high,
                            high - 1, 65536,   1 << 30, -(1 << 30)};
  return values[draw(random, 0, std::size(values) - 1)];
}

// Changes one thing. The result may still be valid: `check` decides, not this.
void breakCase(Random &random, Case &c) {
  int indexBytes = c.function->indexBytes;
  bool query = chance(random, 0.5);
  std::vector<int64_t> &cu = query ? c.cuQ : c.cuK;
  std::vector<int64_t> &used = query ? c.usedQ : c.usedK;
  int64_t &rows = query ? c.tq : c.tk;
  auto any = [&](const std::vector<int64_t> &v) {
    return draw(random, 0, static_cast<int64_t>(v.size()) - 1);
  };
  switch (draw(random, 0, c.function->seqused ? 13 : 9)) {
  case 0: // any entry, extreme
    if (!cu.empty())
      cu[any(cu)] = drawExtreme(random, indexBytes);
    break;
  case 1: // any entry, a little off
    if (!cu.empty())
      cu[any(cu)] += draw(random, -5, 5);
    break;
  case 2: // wrong start
    if (!cu.empty())
      cu[0] = draw(random, -3, 3);
    break;
  case 3: // two entries exchanged
    if (!cu.empty())
      std::swap(cu[any(cu)], cu[any(cu)]);
    break;
  case 4: // fewer rows than cu_seqlens says
    rows = draw(random, 0, rows);
    break;
  case 5: // a last entry just beyond, or far beyond, the rows
    if (!cu.empty())
      cu.back() = rows + (chance(random, 0.5) ? 1 : 100000);
    break;
  case 6: // an entry too many or too few
    if (chance(random, 0.5) || cu.empty())
      cu.push_back(cu.empty() ? 0 : cu.back());
    else
      cu.pop_back();
    break;
  case 7: // no entry at all
    cu.clear();
    break;
  case 8: // all entries reversed
    std::reverse(cu.begin(), cu.end());
    break;
  case 9: // everything extreme
    for (int64_t &entry : cu)
      entry = drawExtreme(random, indexBytes);
    break;
  case 10: // seqused, extreme
    if (!used.empty())
      used[any(used)] = drawExtreme(random, indexBytes);
    break;
  case 11: // seqused, a little off
    if (!used.empty())
      used[any(used)] += draw(random, -3, 3);
    break;
  case 12: // seqused of the wrong length
    if (chance(random, 0.5) || used.empty())
      used.push_back(0);
    else
      used.pop_back();
    break;
  case 13: // seqused just beyond its slot
    if (!used.empty() && cu.size() > used.size()) {
      int64_t i = any(used);
      used[i] = cu[i + 1] - cu[i] + 1;
    }
    break;
  }
}

Case drawCase(Random &random) {
  Case c;
  c.function = &functions[draw(random, 0, std::size(functions) - 1)];
  int64_t n = chance(random, 0.03) ? 0 : draw(random, 1, 9);
  c.cuQ = drawCuSeqlens(random, n);
  c.cuK = chance(random, 0.4) ? c.cuQ : drawCuSeqlens(random, n);
  // One token per sequence against longer keys is a case of its own.
  if (chance(random, 0.1))
    for (int64_t i = 0; i <= n; ++i)
      c.cuQ[i] = i;
  c.tq = c.cuQ.back() + (chance(random, 0.3) ? draw(random, 1, 50) : 0);
  c.tk = c.cuK.back() + (chance(random, 0.3) ? draw(random, 1, 50) : 0);
  if (c.function->seqused) {
    for (int64_t i = 0; i < n; ++i) {
      auto drawUsed = [&](int64_t slot) {
        return chance(random, 0.5) ? slot : draw(random, 0, slot);
      };
      c.usedQ.push_back(drawUsed(c.cuQ[i + 1] - c.cuQ[i]));
      c.usedK.push_back(drawUsed(c.cuK[i + 1] - c.cuK[i]));
    }
  }
  if (chance(random, 0.4))
    for (int64_t i = draw(random, 1, 2); i > 0; --i)
      breakCase(random, c);
  else if (n > 1 && chance(random, 0.2))
    c.poisoned = draw(random, 0, n - 1);
  return c;
}

// The contract, said once more and independently of the runtime.
bool isValid(const std::vector<int64_t> &cu, int64_t rows,
             const std::vector<int64_t> &used, bool hasUsed) {
  if (cu.empty() || cu[0] != 0 || cu.back() > rows)
    return false;
  if (hasUsed && used.size() + 1 != cu.size())
    return false;
  for (size_t i = 1; i < cu.size(); ++i) {
    if (cu[i] < cu[i - 1] || cu[i] > rows)
      return false;
    if (hasUsed && (used[i - 1] < 0 || used[i - 1] > cu[i] - cu[i - 1]))
      return false;
  }
  return true;
}

bool isValid(const Case &c) {
  bool used = c.function->seqused;
  return c.cuQ.size() == c.cuK.size() && isValid(c.cuQ, c.tq, c.usedQ, used) &&
         isValid(c.cuK, c.tk, c.usedK, used);
}

std::string describe(const Case &c) {
  auto list = [](const char *name, const std::vector<int64_t> &values) {
    std::string text = std::string(" ") + name + "=[";
    for (int64_t value : values)
      text += std::to_string(value) + ",";
    return text + "]";
  };
  return std::string(c.function->name) + " tq=" + std::to_string(c.tq) +
         " tk=" + std::to_string(c.tk) + list("cu_q", c.cuQ) +
         list("cu_k", c.cuK) + list("seqused_q", c.usedQ) +
         list("seqused_k", c.usedK) +
         (c.poisoned < 0 ? "" : " poisoned=" + std::to_string(c.poisoned));
}

//===----------------------------------------------------------------------===//
// Running a case
//===----------------------------------------------------------------------===//

constexpr int64_t mostHeads = 6, mostDim = 128, mostEntries = 64;
constexpr unsigned char pattern = 0x7B; // a finite number in every type

GuardedArray qArray(mostRows * 4 * mostDim * 4), kArray(mostRows * 2 * 128 * 4),
    vArray(mostRows * 2 * 128 * 4), cuQArray(mostEntries * 8),
    cuKArray(mostEntries * 8), usedQArray(mostEntries * 8),
    usedKArray(mostEntries * 8), sinkArray(mostHeads * 4),
    outArray(mostRows * 4 * mostDim * 4), lseArray(mostRows * mostHeads * 8),
    workspaceArray(int64_t(32) << 20);

std::vector<float> normals;
Random orderRandom;
bool workspaceIntact = true;

// What a host does that brings its own threads: here one, that takes the items
// one by one in random order.
void runItems(int64_t n, int64_t workspaceBytes, varlen_range_fn function,
              void *context) {
  std::vector<int64_t> items(n);
  for (int64_t i = 0; i < n; ++i)
    items[i] = i;
  std::shuffle(items.begin(), items.end(), orderRandom);
  char *workspace =
      workspaceArray.place(workspaceBytes, chance(orderRandom, 0.5), 64);
  std::memset(workspace, 0xFF, workspaceBytes);
  for (int64_t item : items) {
    function(context, item, item + 1, workspace);
    workspaceIntact &= workspaceArray.intact();
    // A NaN here and there, at the cost of one pass over little memory.
    if (workspaceBytes > 0)
      std::memset(workspace, 0xFF, std::min<int64_t>(workspaceBytes, 65536));
  }
}

void fill(GuardedArray &array, Random &random, Type type, int64_t rows,
          int64_t width, const std::vector<char> &inUse) {
  char *data = array.place(rows * width * bytesOf(type), chance(random, 0.7),
                           bytesOf(type));
  auto pick = static_cast<size_t>(draw(random, 0, 1000));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < width; ++i)
      store(data, type, row * width + i,
            inUse[row] ? normals[pick++ % normals.size()]
                       : std::numeric_limits<float>::quiet_NaN());
}

void fillIndices(GuardedArray &array, Random &random,
                 const std::vector<int64_t> &values, int indexBytes) {
  char *data =
      array.place(values.size() * indexBytes, chance(random, 0.7), indexBytes);
  for (size_t i = 0; i < values.size(); ++i) {
    auto narrow = static_cast<int32_t>(values[i]);
    if (indexBytes == 4)
      std::memcpy(data + i * 4, &narrow, 4);
    else
      std::memcpy(data + i * 8, &values[i], 8);
  }
}

// Which rows hold numbers, for valid cases.
std::vector<char> rowsInUse(const std::vector<int64_t> &cu,
                            const std::vector<int64_t> &used, int64_t rows,
                            int64_t poisoned) {
  std::vector<char> inUse(rows, 0);
  for (int64_t i = 0; i + 1 < static_cast<int64_t>(cu.size()); ++i) {
    int64_t end = used.empty() ? cu[i + 1] : cu[i] + used[i];
    if (i != poisoned)
      std::fill(inUse.begin() + cu[i], inUse.begin() + end, 1);
  }
  return inUse;
}

// What an attention and its gradients both take, where the arrays of a case
// are.
struct Operands {
  explicit Operands(const Case &c);
  MemRef<3> q, k, v, out;
  MemRef<2> lse;
  MemRef<1> cuQ, cuK, usedQ, usedK, sink;
};

Operands::Operands(const Case &c) {
  const Function &f = *c.function;
  auto makeList = [](const GuardedArray &array,
                     const std::vector<int64_t> &values) {
    return makeMemRef<1>(array, {static_cast<int64_t>(values.size())});
  };
  q = makeMemRef<3>(qArray, {c.tq, f.heads, f.d});
  k = makeMemRef<3>(kArray, {c.tk, f.kvHeads, f.d});
  v = makeMemRef<3>(vArray, {c.tk, f.kvHeads, f.dv});
  out = makeMemRef<3>(outArray, {c.tq, f.heads, f.dv});
  lse = makeMemRef<2>(lseArray, {f.heads, c.tq});
  cuQ = makeList(cuQArray, c.cuQ);
  cuK = makeList(cuKArray, c.cuK);
  usedQ = makeList(usedQArray, c.usedQ);
  usedK = makeList(usedKArray, c.usedK);
  sink = makeMemRef<1>(sinkArray, {f.heads});
}

void call(const Case &c) {
  const Function &f = *c.function;
  Operands o(c);
  std::vector<void *> a{&o.q, &o.k, &o.v, &o.cuQ, &o.cuK};
  if (f.seqused)
    a.insert(a.end(), {&o.usedQ, &o.usedK});
  if (f.sink)
    a.push_back(&o.sink);
  a.insert(a.end(), {&o.out, &o.lse});
  using P = void *;
  if (a.size() == 7)
    reinterpret_cast<void (*)(P, P, P, P, P, P, P)>(f.entry)(
        a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
  else if (a.size() == 8)
    reinterpret_cast<void (*)(P, P, P, P, P, P, P, P)>(f.entry)(
        a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
  else if (a.size() == 9)
    reinterpret_cast<void (*)(P, P, P, P, P, P, P, P, P)>(f.entry)(
        a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);
  else
    reinterpret_cast<void (*)(P, P, P, P, P, P, P, P, P, P)>(f.entry)(
        a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
}

// A wanted NaN stands for any value.
bool near(double got, double wanted, double tolerance) {
  if (std::isnan(wanted))
    return true;
  if (std::isinf(wanted))
    return got == wanted;
  return std::fabs(got - wanted) <= tolerance * (1 + std::fabs(wanted));
}

// Compares with plain attention in f64; empty if equal enough.
std::string compare(const Case &c) {
  const Function &f = *c.function;
  bool f64 = f.type == Type::F64;
  double tolerance = f64                    ? 1e-12
                     : f.type == Type::F32  ? 1e-5
                     : f.type == Type::BF16 ? 2e-2
                                            : 3e-3;
  // The exponential is only as precise as the type of the inputs is worth.
  double lseTolerance = f64 ? 1e-12 : f.type == Type::F32 ? 1e-5 : 3e-4;
  const double infinity = std::numeric_limits<double>::infinity();
  // The scale is an f32 in every type but f64, which has no other.
  double scale = 1 / std::sqrt(static_cast<double>(f.d));
  std::vector<double> wanted(c.tq * f.heads * f.dv, 0);
  std::vector<double> wantedLse(f.heads * c.tq, -infinity);
  std::vector<double> scores;
  for (size_t s = 0; s + 1 < c.cuQ.size(); ++s) {
    int64_t lq = f.seqused ? c.usedQ[s] : c.cuQ[s + 1] - c.cuQ[s];
    int64_t lk = f.seqused ? c.usedK[s] : c.cuK[s + 1] - c.cuK[s];
    int64_t diagonal = f.bottomRight ? lk - lq : 0;
    for (int64_t h = 0; h < f.heads; ++h) {
      int64_t kvHead = h / (f.heads / f.kvHeads);
      for (int64_t i = 0; i < lq; ++i) {
        int64_t row = c.cuQ[s] + i;
        if (static_cast<int64_t>(s) == c.poisoned) {
          const double any = std::numeric_limits<double>::quiet_NaN();
          wantedLse[h * c.tq + row] = any;
          std::fill_n(wanted.begin() + (row * f.heads + h) * f.dv, f.dv, any);
          continue;
        }
        int64_t begin =
            f.left < 0 ? 0 : std::max<int64_t>(0, i + diagonal - f.left);
        int64_t end =
            f.right < 0 ? lk : std::min(lk, i + diagonal + f.right + 1);
        double most = -infinity, sum = 0;
        if (f.sink)
          most = load(sinkArray.data, Type::F32, h);
        scores.clear();
        for (int64_t j = begin; j < end; ++j) {
          double score = 0;
          for (int64_t e = 0; e < f.d; ++e)
            score += load(qArray.data, f.type, (row * f.heads + h) * f.d + e) *
                     load(kArray.data, f.type,
                          ((c.cuK[s] + j) * f.kvHeads + kvHead) * f.d + e);
          scores.push_back(score * scale);
          most = std::max(most, scores.back());
        }
        if (most == -infinity)
          continue;
        if (f.sink)
          sum = std::exp(load(sinkArray.data, Type::F32, h) - most);
        for (double &score : scores)
          sum += score = std::exp(score - most);
        wantedLse[h * c.tq + row] = most + std::log(sum);
        for (size_t j = 0; j < scores.size(); ++j)
          for (int64_t e = 0; e < f.dv; ++e)
            wanted[(row * f.heads + h) * f.dv + e] +=
                scores[j] / sum *
                load(vArray.data, f.type,
                     ((c.cuK[s] + begin + j) * f.kvHeads + kvHead) * f.dv + e);
      }
    }
  }
  auto report = [](const char *what, size_t index, double got, double want) {
    return std::string(what) + "[" + std::to_string(index) + "]: got " +
           std::to_string(got) + ", wanted " + std::to_string(want);
  };
  for (size_t i = 0; i < wanted.size(); ++i) {
    double got = load(outArray.data, f.type, i);
    if (!near(got, wanted[i], tolerance))
      return report("out", i, got, wanted[i]);
  }
  for (size_t i = 0; i < wantedLse.size(); ++i) {
    double got = load(lseArray.data, f64 ? Type::F64 : Type::F32, i);
    if (!near(got, wantedLse[i], lseTolerance))
      return report("lse", i, got, wantedLse[i]);
  }
  return "";
}

/// Calls one function of a case by `function`; returns its error or null.
template <typename Callable>
const char *runOnce(bool ownThreads, [[maybe_unused]] Random &random,
                    Callable function) {
  workspaceIntact = true;
  varlen_clear_error();
#ifdef FUZZ_EXECUTOR
  varlen_sim_config config;
  varlen_sim_config_init(&config);
  config.max_shared_bytes = 166912;
  config.seed = random();
  config.scheduler = static_cast<int32_t>(draw(random, 0, 2));
  config.async = static_cast<int32_t>(draw(random, 0, 2));
  varlen_gpu_executor_configure(&config);
#endif
  varlen_set_parallel_for(ownThreads ? nullptr : runItems);
  function();
#ifdef FUZZ_EXECUTOR
  varlen_gpu_check(nullptr);
#endif
  return varlen_last_error();
}

#include "fuzz-gradients.h"

struct Counts {
  int64_t valid = 0, invalid = 0;
};

// Empty if the case did what it must.
std::string runCase(const Case &c, Random &random, Counts &counts) {
  const Function &f = *c.function;
  bool valid = isValid(c);
  std::vector<char> queriesInUse(c.tq, 1), keysInUse(c.tk, 1);
  if (valid) {
    queriesInUse = rowsInUse(c.cuQ, c.usedQ, c.tq, c.poisoned);
    keysInUse = rowsInUse(c.cuK, c.usedK, c.tk, c.poisoned);
  }
  fill(qArray, random, f.type, c.tq, f.heads * f.d, queriesInUse);
  fill(kArray, random, f.type, c.tk, f.kvHeads * f.d, keysInUse);
  fill(vArray, random, f.type, c.tk, f.kvHeads * f.dv, keysInUse);
  fill(sinkArray, random, Type::F32, f.heads, 1, std::vector<char>(f.heads, 1));
  fillIndices(cuQArray, random, c.cuQ, f.indexBytes);
  fillIndices(cuKArray, random, c.cuK, f.indexBytes);
  fillIndices(usedQArray, random, c.usedQ, f.indexBytes);
  fillIndices(usedKArray, random, c.usedK, f.indexBytes);
  int64_t outBytes = bytesOf(f.type);
  outArray.place(c.tq * f.heads * f.dv * outBytes, chance(random, 0.7),
                 outBytes);
  int64_t lseBytes = f.type == Type::F64 ? 8 : 4;
  lseArray.place(f.heads * c.tq * lseBytes, chance(random, 0.7), lseBytes);

  std::vector<char> firstOut, firstLse;
  for (bool ownThreads : {false, true}) {
    std::memset(outArray.data, pattern, outArray.bytes);
    std::memset(lseArray.data, pattern, lseArray.bytes);
    const char *error = runOnce(ownThreads, random, [&] { call(c); });
    for (const GuardedArray *array :
         {&qArray, &kArray, &vArray, &cuQArray, &cuKArray, &usedQArray,
          &usedKArray, &sinkArray, &outArray, &lseArray})
      if (!array->intact())
        return "wrote outside of an array";
    if (!workspaceIntact)
      return "wrote outside of the workspace";
    if (!valid) {
      ++counts.invalid;
      if (!error)
        return "wanted an error, got none";
      if (!std::strstr(error, "cu_seqlens") && !std::strstr(error, "seqused"))
        return std::string(
                   "wanted an error about cu_seqlens or seqused, got: ") +
               error;
      auto untouched = [](char byte) { return byte == pattern; };
      if (!std::all_of(outArray.data, outArray.data + outArray.bytes,
                       untouched) ||
          !std::all_of(lseArray.data, lseArray.data + lseArray.bytes,
                       untouched))
        return "wrote a result in spite of the error";
      break;
    }
    if (error)
      return std::string("wanted a result, got the error: ") + error;
    if (!ownThreads) {
      ++counts.valid;
      std::string difference = compare(c);
      if (!difference.empty())
        return difference;
      firstOut.assign(outArray.data, outArray.data + outArray.bytes);
      firstLse.assign(lseArray.data, lseArray.data + lseArray.bytes);
    } else if (std::memcmp(firstOut.data(), outArray.data, outArray.bytes) ||
               std::memcmp(firstLse.data(), lseArray.data, lseArray.bytes)) {
      return "the runtime's threads gave other bits than one item at a time";
    }
  }
  return runGradients(c, random, valid, queriesInUse);
}

// For the handler of faults, which may not build strings.
char currentCase[8192];

void printCase() {
  const char message[] = "out-of-bounds access or crash in case:\n";
  (void)!write(2, message, sizeof message - 1);
  (void)!write(2, currentCase, std::strlen(currentCase));
}

void onFault(int signal) {
  printCase();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

} // namespace

/// The address sanitizer calls this when it finds something.
extern "C" void __asan_on_error() { printCase(); }

int main(int argc, char **argv) {
  int64_t count = argc > 1 ? std::atoll(argv[1]) : 2000;
  uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    std::signal(signal, onFault);
  varlen_set_num_threads(2);
#ifdef FUZZ_EXECUTOR
  varlen_gpu_set_backend(varlen_gpu_executor());
#endif

  Random random(12345);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 65536; ++i)
    normals.push_back(normal(random));

  Counts counts;
  int64_t failed = 0;
  bool terminal = isatty(2) != 0;
  for (int64_t i = 0; i < count; ++i) {
    random.seed(seed + i);
    orderRandom.seed(seed + i);
    Case c = drawCase(random);
    std::snprintf(currentCase, sizeof currentCase, "seed %llu: %s\n",
                  static_cast<unsigned long long>(seed + i),
                  describe(c).c_str());
    std::string problem = runCase(c, random, counts);
    if (!problem.empty()) {
      ++failed;
      std::printf("FAIL %s  %s\n", currentCase, problem.c_str());
      if (failed == 20) {
        std::printf("stopped after 20 failures\n");
        break;
      }
    }
    if (terminal && i % 500 == 0)
      std::fprintf(stderr, "\r%lld of %lld cases", static_cast<long long>(i),
                   static_cast<long long>(count));
  }
  if (terminal)
    std::fprintf(stderr, "\r");
  std::printf("%lld valid and %lld broken cases, %lld failures\n",
              static_cast<long long>(counts.valid),
              static_cast<long long>(counts.invalid),
              static_cast<long long>(failed));
  return failed ? 1 : 0;
}
