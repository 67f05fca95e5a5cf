/* maths.h -- the functions that scalar_ops.h may use, on a GPU: the CPU's own where it has some
 * (the same polynomials, so the results agree closely), the target's for the rest. */

#ifdef GC_IS_REAL
#define R(c) ((float)(c))
#define M_NAME(function) function##f
#define M_FMA(a, b, c) ffma(a, b, c)
#define fabsf fabs1
#define copysignf fsign

FN uint NAME(m_bits)(float x) {
  return f2u(x);
}
FN float NAME(m_from_bits)(uint bits) {
  return u2f(bits);
}
#include "../../maths_float.h"

#define M_TARGET(name)                                                                             \
  FN float NAME(m_##name)(float x) {                                                               \
    return f##name(x);                                                                             \
  }
M_TARGET(sqrt)
M_TARGET(sin)
M_TARGET(cos)
M_TARGET(tan)
M_TARGET(floor)
M_TARGET(ceil)
M_TARGET(rint)
M_TARGET(trunc)
M_TARGET(log2)
M_TARGET(log10)
M_TARGET(exp2)
M_TARGET(asin)
M_TARGET(acos)
M_TARGET(atan)
M_TARGET(sinh)
M_TARGET(cosh)

FN float NAME(m_atan2)(float y, float x) {
  return fatan2(y, x);
}
FN float NAME(m_fmod)(float a, float b) {
  return ffmod(a, b);
}
FN float NAME(m_pow)(float x, float y) {
  return fpow(x, y);
}

/* sqrt(a^2 + b^2), the larger taken out so that no square overflows. */
FN float NAME(m_hypot)(float a, float b) {
  const float x = fabs1(a), y = fabs1(b), high = x > y ? x : y, low = x > y ? y : x;
  const float ratio = low / high;
  if (x == INFINITY || y == INFINITY)
    return INFINITY;
  return high == 0 ? low : high * fsqrt(M_FMA(ratio, ratio, 1.0f));
}

/* 1 - erf(x). Up to 4 as exp(-q(x)) with m_erf's polynomial; beyond, the first terms of
 * exp(-x^2) / (x sqrt(pi)) (1 - 1 / (2 x^2) + 3 / (4 x^4) - ...). */
FN float NAME(m_erfc)(float x) {
  if (x < 0.5f)
    return 1 - NAME(m_erf)(x);
  const float z = 1 / (x * x);
  float tail = M_FMA(z, -1.875f, 0.75f);
  tail = M_FMA(tail, z, -0.5f);
  tail = M_FMA(tail, z, 1.0f);
  const float low = M_FMA(x, x, -(x * x)); /* what the square lost by rounding */
  float q = 2.1496282e-05f;
  q = M_FMA(q, x, -0.000439099182f);
  q = M_FMA(q, x, 0.00419354951f);
  q = M_FMA(q, x, -0.0251787771f);
  q = M_FMA(q, x, 0.108372197f);
  q = M_FMA(q, x, 0.633262813f);
  q = M_FMA(q, x, 1.12955678f);
  q = M_FMA(q, x, -0.000183444223f);
  const float far = NAME(m_exp)(-x * x) * (1 - low) * (0.564189584f / x) * tail;
  return x < 3.5f ? NAME(m_exp)(-q) : (x < 11 ? far : (x == x ? 0 : x));
}
#include "../../maths_shared.h"

/* On top of that. */
#include "../../maths_loss.h"
#else
#define GC_INT_MIN ((REAL) - 1 < (REAL)0 ? -1 : 0) /* only its sign matters */
#include "../../maths_whole.h"
#endif
