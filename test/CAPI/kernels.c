/* Code for a GPU, as bytes.

   RUN: %cc %s -o %t %capi
   RUN: %t | FileCheck %s
   CHECK: .version 9.0
   CHECK: .target sm_80
   CHECK: .entry attention_
   CHECK: error: {{.*}}expected a name that C can have
*/

#include "varlen-c/Varlen.h"

#include <stdio.h>
#include <string.h>

static const char source[] =
    "func.func @attention(%q: tensor<?x4x64xbf16>, %cu: tensor<?xi32>)\n"
    "    -> (tensor<?x4x64xbf16>, tensor<4x?xf32>) {\n"
    "  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu : (tensor<?x4x64xbf16>,\n"
    "      tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>,\n"
    "      tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)\n"
    "  return %out, %lse : tensor<?x4x64xbf16>, tensor<4x?xf32>\n"
    "}\n";

int main(void) {
  VarlenCode code;
  VarlenKernelOptions options = VARLEN_KERNEL_OPTIONS_INIT;
  options.format = VARLEN_PTX;
  if (varlenCompileKernels(source, strlen(source), &options, &code)) {
    fprintf(stderr, "%s\n", varlenGetLastError());
    return 1;
  }
  fwrite(varlenCodeGetData(code), 1, varlenCodeGetSize(code), stdout);
  varlenCodeDestroy(code);

  /* A function with a name that PTX has not. */
  char other[sizeof source];
  memcpy(other, source, sizeof source);
  memcpy(strstr(other, "@attention"), "@\"attn-n\" ", 10);
  if (varlenCompileKernels(other, strlen(other), &options, &code) !=
      VARLEN_COMPILE_ERROR)
    return 1;
  printf("\nerror: %s\n", varlenGetLastError());
  return 0;
}
