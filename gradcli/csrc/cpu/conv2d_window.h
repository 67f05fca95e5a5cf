/* conv2d_window.h -- between images and matrices: row (c, kh, kw) of the matrix `columns` holds,
 * for each output position, the pixel that weight (c, kh, kw) meets there, or 0 in the padding. */

#ifndef GC_CONV2D_SHAPE
#define GC_CONV2D_SHAPE
enum { GC_CONV2D_CHUNK = 1 << 18 /* bytes of columns that stay in the second cache */ };
#define GC_CONV2D_DEPTH ((int64_t)1 << 40) /* so that no size below overflows */

typedef struct {
  int64_t images, groups;
  int64_t c, h, w;        /* input of one group */
  int64_t oc, oh, ow;     /* output of one group */
  int64_t kh, kw;         /* window */
  int64_t sh, sw, ph, pw; /* stride; padding above and to the left */
  int64_t dh, dw;         /* dilation */
  int64_t depth;          /* c * kh * kw: rows of `columns` */
  int64_t positions;      /* oh * ow */
  int64_t chunk, chunks;  /* positions that `columns` holds at a time */
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
  const int64_t row = gc_max(1, s.depth) * gc_dtype_size(x->dtype);
  s.chunk = gc_max(64, GC_CONV2D_CHUNK / row / 64 * 64);
  s.chunk = gc_max(1, gc_min(s.positions, s.chunk));
  s.chunks = gc_ceil_div(s.positions, s.chunk);
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
  const double depth = (double)f->shape[1] * (double)f->shape[2] * (double)f->shape[3];
  GC_REQUIRE(depth < (double)GC_CONV2D_DEPTH, weight, "filters of less than 2^40 weights each");
  GC_REQUIRE(y->shape[0] == x->shape[0] && y->shape[1] == f->shape[0], out,
             "(images, filters, rows, columns)");
  return GC_OK;
}

/* What row k of `columns` holds from `begin` to the end of that output row or of the chunk: zeros
 * before `low`, the image's pixels from `pixel` on before `high`, zeros before `end`. */
typedef struct {
  int64_t low, high, end, pixel;
} gc_stretch;

/* The first place in [0, end] whose pixel is at or right of the image's column `from`. */
static inline int64_t gc_first_at(int64_t from, int64_t offset, int64_t stride, int64_t end) {
  const int64_t need = from - offset;
  return need <= 0 ? 0 : gc_min(end, gc_ceil_div(need, stride));
}

static inline gc_stretch gc_conv2d_stretch(const gc_conv2d *s, int64_t k, int64_t first,
                                           int64_t begin, int64_t count) {
  const int64_t row = (first + begin) / s->ow, at = (first + begin) % s->ow;
  const int64_t n = gc_min(s->ow - at, count - begin);
  const int64_t ih = row * s->sh - s->ph + k / s->kw % s->kh * s->dh;
  const int64_t iw = at * s->sw - s->pw + k % s->kw * s->dw;
  gc_stretch r = {.low = begin + n, .high = begin + n, .end = begin + n};
  if (ih < 0 || ih >= s->h)
    return r;
  const int64_t low = gc_first_at(0, iw, s->sw, n), high = gc_first_at(s->w, iw, s->sw, n);
  r.low = begin + low;
  r.high = begin + high;
  r.pixel = ih * s->w + iw + low * s->sw;
  return r;
}
#endif

/* columns (depth, count) for the output positions first .. first + count - 1 of one image. */
static void NAME(columns_of)(const gc_conv2d *s, const REAL *x, int64_t first, int64_t count,
                             REAL *columns) {
  for (int64_t k = 0; k < s->depth; k++, columns += count) {
    const REAL *plane = x + k / (s->kh * s->kw) * s->h * s->w;
    for (int64_t p = 0; p < count;) {
      const gc_stretch r = gc_conv2d_stretch(s, k, first, p, count);
      for (; p < r.low; p++)
        columns[p] = 0;
      const REAL *from = plane + r.pixel - p * s->sw;
      if (s->sw == 1)
        for (; p < r.high; p++)
          columns[p] = from[p];
      else
        for (; p < r.high; p++)
          columns[p] = from[p * s->sw];
      for (; p < r.end; p++)
        columns[p] = 0;
    }
  }
}

/* Adds each element of columns to the pixel that it was taken from. */
static void NAME(add_columns)(const gc_conv2d *s, const REAL *columns, int64_t first, int64_t count,
                              REAL *x) {
  for (int64_t k = 0; k < s->depth; k++, columns += count) {
    REAL *plane = x + k / (s->kh * s->kw) * s->h * s->w;
    for (int64_t p = 0; p < count;) {
      const gc_stretch r = gc_conv2d_stretch(s, k, first, p, count);
      REAL *to = plane + r.pixel - r.low * s->sw;
      if (s->sw == 1)
        for (p = r.low; p < r.high; p++)
          to[p] += columns[p];
      else
        for (p = r.low; p < r.high; p++)
          to[p * s->sw] += columns[p];
      p = r.end;
    }
  }
}
