/* depthwise.h -- the gradient of the filters where each channel has filters of its own (channels /
 * groups is 1): sums of products of rows, where conv2d_weight.h would multiply matrices of one row.
 * Tensors grad, x, grad_weight and sizes as there; a task owns a filter. */
#ifndef GC_DEPTHWISE_H
#define GC_DEPTHWISE_H

#include "../kernel.h"
#include "../matmul/matmul_check.h"
#include "../reduce/sums.h"
#include "../type.h"
#include "conv2d_shape.h"

/* The outputs of a row for which begin + i * step lies inside 0 .. length - 1. */
static inline gc_inside gc_tap_outputs(int64_t begin, int64_t step, int64_t length,
                                       int64_t outputs) {
  const int64_t from = begin < 0 ? gc_min(outputs, gc_ceil_div(-begin, step)) : 0;
  const int64_t to = begin < length ? gc_min(outputs, gc_ceil_div(length - begin, step)) : 0;
  return (gc_inside){from, gc_max(from, to)};
}

static int NAME(plan_depthwise_grad_weight)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *f = &call->tensors[2];
  const int status = gc_conv2d_check(call, 1, 2, 0, error);
  if (status)
    return status;
  GC_APART(2, 2);
  plan->worker_bytes = f->shape[2] * f->shape[3] * (int64_t)sizeof(double);
  return gc_plan_simple(plan, gc_numel(f) ? f->shape[0] : 0);
}

/* sum of grad[i] * x[i * step] */
static double NAME(stepped_dot)(const REAL *grad, const REAL *x, int64_t n, int64_t step) {
  if (step == 1)
    return NAME(dot)(grad, x, n);
  double total = 0;
  for (int64_t i = 0; i < n; i++)
    total += (double)grad[i] * (double)x[i * step];
  return total;
}

static void NAME(depthwise_sums)(const gc_conv2d *s, const REAL *grad, const REAL *x,
                                 double *sums) {
  for (int64_t i = 0; i < s->oh; i++, grad += s->ow)
    for (int64_t a = 0; a < s->kh; a++) {
      const int64_t row = i * s->sh + a * s->dh - s->ph;
      if (row < 0 || row >= s->h)
        continue;
      for (int64_t b = 0; b < s->kw; b++) {
        const int64_t begin = b * s->dw - s->pw;
        const gc_inside inside = gc_tap_outputs(begin, s->sw, s->w, s->ow);
        if (inside.from < inside.to)
          sums[a * s->kw + b] +=
              NAME(stepped_dot)(grad + inside.from, x + row * s->w + begin + inside.from * s->sw,
                                inside.to - inside.from, s->sw);
      }
    }
}

static void NAME(run_depthwise_grad_weight)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_conv2d s = gc_conv2d_shape(job->call, 1, 2, 0, 1);
  const int64_t filters = s.groups * s.oc, window = s.kh * s.kw, filter = job->task;
  double *const sums = job->own;
  memset(sums, 0, (size_t)window * sizeof(double));
  for (int64_t n = 0; n < s.images; n++)
    NAME(depthwise_sums)(&s, (const REAL *)gc_first(&t[0]) + (n * filters + filter) * s.oh * s.ow,
                         (const REAL *)gc_first(&t[1]) + (n * s.groups + filter / s.oc) * s.h * s.w,
                         sums);
  REAL *const to = (REAL *)gc_first(&t[2]) + filter * window;
  for (int64_t i = 0; i < window; i++)
    to[i] = (REAL)sums[i];
}

#endif
