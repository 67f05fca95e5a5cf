/* norm_batch_sums.h -- the sums over one channel of images that batch norm needs, in double: in 4
 * vectors of running sums that do not wait for each other, and whose number never changes. */

/* WIDE_MADD(a, b, c) = a * b + c in double, rounded once where the processor can. */
#ifndef WIDE_MADD
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
#endif
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

/* With v = x - shift, and b = grad, or v itself where `own`: the sums of b and of b * v over `rows`
 * rows of n, which lie `apart`: in different pages, where the processor does not look ahead by
 * itself, so that it is asked. */
static inline __attribute__((always_inline)) void
NAME(channel_sums)(const bool own, const REAL *x, const REAL *grad, int64_t rows, int64_t apart,
                   int64_t n, double shift, double *plain, double *product) {
  enum { PER_VECTOR = GC_VECTOR_BYTES / 8, VECTORS = 4, AHEAD = 512 /* elements to fetch early */ };
  const int64_t ahead = gc_ceil_div(AHEAD, gc_max(1, n));
  gc_wide s[VECTORS] = {{0}}, q[VECTORS] = {{0}};
  double rest_s = 0, rest_q = 0;
  for (int64_t row = 0; row < rows; row++, x += apart, grad += apart) {
    const int64_t next = row + ahead < rows ? ahead * apart : 0;
    int64_t i = 0;
    for (; i + VECTORS * PER_VECTOR <= n; i += VECTORS * PER_VECTOR) {
      for (int64_t j = 0; j < VECTORS * PER_VECTOR; j += 64 / (int64_t)sizeof(REAL)) {
        __builtin_prefetch(x + next + i + j);
        if (!own)
          __builtin_prefetch(grad + next + i + j);
      }
      GC_UNROLL for (int j = 0; j < VECTORS; j++) {
        const gc_wide v = NAME(widened)(x + i + j * PER_VECTOR) - shift;
        const gc_wide b = own ? v : NAME(widened)(grad + i + j * PER_VECTOR);
        s[j] += b;
        q[j] = WIDE_MADD(b, v, q[j]);
      }
    }
    for (; i < n; i++) {
      const double v = (double)x[i] - shift, b = own ? v : (double)grad[i];
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
NAME(channels_sums)(const bool own, const REAL *x, const REAL *grad, int64_t rows, int64_t apart,
                    int64_t width, const REAL *shift, double *plain, double *product) {
  for (int64_t k = 0; k < width; k++)
    plain[k] = product[k] = 0;
  for (int64_t row = 0; row < rows; row++, x += apart, grad += apart)
    GC_INDEPENDENT for (int64_t k = 0; k < width; k++) {
      const double v = (double)x[k] - (double)shift[k], b = own ? v : (double)grad[k];
      plain[k] += b;
      product[k] += b * v;
    }
}
