//===- Device.h - What a kernel in the executor calls -----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function per kind of NVVM operation. Enum values are those of the NVVM
// dialect where it has them. `site` is an index into the module's sites; a
// report names it. Where PTX has an .aligned or .sync form, all threads of the
// mask must arrive with the same site, or it is reported.
//
// Pointers are host pointers whatever their address space was. A pointer into
// shared memory lies below 4 GiB (so ptrtoint to i32 and back is the identity)
// and its low 18 bits are the address that matrix descriptors hold.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_EXECUTOR_DEVICE_H
#define VARLEN_EXECUTOR_DEVICE_H

#include <stdint.h>

// C's names and C's typedefs.
// NOLINTBEGIN(modernize-use-using,readability-*)
#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Special registers, addresses
//===----------------------------------------------------------------------===//

enum {
  VARLEN_SIM_TID_X = 0, // _Y and _Z follow each _X
  VARLEN_SIM_NTID_X = 3,
  VARLEN_SIM_CTAID_X = 6,
  VARLEN_SIM_NCTAID_X = 9,
  VARLEN_SIM_CLUSTERID_X = 12,
  VARLEN_SIM_NCLUSTERID_X = 15,
  VARLEN_SIM_CLUSTER_CTAID_X = 18,
  VARLEN_SIM_CLUSTER_NCTAID_X = 21,
  VARLEN_SIM_CLUSTER_CTARANK = 24,
  VARLEN_SIM_CLUSTER_NCTARANK = 25,
  VARLEN_SIM_LANEID = 26,
  VARLEN_SIM_WARPID = 27,
  VARLEN_SIM_NWARPID = 28,
  VARLEN_SIM_WARPSIZE = 29,
  VARLEN_SIM_LANEMASK_EQ = 30,
  VARLEN_SIM_LANEMASK_LE = 31,
  VARLEN_SIM_LANEMASK_LT = 32,
  VARLEN_SIM_LANEMASK_GE = 33,
  VARLEN_SIM_LANEMASK_GT = 34,
  VARLEN_SIM_SMID = 35,
  VARLEN_SIM_NSMID = 36,
  VARLEN_SIM_TOTAL_SMEM_SIZE = 37,
  VARLEN_SIM_DYNAMIC_SMEM_SIZE = 38,
  VARLEN_SIM_CLOCK = 39, ///< counts what the host thread has executed
};
/// Pure, except for VARLEN_SIM_CLOCK.
uint32_t varlen_sim_sreg(uint32_t which);

/// The shared memory of this CTA from `offset` on. Pure.
void *varlen_sim_smem(uint32_t offset);

/// The address in the CTA `rank` of the cluster that corresponds to an address
/// in shared memory of this CTA or another of the cluster; a rank that the
/// cluster does not have is reported.
void *varlen_sim_mapa(void *address, uint32_t rank, uint32_t site);

//===----------------------------------------------------------------------===//
// Loads and stores: one call in front of each. The access then goes through the
// pointer returned: the address itself, or a sink if the access is out of
// bounds or misaligned
//===----------------------------------------------------------------------===//

/// size: 1..64 bytes. Alignment is checked to the size, if that is a power of
/// 2, and to 16 at most. `shared` is for ptr<3> and ptr<7>, `global` for
/// ptr<1>, `generic` for ptr (it may also be a thread's own stack, which is not
/// checked). Accesses to ptr<5> and to allocas need no call.
void *varlen_sim_load_shared(void *p, uint32_t size, uint32_t site);
void *varlen_sim_store_shared(void *p, uint32_t size, uint32_t site);
void *varlen_sim_load_global(void *p, uint32_t size, uint32_t site);
void *varlen_sim_store_global(void *p, uint32_t size, uint32_t site);
void *varlen_sim_load_generic(void *p, uint32_t size, uint32_t site);
void *varlen_sim_store_generic(void *p, uint32_t size, uint32_t site);

/// Any number of bytes in any space, for memcpy and memset.
void *varlen_sim_load_range(void *p, uint64_t size, uint32_t site);
void *varlen_sim_store_range(void *p, uint64_t size, uint32_t site);

/// The same in any space of a volatile or an atomic access, to a flag by which
/// threads order others.
void *varlen_sim_load_flag(void *p, uint32_t size, uint32_t site);
void *varlen_sim_store_flag(void *p, uint32_t size, uint32_t site);

