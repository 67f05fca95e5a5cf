/* division_spans.h -- divisions of integers that first look at their operands: where doubles hold
 * them all, they are divided in vectors. In the rows' own loops, named `any` here, int64 has the
 * processor's slow division. The results are the same. */
#ifndef GC_DIVISION_SPANS_H
#define GC_DIVISION_SPANS_H

#include "../kernel.h"
#include "../type.h"
#include "operands.h"
#include "span_rows.h"

#ifndef GC_IS_REAL

enum { GC_QUOTIENTS_AT_ONCE = 256 };

/* Whether doubles hold n operands, each `step` behind the last. */
static inline bool NAME(near_zero)(const REAL *x, int64_t step, int64_t n) {
  const int64_t limit = (int64_t)1 << 53;
  int far = 0;
  for (int64_t i = 0; sizeof(REAL) == sizeof(int64_t) && i < (step ? n : 1); i++)
    far |= ((int64_t)x[i * step] > limit) | ((int64_t)x[i * step] < -limit);
  return !far;
}

/* a / b without a fraction, b being neither 0 nor -1: a quotient that is no integer is at least
 * 1 / b away from the next, too far to be rounded to it. */
static inline REAL NAME(m_near_quotient)(REAL a, REAL b) {
  return (REAL)((double)a / (double)b);
}

/* As in maths_whole.h. */
static inline REAL NAME(m_near_fmod)(REAL a, REAL b) {
  const bool simple = b == 0 || (GC_INT_MIN < 0 && b == (REAL)-1);
  const REAL divisor = simple ? 1 : b;
  return (REAL)(a - NAME(m_near_quotient)(a, divisor) * divisor);
}

static inline REAL NAME(m_near_remainder)(REAL a, REAL b) {
  const REAL rest = NAME(m_near_fmod)(a, b);
  return (REAL)(rest + ((rest != 0) & ((rest < 0) != (b < 0)) ? b : 0));
}

static inline REAL NAME(m_near_floor_divide)(REAL a, REAL b) {
  const bool minus = GC_INT_MIN < 0 && b == (REAL)-1;
  const REAL divisor = b == 0 || minus ? 1 : b, whole = NAME(m_near_quotient)(a, divisor);
  const REAL rest = (REAL)(a - whole * divisor);
  const REAL floor = (REAL)(whole - ((rest != 0) & ((a < 0) != (b < 0))));
  return b == 0 ? 0 : minus ? (REAL)(0 - a) : floor;
}

#define DIVISION_SPAN(name)                                                                        \
  BINARY_SPAN(near_##name, REAL, NAME(m_near_##name)(a, b))                                        \
  static void NAME(span_##name)(const gc_operands *o, int64_t n) {                                 \
    for (int64_t at = 0, some; at < n; at += some) {                                               \
      some = gc_min(GC_QUOTIENTS_AT_ONCE, n - at);                                                 \
      gc_operands block = *o;                                                                      \
      bool near = true;                                                                            \
      for (int k = 0; k < 2; k++) {                                                                \
        block.in[k] = (const REAL *)o->in[k] + at * o->in_step[k];                                 \
        near = near && NAME(near_zero)(block.in[k], o->in_step[k], some);                          \
      }                                                                                            \
      block.out = (REAL *)o->out + at * o->out_step;                                               \
      (near ? NAME(span_near_##name) : NAME(span_any_##name))(&block, some);                       \
    }                                                                                              \
  }

DIVISION_SPAN(remainder)
DIVISION_SPAN(fmod)
DIVISION_SPAN(floor_divide)
#undef DIVISION_SPAN

#endif

#endif
