/* vectors.h -- maths on whole vectors (NAME(vec) of gemm_tile.h), where compilers do not vectorise
 * a loop over numbers well: comparisons, and what is summed up or compared along a row. */
#ifndef GC_VECTORS_H
#define GC_VECTORS_H

#include "../../maths_shared.h"
#include "../matmul/gemm_pack.h"
#include "../matmul/gemm_tile.h"
#include "../type.h"

/* Of a number and a NaN it is the second, so that either can be kept. */
#if defined(__x86_64__) && GC_VECTOR_BYTES == 64 && defined(GC_IS_FLOAT)
#define LARGER_OF(a, b) _mm512_max_ps(a, b)
#define SMALLER_OF(a, b) _mm512_min_ps(a, b)
#elif defined(__x86_64__) && GC_VECTOR_BYTES == 64
#define LARGER_OF(a, b) _mm512_max_pd(a, b)
#define SMALLER_OF(a, b) _mm512_min_pd(a, b)
#elif defined(__x86_64__) && GC_VECTOR_BYTES == 32 && defined(GC_IS_FLOAT)
#define LARGER_OF(a, b) _mm256_max_ps(a, b)
#define SMALLER_OF(a, b) _mm256_min_ps(a, b)
#elif defined(__x86_64__) && GC_VECTOR_BYTES == 32
#define LARGER_OF(a, b) _mm256_max_pd(a, b)
#define SMALLER_OF(a, b) _mm256_min_pd(a, b)
#else
#define LARGER_OF(a, b) NAME(pick_each)(a, b, (a) > (b))
#define SMALLER_OF(a, b) NAME(pick_each)(a, b, (a) < (b))
static inline NAME(vec) NAME(pick_each)(NAME(vec) a, NAME(vec) b, NAME(lanes) first) {
  return (NAME(vec))(((NAME(lanes))a & first) | ((NAME(lanes))b & ~first));
}
#endif

#define EACH(number) ((NAME(vec)){0} + (REAL)(number))

/* m_exp_normal of each. */
static inline NAME(vec) NAME(exp_each)(NAME(vec) x) {
#ifdef GC_IS_FLOAT
  const REAL round_to_exponent = 12582912 + 127;
  x = SMALLER_OF(EACH(89), x);
  x = LARGER_OF(EACH(-88), x);
  const NAME(vec) shifted = MADD(x, EACH(1.44269504), EACH(round_to_exponent));
  const NAME(vec) n = shifted - round_to_exponent;
  const NAME(vec) r = MADD(n, EACH(2.12194440e-4), MADD(n, EACH(-0.693359375), x));
  NAME(vec) q = EACH(0.00138190319);
  q = MADD(q, r, EACH(0.00836871564));
  q = MADD(q, r, EACH(0.0416682884));
  q = MADD(q, r, EACH(0.166665211));
  q = MADD(q, r, EACH(0.49999994));
  const NAME(vec) p = 1 + MADD(q, r * r, r);
  return p * (NAME(vec))((NAME(lanes))shifted << 23);
#else
  for (int64_t k = 0; k < LANES; k++)
    x[k] = m_exp_normal(x[k]);
  return x;
#endif
}

/* One number of all lanes: each round puts both halves together, all results twice. */
static inline REAL NAME(sum_of_each)(NAME(vec) x) {
  GC_UNROLL for (int64_t round = 1; round < LANES; round *= 2) x =
      PICK(x, x, LOW) + PICK(x, x, HIGH);
  return x[0];
}

static inline REAL NAME(largest_of_each)(NAME(vec) x) {
  GC_UNROLL for (int64_t round = 1; round < LANES; round *= 2) x =
      LARGER_OF(PICK(x, x, LOW), PICK(x, x, HIGH));
  return x[0];
}

#endif
