/* resize.h -- planes (planes, rows, columns) in another size: each output is the nearest pixel, or
 * lies on the straight lines between its neighbours. A task owns whole planes. sizes: how the
 * place of an output in its source is found (GC_RESIZE_*); options: source steps of an output step,
 * down and across. */
#ifndef GC_RESIZE_H
#define GC_RESIZE_H

#include "../kernel.h"
#include "../type.h"

enum {
  GC_RESIZE_NEAREST,    /* floor(i scale) */
  GC_RESIZE_EXACT,      /* floor((i + 1/2) scale) */
  GC_RESIZE_LINEAR,     /* between pixels around (i + 1/2) scale - 1/2 */
  GC_RESIZE_CORNERS,    /* between pixels around i scale */
  GC_RESIZE_BLEND = 24, /* bytes of one */
  GC_RESIZE_WORK = 1 << 14
};

typedef struct {
  int64_t planes, h, w, oh, ow;
  int64_t group; /* planes of a task */
  bool between;  /* of two neighbours, not one pixel */
} gc_resize;

static inline gc_resize gc_resize_of(const gc_call *call, int32_t from, int32_t to) {
  const int64_t *x = call->tensors[from].shape, *y = call->tensors[to].shape;
  gc_resize s = {.planes = x[0], .h = x[1], .w = x[2], .oh = y[1], .ow = y[2]};
  s.group = gc_max(1, GC_RESIZE_WORK / gc_max(1, gc_max(s.h * s.w, s.oh * s.ow)));
  s.between = call->sizes[0] >= GC_RESIZE_LINEAR;
  return s;
}

static inline int gc_resize_plan(const gc_call *call, int32_t from, int32_t to, gc_plan *plan,
                                 gc_error *error) {
  for (int32_t i = 0; i < 2; i++) {
    const gc_tensor *t = &call->tensors[i];
    GC_REQUIRE(t->shape[1] <= INT32_MAX && t->shape[2] <= INT32_MAX, i, "dimensions below 2^31");
    GC_REQUIRE(t->shape[1] > 0 && t->shape[2] > 0, i, "planes that are not empty");
  }
  GC_REQUIRE(call->sizes[0] >= GC_RESIZE_NEAREST && call->sizes[0] <= GC_RESIZE_CORNERS, 0,
             "a known way to find a place");
  for (int i = 0; i < 2; i++)
    GC_REQUIRE(call->options[i] >= 0 && call->options[i] < 2147483648.0, 0,
               "steps of at least 0 and below 2^31");
  const gc_resize s = gc_resize_of(call, from, to);
  const int status = gc_plan_simple(plan, gc_ceil_div(s.planes, s.group));
  plan->worker_bytes = s.ow * (GC_RESIZE_BLEND + 2 * (int64_t)sizeof(double));
  return status;
}

/* What an output is made of: pixel `at`, and `share` of the one `next` to it. */
typedef struct {
  int64_t at, next;
  REAL share;
} NAME(blend);
_Static_assert(sizeof(NAME(blend)) <= GC_RESIZE_BLEND, "scratch for a row of them");

/* In the element type's own arithmetic, so that an output falls on the same pixels as in torch. */
static NAME(blend) NAME(blend_of)(int64_t kind, int64_t i, REAL scale, int64_t length) {
  REAL place = (REAL)i * scale;
  if (kind == GC_RESIZE_EXACT)
    place = ((REAL)i + (REAL)0.5) * scale;
  if (kind == GC_RESIZE_LINEAR)
    place = ((REAL)i + (REAL)0.5) * scale - (REAL)0.5;
  const int64_t at = gc_min((int64_t)(place > 0 ? place : 0), length - 1);
  NAME(blend) b = {.at = at, .next = at, .share = 0};
  if (kind >= GC_RESIZE_LINEAR && at + 1 < length) {
    b.next = at + 1;
    b.share = place > 0 ? place - (REAL)at : 0;
  }
  return b;
}

static const NAME(blend) * NAME(blends)(const gc_job *job, const gc_resize *s) {
  NAME(blend) *const columns = job->own;
  for (int64_t j = 0; j < s->ow; j++)
    columns[j] = NAME(blend_of)(job->call->sizes[0], j, (REAL)job->call->options[1], s->w);
  return columns;
}

