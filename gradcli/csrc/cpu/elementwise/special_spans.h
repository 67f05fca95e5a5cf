/* special_spans.h -- spans of float that look at their operands before they choose a loop. The
 * loops of the rows have `any` in their names here; each element has the same bits in all of them.
 */
#ifndef GC_SPECIAL_SPANS_H
#define GC_SPECIAL_SPANS_H

#include "../kernel.h"
#include "../type.h"
#include "maths_wide.h"
#include "operands.h"
#include "span_rows.h"

enum { GC_ANGLES_AT_ONCE = 256 };

/* Squares: powers whose exponent is 2 for all elements. */
static inline bool NAME(is_square)(const gc_operands *o) {
  return o->in_step[1] == 0 && *(const float *)o->in[1] == 2;
}

static void NAME(span_pow)(const gc_operands *o, int64_t n) {
  if (!NAME(is_square)(o)) {
    NAME(span_any_pow)(o, n);
    return;
  }
  gc_operands factors = *o;
  factors.in[1] = o->in[0];
  factors.in_step[1] = o->in_step[0];
  NAME(span_mul)(&factors, n);
}

SLOPE2_SPAN(square_backward, 2 * a)
static void NAME(span_pow_backward_a)(const gc_operands *o, int64_t n) {
  (NAME(is_square)(o) ? NAME(span_square_backward) : NAME(span_any_pow_backward_a))(o, n);
}

/* A block of angles that are all near goes through a loop without branches. In the loop of the row
 * a far angle takes the C library's way, so that it does not vectorise. */
static inline bool NAME(all_near)(const float *angles, int64_t n) {
  int32_t far = 0;
  for (int64_t i = 0; i < n; i++)
    far |= !(fabsf(angles[i]) <= M_NEAR);
  return !far;
}

#define ANGLE_SPAN(name)                                                                           \
  static void NAME(span_##name)(const gc_operands *o, int64_t n) {                                 \
    for (int64_t at = 0, some; at < n; at += some) {                                               \
      some = gc_min(GC_ANGLES_AT_ONCE, n - at);                                                    \
      const float *angles = (const float *)o->in[0] + at;                                          \
      gc_operands block = *o;                                                                      \
      block.in[0] = angles;                                                                        \
      block.in[1] = o->in[1] ? (const float *)o->in[1] + at : NULL;                                \
      block.out = (float *)o->out + at;                                                            \
      (NAME(all_near)(angles, some) ? NAME(span_near_##name) : NAME(span_any_##name))(&block,      \
                                                                                      some);       \
    }                                                                                              \
  }

UNARY_SPAN(near_sin, NAME(m_near_sin)(x))
UNARY_SPAN(near_cos, NAME(m_near_cos)(x))
UNARY_SPAN(near_tan, NAME(m_near_tan)(x))
SLOPE_SPAN(near_sin, x, NAME(m_near_cos)(x))
SLOPE_SPAN(near_cos, x, -NAME(m_near_sin)(x))
ANGLE_SPAN(sin)
ANGLE_SPAN(cos)
ANGLE_SPAN(tan)
ANGLE_SPAN(sin_backward)
ANGLE_SPAN(cos_backward)
#undef ANGLE_SPAN

#endif
