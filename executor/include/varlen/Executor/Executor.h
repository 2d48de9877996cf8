//===- Executor.h - NVVM kernels on the CPU, adversarially ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host side of the executor: memory, tensor maps, kernels, launches and
// what a launch found. Device.h has the calls that compiled kernels make.
//
// A kernel is host code in which every NVVM operation has become a call of
// Device.h. The executor runs its threads as fibers, asynchronous work as late
// as is legal (or as early, or at random), and reports what no GPU reports:
// races and missing proxy fences on shared memory, races between CTAs that
// order each other by flags in global memory, accesses out of bounds,
// lanes that disagree in a warp collective, deadlocks with who waits where.
// Everything follows from one seed: with one host thread a launch replays
// exactly.
//
// Not modelled: timing, rounding inside tensor cores, values that weak ordering
// of global memory leaves behind.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_EXECUTOR_EXECUTOR_H
#define VARLEN_EXECUTOR_EXECUTOR_H

#include "varlen/Executor/Device.h"

#include <stddef.h>
#include <stdint.h>

// C's names and C's typedefs.
// NOLINTBEGIN(modernize-use-using,readability-*)
#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Device memory: every access of a kernel to global memory must lie in one
// block that is registered when the kernel is launched
//===----------------------------------------------------------------------===//

/// Memory aligned to 256 bytes, filled with 0xff (NaN in every float type), and
/// registered; null if there is none. Must be given back to varlen_sim_free.
void *varlen_sim_malloc(size_t bytes);
void varlen_sim_free(void *memory);

/// Lets kernels access memory that the caller owns. Blocks must not overlap.
void varlen_sim_register(const void *memory, size_t bytes);
void varlen_sim_unregister(const void *memory);

/// Whether [memory, memory + bytes) lies in one registered block.
int32_t varlen_sim_is_registered(const void *memory, size_t bytes);

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// The size and alignment of CUtensorMap.
typedef struct varlen_sim_tensor_map {
#ifdef __cplusplus
  alignas(64)
#else
  _Alignas(64)
#endif
      uint64_t opaque[16];
} varlen_sim_tensor_map;

/// cuTensorMapEncodeTiled with its argument list and the values of its enums:
/// checks what the driver documents and packs the map for the executor.
/// Returns 0, or 1 (CUDA_ERROR_INVALID_VALUE) with
/// varlen_sim_tensor_map_error() saying what was wanted and what was got.
int32_t varlen_sim_tensor_map_encode_tiled(
    varlen_sim_tensor_map *map, int32_t data_type, uint32_t rank,
    void *global_address, const uint64_t *global_dim,
    const uint64_t *global_strides, const uint32_t *box_dim,
    const uint32_t *element_strides, int32_t interleave, int32_t swizzle,
    int32_t l2_promotion, int32_t oob_fill);

/// Why the last call on this host thread failed.
const char *varlen_sim_tensor_map_error(void);

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

typedef struct varlen_sim_module varlen_sim_module;
typedef struct varlen_sim_kernel varlen_sim_kernel;

typedef struct varlen_sim_kernel_info {
  const char *name;
  /// Takes the kernel's arguments packed as LLVM's ExecutionEngine does: one
  /// pointer to each argument's value.
  void (*entry)(void **arguments);
  /// Shared memory that the kernel declares. Dynamic shared memory starts here
  /// (varlen_sim_smem(static_shared_bytes)), so the compiler rounds it up to
  /// the alignment of its dynamic array.
  uint32_t static_shared_bytes;
  /// What the kernel demands of a launch: 0 where it demands nothing.
  uint32_t required_block[3];
  uint32_t max_threads;
  uint32_t required_cluster[3];
  /// Registers per thread at launch (nvvm.maxnreg), 0 if unknown: setmaxnreg is
  /// then checked against what fits into 64 Ki registers.
  uint32_t registers;
  /// 1: it may run beside the kernels before it (a programmatic launch), whose
  /// results are there behind nvvm.griddepcontrol wait. A thread that accesses
  /// global memory before it has waited, or ends without, is reported.
  uint32_t waits_for_grids;
} varlen_sim_kernel_info;

/// `sites[i]` describes site i: "file:line:col (op)". The strings are copied.
varlen_sim_module *varlen_sim_module_create(const char *const *sites,
                                            uint32_t num_sites);
void varlen_sim_module_destroy(varlen_sim_module *module);
varlen_sim_kernel *
varlen_sim_module_add_kernel(varlen_sim_module *module,
                             const varlen_sim_kernel_info *info);
/// Null if the module has no such kernel.
varlen_sim_kernel *varlen_sim_module_get_kernel(varlen_sim_module *module,
                                                const char *name);

/// The functions of Device.h, for a JIT's symbol table.
typedef struct varlen_sim_symbol {
  const char *name;
  void *address;
} varlen_sim_symbol;
const varlen_sim_symbol *varlen_sim_symbols(uint32_t *count);

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Which warp runs next when one may or must give way.
enum {
  VARLEN_SIM_ROUND_ROBIN = 0, ///< in order, lanes in order; no preemption
  VARLEN_SIM_RANDOM = 1,      ///< at random, lanes too; preempted at random
  VARLEN_SIM_PRIORITY = 2,    ///< random priorities that change now and then
};