/* ---- tensors x, out ---- */

static int NAME(plan_resize_forward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  return gc_resize_plan(call, 0, 1, plan, error);
}

static void NAME(resize_row)(const gc_resize *s, const NAME(blend) * column, const REAL *x,
                             REAL *out) {
  if (!s->between)
    for (int64_t j = 0; j < s->ow; j++)
      out[j] = x[column[j].at];
  else
    for (int64_t j = 0; j < s->ow; j++)
      out[j] = (1 - column[j].share) * x[column[j].at] + column[j].share * x[column[j].next];
}

/* Rows of the source are made as wide as the output first, and only once: the rows that an output
 * lies between are mostly those of the output before. */
static void NAME(resize_plane)(const gc_job *job, const gc_resize *s, const NAME(blend) * column,
                               REAL *wide[2], const REAL *x, REAL *out) {
  int64_t held[2] = {-1, -1};
  for (int64_t i = 0; i < s->oh; i++, out += s->ow) {
    const NAME(blend) row =
        NAME(blend_of)(job->call->sizes[0], i, (REAL)job->call->options[0], s->h);
    if (row.next == row.at) {
      NAME(resize_row)(s, column, x + row.at * s->w, out);
      continue;
    }
    const int64_t wanted[2] = {row.at, row.next};
    for (int k = 0; k < 2; k++)
      if (held[wanted[k] % 2] != wanted[k]) {
        NAME(resize_row)(s, column, x + wanted[k] * s->w, wide[wanted[k] % 2]);
        held[wanted[k] % 2] = wanted[k];
      }
    const REAL *const above = wide[row.at % 2], *const below = wide[row.next % 2];
    for (int64_t j = 0; j < s->ow; j++)
      out[j] = (1 - row.share) * above[j] + row.share * below[j];
  }
}

static void NAME(run_resize_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_resize s = gc_resize_of(job->call, 0, 1);
  const NAME(blend) *column = NAME(blends)(job, &s);
  REAL *const rows = (REAL *)((char *)job->own + s.ow * GC_RESIZE_BLEND);
  REAL *wide[2] = {rows, rows + s.ow};
  const int64_t begin = job->task * s.group, end = gc_min(s.planes, begin + s.group);
  for (int64_t plane = begin; plane < end; plane++)
    NAME(resize_plane)(job, &s, column, wide, (const REAL *)gc_first(&t[0]) + plane * s.h * s.w,
                       (REAL *)gc_first(&t[1]) + plane * s.oh * s.ow);
}

/* ---- tensors grad, grad_x ---- */

static int NAME(plan_resize_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  return gc_resize_plan(call, 1, 0, plan, error);
}

/* A row of gradients, times `factor`, to the pixels of one row that it was made of. */
static void NAME(give_row)(const gc_resize *s, const NAME(blend) * column, const REAL *grad,
                           REAL factor, REAL *to) {
  if (!s->between)
    for (int64_t j = 0; j < s->ow; j++)
      to[column[j].at] += grad[j];
  else
    for (int64_t j = 0; j < s->ow; j++) {
      const REAL part = factor * grad[j];
      to[column[j].at] += (1 - column[j].share) * part;
      to[column[j].next] += column[j].share * part;
    }
}

static void NAME(run_resize_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_resize s = gc_resize_of(job->call, 1, 0);
  const NAME(blend) *column = NAME(blends)(job, &s);
  const int64_t begin = job->task * s.group, end = gc_min(s.planes, begin + s.group);
  const REAL *grad = (const REAL *)gc_first(&t[0]) + begin * s.oh * s.ow;
  for (int64_t plane = begin; plane < end; plane++) {
    REAL *const out = (REAL *)gc_first(&t[1]) + plane * s.h * s.w;
    memset(out, 0, (size_t)(s.h * s.w) * sizeof(REAL));
    for (int64_t i = 0; i < s.oh; i++, grad += s.ow) {
      const NAME(blend) row =
          NAME(blend_of)(job->call->sizes[0], i, (REAL)job->call->options[0], s.h);
      NAME(give_row)(&s, column, grad, 1 - row.share, out + row.at * s.w);
      if (row.next != row.at)
        NAME(give_row)(&s, column, grad, row.share, out + row.next * s.w);
    }
  }
}

#endif
