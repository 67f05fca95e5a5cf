/* maths_whole.h -- what scalar_ops.h may use, for integers and bool. Division by 0, which C leaves
 * undefined, gives 0 here; who calls refuses it first (require_nonzero). Wrapping division of the
 * smallest number by -1 gives that number again. */
#ifndef GC_MATHS_WHOLE_H
#define GC_MATHS_WHOLE_H

#include "cpu/type.h"

#ifndef GC_IS_REAL

/* Without a remainder, or with one of a's sign. */
static inline REAL NAME(m_fmod)(REAL a, REAL b) {
  if (b == 0 || (GC_INT_MIN < 0 && b == (REAL)-1))
    return 0;
  return (REAL)(a % b);
}

/* The remainder has b's sign. */
static inline REAL NAME(m_remainder)(REAL a, REAL b) {
  const REAL rest = NAME(m_fmod)(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? (REAL)(rest + b) : rest;
}

/* Rounded towards minus infinity. */
static inline REAL NAME(m_floor_divide)(REAL a, REAL b) {
  if (b == 0)
    return 0;
  if (GC_INT_MIN < 0 && b == (REAL)-1)
    return (REAL)(0 - a);
  return (REAL)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}

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
