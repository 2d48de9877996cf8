/*===- Varlen.h - Compiling and calling functions from C ---------*- C -*-===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The C interface of libvarlen-c: MLIR in, functions on tensors of the caller
|* or code of GPU kernels out. It needs no header of LLVM or MLIR; Dialects.h is
|* for hosts that have an MlirContext.
|*
|* Functions return a VarlenStatus, and leave what they would have stored alone
|* unless it is VARLEN_OK; `varlenGetLastError` then says what was wanted and
|* what was got. None throws. All may be called from any thread at any time;
|* only the destruction of an object must not overlap another use of it.
|*
|* Wrong options, sources, tensors and data give a status, and so does compiled
|* code that cannot go on. What can end the process is a compilation, by what
|* LLVM calls a fatal error: no memory is left, a source is nested deeper than
|* the thread's stack allows, or operations of upstream dialects reach a code
|* generator that has nothing for them (docs/c-api.md, "Untrusted
|* sources").
|*
|* Structs of options begin with their size, so that a program that was compiled
|* with an older version of this header keeps its meaning. Initialise them with
|* their ..._INIT; a member that is 0 has its default.
|*
\*===----------------------------------------------------------------------===*/

#ifndef VARLEN_C_VARLEN_H
#define VARLEN_C_VARLEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define VARLEN_API __attribute__((visibility("default")))
#else
#define VARLEN_API
#endif

/*===----------------------------------------------------------------------===*\
|* Errors
\*===----------------------------------------------------------------------===*/

typedef enum VarlenStatus {
  VARLEN_OK = 0,
  /* An argument of the C function is wrong: a null pointer, a tensor that is
     not what the type of a parameter says, tensors that overlap. */
  VARLEN_INVALID_ARGUMENT = 1,
  /* The source is not a valid module. */
  VARLEN_PARSE_ERROR = 2,
  /* The module is valid and a pass or the code generator refuses it. */
  VARLEN_COMPILE_ERROR = 3,
  /* There is no public function of this name. */
  VARLEN_NOT_FOUND = 4,
  /* Compiled code has found cu_seqlens, or extents of several tensors, that do
     not agree. It has written nothing, or rows that are then unspecified. */
  VARLEN_BAD_DATA = 5,
  /* A check of `runtimeChecks` has failed. */
  VARLEN_CHECK_FAILED = 6,
  VARLEN_OUT_OF_MEMORY = 7,
  /* The workspace of the caller is smaller than the call needs. */
  VARLEN_WORKSPACE_TOO_SMALL = 8,
  /* Valid, but not possible: code for another CPU cannot be called; the
     workspace of a function follows from values, not from extents. */
  VARLEN_UNSUPPORTED = 9,
  /* There is no driver of a GPU, or it has refused a call. */
  VARLEN_DEVICE_ERROR = 10
} VarlenStatus;

/* The message of the last call in this thread that did not return VARLEN_OK;
   valid until the next call in this thread. Never null. */
VARLEN_API const char *varlenGetLastError(void);

/* "VARLEN_OK", ..., or "unknown status". */
VARLEN_API const char *varlenStatusName(VarlenStatus status);

/* The version of the library, such as "0.1.0". */
VARLEN_API const char *varlenGetVersion(void);

typedef enum VarlenSeverity {
  VARLEN_NOTE = 0,
  VARLEN_WARNING = 1,
  VARLEN_ERROR = 2,
  VARLEN_REMARK = 3
} VarlenSeverity;

/* What a compilation says about the module. */
typedef struct VarlenDiagnostic {
  VarlenSeverity severity;
  const char *message;
  /* Where: line and column count from 1 and are 0, and file is "", where no
     place in a file is known. */
  const char *file;
  int64_t line;
  int64_t column;
} VarlenDiagnostic;

/* Is called during the compilation, on its thread; what it gets is valid until
   it returns. */
typedef void (*VarlenDiagnosticFn)(void *context,
                                   const VarlenDiagnostic *diagnostic);

/*===----------------------------------------------------------------------===*\
|* Tensors
\*===----------------------------------------------------------------------===*/

/* A tensor of the caller, laid out and with the names of DLTensor of DLPack:
   the address of one is the address of the other (varlenFromDLPack). The
   library keeps none. */
typedef struct VarlenTensor {
  void *data;
  struct {
    int32_t device_type; /* VARLEN_CPU, ... */
    int32_t device_id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code; /* VARLEN_INT, ... */
    uint8_t bits;
    uint16_t lanes; /* 1 */
  } dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; null: dense, the last index fastest */
  uint64_t byte_offset;
} VarlenTensor;

