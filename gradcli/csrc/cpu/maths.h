/* maths.h -- the functions that scalar_ops.h may use, for the element type of this build. */

#define R(c) ((REAL)(c))

#ifdef GC_IS_FLOAT
#define M_NAME(function) function##f
#else
#define M_NAME(function) function
#endif

/* a * b + c: rounded once where the instruction set has that, so that all code of one build, the
 * vector body of a loop and its scalar end, gives the same bits. */
#ifdef GC_HAS_FMA
#define M_FMA(a, b, c) M_NAME(__builtin_fma)(a, b, c)
#else
#define M_FMA(a, b, c) ((a) * (b) + (c))
#endif

#ifdef GC_IS_FLOAT
#include "maths_float.h"
#else
static inline REAL NAME(m_exp)(REAL x) {
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
#endif

static inline REAL NAME(m_sqrt)(REAL x) {
  return M_NAME(sqrt)(x);
}
static inline REAL NAME(m_sin)(REAL x) {
  return M_NAME(sin)(x);
}
static inline REAL NAME(m_cos)(REAL x) {
  return M_NAME(cos)(x);
}
static inline REAL NAME(m_floor)(REAL x) {
  return M_NAME(floor)(x);
}
static inline REAL NAME(m_ceil)(REAL x) {
  return M_NAME(ceil)(x);
}
static inline REAL NAME(m_pow)(REAL x, REAL y) {
  return M_NAME(pow)(x, y);
}

/* 1 / (1 + exp(-x)). With e = exp(-|x|) nothing overflows; on the negative side it is e / (1 + e),
 * written as e - e (e / (1 + e)) because the rounding of 1 + e would count fully where e is small.
 */
static inline REAL NAME(m_sigmoid)(REAL x) {
  const REAL e = NAME(m_exp)(x < 0 ? x : -x), part = (x < 0 ? e : 1) / (1 + e);
  return x < 0 ? M_FMA(-e, part, e) : part;
}

/* d pow(a, b) / db = y log a; where a is 0 the limit is 0 for b > 0. */
static inline REAL NAME(m_pow_slope)(REAL a, REAL b, REAL y) {
  return a == 0 && b >= 0 ? 0 : y * NAME(m_log)(a);
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
#define m_exp_normal NAME(m_exp_normal)
#define m_log NAME(m_log)
#define m_sqrt NAME(m_sqrt)
#define m_sin NAME(m_sin)
#define m_cos NAME(m_cos)
#define m_tanh NAME(m_tanh)
#define m_erf NAME(m_erf)
#define m_floor NAME(m_floor)
#define m_ceil NAME(m_ceil)
#define m_pow NAME(m_pow)
#define m_sigmoid NAME(m_sigmoid)
#define m_pow_slope NAME(m_pow_slope)
#define m_gelu_tanh NAME(m_gelu_tanh)
#define m_gelu_tanh_slope NAME(m_gelu_tanh_slope)
