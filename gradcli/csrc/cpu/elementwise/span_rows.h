/* span_rows.h -- the rows of scalar_ops.h as loops over n elements, one function each (span.h). */
#ifndef GC_SPAN_ROWS_H
#define GC_SPAN_ROWS_H

#include "../type.h"
#include "operands.h"
#ifdef GC_IS_REAL
#include "../../maths_loss.h"
#include "../../maths_shared.h"
#else
#include "../../maths_whole.h"
#endif

#define UNARY_SPAN(name, y_of_x)                                                                   \
  static void NAME(span_##name)(const gc_operands *o, int64_t n) {                                 \
    const REAL p = (REAL)o->p, q = (REAL)o->q;                                                     \
    (void)p, (void)q;                                                                              \
    const REAL *const in = o->in[0];                                                               \
    REAL *const out = o->out;                                                                      \
    GC_INDEPENDENT for (int64_t i = 0; i < n; i++) {                                               \
      const REAL x = in[i];                                                                        \
      out[i] = (REAL)(y_of_x);                                                                     \
    }                                                                                              \
  }

#define SLOPE_SPAN(name, saved, slope)                                                             \
  static inline REAL NAME(slope_##name)(const REAL saved, const REAL p, const REAL q) {            \
    (void)saved, (void)p, (void)q;                                                                 \
    return (REAL)(slope);                                                                          \
  }                                                                                                \
  static void NAME(span_##name##_backward)(const gc_operands *o, int64_t n) {                      \
    const REAL p = (REAL)o->p, q = (REAL)o->q;                                                     \
    const REAL *const kept = o->in[0], *const grad = o->in[1];                                     \
    REAL *const out = o->out;                                                                      \
    GC_INDEPENDENT for (int64_t i = 0; i < n; i++) out[i] =                                        \
        grad[i] * NAME(slope_##name)(kept[i], p, q);                                               \
  }

/* The steps that matter are spelled out, so that their loops vectorise. */
#define BINARY_LOOP(OUT, once, each, out_at, value)                                                \
  {                                                                                                \
    once;                                                                                          \
    GC_INDEPENDENT for (int64_t i = 0; i < n; i++) {                                               \
      each;                                                                                        \
      out[out_at] = (OUT)(value);                                                                  \
    }                                                                                              \
  }
#define BINARY_SPAN(name, OUT, value)                                                              \
  static void NAME(span_##name)(const gc_operands *o, int64_t n) {                                 \
    const REAL p = (REAL)o->p, q = (REAL)o->q;                                                     \
    (void)p, (void)q;                                                                              \
    const REAL *const pa = o->in[0], *const pb = o->in[1];                                         \
    OUT *const out = o->out;                                                                       \
    const int64_t sa = o->in_step[0], sb = o->in_step[1], so = o->out_step;                        \
    if (so == 1 && sa == 1 && sb == 1)                                                             \
      BINARY_LOOP(OUT, (void)0, const REAL a = pa[i]; const REAL b = pb[i], i, value)              \
    else if (so == 1 && sa == 1 && sb == 0)                                                        \
      BINARY_LOOP(OUT, const REAL b = pb[0], const REAL a = pa[i], i, value)                       \
    else if (so == 1 && sa == 0 && sb == 1)                                                        \
      BINARY_LOOP(OUT, const REAL a = pa[0], const REAL b = pb[i], i, value)                       \
    else                                                                                           \
      BINARY_LOOP(OUT, (void)0, const REAL a = pa[i * sa];                                         \
                  const REAL b = pb[i * sb], i * so, value)                                        \
  }

#define SLOPE2_LOOP(step_a, step_b, step_y, step_grad, step_out, slope)                            \
  GC_INDEPENDENT for (int64_t i = 0; i < n; i++) {                                                 \
    const REAL a = in[0][i * (step_a)], b = in[1][i * (step_b)];                                   \
    const REAL y = in[2][i * (step_y)], grad = in[3][i * (step_grad)];                             \
    (void)a, (void)b, (void)y;                                                                     \
    out[i * (step_out)] = grad * (REAL)(slope);                                                    \
  }

#define SLOPE2_SPAN(name, slope)                                                                   \
  static void NAME(span_##name)(const gc_operands *o, int64_t n) {                                 \
    const REAL p = (REAL)o->p, q = (REAL)o->q;                                                     \
    (void)p, (void)q;                                                                              \
    const REAL *const in[4] = {o->in[0], o->in[1], o->in[2], o->in[3]};                            \
    REAL *const out = o->out;                                                                      \
    const int64_t *const s = o->in_step;                                                           \
    if (s[0] == 1 && s[1] == 1 && s[2] == 1 && s[3] == 1 && o->out_step == 1) {                    \
      SLOPE2_LOOP(1, 1, 1, 1, 1, slope)                                                            \
    } else {                                                                                       \
      SLOPE2_LOOP(s[0], s[1], s[2], s[3], o->out_step, slope)                                      \
    }                                                                                              \
  }

#define UNARY_ANY(name, y) UNARY_SPAN(name, y)
#define BINARY(name, y) BINARY_SPAN(name, REAL, y)
#define COMPARE(name, truth) BINARY_SPAN(name, uint8_t, truth)
#ifdef GC_IS_REAL
#define UNARY(name, y, saved, slope) UNARY_SPAN(name, y) SLOPE_SPAN(name, saved, slope)
#define UNARY_STEP(name, y) UNARY_SPAN(name, y)
#define BINARY_REAL(name, y, slope_a, slope_b)                                                     \
  BINARY_SPAN(name, REAL, y)                                                                       \
  SLOPE2_SPAN(name##_backward_a, slope_a) SLOPE2_SPAN(name##_backward_b, slope_b)
#define BINARY_WHOLE(name, y)
#else
#define UNARY(name, y, saved, slope)
#define UNARY_STEP(name, y)
#define BINARY_REAL(name, y, slope_a, slope_b)
#define BINARY_WHOLE(name, y) BINARY_SPAN(name, REAL, y)
#endif
/* What looks at its operands first is in special_spans.h and division_spans.h. */
#ifdef GC_IS_FLOAT
#define span_pow span_any_pow
#define span_pow_backward_a span_any_pow_backward_a
#define span_sin span_any_sin
#define span_sin_backward span_any_sin_backward
#define span_cos span_any_cos
#define span_cos_backward span_any_cos_backward
#define span_tan span_any_tan
#elif !defined(GC_IS_REAL)
#define span_remainder span_any_remainder
#define span_fmod span_any_fmod
#define span_floor_divide span_any_floor_divide
#endif
#include "../../scalar_ops.h"
#undef span_pow
#undef span_pow_backward_a
#undef span_sin
#undef span_sin_backward
#undef span_cos
#undef span_cos_backward
#undef span_tan
#undef span_remainder
#undef span_fmod
#undef span_floor_divide

#endif
