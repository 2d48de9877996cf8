/* Eight threads at once, each with its own errors, and threads of the caller.

   RUN: %cc %s -o %t %capi -lm -pthread
   RUN: %t
*/

#include "Inputs/Test.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 8, CALLS = 300 };

static VarlenFunction shared;
static atomic_int wrong;

/* Calls one function that all share, compiles one of its own, and makes
   mistakes in between. */
static void *callAndCompile(void *argument) {
  int index = (int)(intptr_t)argument;
  Batch *batch = malloc(sizeof *batch);
  initBatch(batch);
  VarlenCallOptions options = VARLEN_CALL_OPTIONS_INIT;
  options.numThreads = 1 + index % 3;
  void *workspace = NULL;
  if (index % 2) {
    size_t bytes;
    wrong += varlenFunctionGetWorkspaceSize(shared, batch->arguments, 4,
                                            &options, &bytes) != VARLEN_OK;
    options.workspace = workspace = malloc(bytes);
    options.workspaceSize = bytes;
  }
  for (int i = 0; i < CALLS; ++i) {
    char text[64];
    wrong += callBatch(shared, batch, &options) != VARLEN_OK;
    wrong += !isRight(batch);
    batch->cu[2] = 100 + index;
    wrong += callBatch(shared, batch, &options) != VARLEN_BAD_DATA;
    snprintf(text, sizeof text, "cu_seqlens_q[2] = %d", 100 + index);
    wrong += !strstr(varlenGetLastError(), text);
    batch->cu[2] = 4;
  }
  VarlenProgram program;
  VarlenFunction mine;
  wrong += compile(ATTENTION, NULL, &program) != VARLEN_OK;
  wrong += compile("?", NULL, &program) != VARLEN_PARSE_ERROR;
  wrong += varlenProgramGetFunction(program, NULL, &mine) != VARLEN_OK;
  wrong += callBatch(mine, batch, NULL) != VARLEN_OK;
  wrong += !isRight(batch);
  varlenProgramDestroy(program);
  free(workspace);
  free(batch);
  return NULL;
}

/* Threads of the caller: `count` of them, for each varlenFunctionCall. */
typedef struct Pool {
  int count;
  VarlenItemsFn run;
  void *work;
  int64_t items;
  atomic_llong next;
  int calls;
  int mistake;
} Pool;

static void *takeItems(void *argument) {
  Pool *pool = argument;
  for (int64_t i; (i = pool->next++) < pool->items;)
    pool->run(pool->work, i, i + 1);
  return NULL;
}

static void runOnPool(void *context, int64_t items, VarlenItemsFn run,
                      void *work) {
  Pool *pool = context;
  pthread_t threads[16];
  pool->run = run;
  pool->work = work;
  pool->items = items;
  pool->next = pool->mistake;
  ++pool->calls;
  for (int i = 0; i < pool->count; ++i)
    pthread_create(&threads[i], NULL, takeItems, pool);
  for (int i = 0; i < pool->count; ++i)
    pthread_join(threads[i], NULL);
  if (pool->mistake < 0)
    run(work, items, items + 1);
}

static void testPool(void) {
  static Batch batch;
  Pool pool = {.count = 4};
  VarlenCallOptions options = VARLEN_CALL_OPTIONS_INIT;
  size_t bytes;
  initBatch(&batch);
  options.numThreads = 4;
  options.parallelFor = runOnPool;
  options.parallelForContext = &pool;
  EXPECT(!callBatch(shared, &batch, &options));
  EXPECT(isRight(&batch) && pool.calls == 1);
  /* In a workspace; also if more threads come than were said. */
  EXPECT(!varlenFunctionGetWorkspaceSize(shared, batch.arguments, 4, &options,
                                         &bytes));
  options.workspace = malloc(bytes);
  options.workspaceSize = bytes;
  EXPECT(!callBatch(shared, &batch, &options));
  EXPECT(isRight(&batch) && pool.calls == 2);
  pool.count = 12;
  EXPECT(!callBatch(shared, &batch, &options));
  EXPECT(isRight(&batch) && pool.calls == 3);
  free(options.workspace);
  options.workspace = NULL;
  /* Items that are not run, or that are not there. */
  pool.mistake = 1;
  EXPECT_ERROR(callBatch(shared, &batch, &options), VARLEN_INVALID_ARGUMENT,
               "parallelFor of the caller did 3 of 4 items");
  pool.mistake = -1;
  EXPECT_ERROR(callBatch(shared, &batch, &options), VARLEN_INVALID_ARGUMENT,
               "parallelFor of the caller wants items -1 to 0 of 4");
}

/* What GOMP_parallel does: a function on each thread of a team. */
static unsigned team;

static void *runInTeam(void *argument) {
  void **job = argument;
  ((void (*)(void *))job[0])(job[1]);
  return NULL;
}

static void parallel(void (*function)(void *), void *data, unsigned numThreads,
                     unsigned flags) {
  void *job[] = {(void *)function, data};
  pthread_t threads[16];
  team = numThreads;
  wrong += flags != 0;
  for (unsigned i = 1; i < numThreads; ++i)
    pthread_create(&threads[i], NULL, runInTeam, job);
  function(data);
  for (unsigned i = 1; i < numThreads; ++i)
    pthread_join(threads[i], NULL);
}

static void testOpenMP(void) {
  static Batch batch;
  VarlenOpenMP openMP = {parallel, 3};
  VarlenCallOptions options = VARLEN_CALL_OPTIONS_INIT;
  initBatch(&batch);
  options.numThreads = 3;
  options.parallelFor = varlenParallelForOpenMP;
  options.parallelForContext = &openMP;
  EXPECT(!callBatch(shared, &batch, &options));
  EXPECT(isRight(&batch) && team == 3);
  /* No more threads than items, and as many as the runtime takes. */
  initBatch(&batch);
  openMP.numThreads = 1000;
  EXPECT(!callBatch(shared, &batch, &options));
  EXPECT(isRight(&batch) && team == 4);
  initBatch(&batch);
  openMP.numThreads = 0;
  EXPECT(!callBatch(shared, &batch, &options));
  EXPECT(isRight(&batch) && team == 0);
  EXPECT(wrong == 0);
}

int main(void) {
  VarlenProgram program;
  EXPECT(!compile(ATTENTION, NULL, &program));
  shared = get(program, NULL);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i)
    pthread_create(&threads[i], NULL, callAndCompile, (void *)(intptr_t)i);
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  EXPECT(wrong == 0);

  testPool();
  testOpenMP();
  varlenSetNumThreads(3);
  EXPECT(varlenGetNumThreads() == 3);
  varlenSetNumThreads(0);
  EXPECT(varlenGetNumThreads() >= 1);
  varlenProgramDestroy(program);
  return failures != 0;
}
