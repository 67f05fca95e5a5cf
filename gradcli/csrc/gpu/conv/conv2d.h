/* conv2d.h -- the shape of a convolution, and its image as the matrix of windows, which is never
 * written: a row for each tap (channel, row, column) of a filter, a column for each output. c, oc
 * and all else are those of one group. */

#include "../divide.h"

struct Conv {
  uint images, groups;
  uint c, h, w, oc, oh, ow, kh, kw;
  uint sh, sw, ph, pw, dh, dw;
  Divisor places, width, window, across; /* oh * ow, ow, kh * kw, kw */
  uint bias;                             /* whether there is one */
  uint piece;                            /* length of a piece of the sums */
};

/* The windows of one group; `from`: its first plane of the first image. */
struct Windows {
  DEV(const REAL) from;
  Conv s;

  REAL pixel(uint output, uint tap) const {
    const uint image = quotient(output, s.places), place = output - image * s.places.by;
    const uint top = quotient(place, s.width), left = place - top * s.width.by;
    const uint channel = quotient(tap, s.window), spot = tap - channel * s.window.by;
    const uint down = quotient(spot, s.across), right = spot - down * s.across.by;
    const uint y = top * s.sh + down * s.dh - s.ph, x = left * s.sw + right * s.dw - s.pw;
    if (y >= s.h || x >= s.w) /* above and left of the image too */
      return 0;
    return from[((image * s.groups * s.c + channel) * s.h + y) * s.w + x];
  }
};

struct OutputColumns {
  Windows windows;
  uint last;
  bool along;

  REAL number(uint j, uint k) const { return windows.pixel(j < last ? j : last, k); }
};

/* What a block of a tiled kernel does, of `rows` x `columns` sums over `depth`. */
struct Block {
  uint batch, number; /* of the product, of the piece */
  uint i, j, begin, end;
};

template <uint DOWN, uint ACROSS>
FN Block block_of(uint index, uint batches, uint rows, uint columns, uint depth, uint piece) {
  const uint wide = (columns + 16 * ACROSS - 1) / (16 * ACROSS);
  const uint tiles = wide * ((rows + 16 * DOWN - 1) / (16 * DOWN));
  const uint tile = index % tiles, part = index / tiles;
  Block b;
  b.batch = part % batches;
  b.number = part / batches;
  b.i = tile / wide * (16 * DOWN);
  b.j = tile % wide * (16 * ACROSS);
  b.begin = b.number * piece;
  b.end = b.begin + piece < depth ? b.begin + piece : depth;
  return b;
}
