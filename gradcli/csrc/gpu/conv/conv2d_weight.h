/* conv2d_weight.h -- the gradient of a convolution's filters is the gradient of its output times
 * the matrix of windows: these two. */

#include "conv2d.h"

/* The gradient of a group's outputs; `from`: of its first plane. */
struct Slopes {
  DEV(const REAL) from;
  Conv s;

  REAL slope(uint filter, uint output) const {
    const uint image = quotient(output, s.places);
    return from[(image * s.groups * s.oc + filter) * s.places.by + output - image * s.places.by];
  }
};

struct SlopeRows {
  Slopes slopes;
  uint last;
  bool along;

  REAL number(uint i, uint k) const { return slopes.slope(i < last ? i : last, k); }
};
struct TapColumns {
  Windows windows;
  uint last;
  bool along;

  REAL number(uint j, uint k) const { return windows.pixel(k, j < last ? j : last); }
};
