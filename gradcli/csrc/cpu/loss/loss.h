/* loss.h -- cross-entropy of (outer, classes, inner) against class numbers, and the mean squared
 * error. Losses are added in double, in an order that the shapes fix. A row is one sample. */
#ifndef GC_LOSS_H
#define GC_LOSS_H

#include "../../maths_shared.h"
#include "../elementwise/copy.h"
#include "../kernel.h"
#include "../lines.h"
#include "../norm/softmax.h"
#include "../type.h"
#include "../walk.h"

enum { GC_NONE, GC_MEAN, GC_SUMMED };

/* sizes: reduction, the target to ignore, 1 where x holds logarithms of probabilities already;
 * options: label smoothing. A weight of no elements is 1 for every class. */
static int NAME(check_loss)(const gc_call *call, int32_t loss, gc_error *error) {
  const gc_tensor *t = &call->tensors[loss];
  if (call->sizes[0] == GC_NONE)
    GC_REQUIRE(gc_same_shape(t, &call->tensors[1]), loss, "a number for each target");
  else
    GC_REQUIRE(gc_numel(t) == 1, loss, "one number");
  return GC_OK;
}

/* x, target, weight -> loss, stats (a row's largest logit and the logarithm of its sum of
 * exponentials), total (what a mean is divided by) */
static int NAME(plan_cross_entropy)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = NAME(check_loss)(call, 3, error);
  const gc_tensor *x = &call->tensors[0];
  plan->phases = 2;
  plan->tasks[0] = gc_ceil_div(x->shape[0] * x->shape[2], GC_ROWS);
  plan->tasks[1] = 1;
  plan->shared_bytes = 2 * plan->tasks[0] * (int64_t)sizeof(double);
  plan->worker_bytes = x->shape[1] * (int64_t)sizeof(REAL);
  return status;
}

typedef struct {
  const REAL *x, *weight; /* of this row; weight may be NULL */
  int64_t row, classes, stride, target;
  REAL top, log_sum;
  bool ignored;
} NAME(sample);

/* Row `row` of the call, the `j`-th of `outer`; reports a target that is no class. */
static inline NAME(sample)
    NAME(sample_of)(const gc_job *job, int64_t row, int64_t outer, int64_t j) {
  const gc_tensor *t = job->call->tensors;
  const int64_t inner = t[0].shape[2], classes = t[0].shape[1];
  NAME(sample) s = {.row = row, .classes = classes, .stride = inner};
  s.x = (const REAL *)gc_first(&t[0]) + outer * classes * inner + j;
  s.weight = t[2].shape[0] ? (const REAL *)gc_first(&t[2]) : NULL;
  s.target = ((const int64_t *)gc_first(&t[1]))[row];
  s.ignored = s.target == job->call->sizes[1];
  if (!s.ignored && (s.target < 0 || s.target >= classes)) {
    gc_bad_index(job, 1, row, s.target, classes);
    s.ignored = true;
  }
  return s;
}

/* The largest logit of a row, and the logarithm of its sum of exponentials. */
static void NAME(log_sum_of)(NAME(sample) * s, REAL *own) {
  const NAME(rows) one = {.n = s->classes, .stride = 1, .width = 1};
  const REAL *x = s->stride == 1 ? s->x : own;
  double exponentials;
  for (int64_t i = 0; s->stride != 1 && i < s->classes; i++)
    own[i] = s->x[i * s->stride];
  NAME(tops_of_rows)(x, one, &s->top);
  NAME(exp_rows)(x, own, one, &s->top, &exponentials);
  s->log_sum = (REAL)log(exponentials);
}

static inline double NAME(weight_of)(const NAME(sample) * s, int64_t class) {
  return s->weight ? (double)s->weight[class] : 1;
}

/* minus the logarithm of the probability of a class */
static inline double NAME(surprise)(const NAME(sample) * s, int64_t class) {
  return (double)s->log_sum - ((double)s->x[class * s->stride] - (double)s->top);
}

/* The sum of that over all classes, each by its weight. */
static double NAME(surprises)(const NAME(sample) * s) {
  if (s->weight || s->stride != 1) {
    GC_SUM(all, s->classes, i, NAME(weight_of)(s, i) * NAME(surprise)(s, i));
    return all;
  }
  const REAL *x = s->x; /* the loop that vectorises */
  const double log_sum = (double)s->log_sum, top = (double)s->top;
  GC_SUM(all, s->classes, i, log_sum - ((double)x[i] - top));
  return all;
}

