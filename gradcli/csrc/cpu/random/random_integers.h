/* random_integers.h -- whole random numbers and random orders, always int64. */
#ifndef GC_RANDOM_INTEGERS_H
#define GC_RANDOM_INTEGERS_H

#include "../kernel.h"
#include "../type.h"
#include "../walk.h"
#include "random_philox.h"

static int NAME(plan_random_integers)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = gc_plan_random(call, 0, 1, error);
  if (status)
    return status;
  GC_REQUIRE(call->sizes[1] < call->sizes[2], 1, "a low end below the high end");
  return gc_plan_simple(plan, gc_ceil_div(gc_numel(&call->tensors[1]), GC_BLOCK));
}

/* From sizes[1] to below sizes[2]. */
static void NAME(run_randint)(const gc_job *job) {
  const gc_philox philox = gc_philox_of(job->call, 0);
  const uint64_t low = (uint64_t)job->call->sizes[1], high = (uint64_t)job->call->sizes[2];
  const int64_t first = job->task * GC_BLOCK;
  const int64_t end = gc_min(gc_numel(&job->call->tensors[1]), first + GC_BLOCK);
  int64_t *out = (int64_t *)gc_first(&job->call->tensors[1]);
  for (int64_t at = first; at < end; at += GC_FILL_PAIRS) {
    const int64_t n = gc_min(GC_FILL_PAIRS, end - at);
    gc_fill fill;
    gc_philox_fill(&philox, at / GC_FILL_PAIRS, &fill);
    for (int64_t i = 0; i < n; i++)
      out[at + i] = (int64_t)(low + gc_random_below(gc_random_64(&fill, i), high - low));
  }
}

static int NAME(plan_randperm)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = gc_plan_random(call, 0, 1, error);
  if (status)
    return status;
  return gc_plan_simple(plan, call->tensors[1].shape[0] > 0);
}

/* Fisher and Yates, from the front: i takes the place of a random one of those before it. */
static void NAME(run_randperm)(const gc_job *job) {
  const gc_philox philox = gc_philox_of(job->call, 0);
  const int64_t n = job->call->tensors[1].shape[0];
  int64_t *out = (int64_t *)gc_first(&job->call->tensors[1]);
  gc_fill fill;
  for (int64_t i = 0; i < n; i++) {
    if (i % GC_FILL_PAIRS == 0)
      gc_philox_fill(&philox, i / GC_FILL_PAIRS, &fill);
    const uint64_t bits = gc_random_64(&fill, i % GC_FILL_PAIRS);
    const int64_t j = (int64_t)gc_random_below(bits, (uint64_t)i + 1);
    out[i] = out[j];
    out[j] = i;
  }
}

#endif
