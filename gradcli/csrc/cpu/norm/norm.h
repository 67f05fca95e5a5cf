/* norm.h -- layer norm over the last n elements of (rows, n). Both keep the mean and 1 / deviation
 * of every row for the gradient. A weight or bias of no elements is one left out. */
#ifndef GC_NORM_H
#define GC_NORM_H

#include "../../maths_shared.h"
#include "../elementwise/maths_base.h"
#include "../kernel.h"
#include "../lines.h"
#include "../matmul/gemm_tile.h"
#include "../reduce/sums.h"
#include "../type.h"
#include "../walk.h"

static int NAME(plan_layer_norm)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  return gc_plan_simple(plan, gc_ceil_div(call->tensors[0].shape[0], GC_ROWS));
}

/* x minus its mean in REAL: taking it off in two parts, the second what the first had to round,
 * leaves no error but that of the differences. */
typedef struct {
  REAL mean, rest, rstd;
} NAME(moments);

static inline REAL NAME(normal)(REAL x, NAME(moments) m) {
  return ((x - m.mean) - m.rest) * m.rstd;
}

static NAME(moments) NAME(moments_of)(const REAL *x, int64_t n, double eps) {
  const double share = 1 / (double)n, mean = NAME(sum)(x, n) * share;
  GC_SUM_EIGHTS(squares, n, i, (WIDE(EIGHT(x + i)) - mean) * (WIDE(EIGHT(x + i)) - mean),
                ((double)x[i] - mean) * ((double)x[i] - mean));
  const REAL near = (REAL)mean;
  return (NAME(moments)){near, (REAL)(mean - (double)near),
                         1 / m_sqrt((REAL)(squares * share + eps))};
}

/* `weighted` and `shifted` are constants where this is called, so that no loop asks for them. */
static inline __attribute__((always_inline)) void
NAME(layer_norm_row)(const bool weighted, const bool shifted, const REAL *x, NAME(moments) m,
                     const REAL *weight, const REAL *bias, REAL *y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (weighted && shifted)
      y[i] = M_FMA(NAME(normal)(x[i], m), weight[i], bias[i]);
    else
      y[i] = NAME(normal)(x[i], m) * (weighted ? weight[i] : 1) + (shifted ? bias[i] : 0);
}

/* x, weight, bias -> y, mean, rstd; options[0]: eps */
static void NAME(run_layer_norm)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[0].shape[1], end = gc_min(t[0].shape[0], (job->task + 1) * GC_ROWS);
  const REAL *weight = t[1].shape[0] ? (const REAL *)gc_first(&t[1]) : NULL;
  const REAL *bias = t[2].shape[0] ? (const REAL *)gc_first(&t[2]) : NULL;
  REAL *means = (REAL *)gc_first(&t[4]), *rstds = (REAL *)gc_first(&t[5]);
  for (int64_t row = job->task * GC_ROWS; row < end; row++) {
    const REAL *x = (const REAL *)gc_first(&t[0]) + row * n;
    REAL *y = (REAL *)gc_first(&t[3]) + row * n;
    const NAME(moments) m = NAME(moments_of)(x, n, job->call->options[0]);
    means[row] = m.mean;
    rstds[row] = m.rstd;
    if (weight && bias)
      NAME(layer_norm_row)(true, true, x, m, weight, bias, y, n);
    else if (weight)
      NAME(layer_norm_row)(true, false, x, m, weight, bias, y, n);
    else
      NAME(layer_norm_row)(false, bias != NULL, x, m, weight, bias, y, n);
  }
}

/* At most GC_MANY groups of rows; each adds its rows up for the gradients of weight and bias. */
static inline int64_t NAME(rows_of_group)(const gc_tensor *x) {
  const int64_t rows = x->shape[0], n = gc_max(1, x->shape[1]);
  return gc_max(1, gc_max(gc_min(rows, GC_BLOCK / n), gc_ceil_div(rows, GC_MANY)));
}

/* x, grad, mean, rstd, weight -> gradients of x, weight and bias */
static int NAME(plan_layer_norm_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *x = &call->tensors[0];
  const int64_t n = x->shape[1];
  (void)error;
  plan->phases = 2;
  plan->tasks[0] = gc_ceil_div(x->shape[0], NAME(rows_of_group)(x));
  plan->tasks[1] = gc_ceil_div(n, GC_WIDTH);
  plan->shared_bytes = 2 * plan->tasks[0] * n * (int64_t)sizeof(double);
  return GC_OK;
}