/* Devices, with the numbers of DLPack. */
enum {
  VARLEN_CPU = 1,
  VARLEN_CUDA = 2,
  VARLEN_CUDA_HOST = 3,
  VARLEN_CUDA_MANAGED = 13
};

/* Kinds of elements, with the numbers of DLPack. */
enum {
  VARLEN_INT = 0,
  VARLEN_UINT = 1,
  VARLEN_FLOAT = 2,
  VARLEN_BFLOAT = 4,
  VARLEN_BOOL = 6,
  VARLEN_FLOAT8_E4M3FN = 10
};

/* For programs that have dlpack.h: `tensor` is a DLTensor *. */
#define varlenFromDLPack(tensor) ((const VarlenTensor *)(tensor))

/*===----------------------------------------------------------------------===*\
|* Compiling for the CPU
\*===----------------------------------------------------------------------===*/

/* A compiled module. */
typedef struct VarlenProgram {
  void *ptr;
} VarlenProgram;

/* One of its functions, which lives as long as the program. */
typedef struct VarlenFunction {
  const void *ptr;
} VarlenFunction;

typedef struct VarlenCompileOptions {
  size_t structSize;
  /* Null for "host", else a row of the target table that this machine can run
     (avx2, avx512, ...). */
  const char *target;
  VarlenDiagnosticFn onDiagnostic;
  void *diagnosticContext;
  /* Tensors of functions may have any strides but the last, which is 1. Without
     it they are dense, which is faster where heads are few: memory is then
     addressed by constants. Functions on memrefs say it by their types. */
  bool stridedTensors;
  /* Also check what linalg, tensor and memref operations assume of extents
     that types leave open. Attention is always checked. */
  bool runtimeChecks;
} VarlenCompileOptions;

#define VARLEN_COMPILE_OPTIONS_INIT                                            \
  {sizeof(VarlenCompileOptions), 0, 0, 0, 0, 0}

/* Compiles a module, MLIR text or bytecode of `size` bytes. `options` may be
   null.

   Every public function can be called. Its arguments are ranked tensors,
   memrefs or scalars, its results tensors or scalars, of f16, bf16, f32, f64,
   index or integers of 1, 8, 16, 32 or 64 bits. Results go to memory of the
   caller; their extents have to follow from those of the arguments, or from
   scalars. */
VARLEN_API VarlenStatus varlenCompile(const void *source, size_t size,
                                      const VarlenCompileOptions *options,
                                      VarlenProgram *program);
VARLEN_API void varlenProgramDestroy(VarlenProgram program);

/* Bytes of the library, such as a program's or the code of kernels. */
typedef struct VarlenCode {
  void *ptr;
} VarlenCode;

VARLEN_API const void *varlenCodeGetData(VarlenCode code);
VARLEN_API size_t varlenCodeGetSize(VarlenCode code);
VARLEN_API void varlenCodeDestroy(VarlenCode code);

/* What programs are for: the build of the library and the CPU it runs on, in
   words. It belongs to the key of a cache, with the source and the options.
   Null where the library was linked without a build id: programs cannot be
   serialized then. */
VARLEN_API const char *varlenGetIdentity(void);

/* Stores a program as bytes, for varlenProgramDeserialize in any process in
   which varlenGetIdentity says the same. */
VARLEN_API VarlenStatus varlenProgramSerialize(VarlenProgram program,
                                               VarlenCode *code);

/* Makes a program of such bytes, without compiling. VARLEN_INVALID_ARGUMENT if
   they are not a program's, or were changed; VARLEN_UNSUPPORTED if they are for
   another build or CPU. They are machine code, and a checksum is no signature:
   load them only from places that no other user can write to. */
VARLEN_API VarlenStatus varlenProgramDeserialize(const void *data, size_t size,
                                                 VarlenProgram *program);

/* The function of that name; null: the only one. */
VARLEN_API VarlenStatus varlenProgramGetFunction(VarlenProgram program,
                                                 const char *name,
                                                 VarlenFunction *function);

/*===----------------------------------------------------------------------===*\
|* Functions
\*===----------------------------------------------------------------------===*/

/* An extent or a stride that the type leaves open. */
#define VARLEN_DYNAMIC ((int64_t)-1)

/* An argument or a result. */
typedef struct VarlenParameter {
  /* Its varlen.name, or "arg0", "result0", ... */
  const char *name;
  uint8_t code; /* as in VarlenTensor */
  uint8_t bits;
  /* A scalar is passed as a tensor of rank 0. */
  bool isScalar;
  /* Whether the call may write to it: a result, or a memref of which no
     operation says that it is only read. */
  bool isWritten;
  int32_t rank;
  const int64_t *shape;
  /* Null: dense. */
  const int64_t *strides;
} VarlenParameter;

