/* exact.h -- a sum without any error, rounded once, as Python's math.fsum has it: the same for
 * every order of the numbers. It is a whole number of 2^-1074, the smallest double, in chunks of 32
 * bits (Neal, "Fast exact summation using small and large superaccumulators"). */
#ifndef GC_EXACT_H
#define GC_EXACT_H

#include "../kernel.h"
#include "../type.h"
#include "../walk.h"
#include "nearest.h"

enum {
  GC_EXACT_CHUNKS = 67, /* 2098 bits of a double, and room for 2^32 of the largest */
  GC_EXACT_BITS = 32,   /* of a chunk; the others are what it has to carry */
  GC_EXACT_TERMS = 1024 /* each less than 2^53, before a chunk carries */
};

typedef struct {
  int64_t chunk[GC_EXACT_CHUNKS];
  int64_t above, below, none; /* infinities and NaNs among the terms */
} gc_exact;

static inline void gc_exact_add(gc_exact *sum, double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint64_t exponent = bits >> 52 & 2047, fraction = bits & (((uint64_t)1 << 52) - 1);
  if (exponent == 2047) {
    sum->none += fraction != 0;
    sum->above += !fraction && !(bits >> 63);
    sum->below += !fraction && bits >> 63;
    return;
  }
  const uint64_t digits = exponent ? fraction | (uint64_t)1 << 52 : fraction;
  const uint64_t place = exponent ? exponent - 1 : 0, shift = place % GC_EXACT_BITS;
  const int64_t low = (int64_t)((digits << shift) & UINT32_MAX);
  const int64_t high = (int64_t)(digits >> (GC_EXACT_BITS - shift)), sign = -(int64_t)(bits >> 63);
  int64_t *chunk = sum->chunk + place / GC_EXACT_BITS;
  chunk[0] += (low ^ sign) - sign;
  chunk[1] += (high ^ sign) - sign;
}

/* Every chunk but the last becomes 0 .. 2^32 - 1. */
static inline void gc_exact_carry(gc_exact *sum) {
  for (int i = 0; i + 1 < GC_EXACT_CHUNKS; i++) {
    sum->chunk[i + 1] += sum->chunk[i] >> GC_EXACT_BITS;
    sum->chunk[i] &= UINT32_MAX;
  }
}

/* The nearest double, of two the even one. */
static inline double gc_exact_rounded(gc_exact *sum) {
  if (sum->none || (sum->above && sum->below))
    return NAN;
  if (sum->above || sum->below)
    return sum->above ? INFINITY : -INFINITY;
  gc_exact_carry(sum);
  const double sign = sum->chunk[GC_EXACT_CHUNKS - 1] < 0 ? -1 : 1;
  if (sign < 0) {
    for (int i = 0; i < GC_EXACT_CHUNKS; i++)
      sum->chunk[i] = -sum->chunk[i];
    gc_exact_carry(sum);
  }
  int top = GC_EXACT_CHUNKS - 1;
  while (top > 2 && !sum->chunk[top])
    top--;
  unsigned __int128 digits = 0;
  for (int i = top; i > top - 3; i--)
    digits = digits << GC_EXACT_BITS | (uint64_t)sum->chunk[i];
  bool more = false;
  for (int i = 0; i < top - 2; i++)
    more = more || sum->chunk[i];
  return sign * gc_nearest(digits, more, GC_EXACT_BITS * (top - 2) - 1074);
}

/* pow(x, 2) to the last bit, which takes four times as long. pow errs by less than 0.6 of the last
 * digit, so that it gives x * x wherever that errs by less than 0.4, as the remainder tells. */
static inline double gc_exact_square(double x) {
  const double square = x * x;
  const uint64_t mantissa = ((uint64_t)1 << 52) - 1;
  uint64_t bits;
  memcpy(&bits, &square, sizeof bits);
  if (square > 0x1p-900 && square < 0x1p+1000 && bits & mantissa) { /* below 2^n digits change */
    double digit;
    bits &= ~mantissa;
    memcpy(&digit, &bits, sizeof digit);
    if (fabs(fma(x, x, -square)) < 0.4 * 0x1p-52 * digit)
      return square;
  }
  const volatile double two = 2; /* or compilers make x * x of it */
  return pow(x, two);
}

/* The sum of (x - options[0]) ^ options[1] over x (n), or over those whose byte in marks (n) is
 * not 0, in double. Whoever wants the numbers themselves says 0 and 1. */
static int NAME(plan_exact_sum)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  plan->phases = 2;
  plan->tasks[0] = gc_ceil_div(gc_numel(&call->tensors[0]), GC_BLOCK);
  plan->tasks[1] = 1;
  plan->shared_bytes = plan->tasks[0] * (int64_t)sizeof(gc_exact);
  return GC_OK;
}

static void NAME(exact_part)(const gc_job *job, gc_exact *sum) {
  const gc_tensor *t = job->call->tensors;
  const double shift = job->call->options[0], power = job->call->options[1];
  BLOCK_OF(job, first, n);
  const REAL *x = (const REAL *)gc_first(&t[0]) + first;
  const uint8_t *marks = gc_numel(&t[1]) ? (const uint8_t *)gc_first(&t[1]) + first : NULL;
  *sum = (gc_exact){{0}, 0, 0, 0};
  for (int64_t from = 0; from < n; from += GC_EXACT_TERMS) {
    const int64_t to = gc_min(n, from + GC_EXACT_TERMS);
    for (int64_t i = from; i < to; i++) {
      if (marks && !marks[i])
        continue;
      const double term = (double)x[i] - shift;
      gc_exact_add(sum, power == 1 ? term : power == 2 ? gc_exact_square(term) : pow(term, power));
    }
    gc_exact_carry(sum);
  }
}

static void NAME(run_exact_sum)(const gc_job *job) {
  gc_exact *parts = job->shared, total = {{0}, 0, 0, 0};
  if (job->phase == 0) {
    NAME(exact_part)(job, &parts[job->task]);
    return;
  }
  const int64_t count = gc_ceil_div(gc_numel(&job->call->tensors[0]), GC_BLOCK);
  for (int64_t part = 0; part < count; part++) {
    for (int i = 0; i < GC_EXACT_CHUNKS; i++)
      total.chunk[i] += parts[part].chunk[i];
    total.above += parts[part].above;
    total.below += parts[part].below;
    total.none += parts[part].none;
    gc_exact_carry(&total);
  }
  *(double *)gc_first(&job->call->tensors[2]) = gc_exact_rounded(&total);
}

#endif
