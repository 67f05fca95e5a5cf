/* conv2d_tensor.h -- convolution on tensor cores: filters times the matrix of windows. Where the
 * sums are cut, those of the pieces go to `parts`. */

#include "conv2d.h"

#include "../matmul/tensor_tile.h"

/* Where the sums of a tile go. */
template <class End> struct OutputSums {
  DEV(const REAL) bias;
  End end;
  DEV(float) parts;
  Conv s;
  Block b;

  void sum(uint row, uint column, float x) const {
    const uint i = b.i + row, j = b.j + column, image = quotient(j, s.places);
    const uint plane = ((b.number * s.images + image) * s.groups + b.batch) * s.oc + i;
    const uint at = plane * s.places.by + j - image * s.places.by;
    if (i < s.oc && j < s.images * s.places.by) {
      if (s.piece < s.c * s.window.by)
        parts[at] = x;
      else
        end.put(at, s.bias ? x + NUMBER(bias[b.batch * s.oc + i]) : x);
    }
  }
};

template <uint DOWN, uint ACROSS, class End>
FN void conv2d_tensor(DEV(const REAL) x, DEV(const REAL) weight, DEV(const REAL) bias, End end,
                      DEV(float) parts, VAL_REF(Conv) s, SHP(uint) left, SHP(uint) right CTX_P) {
  const uint outputs = s.images * s.places.by, depth = s.c * s.window.by;
  const Block b = block_of<2 * DOWN, ACROSS>(BID.x, s.groups, s.oc, outputs, depth, s.piece);
  const Looked<OutputColumns> columns = {{{x + b.batch * s.c * s.h * s.w, s}, outputs - 1, false},
                                         outputs};
  const TensorSums<DOWN, ACROSS> sums = tensor_sums<true, false, DOWN, ACROSS>(
      tensor_lines<true>(weight + b.batch * s.oc * depth, depth, 1, s.oc), columns, b.i, b.j,
      b.begin, b.end, left, right CTX_A);
  const OutputSums<End> to = {bias, end, parts, s, b};
  put_sums(sums, to, left CTX_A);
}
