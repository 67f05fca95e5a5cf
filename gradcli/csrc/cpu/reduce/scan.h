/* scan.h -- running sums and products of (outer, n, inner) along n, from the end where sizes[0] is
 * not 0. Floats are carried in double, whole numbers in int64. A line is up to GC_WIDTH results
 * that lie side by side in `inner`; a task owns whole lines. */
#ifndef GC_SCAN_H
#define GC_SCAN_H

#include "../kernel.h"
#include "../lines.h"
#include "../type.h"
#include "../walk.h"

typedef struct {
  int64_t n, inner, tiles, lines, group;
} gc_scan;

static inline gc_scan gc_scan_of(const gc_tensor *x) {
  gc_scan s = {.n = x->shape[1], .inner = x->shape[2]};
  s.tiles = gc_ceil_div(s.inner, GC_WIDTH);
  s.lines = s.n ? x->shape[0] * s.tiles : 0;
  s.group = gc_max(1, GC_BLOCK / gc_max(1, s.n * gc_min(s.inner, GC_WIDTH)));
  return s;
}

/* Where a line begins, and how many results it has. */
static inline gc_line gc_scan_line(const gc_scan *s, int64_t line) {
  const int64_t first = line % s->tiles * GC_WIDTH;
  const int64_t at = line / s->tiles * s->n * s->inner + first;
  return (gc_line){.at = at, .width = gc_min(GC_WIDTH, s->inner - first)};
}

static int NAME(plan_scan)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  const gc_scan s = gc_scan_of(&call->tensors[0]);
  return gc_plan_simple(plan, gc_ceil_div(s.lines, s.group));
}

static void NAME(scan_line)(const REAL *x, REAL *y, const gc_scan *s, int64_t width, bool product,
                            bool back) {
  if (s->inner == 1) { /* carried in a register */
    ACC carried = product;
    for (int64_t i = 0; i < s->n; i++) {
      const int64_t at = back ? s->n - 1 - i : i;
      carried = product ? carried * (ACC)x[at] : carried + (ACC)x[at];
      y[at] = (REAL)carried;
    }
    return;
  }
  ACC now[GC_WIDTH];
  for (int64_t j = 0; j < width; j++)
    now[j] = product;
  for (int64_t i = 0; i < s->n; i++) {
    const int64_t at = (back ? s->n - 1 - i : i) * s->inner;
    for (int64_t j = 0; j < width; j++) {
      now[j] = product ? now[j] * (ACC)x[at + j] : now[j] + (ACC)x[at + j];
      y[at + j] = (REAL)now[j];
    }
  }
}

static void NAME(scan)(const gc_job *job, bool product) {
  const gc_tensor *t = job->call->tensors;
  const gc_scan s = gc_scan_of(&t[0]);
  const int64_t end = gc_min(s.lines, (job->task + 1) * s.group);
  for (int64_t l = job->task * s.group; l < end; l++) {
    const gc_line line = gc_scan_line(&s, l);
    NAME(scan_line)((const REAL *)gc_first(&t[0]) + line.at, (REAL *)gc_first(&t[1]) + line.at, &s,
                    line.width, product, job->call->sizes[0] != 0);
  }
}

static void NAME(run_cumsum)(const gc_job *job) {
  NAME(scan)(job, false);
}

static void NAME(run_cumprod)(const gc_job *job) {
  NAME(scan)(job, true);
}

#ifdef GC_IS_REAL
/* x, y, grad -> the gradient of x, without a division: element i is the product of all before it
 * times s[i] = grad[i] + x[i + 1] s[i + 1]. */
static void NAME(run_cumprod_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_scan s = gc_scan_of(&t[0]);
  const REAL *x = (const REAL *)gc_first(&t[0]), *y = (const REAL *)gc_first(&t[1]);
  const REAL *grad = (const REAL *)gc_first(&t[2]);
  REAL *out = (REAL *)gc_first(&t[3]);
  const int64_t end = gc_min(s.lines, (job->task + 1) * s.group);
  for (int64_t l = job->task * s.group; l < end; l++) {
    const gc_line line = gc_scan_line(&s, l);
    double after[GC_WIDTH];
    for (int64_t j = 0; j < line.width; j++)
      after[j] = 0;
    for (int64_t i = s.n - 1; i >= 0; i--)
      for (int64_t j = 0; j < line.width; j++) {
        const int64_t at = line.at + i * s.inner + j;
        const double here = (double)x[at];
        after[j] += (double)grad[at];
        out[at] = (REAL)(i ? (double)y[at - s.inner] * after[j] : after[j]);
        after[j] *= here;
      }
  }
}
#endif

#endif
