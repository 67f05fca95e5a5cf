/* pool2d.h -- maxima and averages of windows, on tensors (planes, rows, columns). A task owns whole
 * planes. sizes: window 2, stride 2, padding 2 (above and left), dilation 2. */
#ifndef GC_POOL2D_H
#define GC_POOL2D_H

#include "../kernel.h"
#include "../type.h"
#include "pool2d_pairs.h"
#include "pool2d_shape.h"

/* ---- max: tensors x, out, indices. The first of equal maxima wins, and the first NaN wins over
 * all; a window without a pixel gives -inf and the index -1. ---- */

static int NAME(plan_max_pool2d_forward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  return gc_pool2d_plan(call, 0, 1, plan, error);
}

/* Goes over the window's places outside and over a row of outputs inside, and has no branch there
 * that random pixels would mispredict: v is greater, or the first NaN, or the first at all. */
static void NAME(max_pool2d_plane)(const gc_pool2d *s, const REAL *x, REAL *out, int64_t *index) {
  for (int64_t oh = 0; oh < s->oh; oh++, out += s->ow, index += s->ow) {
    for (int64_t ow = 0; ow < s->ow; ow++) {
      out[ow] = -(REAL)INFINITY;
      index[ow] = -1;
    }
    const gc_range rows = gc_window(oh * s->sh - s->ph, s->kh, s->dh, s->h);
    for (int64_t i = rows.from; i < rows.to; i += s->dh)
      for (int64_t kw = 0; kw < s->kw; kw++) {
        const int64_t offset = kw * s->dw - s->pw;
        const int64_t low = offset < 0 ? gc_ceil_div(-offset, s->sw) : 0;
        const int64_t room = s->w - offset;
        const int64_t high = room > 0 ? gc_min(s->ow, gc_ceil_div(room, s->sw)) : 0;
        for (int64_t ow = low; ow < high; ow++) {
          const int64_t at = i * s->w + ow * s->sw + offset;
          const REAL v = x[at], top = out[ow];
          const bool wins = (!(v <= top) & (top == top)) | (index[ow] < 0);
          out[ow] = wins ? v : top;
          index[ow] = wins ? at : index[ow];
        }
      }
  }
}

static void NAME(run_max_pool2d_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_pool2d s = gc_pool2d_shape(job->call, 0, 1);
  const int64_t end = gc_min(s.planes, (job->task + 1) * s.group), places = s.oh * s.ow;
  for (int64_t plane = job->task * s.group; places && plane < end; plane++)
    (NAME(in_pairs)(&s) ? NAME(max_pairs_plane) : NAME(max_pool2d_plane))(
        &s, (const REAL *)gc_first(&t[0]) + plane * s.h * s.w,
        (REAL *)gc_first(&t[1]) + plane * places, (int64_t *)gc_first(&t[2]) + plane * places);
}

/* ---- backward of max: tensors grad, indices, grad_x ---- */

static int NAME(plan_max_pool2d_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  return gc_pool2d_plan(call, 2, 0, plan, error);
}

static void NAME(run_max_pool2d_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_pool2d s = gc_pool2d_shape(job->call, 2, 0);
  const int64_t end = gc_min(s.planes, (job->task + 1) * s.group);
  const int64_t places = s.oh * s.ow, pixels = s.h * s.w;
  for (int64_t plane = job->task * s.group; pixels && plane < end; plane++) {
    REAL *const out = (REAL *)gc_first(&t[2]) + plane * pixels;
    memset(out, 0, (size_t)pixels * sizeof(REAL));
    const REAL *grad = (const REAL *)gc_first(&t[0]) + plane * places;
    const int64_t *index = (const int64_t *)gc_first(&t[1]) + plane * places;
    for (int64_t i = 0; i < places; i++)
      if ((uint64_t)index[i] < (uint64_t)pixels)
        out[index[i]] += grad[i];
      else if (index[i] != -1)
        gc_bad_index(job, 1, plane * places + i, index[i], pixels);
  }
}

