/*===- call-functions.c - Calls compiled functions on tensors of a file ---===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* call-functions IN OUT. IN is a sequence of 64-bit integers and of elements:
|* for each function its number, that of its arguments, and, of its result and
of
|* each argument, the bytes of an element, the rank and the extents; of
arguments
|* the elements, too. OUT gets the elements of results. cross.py writes and
reads
|* them.
|*
\*===----------------------------------------------------------------------===*/

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_RANK = 4, MAX_ARGUMENTS = 3 };

/* A memref of any rank: the extents, then as many strides. */
typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes_and_strides[2 * MAX_RANK];
} Memref;

typedef struct {
  int64_t bytes, rank, extents[MAX_RANK];
} Shape;

static int64_t read_integer(FILE *in) {
  int64_t value;
  if (fread(&value, sizeof value, 1, in) != 1) {
    fprintf(stderr, "expected another integer, got the end of the file\n");
    exit(1);
  }
  return value;
}

static Shape read_shape(FILE *in) {
  Shape shape;
  shape.bytes = read_integer(in);
  shape.rank = read_integer(in);
  if (shape.rank > MAX_RANK) {
    fprintf(stderr, "expected a rank of at most %d, got %d\n", MAX_RANK,
            (int)shape.rank);
    exit(1);
  }
  for (int64_t i = 0; i < shape.rank; ++i)
    shape.extents[i] = read_integer(in);
  return shape;
}

static size_t count(const Shape *shape) {
  size_t elements = 1;
  for (int64_t i = 0; i < shape->rank; ++i)
    elements *= (size_t)shape->extents[i];
  return elements;
}

static Memref read_argument(FILE *in) {
  Shape shape = read_shape(in);
  size_t elements = count(&shape), bytes = (size_t)shape.bytes;
  Memref memref = {0};
  memref.allocated = memref.aligned = malloc(elements * bytes + 1);
  int64_t stride = 1;
  for (int64_t i = shape.rank; i-- > 0;) {
    memref.sizes_and_strides[i] = shape.extents[i];
    memref.sizes_and_strides[shape.rank + i] = stride;
    stride *= shape.extents[i];
  }
  if (fread(memref.aligned, bytes, elements, in) != elements) {
    fprintf(stderr, "expected %zu elements of %zu bytes\n", elements, bytes);
    exit(1);
  }
  return memref;
}

int main(int argc, char **argv) {
  FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL;
  FILE *out = argc == 3 ? fopen(argv[2], "wb") : NULL;
  if (!in || !out) {
    fprintf(stderr, "usage: call-functions IN OUT\n");
    return 1;
  }
  int64_t functions = read_integer(in);
  for (int64_t number = 0; number < functions; ++number) {
    char name[64];
    snprintf(name, sizeof name, "_mlir_ciface_f%d", (int)number);
    void *function = dlsym(RTLD_DEFAULT, name);
    int64_t arguments = read_integer(in);
    if (!function || arguments > MAX_ARGUMENTS) {
      fprintf(stderr, "expected a function %s of at most %d arguments\n", name,
              MAX_ARGUMENTS);
      return 1;
    }
    Shape of_result = read_shape(in);
    Memref result, given[MAX_ARGUMENTS];
    for (int64_t i = 0; i < arguments; ++i)
      given[i] = read_argument(in);
    /* What is there beyond a function's arguments it does not look at. */
    void (*call)(Memref *, Memref *, Memref *, Memref *);
    *(void **)&call = function;
    call(&result, &given[0], &given[1], &given[2]);
    if (!result.aligned ||
        fwrite(result.aligned, (size_t)of_result.bytes, count(&of_result),
               out) != count(&of_result)) {
      fprintf(stderr, "expected a result of %s, and to write it\n", name);
      return 1;
    }
  }
  return fclose(out) != 0;
}