VARLEN_API const char *varlenFunctionGetName(VarlenFunction function);
VARLEN_API size_t varlenFunctionGetNumArguments(VarlenFunction function);
VARLEN_API size_t varlenFunctionGetNumResults(VarlenFunction function);
/* Null if there is no such argument or result. */
VARLEN_API const VarlenParameter *
varlenFunctionGetArgument(VarlenFunction function, size_t index);
VARLEN_API const VarlenParameter *
varlenFunctionGetResult(VarlenFunction function, size_t index);

/* Does the items begin..end-1 of `work`. */
typedef void (*VarlenItemsFn)(void *work, int64_t begin, int64_t end);

/* Has the items 0..items-1 of `work` done, each once, in any order and on any
   threads, at most `numThreads` at a time, and returns when all are done. */
typedef void (*VarlenParallelForFn)(void *context, int64_t items,
                                    VarlenItemsFn run, void *work);

/* An OpenMP runtime that the process has anyway, such as that of a framework.
 */
typedef struct VarlenOpenMP {
  /* GOMP_parallel, which libgomp, libomp and libiomp5 have. */
  void (*parallel)(void (*function)(void *), void *data, unsigned numThreads,
                   unsigned flags);
  /* 0: as many as the runtime takes by itself. */
  int64_t numThreads;
} VarlenOpenMP;

/* A VarlenParallelForFn on the threads of an OpenMP runtime; `context` is a
   VarlenOpenMP. Threads of two pools that wait for work of their own, awake,
   keep the cores from each other. */
VARLEN_API void varlenParallelForOpenMP(void *context, int64_t items,
                                        VarlenItemsFn run, void *work);

typedef struct VarlenCallOptions {
  size_t structSize;
  /* Threads of the call, the calling one included. 0: as many as
     varlenSetNumThreads says. */
  int64_t numThreads;
  /* Threads of the caller; null: those of the library. While one call has
     these, another runs on its own thread. */
  VarlenParallelForFn parallelFor;
  void *parallelForContext;
  /* Memory that only the call uses while it runs. Null: the library
     allocates, and keeps scratch of threads for the next call. */
  void *workspace;
  size_t workspaceSize;
  /* VARLEN_INVALID_ARGUMENT where a memref that the function may write to
     overlaps another argument. */
  bool separateWrites;
} VarlenCallOptions;

#define VARLEN_CALL_OPTIONS_INIT {sizeof(VarlenCallOptions), 0, 0, 0, 0, 0, 0}

/* Calls the function on tensors of the caller. Results are written whole; none
   may overlap another tensor of the call. `options` may be null. */
VARLEN_API VarlenStatus varlenFunctionCall(VarlenFunction function,
                                           const VarlenTensor *const *arguments,
                                           size_t numArguments,
                                           const VarlenTensor *const *results,
                                           size_t numResults,
                                           const VarlenCallOptions *options);

/* Stores the extents of all results for these arguments, one result after the
   other; `numExtents` is the sum of their ranks. The data of tensors is not
   looked at and may be null. */
VARLEN_API VarlenStatus varlenFunctionGetResultShapes(
    VarlenFunction function, const VarlenTensor *const *arguments,
    size_t numArguments, int64_t *extents, size_t numExtents);

/* Stores how large a workspace always is enough for a call with arguments of
   these extents and these options, whatever is in the tensors, whose data is
   not looked at and may be null. VARLEN_UNSUPPORTED if that depends on more
   than extents: such functions take what they can from a workspace and allocate
   the rest. */
VARLEN_API VarlenStatus varlenFunctionGetWorkspaceSize(
    VarlenFunction function, const VarlenTensor *const *arguments,
    size_t numArguments, const VarlenCallOptions *options, size_t *bytes);

/* Threads of a call that does not say how many, and of a compilation; 0: as
   many as the process may run on, which is the default. */
VARLEN_API void varlenSetNumThreads(int64_t threads);
VARLEN_API int64_t varlenGetNumThreads(void);

/*===----------------------------------------------------------------------===*\
|* Kernels of a GPU
\*===----------------------------------------------------------------------===*/

typedef enum VarlenCodeFormat {
  VARLEN_CUBIN = 0,  /* machine code, by ptxas */
  VARLEN_PTX = 1,    /* text */
  VARLEN_FATBIN = 2, /* both */
} VarlenCodeFormat;

