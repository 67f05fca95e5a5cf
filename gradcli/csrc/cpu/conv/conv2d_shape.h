/* conv2d_shape.h -- the shape of a convolution, and how its source is laid out: a sweep reads its
 * source planes (the image, or for the gradient of the image the gradient of the output) from a
 * copy with padding, in which the pixels that one tap meets at consecutive outputs lie side by
 * side. So a row of the matrix of windows is found at an offset and is never written. */
#ifndef GC_CONV2D_SHAPE_H
#define GC_CONV2D_SHAPE_H

#include "../kernel.h"

enum { GC_CONV2D_COPY = 1 << 18 /* bytes of a copy that stay in the second cache */ };
#define GC_CONV2D_LIMIT ((double)((int64_t)1 << 40)) /* so that no size below overflows */

typedef struct {
  int64_t images, groups;
  int64_t c, h, w;        /* input of one group */
  int64_t oc, oh, ow;     /* output of one group */
  int64_t kh, kw;         /* window */
  int64_t sh, sw, ph, pw; /* stride; padding above and to the left */
  int64_t dh, dw;         /* dilation */
  int64_t depth;          /* c * kh * kw */
  int64_t lanes, size;    /* of a vector; bytes of an element */
} gc_conv2d;

static inline gc_conv2d gc_conv2d_shape(const gc_call *call, int32_t image, int32_t weight,
                                        int32_t out, int64_t lanes) {
  const gc_tensor *x = &call->tensors[image], *f = &call->tensors[weight];
  const gc_tensor *y = &call->tensors[out];
  const int64_t *size = call->sizes;
  gc_conv2d s = {.sh = size[0], .sw = size[1], .ph = size[2], .pw = size[3]};
  s.dh = size[4], s.dw = size[5], s.groups = size[6];
  s.images = x->shape[0], s.c = f->shape[1], s.h = x->shape[2], s.w = x->shape[3];
  s.oc = f->shape[0] / s.groups, s.oh = y->shape[2], s.ow = y->shape[3];
  if (s.oc && s.c)
    s.kh = f->shape[2], s.kw = f->shape[3];
  s.depth = s.c * s.kh * s.kw;
  s.lanes = lanes, s.size = gc_dtype_size(x->dtype);
  return s;
}

/* x (N, C, H, W), weight (OC, C / groups, KH, KW), y (N, OC, OH, OW); whatever of a window lies
 * outside the image is padding, so that any OH and OW are safe. */
