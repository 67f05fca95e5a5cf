/* conv2d_copy.h -- writes the copy of the source that a sweep reads: its bands, with zeros for the
 * padding. */
#ifndef GC_CONV2D_COPY_H
#define GC_CONV2D_COPY_H

#include "../kernel.h"
#include "../matmul/gemm_pack.h"
#include "../matmul/gemm_tile.h"
#include "../type.h"
#include "conv2d_shape.h"

#ifdef GC_IS_FLOAT
#if GC_VECTOR_BYTES == 64
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#elif GC_VECTOR_BYTES == 32
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#else
#define EVEN 0, 2, 4, 6
#endif
#else
#if GC_VECTOR_BYTES == 64
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#elif GC_VECTOR_BYTES == 32
#define EVEN 0, 2, 4, 6
#else
#define EVEN 0, 2
#endif
#endif

/* n pixels from `from`, `step` apart. Whole vectors are moved where `from` has them before `end`:
 * what they write behind the n pixels is written again, or is the spare vector behind the copy. */
static inline void NAME(take_pixels)(const REAL *from, int64_t step, int64_t n, const REAL *end,
                                     REAL *to) {
  const bool room = end - from >= step * gc_ceil_div(n, LANES) * LANES;
  if (step == 1 && room)
    for (int64_t p = 0; p < n; p += LANES)
      *(NAME(loose) *)(to + p) = *(const NAME(loose) *)(from + p);
  else if (step == 2 && room)
    for (int64_t p = 0; p < n; p += LANES) {
      const NAME(vec) low = *(const NAME(loose) *)(from + 2 * p);
      const NAME(vec) high = *(const NAME(loose) *)(from + 2 * p + LANES);
      *(NAME(loose) *)(to + p) = PICK(low, high, EVEN);
    }
  else
    for (int64_t p = 0; p < n; p++)
      to[p] = from[p * step];
}

/* Which of a line of `extent` outputs meet the source, where output 0 meets it at `begin`. */
static inline gc_inside NAME(inside_of)(const gc_axis *a, int64_t begin, int64_t extent) {
  gc_inside r = {0, 0};
  if (begin < 0)
    r.from = gc_min(extent, gc_ceil_div(-begin, a->step));
  if (begin < a->length)
    r.to = gc_min(extent, gc_ceil_div(a->length - begin, a->step));
  r.to = gc_max(r.from, r.to);
  return r;
}

/* Zeros from .. to - 1: mostly one, which is not worth a call of memset. */
static inline void NAME(clear)(REAL *line, int64_t from, int64_t to) {
  if (from < to)
    line[from] = 0;
  for (int64_t p = from + 1; p < to; p++)
    line[p] = 0;
}

/* What a band is, the same for all planes: where its first output meets the source, and which of
 * its rows and columns do. */
typedef struct {
  int64_t row, column, extent;
  gc_inside down, across;
} NAME(band);

static NAME(band) NAME(band_of)(const gc_sweep *s, int64_t number, int64_t first, int64_t rows) {
  NAME(band) b = {.extent = rows + s->rows.extent - s->chunk};
  b.row = gc_band_begin(&s->row, &s->rows, number / s->columns.bands) + first * s->row.step;
  b.column = gc_band_begin(&s->column, &s->columns, number % s->columns.bands);
  b.down = NAME(inside_of)(&s->row, b.row, b.extent);
  b.across = NAME(inside_of)(&s->column, b.column, s->columns.extent);
  if (b.across.from == b.across.to)
    b.down.from = b.down.to = b.extent;
  return b;
}

/* Rows that meet the source. Where rows follow each other in source and copy alike they are moved
 * as one, and then the ends of each, where it took pixels of its neighbours, are made zero. */
static void NAME(copy_rows)(const gc_sweep *s, const REAL *from, int64_t rows, gc_inside across,
                            const REAL *end, REAL *to) {
  const int64_t width = s->columns.extent, step = s->column.step, n = across.to - across.from;
  const int64_t apart = s->row.step * s->column.length;
  const bool whole = step == 1 && s->row.step == 1 && s->column.length == width;
  if (whole)
    NAME(take_pixels)(from, 1, (rows - 1) * width + n, end, to + across.from);
  for (int64_t i = 0; i < rows; i++, to += width, from += apart) {
    if (!whole)
      NAME(take_pixels)(from, step, n, end, to + across.from);
    NAME(clear)(to, 0, across.from);
    NAME(clear)(to, across.to, width);
  }
}

static void NAME(copy_band)(const gc_sweep *s, const NAME(band) * b, const REAL *plane,
                            const REAL *end, REAL *to) {
  const int64_t width = s->columns.extent;
  if (b->down.from)
    memset(to, 0, (size_t)(b->down.from * width) * sizeof(REAL));
  if (b->down.from < b->down.to)
    NAME(copy_rows)(s,
                    plane + (b->row + b->down.from * s->row.step) * s->column.length +
                        (b->column + b->across.from * s->column.step),
                    b->down.to - b->down.from, b->across, end, to + b->down.from * width);
  if (b->down.to < b->extent)
    memset(to + b->down.to * width, 0, (size_t)((b->extent - b->down.to) * width) * sizeof(REAL));
}

/* The mask of one band: all bits where an output of its `extent` rows meets the source. */
static void NAME(mask_band)(const NAME(band) * b, int64_t width, LANE_TYPE *mask) {
  for (int64_t i = 0; i < b->extent; i++, mask += width)
    for (int64_t p = 0; p < width; p++)
      mask[p] = -(LANE_TYPE)((i >= b->down.from) & (i < b->down.to) & (p >= b->across.from) &
                             (p < b->across.to));
}

static inline void NAME(move_band)(const REAL *from, const LANE_TYPE *mask, int64_t n, REAL *to) {
  for (int64_t p = 0; p < n; p += LANES) {
    const NAME(lanes) bits = (NAME(lanes))(*(const NAME(loose) *)(from + p));
    *(NAME(loose) *)(to + p) = (NAME(vec))(bits & *(const NAME(lanes) *)(mask + p));
  }
}

/* What the outputs of rows first .. first + rows - 1 meet. `masks`: room for one of each band. */
static void NAME(copy_source)(const gc_sweep *s, const REAL *source, int64_t first, int64_t rows,
                              REAL *to, LANE_TYPE *masks) {
  enum { KNOWN = 16 }; /* bands that need not be found again for each plane */
  const int64_t pixels = s->row.length * s->column.length, width = s->columns.extent;
  const int64_t bands = s->rows.bands * s->columns.bands, bits = gc_sweep_masks(s, LANES);
  NAME(band) known[KNOWN];
  for (int64_t c = 0; c < s->channels; c++)
    for (int64_t i = 0; i < bands; i++, to += s->band) {
      NAME(band) *const b = &known[i < KNOWN ? i : KNOWN - 1];
      if (c == 0 || i >= KNOWN - 1)
        *b = NAME(band_of)(s, i, first, rows);
      const int64_t at = c * pixels + b->row * width + b->column, n = b->extent * width;
      LANE_TYPE *const mask = masks + i * (bits / bands);
      if (bits && c == 0)
        NAME(mask_band)(b, width, mask);
      if (bits && at >= 0 && at + gc_ceil_div(n, LANES) * LANES <= s->channels * pixels)
        NAME(move_band)(source + at, mask, n, to);
      else
        NAME(copy_band)(s, b, source + c * pixels, source + s->channels * pixels, to);
    }
}

#endif
