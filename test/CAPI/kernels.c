/* Code for a GPU, as bytes, and its manifest.

   RUN: rm -rf %t && mkdir %t
   RUN: %cc %s -o %t/kernels %capi
   RUN: %t/kernels %t | FileCheck %s
   CHECK: .version 9.0
   CHECK: .target sm_80
   CHECK: .entry attention_attn(
   CHECK: "chip": "sm_80",
   CHECK: "format": "ptx",
   CHECK: "element": "bf16",
   CHECK: 5 kernels with the parameters of the manifest
   CHECK: error: {{.*}}expected a name that C can have

   They are those of varlen-opt.
   RUN: varlen-opt %t/source.mlir --emit=ptx -o %t/opt.ptx \
   RUN:   --manifest=%t/opt.json
   RUN: cmp %t/c.ptx %t/opt.ptx
   RUN: cmp %t/c.json %t/opt.json
*/

#include "varlen-c/Varlen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "func.func @attention(%q: tensor<?x4x64xbf16>, %cu: tensor<?xi32>)\n"
    "    -> (tensor<?x4x64xbf16>, tensor<4x?xf32>) {\n"
    "  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu : (tensor<?x4x64xbf16>,\n"
    "      tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>,\n"
    "      tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)\n"
    "  return %out, %lse : tensor<?x4x64xbf16>, tensor<4x?xf32>\n"
    "}\n";

/* How often a character is between two places. */
static int count(const char *begin, const char *end, char c) {
  int found = 0;
  for (; begin < end; ++begin)
    found += *begin == c;
  return found;
}

/* Kernels of the manifest that the PTX has, with as many parameters. A
   parameter is on a line of its own there. */
static int compare(const char *manifest, const char *ptx) {
  static const char name[] = "\"name\": \"attention_";
  int found = 0;
  for (const char *at = strstr(manifest, name); at; at = strstr(at + 1, name)) {
    char entry[64];
    if (sscanf(at, "\"name\": \"%55[a-z_]", entry + 7) != 1)
      continue;
    memcpy(entry, ".entry ", 7);
    strcat(entry, "(");
    const char *bits = strstr(at, "\"parameter_bits\": [");
    const char *code = strstr(ptx, entry);
    found += bits && code &&
             count(bits, strchr(bits, ']'), ',') ==
                 count(code, strchr(code, ')'), ',');
  }
  return found;
}

static void write(const char *folder, const char *name, const void *data,
                  size_t size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file))
    exit(1);
}

int main(int argc, char **argv) {
  VarlenCode code;
  if (argc != 2)
    return 1;
  VarlenKernelOptions options = VARLEN_KERNEL_OPTIONS_INIT;
  options.format = VARLEN_PTX;
  if (varlenCompileKernels(source, strlen(source), &options, &code)) {
    fprintf(stderr, "%s\n", varlenGetLastError());
    return 1;
  }
  const char *manifest = varlenCodeGetManifest(code);
  write(argv[1], "source.mlir", source, strlen(source));
  write(argv[1], "c.ptx", varlenCodeGetData(code), varlenCodeGetSize(code));
  write(argv[1], "c.json", manifest, strlen(manifest));
  char *ptx = calloc(varlenCodeGetSize(code) + 1, 1);
  memcpy(ptx, varlenCodeGetData(code), varlenCodeGetSize(code));
  printf("%s\n%s", ptx, manifest);
  printf("%d kernels with the parameters of the manifest\n",
         compare(manifest, ptx));
  free(ptx);
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