/// In front of every such load, after the call above: the thread may be
/// polling, so others get a turn.
void varlen_sim_poll(uint32_t site);
/// Behind a load of a flag that may be in global memory, and in front of a
/// store. order: VARLEN_SIM_RELAXED and so on.
void varlen_sim_acquire(void *p, uint32_t order, uint32_t site);
void varlen_sim_release(void *p, uint32_t order, uint32_t site);
/// First of all in a kernel whose CTAs order each other by flags in global
/// memory: races between CTAs are looked for there, too.
void varlen_sim_order_global(void);

//===----------------------------------------------------------------------===//
// Atomics, in global or shared memory
//===----------------------------------------------------------------------===//

enum {
  VARLEN_SIM_I32 = 0,
  VARLEN_SIM_I64 = 1,
  VARLEN_SIM_F16 = 2,
  VARLEN_SIM_BF16 = 3,
  VARLEN_SIM_F32 = 4,
  VARLEN_SIM_F64 = 5,
  VARLEN_SIM_F16X2 = 6,
  VARLEN_SIM_BF16X2 = 7,
  VARLEN_SIM_I16 = 8,
};
/// The values 0..7 are those of NVVM's TMAReduxKind.
enum {
  VARLEN_SIM_ADD = 0,
  VARLEN_SIM_MIN = 1, // signed for integers
  VARLEN_SIM_MAX = 2,
  VARLEN_SIM_INC = 3, // old >= value ? 0 : old + 1
  VARLEN_SIM_DEC = 4, // old == 0 || old > value ? value : old - 1
  VARLEN_SIM_AND = 5,
  VARLEN_SIM_OR = 6,
  VARLEN_SIM_XOR = 7,
  VARLEN_SIM_UMIN = 8,
  VARLEN_SIM_UMAX = 9,
  VARLEN_SIM_EXCH = 10,
  VARLEN_SIM_SUB = 11,
};
/// NVVM's MemOrderKind. On shared memory an acquire takes over what releases of
/// the same address published.
enum {
  VARLEN_SIM_WEAK = 0,
  VARLEN_SIM_RELAXED = 1,
  VARLEN_SIM_ACQUIRE = 2,
  VARLEN_SIM_RELEASE = 3,
  VARLEN_SIM_ACQ_REL = 4,
  VARLEN_SIM_SC = 5,
};
/// Values and results are bit patterns, zero-extended. Returns what was there.
uint64_t varlen_sim_atomic(void *p, uint32_t op, uint32_t type, uint64_t value,
                           uint32_t order, uint32_t site);
uint64_t varlen_sim_atomic_cas(void *p, uint32_t type, uint64_t compare,
                               uint64_t value, uint32_t order, uint32_t site);

//===----------------------------------------------------------------------===//
// Warp collectives
//===----------------------------------------------------------------------===//

/// kind: NVVM's ShflKind (bfly 0, up 1, down 2, idx 3).
uint32_t varlen_sim_shfl(uint32_t mask, uint32_t value, uint32_t offset,
                         uint32_t mask_and_clamp, uint32_t kind, uint32_t site);
/// The predicate of this thread's last varlen_sim_shfl: 0 or 1.
uint32_t varlen_sim_shfl_pred(void);
/// kind: any 0, all 1, ballot 2, uni 3. pred: 0 or not.
uint32_t varlen_sim_vote(uint32_t mask, uint32_t pred, uint32_t kind,
                         uint32_t site);
/// kind: NVVM's MatchSyncKind (any 0, all 1); value: 32 bits zero-extended, or
/// 64. The predicate of `all` is (result != 0).
uint32_t varlen_sim_match(uint32_t mask, uint64_t value, uint32_t kind,
                          uint32_t site);
/// kind: NVVM's ReduxKind (add 1, and 2, max 3, min 4, or 5, umax 6, umin 7,
/// xor 8, fmin 9, fmax 10).
uint32_t varlen_sim_redux(uint32_t mask, uint32_t value, uint32_t kind,
                          uint32_t site);
/// 1 in one lane of the mask, always the same of one mask, which one the seed
/// says.
uint32_t varlen_sim_elect(uint32_t mask, uint32_t site);
void varlen_sim_syncwarp(uint32_t mask, uint32_t site);

/// 8x8 tiles of 16-bit elements; num is 1, 2 or 4; `registers` holds num words.
void varlen_sim_ldmatrix(void *row, uint32_t num, uint32_t transposed,
                         void *registers, uint32_t site);
