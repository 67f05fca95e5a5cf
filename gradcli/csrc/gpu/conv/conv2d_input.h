/* conv2d_input.h -- the gradient of a convolution's image. The rows at, at + stride, ... of the
 * image meet the same taps of the filters, those for which at + padding - tap * dilation is a
 * multiple of the stride; likewise the columns. So the image falls into phases, stride x stride of
 * them, each of which is a product of its taps' weights with a matrix of gradients. */

#include "conv2d.h"

struct Back {
  Conv s;
  uint phases, across;           /* of the image; of them side by side */
  uint taps_down, taps_across;   /* every so many taps meet the outputs one phase meets ... */
  uint gap_down, gap_across;     /* ... so far apart */
  Divisor filters, down, beside; /* oc, the strides */
};

/* Rows or columns of one phase: number r lies at `at` + r * stride in the image, and meets output
 * begin + r - t * gap at tap first + t * every. */
struct Axis {
  uint at, count, taps, first;
  int begin;
};

FN Axis axis_of(uint at, uint length, uint window, uint stride, uint padding, uint dilation,
                uint every) {
  Axis a = {at, (length - at + stride - 1) / stride, 0, 0, 0};
  for (uint tap = 0; tap < window && tap < every && a.taps == 0; tap++) {
    const int place = (int)(at + padding) - (int)(tap * dilation);
    if (place % (int)stride == 0) {
      a.taps = (window - 1 - tap) / every + 1;
      a.first = tap;
      a.begin = place / (int)stride;
    }
  }
  return a;
}

/* The sums go over taps, and for each over the filters of the group. */
struct TapWeights {
  DEV(const REAL) from;
  Back b;
  Axis down, across;
  uint last;
  bool along;

  REAL number(uint i, uint k) const {
    const uint tap = quotient(k, b.filters), filter = k - tap * b.filters.by;
    const uint y = down.first + tap / across.taps * b.taps_down;
    const uint x = across.first + tap % across.taps * b.taps_across;
    const uint channel = i < last ? i : last;
    return from[((filter * b.s.c + channel) * b.s.kh + y) * b.s.kw + x];
  }
};
struct PixelColumns {
  DEV(const REAL) from;
  Back b;
  Axis down, across;
  uint last;
  bool along;

  REAL number(uint j, uint k) const {
    const uint place = j < last ? j : last, row = place / across.count;
    const uint image = row / down.count;
    const uint tap = quotient(k, b.filters), filter = k - tap * b.filters.by;
    const uint y = (uint)down.begin + row % down.count - tap / across.taps * b.gap_down;
    const uint x = (uint)across.begin + place % across.count - tap % across.taps * b.gap_across;
    if (y >= b.s.oh || x >= b.s.ow)
      return 0;
    return from[((image * b.s.groups * b.s.oc + filter) * b.s.oh + y) * b.s.ow + x];
  }
};

/* What a block does: groups and phases are the batch; a phase has at most `most` pixels of each
 * image. */
struct Phase {
  Block block;
  uint group;
  Axis down, across;
  uint pixels;
};

template <uint DOWN, uint ACROSS> FN Phase phase_of(VAL_REF(Back) p, uint index) {
  const uint most = (p.s.h + p.s.sh - 1) / p.s.sh * ((p.s.w + p.s.sw - 1) / p.s.sw);
  Phase f;
  f.block = block_of<DOWN, ACROSS>(index, p.s.groups * p.phases, p.s.c, p.s.images * most,
                                   0xffffffffu, p.s.piece);
  const uint number = f.block.batch % p.phases;
  f.group = f.block.batch / p.phases;
  f.down = axis_of(number / p.across, p.s.h, p.s.kh, p.s.sh, p.s.ph, p.s.dh, p.taps_down);
  f.across = axis_of(number % p.across, p.s.w, p.s.kw, p.s.sw, p.s.pw, p.s.dw, p.taps_across);
  const uint depth = f.down.taps * f.across.taps * p.s.oc;
  f.block.end = f.block.end < depth ? f.block.end : depth;
  f.pixels = p.s.images * f.down.count * f.across.count;
  return f;
}

/* Where the sum of the first channel and pixel j of a phase goes; the others lie planes behind. */
FN uint pixel_of(VAL_REF(Back) p, Phase f, uint j) {
  const uint line = j / f.across.count;
  const uint y = f.down.at + line % f.down.count * p.s.sh;
  const uint x = f.across.at + j % f.across.count * p.s.sw;
  const uint image = f.block.number * p.s.images + line / f.down.count;
  return ((image * p.s.groups + f.group) * p.s.c * p.s.h + y) * p.s.w + x;
}
