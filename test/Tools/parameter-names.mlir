// Parameters of functions in headers have the names of the source, where C can have them.

// RUN: varlen-opt %s --emit=obj --header=%t.h -o %t.o
// RUN: FileCheck %s --check-prefix=HEADER < %t.h
// RUN: varlen-opt %s --emit=c-launcher --image=ptx --header=%t.launcher.h -o %t.c
// RUN: FileCheck %s --check-prefix=LAUNCHER < %t.launcher.h
// RUN: clang-22 -std=c99 -pedantic -Wall -Wextra -Werror -c %t.c -o %t.launcher.o
// RUN: clang-22 -std=c++17 -x c++ -fsyntax-only -Wall -Wextra -Werror %t.launcher.h -Wno-pragma-once-outside-header -Wno-unused-function

// A macro may have a name in upper case; "int" is a word; "f" is the function; arg0 would
// be the name of another one; then a name that C cannot have, none, one twice, and the result.
// HEADER: void _mlir_ciface_f(varlen_f32_1 *x, varlen_f32_1 *arg1, varlen_f32_1 *arg2, varlen_f32_1 *arg3, varlen_f32_1 *arg4, varlen_f32_1 *arg5, varlen_f32_1 *arg6, varlen_f32_1 *size, varlen_f32_1 *arg8, varlen_f32_1 *out_1);
// HEADER: static inline const char *f(varlen_f32_1 *x, varlen_f32_1 *arg1,
// HEADER: _mlir_ciface_f(x, arg1, arg2, arg3, arg4, arg5, arg6, size, arg8, out_1);

// LAUNCHER: x : memref<{{.*}}xf32>
// LAUNCHER-NEXT: arg1 : memref<{{.*}}xf32>, I
// LAUNCHER-NEXT: arg2 : memref<{{.*}}xf32>, int
// LAUNCHER: int f_workspace_size(const f_kernels *kernels, const varlen_f32_1 *x, const varlen_f32_1 *arg1, {{.*}}const varlen_f32_1 *f, {{.*}}const varlen_f32_1 *arg7, const varlen_f32_1 *arg8, const varlen_f32_1 *out_1, uint64_t *size);
func.func @f(%x: tensor<?xf32> {varlen.name = "x"}, %I: tensor<?xf32> {varlen.name = "I"},
             %int: tensor<?xf32> {varlen.name = "int"}, %f: tensor<?xf32> {varlen.name = "f"},
             %arg0: tensor<?xf32> {varlen.name = "arg0"}, %a: tensor<?xf32> {varlen.name = "a-b"},
             %b: tensor<?xf32>, %size: tensor<?xf32> {varlen.name = "size"},
             %y: tensor<?xf32> {varlen.name = "x"})
    -> (tensor<?xf32> {varlen.name = "out_1"}) {
  %0 = arith.addf %x, %I : tensor<?xf32>
  %1 = arith.addf %0, %int : tensor<?xf32>
  %2 = arith.addf %1, %f : tensor<?xf32>
  %3 = arith.addf %2, %arg0 : tensor<?xf32>
  %4 = arith.addf %3, %a : tensor<?xf32>
  %5 = arith.addf %4, %b : tensor<?xf32>
  %6 = arith.addf %5, %size : tensor<?xf32>
  %7 = arith.addf %6, %y : tensor<?xf32>
  return %7 : tensor<?xf32>
}
