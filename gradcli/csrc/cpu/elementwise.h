/* elementwise.h -- the rows of scalar_ops.h as loops. Unary kernels take contiguous tensors;
 * binary ones take any strides, 0 included (that is how broadcasting arrives here). */

static int NAME(plan_unary)(const gc_call *call, gc_plan *plan, gc_error *error) {
  for (int32_t i = 0; i < call->ntensors; i++) {
    GC_REQUIRE(gc_contiguous(&call->tensors[i]), i, "a contiguous tensor");
    GC_REQUIRE(gc_same_shape(&call->tensors[i], &call->tensors[0]), i, "tensors of one shape");
    GC_REQUIRE(call->tensors[i].dtype == call->tensors[0].dtype, i, "one element type");
  }
  return gc_plan_simple(plan, gc_ceil_div(gc_numel(&call->tensors[0]), GC_BLOCK));
}

static int NAME(plan_broadcast)(const gc_call *call, gc_plan *plan, gc_error *error) {
  for (int32_t i = 1; i < call->ntensors; i++)
    GC_REQUIRE(gc_same_shape(&call->tensors[i], &call->tensors[0]), i, "tensors of one shape");
  for (int32_t i = 1; i + 1 < call->ntensors; i++)
    GC_REQUIRE(call->tensors[i].dtype == call->tensors[0].dtype, i, "one element type");
  return gc_plan_simple(plan, gc_ceil_div(gc_numel(&call->tensors[0]), GC_BLOCK));
}

static int NAME(plan_binary)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int32_t out = call->ntensors - 1;
  GC_REQUIRE(call->tensors[out].dtype == call->tensors[0].dtype, out, "one element type");
  return NAME(plan_broadcast)(call, plan, error);
}

static int NAME(plan_compare)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_REQUIRE(call->tensors[2].dtype == GC_BOOL, 2, "bool for the truth");
  return NAME(plan_broadcast)(call, plan, error);
}

#define UNARY_LOOP(name, y_of_x)                                                                   \
  static void NAME(run_##name)(const gc_job *job) {                                                \
    const REAL p = (REAL)job->call->options[0], q = (REAL)job->call->options[1];                   \
    (void)p, (void)q;                                                                              \
    BLOCK_OF(job, first, n);                                                                       \
    const REAL *in = (const REAL *)gc_first(&job->call->tensors[0]) + first;                       \
    REAL *out = (REAL *)gc_first(&job->call->tensors[1]) + first;                                  \
    for (int64_t i = 0; i < n; i++) {                                                              \
      const REAL x = in[i];                                                                        \
      out[i] = (REAL)(y_of_x);                                                                     \
    }                                                                                              \
  }

