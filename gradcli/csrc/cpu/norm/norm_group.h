/* norm_group.h -- group norm of (N, C, L): each of the G groups of C / G channels of a sample by
 * itself, then a weight and a bias for each channel. mean and rstd are (N, G). A task is one group
 * in a chunk of samples. A weight or bias of no elements is one left out. */
#ifndef GC_NORM_GROUP_H
#define GC_NORM_GROUP_H

#include "../elementwise/halves.h"
#include "../elementwise/maths_base.h"
#include "../elementwise/operands.h"
#include "../kernel.h"
#include "../lines.h"
#include "../type.h"
#include "../walk.h"
#include "norm.h"
#include "norm_batch_sums.h"

typedef struct {
  int64_t N, C, L, G;
  int64_t width, n; /* channels and elements of a group */
  int64_t chunk, chunks;
} gc_groups;

static inline gc_groups gc_groups_of(const gc_tensor *x, const gc_tensor *mean) {
  gc_groups g = {.N = x->shape[0], .C = x->shape[1], .L = x->shape[2], .G = mean->shape[1]};
  g.width = g.C / gc_max(1, g.G);
  g.n = g.N ? g.width * g.L : 0;
  g.chunk = gc_max(GC_BLOCK / gc_max(1, g.n), gc_ceil_div(g.N, GC_MANY));
  g.chunk = gc_max(1, gc_min(g.chunk, g.N));
  g.chunks = gc_ceil_div(g.N, g.chunk);
  return g;
}

/* For plans: g, of the groups that tensor number `mean` has. */
#define GC_GROUPS_OF(mean)                                                                         \
  const int64_t groups = call->tensors[mean].shape[1];                                             \
  GC_REQUIRE(groups > 0 && call->tensors[0].shape[1] % groups == 0, mean,                          \
             "groups of as many channels each");                                                   \
  const gc_groups g = gc_groups_of(&call->tensors[0], &call->tensors[mean])

/* x, weight, bias -> y, mean, rstd; options[0]: eps */
static int NAME(plan_group_norm)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_GROUPS_OF(4);
  return gc_plan_simple(plan, g.chunks * g.G);
}

/* What is taken off before numbers are summed and squared is their first, unless that is not
 * finite: then sums in double lose nothing, however far from 0 a group lies. */
static NAME(moments) NAME(moments_at_once)(const REAL *x, int64_t n, double eps, double *rstd) {
  const double shift = n > 0 && x[0] - x[0] == 0 ? (double)x[0] : 0;
  double sum, square;
  const NAME(numbers) own = NAME(numbers_at)(x);
  NAME(channel_sums)(true, false, own, own, 0, 1, 0, n, shift, &sum, &square);
  const double count = (double)gc_max(1, n), spread = (square - sum * sum / count) / count;
  const double mean = shift + sum / count;
  *rstd = 1 / sqrt((spread < 0 ? 0 : spread) + eps);
  return (NAME(moments)){(REAL)mean, (REAL)(mean - (double)(REAL)mean), (REAL)*rstd};
}

static void NAME(run_group_norm)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_groups g = gc_groups_of(&t[0], &t[4]);
  const int64_t group = job->task % g.G, part = job->task / g.G, first = group * g.width;
  const REAL *weight = t[1].shape[0] ? (const REAL *)gc_first(&t[1]) + first : NULL;
  const REAL *bias = t[2].shape[0] ? (const REAL *)gc_first(&t[2]) + first : NULL;
  const int64_t end = gc_min(g.N, (part + 1) * g.chunk);
  for (int64_t i = part * g.chunk; i < end; i++) {
    const REAL *x = (const REAL *)gc_first(&t[0]) + (i * g.C + first) * g.L;
    REAL *y = (REAL *)gc_first(&t[3]) + (i * g.C + first) * g.L;
    double rstd;
    const NAME(moments) m = NAME(moments_at_once)(x, g.n, job->call->options[0], &rstd);
    ((REAL *)gc_first(&t[4]))[i * g.G + group] = m.mean;
    ((REAL *)gc_first(&t[5]))[i * g.G + group] = m.rstd;
    for (int64_t k = 0; k < g.width; k++, x += g.L, y += g.L) {
      const REAL scale = (REAL)(rstd * (weight ? (double)weight[k] : 1)),
                 shift = bias ? bias[k] : 0;
      GC_INDEPENDENT for (int64_t l = 0; l < g.L; l++) y[l] =
          M_FMA((x[l] - m.mean) - m.rest, scale, shift);
    }
  }
}