/// When asynchronous work (cp.async, bulk copies, wgmma) is done.
enum {
  VARLEN_SIM_EARLY = 0,       ///< when it is issued
  VARLEN_SIM_LATE = 1,        ///< when a thread must wait for it
  VARLEN_SIM_RANDOM_TIME = 2, ///< at random in between
};

/// Of what a thread has for its stack by default, and what frames of a kernel's
/// functions may have of that; memory that no frame reaches is not taken.
enum {
  VARLEN_SIM_STACK_BYTES = 1 << 20,
  VARLEN_SIM_FRAME_BYTES = VARLEN_SIM_STACK_BYTES / 4 * 3 - (1 << 16),
};

typedef struct varlen_sim_config {
  uint64_t seed;
  int32_t scheduler;
  int32_t async;
  /// Whether to detect races and missing proxy fences on shared memory.
  int32_t detector;
  /// Host threads; 0 is 1. The order of global atomics depends on more than 1.
  uint32_t host_threads;
  /// CTAs in flight together on one host thread, for kernels whose CTAs wait
  /// for each other through global memory; 0 is all of them, and then only one
  /// host thread is used.
  uint32_t co_resident_ctas;
  uint32_t max_reports;
  /// The shared memory a CTA may have, static and dynamic: 166912 on sm_80,
  /// 232448 on sm_90a. 0 is 232448.
  uint32_t max_shared_bytes;
  /// Stack of one thread, a quarter of it guard; 0 is VARLEN_SIM_STACK_BYTES.
  uint32_t stack_bytes;
  /// Record a timeline of the CTA with this linear index; -1: none.
  int64_t trace_cta;
} varlen_sim_config;

/// seed 1, random scheduler, late, detector on, one host thread, one CTA at a
/// time, 20 reports, no trace.
void varlen_sim_config_init(varlen_sim_config *config);

typedef struct varlen_sim_launch_params {
  /// In CTAs; a multiple of `cluster` in every dimension.
  uint32_t grid[3];
  uint32_t block[3];
  /// 0 is 1.
  uint32_t cluster[3];
  uint32_t dynamic_shared_bytes;
  void **arguments;
} varlen_sim_launch_params;

typedef struct varlen_sim_report {
  /// "race", "proxy", "uninitialised", "out-of-bounds", "collective", ...
  const char *kind;
  /// The site's description, "?" if the report has none.
  const char *site;
  /// The whole line: "kind at site: what happened [cta x,y,z thread t]".
  const char *text;
} varlen_sim_report;

typedef struct varlen_sim_stats {
  uint64_t switches;
  uint64_t collectives;
  uint64_t mma;
  uint64_t wgmma;
  uint64_t tma;
  uint64_t cp_async;
  uint64_t barriers;
  uint64_t accesses;
  /// 8-row phases of ldmatrix and stmatrix and the extra cycles that bank
  /// conflicts cost them.
  uint64_t matrix_phases;
  uint64_t matrix_conflicts;
  /// Loads and stores of shared memory by whole warps (the lanes' accesses at
  /// one site, in order), the cycles they need at least, and what bank
  /// conflicts add.
  uint64_t shared_accesses;
  uint64_t shared_phases;
  uint64_t shared_conflicts;
} varlen_sim_stats;

/// Bank conflicts of one site.
typedef struct varlen_sim_conflict {
  const char *site;
  uint64_t phases;
  uint64_t conflicts;
} varlen_sim_conflict;

/// What a launch found. Reports are given once per kind and site.
typedef struct varlen_sim_result varlen_sim_result;

/// Runs the kernel to its end, or to a deadlock. Never null; a launch that the
/// kernel or the device cannot have is a report of kind "launch".
varlen_sim_result *varlen_sim_launch(const varlen_sim_kernel *kernel,
                                     const varlen_sim_launch_params *params,
                                     const varlen_sim_config *config);
void varlen_sim_result_destroy(varlen_sim_result *result);
uint32_t varlen_sim_result_num_reports(const varlen_sim_result *result);
varlen_sim_report varlen_sim_result_report(const varlen_sim_result *result,
                                           uint32_t index);
/// Every thread that was left waited for something that cannot happen.
int32_t varlen_sim_result_deadlock(const varlen_sim_result *result);
const varlen_sim_stats *
varlen_sim_result_stats(const varlen_sim_result *result);
/// The sites with bank conflicts, the worst first.
uint32_t varlen_sim_result_num_conflicts(const varlen_sim_result *result);
varlen_sim_conflict varlen_sim_result_conflict(const varlen_sim_result *result,
                                               uint32_t index);

/// Writes the timeline of config.trace_cta as Chrome trace JSON (Perfetto reads
/// it): a track per warp with what it does and what it waits for, a track for
/// the copies. Time is a nominal cost per operation, not a prediction; order
/// and waiting are those of the program. Returns 0, or -1 with errno set;
/// EINVAL if nothing was recorded.
int32_t varlen_sim_result_write_trace(const varlen_sim_result *result,
                                      const char *path);

#ifdef __cplusplus
}
#endif
// NOLINTEND(modernize-use-using,readability-*)

#endif // VARLEN_EXECUTOR_EXECUTOR_H
