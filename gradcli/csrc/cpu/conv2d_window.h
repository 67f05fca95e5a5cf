/* conv2d_window.h -- between images and matrices: row (c, kh, kw) of the matrix `columns` holds,
 * for each output position, the pixel that weight (c, kh, kw) meets there, or 0 in the padding. */

#ifndef GC_CONV2D_SHAPE
#define GC_CONV2D_SHAPE
enum { GC_CONV2D_CHUNK = 1 << 18 /* bytes of columns that stay in the second cache */ };
#define GC_CONV2D_ROW ((int64_t)1 << 40) /* so that no size below overflows */

typedef struct {
  int64_t images, groups;
  int64_t c, h, w;        /* input of one group */
  int64_t oc, oh, ow;     /* output of one group */
  int64_t kh, kw;         /* window */
  int64_t sh, sw, ph, pw; /* stride; padding above and to the left */
  int64_t dh, dw;         /* dilation */
  int64_t depth;          /* c * kh * kw: rows of `columns` */
  int64_t positions;      /* oh * ow */
  int64_t rows, chunks;   /* output rows that `columns` holds at a time */
  int64_t bytes;          /* of columns, and of a vector behind them */
} gc_conv2d;

static inline gc_conv2d gc_conv2d_shape(const gc_call *call, int32_t image, int32_t weight,
                                        int32_t out) {
  const gc_tensor *x = &call->tensors[image], *f = &call->tensors[weight];
  const gc_tensor *y = &call->tensors[out];
  const int64_t *size = call->sizes;
  gc_conv2d s = {.sh = size[0], .sw = size[1], .ph = size[2], .pw = size[3]};
  s.dh = size[4], s.dw = size[5], s.groups = size[6];
  s.images = x->shape[0], s.c = f->shape[1], s.h = x->shape[2], s.w = x->shape[3];
  s.oc = f->shape[0] / s.groups, s.oh = y->shape[2], s.ow = y->shape[3];
  s.kh = f->shape[2], s.kw = f->shape[3];
  s.depth = s.c * s.kh * s.kw;
  s.positions = s.oh * s.ow;
  const int64_t row = gc_max(1, s.depth * s.ow) * gc_dtype_size(x->dtype);
  s.rows = gc_max(1, gc_min(s.oh, GC_CONV2D_CHUNK / row));
  s.chunks = gc_ceil_div(s.oh, s.rows);
  s.bytes = s.rows * row + 64;
  return s;
}

/* x (N, C, H, W), weight (OC, C / groups, KH, KW), y (N, OC, OH, OW); whatever of a window lies
 * outside the image is padding, so that any OH and OW are safe. */
static inline int gc_conv2d_check(const gc_call *call, int32_t image, int32_t weight, int32_t out,
                                  gc_error *error) {
  const int32_t each[3] = {image, weight, out};
  for (int32_t i = 0; i < 3; i++) {
    const gc_tensor *t = &call->tensors[each[i]];
    GC_REQUIRE(t->ndim == 4 && gc_contiguous(t), each[i], "a contiguous tensor of 4 dimensions");
    GC_REQUIRE(t->dtype == call->tensors[0].dtype, each[i], "tensors of one element type");
    for (int32_t d = 0; d < 4; d++)
      GC_REQUIRE(t->shape[d] <= INT32_MAX, each[i], "dimensions below 2^31");
  }
  for (int i = 0; i < 6; i++)
    GC_REQUIRE(call->sizes[i] >= (i / 2 != 1) && call->sizes[i] <= INT32_MAX, image,
               "stride and dilation of at least 1 and padding of at least 0");
  const gc_tensor *x = &call->tensors[image], *f = &call->tensors[weight];
  const gc_tensor *y = &call->tensors[out];
  const int64_t groups = call->sizes[6];
  GC_REQUIRE(groups >= 1 && groups <= INT32_MAX && f->shape[0] % groups == 0, weight,
             "filters that the groups divide");
  GC_REQUIRE(x->shape[1] == f->shape[1] * groups, image, "channels of the filters times groups");
  const double row = (double)f->shape[1] * (double)f->shape[2] * (double)f->shape[3] *
                     (double)gc_max(1, y->shape[3]);
  GC_REQUIRE(row < (double)GC_CONV2D_ROW, weight, "less than 2^40 products in a row of outputs");
  GC_REQUIRE(y->shape[0] == x->shape[0] && y->shape[1] == f->shape[0], out,
             "(images, filters, rows, columns)");
  return GC_OK;
}

