/* matmul.h -- a tile of one of a batch of products. */

#include "product.h"

#include "tile.h"

/* Where the sums of a tile go, whose first row is i and first column j. */
template <class End> struct ProductSums {
  DEV(const float) bias;
  End end;
  Product p;
  uint part, i, j;

  void sum(uint row, uint column, float x) const {
    const uint down = i + row, across = j + column;
    if (down < p.m && across < p.n)
      end.put(part * p.m * p.n + down * p.c_i + across * p.c_j,
              x + (p.bias ? bias[down * p.bias_i + across * p.bias_j] : 0.0f));
  }
};

template <bool ONE_BY_ONE, uint DOWN, uint ACROSS, uint DEPTH, class End>
FN void product_tile(DEV(const float) a, DEV(const float) b, DEV(const float) bias, End end,
                     VAL_REF(Product) p, SHP(float) left, SHP(float) right CTX_P) {
  const uint wide = (p.n + 16 * ACROSS - 1) / (16 * ACROSS);
  const uint high = (p.m + 16 * DOWN - 1) / (16 * DOWN);
  const uint tile = BID.x % (wide * high), part = BID.x / (wide * high);
  const uint batch = part % p.batch, begin = part / p.batch * p.piece;
  const uint stop = begin + p.piece < p.k ? begin + p.piece : p.k;
  const uint i = tile / wide * (16 * DOWN), j = tile % wide * (16 * ACROSS);
  const Lines rows = {a + batch * p.a_batch, p.a_i, p.a_k, p.m - 1, p.a_k == 1};
  const Lines columns = {b + batch * p.b_batch, p.b_j, p.b_k, p.n - 1, p.b_k == 1};
  const Sums<DOWN, ACROSS> sums =
      tile_sums<DOWN, ACROSS, DEPTH>(rows, columns, i, j, begin, stop, left, right CTX_A);
  const ProductSums<End> to = {bias, end, p, part, i, j};
  put_tile<ONE_BY_ONE>(sums, to, right CTX_A);
}
