/* Launches from C, on the strict fake of the CUDA driver: numbers, a graph of
   ten launches, several devices and contexts, eight threads, and what a driver
   refuses. The kernels are PTX, so the driver knows their parameters and can
   capture launches; when they are done, those of the executor run.

   REQUIRES: package
   RUN: rm -rf %t && mkdir %t
   RUN: cat %S/Inputs/attention.mlir %S/Inputs/gradients.mlir \
   RUN:   %S/Inputs/update.mlir > %t/all.mlir
   RUN: varlen-opt %t/all.mlir -o %t/kernels.mlir \
   RUN:   -varlen-add-result-arguments \
   RUN:   -varlen-to-nvvm='format=sim bare-pointers'
   RUN: mlir-translate --mlir-to-llvmir %t/kernels.mlir -o %t/kernels.ll
   RUN: clang-22 -O0 -c -Wno-override-module %t/kernels.ll -o %t/kernels.o
   RUN: sed -n %t/kernels.mlir \
   RUN:   -e 's,.*\(varlen-executor:[[:alnum:]_.]*\).*,#define IMAGE "\1",p' \
   RUN:   > %t/image.h
   RUN: %cc %s %t/kernels.o -o %t/launches -I %t -I %S/Inputs \
   RUN:   -I %S/../Runtime/Inputs/FakeCUDA -I %varlen-src/executor/include \
   RUN:   -rdynamic %capi \
   RUN:   -L %varlen-build/lib/fake-cuda -lVarlenGPUExecutor \
   RUN:   -lVarlenExecutor -lVarlenMGPU -lVarlenGPURuntime -lVarlenRuntime \
   RUN:   -lstdc++ -lm -l:libcuda.so.1
   RUN: env LD_LIBRARY_PATH=%varlen-build/lib/fake-cuda %t/launches \
   RUN:   %S/Inputs/attention.mlir %S/Inputs/gradients.mlir \
   RUN:   %S/Inputs/update.mlir %t/all.mlir
*/

#define _POSIX_C_SOURCE 200809L /* barriers */

#include "GPU.h"
#include "Reference.h"
#include "image.h"

enum { TOKENS = 38, SEQUENCES = 3, LAYERS = 10, THREADS = 8, DEVICES = 2 };
enum { Q_SIZE = TOKENS * HEADS * DIM, K_SIZE = TOKENS * KV_HEADS * DIM };
static const int32_t cuSeqlens[SEQUENCES + 1] = {0, 5, 5, TOKENS};

/* Inputs, and what is wanted of them. */
static struct {
  float q[Q_SIZE], k[K_SIZE], v[K_SIZE], out[Q_SIZE], lse[HEADS * TOKENS];
  float dout[Q_SIZE], dq[Q_SIZE], dk[K_SIZE], dv[K_SIZE];
} host;

static VarlenCode kernels; /* of all functions */
static VarlenLauncher attention, gradients, update;

static void fillRandom(float *values, int size) {
  static uint32_t state = 1;
  for (int i = 0; i < size; ++i) {
    state = state * 1664525 + 1013904223;
    values[i] = (float)(state >> 8) / (1 << 23) - 1;
  }
}

/*===----------------------------------------------------------------------===*\
|* Tensors of a device
\*===----------------------------------------------------------------------===*/

static Tensor makeOnDevice(const void *data, int code, int rank, int64_t d0,
                           int64_t d1, int64_t d2, CUstream stream) {
  Tensor result = makeTensor(NULL, code, 32, rank, d0, d1, d2);
  size_t bytes = 4;
  for (int d = 0; d < rank; ++d)
    bytes *= (size_t)result.shape[d];
  result.tensor.device.device_type = VARLEN_CUDA;
  result.tensor.data = allocate(bytes);
  if (data)
    copy(result.tensor.data, data, bytes, stream);
  return result;
}

/* Whether memory of the device has `factor` times these values. */
static int has(const Tensor *tensor, const float *wanted, int size,
               float factor, CUstream stream) {
  static _Thread_local float got[Q_SIZE];
  copy(got, tensor->tensor.data, (size_t)size * sizeof *got, stream);
  for (int i = 0; i < size; ++i)
    if (!(fabsf(got[i] - factor * wanted[i]) < 2e-5f * factor))
      return 0;
  return 1;
}