static double NAME(loss_of)(const NAME(sample) * s, double smoothing) {
  double loss = 0;
  if (smoothing < 1)
    loss = (1 - smoothing) * NAME(weight_of)(s, s->target) * NAME(surprise)(s, s->target);
  if (smoothing > 0)
    loss += smoothing / (double)s->classes * NAME(surprises)(s);
  return loss;
}

static void NAME(run_cross_entropy)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t inner = t[0].shape[2], rows = t[0].shape[0] * inner;
  const int64_t reduction = job->call->sizes[0];
  REAL *loss = (REAL *)gc_first(&t[3]), *stats = (REAL *)gc_first(&t[4]);
  REAL *own = (REAL *)job->own;
  double *parts = (double *)job->shared, sum = 0, total = 0;
  if (job->phase == 1) {
    for (int64_t k = 0; k < gc_ceil_div(rows, GC_ROWS); k++) {
      sum += parts[2 * k];
      total += parts[2 * k + 1];
    }
    ((REAL *)gc_first(&t[5]))[0] = (REAL)total;
    if (reduction != GC_NONE)
      loss[0] = (REAL)(reduction == GC_MEAN ? sum / total : sum);
    return;
  }
  const int64_t end = gc_min(rows, (job->task + 1) * GC_ROWS);
  int64_t row = job->task * GC_ROWS, outer = row / inner, j = row % inner;
  for (; row < end; row++) {
    NAME(sample) s = NAME(sample_of)(job, row, outer, j);
    if (!job->call->sizes[2] && s.classes)
      NAME(log_sum_of)(&s, own);
    stats[outer * 2 * inner + j] = s.top;
    stats[outer * 2 * inner + inner + j] = s.log_sum;
    if (++j == inner) {
      j = 0;
      outer++;
    }
    const double of_row = s.ignored ? 0 : NAME(loss_of)(&s, job->call->options[0]);
    if (reduction == GC_NONE)
      loss[row] = (REAL)of_row;
    sum += of_row;
    total += s.ignored ? 0 : NAME(weight_of)(&s, s.target);
  }
  parts[2 * job->task] = sum;
  parts[2 * job->task + 1] = total;
}

/* x, target, weight, stats, total, grad -> the gradient of x */
static int NAME(plan_cross_entropy_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int64_t *shape = call->tensors[0].shape;
  gc_plan_simple(plan, gc_ceil_div(shape[0] * shape[2], GC_ROWS));
  return NAME(check_loss)(call, 5, error);
}

/* With q the weighted, smoothed target: out = scale * (softmax(x) * sum(q) - q). */
static void NAME(cross_entropy_slope)(const NAME(sample) * s, double scale, double smoothing,
                                      bool from_logs, REAL *out) {
  const double hit = (1 - smoothing) * NAME(weight_of)(s, s->target);
  const double rest = smoothing / (double)s->classes;
  double sum = hit;
  if (smoothing > 0 && s->weight) {
    GC_SUM(weights, s->classes, i, NAME(weight_of)(s, i));
    sum += rest * weights;
  } else if (smoothing > 0)
    sum += rest * (double)s->classes;
  const REAL of_softmax = (REAL)(scale * sum);
  const REAL each = smoothing > 0 && !s->weight ? (REAL)(scale * rest) : 0;
  if (from_logs && s->stride == 1)
    for (int64_t i = 0; i < s->classes; i++)
      out[i] = 0 - each;
  else if (from_logs)
    for (int64_t i = 0; i < s->classes; i++)
      out[i * s->stride] = 0 - each;
  else if (s->stride == 1) /* the loop that vectorises */
    for (int64_t i = 0; i < s->classes; i++)
      out[i] = of_softmax * m_exp(s->x[i] - s->top - s->log_sum) - each;
  else
    for (int64_t i = 0; i < s->classes; i++)
      out[i * s->stride] = of_softmax * m_exp(s->x[i * s->stride] - s->top - s->log_sum) - each;
  if (smoothing > 0 && s->weight)
    for (int64_t i = 0; i < s->classes; i++)
      out[i * s->stride] -= (REAL)(scale * rest * NAME(weight_of)(s, i));
  out[s->target * s->stride] -= (REAL)(scale * hit);
}

