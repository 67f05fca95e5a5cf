/* join.h -- the sums of all pieces of a product, in order, and a bias: of column e / inner %
 * columns for element e, or none where columns is 0. */

#include "../element.h"

template <class End>
FN void join_pieces(DEV(const float) parts, DEV(const REAL) bias, End end, uint all, uint pieces,
                    uint inner, uint columns CTX_P) {
  for (uint e = BID.x * BDIM.x + TID.x; e < all; e += BDIM.x * GDIM.x) {
    float sum = parts[e];
    for (uint piece = 1; piece < pieces; piece++)
      sum += parts[e + piece * all];
    end.put(e, columns ? sum + NUMBER(bias[e / inner % columns]) : sum);
  }
}