void varlen_sim_stmatrix(void *row, uint32_t num, uint32_t transposed,
                         const void *registers, uint32_t site);

typedef struct varlen_sim_matrix_load {
  uint32_t num, transposed, site;
} varlen_sim_matrix_load;
/// `count` (at least 1) such loads at once: a thread switch costs more than a
/// load, and nothing is written between them. Load i is of the row rows[i]; its
/// words start at word 4 i of `registers`.
void varlen_sim_ldmatrix_batch(void *const *rows, void *registers,
                               const varlen_sim_matrix_load *loads,
                               uint32_t count);

/// NVVM's MMATypes.
enum {
  VARLEN_SIM_MMA_F16 = 0,
  VARLEN_SIM_MMA_F32 = 1,
  VARLEN_SIM_MMA_TF32 = 2,
  VARLEN_SIM_MMA_BF16 = 9,
};
/// mma.sync.m16n8k{k}.row.col: f16 and bf16 with k 8 or 16, tf32 with k 4 or 8.
/// `operands`: the 32-bit registers of A, B and C one after the other;
/// `result`: those of D. C and D are of type `accumulator`: VARLEN_SIM_MMA_F32
/// (4 registers) or, for f16, VARLEN_SIM_MMA_F16 (2).
void varlen_sim_mma(const void *operands, void *result, uint32_t type,
                    uint32_t k, uint32_t accumulator, uint32_t site);
/// `count` (1..255) such products of one kind at once: a thread switch costs
/// more than a product, and an mma may be done as late as its result is first
/// used by something else. The registers of product i (A, B, C) follow those of
/// product i - 1, and so do its results. chain[i] is -1, or the product j < i
/// whose result is C of product i (what `operands` holds for C is then not
/// read). The site is that of the first.
void varlen_sim_mma_batch(const void *operands, void *results,
                          const int32_t *chain, uint32_t count, uint32_t type,
                          uint32_t k, uint32_t accumulator, uint32_t site);

/// nvvm.griddepcontrol wait.
void varlen_sim_grid_wait(uint32_t site);

/// nvvm.setmaxregister: increase is 0 or 1.
void varlen_sim_setmaxnreg(uint32_t count, uint32_t increase, uint32_t site);

//===----------------------------------------------------------------------===//
// Barriers of the CTA and of the cluster
//===----------------------------------------------------------------------===//

/// threads: 0 is all of the CTA.
void varlen_sim_barrier(uint32_t id, uint32_t threads, uint32_t site);
/// op: NVVM's BarrierReduction (popc 0, and 1, or 2).
uint32_t varlen_sim_barrier_reduce(uint32_t id, uint32_t threads, uint32_t op,
                                   uint32_t pred, uint32_t site);
void varlen_sim_barrier_arrive(uint32_t id, uint32_t threads, uint32_t site);

void varlen_sim_cluster_arrive(uint32_t relaxed, uint32_t site);
void varlen_sim_cluster_wait(uint32_t site);

//===----------------------------------------------------------------------===//
// mbarriers. Those that arrive may name an mbarrier of another CTA of the
// cluster
//===----------------------------------------------------------------------===//

void varlen_sim_mbarrier_init(void *p, uint32_t count, uint32_t site);
void varlen_sim_mbarrier_inval(void *p, uint32_t site);
/// The state: a token for varlen_sim_mbarrier_test_wait.
uint64_t varlen_sim_mbarrier_arrive(void *p, uint32_t count, uint32_t site);
uint64_t varlen_sim_mbarrier_arrive_nocomplete(void *p, uint32_t count,
                                               uint32_t site);
uint64_t varlen_sim_mbarrier_arrive_drop(void *p, uint32_t count,
                                         uint32_t site);
/// expect_tx, then arrive with count 1.
uint64_t varlen_sim_mbarrier_arrive_expect_tx(void *p, uint32_t bytes,
                                              uint32_t site);
uint64_t varlen_sim_mbarrier_arrive_drop_expect_tx(void *p, uint32_t bytes,
                                                   uint32_t site);
void varlen_sim_mbarrier_expect_tx(void *p, uint32_t bytes, uint32_t site);
void varlen_sim_mbarrier_complete_tx(void *p, uint32_t bytes, uint32_t site);

