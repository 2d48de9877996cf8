//===- ScheduleRoles.cpp - The roles that a schedule runs -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which loops over tiles compute an attention, in their order, and with which
// sizes. RoleEmitter emits each of them.
//
//===----------------------------------------------------------------------===//

#include "GPULimits.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// CPUs
//===----------------------------------------------------------------------===//

/// Rows of a tile of statistics.
static constexpr int64_t kStatisticsRows = 1024;

SmallVector<Role> CPUScheduleAttr::getRoles(Operation *operation) const {
  auto op = cast<AttentionOpInterface>(operation);
  FloatType factor =
      getKv() == KVStorage::Pairs ? op.getElementType() : op.getComputeType();
  auto shape = [&](int64_t rows, int64_t columnMultiple) -> RoleShape {
    return {rows, getKvBlock(), Orientation::KQ, columnMultiple, factor};
  };
  if (!op.isGradient())
    return {{RoleKind::Out, shape(getBlockM(), 1), *this}};
  RoleShape statistics = {kStatisticsRows, /*block=*/0, Orientation::QK,
                          /*columnMultiple=*/1, factor};
  return {{RoleKind::Statistics, statistics, *this},
          {RoleKind::SequenceGrad, shape(getPanelSize(), getLanes()), *this}};
}

//===----------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------===//

/// Rows and columns of tiles are whole multiples of this for tensor cores.
static constexpr int64_t kFragment = 16;

static RoleShape getQueryShape(AttentionOpInterface op,
                               GPUScheduleAttr schedule) {
  return {schedule.getBlockM(),
          schedule.getKvBlock(),
          Orientation::QK,
          kFragment,
          op.getElementType(),
          schedule.getRescaleThreshold(),
          schedule.getScoresFirst() != 0};
}

static RoleShape getKeyShape(AttentionOpInterface op,
                             GPUScheduleAttr schedule) {
  return {schedule.getKvBlock(),  schedule.getBlockM(),
          Orientation::KQ,        kFragment,
          op.getElementType(),
          /*rescaleThreshold=*/0, schedule.getScoresFirst() != 0};
}

SmallVector<Role> GPUScheduleAttr::getRoles(Operation *op) const {
  return {{RoleKind::Out, getQueryShape(cast<AttentionOpInterface>(op), *this),
           *this}};
}

/// Statistics wait for memory: as many warps as there can be, each with the
/// fewest rows. The tiles are those of dq, which share their list.
static GPUScheduleAttr getStatisticsSchedule(GPUScheduleAttr dq) {
  int64_t warps = dq.getBlockM() / kFragment;
  if (warps > kMaxWarps)
    return dq;
  GPUTiles tiles = dq.getTiles();
  tiles.warps = warps;
  tiles.ctas = std::min(kMaxCTAs, kMultiprocessorWarps / warps);
  // There are no blocks to copy.
  tiles.producers = tiles.maps = 0;
  return GPUScheduleAttr::get(dq.getContext(), tiles);
}

SmallVector<Role> GPUGradScheduleAttr::getRoles(Operation *operation) const {
  auto op = cast<AttentionOpInterface>(operation);
  RoleShape ofQueries = getQueryShape(op, getDq());
  if (GPUScheduleAttr dk = getDk(); dk.getFiveProducts()) {
    ofQueries.clearsDq = true;
    return {{RoleKind::Statistics, ofQueries, getStatisticsSchedule(getDq())},
            {RoleKind::InOrderGrad, getKeyShape(op, dk), dk}};
  }
  SmallVector<Role> roles = {
      {RoleKind::Statistics, ofQueries, getStatisticsSchedule(getDq())},
      {RoleKind::QueryGrad, ofQueries, getDq()}};
  auto add = [&](RoleKind kind, GPUScheduleAttr schedule) {
    roles.push_back({kind, getKeyShape(op, schedule), schedule});
  };
  add(getDv() ? RoleKind::KeyGrad : RoleKind::KeyValueGrad, getDk());
  if (getDv())
    add(RoleKind::ValueGrad, getDv());
  return roles;
}