/* x, grad, mean, rstd, weight -> gradients of x, weight and bias */
static int NAME(plan_group_norm_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_GROUPS_OF(2);
  plan->phases = 2;
  plan->tasks[0] = g.chunks * g.G;
  plan->tasks[1] = gc_ceil_div(g.C, GC_WIDTH);
  plan->shared_bytes = 2 * g.chunks * g.C * (int64_t)sizeof(double);
  return GC_OK;
}

/* Of one channel: the sums of grad and of grad * (x - mean). */
static inline void NAME(channel_slopes)(const REAL *x, const REAL *grad, int64_t n, double mean,
                                        double *plain, double *product) {
  if (n >= 16) {
    NAME(channel_sums)(false, false, NAME(numbers_at)(x), NAME(numbers_at)(grad), 0, 1, 0, n, mean,
                       plain, product);
    return;
  }
  *plain = *product = 0; /* so few are added sooner than vectors are set up */
  for (int64_t i = 0; i < n; i++) {
    *plain += (double)grad[i];
    *product += (double)grad[i] * ((double)x[i] - mean);
  }
}

/* One group of one sample; what it adds to the gradients of weight and bias goes into `dots` and
 * `sums`. With g = grad * weight and h = (x - mean) * rstd:
 * out = rstd * (g - mean(g) - h * mean(g * h)). */
static void NAME(group_slopes)(const gc_groups *g, const REAL *x, const REAL *grad, REAL mean,
                               double rstd, const REAL *weight, REAL *out, double *dots,
                               double *sums) {
  double sum = 0, dot = 0;
  for (int64_t k = 0; k < g->width; k++) {
    double plain, product;
    NAME(channel_slopes)(x + k * g->L, grad + k * g->L, g->L, (double)mean, &plain, &product);
    product *= rstd;
    sums[k] += plain;
    dots[k] += product;
    sum += weight ? (double)weight[k] * plain : plain;
    dot += weight ? (double)weight[k] * product : product;
  }
  const double share = rstd / (double)gc_max(1, g->n);
  const REAL back = (REAL)(sum * share), slope = (REAL)(dot * share * rstd);
  for (int64_t k = 0; k < g->width; k++, x += g->L, grad += g->L, out += g->L) {
    const REAL scale = (REAL)(rstd * (weight ? (double)weight[k] : 1));
    GC_INDEPENDENT for (int64_t l = 0; l < g->L; l++) out[l] =
        (grad[l] * scale - back) - (x[l] - mean) * slope;
  }
}

static void NAME(run_group_norm_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_groups g = gc_groups_of(&t[0], &t[2]);
  double *parts = (double *)job->shared;
  if (job->phase == 1) {
    const int64_t end = gc_min(g.C, (job->task + 1) * GC_WIDTH);
    for (int64_t k = job->task * GC_WIDTH; k < end; k++) {
      double weight = 0, bias = 0;
      for (int64_t part = 0; part < g.chunks; part++) {
        weight += parts[2 * part * g.C + k];
        bias += parts[(2 * part + 1) * g.C + k];
      }
      ((REAL *)gc_first(&t[6]))[k] = (REAL)weight;
      ((REAL *)gc_first(&t[7]))[k] = (REAL)bias;
    }
    return;
  }
  const int64_t group = job->task % g.G, part = job->task / g.G, first = group * g.width;
  const REAL *weight = t[4].shape[0] ? (const REAL *)gc_first(&t[4]) + first : NULL;
  double *dots = parts + 2 * part * g.C + first, *sums = dots + g.C;
  for (int64_t k = 0; k < g.width; k++)
    dots[k] = sums[k] = 0;
  const int64_t end = gc_min(g.N, (part + 1) * g.chunk);
  for (int64_t i = part * g.chunk; i < end; i++) {
    const int64_t at = (i * g.C + first) * g.L, row = i * g.G + group;
    NAME(group_slopes)(&g, (const REAL *)gc_first(&t[0]) + at, (const REAL *)gc_first(&t[1]) + at,
                       ((const REAL *)gc_first(&t[2]))[row],
                       (double)((const REAL *)gc_first(&t[3]))[row], weight,
                       (REAL *)gc_first(&t[5]) + at, dots, sums);
  }
}

#endif
