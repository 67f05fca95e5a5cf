/* then.h -- what becomes of a sum x of a product where a row of scalar_ops.h follows: out = f(x),
 * or x times the slope at what was kept; x itself goes to `pre` where it is wanted. STEPS is f. */

#include "../elementwise/row_functions.h"

#ifndef STEPS
#define STEPS ROW(exp)(x, p, q)
#endif

/* Options of the row, and whether x is wanted. */
struct Behind {
  float p, q;
  uint keeps;
};

struct Then {
  DEV(const float) kept;
  DEV(float) pre;
  DEV(float) out;
  float p, q;
  bool keeps;

  void put(uint at, float x) const {
    if (keeps)
      pre[at] = x;
    out[at] = STEPS;
  }
};

/* The arguments of a kernel that ends so, and the end. */
#define THEN_ARGUMENTS IN(REAL, kept), OUT(REAL, pre), OUT(REAL, out), VAL(Behind, behind)
#define THEN {kept, pre, out, behind.p, behind.q, behind.keeps != 0}
