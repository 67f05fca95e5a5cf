/* sums.h -- sums in double of numbers of this build, eight at a time in four running sums that do
 * not wait for each other. Their number never changes, so neither do the bits. */
#ifndef GC_SUMS_H
#define GC_SUMS_H

#include "../type.h"

#if defined(__x86_64__) && GC_VECTOR_BYTES > 16
#include <immintrin.h>
#endif
enum { GC_SHORT_SUM = 32 /* below it the second to fourth running sum have nothing to do */ };
typedef double gc_eight __attribute__((vector_size(64)));
typedef double gc_loose_eight __attribute__((vector_size(64), aligned(8), may_alias));

static inline double gc_sum_of_eight(const gc_eight *x) {
  return (((*x)[0] + (*x)[4]) + ((*x)[1] + (*x)[5])) + (((*x)[2] + (*x)[6]) + ((*x)[3] + (*x)[7]));
}

/* total = sum over i = 0..n-1: `eight` is the sum's terms i to i + 7, `one` is term i alone. */
#define GC_SUM_EIGHTS(total, n, i, eight, one)                                                     \
  double total = 0;                                                                                \
  do {                                                                                             \
    gc_eight sum_[4] = {{0}, {0}, {0}, {0}};                                                       \
    int64_t i = 0;                                                                                 \
    for (; i + 32 <= (n); i += 8) {                                                                \
      sum_[0] += (eight);                                                                          \
      i += 8;                                                                                      \
      sum_[1] += (eight);                                                                          \
      i += 8;                                                                                      \
      sum_[2] += (eight);                                                                          \
      i += 8;                                                                                      \
      sum_[3] += (eight);                                                                          \
    }                                                                                              \
    for (; i + 8 <= (n); i += 8)                                                                   \
      sum_[0] += (eight);                                                                          \
    for (; i < (n); i++)                                                                           \
      total += (one);                                                                              \
    sum_[0] = (sum_[0] + sum_[1]) + (sum_[2] + sum_[3]);                                           \
    total += gc_sum_of_eight(&sum_[0]);                                                            \
  } while (0)

/* Eight numbers anywhere in memory, and the same as doubles. */
typedef REAL NAME(eight)
    __attribute__((vector_size(8 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
#define EIGHT(at) (*(const NAME(eight) *)(at))
#if defined(__x86_64__) && GC_VECTOR_BYTES == 64 && defined(GC_IS_FLOAT)
#define WIDE(eight) ((gc_eight)_mm512_cvtps_pd((__m256)(eight))) /* gcc would do it in halves */
#else
#define WIDE(eight) __builtin_convertvector(eight, gc_eight)
#endif

static inline double NAME(sum)(const REAL *x, int64_t n) {
  GC_SUM_EIGHTS(total, n, i, WIDE(EIGHT(x + i)), (double)x[i]);
  return total;
}

static inline double NAME(dot)(const REAL *x, const REAL *y, int64_t n) {
  GC_SUM_EIGHTS(total, n, i, WIDE(EIGHT(x + i)) * WIDE(EIGHT(y + i)), (double)x[i] * (double)y[i]);
  return total;
}

#endif