static int isNaN(const Tensor *tensor, int size, CUstream stream) {
  static float got[Q_SIZE];
  copy(got, tensor->tensor.data, (size_t)size * sizeof *got, stream);
  for (int i = 0; i < size; ++i)
    if (!isnan(got[i]))
      return 0;
  return 1;
}

/* An attention in the current context, in a stream of its own. */
typedef struct Attention {
  CUstream stream;
  Tensor q, k, v, cu, out, lse;
  float factor; /* of v, and so of out */
  void *workspace;
  size_t bytes;
} Attention;

static VarlenStatus measure(Attention *a) {
  const VarlenTensor *tensors[] = {use(&a->q),  use(&a->k),   use(&a->v),
                                   use(&a->cu), use(&a->out), use(&a->lse)};
  return varlenLauncherGetWorkspaceSize(attention, tensors, 6, &a->bytes);
}

static VarlenStatus launch(Attention *a) {
  const VarlenTensor *tensors[] = {use(&a->q),  use(&a->k),   use(&a->v),
                                   use(&a->cu), use(&a->out), use(&a->lse)};
  return varlenLauncherLaunch(attention, tensors, 6, a->workspace, a->bytes,
                              a->stream);
}

static void init(Attention *a, float factor) {
  float v[K_SIZE];
  for (int i = 0; i < K_SIZE; ++i)
    v[i] = factor * host.v[i];
  a->factor = factor;
  EXPECT(!cuStreamCreate(&a->stream, CU_STREAM_NON_BLOCKING));
  CUstream s = a->stream;
  a->q = makeOnDevice(host.q, VARLEN_FLOAT, 3, TOKENS, HEADS, DIM, s);
  a->k = makeOnDevice(host.k, VARLEN_FLOAT, 3, TOKENS, KV_HEADS, DIM, s);
  a->v = makeOnDevice(v, VARLEN_FLOAT, 3, TOKENS, KV_HEADS, DIM, s);
  a->cu = makeOnDevice(cuSeqlens, VARLEN_INT, 1, SEQUENCES + 1, 0, 0, s);
  a->out = makeOnDevice(NULL, VARLEN_FLOAT, 3, TOKENS, HEADS, DIM, s);
  a->lse = makeOnDevice(NULL, VARLEN_FLOAT, 2, HEADS, TOKENS, 0, s);
  EXPECT(!measure(a));
  a->workspace = allocate(a->bytes);
}

/* What was allocated before in this place is not there any more. */
static void destroy(Attention *a) {
  const Tensor *all[] = {&a->q, &a->k, &a->v, &a->cu, &a->out, &a->lse};
  for (int i = 0; i < 6; ++i)
    release(all[i]->tensor.data);
  release(a->workspace);
}

static int isRightOnDevice(const Attention *a) {
  return has(&a->out, host.out, Q_SIZE, a->factor, a->stream) &&
         has(&a->lse, host.lse, HEADS * TOKENS, 1, a->stream);
}

static CUcontext enterDevice(int device) {
  CUcontext context = NULL;
  EXPECT(!cuDevicePrimaryCtxRetain(&context, device));
  EXPECT(!cuCtxSetCurrent(context));
  return context;
}

/*===----------------------------------------------------------------------===*\
|* Compilation
\*===----------------------------------------------------------------------===*/

static VarlenLauncher compileFile(const char *path, VarlenCode *code) {
  static char text[1 << 14];
  FILE *file = fopen(path, "r");
  size_t size = file ? fread(text, 1, sizeof text, file) : 0;
  if (file)
    fclose(file);
  VarlenKernelOptions options = VARLEN_KERNEL_OPTIONS_INIT;
  options.format = VARLEN_PTX;
  VarlenLauncher launcher = {NULL};
  if (code)
    EXPECT(!varlenCompileKernels(text, size, &options, code));
  else
    EXPECT(!varlenLauncherCompile(text, size, &options, &launcher));
  return launcher;
}

