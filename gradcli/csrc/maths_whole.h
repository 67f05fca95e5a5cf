/* maths_whole.h -- what scalar_ops.h may use, for integers and bool. Division by 0, which C leaves
 * undefined, gives 0 here; who calls refuses it first (require_nonzero). Wrapping division of the
 * smallest number by -1 gives that number again. */
#ifndef GC_MATHS_WHOLE_H
#define GC_MATHS_WHOLE_H

#include "cpu/type.h"

#ifndef GC_IS_REAL

/* a / b without a fraction, b being neither 0 nor -1. On the CPU doubles hold all integers but
 * large ones of int64, and divide them in vectors: a quotient that is no integer is at least 1 / b
 * away from the next, too far to be rounded to it. */
static inline REAL NAME(m_quotient)(REAL a, REAL b) {
#ifdef GC_VECTOR_BYTES
  if (sizeof(REAL) < sizeof(double))
    return (REAL)((double)a / (double)b);
#endif
  return (REAL)(a / b);
}
#ifdef GC_VECTOR_BYTES
static inline REAL NAME(m_near_quotient)(REAL a, REAL b) {
  return (REAL)((double)a / (double)b);
}
#endif

/* fmod has a's sign, the remainder b's; floor_divide rounds towards minus infinity. */
#define DIVISION(near, quotient)                                                                   \
  static inline REAL NAME(m##near##fmod)(REAL a, REAL b) {                                         \
    const bool simple = b == 0 || (GC_INT_MIN < 0 && b == (REAL) - 1);                             \
    const REAL divisor = simple ? 1 : b;                                                           \
    return (REAL)(a - NAME(quotient)(a, divisor) * divisor);                                       \
  }                                                                                                \
  static inline REAL NAME(m##near##remainder)(REAL a, REAL b) {                                    \
    const REAL rest = NAME(m##near##fmod)(a, b);                                                   \
    return (REAL)(rest + ((rest != 0) & ((rest < 0) != (b < 0)) ? b : 0));                         \
  }                                                                                                \
  static inline REAL NAME(m##near##floor_divide)(REAL a, REAL b) {                                 \
    const bool minus = GC_INT_MIN < 0 && b == (REAL) - 1;                                          \
    const REAL divisor = b == 0 || minus ? 1 : b, whole = NAME(quotient)(a, divisor);              \
    const REAL rest = (REAL)(a - whole * divisor);                                                 \
    const REAL floor = (REAL)(whole - ((rest != 0) & ((a < 0) != (b < 0))));                       \
    return b == 0 ? 0 : minus ? (REAL)(0 - a) : floor;                                             \
  }
DIVISION(_, m_quotient)
#ifdef GC_VECTOR_BYTES
DIVISION(_near_, m_near_quotient)
#endif
#undef DIVISION

/* a to the power b, wrapped; for b < 0 it is 1 / a^-b, rounded towards 0. */
static inline REAL NAME(m_pow_whole)(REAL a, REAL b) {
  if (b < 0)
    return (REAL)(a == 1 ? 1 : (a == (REAL)-1 ? (b % 2 ? a : 1) : 0));
  REAL y = 1;
  for (; b > 0; b = (REAL)(b / 2), a = (REAL)(a * a))
    y = b % 2 ? (REAL)(y * a) : y;
  return y;
}

#define m_pow_whole NAME(m_pow_whole)
#define m_fmod NAME(m_fmod)
#define m_remainder NAME(m_remainder)
#define m_floor_divide NAME(m_floor_divide)

#endif

#endif
