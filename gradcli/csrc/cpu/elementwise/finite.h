/* finite.h -- reports the first number that is not as it must be, and so ends the list of calls:
 * what comes behind, such as an optimizer's step, is not done with it. */

static int NAME(plan_require)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_REQUIRE(gc_contiguous(&call->tensors[0]), 0, "a contiguous tensor");
  return gc_plan_simple(plan, gc_ceil_div(gc_numel(&call->tensors[0]), GC_BLOCK));
}

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
