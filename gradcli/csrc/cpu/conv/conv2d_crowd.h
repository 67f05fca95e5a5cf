/* conv2d_crowd.h -- convolution of narrow pictures, several images at a time: of a column of pixels
 * row follows row, and within a row image follows image. A vector has some rows of one column of
 * outputs, so that the column taps that meet padding there are left out, and row taps where they
 * meet it in all its rows. The order of each sum is that of a sweep. */
#ifndef GC_CONV2D_CROWD_H
#define GC_CONV2D_CROWD_H

#include "../kernel.h"
#include "../matmul/gemm_pack.h"
#include "../matmul/gemm_tile.h"
#include "../type.h"
#include "conv2d_pack.h"
#include "conv2d_plan.h"
#include "conv2d_shape.h"
#include "conv2d_tile.h"

/* ---- m filters at w vectors of positions; the weights of a step lie together, as for a spot ----
 */

typedef struct {
  int64_t taps, channels, columns; /* steps: row taps, channels, column taps; how far apart ... */
  int64_t tap, channel, column;    /* ... they lie in the copy */
  int64_t skip;                    /* steps of a channel that are left out */
  NAME(spot) spot;
} NAME(crowd);

typedef void NAME(crowd_fn)(const NAME(crowd) *, const REAL *weight, int64_t at, const REAL *bias);

static inline __attribute__((always_inline)) void NAME(crowd_tile)(const int m, const int w,
                                                                   const NAME(crowd) * s,
                                                                   const REAL *weight, int64_t at,
                                                                   const REAL *bias) {
  NAME(vec) sum[GC_CONV2D_ROWS][2], row[2];
  GC_UNROLL for (int i = 0; i < m; i++) GC_UNROLL for (int j = 0; j < w; j++) sum[i][j] =
      (NAME(vec)){0};
  const int64_t next = w > 1 ? s->spot.from[1] - s->spot.from[0] : 0;
  for (int64_t t = 0; t < s->taps; t++) {
    const REAL *line = s->spot.from[0] + t * s->tap;
    for (int64_t c = 0; c < s->channels; c++, line += s->channel, weight += s->skip * m) {
      const REAL *from = line;
      for (int64_t u = s->columns; u > 0; u--, weight += m, from += s->column) {
        row[0] = *(const NAME(loose) *)from;
        if (w > 1)
          row[1] = *(const NAME(loose) *)(from + next);
        GC_UNROLL for (int i = 0; i < m; i++) {
          const NAME(vec) x = SPREAD(weight[i]);
          GC_UNROLL for (int j = 0; j < w; j++) sum[i][j] = MADD(x, row[j], sum[i][j]);
        }
      }
    }
  }
  GC_UNROLL for (int i = 0; i < m; i++) NAME(put_spot)(w, &s->spot, sum[i], at + i, bias);
}

#define CROWD(m, w)                                                                                \
  static void NAME(crowd_##m##_##w)(const NAME(crowd) * s, const REAL *weight, int64_t at,         \
                                    const REAL *bias) {                                            \
    NAME(crowd_tile)(m, w, s, weight, at, bias);                                                   \
  }
GC_CONV2D_TILES(CROWD, 1)
GC_CONV2D_TILES(CROWD, 2)
#define CROWD_ENTRY(m, w) NAME(crowd_##m##_##w),
/* [vectors - 1][filters - 1] */
static NAME(crowd_fn) *const NAME(crowds)[2][GC_CONV2D_ROWS] = {{GC_CONV2D_TILES(CROWD_ENTRY, 1)},
                                                                {GC_CONV2D_TILES(CROWD_ENTRY, 2)}};

/* ---- the copy ---- */

/* All channels of `images` images, which lie `apart`: [column][channel][row][image], with rows
 * of zeros for the padding above and below. */
