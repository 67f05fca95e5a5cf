/* index_add.h -- rows added by index, and how they are put in order: positions sorted by
 * destination (a counting sort, which keeps equal ones in order), so that every destination belongs
 * to one task and the bits depend on nothing else. */
#ifndef GC_INDEX_ADD_H
#define GC_INDEX_ADD_H

#include "../kernel.h"
#include "../type.h"
#include "../walk.h"
#include "gather.h"

enum { NAME(columns_at_once) = 128 };

/* Destination rows of a task, of n that m positions name: about one block of additions. */
static inline int64_t NAME(index_rows)(int64_t n, int64_t inner, int64_t m) {
  return gc_max(1, GC_BLOCK / gc_max(1, inner) / (gc_ceil_div(m, gc_max(1, n)) + 1));
}

/* begin[i]..begin[i + 1]: where the positions that name row i of n stand in `order`. Tensor 1 of
 * the call is the indices. */
static void NAME(index_sort)(const gc_job *job, int64_t n, int64_t *begin, int64_t *order) {
  const int64_t m = job->call->tensors[1].shape[0];
  const int64_t *indices = (const int64_t *)gc_first(&job->call->tensors[1]);
  memset(begin, 0, (size_t)(n + 1) * sizeof *begin);
  for (int64_t i = 0; i < m; i++)
    if (indices[i] < 0 || indices[i] >= n)
      gc_bad_index(job, 1, i, indices[i], n);
    else
      begin[indices[i]]++;
  for (int64_t row = 1; row <= n; row++)
    begin[row] += begin[row - 1];
  for (int64_t i = m - 1; i >= 0; i--) /* from behind: begin[row] ends up at the first of its row */
    if (indices[i] >= 0 && indices[i] < n)
      order[--begin[indices[i]]] = i;
}

/* Phase 0 puts positions in order, phase 1 has the rows of `out`, which is that tensor. */
static int NAME(plan_by_index)(const gc_call *call, int32_t out, gc_plan *plan, gc_error *error) {
  const int64_t *shape = call->tensors[out].shape, m = call->tensors[1].shape[0];
  GC_REQUIRE(shape[1] <= (int64_t)1 << 56, out, "at most 2^56 rows");
  plan->phases = 2;
  plan->tasks[0] = 1;
  plan->tasks[1] = gc_ceil_div(shape[0] * shape[1], NAME(index_rows)(shape[1], shape[2], m));
  plan->shared_bytes = (shape[1] + 1 + m) * (int64_t)sizeof(int64_t);
  return GC_OK;
}

/* x (outer, n, inner), indices (m), source (outer, m, inner) -> y: x, and to row indices[j] row j
 * of the source is added, in the order of j. Floats are carried in double. */
static int NAME(plan_index_add)(const gc_call *call, gc_plan *plan, gc_error *error) {
  if (NAME(plan_by_index)(call, 3, plan, error))
    return error->status;
  if (gc_numel(&call->tensors[3]) > 0)
    return GC_OK;
  *plan = (gc_plan){0};
  return gc_plan_simple(plan, 0);
}

#ifdef GC_IS_REAL
#define ROW_SUM(a, b) ((a) + (double)(b))
#else
#define ROW_SUM NAME(put_add)
#endif

/* One row: that of x, and those of the source at the positions from `at` to `stop`. */
static void NAME(index_add_row)(const REAL *x, const REAL *source, const int64_t *at,
                                const int64_t *stop, int64_t inner, REAL *y) {
  for (int64_t from = 0; from < inner; from += NAME(columns_at_once)) {
    const int64_t count = gc_min(NAME(columns_at_once), inner - from);
    NAME(put_sum) sum[NAME(columns_at_once)];
    for (int64_t c = 0; c < count; c++)
      sum[c] = (NAME(put_sum))x[from + c];
    for (const int64_t *i = at; i < stop; i++) {
      const REAL *row = source + *i * inner + from;
      for (int64_t c = 0; c < count; c++)
        sum[c] = ROW_SUM(sum[c], row[c]);
    }
    for (int64_t c = 0; c < count; c++)
      y[from + c] = (REAL)sum[c];
  }
}

#undef ROW_SUM

static void NAME(run_index_add)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[3].shape[1], inner = t[3].shape[2], m = t[1].shape[0];
  int64_t *begin = job->shared, *order = begin + n + 1;
  if (job->phase == 0) {
    NAME(index_sort)(job, n, begin, order);
    return;
  }
  const int64_t rows = NAME(index_rows)(n, inner, m);
  const int64_t end = gc_min(t[3].shape[0] * n, (job->task + 1) * rows);
  for (int64_t row = job->task * rows; row < end; row++) {
    const int64_t index = row % n, outer = row / n;
    const REAL *x = (const REAL *)gc_first(&t[0]) + row * inner;
    REAL *y = (REAL *)gc_first(&t[3]) + row * inner;
    if (begin[index] < begin[index + 1])
      NAME(index_add_row)(x, (const REAL *)gc_first(&t[2]) + outer * m * inner,
                          order + begin[index], order + begin[index + 1], inner, y);
    else if (x != y)
      memcpy(y, x, (size_t)inner * sizeof(REAL));
  }
}

#endif