#define SLOPE_LOOP(name, saved, slope)                                                             \
  static inline REAL NAME(slope_##name)(const REAL saved, const REAL p, const REAL q) {            \
    (void)saved, (void)p, (void)q;                                                                 \
    return (REAL)(slope);                                                                          \
  }                                                                                                \
  static void NAME(run_##name##_backward)(const gc_job *job) {                                     \
    const REAL p = (REAL)job->call->options[0], q = (REAL)job->call->options[1];                   \
    BLOCK_OF(job, first, n);                                                                       \
    const REAL *kept = (const REAL *)gc_first(&job->call->tensors[0]) + first;                     \
    const REAL *grad = (const REAL *)gc_first(&job->call->tensors[1]) + first;                     \
    REAL *out = (REAL *)gc_first(&job->call->tensors[2]) + first;                                  \
    for (int64_t i = 0; i < n; i++)                                                                \
      out[i] = grad[i] * NAME(slope_##name)(kept[i], p, q);                                        \
  }

/* The spans of a walk, with the strides that matter spelled out so that the loops vectorise. */
#define SPAN_LOOP(OUT, a_at, b_at, value)                                                          \
  for (int64_t i = 0; i < n; i++) {                                                                \
    const REAL a = pa[a_at], b = pb[b_at];                                                         \
    (void)a, (void)b;                                                                              \
    out[i * so] = (OUT)(value);                                                                    \
  }

#define BINARY_LOOP(name, OUT, value)                                                              \
  static void NAME(run_##name)(const gc_job *job) {                                                \
    const gc_tensor *t = job->call->tensors;                                                       \
    const gc_tensor *const operands[3] = {&t[0], &t[1], &t[2]};                                    \
    BLOCK_OF(job, first, count);                                                                   \
    gc_walk w;                                                                                     \
    gc_walk_begin(&w, operands, 3, first, count);                                                  \
    const int32_t last = w.ndim - 1;                                                               \
    const int64_t sa = w.stride[0][last], sb = w.stride[1][last], so = w.stride[2][last];          \
    for (int64_t n; (n = gc_walk_span(&w)) > 0; gc_walk_advance(&w, n)) {                          \
      const REAL *pa = (const REAL *)gc_first(&t[0]) + w.offset[0];                                \
      const REAL *pb = (const REAL *)gc_first(&t[1]) + w.offset[1];                                \
      OUT *out = (OUT *)gc_first(&t[2]) + w.offset[2];                                             \
      if (so == 1 && sa == 1 && sb == 1) {                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
          const REAL a = pa[i], b = pb[i];                                                         \
          out[i] = (OUT)(value);                                                                   \
        }                                                                                          \
      } else if (so == 1 && sa == 1 && sb == 0) {                                                  \
        const REAL b = pb[0];                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                          \
          const REAL a = pa[i];                                                                    \
          out[i] = (OUT)(value);                                                                   \
        }                                                                                          \
      } else {                                                                                     \
        SPAN_LOOP(OUT, i * sa, i * sb, value)                                                      \
      }                                                                                            \
    }                                                                                              \
  }

/* out = grad * slope; tensors a, b, y, grad, out. */
#define SLOPE2_LOOP(name, slope)                                                                   \
  static void NAME(run_##name)(const gc_job *job) {                                                \
    const gc_tensor *t = job->call->tensors;                                                       \
    const gc_tensor *const operands[5] = {&t[0], &t[1], &t[2], &t[3], &t[4]};                      \
    BLOCK_OF(job, first, count);                                                                   \
    gc_walk w;                                                                                     \
    gc_walk_begin(&w, operands, 5, first, count);                                                  \
    const int32_t last = w.ndim - 1;                                                               \
    for (int64_t n; (n = gc_walk_span(&w)) > 0; gc_walk_advance(&w, n)) {                          \
      const REAL *in[4];                                                                           \
      for (int32_t k = 0; k < 4; k++)                                                              \
        in[k] = (const REAL *)gc_first(&t[k]) + w.offset[k];                                       \
      REAL *out = (REAL *)gc_first(&t[4]) + w.offset[4];                                           \
      for (int64_t i = 0; i < n; i++) {                                                            \
        const REAL a = in[0][i * w.stride[0][last]], b = in[1][i * w.stride[1][last]];             \
        const REAL y = in[2][i * w.stride[2][last]], grad = in[3][i * w.stride[3][last]];          \
        (void)a, (void)b, (void)y;                                                                 \
        out[i * w.stride[4][last]] = grad * (REAL)(slope);                                         \
      }                                                                                            \
    }                                                                                              \
  }

#define UNARY_ANY(name, y) UNARY_LOOP(name, y)
#define BINARY(name, y) BINARY_LOOP(name, REAL, y)
#define COMPARE(name, truth) BINARY_LOOP(name, uint8_t, truth)
#ifdef GC_IS_REAL
#define UNARY(name, y, saved, slope) UNARY_LOOP(name, y) SLOPE_LOOP(name, saved, slope)
#define UNARY_STEP(name, y) UNARY_LOOP(name, y)
#define BINARY_REAL(name, y, slope_a, slope_b)                                                     \
  BINARY_LOOP(name, REAL, y)                                                                       \
  SLOPE2_LOOP(name##_backward_a, slope_a) SLOPE2_LOOP(name##_backward_b, slope_b)
#else
#define UNARY(name, y, saved, slope)
#define UNARY_STEP(name, y)
#define BINARY_REAL(name, y, slope_a, slope_b)
#endif
#include "../scalar_ops.h"
