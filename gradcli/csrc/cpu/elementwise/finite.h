/* finite.h -- reports the first number that is not as it must be, and so ends the list of calls:
 * what comes behind, such as an optimizer's step, is not done with it. */
#ifndef GC_FINITE_H
#define GC_FINITE_H

#include "../kernel.h"
#include "../type.h"
#include "../walk.h"

#ifdef GC_IS_REAL
static void NAME(run_require_finite)(const gc_job *job) {
  BLOCK_OF(job, first, n);
  const REAL *x = (const REAL *)gc_first(&job->call->tensors[0]) + first;
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(x[i])) {
      gc_refuse_number(job, GC_NOT_FINITE, 0, first + i);
      return;
    }
}
#endif

static void NAME(run_require_nonzero)(const gc_job *job) {
  BLOCK_OF(job, first, n);
  const REAL *x = (const REAL *)gc_first(&job->call->tensors[0]) + first;
  for (int64_t i = 0; i < n; i++)
    if (x[i] == 0) {
      gc_refuse_number(job, GC_ZERO, 0, first + i);
      return;
    }
}

#endif