typedef struct VarlenKernelOptions {
  size_t structSize;
  /* A GPU of the target table (sm_80, sm_90, ...); null: sm_80. */
  const char *chip;
  VarlenCodeFormat format;
  /* Version of PTX, times 10; 0: 90. */
  int32_t ptxVersion;
  /* Accept kernels that spill registers. */
  bool allowSpills;
  VarlenDiagnosticFn onDiagnostic;
  void *diagnosticContext;
  /* Tensors have any strides but the last, which is 1; rows are then read
     element by element. */
  bool stridedTensors;
} VarlenKernelOptions;

#define VARLEN_KERNEL_OPTIONS_INIT                                             \
  {sizeof(VarlenKernelOptions), 0, VARLEN_CUBIN, 0, 0, 0, 0, 0}

/* Compiles the kernels of the public functions of a module, whose arguments and
   results are tensors: what a driver loads. Their parameters are pointers and
   integers (docs/kernel-abi.md), so varlenLauncherSetImage takes them, too. */
VARLEN_API VarlenStatus varlenCompileKernels(const void *source, size_t size,
                                             const VarlenKernelOptions *options,
                                             VarlenCode *code);

/* The manifest of kernels: how a host launches them, as JSON
   (docs/kernel-abi.md). It lives as long as `code`. Null if that is not of
   varlenCompileKernels. */
VARLEN_API const char *varlenCodeGetManifest(VarlenCode code);

/* The kernels of a function, and how they are launched. Streams are those of
   the CUDA driver (CUstream, which cudaStream_t is); its library is opened when
   it is first needed. Tensors of a launch are the arguments of the function,
   then its results, in memory of the stream's device (VARLEN_CUDA or
   VARLEN_CUDA_MANAGED); dense ones of rank 3 begin at multiples of 16 bytes. */
typedef struct VarlenLauncher {
  void *ptr;
} VarlenLauncher;

/* Compiles the only public function of a module, whose arguments and results
   are tensors. */
VARLEN_API VarlenStatus varlenLauncherCompile(
    const void *source, size_t size, const VarlenKernelOptions *options,
    VarlenLauncher *launcher);
/* Unloads the kernels, too; nothing that was launched may still run. */
VARLEN_API void varlenLauncherDestroy(VarlenLauncher launcher);

/* The arguments of the function, then its results: the tensors of a launch.
   Null if there are not so many. */
VARLEN_API size_t varlenLauncherGetNumTensors(VarlenLauncher launcher);
VARLEN_API const VarlenParameter *
varlenLauncherGetTensor(VarlenLauncher launcher, size_t index);

/* Takes other code of the same kernels, such as machine code that was made
   elsewhere, in place of the compiled code. VARLEN_INVALID_ARGUMENT once the
   kernels are loaded in any context. */
VARLEN_API VarlenStatus varlenLauncherSetImage(VarlenLauncher launcher,
                                               const void *image, size_t size);

/* Stores a launcher as bytes, for varlenLauncherDeserialize in any process in
   which varlenGetIdentity says the same. With the options of its compilation,
   chip and ptxVersion among them, that belongs to the key of a cache. */
VARLEN_API VarlenStatus varlenLauncherSerialize(VarlenLauncher launcher,
                                                VarlenCode *code);

/* Makes a launcher of such bytes, without compiling. VARLEN_INVALID_ARGUMENT if
   they are not a launcher's, or were changed; VARLEN_UNSUPPORTED if they are
   for another build or CPU. Code of kernels is in them, and a checksum is no
   signature: load them only from places that no other user can write to. */
VARLEN_API VarlenStatus varlenLauncherDeserialize(const void *data, size_t size,
                                                  VarlenLauncher *launcher);

/* Stores how many bytes of device memory a launch on tensors of these extents
   needs, whose data is not looked at and may be null. */
VARLEN_API VarlenStatus varlenLauncherGetWorkspaceSize(
    VarlenLauncher launcher, const VarlenTensor *const *tensors,
    size_t numTensors, size_t *bytes);

/* Loads the kernels into the context of the stream, unless they are there. A
   launch does the same, also while its stream is captured. */
VARLEN_API VarlenStatus varlenLauncherLoad(VarlenLauncher launcher,
                                           void *stream);

/* Launches the kernels in the stream, and does not wait. All tensors are on one
   device; a null stream is the default stream of the current context, if that
   is on this device, else of its primary context. `workspace` is device memory,
   a multiple of 256, not used otherwise until they are done. What kernels find
   wrong, varlenLauncherCheck tells; dense results are NaN then, others are not
   written. A launch can be captured in a graph: it allocates no memory of the
   device. Results, and memrefs that the function may write to, may overlap
   nothing else. */
