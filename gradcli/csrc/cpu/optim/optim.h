/* optim.h -- one step of an optimizer on one parameter, and what clipping needs. The formulas and
 * their order are PyTorch's (Adam's denominator excepted); nothing is fused beyond that, so all
 * instruction sets round alike.
 *
 * What changes from step to step stands in `hyper`, float64 (learning rate, step counted from 1),
 * so that schedules need no new call. What is fixed stands in the options. Outputs are also read. A
 * NaN in the gradient reaches the parameter: nothing is skipped. */
#ifndef GC_OPTIM_H
#define GC_OPTIM_H

#include "../../maths_shared.h"
#include "../elementwise/maths_base.h"
#include "../kernel.h"
#include "../type.h"
#include "../walk.h"

/* Left defined for optim_adaptive.h. */
#define STEP_HYPER(lr, step)                                                                       \
  const double *hyper = (const double *)gc_first(&job->call->tensors[1]);                          \
  const double lr = hyper[0], step = hyper[1];                                                     \
  (void)step

#define STEP_TENSOR(i) ((REAL *)gc_first(&job->call->tensors[i]) + first)

/* g += decay w; w -= lr g. Options: weight decay. */
static void NAME(run_sgd_step)(const gc_job *job) {
  STEP_HYPER(lr, step);
  const REAL rate = (REAL)lr, decay = (REAL)job->call->options[0];
  BLOCK_OF(job, first, n);
  const REAL *grad = STEP_TENSOR(0);
  REAL *w = STEP_TENSOR(2);
  for (int64_t i = 0; i < n; i++) {
    const REAL g = decay != 0 ? grad[i] + decay * w[i] : grad[i];
    w[i] -= rate * g;
  }
}

/* m = momentum m + (1 - dampening) g, but g itself at step 1; w -= lr m, or lr (g + momentum m)
 * with nesterov. Options: weight decay, momentum, dampening, nesterov. */
static void NAME(run_sgd_momentum_step)(const gc_job *job) {
  STEP_HYPER(lr, step);
  const double *options = job->call->options;
  const REAL rate = (REAL)lr, decay = (REAL)options[0], momentum = (REAL)options[1];
  const REAL fresh = (REAL)(1 - options[2]);
  const bool begins = step == 1, nesterov = options[3] != 0;
  BLOCK_OF(job, first, n);
  const REAL *grad = STEP_TENSOR(0);
  REAL *w = STEP_TENSOR(2), *m = STEP_TENSOR(3);
  for (int64_t i = 0; i < n; i++) {
    const REAL g = decay != 0 ? grad[i] + decay * w[i] : grad[i];
    const REAL moving = begins ? g : m[i] * momentum + fresh * g;
    m[i] = moving;
    w[i] -= rate * (nesterov ? g + momentum * moving : moving);
  }
}

/* What Adam and its relatives have in common; left defined for optim_adaptive.h. m = lerp(m, g, 1 -
 * beta1); v = beta2 v + (1 - beta2) g^2; `body` makes the new weight of the old one, g and both.
 * Options: weight decay, beta1, beta2, eps, decoupled (AdamW: w *= 1 - lr decay, instead of g +=
 * decay w). */
#define ADAM_OPTIONS                                                                               \
  STEP_HYPER(lr, step);                                                                            \
  const double *options = job->call->options, beta1 = options[1], beta2 = options[2];              \
  const double root = sqrt(1 - pow(beta2, step));                                                  \
  const bool decoupled = options[4] != 0;                                                          \
  const REAL coupled = decoupled ? 0 : (REAL)options[0], shrink = (REAL)(1 - lr * options[0]);     \
  const REAL fresh1 = (REAL)(1 - beta1), keep1 = (REAL)(1 - (1 - beta1));                          \
  const REAL keep2 = (REAL)beta2, fresh2 = (REAL)(1 - beta2)

