//===- mpi_for_mlir.c - OpenMPI as programs of MLIR 22 call it ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library to preload, which does for a program of MLIR's mpi dialect what
// docs/context-parallel.md names as missing upstream: it begins and ends MPI,
// has the names that MLIR gives to OpenMPI's reductions, and gives
// communicators 32-bit numbers, as MLIR keeps no more of a handle. It stands in
// front of OpenMPI by MPI's profiling interface.
//
//   mpicc -shared -fPIC mpi_for_mlir.c -o mpi_for_mlir.so
//
//===----------------------------------------------------------------------===//

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void begin(void) { PMPI_Init(NULL, NULL); }
__attribute__((destructor)) static void end(void) { PMPI_Finalize(); }

// Communicators by their numbers less one; 0 is no communicator.
static MPI_Comm *comms;
static uintptr_t numComms;

static MPI_Comm findComm(MPI_Comm comm) {
  uintptr_t number = (uintptr_t)comm;
  return number && number <= numComms ? comms[number - 1] : comm;
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *result) {
  MPI_Comm *grown = realloc(comms, (numComms + 1) * sizeof(MPI_Comm));
  if (!grown) {
    fprintf(stderr, "MPI_Comm_split: no memory for one more communicator\n");
    PMPI_Abort(MPI_COMM_WORLD, 1);
  }
  comms = grown;
  int status = PMPI_Comm_split(findComm(comm), color, key, &comms[numComms]);
  *result = (MPI_Comm)++numComms;
  return status;
}

// Only their addresses count.
char ompi_mpi_sum, ompi_mpi_prod, ompi_mpi_max, ompi_mpi_min;

static MPI_Op findOp(MPI_Op op) {
  const void *name = op;
  if (name == &ompi_mpi_sum)
    return MPI_SUM;
  if (name == &ompi_mpi_prod)
    return MPI_PROD;
  if (name == &ompi_mpi_max)
    return MPI_MAX;
  return name == &ompi_mpi_min ? MPI_MIN : op;
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type,
                  MPI_Op op, MPI_Comm comm) {
  return PMPI_Allreduce(in, out, count, type, findOp(op), findComm(comm));
}
