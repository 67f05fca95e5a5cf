/* conv2d_forward.h -- convolution: filters times the matrix of windows; where a group has few
 * filters, a thread for each output. */

#include "conv2d.h"

#include "../matmul/tile.h"

/* Where the sums of a tile go. */
template <class End> struct OutputSums {
  DEV(const float) bias;
  End end;
  Conv s;
  Block b;

  void sum(uint row, uint column, float x) const {
    const uint i = b.i + row, j = b.j + column, image = quotient(j, s.places);
    const uint plane = ((b.number * s.images + image) * s.groups + b.batch) * s.oc + i;
    if (i < s.oc && j < s.images * s.places.by)
      end.put(plane * s.places.by + j - image * s.places.by,
              x + (s.bias ? bias[b.batch * s.oc + i] : 0.0f));
  }
};

template <bool ONE_BY_ONE, uint DOWN, uint ACROSS, uint DEPTH, class End>
FN void conv2d_tile(DEV(const float) x, DEV(const float) weight, DEV(const float) bias, End end,
                    VAL_REF(Conv) s, SHP(float) left, SHP(float) right CTX_P) {
  const uint outputs = s.images * s.places.by, depth = s.c * s.window.by;
  const Block b = block_of<DOWN, ACROSS>(BID.x, s.groups, s.oc, outputs, depth, s.piece);
  const Lines filters = {weight + b.batch * s.oc * depth, depth, 1, s.oc - 1, true};
  const OutputColumns columns = {{x + b.batch * s.c * s.h * s.w, s}, outputs - 1, false};
  const Sums<DOWN, ACROSS> sums =
      tile_sums<DOWN, ACROSS, DEPTH>(filters, columns, b.i, b.j, b.begin, b.end, left, right CTX_A);
  const OutputSums<End> to = {bias, end, s, b};
  put_tile<ONE_BY_ONE>(sums, to, right CTX_A);
}

/* The same sums in the same order, a thread each; what lies outside the image is left out. */
template <class End>
FN void conv2d_one(DEV(const float) x, DEV(const float) weight, DEV(const float) bias, End end,
                   VAL_REF(Conv) s, uint all CTX_P) {
  for (uint e = BID.x * BDIM.x + TID.x; e < all; e += BDIM.x * GDIM.x) {
    const uint plane = e / s.places.by, place = e % s.places.by;
    const uint filters = s.groups * s.oc, image = plane / filters, filter = plane % filters;
    const uint row = quotient(place, s.width), column = place - row * s.width.by;
    uint from = (image * s.groups + filter / s.oc) * s.c * s.h * s.w;
    uint tap = filter * s.c * s.window.by;
    float sum = 0.0f;
    for (uint channel = 0; channel < s.c; channel++, from += s.h * s.w)
      for (uint down = 0; down < s.kh; down++, tap += s.kw) {
        const uint top = row * s.sh + down * s.dh - s.ph, line = from + top * s.w;
        for (uint right = 0; right < s.kw && top < s.h; right++) {
          const uint left = column * s.sw + right * s.dw - s.pw;
          if (left < s.w)
            sum = ffma(weight[tap + right], x[line + left], sum);
        }
      }
    end.put(e, sum + (s.bias ? bias[filter] : 0.0f));
  }
}