#define ADAM_ELEMENTS(body)                                                                        \
  const REAL *grad = STEP_TENSOR(0);                                                               \
  REAL *w = STEP_TENSOR(2), *m = STEP_TENSOR(3), *v = STEP_TENSOR(4);                              \
  for (int64_t i = 0; i < n; i++) {                                                                \
    const REAL old = decoupled ? w[i] * shrink : w[i];                                             \
    const REAL g = coupled != 0 ? grad[i] + coupled * old : grad[i];                               \
    const REAL way = g - m[i];                                                                     \
    const REAL mean = fresh1 < R(0.5) ? m[i] + fresh1 * way : g - way * keep1;                     \
    const REAL square = v[i] * keep2 + fresh2 * g * g;                                             \
    m[i] = mean;                                                                                   \
    v[i] = square;                                                                                 \
    body;                                                                                          \
  }

/* w -= lr / (1 - beta1^step) m / (sqrt(v) / root + eps) with root = sqrt(1 - beta2^step), written
 * as lr root / (1 - beta1^step) m / (sqrt(v) + eps root): a division less, and they are what takes
 * the time. */
static void NAME(run_adam_step)(const gc_job *job) {
  ADAM_OPTIONS;
  const REAL rate = (REAL)(lr * root / (1 - pow(beta1, step))), eps = (REAL)(options[3] * root);
  BLOCK_OF(job, first, n);
  ADAM_ELEMENTS(w[i] = old - rate * mean / (m_sqrt(square) + eps))
}

/* ---- clipping: the norm of all gradients, then a factor for each ---- */

/* x -> its sum of squares, float64 (1), over a grid of blocks, in double. */
static int NAME(plan_sum_squares)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  GC_REQUIRE(gc_numel(&t[1]) == 1, 1, "one float64");
  const int64_t blocks = gc_ceil_div(gc_numel(&t[0]), GC_BLOCK);
  plan->phases = 2;
  plan->tasks[0] = blocks;
  plan->tasks[1] = 1;
  plan->shared_bytes = blocks * (int64_t)sizeof(double);
  return GC_OK;
}

static void NAME(run_sum_squares)(const gc_job *job) {
  enum { SUMS = 8 };
  double *partial = job->shared, sums[SUMS] = {0}, total = 0;
  if (job->phase == 0) {
    BLOCK_OF(job, first, n);
    const REAL *x = (const REAL *)gc_first(&job->call->tensors[0]) + first;
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
      for (int64_t k = 0; k < SUMS; k++)
        sums[k] += (double)x[i + k] * (double)x[i + k];
    for (; i < n; i++)
      sums[i % SUMS] += (double)x[i] * (double)x[i];
    for (int64_t k = 0; k < SUMS; k++)
      total += sums[k];
    partial[job->task] = total;
    return;
  }
  const int64_t blocks = gc_ceil_div(gc_numel(&job->call->tensors[0]), GC_BLOCK);
  for (int64_t block = 0; block < blocks; block++)
    total += partial[block];
  *(double *)gc_first(&job->call->tensors[1]) = total;
}

/* Sums of squares (k), float64 -> norm (1) and factor (1): min(1, options[0] / (norm + 1e-6)). A
 * NaN stays a NaN. */
static int NAME(plan_clip_factor)(const gc_call *call, gc_plan *plan, gc_error *error) {
  for (int32_t i = 1; i < 3; i++)
    GC_REQUIRE(gc_numel(&call->tensors[i]) == 1, i, "one number");
  return gc_plan_simple(plan, 1);
}

static void NAME(run_clip_factor)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const double *sums = (const double *)gc_first(&t[0]);
  double total = 0;
  for (int64_t i = 0; i < gc_numel(&t[0]); i++)
    total += sums[i];
  const double norm = sqrt(total), factor = job->call->options[0] / (norm + 1e-6);
  *(double *)gc_first(&t[1]) = norm;
  *(double *)gc_first(&t[2]) = factor > 1 ? 1 : factor;
}

/* x *= factor, float64 (1). */
static int NAME(plan_scale_by)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  GC_REQUIRE(gc_numel(&t[0]) == 1, 0, "one float64");
  return gc_plan_simple(plan, gc_ceil_div(gc_numel(&t[1]), GC_BLOCK));
}

static void NAME(run_scale_by)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const REAL factor = (REAL) * (const double *)gc_first(&t[0]);
  const int64_t first = job->task * GC_BLOCK, end = gc_min(gc_numel(&t[1]), first + GC_BLOCK);
  REAL *x = (REAL *)gc_first(&t[1]);
  for (int64_t i = first; i < end; i++)
    x[i] *= factor;
}

#endif
