/* index_backward.h -- the gradient of picking rows: each destination row is the sum of the rows of
 * the gradient that were picked from it, in the order of their positions, carried in double. */
#ifndef GC_INDEX_BACKWARD_H
#define GC_INDEX_BACKWARD_H

#include "../kernel.h"
#include "../type.h"
#include "index_add.h"

/* grad (outer, m, inner), indices (m) -> out (outer, n, inner). sizes[0]: an index that gets no
 * gradient, or -1. */
static int NAME(plan_index_grad)(const gc_call *call, gc_plan *plan, gc_error *error) {
  return NAME(plan_by_index)(call, 2, plan, error);
}

static void NAME(run_index_select_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[2].shape[1], inner = t[2].shape[2], m = t[1].shape[0];
  int64_t *begin = job->shared, *order = begin + n + 1;
  if (job->phase == 0) {
    NAME(index_sort)(job, n, begin, order);
    return;
  }
  const int64_t rows = NAME(index_rows)(n, inner, m), skipped = job->call->sizes[0];
  const int64_t end = gc_min(t[2].shape[0] * n, (job->task + 1) * rows);
  int64_t row = job->task * rows, index = row % n, outer = row / n;
  for (; row < end; row++) {
    const REAL *grad = (const REAL *)gc_first(&t[0]) + outer * m * inner;
    REAL *out = (REAL *)gc_first(&t[2]) + row * inner;
    const int64_t stop = begin[index + (index != skipped)];
    for (int64_t from = 0; from < inner; from += NAME(columns_at_once)) {
      const int64_t count = gc_min(NAME(columns_at_once), inner - from);
      double sum[NAME(columns_at_once)];
      for (int64_t c = 0; c < count; c++)
        sum[c] = 0;
      for (int64_t i = begin[index]; i < stop; i++)
        for (int64_t c = 0; c < count; c++)
          sum[c] += (double)grad[order[i] * inner + from + c];
      for (int64_t c = 0; c < count; c++)
        out[from + c] = (REAL)sum[c];
    }
    if (++index == n) {
      index = 0;
      outer++;
    }
  }
}

#endif