/* As a cache on disk gives it. */
static VarlenLauncher serializeAndBack(VarlenLauncher launcher) {
  VarlenCode code = {NULL};
  VarlenLauncher again = {NULL};
  EXPECT(!varlenLauncherSerialize(launcher, &code));
  EXPECT(!varlenLauncherDeserialize(varlenCodeGetData(code),
                                    varlenCodeGetSize(code), &again));
  varlenCodeDestroy(code);
  varlenLauncherDestroy(launcher);
  return again;
}

static VarlenStatus setImage(VarlenLauncher launcher) {
  return varlenLauncherSetImage(launcher, varlenCodeGetData(kernels),
                                varlenCodeGetSize(kernels));
}

static void setUp(char **paths) {
  attention = serializeAndBack(compileFile(paths[0], NULL));
  gradients = compileFile(paths[1], NULL);
  update = serializeAndBack(compileFile(paths[2], NULL));
  compileFile(paths[3], &kernels);
  char *ptx = calloc(varlenCodeGetSize(kernels) + 1, 1);
  memcpy(ptx, varlenCodeGetData(kernels), varlenCodeGetSize(kernels));
  EXPECT(setKernels(ptx, IMAGE) > 1);
  free(ptx);
  fillRandom(host.q, Q_SIZE);
  fillRandom(host.k, K_SIZE);
  fillRandom(host.v, K_SIZE);
  fillRandom(host.dout, Q_SIZE);
  attend(host.q, host.k, host.v, cuSeqlens, SEQUENCES, host.out, host.lse);
  differentiate(host.dout, host.q, host.k, host.v, host.out, host.lse,
                cuSeqlens, SEQUENCES, host.dq, host.dk, host.dv);
}

/*===----------------------------------------------------------------------===*\
|* Tests
\*===----------------------------------------------------------------------===*/

/* Eight threads load and launch one launcher, on two devices; none waits for
   another. It is loaded once for each. */
static pthread_barrier_t together;

static void *workInThread(void *index) {
  int number = (int)(intptr_t)index;
  CUcontext own = enterDevice(number % DEVICES), current = NULL;
  Attention a;
  init(&a, (float)(number + 1));
  pthread_barrier_wait(&together);
  /* Before the first of them has loaded the kernels, or too late. */
  VarlenStatus status = setImage(attention);
  EXPECT(!status || (status == VARLEN_INVALID_ARGUMENT &&
                     strstr(varlenGetLastError(), "before the kernels are")));
  for (int i = 0; i < 2; ++i) {
    EXPECT(!launch(&a));
    EXPECT(!varlenLauncherCheck(a.workspace, a.stream));
    EXPECT(isRightOnDevice(&a));
  }
  EXPECT(!cuCtxGetCurrent(&current) && current == own);
  destroy(&a);
  return NULL;
}

static void testThreads(void) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&together, NULL, THREADS);
  for (intptr_t i = 0; i < THREADS; ++i)
    EXPECT(!pthread_create(&threads[i], NULL, workInThread, (void *)i));
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&together);
  EXPECT(fakeCudaCount().modules == DEVICES);
}

static void testImage(void) {
  VarlenLauncher none = {NULL};
  EXPECT_ERROR(setImage(none), VARLEN_INVALID_ARGUMENT, "expected a launcher");
  EXPECT_ERROR(varlenLauncherSetImage(gradients, IMAGE, 0),
               VARLEN_INVALID_ARGUMENT, "expected an image, got 0 bytes");
  EXPECT_ERROR(setImage(attention), VARLEN_INVALID_ARGUMENT,
               "expected an image before the kernels are loaded, got one when "
               "they are in 2 contexts");
}

