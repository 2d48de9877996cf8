//===- ShardingInterfaceImpl.h - Attention on several processes -*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_IR_SHARDINGINTERFACEIMPL_H
#define VARLEN_DIALECT_VARLEN_IR_SHARDINGINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::varlen {

/// Has sharding-propagation and shard-partition divide varlen.attn and
/// varlen.attn_grad over a grid of processes, by heads and by rows of q.
void registerShardingInterfaceExternalModels(DialectRegistry &registry);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_IR_SHARDINGINTERFACEIMPL_H