static void NAME(run_cross_entropy_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t inner = t[0].shape[2], rows = t[0].shape[0] * inner, classes = t[0].shape[1];
  const int64_t reduction = job->call->sizes[0], end = gc_min(rows, (job->task + 1) * GC_ROWS);
  const REAL *stats = (const REAL *)gc_first(&t[3]), *grad = (const REAL *)gc_first(&t[5]);
  const double total = (double)((const REAL *)gc_first(&t[4]))[0];
  for (int64_t row = job->task * GC_ROWS; row < end; row++) {
    const int64_t outer = row / inner, j = row % inner;
    NAME(sample) s = NAME(sample_of)(job, row, outer, j);
    REAL *out = (REAL *)gc_first(&t[6]) + outer * classes * inner + j;
    if (s.ignored) {
      for (int64_t i = 0; i < classes; i++)
        out[i * inner] = 0;
      continue;
    }
    s.top = stats[outer * 2 * inner + j];
    s.log_sum = stats[outer * 2 * inner + inner + j];
    const double g = (double)grad[reduction == GC_NONE ? row : 0];
    NAME(cross_entropy_slope)(&s, reduction == GC_MEAN ? g / total : g, job->call->options[0],
                              job->call->sizes[2] != 0, out);
  }
}

/* x, y -> the sum of (x - y) squared; sizes[0]: reduction */
static int NAME(plan_mse)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  const int64_t n = gc_numel(&t[0]);
  GC_REQUIRE(t[2].shape[0] == (call->sizes[0] == GC_NONE ? n : 1), 2,
             "a vector of n, or of one where it is reduced");
  plan->phases = 2;
  plan->tasks[0] = gc_ceil_div(n, GC_BLOCK);
  plan->tasks[1] = call->sizes[0] == GC_NONE ? 0 : 1;
  plan->shared_bytes = plan->tasks[0] * (int64_t)sizeof(double);
  return GC_OK;
}

static void NAME(run_mse)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  REAL *loss = (REAL *)gc_first(&t[2]);
  double *parts = (double *)job->shared;
  if (job->phase == 1) {
    const int64_t n = gc_numel(&t[0]);
    double sum = 0;
    for (int64_t k = 0; k < gc_ceil_div(n, GC_BLOCK); k++)
      sum += parts[k];
    loss[0] = (REAL)(job->call->sizes[0] == GC_MEAN ? sum / (double)n : sum);
    return;
  }
  BLOCK_OF(job, first, n);
  const REAL *x = (const REAL *)gc_first(&t[0]) + first, *y = (const REAL *)gc_first(&t[1]) + first;
  if (job->call->sizes[0] == GC_NONE) {
    for (int64_t i = 0; i < n; i++)
      loss[first + i] = (x[i] - y[i]) * (x[i] - y[i]);
    return;
  }
  GC_SUM(sum, n, i, ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]));
  parts[job->task] = sum;
}

/* x, y, grad -> the gradient of x; the one of y is that of the swapped call */
static int NAME(plan_mse_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  const int64_t n = gc_numel(&t[0]);
  GC_REQUIRE(t[2].shape[0] == (call->sizes[0] == GC_NONE ? n : 1), 2,
             "a vector of n, or of one where it was reduced");
  return NAME(plan_blocks)(call, plan, error);
}

static void NAME(run_mse_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  BLOCK_OF(job, first, n);
  const REAL *x = (const REAL *)gc_first(&t[0]) + first, *y = (const REAL *)gc_first(&t[1]) + first;
  const REAL *grad = (const REAL *)gc_first(&t[2]);
  REAL *out = (REAL *)gc_first(&t[3]) + first;
  if (job->call->sizes[0] == GC_NONE) {
    for (int64_t i = 0; i < n; i++)
      out[i] = 2 * (x[i] - y[i]) * grad[first + i];
    return;
  }
  const double parts = job->call->sizes[0] == GC_MEAN ? (double)gc_numel(&t[0]) : 1;
  const REAL scale = (REAL)(2 * (double)grad[0] / parts);
  for (int64_t i = 0; i < n; i++)
    out[i] = scale * (x[i] - y[i]);
}

#endif
