/* span.h -- the rows of scalar_ops.h as loops over n elements, in a table by kernel number. A call
 * on whole tensors (elementwise.h), the last step of a matrix product and a chain of rows over a
 * block that stays in the first cache all run these same loops, so their bits agree. */
#ifndef GC_SPAN_H
#define GC_SPAN_H

#include "../type.h"
#include "operands.h"
#if defined(GC_IS_FLOAT)
#include "special_spans.h"
#elif defined(GC_IS_REAL)
#include "span_rows.h"
#else
#include "division_spans.h"
#endif

/* By kernel number, in the order of tables.c; without a span: structured kernels, and rows that are
 * not built for this element type. */
#define NO_SPAN {NULL, GC_SPAN_NONE},
#ifdef GC_IS_REAL
#define REAL_SPAN(name, kind) {NAME(span_##name), kind},
#define WHOLE_SPAN(name, kind) NO_SPAN
#else
#define REAL_SPAN(name, kind) NO_SPAN
#define WHOLE_SPAN(name, kind) {NAME(span_##name), kind},
#endif
static const gc_span NAME(spans)[] = {
#define KERNEL_ALL(...) NO_SPAN
#define KERNEL_REAL KERNEL_ALL
#include "../../kernels.h"
#define UNARY(name, y, saved, slope)                                                               \
  REAL_SPAN(name, GC_SPAN_UNARY) REAL_SPAN(name##_backward, GC_SPAN_SLOPE)
#define UNARY_STEP(name, y) REAL_SPAN(name, GC_SPAN_UNARY)
#define UNARY_ANY(name, y) {NAME(span_##name), GC_SPAN_UNARY},
#define BINARY(name, y) {NAME(span_##name), GC_SPAN_BINARY},
#define BINARY_REAL(name, y, slope_a, slope_b)                                                     \
  REAL_SPAN(name, GC_SPAN_BINARY)                                                                  \
  REAL_SPAN(name##_backward_a, GC_SPAN_SLOPE2) REAL_SPAN(name##_backward_b, GC_SPAN_SLOPE2)
#define BINARY_WHOLE(name, y) WHOLE_SPAN(name, GC_SPAN_BINARY)
#define COMPARE(name, truth) {NAME(span_##name), GC_SPAN_COMPARE},
#include "../../scalar_ops.h"
};
#undef REAL_SPAN
#undef WHOLE_SPAN
#undef NO_SPAN

#endif