/* ---- average: tensors x, out; sizes[8]: 1 when padding counts, sizes[9]: the divisor, or 0 for
 * the number of pixels. The window has no dilation. ---- */

static int NAME(plan_avg_pool2d_forward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_REQUIRE(call->sizes[6] == 1 && call->sizes[7] == 1, 0, "no dilation");
  return gc_pool2d_plan(call, 0, 1, plan, error);
}

static int NAME(plan_avg_pool2d_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_REQUIRE(call->sizes[6] == 1 && call->sizes[7] == 1, 0, "no dilation");
  return gc_pool2d_plan(call, 1, 0, plan, error);
}

/* Padding counts up to the padded edge; what ceil_mode hangs over that never does. */
static double NAME(avg_pool2d_divisor)(const gc_call *call, const gc_pool2d *s, int64_t oh,
                                       int64_t ow, gc_range rows, gc_range columns) {
  if (call->sizes[9] != 0)
    return (double)call->sizes[9];
  if (!call->sizes[8])
    return (double)((rows.to - rows.from) * (columns.to - columns.from));
  const int64_t top = oh * s->sh - s->ph, left = ow * s->sw - s->pw;
  return (double)((gc_min(top + s->kh, s->h + s->ph) - top) *
                  (gc_min(left + s->kw, s->w + s->pw) - left));
}

/* Where the windows of one row and column of outputs meet a plane, and what divides their sum. */
typedef struct {
  gc_range rows, columns;
  double divisor;
} NAME(average);

static NAME(average) NAME(average_at)(const gc_call *call, const gc_pool2d *s, int64_t place) {
  const int64_t oh = place / s->ow, ow = place % s->ow;
  NAME(average)
  a = {.rows = gc_window(oh * s->sh - s->ph, s->kh, 1, s->h),
       .columns = gc_window(ow * s->sw - s->pw, s->kw, 1, s->w)};
  a.divisor = NAME(avg_pool2d_divisor)(call, s, oh, ow, a.rows, a.columns);
  if (a.rows.from >= a.rows.to || a.columns.from >= a.columns.to)
    a.divisor = 1; /* of nothing */
  return a;
}

static void NAME(run_avg_pool2d_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_pool2d s = gc_pool2d_shape(job->call, 0, 1);
  const int64_t begin = job->task * s.group, end = gc_min(s.planes, begin + s.group);
  const int64_t places = s.oh * s.ow, pixels = s.h * s.w;
  for (int64_t place = 0; place < places; place++) {
    const NAME(average) a = NAME(average_at)(job->call, &s, place);
    for (int64_t plane = begin; plane < end; plane++) {
      const REAL *x = (const REAL *)gc_first(&t[0]) + plane * pixels;
      double sum = 0;
      for (int64_t i = a.rows.from; i < a.rows.to; i++)
        for (int64_t j = a.columns.from; j < a.columns.to; j++)
          sum += (double)x[i * s.w + j];
      ((REAL *)gc_first(&t[1]))[plane * places + place] = (REAL)(sum / a.divisor);
    }
  }
}

/* tensors grad, grad_x */
static void NAME(run_avg_pool2d_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_pool2d s = gc_pool2d_shape(job->call, 1, 0);
  const int64_t begin = job->task * s.group, end = gc_min(s.planes, begin + s.group);
  const int64_t places = s.oh * s.ow, pixels = s.h * s.w;
  if (pixels == 0)
    return;
  REAL *const out = (REAL *)gc_first(&t[1]);
  memset(out + begin * pixels, 0, (size_t)((end - begin) * pixels) * sizeof(REAL));
  for (int64_t place = 0; place < places; place++) {
    const NAME(average) a = NAME(average_at)(job->call, &s, place);
    for (int64_t plane = begin; plane < end; plane++) {
      const REAL grad = ((const REAL *)gc_first(&t[0]))[plane * places + place];
      const REAL share = (REAL)((double)grad / a.divisor);
      for (int64_t i = a.rows.from; i < a.rows.to; i++)
        for (int64_t j = a.columns.from; j < a.columns.to; j++)
          out[plane * pixels + i * s.w + j] += share;
    }
  }
}

#endif
