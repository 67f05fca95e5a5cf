/* ceilings.h -- what this machine can do at most: multiply-adds that never leave the registers, and
 * copies that do nothing else. `gradcli bench` divides the rates of all other kernels by these. */
#ifndef GC_CEILINGS_H
#define GC_CEILINGS_H

#include "kernel.h"
#include "matmul/gemm_tile.h"
#include "type.h"

#define GC_FMA_CHAINS 12
#define GC_MAX_ROUNDS (1 << 28)

/* y[task] = the mean of GC_FMA_CHAINS chains s = s * x[0] + x[1], one vector wide and so long that
 * they are sizes[0] multiply-adds, rounded down. So many keep the multipliers busy until the first
 * has its answer, and fit into 16 registers; chain i begins at i * x[1], because the compiler
 * computes equal ones only once. */
static int NAME(plan_fma_rate)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_REQUIRE(call->sizes[0] >= 0 && call->sizes[0] <= GC_MAX_ROUNDS, 1, "0 to 2^28 multiply-adds");
  plan->work = call->sizes[0]; /* not the few numbers that it moves */
  return gc_plan_simple(plan, call->tensors[1].shape[0]);
}

static void NAME(run_fma_rate)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const REAL *x = (const REAL *)gc_first(&t[0]);
  NAME(vec) sum[GC_FMA_CHAINS];
  const NAME(vec) factor = x[0] - (NAME(vec)){0}, term = x[1] - (NAME(vec)){0};
  GC_UNROLL for (int i = 0; i < GC_FMA_CHAINS; i++) sum[i] = term * (REAL)i;
  const int64_t rounds = job->call->sizes[0] / (GC_FMA_CHAINS * LANES);
  for (int64_t round = 0; round < rounds; round++)
    GC_UNROLL for (int i = 0; i < GC_FMA_CHAINS; i++) sum[i] = MADD(sum[i], factor, term);
  double total = 0;
  for (int i = 0; i < GC_FMA_CHAINS; i++)
    for (int lane = 0; lane < (int)LANES; lane++)
      total += (double)sum[i][lane];
  ((REAL *)gc_first(&t[1]))[job->task] = (REAL)(total / (double)(GC_FMA_CHAINS * LANES));
}

/* y = x row by row, sizes[0] times over: a row is a task, so that each thread keeps to its own. */
static int NAME(plan_copy_rate)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_REQUIRE(call->sizes[0] >= 1 && call->sizes[0] <= GC_MAX_ROUNDS, 1, "1 to 2^28 rounds");
  plan->work = call->sizes[0] * gc_min(call->tensors[0].shape[1], GC_MAX_ROUNDS);
  return gc_plan_simple(plan, call->tensors[0].shape[1] ? call->tensors[0].shape[0] : 0);
}

static void NAME(run_copy_rate)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[0].shape[1];
  const REAL *x = (const REAL *)gc_first(&t[0]) + job->task * n;
  REAL *y = (REAL *)gc_first(&t[1]) + job->task * n;
  for (int64_t round = 0; round < job->call->sizes[0]; round++) {
    memcpy(y, x, (size_t)n * sizeof(REAL));
    __asm__ volatile("" : : "r"(y) : "memory"); /* each copy is made, not only the last */
  }
}

#endif
