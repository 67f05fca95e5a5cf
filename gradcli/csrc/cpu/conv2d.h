/* conv2d.h -- convolution as a matrix product with the image's windows as columns. sizes: stride 2,
 * padding 2 (above and left), dilation 2, groups. */

#include "conv2d_window.h"

/* ---- out = x * weight + bias; tensors x, weight, bias (OC, or empty), out ---- */

static int NAME(plan_conv2d_forward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = gc_conv2d_check(call, 0, 1, 3, error);
  if (status)
    return status;
  const gc_tensor *bias = &call->tensors[2];
  GC_REQUIRE(bias->ndim == 1 && gc_contiguous(bias), 2, "a contiguous tensor of 1 dimension");
  GC_REQUIRE(bias->dtype == call->tensors[0].dtype, 2, "tensors of one element type");
  GC_REQUIRE(bias->shape[0] == 0 || bias->shape[0] == call->tensors[1].shape[0], 2,
             "a bias for each filter");
  const gc_conv2d s = gc_conv2d_shape(call, 0, 1, 3);
  plan->worker_bytes = GEMM_SCRATCH + s.bytes;
  return gc_plan_simple(plan, s.oc && s.positions ? s.images * s.groups * s.chunks : 0);
}

static void NAME(run_conv2d_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_conv2d s = gc_conv2d_shape(job->call, 0, 1, 3);
  const int64_t plane = job->task / s.chunks, group = plane % s.groups;
  const int64_t first = job->task % s.chunks * s.rows;
  const int64_t rows = gc_min(s.rows, s.oh - first), count = rows * s.ow;
  REAL *const gemm = job->own, *const columns = gemm + GEMM_SCRATCH / (int64_t)sizeof(REAL);
  REAL *out = (REAL *)gc_first(&t[3]) + plane * s.oc * s.positions + first * s.ow;
  const bool biased = t[2].shape[0] > 0;
  for (int64_t oc = 0; biased && oc < s.oc; oc++) {
    const REAL bias = ((const REAL *)gc_first(&t[2]))[group * s.oc + oc];
    for (int64_t p = 0; p < count; p++)
      out[oc * s.positions + p] = bias;
  }
  NAME(columns_of)(&s, (const REAL *)gc_first(&t[0]) + plane * s.c * s.h * s.w, first, rows,
                   columns);
  const REAL *weight = (const REAL *)gc_first(&t[1]) + group * s.oc * s.depth;
  NAME(gemm)(s.oc, count, s.depth, (NAME(matrix)){weight, s.depth, 1},
             (NAME(matrix)){columns, count, 1}, out, s.positions, biased, gemm);
}

/* ---- grad_x = the columns weight^T grad, added up where windows overlap; tensors grad, weight,
 * grad_x ---- */

static int NAME(plan_conv2d_grad_input)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = gc_conv2d_check(call, 2, 1, 0, error);
  if (status)
    return status;
  const gc_conv2d s = gc_conv2d_shape(call, 2, 1, 0);
  plan->worker_bytes = GEMM_SCRATCH + s.bytes;
  return gc_plan_simple(plan, s.c * s.h * s.w > 0 ? s.images * s.groups : 0);
}

static void NAME(run_conv2d_grad_input)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_conv2d s = gc_conv2d_shape(job->call, 2, 1, 0);
  REAL *const gemm = job->own, *const columns = gemm + GEMM_SCRATCH / (int64_t)sizeof(REAL);
  const int64_t pixels = s.c * s.h * s.w;
  REAL *const out = (REAL *)gc_first(&t[2]) + job->task * pixels;
  const REAL *grad = (const REAL *)gc_first(&t[0]) + job->task * s.oc * s.positions;
  const REAL *weight = (const REAL *)gc_first(&t[1]) + job->task % s.groups * s.oc * s.depth;
  memset(out, 0, (size_t)pixels * sizeof(REAL));
  for (int64_t first = 0; first < s.oh; first += s.rows) {
    const int64_t rows = gc_min(s.rows, s.oh - first), count = rows * s.ow;
    NAME(gemm)(s.depth, count, s.oc, (NAME(matrix)){weight, 1, s.depth},
               (NAME(matrix)){grad + first * s.ow, s.positions, 1}, columns, count, false, gemm);
    NAME(add_columns)(&s, columns, first, rows, out);
  }
}

