/* Compiles a function and calls it, on tensors of this program. */

#include "varlen-c/Varlen.h"

#include <stdio.h>
#include <string.h>

static const char source[] =
    "func.func @triangle(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
    "  %c0 = arith.constant 0 : index\n"
    "  %n = tensor.dim %x, %c0 : tensor<?xf32>\n"
    "  %empty = tensor.empty(%n) : tensor<?xf32>\n"
    "  %half = arith.constant 0.5 : f32\n"
    "  %y = linalg.generic {\n"
    "      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],\n"
    "      iterator_types = [\"parallel\"]}\n"
    "      ins(%x : tensor<?xf32>) outs(%empty : tensor<?xf32>) {\n"
    "  ^bb0(%in: f32, %out: f32):\n"
    "    %square = arith.mulf %in, %in : f32\n"
    "    %sum = arith.addf %square, %in : f32\n"
    "    %r = arith.mulf %sum, %half : f32\n"
    "    linalg.yield %r : f32\n"
    "  } -> tensor<?xf32>\n"
    "  return %y : tensor<?xf32>\n"
    "}\n";

int main(void) {
  float x[] = {0, 1, 2, 3}, y[4];
  int64_t shape[] = {4};
  VarlenTensor input = {
      x, {VARLEN_CPU, 0}, 1, {VARLEN_FLOAT, 32, 1}, shape, NULL, 0};
  VarlenTensor output = input;
  output.data = y;
  const VarlenTensor *arguments[] = {&input}, *results[] = {&output};
  VarlenProgram program;
  VarlenFunction function;
  if (varlenCompile(source, strlen(source), NULL, &program) ||
      varlenProgramGetFunction(program, "triangle", &function) ||
      varlenFunctionCall(function, arguments, 1, results, 1, NULL)) {
    fprintf(stderr, "%s\n", varlenGetLastError());
    return 1;
  }
  printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
  varlenProgramDestroy(program);
  return 0;
}
