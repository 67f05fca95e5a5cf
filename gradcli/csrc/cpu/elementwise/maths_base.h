/* maths_base.h -- how maths is written for the element type of this build: constants, names of the
 * C library, fused products, and the bits of a float. */
#ifndef GC_MATHS_BASE_H
#define GC_MATHS_BASE_H

#include <math.h>
#include <string.h>

#include "../type.h"

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
static inline uint32_t NAME(m_bits)(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float NAME(m_from_bits)(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
#endif

#endif
