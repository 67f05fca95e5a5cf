/* reduce.h -- sum, mean and variance of (outer, n, inner) along n. Floats are added in double,
 * integers in int64. */
#ifndef GC_REDUCE_H
#define GC_REDUCE_H

#include "../kernel.h"
#include "../lines.h"
#include "../type.h"
#include "../walk.h"
#ifdef GC_IS_REAL
#include "sums.h"
#endif

#define GC_ROWS_AT_ONCE 4

static int NAME(plan_sum)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *x = &call->tensors[0], *y = &call->tensors[1];
#ifdef GC_IS_REAL
  GC_REQUIRE(y->dtype == x->dtype, 1, "one element type");
#else
  GC_REQUIRE(y->dtype == GC_I64, 1, "int64 for a sum of integers");
#endif
  const gc_cut c = gc_cut_of(x);
  plan->phases = c.chunks > 1 ? 2 : 1;
  plan->tasks[0] = c.tasks;
  plan->tasks[1] = gc_ceil_div(c.results, GC_BLOCK);
  plan->shared_bytes = c.chunks > 1 ? c.chunks * c.results * (int64_t)sizeof(ACC) : 0;
  return GC_OK;
}

#ifdef GC_IS_REAL
/* sum[j] += four rows of x, one after the other, in one pass over `sum`. */
static inline void NAME(add_rows)(const REAL *x, int64_t width, int64_t inner, double *sum) {
  int64_t j = 0;
  for (; j + 8 <= width; j += 8) {
    gc_eight total = *(const gc_loose_eight *)(sum + j);
    for (int k = 0; k < 4; k++)
      total += WIDE(EIGHT(x + k * inner + j));
    *(gc_loose_eight *)(sum + j) = total;
  }
  for (; j < width; j++)
    for (int k = 0; k < 4; k++)
      sum[j] += (double)x[k * inner + j];
}
#endif

/* sum[j] = sum over i of x[i * inner + j] */
static void NAME(sum_line)(const REAL *x, int64_t n, int64_t width, int64_t inner, ACC *sum) {
  int64_t i = 0;
  if (inner == 1) {
#ifdef GC_IS_REAL
    sum[0] = NAME(sum)(x, n);
#else
    sum[0] = 0;
    for (; i < n; i++)
      sum[0] += (ACC)x[i];
#endif
    return;
  }
  for (int64_t j = 0; j < width; j++)
    sum[j] = 0;
#ifdef GC_IS_REAL
  for (; i + 4 <= n; i += 4)
    NAME(add_rows)(x + i * inner, width, inner, sum);
#endif
  for (; i < n; i++)
    for (int64_t j = 0; j < width; j++)
      sum[j] += (ACC)x[i * inner + j];
}

#ifdef GC_IS_REAL
/* The sums of short rows that lie one behind the other, each as by `sum_line`: of those one would
 * wait for the other. */
static void NAME(sum_rows)(const REAL *x, int64_t n, double *sum) {
  gc_eight lanes[GC_ROWS_AT_ONCE] = {{0}};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < GC_ROWS_AT_ONCE; k++)
      lanes[k] += WIDE(EIGHT(x + k * n + i));
  for (int k = 0; k < GC_ROWS_AT_ONCE; k++) {
    double total = 0;
    for (int64_t j = i; j < n; j++)
      total += (double)x[k * n + j];
    sum[k] = total + gc_sum_of_eight(&lanes[k]);
  }
}
#endif

