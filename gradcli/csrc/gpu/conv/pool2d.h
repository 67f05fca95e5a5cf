/* pool2d.h -- windows over planes (planes, rows, columns): of a given size, or so that output i of
 * n looks at places floor(i length / n) to ceil((i + 1) length / n) - 1 (adaptive). */

struct Pool {
  uint h, w, oh, ow;
  int kh, kw, sh, sw, ph, pw, dh, dw; /* window, stride, padding above and left, dilation */
  uint adaptive;
};

/* From `from` to `to` - 1. */
struct Range {
  int from, to;
};

FN int lower(int a, int b) {
  return a < b ? a : b;
}
FN int higher(int a, int b) {
  return a > b ? a : b;
}

/* Where a window of n places `step` apart that begins at `begin` meets [0, length). */
FN Range window_of(int begin, int n, int step, uint length) {
  Range r;
  r.from = begin < 0 ? begin + (step - 1 - begin) / step * step : begin;
  r.to = lower((int)length, begin + (n - 1) * step + 1);
  return r;
}

/* i * n / length, rounded down or up, where i is at most length; bit by bit where the product has
 * more than 32. */
FN int scaled(uint i, uint n, uint length, bool up) {
  uint high = umulhi(i, n), low = i * n;
  if (high == 0)
    return (int)(low / length + (up && low % length ? 1 : 0));
  for (uint bit = 0; bit < 32; bit++) {
    const bool over = high >> 31;
    high = high << 1 | low >> 31;
    low <<= 1;
    if (over || high >= length) {
      high -= length;
      low |= 1;
    }
  }
  return (int)(low + (up && high ? 1 : 0));
}
FN Range adaptive_of(uint i, uint n, uint length) {
  const Range r = {scaled(i, length, n, false), scaled(i + 1, length, n, true)};
  return r;
}

FN Range rows_of(Pool s, uint i) {
  return s.adaptive ? adaptive_of(i, s.oh, s.h) : window_of((int)i * s.sh - s.ph, s.kh, s.dh, s.h);
}
FN Range columns_of(Pool s, uint i) {
  return s.adaptive ? adaptive_of(i, s.ow, s.w) : window_of((int)i * s.sw - s.pw, s.kw, s.dw, s.w);
}

/* The outputs, of n, whose windows reach over a place. */
FN Range over_place(uint place, uint n, int size, int stride, int padding) {
  const int last = (int)place + padding, first = last - size + 1;
  Range r;
  r.from = first > 0 ? (first + stride - 1) / stride : 0;
  r.to = lower((int)n, last / stride + 1);
  return r;
}
FN Range over_adaptive(uint place, uint n, uint length) {
  const Range r = {scaled(place, n, length, false), scaled(place + 1, n, length, true)};
  return r;
}

FN Range over_row(Pool s, uint y) {
  return s.adaptive ? over_adaptive(y, s.oh, s.h)
                    : over_place(y, s.oh, (s.kh - 1) * s.dh + 1, s.sh, s.ph);
}
FN Range over_column(Pool s, uint x) {
  return s.adaptive ? over_adaptive(x, s.ow, s.w)
                    : over_place(x, s.ow, (s.kw - 1) * s.dw + 1, s.sw, s.pw);
}
