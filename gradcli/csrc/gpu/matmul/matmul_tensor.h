/* matmul_tensor.h -- a tile of one of a batch of products on tensor cores. Where K is cut, the sums
 * of the pieces go to `parts`. */

#include "product.h"

#include "tensor_tile.h"

/* Tiles are counted in bands of so many rows of them, so that those that run at once share what
 * they read. */
#define BAND 8

/* Where the sums of a tile go. */
template <class End> struct ProductSums {
  DEV(const REAL) bias;
  End end;
  DEV(float) parts;
  Product p;
  uint part, i, j;

  void sum(uint row, uint column, float x) const {
    const uint at = part * p.m * p.n + (i + row) * p.n + j + column;
    if (i + row < p.m && j + column < p.n) {
      if (p.piece < p.k)
        parts[at] = x;
      else
        end.put(at, p.bias ? x + NUMBER(bias[j + column]) : x);
    }
  }
};

template <bool ALONG_A, bool ALONG_B, uint DOWN, uint ACROSS, class End>
FN void tensor_product(DEV(const REAL) a, DEV(const REAL) b, DEV(const REAL) bias, End end,
                       DEV(float) parts, VAL_REF(Product) p, SHP(uint) left,
                       SHP(uint) right CTX_P) {
  const uint wide = (p.n + 16 * ACROSS - 1) / (16 * ACROSS);
  const uint high = (p.m + 32 * DOWN - 1) / (32 * DOWN);
  const uint tile = BID.x % (wide * high), part = BID.x / (wide * high);
  const uint top = tile / (BAND * wide) * BAND, in_band = tile % (BAND * wide);
  const uint rows = high - top < BAND ? high - top : BAND;
  const uint i = (top + in_band % rows) * (32 * DOWN), j = in_band / rows * (16 * ACROSS);
  const uint batch = part % p.batch, begin = part / p.batch * p.piece;
  const uint stop = begin + p.piece < p.k ? begin + p.piece : p.k;
  const TensorSums<DOWN, ACROSS> sums = tensor_sums<ALONG_A, ALONG_B, DOWN, ACROSS>(
      tensor_lines<ALONG_A>(a + batch * p.a_batch, p.a_i, p.a_k, p.m),
      tensor_lines<ALONG_B>(b + batch * p.b_batch, p.b_j, p.b_k, p.n), i, j, begin, stop, left,
      right CTX_A);
  const ProductSums<End> to = {bias, end, parts, p, part, i, j};
  put_sums(sums, to, left CTX_A);
}

/* A kernel for each way in which a and b may lie: with k along (`k`), or with lines along (`l`);
 * make(size, down, across, blocks, way, along_a, along_b). */
#define EACH_WAY(make, size, down, across, blocks)                                                 \
  make(size, down, across, blocks, kk, true, true)                                                 \
      make(size, down, across, blocks, kl, true, false)                                            \
          make(size, down, across, blocks, lk, false, true)                                        \
              make(size, down, across, blocks, ll, false, false)
