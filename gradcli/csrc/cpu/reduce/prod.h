/* prod.h -- the product of (outer, n, inner) along n, and its gradient. Floats are multiplied in
 * double, whole numbers in int64, which wraps. The plan is that of a sum. */
#ifndef GC_PROD_H
#define GC_PROD_H

#include "../kernel.h"
#include "../lines.h"
#include "../type.h"
#include "../walk.h"
#ifdef GC_IS_REAL
#include "sums.h"
#endif

static ACC NAME(product_of_row)(const REAL *x, int64_t n) {
  ACC product = 1;
  int64_t i = 0;
#ifdef GC_IS_REAL
  gc_eight lanes[4]; /* running products that do not wait for each other */
  for (int k = 0; k < 4; k++)
    lanes[k] = (gc_eight){0} + 1;
  for (; i + 32 <= n; i += 32)
    for (int k = 0; k < 4; k++)
      lanes[k] *= WIDE(EIGHT(x + i + 8 * k));
  for (; i + 8 <= n; i += 8)
    lanes[0] *= WIDE(EIGHT(x + i));
  lanes[0] = (lanes[0] * lanes[1]) * (lanes[2] * lanes[3]);
  for (int k = 0; k < 8; k++)
    product *= lanes[0][k];
#endif
  for (; i < n; i++)
    product *= (ACC)x[i];
  return product;
}

/* product[j] = product over i of x[i * inner + j] */
static void NAME(product_of_line)(const REAL *x, int64_t n, int64_t width, int64_t inner,
                                  ACC *product) {
  if (inner == 1) {
    product[0] = NAME(product_of_row)(x, n);
    return;
  }
  for (int64_t j = 0; j < width; j++)
    product[j] = 1;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < width; j++)
      product[j] *= (ACC)x[i * inner + j];
}

static void NAME(run_prod)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_cut c = gc_cut_of(&t[0]);
  OUT *out = (OUT *)gc_first(&t[1]);
  ACC *parts = (ACC *)job->shared, product[GC_WIDTH];
  if (job->phase == 1) {
    const int64_t end = gc_min(c.results, (job->task + 1) * GC_BLOCK);
    for (int64_t r = job->task * GC_BLOCK; r < end; r++) {
      ACC total = 1;
      for (int64_t k = 0; k < c.chunks; k++)
        total *= parts[k * c.results + r];
      out[r] = (OUT)total;
    }
    return;
  }
  const gc_share s = gc_share_of(&c, job->task);
  for (int64_t l = s.first; l < s.last; l++) {
    const gc_line line = gc_line_of(&c, l);
    const REAL *x = (const REAL *)gc_first(&t[0]) + line.at + s.from * c.inner;
    ACC *to = c.chunks > 1 ? parts + s.part * c.results + line.result : product;
    NAME(product_of_line)(x, s.to - s.from, line.width, c.inner, to);
    for (int64_t j = 0; c.chunks == 1 && j < line.width; j++)
      out[line.result + j] = (OUT)product[j];
  }
}

#ifdef GC_IS_REAL
/* x, grad -> grad times the product of all others, without a division: so x may be 0 or infinite.
 * Where n is in chunks, phase 0 multiplies the numbers of each. */
static int NAME(plan_prod_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  const gc_cut c = gc_cut_of(&call->tensors[0]);
  plan->phases = c.chunks > 1 ? 2 : 1;
  plan->tasks[0] = plan->tasks[1] = c.tasks;
  plan->shared_bytes = c.chunks > 1 ? c.chunks * c.results * (int64_t)sizeof(double) : 0;
  const int64_t steps = c.inner == 1 ? gc_ceil_div(c.chunk, 8) : c.chunk;
  plan->worker_bytes = steps * (int64_t)sizeof(gc_eight);
  return GC_OK;
}

/* Up to eight numbers at each of `steps` steps along x, `stride` apart: neighbouring columns, or a
 * row that is cut in eights, of which the last step may have fewer. */
