/* softmax.h -- rows of exp(x - max) / sum, and their logarithms, on tensors (outer, n, inner) along
 * n. Rows that lie side by side (inner > 1) are done together, as memory has them; each is added up
 * in the order of a row alone. The maximum goes first, because exp overflows float at 89 and every
 * logit above that would become NaN. A row of -inf alone gives NaN, as 0 / 0 should (and as torch
 * has it). */
#ifndef GC_SOFTMAX_H
#define GC_SOFTMAX_H

#include "../../maths_shared.h"
#include "../elementwise/vectors.h"
#include "../kernel.h"
#include "../lines.h"
#include "../matmul/gemm_tile.h"
#include "../reduce/sums.h"
#include "../type.h"
#include "../walk.h"

static int NAME(plan_rows)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  const int64_t rows = call->tensors[0].shape[0] * call->tensors[0].shape[2];
  return gc_plan_simple(plan, call->tensors[0].shape[1] ? gc_ceil_div(rows, GC_ROWS) : 0);
}

/* The larger of two; of a number and a NaN either, as a NaN shows in the sum of the exponentials.
 */
static inline REAL NAME(larger)(REAL a, REAL b) {
  return a > b ? a : b;
}

/* The largest of n numbers, -inf of none. Compilers do not vectorise it: in what order numbers are
 * compared shows where there are NaNs. */
static inline REAL NAME(largest)(const REAL *x, int64_t n) {
  REAL top = -(REAL)INFINITY;
  if (n < LANES) {
    for (int64_t i = 0; i < n; i++)
      top = NAME(larger)(x[i], top);
    return top;
  }
  NAME(vec) best = *(const NAME(loose) *)(x + n - LANES);
  for (int64_t i = 0; i + LANES < n; i += LANES)
    best = LARGER_OF(*(const NAME(loose) *)(x + i), best);
  return NAME(larger)(NAME(largest_of_each)(best), top);
}

/* `width` rows of n numbers from one place on, the next number of a row `stride` further; side by
 * side, or one alone. */
typedef struct {
  int64_t n, stride, width;
} NAME(rows);

/* The largest of each row; 0 for a row of -inf alone, as -inf - -inf is NaN. */
static void NAME(tops_of_rows)(const REAL *x, NAME(rows) r, REAL *top) {
  for (int64_t j = 0; j < r.width; j++)
    top[j] = r.stride == 1 ? NAME(largest)(x, r.n) : x[j];
  for (int64_t i = 1; r.stride != 1 && i < r.n; i++)
    for (int64_t j = 0; j < r.width; j++)
      top[j] = NAME(larger)(x[i * r.stride + j], top[j]);
  for (int64_t j = 0; j < r.width; j++)
    top[j] = top[j] == -(REAL)INFINITY ? 0 : top[j];
}

/* y = exp(x - top), and the sum of each row. What is no normal number of REAL becomes 0. */
static void NAME(exp_rows)(const REAL *x, REAL *y, NAME(rows) r, const REAL *top, double *sum) {
  if (r.stride == 1) {
    for (int64_t i = 0; i < r.n; i++)
      y[i] = m_exp_normal(x[i] - top[0]);
    sum[0] = NAME(sum)(y, r.n);
    return;
  }
  for (int64_t j = 0; j < r.width; j++)
    sum[j] = 0;
  for (int64_t i = 0; i < r.n; i++) {
    const REAL *const from = x + i * r.stride;
    REAL *const to = y + i * r.stride;
    for (int64_t j = 0; j < r.width; j++)
      to[j] = m_exp_normal(from[j] - top[j]);
    for (int64_t j = 0; j < r.width; j++)
      sum[j] += (double)to[j];
  }
}

/* total = sum of `term` over a row, as by GC_SUM, of each row `j`. */
#define SUM_ROWS(total, r, i, j, term)                                                             \
  do {                                                                                             \
    double lanes_[GC_LANES][GC_ROWS];                                                              \
    for (int64_t k_ = 0; k_ < GC_LANES; k_++)                                                      \
      for (int64_t j = 0; j < (r).width; j++)                                                      \
        lanes_[k_][j] = 0;                                                                         \
    for (int64_t i = 0; i < (r).n; i++) {                                                          \
      double *const lane_ = lanes_[i % GC_LANES];                                                  \
      for (int64_t j = 0; j < (r).width; j++)                                                      \
        lane_[j] += (term);                                                                        \
    }                                                                                              \
    for (int64_t j = 0; j < (r).width; j++)                                                        \
      (total)[j] = (REAL)(((lanes_[0][j] + lanes_[4][j]) + (lanes_[1][j] + lanes_[5][j])) +        \
                          ((lanes_[2][j] + lanes_[6][j]) + (lanes_[3][j] + lanes_[7][j])));        \
  } while (0)

