/* length.h -- the Euclidean norm of (outer, n, inner) along n: squares are added in double. The
 * plan is that of a sum. */
#ifndef GC_LENGTH_H
#define GC_LENGTH_H

#include "../kernel.h"
#include "../lines.h"
#include "../type.h"
#include "../walk.h"
#include "reduce.h"
#include "sums.h"

/* sum[j] = sum over i of x[i * inner + j] squared */
static void NAME(squares_of_line)(const REAL *x, int64_t n, int64_t width, int64_t inner,
                                  double *sum) {
  if (inner == 1) {
    sum[0] = NAME(dot)(x, x, n);
    return;
  }
  for (int64_t j = 0; j < width; j++)
    sum[j] = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < width; j++)
      sum[j] += (double)x[i * inner + j] * (double)x[i * inner + j];
}

static void NAME(run_length)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_cut c = gc_cut_of(&t[0]);
  REAL *out = (REAL *)gc_first(&t[1]);
  double *parts = (double *)job->shared, sum[GC_WIDTH];
  if (job->phase == 1) {
    const int64_t end = gc_min(c.results, (job->task + 1) * GC_BLOCK);
    for (int64_t r = job->task * GC_BLOCK; r < end; r++)
      out[r] = (REAL)sqrt(NAME(total_of)(parts, &c, r));
    return;
  }
  const gc_share s = gc_share_of(&c, job->task);
  for (int64_t l = s.first; l < s.last; l++) {
    const gc_line line = gc_line_of(&c, l);
    const REAL *x = (const REAL *)gc_first(&t[0]) + line.at + s.from * c.inner;
    double *to = c.chunks > 1 ? parts + s.part * c.results + line.result : sum;
    NAME(squares_of_line)(x, s.to - s.from, line.width, c.inner, to);
    for (int64_t j = 0; c.chunks == 1 && j < line.width; j++)
      out[line.result + j] = (REAL)sqrt(sum[j]);
  }
}

#endif
