/* What a launcher refuses, and the size of its workspace: without a driver.
   test/JAX/cuda-handler.py runs its launches.

   RUN: %cc %s -I %S/Inputs -o %t %capi -lm
   RUN: %t
*/

#include "Test.h"

static const char two[] = "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
                          "  return %x : tensor<?xf32>\n"
                          "}\n"
                          "func.func @g(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
                          "  return %x : tensor<?xf32>\n"
                          "}\n";

static const char named[] =
    "func.func @\"a-b\"(%q: tensor<?x4x64xf32>, %cu: tensor<?xi32>)\n"
    "    -> (tensor<?x4x64xf32>, tensor<4x?xf32>) {\n"
    "  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu : (tensor<?x4x64xf32>,\n"
    "      tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?xi32>,\n"
    "      tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)\n"
    "  return %out, %lse : tensor<?x4x64xf32>, tensor<4x?xf32>\n"
    "}\n";

static VarlenStatus compileFor(const char *source, const char *chip,
                               VarlenLauncher *launcher) {
  VarlenKernelOptions options = VARLEN_KERNEL_OPTIONS_INIT;
  options.format = VARLEN_PTX;
  options.chip = chip;
  return varlenLauncherCompile(source, strlen(source), &options, launcher);
}

static void checkCompilation(void) {
  VarlenLauncher launcher = {0};
  EXPECT_ERROR(varlenLauncherCompile(NULL, 0, NULL, &launcher),
               VARLEN_INVALID_ARGUMENT, "expected a source");
  EXPECT_ERROR(compileFor("func.func", NULL, &launcher), VARLEN_PARSE_ERROR,
               "expected");
  EXPECT_ERROR(compileFor(ATTENTION, "sm_1", &launcher), VARLEN_COMPILE_ERROR,
               "expected chip to be one of sm_80, ");
  EXPECT_ERROR(compileFor(two, NULL, &launcher), VARLEN_INVALID_ARGUMENT,
               "expected a module with one public function, got 2");
  /* PTX has no such name. */
  EXPECT_ERROR(compileFor(named, NULL, &launcher), VARLEN_COMPILE_ERROR,
               "expected a name that C can have");
  EXPECT(!launcher.ptr);
  EXPECT_ERROR(varlenLauncherSetImage(launcher, two, 1),
               VARLEN_INVALID_ARGUMENT, "expected a launcher");
  EXPECT_ERROR(varlenLauncherLoad(launcher, NULL), VARLEN_INVALID_ARGUMENT,
               "expected a launcher");
  EXPECT_ERROR(varlenLauncherCheck(NULL, NULL), VARLEN_INVALID_ARGUMENT,
               "expected a workspace");
  varlenLauncherDestroy(launcher);
}

static size_t getSize(VarlenLauncher launcher, int64_t rows,
                      int64_t sequences) {
  Tensor q = makeTensor(NULL, VARLEN_FLOAT, 32, 3, rows, 4, 64);
  Tensor k = makeTensor(NULL, VARLEN_FLOAT, 32, 3, rows, 2, 64), v = k;
  Tensor cu = makeTensor(NULL, VARLEN_INT, 32, 1, sequences + 1, 0, 0);
  Tensor out = q;
  Tensor lse = makeTensor(NULL, VARLEN_FLOAT, 32, 2, 4, rows, 0);
  Tensor *all[] = {&q, &k, &v, &cu, &out, &lse};
  const VarlenTensor *tensors[6];
  for (int i = 0; i < 6; ++i) {
    all[i]->tensor.device.device_type = VARLEN_CUDA;
    tensors[i] = use(all[i]);
  }
  size_t size = 0;
  EXPECT(varlenLauncherGetWorkspaceSize(launcher, tensors, 6, &size) ==
         VARLEN_OK);
  if (rows > 1)
    return size;

  /* Tensors that no launch can have. */
  char data[256];
  EXPECT_ERROR(varlenLauncherGetWorkspaceSize(launcher, tensors, 5, &size),
               VARLEN_INVALID_ARGUMENT, "expected 6 arguments, got 5");
  k.shape[1] = 4;
  EXPECT_ERROR(varlenLauncherGetWorkspaceSize(launcher, tensors, 6, &size),
               VARLEN_INVALID_ARGUMENT, "k: expected extent 1 to be 2, got 4");
  k.shape[1] = 2;
  k.tensor.device.device_type = VARLEN_CPU;
  EXPECT_ERROR(varlenLauncherGetWorkspaceSize(launcher, tensors, 6, &size),
               VARLEN_INVALID_ARGUMENT,
               "k: expected a tensor in memory of a CUDA device, got device "
               "type 1");
  k.tensor.device.device_type = VARLEN_CUDA;
  EXPECT_ERROR(
      varlenLauncherLaunch(launcher, tensors, 6, data, sizeof data, NULL),
      VARLEN_INVALID_ARGUMENT, "q: expected data, got null");
  /* Nothing reads these addresses: the workspace is refused before. */
  for (int i = 0; i < 6; ++i)
    all[i]->tensor.data = (void *)(uintptr_t)4096;
  EXPECT_ERROR(varlenLauncherLaunch(launcher, tensors, 6, data, 1, NULL),
               VARLEN_WORKSPACE_TOO_SMALL, "expected a workspace of ");
  EXPECT_ERROR(varlenLauncherLaunch(launcher, tensors, 6, NULL, 0, NULL),
               VARLEN_INVALID_ARGUMENT, "expected a launcher and a workspace");
  v.tensor.data = (void *)(uintptr_t)4104;
  EXPECT_ERROR(varlenLauncherLaunch(launcher, tensors, 6, data, 1, NULL),
               VARLEN_INVALID_ARGUMENT,
               "v: expected data that begins at a multiple of 16 bytes");
  return size;
}

int main(void) {
  checkCompilation();
  VarlenLauncher launcher = {0};
  EXPECT(compileFor(ATTENTION, "sm_90", &launcher) == VARLEN_OK);
  if (!launcher.ptr)
    return 1;
  /* It grows with rows and with sequences, and has a status at least. */
  size_t least = getSize(launcher, 1, 1);
  size_t rows = getSize(launcher, 100000, 1);
  size_t sequences = getSize(launcher, 100000, 5000);
  EXPECT(least >= 256 && least % 256 == 0);
  EXPECT(rows > least && sequences > rows);
  varlenLauncherDestroy(launcher);
  return failures != 0;
}
