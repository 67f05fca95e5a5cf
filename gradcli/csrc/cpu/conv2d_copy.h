/* conv2d_copy.h -- writes the copy of the source that a sweep reads: its bands, with zeros for the
 * padding. */

#undef EVEN
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

/* Rows that meet the source. Where rows follow each other in source and copy alike they are moved
 * as one, and then the ends of each, where it took pixels of its neighbours, are made zero. */
static void NAME(copy_rows)(const gc_sweep *s, const REAL *from, int64_t rows, gc_inside across,
                            const REAL *end, REAL *to) {
  const int64_t width = s->columns.extent, step = s->column.step;
  const bool whole = step == 1 && s->row.step == 1 && s->column.length == width;
  if (whole)
    NAME(take_pixels)(from, 1, (rows - 1) * width + across.to - across.from, end, to + across.from);
  for (int64_t i = 0; i < rows; i++, to += width, from += s->row.step * s->column.length) {
    if (!whole)
      NAME(take_pixels)(from, step, across.to - across.from, end, to + across.from);
    NAME(clear)(to, 0, across.from);
    NAME(clear)(to, across.to, width);
  }
}

/* One band of one plane: `extent` rows, the first of which meets the source at (row, column). */
static void NAME(copy_band)(const gc_sweep *s, const REAL *plane, const REAL *end, int64_t row,
                            int64_t column, int64_t extent, REAL *to) {
  const int64_t width = s->columns.extent;
  const gc_inside across = NAME(inside_of)(&s->column, column, width);
  gc_inside down = NAME(inside_of)(&s->row, row, extent);
  if (across.from == across.to)
    down.from = down.to = extent;
  memset(to, 0, (size_t)(down.from * width) * sizeof(REAL));
  if (down.from < down.to)
    NAME(copy_rows)(s,
                    plane + (row + down.from * s->row.step) * s->column.length +
                        (column + across.from * s->column.step),
                    down.to - down.from, across, end, to + down.from * width);
  memset(to + down.to * width, 0, (size_t)((extent - down.to) * width) * sizeof(REAL));
}

/* The mask of one band: all bits where an output of its `extent` rows meets the source. */
static void NAME(mask_band)(const gc_sweep *s, int64_t row, int64_t column, int64_t extent,
                            LANE_TYPE *mask) {
  const int64_t width = s->columns.extent;
  const gc_inside down = NAME(inside_of)(&s->row, row, extent);
  const gc_inside across = NAME(inside_of)(&s->column, column, width);
  for (int64_t i = 0; i < extent; i++, mask += width)
    for (int64_t p = 0; p < width; p++)
      mask[p] =
          -(LANE_TYPE)((i >= down.from) & (i < down.to) & (p >= across.from) & (p < across.to));
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
  const int64_t pixels = s->row.length * s->column.length, width = s->columns.extent;
  const int64_t extent = rows + s->rows.extent - s->chunk, bands = s->rows.bands * s->columns.bands;
  const int64_t room = s->channels * pixels - gc_ceil_div(extent * width, LANES) * LANES;
  const int64_t bits = gc_sweep_masks(s, LANES);
  for (int64_t c = 0; c < s->channels; c++)
    for (int64_t b = 0; b < bands; b++, to += s->band) {
      const int64_t column = gc_band_begin(&s->column, &s->columns, b % s->columns.bands);
      const int64_t row =
          gc_band_begin(&s->row, &s->rows, b / s->columns.bands) + first * s->row.step;
      const int64_t at = c * pixels + row * width + column;
      LANE_TYPE *const mask = masks + b * (bits / bands);
      if (bits && c == 0)
        NAME(mask_band)(s, row, column, extent, mask);
      if (bits && at >= 0 && at <= room)
        NAME(move_band)(source + at, mask, extent * width, to);
      else
        NAME(copy_band)(s, source + c * pixels, source + s->channels * pixels, row, column, extent,
                        to);
    }
}