/* With code that was compiled apart from the launcher. */
static void testGradients(void) {
  Attention a;
  init(&a, 1);
  CUstream s = a.stream;
  EXPECT(!launch(&a));
  Tensor dout = makeOnDevice(host.dout, VARLEN_FLOAT, 3, TOKENS, HEADS, DIM, s);
  Tensor dq = makeOnDevice(NULL, VARLEN_FLOAT, 3, TOKENS, HEADS, DIM, s);
  Tensor dk = makeOnDevice(NULL, VARLEN_FLOAT, 3, TOKENS, KV_HEADS, DIM, s);
  Tensor dv = makeOnDevice(NULL, VARLEN_FLOAT, 3, TOKENS, KV_HEADS, DIM, s);
  const VarlenTensor *tensors[] = {
      use(&dout),  use(&a.q),  use(&a.k), use(&a.v), use(&a.out),
      use(&a.lse), use(&a.cu), use(&dq),  use(&dk),  use(&dv)};
  size_t bytes = 0;
  EXPECT(!setImage(gradients));
  EXPECT(!varlenLauncherGetWorkspaceSize(gradients, tensors, 10, &bytes));
  void *workspace = allocate(bytes);
  EXPECT(!varlenLauncherLaunch(gradients, tensors, 10, workspace, bytes, s));
  EXPECT(!varlenLauncherCheck(workspace, s));
  EXPECT(has(&dq, host.dq, Q_SIZE, 1, s));
  EXPECT(has(&dk, host.dk, K_SIZE, 1, s));
  EXPECT(has(&dv, host.dv, K_SIZE, 1, s));
  destroy(&a);
}

/* Kernels find wrong cu_seqlens: nothing is written then. */
static void testBadData(void) {
  static const int32_t wrong[SEQUENCES + 1] = {0, 29, 9, TOKENS};
  Attention a;
  init(&a, 1);
  copy(a.cu.tensor.data, wrong, sizeof wrong, a.stream);
  EXPECT(!launch(&a));
  EXPECT_ERROR(varlenLauncherCheck(a.workspace, a.stream), VARLEN_BAD_DATA,
               "cu_seqlens_q[2] = 9 is smaller than cu_seqlens_q[1] = 29");
  EXPECT(isNaN(&a.out, Q_SIZE, a.stream));
  copy(a.cu.tensor.data, cuSeqlens, sizeof cuSeqlens, a.stream);
  EXPECT(!launch(&a) && !varlenLauncherCheck(a.workspace, a.stream));
  EXPECT(isRightOnDevice(&a));
  destroy(&a);
}

/* Work that a test has put into the default stream. */
static int inDefaultStream;

/* The same for a host that waits for nothing: the next launch, and a poll, tell
   of it once; each context has a record of its own. */
static void testPoll(void) {
  static const int32_t wrong[SEQUENCES + 1] = {0, 29, 9, TOKENS};
  static const char words[] =
      "an earlier launch: cu_seqlens_q[2] = 9 is smaller than";
  CUcontext own = enterDevice(1), current = NULL;
  Attention a;
  init(&a, 1);
  const VarlenTensor *tensors[] = {use(&a.q),  use(&a.k),   use(&a.v),
                                   use(&a.cu), use(&a.out), use(&a.lse)};
  for (int i = 0; i < 6; ++i)
    ((VarlenTensor *)tensors[i])->device.device_id = 1;
  copy(a.cu.tensor.data, wrong, sizeof wrong, a.stream);
  EXPECT(!varlenLauncherPoll(1));
  EXPECT(!varlenLauncherEnqueue(attention, tensors, 6, a.workspace, a.bytes,
                                a.stream));
  EXPECT(isNaN(&a.out, Q_SIZE, a.stream)); /* waits */
  EXPECT(!varlenLauncherPoll(0));
  EXPECT_ERROR(varlenLauncherEnqueue(attention, tensors, 6, a.workspace,
                                     a.bytes, a.stream),
               VARLEN_BAD_DATA, words);
  EXPECT(!varlenLauncherEnqueue(attention, tensors, 6, a.workspace, a.bytes,
                                a.stream));
  EXPECT(!cuStreamSynchronize(a.stream));
  /* From a thread that works on another device. */
  enterDevice(0);
  EXPECT_ERROR(varlenLauncherPoll(1), VARLEN_BAD_DATA, words);
  EXPECT(!varlenLauncherPoll(1));
  EXPECT_ERROR(varlenLauncherPoll(-1), VARLEN_INVALID_ARGUMENT,
               "expected the number of a CUDA device, got -1");
  EXPECT_ERROR(varlenLauncherPoll(DEVICES), VARLEN_DEVICE_ERROR, "no GPU 2");
  EXPECT(!cuCtxSetCurrent(own));

  /* The default stream is that of the tensors' device, whatever is current. */
  copy(a.cu.tensor.data, cuSeqlens, sizeof cuSeqlens, a.stream);
  CUcontext other = enterDevice(0);
  int before = fakeCudaCount().defaultStream;
  EXPECT(!varlenLauncherEnqueue(attention, tensors, 6, a.workspace, a.bytes,
                                NULL));
  inDefaultStream += fakeCudaCount().defaultStream - before;
  EXPECT(!cuCtxGetCurrent(&current) && current == other);
  EXPECT(!cuCtxSetCurrent(own));
  EXPECT(isRightOnDevice(&a));

  /* Tensors of two devices, and results that overlap. */
  a.k.tensor.device.device_id = 0;
  EXPECT_ERROR(
      varlenLauncherEnqueue(attention, tensors, 6, a.workspace, a.bytes,
                            a.stream),
      VARLEN_INVALID_ARGUMENT,
      "k: expected a tensor on CUDA device 1, as q is, got one on CUDA "
      "device 0");
  a.k.tensor.device.device_id = 1;
  void *out = a.out.tensor.data;
  a.out.tensor.data = a.q.tensor.data;
  EXPECT_ERROR(varlenLauncherEnqueue(attention, tensors, 6, a.workspace,
                                     a.bytes, a.stream),
               VARLEN_INVALID_ARGUMENT,
               "out: expected memory that no other tensor of the call has, got "
               "some of q");
  a.out.tensor.data = out;
  destroy(&a);
  enterDevice(0);
}