static void NAME(copy_crowd)(const gc_sweep *s, const REAL *source, int64_t apart, int64_t images,
                             REAL *to) {
  _Alignas(GC_VECTOR_BYTES)
      REAL square[GC_VECTOR_BYTES / sizeof(REAL) * (GC_VECTOR_BYTES / sizeof(REAL))] = {0};
  const int64_t width = s->column.length, pixels = s->row.length * width, begin = s->row.begin;
  const int64_t rows = gc_crowd_rows(s), column = rows * images;
  const int64_t top = gc_max(0, gc_min(rows, -begin));
  const int64_t bottom = gc_max(top, gc_min(rows, s->row.length - begin));
  /* Vectors of zeros write past the padding, into what is written later or is spare. */
  for (int64_t i = 0; i < s->channels * width; i++) {
    for (int64_t k = 0; k < top * images; k += LANES)
      *(NAME(loose) *)(to + i * column + k) = (NAME(vec)){0};
    for (int64_t k = bottom * images; k < column; k += LANES)
      *(NAME(loose) *)(to + i * column + k) = (NAME(vec)){0};
  }
  for (int64_t c = 0; c < s->channels; c++, source += pixels, to += column)
    for (int64_t p = 0; p < pixels; p += LANES)
      for (int64_t i = 0; i < images; i += LANES) {
        const int64_t count = gc_min(LANES, pixels - p), n = gc_min(LANES, images - i);
        NAME(turn_square)(source + i * apart, apart, n, p, (s->channels - c) * pixels, count,
                          square);
        for (int64_t k = 0, y = p / width, x = p % width; k < count; k++) {
          REAL *const at = to + x * s->channels * column + (y - begin) * images + i;
          const NAME(vec) line = *(const NAME(vec) *)(square + k * LANES);
          if (y - begin >= top && y - begin < bottom && n == LANES)
            *(NAME(loose) *)at = line;
          else if (y - begin >= top && y - begin < bottom)
            NAME(store_part)(at, line, n);
          if (++x == width)
            x = 0, y++;
        }
      }
}

/* ---- the results ---- */

/* m filters of `images` images, [filter][column][row][image], to where each image has them: the
 * images `apart`. */
static void NAME(put_crowd)(const gc_sweep *s, const RESULT *from, int64_t m, int64_t images,
                            RESULT *out, int64_t apart) {
  enum { N = GC_VECTOR_BYTES / sizeof(REAL) };
  const int64_t width = s->column.outputs, rows = s->row.outputs, positions = rows * width;
  for (int64_t p = 0; p < positions; p += LANES) {
    const int64_t n = gc_min(LANES, positions - p);
    const RESULT *line[N];
    for (int64_t k = 0; k < N; k++) {
      const int64_t at = p + gc_min(k, n - 1);
      line[k] = from + (at % width * rows + at / width) * images;
    }
    for (int64_t f = 0; f < m; f++)
      for (int64_t i = 0; i < images; i += LANES) {
        NAME(vec) x[N], y[N];
        GC_UNROLL for (int k = 0; k < N; k++) x[k] =
            NAME(take_results)(line[k] + f * positions * images + i);
        NAME(transpose_vectors)(x, y);
        RESULT *to = out + i * apart + f * positions + p;
        for (int64_t j = 0; j < gc_min(LANES, images - i); j++, to += apart)
          NAME(put_results)(x[j], n, to);
      }
  }
}

/* ---- a panel of m filters, the first of them filter `at`, at all outputs ---- */

