//===- Symbols.cpp - The functions of Device.h by name --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Executor/Executor.h"

#define SYMBOL(name) {#name, reinterpret_cast<void *>(name)}

static const varlen_sim_symbol symbols[] = {
    SYMBOL(varlen_sim_acc_get),
    SYMBOL(varlen_sim_acc_new),
    SYMBOL(varlen_sim_acc_set),
    SYMBOL(varlen_sim_barrier),
    SYMBOL(varlen_sim_barrier_arrive),
    SYMBOL(varlen_sim_barrier_reduce),
    SYMBOL(varlen_sim_cluster_arrive),
    SYMBOL(varlen_sim_cluster_wait),
    SYMBOL(varlen_sim_cp_async),
    SYMBOL(varlen_sim_cp_async_commit),
    SYMBOL(varlen_sim_cp_async_mbarrier_arrive),
    SYMBOL(varlen_sim_cp_async_wait_all),
    SYMBOL(varlen_sim_cp_async_wait_group),
    SYMBOL(varlen_sim_cvt_bf16x2),
    SYMBOL(varlen_sim_cvt_f16x2),
    SYMBOL(varlen_sim_cvt_tf32),
    SYMBOL(varlen_sim_elect),
    SYMBOL(varlen_sim_ex2),
    SYMBOL(varlen_sim_exit),
    SYMBOL(varlen_sim_fence),
    SYMBOL(varlen_sim_fence_mbarrier_init),
    SYMBOL(varlen_sim_fence_proxy),
    SYMBOL(varlen_sim_ldmatrix),
    SYMBOL(varlen_sim_lg2),
    SYMBOL(varlen_sim_load_generic),
    SYMBOL(varlen_sim_load_global),
    SYMBOL(varlen_sim_load_range),
    SYMBOL(varlen_sim_load_shared),
    SYMBOL(varlen_sim_mapa),
    SYMBOL(varlen_sim_match),
    SYMBOL(varlen_sim_mbarrier_arrive),
    SYMBOL(varlen_sim_mbarrier_arrive_drop),
    SYMBOL(varlen_sim_mbarrier_arrive_drop_expect_tx),
    SYMBOL(varlen_sim_mbarrier_arrive_expect_tx),
    SYMBOL(varlen_sim_mbarrier_arrive_nocomplete),
    SYMBOL(varlen_sim_mbarrier_complete_tx),
    SYMBOL(varlen_sim_mbarrier_expect_tx),
    SYMBOL(varlen_sim_mbarrier_init),
    SYMBOL(varlen_sim_mbarrier_inval),
    SYMBOL(varlen_sim_mbarrier_test_wait),
    SYMBOL(varlen_sim_mbarrier_test_wait_parity),
    SYMBOL(varlen_sim_mbarrier_try_wait),
    SYMBOL(varlen_sim_mbarrier_try_wait_parity),
    SYMBOL(varlen_sim_mbarrier_wait_parity),
    SYMBOL(varlen_sim_mma),
    SYMBOL(varlen_sim_nanosleep),
    SYMBOL(varlen_sim_poll),
    SYMBOL(varlen_sim_prmt),
    SYMBOL(varlen_sim_rcp),
    SYMBOL(varlen_sim_redux),
    SYMBOL(varlen_sim_rsqrt),
    SYMBOL(varlen_sim_setmaxnreg),
    SYMBOL(varlen_sim_shfl),
    SYMBOL(varlen_sim_shfl_pred),
    SYMBOL(varlen_sim_smem),
    SYMBOL(varlen_sim_sreg),
    SYMBOL(varlen_sim_stmatrix),
    SYMBOL(varlen_sim_store_generic),
    SYMBOL(varlen_sim_store_global),
    SYMBOL(varlen_sim_store_range),
    SYMBOL(varlen_sim_store_shared),
    SYMBOL(varlen_sim_syncwarp),
    SYMBOL(varlen_sim_tanh),
    SYMBOL(varlen_sim_trap),
    SYMBOL(varlen_sim_vote),
    SYMBOL(varlen_sim_wgmma),
    SYMBOL(varlen_sim_wgmma_commit),
    SYMBOL(varlen_sim_wgmma_fence),
    SYMBOL(varlen_sim_wgmma_rs),
    SYMBOL(varlen_sim_wgmma_wait_group),
};

const varlen_sim_symbol *varlen_sim_symbols(uint32_t *count) {
  *count = sizeof(symbols) / sizeof(symbols[0]);
  return symbols;
}
