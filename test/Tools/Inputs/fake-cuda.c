/* A libcuda.so.1 for tests: memory is the host's, kernels do nothing, and what
   matters of the calls goes to the file that FAKE_CUDA_LOG names. A function
   that FAKE_CUDA_FAIL names (NAME:CODE) gives that error. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned grid[3], block[3], sharedBytes;
  void *stream, *attributes;
  unsigned numAttributes;
} LaunchConfig;

typedef struct {
  char name[96];
  int allowedShared;
} Function;

static int failure(const char *name) {
  const char *text = getenv("FAKE_CUDA_FAIL");
  size_t length = strlen(name);
  return text && strncmp(text, name, length) == 0 && text[length] == ':'
             ? atoi(text + length + 1)
             : 0;
}

static FILE *report(void) {
  static FILE *file;
  if (!file)
    file = fopen(getenv("FAKE_CUDA_LOG"), "w");
  setvbuf(file, NULL, _IOLBF, 0);
  return file;
}

#define STUB(name, parameters, ...)                                            \
  int name parameters {                                                        \
    if (failure(#name))                                                        \
      return failure(#name);                                                   \
    __VA_ARGS__;                                                               \
    return 0;                                                                  \
  }

STUB(cuInit, (unsigned flags))
STUB(cuDriverGetVersion, (int *version), *version = 13000)
STUB(cuGetErrorName, (int error, const char **name), *name = "FAKE")
STUB(cuGetErrorString, (int error, const char **text), *text = "a fake error")
STUB(cuDeviceGet, (int *device, int i), *device = i)
STUB(cuDeviceGetCount, (int *count), *count = 1)
STUB(cuDeviceGetName, (char *name, int size, int device),
     snprintf(name, size, "Fake GPU"))
STUB(cuDeviceGetAttribute, (int *value, int attribute, int device),
     *value = attribute == 75   ? 8
              : attribute == 76 ? 0
              : attribute == 16 ? 108
              : attribute == 97 ? atoi(getenv("FAKE_CUDA_SHARED"))
                                : 0)
STUB(cuDeviceGetDefaultMemPool, (void **pool, int device), *pool = NULL)
STUB(cuDevicePrimaryCtxRetain, (void **context, int device),
     *context = (void *)8)
STUB(cuMemPoolSetAttribute, (void *pool, int attribute, void *value))
static __thread void *current;
STUB(cuCtxGetCurrent, (void **context), *context = current)
STUB(cuCtxSetCurrent, (void *context), current = context)
STUB(cuCtxGetDevice, (int *device), *device = 0)
STUB(cuModuleLoadDataEx,
     (void **module, const void *data, unsigned count, int *options,
      void **values),
     fprintf(report(), "load %s\n",
             memcmp(data, "\x50\xed\x55\xba", 4) == 0 ? "fatbin" : "text"),
     *module = (void *)16)
STUB(cuModuleUnload, (void *module))
STUB(cuModuleGetFunction, (void **function, void *module, const char *name),
     Function *made = calloc(1, sizeof(Function));
     snprintf(made->name, sizeof made->name, "%s", name);
     made->allowedShared = 48 << 10; *function = made)
STUB(cuFuncGetAttribute, (int *value, int attribute, Function *function),
     *value = attribute == 8 ? function->allowedShared : 0)
STUB(cuFuncSetAttribute, (Function * function, int attribute, int value),
     fprintf(report(), "attribute %d of %s = %d\n", attribute, function->name,
             value),
     function->allowedShared = value)
STUB(cuLaunchKernelEx,
     (const LaunchConfig *config, Function *function, void **parameters,
      void **extra),
     fprintf(report(),
             "launch %s, grid %u, block %u, shared %u, stream %p, first %p\n",
             function->name, config->grid[0], config->block[0],
             config->sharedBytes, config->stream, *(void **)parameters[0]))
STUB(cuStreamCreate, (void **stream, unsigned flags), *stream = (void *)32)
STUB(cuStreamDestroy_v2, (void *stream))
STUB(cuStreamSynchronize, (void *stream))
STUB(cuStreamWaitEvent, (void *stream, void *event, unsigned flags))
STUB(cuEventCreate, (void **event, unsigned flags), *event = (void *)64)
STUB(cuEventDestroy_v2, (void *event))
STUB(cuEventRecord, (void *event, void *stream))
STUB(cuEventSynchronize, (void *event))
STUB(cuMemAllocAsync, (uint64_t *address, size_t bytes, void *stream),
     *address = (uintptr_t)calloc(1, bytes))
STUB(cuMemAllocManaged, (uint64_t *address, size_t bytes, unsigned flags),
     *address = (uintptr_t)calloc(1, bytes))
STUB(cuMemFreeAsync, (uint64_t address, void *stream),
     free((void *)(uintptr_t)address))
STUB(cuMemFree_v2, (uint64_t address), free((void *)(uintptr_t)address))
STUB(cuPointerGetAttribute, (void *value, int attribute, uint64_t address),
     *(unsigned *)value = 0)
STUB(cuMemcpyAsync, (uint64_t to, uint64_t from, size_t bytes, void *stream),
     memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes))
STUB(cuMemsetD8Async,
     (uint64_t address, unsigned char value, size_t count, void *stream),
     memset((void *)(uintptr_t)address, value, count))
STUB(cuMemsetD16Async,
     (uint64_t address, unsigned short value, size_t count, void *stream),
     for (size_t i = 0; i < count;
          ++i)((uint16_t *)(uintptr_t)address)[i] = value)
STUB(cuMemsetD32Async,
     (uint64_t address, unsigned value, size_t count, void *stream),
     for (size_t i = 0; i < count;
          ++i)((uint32_t *)(uintptr_t)address)[i] = value)
STUB(cuMemHostRegister_v2, (void *memory, size_t bytes, unsigned flags))
STUB(cuMemHostUnregister, (void *memory))
STUB(cuTensorMapEncodeTiled,
     (void *map, int type, uint32_t rank, void *address,
      const uint64_t *extents, const uint64_t *strides, const uint32_t *box,
      const uint32_t *boxStrides, int interleave, int swizzle, int promotion,
      int fill))