/* What the layers make of q. */
static void attendLayers(const float *q, float *out) {
  static float between[Q_SIZE], lse[HEADS * TOKENS];
  memcpy(between, q, sizeof between);
  for (int i = 0; i < LAYERS; ++i) {
    attend(between, host.k, host.v, cuSeqlens, SEQUENCES, out, lse);
    memcpy(between, out, sizeof between);
  }
}

/* Layers that take each other's results, captured in a graph. */
static void testGraph(void) {
  CUcontext context;
  EXPECT(!cuCtxCreate_v2(&context, 0, 0));
  Attention a;
  init(&a, 1);
  CUgraph graph = NULL;
  CUgraphExec executable = NULL;
  /* The first launch in this context loads the kernels. */
  int modules = fakeCudaCount().modules;
  EXPECT(!cuStreamBeginCapture_v2(a.stream, 0));
  EXPECT(!launch(&a));
  EXPECT(!cuStreamEndCapture(a.stream, &graph) && !cuGraphDestroy(graph));
  EXPECT(fakeCudaCount().modules == modules + 1);

  int made = fakeCudaCount().allocations;
  Tensor first = a.q, other = a.out;
  EXPECT(!cuStreamBeginCapture_v2(a.stream, 0));
  for (int i = 0; i < LAYERS; ++i) {
    EXPECT(!launch(&a));
    Tensor result = a.out;
    a.out = a.q;
    a.q = result;
  }
  EXPECT(!cuStreamEndCapture(a.stream, &graph));
  EXPECT(!cuGraphInstantiateWithFlags(&executable, graph, 0));
  /* Nothing has run. */
  EXPECT(has(&first, host.q, Q_SIZE, 1, a.stream));
  static float q[Q_SIZE], wanted[Q_SIZE];
  for (int replay = 0; replay < 2; ++replay) {
    fillRandom(q, Q_SIZE);
    attendLayers(q, wanted);
    copy(first.tensor.data, q, sizeof q, a.stream);
    EXPECT(!cuGraphLaunch(executable, a.stream));
    EXPECT(!varlenLauncherCheck(a.workspace, a.stream));
    /* Ten swaps: the last result is where q was. */
    EXPECT(has(&first, wanted, Q_SIZE, 1, a.stream));
  }
  EXPECT(fakeCudaCount().allocations == made);
  EXPECT(!cuGraphExecDestroy(executable) && !cuGraphDestroy(graph));
  a.q = first;
  a.out = other;
  destroy(&a);
  EXPECT(!cuCtxDestroy_v2(context));
}