static inline int gc_conv2d_check(const gc_call *call, int32_t image, int32_t weight, int32_t out,
                                  gc_error *error) {
  const int32_t each[3] = {image, weight, out};
  for (int32_t i = 0; i < 3; i++) {
    for (int32_t d = 0; d < 4; d++)
      GC_REQUIRE(call->tensors[each[i]].shape[d] <= INT32_MAX, each[i], "dimensions below 2^31");
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
  const double taps = (double)f->shape[2] * (double)f->shape[3];
  const double planes = (double)gc_max(1, gc_max(f->shape[0], f->shape[1]));
  const double row = planes * (double)gc_max(1, gc_max(x->shape[3], y->shape[3]));
  GC_REQUIRE(taps * row < GC_CONV2D_LIMIT, weight, "less than 2^40 products in a row of outputs");
  return GC_OK;
}

/* Rows or columns of a sweep: tap t of output i meets the source at begin + i * step + t * gap;
 * outside 0 .. length - 1 that is padding. Its weight is number first + t * next of the window. */
typedef struct {
  int64_t length, begin, step, gap;
  int64_t outputs, taps;
  int64_t first, next;
} gc_axis;

/* How an axis is laid out: in bands, each of which holds what some taps meet, output after output.
 * Either taps share bands (the same pixels, some outputs further on) or each has its own. */
typedef struct {
  bool shared;
  int64_t bands, extent;
} gc_bands;

typedef struct {
  gc_axis row, column;
  gc_bands rows, columns; /* rows: of a chunk */
  int64_t channels, depth;
  int64_t chunk;             /* rows of outputs that a copy serves */
  int64_t band, plane;       /* elements of a band, and of all of one channel */
  int64_t at_row, at_column; /* of its first output in the image */
  int64_t weights, offsets;  /* where its own begin among those of all sweeps */
} gc_sweep;

/* How far the last tap lies behind the first. */
static inline int64_t gc_reach(const gc_axis *a) {
  return a->taps ? (a->taps - 1) * a->gap : 0;
}

/* Shared bands: those of the source's places 0, step, ..., 1, step + 1, ... that a tap meets. */
static inline int64_t gc_shared_bands(const gc_axis *a) {
  return a->gap % a->step == 0 ? 1 : gc_min(a->step, gc_reach(a) + 1);
}

static inline gc_bands gc_bands_of(const gc_axis *a, int64_t outputs, bool share) {
  const int64_t bands = gc_shared_bands(a), extent = outputs + gc_reach(a) / a->step;
  if (share && (double)bands * (double)extent <= (double)a->taps * (double)outputs)
    return (gc_bands){true, bands, extent};
  return (gc_bands){false, a->taps, outputs};
}

/* Band number `band` begins this far into the source for output 0. */
static inline int64_t gc_band_begin(const gc_axis *a, const gc_bands *b, int64_t band) {
  return a->begin + (b->shared ? band : band * a->gap);
}

/* Where tap t begins: its band, and how many outputs further on. */
static inline int64_t gc_tap_band(const gc_axis *a, const gc_bands *b, int64_t t) {
  return b->shared ? t * a->gap % a->step : t;
}
static inline int64_t gc_tap_skip(const gc_axis *a, const gc_bands *b, int64_t t) {
  return b->shared ? t * a->gap / a->step : 0;
}

/* Lays a sweep out for `chunk` rows at a time. Columns share a band only where its rows are whole
 * vectors: otherwise each tap has its own copy, all of whose rows touch. */
static inline void gc_sweep_layout(gc_sweep *s, int64_t chunk, int64_t lanes) {
  const gc_axis *column = &s->column;
  s->chunk = chunk;
  s->columns = gc_bands_of(column, column->outputs,
                           column->step == 1 && (column->outputs % lanes == 0 || column->taps < 2));
  s->rows = gc_bands_of(&s->row, chunk, true);
  s->band = s->rows.extent * s->columns.extent;
  s->plane = s->band * s->rows.bands * s->columns.bands;
}

/* Elements of a copy, and of a vector behind it, in whole vectors. */
static inline int64_t gc_sweep_elements(const gc_sweep *s, int64_t lanes) {
  return (gc_ceil_div(s->channels * s->plane, lanes) + 1) * lanes;
}

/* Elements of a mask for each of its bands, or 0 where source and copy have no rows of one length:
 * where they do, a band is the source shifted, with zeros for the padding. */
static inline int64_t gc_sweep_masks(const gc_sweep *s, int64_t lanes) {
  const bool shifts = s->row.step == 1 && s->column.step == 1 &&
                      s->column.length == s->columns.extent && s->channels >= 4;
  const int64_t bands = s->rows.bands * s->columns.bands;
  return shifts ? bands * gc_ceil_div(s->band, lanes) * lanes : 0;
}

/* As many rows as a copy of GC_CONV2D_COPY bytes serves, in equal chunks. */
static inline int64_t gc_sweep_chunk(const gc_sweep *sweep, const gc_conv2d *conv) {
  gc_sweep s = *sweep;
  gc_sweep_layout(&s, 1, conv->lanes);
  const int64_t line = s.channels * s.columns.bands * s.columns.extent * conv->size;
  const int64_t lines = GC_CONV2D_COPY / gc_max(1, line);
  const int64_t shared = lines / gc_shared_bands(&s.row) - gc_reach(&s.row) / s.row.step;
  const int64_t most = gc_max(1, gc_max(shared, lines / gc_max(1, s.row.taps)));
  const int64_t chunks = gc_ceil_div(s.row.outputs, most);
  return gc_ceil_div(s.row.outputs, gc_max(1, chunks));
}

/* ---- the sweep of the output over the image ---- */

static inline gc_sweep gc_sweep_forward(const gc_conv2d *s) {
  gc_sweep sweep = {.channels = s->c, .depth = s->depth};
  sweep.row = (gc_axis){s->h, -s->ph, s->sh, s->dh, s->oh, s->kh, 0, 1};
  sweep.column = (gc_axis){s->w, -s->pw, s->sw, s->dw, s->ow, s->kw, 0, 1};
  return sweep;
}

/* ---- the sweeps of the image's gradient over the output's: the rows at, at + stride, ... of the
 * image meet the same taps, those for which at + padding - tap * dilation is a multiple of the
 * stride; likewise the columns ---- */

static inline gc_axis gc_axis_back(int64_t at, int64_t image, int64_t out, int64_t window,
                                   int64_t stride, int64_t padding, int64_t dilation) {
  int64_t divisor = stride, rest = dilation;
  while (rest) {
    const int64_t next = divisor % rest;
    divisor = rest, rest = next;
  }
  const int64_t every = stride / divisor; /* of the taps */
  int64_t tap = 0;
  while (tap < gc_min(window, every) && (at + padding - tap * dilation) % stride)
    tap++;
  gc_axis a = {.length = out, .step = 1, .gap = dilation / divisor, .next = -every};
  a.outputs = at < image ? gc_ceil_div(image - at, stride) : 0;
  if (tap < gc_min(window, every)) {
    a.taps = (window - 1 - tap) / every + 1;
    a.first = tap + (a.taps - 1) * every;
    a.begin = (at + padding - a.first * dilation) / stride;
  }
  return a;
}

static inline int64_t gc_phases_down(const gc_conv2d *s) {
  return gc_min(s->sh, s->h);
}
static inline int64_t gc_phases_across(const gc_conv2d *s) {
  return gc_min(s->sw, s->w);
}

static inline gc_sweep gc_sweep_back(const gc_conv2d *s, int64_t row, int64_t column) {
  gc_sweep sweep = {.channels = s->oc, .at_row = row, .at_column = column};
  sweep.row = gc_axis_back(row, s->h, s->oh, s->kh, s->sh, s->ph, s->dh);
  sweep.column = gc_axis_back(column, s->w, s->ow, s->kw, s->sw, s->pw, s->dw);
  sweep.depth = s->oc * sweep.row.taps * sweep.column.taps;
  return sweep;
}

/* Where the row of the matrix of windows that belongs to a tap of a channel begins in the copy. */
static inline int64_t gc_sweep_offset(const gc_sweep *s, int64_t row, int64_t channel,
                                      int64_t column) {
  const int64_t band = gc_tap_band(&s->row, &s->rows, row) * s->columns.bands +
                       gc_tap_band(&s->column, &s->columns, column);
  return channel * s->plane + band * s->band +
         gc_tap_skip(&s->row, &s->rows, row) * s->columns.extent +
         gc_tap_skip(&s->column, &s->columns, column);
}

/* All rows: (row tap, channel, column tap). Row taps stand first, so that those which meet nothing
 * but padding can be left out. */
static inline void gc_sweep_offsets(const gc_sweep *s, int64_t *to) {
  for (int64_t t = 0; t < s->row.taps; t++)
    for (int64_t c = 0; c < s->channels; c++)
      for (int64_t u = 0; u < s->column.taps; u++)
        *to++ = gc_sweep_offset(s, t, c, u);
}

typedef struct {
  int64_t from, to; /* to: the first behind it */
} gc_inside;

/* Which taps meet the source at one of the outputs first .. last. */
static inline gc_inside gc_taps_inside(const gc_axis *a, int64_t first, int64_t last) {
  const int64_t low = a->begin + last * a->step, high = a->length - a->begin - first * a->step;
  gc_inside taps = {0, a->taps};
  if (low < 0)
    taps.from = gc_min(a->taps, gc_ceil_div(-low, a->gap));
  if (high < (a->taps - 1) * a->gap + 1)
    taps.to = high > 0 ? gc_ceil_div(high, a->gap) : 0;
  taps.to = gc_max(taps.from, taps.to);
  return taps;
}

/* Which of the outputs first .. first + n - 1, counted from `first`, meet the source at one of some
 * taps. */
static inline gc_inside gc_outputs_inside(const gc_axis *a, gc_inside taps, int64_t first,
                                          int64_t n) {
  const int64_t low = a->begin + (taps.to - 1) * a->gap + first * a->step;
  const int64_t high = a->length - a->begin - taps.from * a->gap - first * a->step;
  gc_inside outputs = {0, high > 0 ? gc_min(n, gc_ceil_div(high, a->step)) : 0};
  if (low < 0)
    outputs.from = gc_min(n, gc_ceil_div(-low, a->step));
  outputs.to = gc_max(outputs.from, outputs.to);
  return outputs;
}

#endif
