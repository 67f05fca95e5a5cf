/* index.h -- rows picked by index, where, ranges and triangles, for every element type. A bad index
 * is reported with its position and its row is left alone. */
#ifndef GC_INDEX_H
#define GC_INDEX_H

#include "../elementwise/operands.h"
#include "../kernel.h"
#include "../type.h"
#include "../walk.h"
#include "gather.h"

/* x (outer, n, inner), indices (m) -> y (outer, m, inner). */
static int NAME(plan_index_select)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *x = &call->tensors[0], *y = &call->tensors[2];
  (void)error;
  const int64_t rows = gc_max(1, GC_BLOCK / gc_max(1, x->shape[2]));
  return gc_plan_simple(plan, gc_ceil_div(y->shape[0] * y->shape[1], rows));
}

static void NAME(run_index_select)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[0].shape[1], inner = t[0].shape[2], m = t[1].shape[0];
  const int64_t rows = gc_max(1, GC_BLOCK / gc_max(1, inner));
  const int64_t end = gc_min(t[2].shape[0] * m, (job->task + 1) * rows);
  const REAL *x = (const REAL *)gc_first(&t[0]);
  const int64_t *indices = (const int64_t *)gc_first(&t[1]);
  REAL *y = (REAL *)gc_first(&t[2]);
  const int64_t begin = job->task * rows;
  if (inner == 1 && t[2].shape[0] == 1 && NAME(all_below)(indices + begin, end - begin, n)) {
    for (int64_t row = begin; row < end; row++)
      y[row] = x[indices[row]];
    return;
  }
  for (int64_t row = begin; row < end; row++) {
    const int64_t index = indices[row % m];
    if (index < 0 || index >= n)
      gc_bad_index(job, 1, row % m, index, n);
    else if (inner > 0)
      gc_copy_line(y + row * inner, x + (row / m * n + index) * inner,
                   inner * (int64_t)sizeof(REAL));
  }
}

/* The same under the name that its users know, so that a bad index is reported by it. */
static void NAME(run_embedding)(const gc_job *job) {
  NAME(run_index_select)(job);
}

/* Reads both, so that no loop branches on what it reads. */
#define WHERE_LOOP(step_t, step_a, step_b, step_out)                                               \
  GC_INDEPENDENT for (int64_t i = 0; i < n; i++) {                                                 \
    const REAL yes = a[i * (step_a)], no = b[i * (step_b)];                                        \
    out[i * (step_out)] = truth[i * (step_t)] ? yes : no;                                          \
  }

/* y = truth ? a : b; any strides. */
static void NAME(run_where)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_tensor *const operands[4] = {&t[0], &t[1], &t[2], &t[3]};
  BLOCK_OF(job, first, count);
  gc_walk w;
  gc_walk_begin(&w, operands, 4, first, count);
  const int32_t last = w.ndim - 1;
  const int64_t st = w.stride[0][last], sa = w.stride[1][last], sb = w.stride[2][last];
  const int64_t so = w.stride[3][last];
  for (int64_t n; (n = gc_walk_span(&w)) > 0; gc_walk_advance(&w, n)) {
    const uint8_t *truth = (const uint8_t *)gc_first(&t[0]) + w.offset[0];
    const REAL *a = (const REAL *)gc_first(&t[1]) + w.offset[1];
    const REAL *b = (const REAL *)gc_first(&t[2]) + w.offset[2];
    REAL *out = (REAL *)gc_first(&t[3]) + w.offset[3];
    if (st != 1 || so != 1 || (sa | sb) >> 1 != 0)
      WHERE_LOOP(st, sa, sb, so)
    else if (sa && sb)
      WHERE_LOOP(1, 1, 1, 1)
    else if (sa)
      WHERE_LOOP(1, 1, 0, 1)
    else if (sb)
      WHERE_LOOP(1, 0, 1, 1)
    else
      WHERE_LOOP(1, 0, 0, 1)
  }
}
#undef WHERE_LOOP

/* y[i] = start + i step: options[0] and [1], or for integers sizes[0] and [1]. */
static void NAME(run_arange)(const gc_job *job) {
  BLOCK_OF(job, first, n);
  REAL *out = (REAL *)gc_first(&job->call->tensors[0]) + first;
#ifdef GC_IS_REAL
  const double start = job->call->options[0], step = job->call->options[1];
  for (int64_t i = 0; i < n; i++)
    out[i] = (REAL)(start + (double)(first + i) * step);
#else
  const int64_t start = job->call->sizes[0], step = job->call->sizes[1];
  for (int64_t i = 0; i < n; i++)
    out[i] = (REAL)(start + (first + i) * step);
#endif
}

/* x (batch, rows, columns) -> y: tril keeps where column <= row + sizes[0], triu where >=; the rest
 * is 0. */
static int NAME(plan_triangle)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  (void)error;
  return gc_plan_simple(plan, gc_ceil_div(t[0].shape[0] * t[0].shape[1], GC_ROWS));
}

static void NAME(triangle)(const gc_job *job, bool lower) {
  const gc_tensor *t = job->call->tensors;
  const int64_t rows = t[0].shape[1], columns = t[0].shape[2];
  /* Beyond these a further shift changes nothing, and i + shift cannot overflow. */
  const int64_t shift = gc_max(-rows - 1, gc_min(columns + 1, job->call->sizes[0]));
  const int64_t end = gc_min(t[0].shape[0] * rows, (job->task + 1) * GC_ROWS);
  const REAL *x = (const REAL *)gc_first(&t[0]);
  REAL *y = (REAL *)gc_first(&t[1]);
  for (int64_t row = job->task * GC_ROWS; row < end; row++)
    for (int64_t column = 0; column < columns; column++) {
      const int64_t diagonal = row % rows + shift, at = row * columns + column;
      y[at] = (lower ? column <= diagonal : column >= diagonal) ? x[at] : 0;
    }
}

static void NAME(run_tril)(const gc_job *job) {
  NAME(triangle)(job, true);
}
static void NAME(run_triu)(const gc_job *job) {
  NAME(triangle)(job, false);
}

#endif
