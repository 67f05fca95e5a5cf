/* ends.h -- what becomes of a sum of a product: it is written. then.h has another end. */

#include "../element.h"

struct Plain {
  DEV(REAL) to;

  void put(uint at, float x) const { to[at] = ELEMENT(x); }
};