static void NAME(sum_phase)(const gc_job *job, const gc_cut *c, ACC *parts, double divisor) {
  const gc_tensor *t = job->call->tensors;
  const gc_share s = gc_share_of(c, job->task);
  OUT *out = (OUT *)gc_first(&t[1]);
  int64_t l = s.first;
#ifdef GC_IS_REAL
  const bool short_rows = c->inner == 1 && c->chunks == 1 && c->n < GC_SHORT_SUM;
  for (; short_rows && l + GC_ROWS_AT_ONCE <= s.last; l += GC_ROWS_AT_ONCE) {
    double sum[GC_ROWS_AT_ONCE];
    NAME(sum_rows)((const REAL *)gc_first(&t[0]) + l * c->n, c->n, sum);
    for (int64_t k = 0; k < GC_ROWS_AT_ONCE; k++)
      out[l + k] = (OUT)(sum[k] / divisor);
  }
#endif
  for (; l < s.last; l++) {
    const gc_line line = gc_line_of(c, l);
    ACC sum[GC_WIDTH];
    NAME(sum_line)((const REAL *)gc_first(&t[0]) + line.at + s.from * c->inner, s.to - s.from,
                   line.width, c->inner, sum);
    for (int64_t j = 0; j < line.width; j++)
      if (c->chunks > 1)
        parts[s.part * c->results + line.result + j] = sum[j];
      else
        out[line.result + j] = (OUT)(sum[j] / (ACC)divisor);
  }
}

/* Puts the parts of all chunks together, in order. */
static inline ACC NAME(total_of)(const ACC *parts, const gc_cut *c, int64_t result) {
  ACC total = 0;
  for (int64_t k = 0; k < c->chunks; k++)
    total += parts[k * c->results + result];
  return total;
}

static void NAME(divided_sum)(const gc_job *job, double divisor) {
  const gc_cut c = gc_cut_of(&job->call->tensors[0]);
  ACC *parts = (ACC *)job->shared;
  if (job->phase == 0) {
    NAME(sum_phase)(job, &c, parts, divisor);
    return;
  }
  OUT *out = (OUT *)gc_first(&job->call->tensors[1]);
  const int64_t end = gc_min(c.results, (job->task + 1) * GC_BLOCK);
  for (int64_t r = job->task * GC_BLOCK; r < end; r++)
    out[r] = (OUT)(NAME(total_of)(parts, &c, r) / (ACC)divisor);
}

static void NAME(run_sum)(const gc_job *job) {
  NAME(divided_sum)(job, 1);
}

#ifdef GC_IS_REAL
/* options[0]: what the sum is divided by (0 for nothing to average: NaN). */
static void NAME(run_mean)(const gc_job *job) {
  NAME(divided_sum)(job, job->call->options[0]);
}

/* x -> variance, mean; options[0]: what is taken off n; sizes[0]: 1 for the square root. */
static int NAME(plan_var)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  const gc_cut c = gc_cut_of(&call->tensors[0]);
  plan->phases = c.chunks > 1 ? 3 : 1;
  plan->tasks[0] = plan->tasks[1] = c.tasks;
  plan->tasks[2] = gc_ceil_div(c.results, GC_BLOCK);
  plan->shared_bytes = c.chunks > 1 ? 2 * c.chunks * c.results * (int64_t)sizeof(double) : 0;
  return GC_OK;
}

/* sum[j] = sum over i of (x[i * inner + j] - mean[j]) squared */
static void NAME(square_line)(const REAL *x, int64_t n, int64_t width, int64_t inner,
                              const double *mean, double *sum) {
  if (inner == 1) {
    const double m = mean[0];
    GC_SUM(total, n, i, ((double)x[i] - m) * ((double)x[i] - m));
    sum[0] = total;
    return;
  }
  for (int64_t j = 0; j < width; j++)
    sum[j] = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < width; j++) {
      const double d = (double)x[i * inner + j] - mean[j];
      sum[j] += d * d;
    }
}

static void NAME(write_var)(const gc_call *call, const gc_cut *c, int64_t r, double squares,
                            double mean) {
  const double free = (double)c->n - call->options[0];
  const double variance = squares / (free > 0 ? free : 0);
  ((REAL *)gc_first(&call->tensors[1]))[r] = (REAL)(call->sizes[0] ? sqrt(variance) : variance);
  ((REAL *)gc_first(&call->tensors[2]))[r] = (REAL)mean;
}