/// nvvm.mbarrier.try_wait.parity, which loops: returns when the phase is over.
void varlen_sim_mbarrier_wait_parity(void *p, uint32_t parity, uint32_t site);
/// 1 if the phase is over. try_wait may wait; both may say 0 too often, as the
/// hardware may.
uint32_t varlen_sim_mbarrier_test_wait(void *p, uint64_t state, uint32_t site);
uint32_t varlen_sim_mbarrier_try_wait(void *p, uint64_t state, uint32_t site);
uint32_t varlen_sim_mbarrier_test_wait_parity(void *p, uint32_t parity,
                                              uint32_t site);
uint32_t varlen_sim_mbarrier_try_wait_parity(void *p, uint32_t parity,
                                             uint32_t site);

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

/// size: 4, 8 or 16; source_size: bytes that are read, the rest is zeros.
void varlen_sim_cp_async(void *dst, const void *src, uint32_t size,
                         uint32_t source_size, uint32_t site);
void varlen_sim_cp_async_commit(uint32_t site);
/// Until at most `pending` groups are left.
void varlen_sim_cp_async_wait_group(uint32_t pending, uint32_t site);
void varlen_sim_cp_async_wait_all(uint32_t site);
/// Arrives on p when the cp.async of this thread so far are done. noinc: 0
/// or 1.
void varlen_sim_cp_async_mbarrier_arrive(void *p, uint32_t noinc,
                                         uint32_t site);

/// cp.async.bulk. Global to shared; multicast: the mask of the cluster's CTAs,
/// 0 for none.
void varlen_sim_bulk_load(void *dst, const void *src, void *mbarrier,
                          uint32_t bytes, uint32_t multicast, uint32_t site);
/// Shared of this CTA to shared of one of the cluster.
void varlen_sim_bulk_copy_cluster(void *dst, const void *src, void *mbarrier,
                                  uint32_t bytes, uint32_t site);
/// Shared to global, in the thread's bulk group.
void varlen_sim_bulk_store(void *dst, const void *src, uint32_t bytes,
                           uint32_t site);
/// cp.async.bulk.tensor in tile mode, ranks 1..5; coordinates: `rank` int32_t,
/// the innermost first. The smem destination and the mbarrier belong to this
/// CTA or, with multicast, to each CTA of the mask at the same offsets.
void varlen_sim_tma_load(void *dst, const void *map, void *mbarrier,
                         uint32_t rank, const void *coordinates,
                         uint32_t multicast, uint32_t site);
void varlen_sim_tma_store(const void *map, const void *src, uint32_t rank,
                          const void *coordinates, uint32_t site);
void varlen_sim_tma_reduce(const void *map, const void *src, uint32_t rank,
                           const void *coordinates, uint32_t op, uint32_t site);
/// Only checks that the pointer is a tensor map.
void varlen_sim_tma_prefetch(const void *map, uint32_t site);
/// Fields of tensormap.replace.tile: VARLEN_SIM_MAP_BOX_DIM to _ELEMENT_STRIDE
/// have one value for each dimension.
enum {
  VARLEN_SIM_MAP_GLOBAL_ADDRESS = 0,
  VARLEN_SIM_MAP_RANK = 1, ///< less 1
  VARLEN_SIM_MAP_BOX_DIM = 2,
  VARLEN_SIM_MAP_GLOBAL_DIM = 3,
  VARLEN_SIM_MAP_GLOBAL_STRIDE = 4, ///< in bytes
  VARLEN_SIM_MAP_ELEMENT_STRIDE = 5,
  VARLEN_SIM_MAP_ELEMTYPE = 6, ///< as PTX counts them, other than the driver
  VARLEN_SIM_MAP_INTERLEAVE_LAYOUT = 7,
  VARLEN_SIM_MAP_SWIZZLE_MODE = 8,
  VARLEN_SIM_MAP_FILL_MODE = 9,
};
/// Of 128 bytes of shared memory, zeros or fields that are set already.
void varlen_sim_tensormap_replace(void *map, uint32_t field, uint32_t dimension,
                                  uint64_t value, uint32_t site);
/// tensormap.cp_fenceproxy, by all lanes of a warp: a map from shared memory to
/// global memory, from where copies read it behind the fence below.
void varlen_sim_tensormap_cp_fenceproxy(void *dst, const void *src,
                                        uint32_t site);
/// fence.proxy.tensormap::generic.acquire of the map at an address.
void varlen_sim_tensormap_acquire(const void *map, uint32_t site);
void varlen_sim_bulk_commit(uint32_t site);
/// read: 1 waits for the reads of shared memory only.
void varlen_sim_bulk_wait_group(uint32_t pending, uint32_t read, uint32_t site);

