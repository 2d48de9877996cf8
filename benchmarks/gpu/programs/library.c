/* A launcher of libvarlen-c, which compiles the function of a file, on a
   device. argv[1] is other code for its kernels, or "-"; argv[2] the chip;
   argv[3] the file. */

#include "device.h"

static VarlenLauncher launcher;
static Tensor tensors[6];
static const VarlenTensor *addresses[6];
static void *workspace;
static size_t bytes;

static int launch(void) {
  return varlenLauncherLaunch(launcher, addresses, 6, workspace, bytes, stream);
}

static void make(int i, void *data, int code, int rank, int64_t d0, int64_t d1,
                 int64_t d2) {
  tensors[i] = makeTensor(data, code, 32, rank, d0, d1, d2);
  tensors[i].tensor.device.device_type = VARLEN_CUDA;
  addresses[i] = use(&tensors[i]);
}

int main(int argc, char **argv) {
  expect(argc == 4, "an image or -, a chip and a file");
  size_t size;
  char *image = readImage(argc, argv, &size);
  static char text[1 << 14];
  FILE *file = fopen(argv[3], "r");
  size_t length = file ? fread(text, 1, sizeof text, file) : 0;
  VarlenKernelOptions options = VARLEN_KERNEL_OPTIONS_INIT;
  options.chip = argv[2];
  options.format = VARLEN_PTX;
  EXPECT(!varlenLauncherCompile(text, length, &options, &launcher));
  if (image)
    EXPECT(!varlenLauncherSetImage(launcher, image, size));
  setUp();
  make(0, deviceQ, VARLEN_FLOAT, 3, TOKENS, HEADS, DIM);
  make(1, deviceK, VARLEN_FLOAT, 3, TOKENS, KV_HEADS, DIM);
  make(2, deviceV, VARLEN_FLOAT, 3, TOKENS, KV_HEADS, DIM);
  make(3, deviceCu, VARLEN_INT, 1, SEQUENCES + 1, 0, 0);
  make(4, deviceOut, VARLEN_FLOAT, 3, TOKENS, HEADS, DIM);
  make(5, deviceLse, VARLEN_FLOAT, 2, HEADS, TOKENS, 0);
  EXPECT(!varlenLauncherGetWorkspaceSize(launcher, addresses, 6, &bytes));
  workspace = allocate(bytes);
  EXPECT(!launch());
  EXPECT(!varlenLauncherCheck(workspace, stream));
  judge("libvarlen-c");
  if (!image)
    runInGraph(launch);
  varlenLauncherDestroy(launcher);
  return failures != 0;
}
