/* Derivatives of attention from C: a tangent and a gradient, each the transpose
   of the other, and the gradient of a tangent beside differences of gradients.

   RUN: %cc %s -o %t %capi -lm
   RUN: %t
*/

#include "Inputs/Test.h"

#define Q "tensor<?x2x8xf64>"
#define K "tensor<?x1x8xf64>"
#define LSE "tensor<2x?xf64>"
#define CU "tensor<?xi32>"
#define CAUSAL "{mask = #varlen.mask<causal>}"

#define SOURCE                                                                 \
  "func.func @tangents(%q: " Q ", %k: " K ", %v: " K ", %tq: " Q ", %tk: " K   \
  ", %tv: " K ", %cu: " CU ")\n"                                               \
  "    -> (" Q ", " LSE ", " Q ", " LSE ") {\n"                                \
  "  %r:4 = varlen.attn_jvp %q, %k, %v, %tq, %tk, %tv, %cu, %cu " CAUSAL       \
  "      : (" Q ", " K ", " K ", " Q ", " K ", " K ", " CU ", " CU ")\n"       \
  "      -> (" Q ", " LSE ", " Q ", " LSE ")\n"                                \
  "  return %r#0, %r#1, %r#2, %r#3 : " Q ", " LSE ", " Q ", " LSE "\n"         \
  "}\n"                                                                        \
  "func.func @gradients(%dout: " Q ", %q: " Q ", %k: " K ", %v: " K            \
  ", %out: " Q ", %lse: " LSE ", %cu: " CU ") -> (" Q ", " K ", " K ") {\n"    \
  "  %r:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu " CAUSAL  \
  "      : (" Q ", " Q ", " K ", " K ", " Q ", " LSE ", " CU ", " CU ")\n"     \
  "      -> (" Q ", " K ", " K ")\n"                                           \
  "  return %r#0, %r#1, %r#2 : " Q ", " K ", " K "\n"                          \
  "}\n"                                                                        \
  "func.func @second(%dtout: " Q ", %q: " Q ", %k: " K ", %v: " K ", %tq: " Q  \
  ", %tk: " K ", %tv: " K ", %out: " Q ", %lse: " LSE ", %tout: " Q            \
  ", %tlse: " LSE ", %cu: " CU ") -> (" Q ", " K ", " K ") {\n"                \
  "  %r:3 = varlen.attn_jvp_grad %dtout, %q, %k, %v, %tq, %tk, %tv, %out,\n"   \
  "      %lse, %tout, %tlse, %cu, %cu " CAUSAL " : (" Q ", " Q ", " K ", " K   \
  ", " Q ", " K ", " K ", " Q ", " LSE ", " Q ", " LSE ", " CU ", " CU ")\n"   \
  "      -> (" Q ", " K ", " K ")\n"                                           \
  "  return %r#0, %r#1, %r#2 : " Q ", " K ", " K "\n"                          \
  "}\n"

/* Two sequences, of 5 rows and of 2. */
enum { TOKENS = 7, OF_Q = TOKENS * 2 * 8, OF_K = TOKENS * 8, OF_LSE = 2 * 7 };

/* q, k and v, or their tangents or gradients. */
typedef struct Rows {
  double q[OF_Q], k[OF_K], v[OF_K];
} Rows;

static int32_t cu[] = {0, 5, 7};
static double out[OF_Q], lse[OF_LSE], tout[OF_Q], tlse[OF_LSE];

static double next(void) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(state >> 40) / (1 << 23) - 1;
}

static void draw(double *values, int count) {
  for (int i = 0; i < count; ++i)
    values[i] = next();
}

static void drawRows(Rows *rows) {
  draw(rows->q, OF_Q);
  draw(rows->k, OF_K);
  draw(rows->v, OF_K);
}

static double dotRows(const Rows *a, const Rows *b) {
  double sum = 0;
  for (int i = 0; i < OF_Q; ++i)
    sum += a->q[i] * b->q[i];
  for (int i = 0; i < OF_K; ++i)
    sum += a->k[i] * b->k[i] + a->v[i] * b->v[i];
  return sum;
}

static Tensor ofQ(double *data) {
  return makeTensor(data, VARLEN_FLOAT, 64, 3, TOKENS, 2, 8);
}
static Tensor ofK(double *data) {
  return makeTensor(data, VARLEN_FLOAT, 64, 3, TOKENS, 1, 8);
}
static Tensor ofLse(double *data) {
  return makeTensor(data, VARLEN_FLOAT, 64, 2, 2, TOKENS, 0);
}

