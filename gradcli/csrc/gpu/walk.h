/* walk.h -- where element number i of a broadcast or strided tensor lies. Neighbouring dimensions
 * that lie one behind the other in all tensors have been merged, so mostly there is one. */

struct Walk {
  uint ndim;
  uint shape[8];
  int stride[5][8]; /* of each tensor, in elements; 0 repeats */
};

/* Element i of a tensor, counted from its first one. */
FN int walk_to(VAL_REF(Walk) w, uint tensor, uint i) {
  if (w.ndim == 1)
    return (int)i * w.stride[tensor][0];
  int at = 0;
  for (uint d = w.ndim; d-- > 0;) {
    const uint size = w.shape[d], rest = i / size;
    at += (int)(i - rest * size) * w.stride[tensor][d];
    i = rest;
  }
  return at;
}

/* A loop in which every element of `count` is met by one thread of the grid. */
#define EACH(i, count) for (uint i = BID.x * BDIM.x + TID.x; i < (count); i += BDIM.x * GDIM.x)