/* A row of `columns` for one output row: the output columns low .. high - 1 see the image's columns
 * low * sw + offset, ...; those before and after see padding. */
typedef struct {
  int64_t low, high, offset;
} gc_stretch;

/* The first output column whose pixel is at or right of the image's column `from`. */
static inline int64_t gc_first_at(const gc_conv2d *s, int64_t from, int64_t offset) {
  return from <= offset ? 0 : gc_min(s->ow, gc_ceil_div(from - offset, s->sw));
}

static inline gc_stretch gc_conv2d_stretch(const gc_conv2d *s, int64_t kw) {
  const int64_t offset = kw * s->dw - s->pw;
  return (gc_stretch){gc_first_at(s, 0, offset), gc_first_at(s, s->w, offset), offset};
}
#endif

/* n pixels from `from`, `step` apart. Whole vectors are moved where `from` has them before `end`:
 * what they write behind the n pixels is written again, or is the spare room behind the columns. */
static inline void NAME(take_pixels)(const REAL *from, int64_t step, int64_t n, const REAL *end,
                                     REAL *to) {
  if (step == 1 && end - from >= gc_ceil_div(n, LANES) * LANES)
    for (int64_t p = 0; p < n; p += LANES)
      *(NAME(loose) *)(to + p) = *(const NAME(loose) *)(from + p);
  else
    for (int64_t p = 0; p < n; p++)
      to[p] = from[p * step];
}

/* columns (depth, rows * ow) for the output rows first .. first + rows - 1 of one image. */
static void NAME(columns_of)(const gc_conv2d *s, const REAL *x, int64_t first, int64_t rows,
                             REAL *to) {
  const REAL *const end = x + s->c * s->h * s->w;
  for (int64_t k = 0; k < s->depth; k++) {
    const REAL *plane = x + k / (s->kh * s->kw) * s->h * s->w;
    const gc_stretch r = gc_conv2d_stretch(s, k % s->kw);
    int64_t ih = first * s->sh - s->ph + k / s->kw % s->kh * s->dh;
    for (int64_t row = 0; row < rows; row++, ih += s->sh, to += s->ow) {
      const bool inside = ih >= 0 && ih < s->h && r.low < r.high;
      const int64_t low = inside ? r.low : s->ow, high = inside ? r.high : s->ow;
      for (int64_t p = 0; p < low; p++)
        to[p] = 0;
      if (inside)
        NAME(take_pixels)(plane + ih * s->w + (r.offset + low * s->sw), s->sw, high - low, end,
                          to + low);
      for (int64_t p = high; p < s->ow; p++)
        to[p] = 0;
    }
  }
}

/* Adds each element of columns to the pixel that it was taken from. */
static void NAME(add_columns)(const gc_conv2d *s, const REAL *from, int64_t first, int64_t rows,
                              REAL *x) {
  for (int64_t k = 0; k < s->depth; k++) {
    REAL *plane = x + k / (s->kh * s->kw) * s->h * s->w;
    const gc_stretch r = gc_conv2d_stretch(s, k % s->kw);
    int64_t ih = first * s->sh - s->ph + k / s->kw % s->kh * s->dh;
    for (int64_t row = 0; row < rows; row++, ih += s->sh, from += s->ow) {
      if (ih < 0 || ih >= s->h || r.low >= r.high)
        continue;
      REAL *to = plane + ih * s->w + (r.low * s->sw + r.offset);
      const REAL *grad = from + r.low;
      if (s->sw == 1)
        for (int64_t p = 0; p < r.high - r.low; p++)
          to[p] += grad[p];
      else
        for (int64_t p = 0; p < r.high - r.low; p++)
          to[p * s->sw] += grad[p];
    }
  }
}