/* Calls `row` for the rows of the task, as many at a time as lie side by side from `at` on. */
#define EACH_ROW(job, at, r, row)                                                                  \
  do {                                                                                             \
    const gc_tensor *t_ = (job)->call->tensors;                                                    \
    const int64_t n_ = t_[0].shape[1], inner_ = t_[0].shape[2], rows_ = t_[0].shape[0] * inner_;   \
    const int64_t end_ = gc_min(rows_, ((job)->task + 1) * GC_ROWS);                               \
    NAME(rows) r = {.n = n_, .stride = inner_};                                                    \
    for (int64_t r_ = (job)->task * GC_ROWS; r_ < end_; r_ += r.width) {                           \
      r.width = gc_min(end_ - r_, inner_ - r_ % inner_);                                           \
      const int64_t at = r_ / inner_ * n_ * inner_ + r_ % inner_;                                  \
      row;                                                                                         \
    }                                                                                              \
  } while (0)

static void NAME(softmax_rows)(const REAL *x, REAL *y, NAME(rows) r) {
  REAL top[GC_ROWS], scale[GC_ROWS];
  double sum[GC_ROWS];
  NAME(tops_of_rows)(x, r, top);
  NAME(exp_rows)(x, y, r, top, sum);
  for (int64_t j = 0; j < r.width; j++)
    scale[j] = (REAL)(1 / sum[j]);
  if (r.stride == 1) {
    for (int64_t i = 0; i < r.n; i++)
      y[i] *= scale[0];
    return;
  }
  for (int64_t i = 0; i < r.n; i++)
    for (int64_t j = 0; j < r.width; j++)
      y[i * r.stride + j] *= scale[j];
}

static void NAME(run_softmax_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const REAL *x = (const REAL *)gc_first(&t[0]);
  REAL *y = (REAL *)gc_first(&t[1]);
  EACH_ROW(job, at, r, NAME(softmax_rows)(x + at, y + at, r));
}

static void NAME(log_softmax_rows)(const REAL *x, REAL *y, NAME(rows) r) {
  REAL top[GC_ROWS], log_sum[GC_ROWS];
  double sum[GC_ROWS];
  NAME(tops_of_rows)(x, r, top);
  NAME(exp_rows)(x, y, r, top, sum);
  for (int64_t j = 0; j < r.width; j++)
    log_sum[j] = (REAL)log(sum[j]);
  if (r.stride == 1) {
    for (int64_t i = 0; i < r.n; i++)
      y[i] = x[i] - top[0] - log_sum[0];
    return;
  }
  for (int64_t i = 0; i < r.n; i++)
    for (int64_t j = 0; j < r.width; j++)
      y[i * r.stride + j] = x[i * r.stride + j] - top[j] - log_sum[j];
}

static void NAME(run_log_softmax_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const REAL *x = (const REAL *)gc_first(&t[0]);
  REAL *y = (REAL *)gc_first(&t[1]);
  EACH_ROW(job, at, r, NAME(log_softmax_rows)(x + at, y + at, r));
}

/* y, grad -> y * (grad - sum(y * grad)) */
static void NAME(softmax_slope)(const REAL *y, const REAL *grad, REAL *out, NAME(rows) r) {
  if (r.stride == 1) {
    const REAL dot = (REAL)NAME(dot)(y, grad, r.n);
    for (int64_t i = 0; i < r.n; i++)
      out[i] = y[i] * (grad[i] - dot);
    return;
  }
  REAL dot[GC_ROWS];
  SUM_ROWS(dot, r, i, j, (double)y[i * r.stride + j] * (double)grad[i * r.stride + j]);
  for (int64_t i = 0; i < r.n; i++)
    for (int64_t j = 0; j < r.width; j++)
      out[i * r.stride + j] = y[i * r.stride + j] * (grad[i * r.stride + j] - dot[j]);
}

static void NAME(run_softmax_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const REAL *y = (const REAL *)gc_first(&t[0]), *grad = (const REAL *)gc_first(&t[1]);
  REAL *out = (REAL *)gc_first(&t[2]);
  EACH_ROW(job, at, r, NAME(softmax_slope)(y + at, grad + at, out + at, r));
}

/* y, grad -> grad - exp(y) * sum(grad) */
static void NAME(log_softmax_slope)(const REAL *y, const REAL *grad, REAL *out, NAME(rows) r) {
  if (r.stride == 1) {
    GC_SUM(sum, r.n, i, (double)grad[i]);
    for (int64_t i = 0; i < r.n; i++)
      out[i] = grad[i] - m_exp(y[i]) * (REAL)sum;
    return;
  }
  REAL sum[GC_ROWS];
  SUM_ROWS(sum, r, i, j, (double)grad[i * r.stride + j]);
  for (int64_t i = 0; i < r.n; i++)
    for (int64_t j = 0; j < r.width; j++)
      out[i * r.stride + j] = grad[i * r.stride + j] - m_exp(y[i * r.stride + j]) * sum[j];
}

static void NAME(run_log_softmax_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const REAL *y = (const REAL *)gc_first(&t[0]), *grad = (const REAL *)gc_first(&t[1]);
  REAL *out = (REAL *)gc_first(&t[2]);
  EACH_ROW(job, at, r, NAME(log_softmax_slope)(y + at, grad + at, out + at, r));
}

#undef EACH_ROW
#undef SUM_ROWS

#endif