typedef struct {
  const REAL *x;
  REAL *out;
  int64_t steps, stride, width, last;
  gc_eight *before; /* at each step the product of those before it */
} NAME(factors);

static inline int64_t NAME(width_at)(const NAME(factors) * f, int64_t i) {
  return i + 1 < f->steps ? f->width : f->last;
}

/* product *= the numbers of step i; lanes for which there is none stay. */
static inline void NAME(multiply_by)(gc_eight *product, const NAME(factors) * f, int64_t i) {
  const REAL *x = f->x + i * f->stride;
  const int64_t width = NAME(width_at)(f, i);
  if (width == 8)
    *product *= WIDE(EIGHT(x));
  else
    for (int64_t k = 0; k < width; k++)
      (*product)[k] *= (double)x[k];
}

static void NAME(multiply_up)(const NAME(factors) * f, gc_eight *product) {
  *product = (gc_eight){0} + 1;
  for (int64_t i = 0; i < f->steps; i++) {
    f->before[i] = *product;
    NAME(multiply_by)(product, f, i);
  }
}

/* `share` is what each lane's products of others are multiplied by. */
static void NAME(write_others)(const NAME(factors) * f, gc_eight *share) {
  for (int64_t i = f->steps - 1; i >= 0; i--) {
    const gc_eight others = f->before[i] * *share;
    REAL *out = f->out + i * f->stride;
    const int64_t width = NAME(width_at)(f, i);
    if (width == 8)
      *(NAME(eight) *)out = __builtin_convertvector(others, NAME(eight));
    else
      for (int64_t k = 0; k < width; k++)
        out[k] = (REAL)others[k];
    NAME(multiply_by)(share, f, i);
  }
}

/* share[k] = factor times the product of all lanes but k */
static void NAME(share_lanes)(const gc_eight *lanes, double factor, gc_eight *share) {
  for (int k = 0; k < 8; factor *= (*lanes)[k++])
    (*share)[k] = factor;
  factor = 1;
  for (int k = 7; k >= 0; factor *= (*lanes)[k--])
    (*share)[k] *= factor;
}

static void NAME(run_prod_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_cut c = gc_cut_of(&t[0]);
  const gc_share s = gc_share_of(&c, job->task);
  const int64_t n = s.to - s.from;
  double *parts = (double *)job->shared;
  for (int64_t l = s.first; l < s.last; l++) {
    const gc_line line = gc_line_of(&c, l);
    const REAL *x = (const REAL *)gc_first(&t[0]) + line.at + s.from * c.inner;
    if (c.chunks > 1 && job->phase == 0) {
      NAME(product_of_line)(x, n, line.width, c.inner, parts + s.part * c.results + line.result);
      continue;
    }
    double share[GC_WIDTH];
    for (int64_t j = 0; j < line.width; j++) {
      share[j] = (double)((const REAL *)gc_first(&t[1]))[line.result + j];
      for (int64_t k = 0; k < c.chunks; k++)
        share[j] *= k == s.part ? 1 : parts[k * c.results + line.result + j];
    }
    REAL *out = (REAL *)gc_first(&t[2]) + line.at + s.from * c.inner;
    NAME(factors) f = {.x = x, .out = out, .before = job->own};
    gc_eight lanes, shares = {0};
    if (c.inner == 1) {
      f.steps = gc_ceil_div(n, 8);
      f.stride = f.width = 8;
      f.last = n - 8 * (f.steps - 1);
      NAME(multiply_up)(&f, &lanes);
      NAME(share_lanes)(&lanes, share[0], &shares);
      NAME(write_others)(&f, &shares);
      continue;
    }
    f.steps = n;
    f.stride = c.inner;
    for (int64_t j = 0; j < line.width; j += 8, f.x += 8, f.out += 8) {
      f.width = f.last = gc_min(8, line.width - j);
      for (int64_t k = 0; k < f.width; k++)
        shares[k] = share[j + k];
      NAME(multiply_up)(&f, &lanes);
      NAME(write_others)(&f, &shares);
    }
  }
}
#endif

#endif
