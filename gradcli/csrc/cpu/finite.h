/* finite.h -- reports the first number that is NaN or infinite, and so ends the list of calls: what
 * comes behind, such as an optimizer's step, is not done with it. */

static int NAME(plan_require_finite)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_REQUIRE(gc_contiguous(&call->tensors[0]), 0, "a contiguous tensor");
  return gc_plan_simple(plan, gc_ceil_div(gc_numel(&call->tensors[0]), GC_BLOCK));
}

static void NAME(run_require_finite)(const gc_job *job) {
  BLOCK_OF(job, first, n);
  const REAL *x = (const REAL *)gc_first(&job->call->tensors[0]) + first;
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(x[i])) {
      gc_not_finite(job, 0, first + i);
      return;
    }
}