static void NAME(crowd_panel)(const gc_sweep *s, const REAL *copy, int64_t images,
                              const REAL *weight, int64_t m, int64_t at, const REAL *bias,
                              RESULT *to) {
  const int64_t column = gc_crowd_rows(s) * images, count = s->row.outputs * images;
  const int64_t taps = s->column.taps;
  NAME(crowd)
  crowd = {.channels = s->channels,
           .tap = s->row.gap * images,
           .channel = column,
           .column = s->column.gap * s->channels * column};
  crowd.spot.ld = s->column.outputs * count, crowd.spot.n = gc_min(LANES, count);
  for (int64_t q = 0; q < s->column.outputs; q++) {
    const gc_inside across = gc_taps_inside(&s->column, q, q);
    crowd.columns = across.to - across.from, crowd.skip = taps - crowd.columns;
    const int64_t x = s->column.begin + q + across.from * s->column.gap;
    const REAL *const from = copy + (crowd.columns ? x * s->channels * column : 0);
    for (int64_t p = 0, vectors; p < count; p += vectors * LANES) {
      /* Where two vectors meet other row taps, one at a time leaves out more. */
      gc_inside down[3];
      for (int64_t j = 0; j < 2; j++) {
        const int64_t first = gc_max(0, gc_min(p + j * LANES, count - LANES));
        crowd.spot.from[j] = from + first;
        crowd.spot.to[j] = to + q * count + first - at * crowd.spot.ld;
        down[j] =
            gc_taps_inside(&s->row, first / images, (gc_min(first + LANES, count) - 1) / images);
      }
      down[2] = (gc_inside){gc_min(down[0].from, down[1].from), gc_max(down[0].to, down[1].to)};
      const int64_t both = 2 * (down[2].to - down[2].from);
      vectors = p + LANES < count && (GC_CONV2D_ROWS < 8 ||
                                      both <= down[0].to - down[0].from + down[1].to - down[1].from)
                    ? 2
                    : 1;
      const gc_inside *const inside = &down[vectors > 1 ? 2 : 0];
      NAME(crowd) own = crowd;
      own.taps = inside->to - inside->from;
      for (int64_t j = 0; j < 2; j++)
        own.spot.from[j] += inside->from * crowd.tap;
      NAME(crowds)
      [vectors - 1][m - 1](&own, weight + (inside->from *s->channels *taps + across.from) *m, at,
                           bias);
    }
  }
}

/* A bunch of images of one group: those from `first` on, and its copy among all. */
typedef struct {
  int64_t group, first, images;
  REAL *copy;
} NAME(bunch);

static NAME(bunch) NAME(bunch_of)(const gc_job *job, const gc_pass *p, int64_t number) {
  const gc_conv2d *s = &p->s;
  const int64_t bunch = number / s->groups;
  NAME(bunch) b = {.group = number % s->groups, .first = s->images * bunch / p->bunches};
  b.images = s->images * (bunch + 1) / p->bunches - b.first;
  b.copy =
      (REAL *)gc_pass_weights(job->shared, p) + s->groups * s->oc * s->depth + number * p->copy;
  return b;
}

/* In phase 0: the copy of a bunch. */
static void NAME(prepare_crowd)(const gc_job *job, const gc_pass *p, const REAL *source) {
  const NAME(bunch) b = NAME(bunch_of)(job, p, job->task - p->packs);
  const gc_sweep sweep = gc_pass_sweep(&p->s, p->back, 0);
  const int64_t pixels = sweep.row.length * sweep.column.length * sweep.channels;
  const int64_t apart = p->s.groups * pixels;
  NAME(copy_crowd)(&sweep, source + b.first * apart + b.group * pixels, apart, b.images, b.copy);
}

/* In phase 1: some filters of one group, for a bunch of images. */
static void NAME(crowd_task)(const gc_job *job, const NAME(conv_tensors) * c) {
  const gc_pass *p = job->shared;
  const gc_conv2d *s = &p->s;
  const gc_sweep *sweep = gc_pass_sweeps(job->shared);
  const int64_t block = job->task % p->blocks;
  const NAME(bunch) b = NAME(bunch_of)(job, p, job->task / p->blocks);
  const int64_t positions = sweep->row.outputs * sweep->column.outputs;
  const int64_t apart = s->groups * p->filters * positions;
  const REAL *const weight =
      (const REAL *)gc_pass_weights(job->shared, p) + b.group * s->oc * s->depth;
  for (int64_t i = p->panels * block / p->blocks; i < p->panels * (block + 1) / p->blocks; i++) {
    const int64_t at = i * p->panel, m = gc_min(p->panel, p->filters - at);
    RESULT *const to = c->out + b.first * apart + (b.group * p->filters + at) * positions;
    NAME(crowd_panel)(sweep, b.copy, b.images, weight + at * sweep->depth, m, at,
                      c->bias ? c->bias + b.group * p->filters : NULL, job->own);
    NAME(put_crowd)(sweep, job->own, m, b.images, to, apart);
    for (int64_t j = 0; j < b.images; j++)
      NAME(end_rows)(c, to + j * apart, m * positions, 1, m * positions);
  }
}

#endif