VARLEN_API VarlenStatus varlenLauncherLaunch(VarlenLauncher launcher,
                                             const VarlenTensor *const *tensors,
                                             size_t numTensors, void *workspace,
                                             size_t bytes, void *stream);

/* Whether kernels of the process may start while those before them in their
   stream still run, for which they wait on the device: false at first. A graph
   keeps what was so when it was captured. docs/gpu-runtime.md has the rest. */
VARLEN_API void varlenOverlapLaunches(bool overlap);

/* Waits for the stream. VARLEN_BAD_DATA if the kernels of the last launch with
   this workspace have found cu_seqlens, or extents, that do not agree. */
VARLEN_API VarlenStatus varlenLauncherCheck(const void *workspace,
                                            void *stream);

/* As varlenLauncherLaunch, for a host that waits for nothing. What kernels find
   wrong goes to a record in memory of the host, one for each context, and not
   to the workspace. VARLEN_BAD_DATA, without a launch, if it has an error of an
   earlier launch, which is then taken out. */
VARLEN_API VarlenStatus varlenLauncherEnqueue(
    VarlenLauncher launcher, const VarlenTensor *const *tensors,
    size_t numTensors, void *workspace, size_t bytes, void *stream);

/* VARLEN_BAD_DATA if kernels that varlenLauncherEnqueue has launched in a
   context of the device have reported an error, which is then taken out. The
   context is that of a launch in the null stream; nothing waits for the
   kernels. */
VARLEN_API VarlenStatus varlenLauncherPoll(int32_t device);

/*===----------------------------------------------------------------------===*\
|* Context parallelism
\*===----------------------------------------------------------------------===*/

/* Which ranks own which rows of a batch (docs/context-parallel.md): a function
   of its arguments alone, so that all ranks make the same plan. */
typedef struct VarlenPlan {
  void *ptr;
} VarlenPlan;

enum {
  /* Whole sequences where they fit; others as in VARLEN_ZIGZAG. */
  VARLEN_DOCUMENTS = 0,
  /* Each rank has rows that follow each other in the batch. */
  VARLEN_CONTIGUOUS = 1,
  /* Each rank has rows from the front and from the back of a sequence. */
  VARLEN_ZIGZAG = 2
};

typedef struct VarlenPlanOptions {
  size_t structSize;
  const char *mask; /* as in MLIR, "#varlen.mask<causal>"; null: the full one */
  int32_t layout;   /* VARLEN_DOCUMENTS, ... */
  int64_t multiple; /* chunks begin at multiples of that many rows; 0: 1 */
  double rowCost;   /* work of a row beside its pairs, in pairs */
  /* How much more than an equal share of all work, as a part of it, a rank may
     have so that a sequence stays whole. */
  double slack;
} VarlenPlanOptions;

#define VARLEN_PLAN_OPTIONS_INIT {sizeof(VarlenPlanOptions), 0, 0, 0, 0.0, 0.03}

/* Rows of one sequence that a rank owns, counted from the first of the
   sequence. */
typedef struct VarlenPlanChunk {
  int64_t sequence;
  int64_t begin, end;             /* rows of q */
  int64_t ownKeyBegin, ownKeyEnd; /* rows of k and v */
  int64_t keyBegin, keyEnd;       /* keys that some of the rows of q see */
  int64_t queryBegin, queryEnd;   /* rows of q that see some of the own keys */
  int64_t qOffset;                /* of the chunk, among these keys */
  int64_t pairs;                  /* of a row of q and a key that it sees */
} VarlenPlanChunk;

/* `cuSeqlensQ` and `cuSeqlensK` have numSequences + 1 entries, and `qOffset`,
   unless it is null, numSequences. VARLEN_BAD_DATA if they are not what they
   have to be. */
VARLEN_API VarlenStatus varlenPlanCreate(const int64_t *cuSeqlensQ,
                                         const int64_t *cuSeqlensK,
                                         const int64_t *qOffset,
                                         size_t numSequences, int64_t numRanks,
                                         const VarlenPlanOptions *options,
                                         VarlenPlan *plan);
/* A plan that gives ranks the same rows, for another mask: for layers with
   other windows. */
VARLEN_API VarlenStatus varlenPlanWithMask(VarlenPlan plan, const char *mask,
                                           VarlenPlan *other);
VARLEN_API void varlenPlanDestroy(VarlenPlan plan);
/* The chunks of a rank, in the order of sequences and rows; they live as long
   as the plan. Stores how many there are; null if there is no such rank. */
VARLEN_API const VarlenPlanChunk *
varlenPlanGetChunks(VarlenPlan plan, int64_t rank, size_t *numChunks);

#ifdef __cplusplus
}
#endif

#endif /* VARLEN_C_VARLEN_H */