/* Memory of the caller that a function reads and writes keeps what it holds. */
static void testUpdate(void) {
  CUstream stream;
  EXPECT(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Tensor x = makeOnDevice(host.q, VARLEN_FLOAT, 1, Q_SIZE, 0, 0, stream);
  Tensor cache = makeOnDevice(host.q, VARLEN_FLOAT, 1, Q_SIZE, 0, 0, stream);
  const VarlenTensor *tensors[] = {use(&x), use(&cache)};
  size_t bytes = 0;
  EXPECT(!setImage(update));
  EXPECT(!varlenLauncherGetWorkspaceSize(update, tensors, 2, &bytes));
  void *workspace = allocate(bytes + 1);
  EXPECT(!varlenLauncherLaunch(update, tensors, 2, workspace, bytes, stream));
  EXPECT(!varlenLauncherCheck(workspace, stream));
  EXPECT(has(&x, host.q, Q_SIZE, 1, stream));
  EXPECT(has(&cache, host.q, Q_SIZE, 2, stream));
  /* Which is nothing else of the launch. */
  void *own = x.tensor.data;
  x.tensor.data = (float *)cache.tensor.data + 1;
  x.tensor.shape[0] = Q_SIZE - 1;
  EXPECT_ERROR(
      varlenLauncherLaunch(update, tensors, 2, workspace, bytes, stream),
      VARLEN_INVALID_ARGUMENT,
      "arg1: expected memory that no other tensor of the call has, got some "
      "of arg0");
  x.tensor.data = own;
  release(x.tensor.data);
  release(cache.tensor.data);
  release(workspace);
}

/* Entries of the driver that fail once, each in a context that has nothing of
   the launcher; the next launch there is right. */
static void testFailures(void) {
  static const struct {
    const char *entry, *message;
  } failing[] =
      {
          {"cuStreamGetCtx", "asking for the stream's context: a fake error"},
          {"cuCtxGetId", "asking for the context: a fake error"},
          {"cuModuleLoadDataEx", "loading kernels on Fake GPU (sm_80): a fake"},
          {"cuModuleGetFunction", "looking for a kernel: a fake error"},
          {"cuFuncGetAttribute",
           "reading a kernel's shared memory: a fake error"},
          {"cuMemsetD8Async", "filling memory: a fake error"},
          {"cuLaunchKernelEx", "launching a grid of 1 x 1 x 1 with blocks of"},
      },
    checks[] = {
        {"cuMemcpyAsync", "copying memory: a fake error"},
        {"cuStreamSynchronize", "waiting for kernels: a fake error"},
    };
  for (size_t i = 0; i < sizeof failing / sizeof *failing; ++i) {
    CUcontext context;
    EXPECT(!cuCtxCreate_v2(&context, 0, 0));
    Attention a;
    init(&a, 1);
    int modules = fakeCudaCount().modules;
    fakeCudaFail(failing[i].entry, 1, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_ERROR(launch(&a), VARLEN_DEVICE_ERROR, failing[i].message);
    EXPECT(!launch(&a) && !varlenLauncherCheck(a.workspace, a.stream));
    EXPECT(isRightOnDevice(&a));
    EXPECT(fakeCudaCount().modules == modules + 1);
    destroy(&a);
    EXPECT(!cuCtxDestroy_v2(context));
  }
  Attention a;
  init(&a, 1);
  EXPECT(!launch(&a));
  for (size_t i = 0; i < sizeof checks / sizeof *checks; ++i) {
    fakeCudaFail(checks[i].entry, 1, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_ERROR(varlenLauncherCheck(a.workspace, a.stream),
                 VARLEN_DEVICE_ERROR, checks[i].message);
  }
  EXPECT(!varlenLauncherCheck(a.workspace, a.stream) && isRightOnDevice(&a));
  destroy(&a);
}

int main(int argc, char **argv) {
  if (argc != 5 || cuInit(0))
    return 1;
  setUp(argv + 1);
  testThreads();
  testImage();
  enterDevice(1);
  testGradients();
  testBadData();
  testPoll();
  testGraph();
  testUpdate();
  testFailures();
  varlenLauncherDestroy(attention);
  varlenLauncherDestroy(gradients);
  varlenLauncherDestroy(update);
  varlenCodeDestroy(kernels);
  FakeCudaCounts counts = fakeCudaCount();
  EXPECT(counts.modules == 0 && counts.defaultStream == inDefaultStream);
  /* No call was one that a driver would not take. */
  if (counts.refusals)
    fprintf(stderr, "%s\n", fakeCudaLastRefusal());
  EXPECT(counts.refusals == 0);
  return failures != 0;
}
