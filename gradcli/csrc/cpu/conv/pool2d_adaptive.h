/* pool2d_adaptive.h -- pooling to a given size, on tensors (planes, rows, columns): output i of n
 * looks at places floor(i length / n) to ceil((i + 1) length / n) - 1. A task owns whole planes. */
#ifndef GC_POOL2D_ADAPTIVE_H
#define GC_POOL2D_ADAPTIVE_H

#include "../kernel.h"
#include "../reduce/sums.h"
#include "../type.h"
#include "pool2d_shape.h"

static inline gc_range gc_adaptive(int64_t i, int64_t n, int64_t length) {
  return (gc_range){i * length / n, gc_ceil_div((i + 1) * length, n)};
}

static inline int gc_adaptive_plan(const gc_call *call, int32_t big, int32_t small, gc_plan *plan,
                                   gc_error *error) {
  const int status = gc_pool2d_check(call, error);
  if (status)
    return status;
  const int64_t *shape = call->tensors[big].shape;
  GC_REQUIRE(shape[1] > 0 && shape[2] > 0, big, "planes that are not empty");
  const gc_pool2d s = gc_pool2d_shape(call, big, small);
  return gc_plan_simple(plan, gc_ceil_div(s.planes, s.group));
}

/* ---- max: tensors x, out, indices; max_pool2d_backward is its backward ---- */

/* The first of equal maxima wins, and the first NaN wins over all. */
static int64_t NAME(largest_at)(const REAL *x, int64_t width, gc_range rows, gc_range columns) {
  int64_t best = rows.from * width + columns.from;
  for (int64_t i = rows.from; i < rows.to; i++)
    for (int64_t at = i * width + columns.from; at < i * width + columns.to; at++)
      if (!(x[at] <= x[best]) && x[best] == x[best])
        best = at;
  return best;
}

static void NAME(run_adaptive_max_pool2d_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_pool2d s = gc_pool2d_shape(job->call, 0, 1);
  const int64_t begin = job->task * s.group, end = gc_min(s.planes, begin + s.group);
  const int64_t places = s.oh * s.ow, pixels = s.h * s.w;
  for (int64_t plane = begin; plane < end; plane++) {
    const REAL *x = (const REAL *)gc_first(&t[0]) + plane * pixels;
    REAL *const out = (REAL *)gc_first(&t[1]) + plane * places;
    int64_t *const index = (int64_t *)gc_first(&t[2]) + plane * places;
    for (int64_t i = 0; i < s.oh; i++)
      for (int64_t j = 0; j < s.ow; j++) {
        const int64_t at =
            NAME(largest_at)(x, s.w, gc_adaptive(i, s.oh, s.h), gc_adaptive(j, s.ow, s.w));
        out[i * s.ow + j] = x[at];
        index[i * s.ow + j] = at;
      }
  }
}

/* ---- average: tensors x, out ---- */

static int NAME(plan_adaptive_forward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  return gc_adaptive_plan(call, 0, 1, plan, error);
}

static int NAME(plan_adaptive_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  return gc_adaptive_plan(call, 1, 0, plan, error);
}

/* The sum of a part of a plane; what spans whole rows is one piece of memory. */
static double NAME(part_sum)(const REAL *x, int64_t width, gc_range rows, gc_range columns) {
  if (columns.to - columns.from == width)
    return NAME(sum)(x + rows.from * width, (rows.to - rows.from) * width);
  double total = 0;
  for (int64_t i = rows.from; i < rows.to; i++)
    for (int64_t j = columns.from; j < columns.to; j++)
      total += (double)x[i * width + j];
  return total;
}

static void NAME(run_adaptive_avg_pool2d_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_pool2d s = gc_pool2d_shape(job->call, 0, 1);
  const int64_t begin = job->task * s.group, end = gc_min(s.planes, begin + s.group);
  REAL *out = (REAL *)gc_first(&t[1]) + begin * s.oh * s.ow;
  for (int64_t plane = begin; plane < end; plane++) {
    const REAL *x = (const REAL *)gc_first(&t[0]) + plane * s.h * s.w;
    for (int64_t i = 0; i < s.oh; i++)
      for (int64_t j = 0; j < s.ow; j++, out++) {
        const gc_range rows = gc_adaptive(i, s.oh, s.h), columns = gc_adaptive(j, s.ow, s.w);
        const int64_t count = (rows.to - rows.from) * (columns.to - columns.from);
        *out = (REAL)(NAME(part_sum)(x, s.w, rows, columns) / (double)count);
      }
  }
}

/* tensors grad, grad_x */
static void NAME(run_adaptive_avg_pool2d_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_pool2d s = gc_pool2d_shape(job->call, 1, 0);
  const int64_t begin = job->task * s.group, end = gc_min(s.planes, begin + s.group);
  const REAL *grad = (const REAL *)gc_first(&t[0]) + begin * s.oh * s.ow;
  for (int64_t plane = begin; plane < end; plane++) {
    REAL *const out = (REAL *)gc_first(&t[1]) + plane * s.h * s.w;
    memset(out, 0, (size_t)(s.h * s.w) * sizeof(REAL));
    for (int64_t p = 0; p < s.oh; p++)
      for (int64_t q = 0; q < s.ow; q++, grad++) {
        const gc_range rows = gc_adaptive(p, s.oh, s.h), columns = gc_adaptive(q, s.ow, s.w);
        const double count = (double)((rows.to - rows.from) * (columns.to - columns.from));
        const REAL share = (REAL)((double)*grad / count);
        for (int64_t i = rows.from; i < rows.to; i++)
          for (int64_t j = columns.from; j < columns.to; j++)
            out[i * s.w + j] += share;
      }
  }
}

#endif