/* Calls a function of `arguments` arguments, which come before the results. */
static void call(VarlenFunction function, Tensor *tensors, size_t arguments,
                 size_t results) {
  const VarlenTensor *all[16];
  for (size_t i = 0; i < arguments + results; ++i)
    all[i] = use(&tensors[i]);
  EXPECT(!varlenFunctionCall(function, all, arguments, all + arguments, results,
                             NULL));
}

/* Sets out, lse, tout and tlse. */
static void attend(VarlenFunction tangents, Rows *at, Rows *along) {
  Tensor tensors[] = {ofQ(at->q),
                      ofK(at->k),
                      ofK(at->v),
                      ofQ(along->q),
                      ofK(along->k),
                      ofK(along->v),
                      makeTensor(cu, VARLEN_INT, 32, 1, 3, 0, 0),
                      ofQ(out),
                      ofLse(lse),
                      ofQ(tout),
                      ofLse(tlse)};
  call(tangents, tensors, 7, 4);
}

/* The gradients of <dout, out> at the rows that `attend` had. */
static void differentiate(VarlenFunction gradients, double *dout, Rows *at,
                          Rows *result) {
  Tensor tensors[] = {ofQ(dout),
                      ofQ(at->q),
                      ofK(at->k),
                      ofK(at->v),
                      ofQ(out),
                      ofLse(lse),
                      makeTensor(cu, VARLEN_INT, 32, 1, 3, 0, 0),
                      ofQ(result->q),
                      ofK(result->k),
                      ofK(result->v)};
  call(gradients, tensors, 7, 3);
}

/* The gradients of <dtout, tout> at the rows that `attend` had. */
static void differentiateTangent(VarlenFunction second, double *dtout, Rows *at,
                                 Rows *along, Rows *result) {
  Tensor tensors[] = {
      ofQ(dtout),     ofQ(at->q),
      ofK(at->k),     ofK(at->v),
      ofQ(along->q),  ofK(along->k),
      ofK(along->v),  ofQ(out),
      ofLse(lse),     ofQ(tout),
      ofLse(tlse),    makeTensor(cu, VARLEN_INT, 32, 1, 3, 0, 0),
      ofQ(result->q), ofK(result->k),
      ofK(result->v)};
  call(second, tensors, 12, 3);
}

static void shift(Rows *rows, const Rows *by, double times) {
  for (int i = 0; i < OF_Q; ++i)
    rows->q[i] += times * by->q[i];
  for (int i = 0; i < OF_K; ++i) {
    rows->k[i] += times * by->k[i];
    rows->v[i] += times * by->v[i];
  }
}

int main(void) {
  VarlenProgram program;
  EXPECT(!compile(SOURCE, NULL, &program));
  if (failures)
    return 1;
  VarlenFunction tangents = get(program, "tangents"),
                 gradients = get(program, "gradients"),
                 second = get(program, "second");
  Rows at, along, other;
  double cotangent[OF_Q];
  drawRows(&at);
  drawRows(&along);
  drawRows(&other);
  draw(cotangent, OF_Q);

  /* <cotangent, tangent of out> = <gradients, tangents>. */
  Rows first, mixed, ahead, behind;
  attend(tangents, &at, &along);
  double wanted = 0;
  for (int i = 0; i < OF_Q; ++i)
    wanted += cotangent[i] * tout[i];
  differentiate(gradients, cotangent, &at, &first);
  EXPECT(fabs(wanted) > 1e-3);
  EXPECT(fabs(dotRows(&first, &along) - wanted) < 1e-12);

  /* The gradients of <cotangent, tout>, along another direction, are the
     difference of what <cotangent, tout> is on both sides. */
  differentiateTangent(second, cotangent, &at, &along, &mixed);
  const double step = 1e-4;
  double sides[2] = {0, 0};
  for (int side = 0; side < 2; ++side) {
    shift(&at, &other, side ? -2 * step : step);
    attend(tangents, &at, &along);
    for (int i = 0; i < OF_Q; ++i)
      sides[side] += cotangent[i] * tout[i];
    differentiate(gradients, cotangent, &at, side ? &behind : &ahead);
  }
  wanted = (sides[0] - sides[1]) / (2 * step);
  EXPECT(fabs(wanted) > 1e-3);
  EXPECT(fabs(dotRows(&mixed, &other) - wanted) < 1e-7);
  /* As mixed derivatives are equal, so is the difference of gradients. */
  wanted = (dotRows(&ahead, &along) - dotRows(&behind, &along)) / (2 * step);
  EXPECT(fabs(dotRows(&mixed, &other) - wanted) < 1e-7);
  varlenProgramDestroy(program);
  return failures != 0;
}