//===----------------------------------------------------------------------===//
// Fences
//===----------------------------------------------------------------------===//

/// kind: NVVM's ProxyKind (alias 0, async 1, async.global 2, async.shared 3,
/// tensormap 4, generic 5).
void varlen_sim_fence_proxy(uint32_t kind, uint32_t site);
void varlen_sim_fence_mbarrier_init(uint32_t site);
/// membar, fence.sc, fence.acq_rel. scope: NVVM's MemScopeKind.
void varlen_sim_fence(uint32_t scope, uint32_t site);

//===----------------------------------------------------------------------===//
// wgmma. The registers of an accumulator are a handle: the SSA values of struct
// type that wgmma ops take and give (with their insertvalue and block argument
// webs) become pointers. So a register read before wait_group is seen where it
// is read
//===----------------------------------------------------------------------===//

typedef struct varlen_sim_acc varlen_sim_acc;

enum {
  VARLEN_SIM_WGMMA_BF16 = 1 << 0, ///< inputs are bf16, else f16
  VARLEN_SIM_WGMMA_TF32 = 1 << 1, ///< inputs are tf32 (k is 8)
  VARLEN_SIM_WGMMA_A_MN = 1 << 2, ///< A is M-major (trans-a)
  VARLEN_SIM_WGMMA_B_MN = 1 << 3, ///< B is N-major (trans-b)
  VARLEN_SIM_WGMMA_NEG_A = 1 << 4,
  VARLEN_SIM_WGMMA_NEG_B = 1 << 5,
  /// The accumulator's SSA value has no other use: registers are reused.
  VARLEN_SIM_WGMMA_IN_PLACE = 1 << 6,
};
/// An accumulator of `registers` f32, zero.
varlen_sim_acc *varlen_sim_acc_new(uint32_t registers, uint32_t site);
/// in_place: 1 if `acc` has no other use; the result is then `acc`.
varlen_sim_acc *varlen_sim_acc_set(varlen_sim_acc *acc, uint32_t index,
                                   float value, uint32_t in_place,
                                   uint32_t site);
float varlen_sim_acc_get(varlen_sim_acc *acc, uint32_t index, uint32_t site);
/// wgmma.mma_async.m64n{n}k{16 or 8}, f32 accumulator of n / 2 registers.
/// scale_d 0: D = A * B.
varlen_sim_acc *varlen_sim_wgmma(varlen_sim_acc *acc, uint64_t desc_a,
                                 uint64_t desc_b, uint32_t n, uint32_t scale_d,
                                 uint32_t flags, uint32_t site);
/// With A in registers.
varlen_sim_acc *varlen_sim_wgmma_rs(varlen_sim_acc *acc, uint32_t a0,
                                    uint32_t a1, uint32_t a2, uint32_t a3,
                                    uint64_t desc_b, uint32_t n,
                                    uint32_t scale_d, uint32_t flags,
                                    uint32_t site);
void varlen_sim_wgmma_fence(uint32_t site);
void varlen_sim_wgmma_commit(uint32_t site);
void varlen_sim_wgmma_wait_group(uint32_t pending, uint32_t site);

//===----------------------------------------------------------------------===//
// Arithmetic that has no LLVM counterpart. Pure
//===----------------------------------------------------------------------===//

float varlen_sim_ex2(float x);
float varlen_sim_lg2(float x);
float varlen_sim_rcp(float x);
float varlen_sim_rsqrt(float x);
float varlen_sim_tanh(float x);
/// cvt.rn.{bf16x2,f16x2}.f32 d, high, low.
uint32_t varlen_sim_cvt_bf16x2(float high, float low);
uint32_t varlen_sim_cvt_f16x2(float high, float low);
/// cvt.rna.tf32.f32.
uint32_t varlen_sim_cvt_tf32(float x);
uint32_t varlen_sim_prmt(uint32_t a, uint32_t b, uint32_t selector);

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

/// Ends the calling thread; does not return.
void varlen_sim_exit(uint32_t site);
/// Reports a trap and ends the calling thread; does not return.
void varlen_sim_trap(uint32_t site);
/// The same for an assertion that does not hold.
void varlen_sim_assertfail(const char *message, uint32_t site);
void varlen_sim_nanosleep(uint32_t nanoseconds, uint32_t site);

#ifdef __cplusplus
}
#endif
// NOLINTEND(modernize-use-using,readability-*)

#endif // VARLEN_EXECUTOR_DEVICE_H
