/* maths_shared.h -- functions of scalar_ops.h that are written with simpler ones of the target, and
 * the short names of all of them. */
#ifndef GC_MATHS_SHARED_H
#define GC_MATHS_SHARED_H

#include "cpu/elementwise/maths.h"

/* The remainder with b's sign. */
static inline REAL NAME(m_remainder)(REAL a, REAL b) {
  const REAL rest = NAME(m_fmod)(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* floor of the true quotient: a / b may have been rounded up to a whole number. */
static inline REAL NAME(m_floor_divide)(REAL a, REAL b) {
  const REAL rest = NAME(m_fmod)(a, b), quotient = a / b;
  const REAL exact = (a - rest) / b - (rest != 0 && (b < 0) != (rest < 0) ? 1 : 0);
  const REAL low = NAME(m_floor)(exact), whole = exact - low > R(0.5) ? low + 1 : low;
  return b == 0 ? quotient : (exact == 0 ? M_NAME(copysign)(0, quotient) : whole);
}

/* 1 / (1 + exp(-x)). With e = exp(-|x|) nothing overflows; on the negative side it is e / (1 + e),
 * written as e - e (e / (1 + e)) because the rounding of 1 + e would count fully where e is small.
 */
static inline REAL NAME(m_sigmoid)(REAL x) {
  const REAL e = NAME(m_exp_negative)(x < 0 ? x : -x), part = (x < 0 ? e : 1) / (1 + e);
  return x < 0 ? M_FMA(-e, part, e) : part;
}

/* sigmoid(x) (1 + x (1 - sigmoid(x))) */
static inline REAL NAME(m_silu_slope)(REAL x) {
  const REAL s = NAME(m_sigmoid)(x);
  return s * (1 + x * (1 - s));
}

/* tanh(log(1 + e)) for e = exp(x) is n / (n + 2) with n = e (e + 2); 1 from 30 on. */
static inline REAL NAME(m_mish_share)(REAL x) {
  const REAL e = NAME(m_exp)(x > 30 ? 30 : x), n = e * (e + 2);
  return n / (n + 2);
}

/* With s the share: s + x (1 - s^2) sigmoid(x), and 1 - s^2 = 4 (n + 1) / (n + 2)^2. */
static inline REAL NAME(m_mish_slope)(REAL x) {
  const REAL low = x > 30 ? 30 : x;
  const REAL e = NAME(m_exp)(low), n = e * (e + 2), part = 2 / (n + 2);
  return n / (n + 2) + low * (part * part * (n + 1)) * (e / (1 + e));
}

/* min(max(x + 3, 0), 6) / 6 */
static inline REAL NAME(m_hardsigmoid)(REAL x) {
  const REAL shifted = x + 3, low = shifted < 0 ? 0 : shifted;
  return (low > 6 ? 6 : low) / 6;
}

/* d pow(a, b) / db = y log a; where a is 0 the limit is 0 for b > 0. */
static inline REAL NAME(m_pow_slope)(REAL a, REAL b, REAL y) {
  return a == 0 && b >= 0 ? 0 : y * NAME(m_log)(a);
}

/* b / (a^2 + b^2), by the hypotenuse because squares overflow and vanish; 0 at the origin. */
static inline REAL NAME(m_atan2_slope)(REAL b, REAL a) {
  const REAL size = NAME(m_hypot)(a, b);
  return size == 0 ? 0 : b / size / size;
}

/* x (1 + tanh(u)) / 2 for u = c (x + k x^3), which is x / (1 + exp(-2 u)). */
static inline REAL NAME(m_gelu_tanh)(REAL x) {
  const REAL c2 = R(1.5957691216057308), k = R(0.044715);
  return x / (1 + NAME(m_exp_normal)(-x * M_FMA(c2 * k, x * x, c2)));
}

/* With s = 1 / (1 + exp(-2 u)): s + x s (1 - s) 2 du/dx. */
static inline REAL NAME(m_gelu_tanh_slope)(REAL x) {
  const REAL c2 = R(1.5957691216057308), k = R(0.044715), square = x * x;
  const REAL s = 1 / (1 + NAME(m_exp_normal)(-x * M_FMA(c2 * k, square, c2)));
  return s * M_FMA(x * (1 - s), M_FMA(3 * c2 * k, square, c2), 1);
}

#define m_exp NAME(m_exp)
#define m_exp_negative NAME(m_exp_negative)
#define m_exp_normal NAME(m_exp_normal)
#define m_log NAME(m_log)
#define m_sqrt NAME(m_sqrt)
#define m_sin NAME(m_sin)
#define m_cos NAME(m_cos)
#define m_tanh NAME(m_tanh)
#define m_erf NAME(m_erf)
#define m_normal_cdf NAME(m_normal_cdf)
#define m_floor NAME(m_floor)
#define m_ceil NAME(m_ceil)
#define m_pow NAME(m_pow)
#define m_sigmoid NAME(m_sigmoid)
#define m_pow_slope NAME(m_pow_slope)
#define m_gelu_tanh NAME(m_gelu_tanh)
#define m_gelu_tanh_slope NAME(m_gelu_tanh_slope)
#define m_tan NAME(m_tan)
#define m_bfloat16 NAME(m_bfloat16)
#define m_rint NAME(m_rint)
#define m_trunc NAME(m_trunc)
#define m_log1p NAME(m_log1p)
#define m_expm1 NAME(m_expm1)
#define m_log2 NAME(m_log2)
#define m_log10 NAME(m_log10)
#define m_exp2 NAME(m_exp2)
#define m_asin NAME(m_asin)
#define m_acos NAME(m_acos)
#define m_atan NAME(m_atan)
#define m_sinh NAME(m_sinh)
#define m_cosh NAME(m_cosh)
#define m_erfc NAME(m_erfc)
#define m_atan2 NAME(m_atan2)
#define m_hypot NAME(m_hypot)
#define m_atan2_slope NAME(m_atan2_slope)
#define m_fmod NAME(m_fmod)
#define m_remainder NAME(m_remainder)
#define m_floor_divide NAME(m_floor_divide)
#define m_silu_slope NAME(m_silu_slope)
#define m_mish_share NAME(m_mish_share)
#define m_mish_slope NAME(m_mish_slope)
#define m_hardsigmoid NAME(m_hardsigmoid)

#endif