/* With g = grad * weight and h = (x - mean) * rstd:
 * out = rstd * (g - mean(g) - h * mean(g * h)); h is kept in `out` meanwhile. The sums for weight
 * and bias go on; two rows at a time spare half of what they read and write. */
static inline __attribute__((always_inline)) void
NAME(layer_norm_slopes)(const int rows, const bool weighted, const REAL *x, const REAL *grad,
                        const REAL *mean, const REAL *rstd, const REAL *weight, REAL *out,
                        double *dweight, double *dbias, int64_t n) {
  gc_eight sums[2] = {{0}, {0}}, dots[2] = {{0}, {0}};
  double sum[2] = {0}, dot[2] = {0};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    gc_eight of_weight = *(gc_loose_eight *)(dweight + i);
    gc_eight of_bias = *(gc_loose_eight *)(dbias + i);
    GC_UNROLL for (int r = 0; r < rows; r++) {
      const NAME(eight) h = (EIGHT(x + r * n + i) - mean[r]) * rstd[r], g = EIGHT(grad + r * n + i);
      const gc_eight wide_h = WIDE(h), wide_g = WIDE(g);
      const gc_eight inner = weighted ? WIDE(g * EIGHT(weight + i)) : wide_g;
      *(NAME(eight) *)(out + r * n + i) = h;
      of_weight += wide_g * wide_h;
      of_bias += wide_g;
      sums[r] += inner;
      dots[r] += inner * wide_h;
    }
    *(gc_loose_eight *)(dweight + i) = of_weight;
    *(gc_loose_eight *)(dbias + i) = of_bias;
  }
  for (; i < n; i++)
    for (int r = 0; r < rows; r++) {
      const REAL h = (x[r * n + i] - mean[r]) * rstd[r], g = grad[r * n + i];
      const REAL inner = weighted ? g * weight[i] : g;
      out[r * n + i] = h;
      dweight[i] += (double)g * (double)h;
      dbias[i] += (double)g;
      sum[r] += (double)inner;
      dot[r] += (double)inner * (double)h;
    }
  for (int r = 0; r < rows; r++, grad += n, out += n) {
    const REAL a = (REAL)((sum[r] + gc_sum_of_eight(&sums[r])) / (double)n);
    const REAL b = (REAL)((dot[r] + gc_sum_of_eight(&dots[r])) / (double)n);
    for (i = 0; i < n; i++)
      out[i] = rstd[r] * ((weighted ? grad[i] * weight[i] : grad[i]) - a - out[i] * b);
  }
}

static void NAME(run_layer_norm_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t rows = t[0].shape[0], n = t[0].shape[1], group = NAME(rows_of_group)(&t[0]);
  double *parts = (double *)job->shared;
  if (job->phase == 1) {
    const int64_t groups = gc_ceil_div(rows, group), end = gc_min(n, (job->task + 1) * GC_WIDTH);
    for (int64_t i = job->task * GC_WIDTH; i < end; i++) {
      double weight = 0, bias = 0;
      for (int64_t k = 0; k < groups; k++) {
        weight += parts[2 * k * n + i];
        bias += parts[(2 * k + 1) * n + i];
      }
      ((REAL *)gc_first(&t[6]))[i] = (REAL)weight;
      ((REAL *)gc_first(&t[7]))[i] = (REAL)bias;
    }
    return;
  }
  const REAL *weight = t[4].shape[0] ? (const REAL *)gc_first(&t[4]) : NULL;
  double *dweight = parts + 2 * job->task * n, *dbias = dweight + n;
  for (int64_t i = 0; i < 2 * n; i++)
    dweight[i] = 0;
  const int64_t end = gc_min(rows, (job->task + 1) * group);
  for (int64_t row = job->task * group; row < end; row += 2) {
    const REAL *x = (const REAL *)gc_first(&t[0]) + row * n;
    const REAL *grad = (const REAL *)gc_first(&t[1]) + row * n;
    const REAL *mean = (const REAL *)gc_first(&t[2]) + row;
    const REAL *rstd = (const REAL *)gc_first(&t[3]) + row;
    REAL *out = (REAL *)gc_first(&t[5]) + row * n;
    if (row + 1 < end && weight)
      NAME(layer_norm_slopes)(2, true, x, grad, mean, rstd, weight, out, dweight, dbias, n);
    else if (row + 1 < end)
      NAME(layer_norm_slopes)(2, false, x, grad, mean, rstd, weight, out, dweight, dbias, n);
    else
      NAME(layer_norm_slopes)(1, weight != NULL, x, grad, mean, rstd, weight, out, dweight, dbias,
                              n);
  }
}

#endif
