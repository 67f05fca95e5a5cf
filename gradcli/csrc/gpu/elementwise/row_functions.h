/* row_functions.h -- the rows of scalar_ops.h as functions: ROW(name)(x, p, q) and, with what was
 * kept for the slope, ROW(name_backward)(saved, grad, p, q). A module has those that its STEPS
 * mention: what the host writes into its text. */

#include "maths.h"

#define ROW(name) NAME(row_##name)

#define UNARY_ANY(name, y_of_x)                                                                    \
  FN float ROW(name)(float x, float p, float q) {                                                  \
    (void)p, (void)q;                                                                              \
    return (float)(y_of_x);                                                                        \
  }
#define UNARY_STEP(name, y) UNARY_ANY(name, y)
#define UNARY(name, y, saved, slope)                                                               \
  UNARY_ANY(name, y)                                                                               \
  FN float ROW(name##_backward)(float saved, float grad, float p, float q) {                       \
    (void)saved, (void)p, (void)q;                                                                 \
    return grad * (float)(slope);                                                                  \
  }
#define BINARY(name, y)                                                                            \
  FN float ROW(name)(float a, float b, float p, float q) {                                         \
    (void)p, (void)q;                                                                              \
    return (float)(y);                                                                             \
  }
#define SLOPE_OF_TWO(name, slope)                                                                  \
  FN float ROW(name)(float a, float b, float y, float grad, float p, float q) {                    \
    (void)a, (void)b, (void)y, (void)p, (void)q;                                                   \
    return grad * (float)(slope);                                                                  \
  }
#define BINARY_REAL(name, y, slope_a, slope_b)                                                     \
  BINARY(name, y)                                                                                  \
  SLOPE_OF_TWO(name##_backward_a, slope_a) SLOPE_OF_TWO(name##_backward_b, slope_b)
#define BINARY_WHOLE(name, y)
#define COMPARE(name, truth)
#include "../../scalar_ops.h"
