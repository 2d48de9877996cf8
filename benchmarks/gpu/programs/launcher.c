/* The C launcher that `varlen-opt --emit=c-launcher` makes, on a device: it
   needs the CUDA driver alone. */

#include "attention.h"
#include "device.h"

static attention_kernels kernels;
static varlen_f32_3 tensorQ, tensorK, tensorV, tensorOut;
static varlen_i32_1 tensorCu;
static varlen_f32_2 tensorLse;
static void *workspace;
static uint64_t bytes;

static int launch(void) {
  return attention_launch(&kernels, &tensorQ, &tensorK, &tensorV, &tensorCu,
                          &tensorOut, &tensorLse, workspace, bytes, stream);
}

int main(int argc, char **argv) {
  size_t size;
  char *image = readImage(argc, argv, &size);
  setUp();
  tensorQ = make_varlen_f32_3(deviceQ, TOKENS, HEADS, DIM);
  tensorK = make_varlen_f32_3(deviceK, TOKENS, KV_HEADS, DIM);
  tensorV = make_varlen_f32_3(deviceV, TOKENS, KV_HEADS, DIM);
  tensorCu = make_varlen_i32_1(deviceCu, SEQUENCES + 1);
  tensorOut = make_varlen_f32_3(deviceOut, TOKENS, HEADS, DIM);
  tensorLse = make_varlen_f32_2(deviceLse, HEADS, TOKENS);
  varlen_launch_status status;
  expect(!attention_load(&kernels, image) &&
             !attention_workspace_size(&kernels, &tensorQ, &tensorK, &tensorV,
                                       &tensorCu, &tensorOut, &tensorLse,
                                       &bytes),
         "kernels that can be loaded");
  workspace = allocate(bytes);
  expect(!launch() && !attention_check(workspace, stream, &status),
         "a launch without an error");
  judge("C launcher");
  if (!image)
    runInGraph(launch);
  return attention_unload(&kernels);
}
