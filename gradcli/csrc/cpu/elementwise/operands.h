/* operands.h -- what a span is: a loop over n elements of a row of scalar_ops.h (span.h). */
#ifndef GC_OPERANDS_H
#define GC_OPERANDS_H

#include <stdint.h>

/* What a span works on, in the order of its kernel's tensors. A step is counted in elements: 1, or
 * 0 for one element that all others meet; spans of binary rows take any other too. `out` may be
 * exactly one of the inputs. */
typedef struct {
  const void *in[4];
  int64_t in_step[4];
  void *out;
  int64_t out_step;
  double p, q; /* the options of the call */
} gc_operands;

enum {
  GC_SPAN_NONE,
  GC_SPAN_UNARY,   /* out = f(in 0); no steps */
  GC_SPAN_SLOPE,   /* out = in 1 * slope(in 0), in 0 being what was kept; no steps */
  GC_SPAN_BINARY,  /* out = f(in 0, in 1) */
  GC_SPAN_SLOPE2,  /* out = in 3 * slope(a, b, y) */
  GC_SPAN_COMPARE, /* out (bytes) = truth of in 0, in 1 */
};

typedef struct {
  void (*run)(const gc_operands *o, int64_t n);
  int32_t kind;
} gc_span;

/* An element is read before it is written and no other is touched in between: the next loop may be
 * vectorised although `out` may be an input. */
#if defined(__clang__)
#define GC_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* rows that call libm stay scalar */
#else
#define GC_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
