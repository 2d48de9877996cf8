/*===- narrow-floats.c - f16 and bf16 by their definition
-------------------===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* A format has `fraction` bits of fraction and an exponent biased by `bias`.
|* Rounding is checked by distance: the result is the nearest number, the even
|* one of two.
|*
\*===----------------------------------------------------------------------===*/

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes[1], strides[1];
} memref1;
typedef void conversion(memref1 *, memref1 *, memref1 *, memref1 *);
conversion _mlir_ciface_f16, _mlir_ciface_bf16;

enum { ALL = 1 << 16, SOME = 1 << 20 };
static uint16_t bits[ALL], rounded[SOME];
static float numbers[SOME], extended[ALL];

static double value(uint16_t x, int fraction, int bias) {
  int exponent = (x & 0x7fff) >> fraction, mantissa = x & ((1 << fraction) - 1);
  double magnitude =
      exponent ? ldexp((1 << fraction) + mantissa, exponent - bias - fraction)
               : ldexp(mantissa, 1 - bias - fraction);
  if (exponent == 0x7fff >> fraction)
    magnitude = mantissa ? NAN : INFINITY;
  return x & 0x8000 ? -magnitude : magnitude;
}

/* As if there were no largest number, so that half way to infinity rounds up.
 */
static double unbounded(uint16_t x, int fraction, int bias) {
  int exponent = (x & 0x7fff) >> fraction;
  if (exponent == 0x7fff >> fraction)
    return ldexp(1, exponent - bias);
  return fabs(value(x, fraction, bias));
}

static int isRight(float from, uint16_t to, int fraction, int bias) {
  if (isnan(from))
    return isnan(value(to, fraction, bias));
  if (signbit(from) != (to >> 15) || isnan(value(to, fraction, bias)))
    return 0;
  uint16_t infinity = (0x7fff >> fraction) << fraction, magnitude = to & 0x7fff;
  double x = fabs(from), half;
  if (magnitude < infinity) {
    half = (unbounded(magnitude + 1, fraction, bias) -
            unbounded(magnitude, fraction, bias)) /
           2;
    double above = x - unbounded(magnitude, fraction, bias);
    if (above > half || (above == half && (magnitude & 1)))
      return 0;
  }
  if (magnitude > 0) {
    half = (unbounded(magnitude, fraction, bias) -
            unbounded(magnitude - 1, fraction, bias)) /
           2;
    double below = unbounded(magnitude, fraction, bias) - x;
    if (below > half || (below == half && (magnitude & 1)))
      return 0;
  }
  return 1;
}

static void check(const char *name, conversion *convert, int fraction,
                  int bias) {
  memref1 b = {bits, bits, 0, {ALL}, {1}},
          n = {numbers, numbers, 0, {SOME}, {1}};
  memref1 e = {extended, extended, 0, {ALL}, {1}},
          r = {rounded, rounded, 0, {SOME}, {1}};
  convert(&b, &n, &e, &r);
  int badlyExtended = 0, badlyRounded = 0;
  for (int i = 0; i < ALL; ++i) {
    double want = value(bits[i], fraction, bias);
    badlyExtended += isnan(want) ? !isnan(extended[i])
                                 : want != extended[i] ||
                                       signbit(want) != signbit(extended[i]);
  }
  for (int i = 0; i < SOME; ++i)
    badlyRounded += !isRight(numbers[i], rounded[i], fraction, bias);
  printf("%s: %d of %d extended wrongly, %d of %d rounded wrongly\n", name,
         badlyExtended, ALL, badlyRounded, SOME);
}

int main(void) {
  for (int i = 0; i < ALL; ++i)
    bits[i] = i;
  /* All leading halves of an f32, with trailing halves around every tie. */
  static const uint16_t tails[16] = {
      0,      1,      0x7fff, 0x8000, 0x8001, 0xffff, 0x0fff, 0x1000,
      0x1001, 0x2fff, 0x3000, 0x3001, 0xefff, 0xf000, 0xf001, 0x5555};
  for (uint32_t i = 0; i < SOME; ++i) {
    uint32_t x = (i >> 4) << 16 | tails[i & 15];
    memcpy(&numbers[i], &x, 4);
  }
  check("f16", _mlir_ciface_f16, 10, 15);
  check("bf16", _mlir_ciface_bf16, 7, 127);
  return 0;
}