/* ---- grad_weight^T = the sum over images of columns grad^T; tensors grad, x, grad_weight. Phase 0
 * sums over each of a fixed number of runs of images, phase 1 adds those up in order. ---- */

#ifndef GC_CONV2D_RUNS
#define GC_CONV2D_RUNS
enum { GC_CONV2D_MAX_RUNS = 16, GC_CONV2D_PARTIAL = 1 << 26 /* bytes of all runs together */ };

static inline int64_t gc_conv2d_runs(const gc_conv2d *s, int64_t bytes) {
  const int64_t fit = gc_max(1, GC_CONV2D_PARTIAL / gc_max(1, bytes));
  return gc_min(s->images, gc_min(fit, GC_CONV2D_MAX_RUNS));
}
#endif

static int NAME(plan_conv2d_grad_weight)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = gc_conv2d_check(call, 1, 2, 0, error);
  if (status)
    return status;
  const gc_conv2d s = gc_conv2d_shape(call, 1, 2, 0);
  const int64_t size = gc_numel(&call->tensors[2]);
  const int64_t runs = gc_conv2d_runs(&s, size * (int64_t)sizeof(REAL));
  plan->phases = 2;
  plan->tasks[0] = size ? runs * s.groups : 0;
  plan->tasks[1] = size ? s.groups * s.oc : 0;
  plan->shared_bytes = runs * size * (int64_t)sizeof(REAL);
  plan->worker_bytes = GEMM_SCRATCH + s.bytes;
  return GC_OK;
}

static void NAME(conv2d_grad_weight_run)(const gc_job *job, const gc_conv2d *s, int64_t runs) {
  const gc_tensor *t = job->call->tensors;
  REAL *const gemm = job->own, *const columns = gemm + GEMM_SCRATCH / (int64_t)sizeof(REAL);
  REAL *const sum = (REAL *)job->shared + job->task * s->depth * s->oc;
  const int64_t run = job->task / s->groups, group = job->task % s->groups;
  memset(sum, 0, (size_t)(s->depth * s->oc) * sizeof(REAL));
  for (int64_t n = s->images * run / runs; n < s->images * (run + 1) / runs; n++) {
    const int64_t plane = n * s->groups + group;
    const REAL *x = (const REAL *)gc_first(&t[1]) + plane * s->c * s->h * s->w;
    const REAL *grad = (const REAL *)gc_first(&t[0]) + plane * s->oc * s->positions;
    for (int64_t first = 0; first < s->oh; first += s->rows) {
      const int64_t rows = gc_min(s->rows, s->oh - first), count = rows * s->ow;
      NAME(columns_of)(s, x, first, rows, columns);
      NAME(gemm)(s->depth, s->oc, count, (NAME(matrix)){columns, count, 1},
                 (NAME(matrix)){grad + first * s->ow, 1, s->positions}, sum, s->oc, true, gemm);
    }
  }
}

static void NAME(run_conv2d_grad_weight)(const gc_job *job) {
  const gc_tensor *out = &job->call->tensors[2];
  const gc_conv2d s = gc_conv2d_shape(job->call, 1, 2, 0);
  const int64_t runs = gc_conv2d_runs(&s, gc_numel(out) * (int64_t)sizeof(REAL));
  if (job->phase == 0) {
    NAME(conv2d_grad_weight_run)(job, &s, runs);
    return;
  }
  const int64_t group = job->task / s.oc, oc = job->task % s.oc;
  REAL *const to = (REAL *)gc_first(out) + job->task * s.depth;
  for (int64_t k = 0; k < s.depth; k++) {
    double sum = 0;
    for (int64_t run = 0; run < runs; run++)
      sum +=
          (double)((const REAL *)job->shared)[((run * s.groups + group) * s.depth + k) * s.oc + oc];
    to[k] = (REAL)sum;
  }
}
