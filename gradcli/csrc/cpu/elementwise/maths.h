/* maths.h -- the functions that scalar_ops.h may use, for the element type of this build. */
#ifndef GC_MATHS_H
#define GC_MATHS_H

#include "maths_base.h"
#ifdef GC_IS_FLOAT
#include "../../maths_float.h"
#include "maths_wide.h"
#else
#include "../bfloat16.h"
#endif

#ifndef GC_IS_FLOAT
static inline REAL NAME(m_bfloat16)(REAL x) {
  return (REAL)gc_widened(gc_rounded_half((float)x));
}
static inline REAL NAME(m_exp)(REAL x) {
  return M_NAME(exp)(x);
}
static inline REAL NAME(m_exp_negative)(REAL x) {
  return M_NAME(exp)(x);
}
static inline REAL NAME(m_exp_normal)(REAL x) {
  return M_NAME(exp)(x);
}
static inline REAL NAME(m_log)(REAL x) {
  return M_NAME(log)(x);
}
static inline REAL NAME(m_tanh)(REAL x) {
  return M_NAME(tanh)(x);
}
static inline REAL NAME(m_erf)(REAL x) {
  return M_NAME(erf)(x);
}
static inline REAL NAME(m_normal_cdf)(REAL x) {
  return M_NAME(erfc)(x * R(-0.7071067811865476)) / 2;
}
#endif

/* Functions that the C library has under the same name. */
#define M_LIBM(name)                                                                               \
  static inline REAL NAME(m_##name)(REAL x) {                                                      \
    return M_NAME(name)(x);                                                                        \
  }
M_LIBM(sqrt)
M_LIBM(floor)
M_LIBM(ceil)
M_LIBM(rint)
M_LIBM(trunc)
#ifndef GC_IS_FLOAT
M_LIBM(sin)
M_LIBM(cos)
M_LIBM(tan)
M_LIBM(atan)
M_LIBM(log1p)
M_LIBM(expm1)
#endif
M_LIBM(log2)
M_LIBM(log10)
M_LIBM(exp2)
M_LIBM(asin)
M_LIBM(acos)
M_LIBM(sinh)
M_LIBM(cosh)
M_LIBM(erfc)
#undef M_LIBM

static inline REAL NAME(m_atan2)(REAL y, REAL x) {
  return M_NAME(atan2)(y, x);
}
static inline REAL NAME(m_hypot)(REAL a, REAL b) {
  return M_NAME(hypot)(a, b);
}
static inline REAL NAME(m_fmod)(REAL a, REAL b) {
  return M_NAME(fmod)(a, b);
}

#ifndef GC_IS_FLOAT
static inline REAL NAME(m_pow)(REAL x, REAL y) {
  return pow(x, y);
}
#endif

#endif
