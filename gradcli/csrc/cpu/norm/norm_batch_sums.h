/* norm_batch_sums.h -- the sums over one channel of images that batch norm needs, in double: in 4
 * vectors of running sums that do not wait for each other, and whose number never changes. */
#ifndef GC_NORM_BATCH_SUMS_H
#define GC_NORM_BATCH_SUMS_H

#include "../elementwise/halves.h"
#include "../elementwise/operands.h"
#include "../kernel.h"
#include "../lines.h"
#include "../matmul/gemm_tile.h"
#include "../reduce/sums.h"
#include "../type.h"

/* WIDE_MADD(a, b, c) = a * b + c in double, rounded once where the processor can. */
#if !defined(GC_HAS_FMA)
#define WIDE_MADD(a, b, c) ((a) * (b) + (c))
#elif defined(__x86_64__) && GC_VECTOR_BYTES == 64
#define WIDE_MADD(a, b, c) _mm512_fmadd_pd(a, b, c)
#elif defined(__x86_64__)
#define WIDE_MADD(a, b, c) _mm256_fmadd_pd(a, b, c)
#else
#define WIDE_MADD(a, b, c)                                                                         \
  ((gc_wide)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#endif
typedef double gc_wide __attribute__((vector_size(GC_VECTOR_BYTES)));
/* As many numbers, which become doubles. */
typedef REAL NAME(narrow) __attribute__((vector_size(GC_VECTOR_BYTES / 8 * sizeof(REAL)),
                                         aligned(sizeof(REAL)), may_alias));

static inline gc_wide NAME(widened)(const REAL *x) {
#if GC_VECTOR_BYTES == 64
  return WIDE(EIGHT(x)); /* gcc would do it in halves */
#else
  return __builtin_convertvector(*(const NAME(narrow) *)x, gc_wide);
#endif
}

/* Asks for n elements from number `at` on. */
static inline void NAME(fetch)(NAME(numbers) x, int64_t at, int64_t n) {
  const int64_t size = x.half ? 2 : (int64_t)sizeof(REAL);
  for (int64_t j = 0; j < n * size; j += 64)
    __builtin_prefetch((const char *)x.data + at * size + j);
}

/* With v = x - shift, and b = grad, or v itself where `own`: the sums of b and of b * v over `rows`
 * rows of n, which lie `apart`: in different pages, where the processor does not look ahead by
 * itself, so that it is asked. */
static inline __attribute__((always_inline)) void
NAME(channel_sums)(const bool own, const bool half, NAME(numbers) x, NAME(numbers) grad, int64_t at,
                   int64_t rows, int64_t apart, int64_t n, double shift, double *plain,
                   double *product) {
  enum { PER_VECTOR = GC_VECTOR_BYTES / 8, VECTORS = 4, AHEAD = 512 /* elements to fetch early */ };
  enum { STEP = VECTORS * PER_VECTOR };
  REAL room[2][STEP];
  x.half &= half, grad.half &= half;
  const int64_t ahead = gc_ceil_div(AHEAD, gc_max(1, n));
  gc_wide s[VECTORS] = {{0}}, q[VECTORS] = {{0}};
  double rest_s = 0, rest_q = 0;
  for (int64_t row = 0; row < rows; row++, at += apart) {
    const int64_t next = row + ahead < rows ? ahead * apart : 0;
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
      NAME(fetch)(x, at + next + i, STEP);
      if (!own)
        NAME(fetch)(grad, at + next + i, STEP);
      const REAL *from = NAME(read)(x, at + i, STEP, room[0]);
      const REAL *g = own ? from : NAME(read)(grad, at + i, STEP, room[1]);
      GC_UNROLL for (int j = 0; j < VECTORS; j++) {
        const gc_wide v = NAME(widened)(from + j * PER_VECTOR) - shift;
        const gc_wide b = own ? v : NAME(widened)(g + j * PER_VECTOR);
        s[j] += b;
        q[j] = WIDE_MADD(b, v, q[j]);
      }
    }
    const REAL *from = NAME(read)(x, at + i, n - i, room[0]);
    const REAL *g = own ? from : NAME(read)(grad, at + i, n - i, room[1]);
    for (int64_t j = 0; j < n - i; j++) {
      const double v = (double)from[j] - shift, b = own ? v : (double)g[j];
      rest_s += b;
      rest_q += b * v;
    }
  }
  for (int j = 1; j < VECTORS; j++) {
    s[0] += s[j];
    q[0] += q[j];
  }
  for (int i = 0; i < PER_VECTOR; i++) {
    rest_s += s[0][i];
    rest_q += q[0][i];
  }
  *plain = rest_s;
  *product = rest_q;
}

/* The same for `width` channels of one element a sample, which lie side by side. */
static inline __attribute__((always_inline)) void
NAME(channels_sums)(const bool own, NAME(numbers) x, NAME(numbers) grad, int64_t at, int64_t rows,
                    int64_t apart, int64_t width, const REAL *shift, double *plain,
                    double *product) {
  REAL room[2][GC_WIDTH];
  for (int64_t k = 0; k < width; k++)
    plain[k] = product[k] = 0;
  for (int64_t row = 0; row < rows; row++, at += apart) {
    const REAL *from = NAME(read)(x, at, width, room[0]);
    const REAL *g = own ? from : NAME(read)(grad, at, width, room[1]);
    GC_INDEPENDENT for (int64_t k = 0; k < width; k++) {
      const double v = (double)from[k] - (double)shift[k], b = own ? v : (double)g[k];
      plain[k] += b;
      product[k] += b * v;
    }
  }
}

#endif
