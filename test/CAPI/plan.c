/* Plans of context parallelism, and what is wrong with their arguments.

   RUN: %cc %s -o %t %capi -lm
   RUN: %t
*/

#include "Inputs/Test.h"

static const int64_t CU[] = {0, 80, 80, 100};

static VarlenStatus make(const char *mask, int64_t ranks, VarlenPlan *plan) {
  VarlenPlanOptions options = VARLEN_PLAN_OPTIONS_INIT;
  options.mask = mask;
  options.layout = VARLEN_ZIGZAG;
  return varlenPlanCreate(CU, CU, NULL, 3, ranks, &options, plan);
}

/* Each row has one owner, and so has each pair. */
static void testOwners(void) {
  VarlenPlan plan, other;
  EXPECT(!make("#varlen.mask<causal>", 3, &plan));
  int64_t rows = 0, keys = 0, pairs = 0;
  for (int64_t rank = 0; rank < 3; ++rank) {
    size_t count;
    const VarlenPlanChunk *chunks = varlenPlanGetChunks(plan, rank, &count);
    for (size_t i = 0; i < count; ++i) {
      rows += chunks[i].end - chunks[i].begin;
      keys += chunks[i].ownKeyEnd - chunks[i].ownKeyBegin;
      pairs += chunks[i].pairs;
      /* Causal: the last row sees all keys up to its own. */
      EXPECT(chunks[i].keyBegin == 0 && chunks[i].keyEnd == chunks[i].end);
      EXPECT(chunks[i].qOffset == 0);
    }
  }
  EXPECT(rows == 100 && keys == 100 && pairs == 80 * 81 / 2 + 20 * 21 / 2);
  size_t count = 7;
  EXPECT(!varlenPlanGetChunks(plan, 3, &count) && count == 7);

  /* Another mask, the same rows. */
  EXPECT(!varlenPlanWithMask(plan, "#varlen.mask<window = (4, 0)>", &other));
  size_t others;
  const VarlenPlanChunk *a = varlenPlanGetChunks(plan, 1, &count),
                        *b = varlenPlanGetChunks(other, 1, &others);
  EXPECT(count == others && count > 0);
  for (size_t i = 0; i < count; ++i)
    EXPECT(a[i].begin == b[i].begin && a[i].end == b[i].end &&
           b[i].keyEnd - b[i].keyBegin <= b[i].end - b[i].begin + 4);
  varlenPlanDestroy(other);
  varlenPlanDestroy(plan);
}

static void testErrors(void) {
  VarlenPlan plan;
  const int64_t wrong[] = {0, 5, 4, 9};
  EXPECT(make("#varlen.mask<", 2, &plan) == VARLEN_INVALID_ARGUMENT);
  EXPECT(strstr(varlenGetLastError(), "expected a mask, as"));
  EXPECT(make("i32", 2, &plan) == VARLEN_INVALID_ARGUMENT);
  EXPECT(strstr(varlenGetLastError(), "got 'i32': it is no mask"));
  EXPECT(make(NULL, 0, &plan) == VARLEN_BAD_DATA);
  EXPECT(varlenPlanCreate(wrong, wrong, NULL, 3, 2, NULL, &plan) ==
         VARLEN_BAD_DATA);
  EXPECT(strstr(varlenGetLastError(), "cu_seqlens_q[2] = 4 is smaller than"));
  EXPECT(varlenPlanCreate(NULL, wrong, NULL, 3, 2, NULL, &plan) ==
         VARLEN_INVALID_ARGUMENT);
  VarlenPlanOptions options = VARLEN_PLAN_OPTIONS_INIT;
  options.layout = 3;
  EXPECT(varlenPlanCreate(CU, CU, NULL, 3, 2, &options, &plan) ==
         VARLEN_INVALID_ARGUMENT);
  EXPECT(strstr(varlenGetLastError(), "expected a layout from 0 to 2, got 3"));
}

int main(void) {
  testOwners();
  testErrors();
  return 0;
}