static void NAME(var_whole)(const gc_job *job, const gc_cut *c) {
  const REAL *x = (const REAL *)gc_first(&job->call->tensors[0]);
  const gc_share s = gc_share_of(c, job->task);
  double mean[GC_WIDTH], squares[GC_WIDTH];
  for (int64_t l = s.first; l < s.last; l++) {
    const gc_line line = gc_line_of(c, l);
    NAME(sum_line)(x + line.at, c->n, line.width, c->inner, mean);
    for (int64_t j = 0; j < line.width; j++)
      mean[j] /= (double)c->n;
    NAME(square_line)(x + line.at, c->n, line.width, c->inner, mean, squares);
    for (int64_t j = 0; j < line.width; j++)
      NAME(write_var)(job->call, c, line.result + j, squares[j], mean[j]);
  }
}

/* Phase 0: parts of the sum; phase 1: parts of the squares, as the mean is now known. */
static void NAME(var_part)(const gc_job *job, const gc_cut *c) {
  const gc_share s = gc_share_of(c, job->task);
  const gc_line line = gc_line_of(c, s.first);
  const REAL *x = (const REAL *)gc_first(&job->call->tensors[0]) + line.at + s.from * c->inner;
  double *sums = (double *)job->shared, *squares = sums + c->chunks * c->results;
  double mean[GC_WIDTH];
  if (job->phase == 0) {
    NAME(sum_line)(x, s.to - s.from, line.width, c->inner,
                   sums + s.part * c->results + line.result);
    return;
  }
  for (int64_t j = 0; j < line.width; j++)
    mean[j] = NAME(total_of)(sums, c, line.result + j) / (double)c->n;
  NAME(square_line)(x, s.to - s.from, line.width, c->inner, mean,
                    squares + s.part * c->results + line.result);
}

static void NAME(run_var)(const gc_job *job) {
  const gc_cut c = gc_cut_of(&job->call->tensors[0]);
  if (c.chunks == 1)
    NAME(var_whole)(job, &c);
  else if (job->phase < 2)
    NAME(var_part)(job, &c);
  else {
    const double *sums = (const double *)job->shared, *squares = sums + c.chunks * c.results;
    const int64_t end = gc_min(c.results, (job->task + 1) * GC_BLOCK);
    for (int64_t r = job->task * GC_BLOCK; r < end; r++)
      NAME(write_var)(job->call, &c, r, NAME(total_of)(squares, &c, r),
                      NAME(total_of)(sums, &c, r) / (double)c.n);
  }
}

/* x, y, mean, grad -> the gradient of x. options and sizes as for var; y is var's result. */
static int NAME(plan_var_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  return gc_plan_simple(plan, gc_cut_of(&call->tensors[0]).tasks);
}

static void NAME(run_var_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_cut c = gc_cut_of(&t[0]);
  const gc_share s = gc_share_of(&c, job->task);
  const REAL *y = (const REAL *)gc_first(&t[1]), *mean = (const REAL *)gc_first(&t[2]);
  const REAL *grad = (const REAL *)gc_first(&t[3]);
  const double n = (double)c.n - job->call->options[0], free = n > 0 ? n : 0;
  for (int64_t l = s.first; l < s.last; l++) {
    const gc_line line = gc_line_of(&c, l);
    const REAL *x = (const REAL *)gc_first(&t[0]) + line.at, *m = mean + line.result;
    REAL *out = (REAL *)gc_first(&t[4]) + line.at;
    REAL slope[GC_WIDTH];
    for (int64_t j = 0; j < line.width; j++) {
      const double g = (double)grad[line.result + j], root = (double)y[line.result + j];
      if (job->call->sizes[0]) /* the root of 0 has slope infinity; torch says 0 there */
        slope[j] = root == 0 ? 0 : (REAL)(g / (root * free));
      else
        slope[j] = (REAL)(2 * g / free);
    }
    for (int64_t i = s.from; i < s.to; i++)
      for (int64_t j = 0; j < line.width; j++)
        out[i * c.inner + j] = slope[j] * (x[i * c.inner + j] - m[j]);
  }
}
#endif

#endif
