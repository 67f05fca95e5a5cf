/* conv2d_weight.h -- the gradient of a convolution's weights. */
#ifndef GC_CONV2D_WEIGHT_H
#define GC_CONV2D_WEIGHT_H

#include "../kernel.h"
#include "../matmul/gemm_pack.h"
#include "../matmul/gemm_tile.h"
#include "../type.h"
#include "conv2d_copy.h"
#include "conv2d_plan.h"
#include "conv2d_shape.h"
#include "conv2d_tile.h"

enum {
  GC_CONV2D_MAX_RUNS = 16,
  GC_CONV2D_PARTIAL = 1 << 21, /* bytes of all runs together */
  GC_CONV2D_BATCH = 1 << 18,   /* bytes that the images of a batch take */
  GC_CONV2D_BLOCK = 9 << 14,   /* bytes of sums that stay in the second cache */
  GC_CONV2D_WIDTH = 128,       /* filters of such a block */
  GC_CONV2D_CHAINS = 64,       /* chains of a tile, one after the other */
  GC_CONV2D_ADDED = 64         /* weights of each filter that a task of phase 1 adds up */
};

/* How the images are cut. A run is summed up by itself; of its images `batch` at a time, `chunk`
 * rows of each, are one chain of sums in registers. A task sums up a block of a run: some channels
 * by some filters, which stay in the cache while all images pass. */
typedef struct {
  gc_conv2d s;
  gc_sweep sweep; /* of a block's channels; its chunk is what a copy holds */
  int64_t runs, batch, chunk;
  int64_t filters;         /* rounded up to whole vectors */
  int64_t channels, width; /* of a block */
  int64_t down, across;    /* blocks of a group: of channels, of filters */
  int64_t images;          /* that are copied at a time */
  int64_t elements;        /* of a copy, in whole vectors ... */
  int64_t masks;           /* ... and of its masks */
  int64_t tile;            /* rows that it has at most */
  bool narrow;             /* columns of outputs that meet padding are left out too */
} gc_weight_pass;

/* Rows of the matrix of windows that tiles may share. Tiles of one row tap leave out rows of
 * outputs, tiles of one tap columns too; tiles of few rows would cost more than that. */
static inline int64_t gc_weight_whole(const gc_weight_pass *p, int64_t channels) {
  const int64_t row = p->s.c * p->s.kw;
  return p->narrow ? channels : (4 * row < 3 * p->tile ? p->s.kh : 1) * channels * p->s.kw;
}

/* Where the row of a tap and a channel lies in a block of so many. */
static inline int64_t gc_weight_row(const gc_weight_pass *p, int64_t channels, int64_t tap,
                                    int64_t channel) {
  const int64_t kw = p->s.kw;
  return p->narrow ? tap * channels + channel : (tap / kw * channels + channel) * kw + tap % kw;
}

/* Blocks that the second cache holds, where a group's sums are four times as much, or twice as much
 * and few tasks would have them. */
static inline void gc_weight_cut(gc_weight_pass *p) {
  const gc_conv2d *s = &p->s;
  const int64_t window = s->kh * s->kw;
  p->channels = s->c, p->width = p->filters, p->down = p->across = 1;
  const int64_t sums = s->depth * p->filters * s->size;
  if (sums <= (p->runs * s->groups < 4 ? 2 : 4) * GC_CONV2D_BLOCK || 4 * s->c * s->kw < 3 * p->tile)
    return;
  p->across = gc_ceil_div(p->filters, GC_CONV2D_WIDTH);
  p->width = gc_whole(gc_ceil_div(p->filters, p->across), 2 * s->lanes);
  p->across = gc_ceil_div(p->filters, p->width);
  const int64_t rows = GC_CONV2D_BLOCK / (p->width * s->size);
  int64_t most = gc_max(rows / window, gc_ceil_div(p->tile, s->kw));
  if (p->narrow)
    most = gc_max(p->tile, (most + p->tile / 2) / p->tile * p->tile);
  p->channels = gc_ceil_div(s->c, gc_ceil_div(s->c, most));
  p->down = gc_ceil_div(s->c, p->channels);
}

/* Elements that an image takes, its gradient too, where `rows` of its rows are copied. */
static inline int64_t gc_weight_image(gc_weight_pass *p, int64_t rows) {
  gc_sweep_layout(&p->sweep, rows, p->s.lanes);
  p->elements = gc_sweep_elements(&p->sweep, p->s.lanes);
  p->masks = gc_sweep_masks(&p->sweep, p->s.lanes);
  return p->elements + rows * p->s.ow * gc_min(p->width, p->filters);
}

/* Of a block that holds less than a group's sums, as many images are copied as fit, or rows. */
static inline void gc_weight_copies(gc_weight_pass *p) {
  const gc_conv2d *s = &p->s;
  const int64_t most = GC_CONV2D_BATCH / s->size;
  int64_t chunks = gc_ceil_div(s->oh, gc_max(1, p->chunk));
  chunks = gc_max(1, gc_min(GC_CONV2D_CHAINS, chunks));
  p->images = p->batch;
  p->sweep.channels = p->channels;
  while (gc_weight_image(p, gc_min(s->oh, chunks * p->chunk)) > most && chunks > 1)
    chunks = gc_ceil_div(chunks, 2);
  if (p->down * p->across == 1 || chunks * p->chunk < s->oh)
    return;
  const int64_t fit = most / gc_weight_image(p, s->oh) / p->batch;
  p->images *= gc_max(1, gc_min(gc_min(fit, GC_CONV2D_CHAINS / chunks),
                                gc_ceil_div(s->images, p->runs * p->batch)));
}

static inline gc_weight_pass gc_weight_pass_of(const gc_conv2d *s, int64_t tile) {
  gc_weight_pass p = {.s = *s, .sweep = gc_sweep_forward(s), .tile = tile};
  p.filters = gc_whole(s->oc, s->lanes);
  const int64_t bytes = s->groups * s->depth * p.filters * s->size;
  p.runs = GC_CONV2D_MAX_RUNS;
  while (p.runs > 1 && p.runs * bytes > GC_CONV2D_PARTIAL)
    p.runs /= 2;
  p.runs = gc_max(1, gc_min(p.runs, s->images));
  p.width = p.filters;
  p.chunk = gc_sweep_chunk(&p.sweep, s);
  const int64_t image = gc_weight_image(&p, p.chunk) * s->size;
  p.batch = gc_max(1, gc_min(GC_CONV2D_BATCH / image, gc_ceil_div(s->images, p.runs)));
  p.batch = p.chunk < s->oh ? 1 : p.batch;
  const gc_inside left = gc_outputs_inside(&p.sweep.column, (gc_inside){0, 1}, 0, s->ow);
  const gc_inside right =
      gc_outputs_inside(&p.sweep.column, (gc_inside){s->kw - 1, s->kw}, 0, s->ow);
  p.narrow = s->ow <= GC_CONV2D_NARROW && s->c >= 2 * tile && (left.from > 0 || right.to < s->ow);
  gc_weight_cut(&p);
  p.images = p.batch;
  if (p.down * p.across > 1)
    gc_weight_copies(&p);
  return p;
}

/* A block of sums: its rows are those of the matrix of windows that belong to its channels. */
typedef struct {
  int64_t run, group, channel, filter; /* the first ones */
  int64_t channels, filters, width;    /* width: filters in whole vectors */
  int64_t at;                          /* of its sums among all */
} gc_weight_block;

static inline gc_weight_block gc_weight_block_of(const gc_weight_pass *p, int64_t number) {
  const gc_conv2d *s = &p->s;
  const int64_t column = number / p->down % p->across, matrix = number / p->down / p->across;
  gc_weight_block b = {.run = matrix / s->groups, .group = matrix % s->groups};
  b.channel = number % p->down * p->channels, b.filter = column * p->width;
  b.channels = gc_min(p->channels, s->c - b.channel);
  b.filters = gc_min(p->width, s->oc - b.filter);
  b.width = gc_whole(b.filters, s->lanes);
  b.at = matrix * s->depth * p->filters + b.filter * s->depth + b.channel * s->kh * s->kw * b.width;
  return b;
}

static inline int64_t gc_weight_added(const gc_weight_pass *p) {
  return gc_ceil_div(p->channels * p->s.kh * p->s.kw, GC_CONV2D_ADDED);
}

/* ---- grad_weight^T = the sum over images of windows grad^T. Phase 0 sums over each of a fixed
 * number of runs of images, phase 1 adds those up in order ---- */

static inline int NAME(plan_weight_pass)(const gc_conv2d *s, gc_plan *plan) {
  const gc_weight_pass p = gc_weight_pass_of(s, GC_CONV2D_ROWS);
  const int64_t blocks = s->groups * p.down * p.across;
  const int64_t sums = p.channels * s->kh * s->kw * p.width;
  plan->phases = p.runs > 1 ? 2 : 1;
  plan->tasks[0] = p.runs * blocks;
  plan->tasks[1] = blocks * gc_weight_added(&p);
  plan->shared_bytes = p.runs > 1 ? p.runs * s->groups * s->depth * p.filters * s->size : 0;
  plan->worker_bytes = s->depth * 8 + 64 +
                       (p.masks + p.images * (p.elements + p.sweep.chunk * s->ow * p.width) +
                        (p.runs > 1 ? 0 : sums)) *
                           s->size;
  return GC_OK;
}

/* `count` positions of the gradient of all filters into panels of two vectors of filters (or one),
 * in which position follows position; a panel holds `positions`, and these are those from `first`
 * on. */
static void NAME(turn_filters)(const REAL *grad, int64_t ld, int64_t filters, int64_t count,
                               int64_t positions, int64_t first, REAL *to) {
  for (int64_t i = 0; i < filters; i += LANES) {
    const int64_t start = i / (2 * LANES) * (2 * LANES), n = gc_min(LANES, filters - i);
    const int64_t width = filters - start > LANES ? 2 * LANES : LANES;
    REAL *at = to + start * positions + first * width + (i - start);
    int64_t p = 0;
    for (; n == LANES && p + LANES <= count; p += LANES, at += LANES * width)
      NAME(transpose_square)(grad + i * ld + p, ld, at, width);
    for (; p < count; p++, at += width)
      for (int64_t j = 0; j < LANES; j++)
        at[j] = j < n ? grad[(i + j) * ld + p] : 0;
  }
}

/* The chains of `images` copies, `rows` rows of outputs from row `first` on, at some row taps; of
 * each row the columns `across`. */
static int64_t NAME(find_chains)(const gc_weight_pass *p, gc_inside taps, gc_inside across,
                                 int64_t images, int64_t first, int64_t rows, bool add,
                                 NAME(stretch) * to) {
  const int64_t line = p->sweep.columns.extent, width = p->s.ow;
  int64_t count = 0;
  for (int64_t image = 0; image < images; image += p->batch)
    for (int64_t row = 0; row < rows; row += p->chunk, count++) {
      const gc_inside inside =
          gc_outputs_inside(&p->sweep.row, taps, first + row, gc_min(p->chunk, rows - row));
      NAME(stretch) *const chain = &to[count];
      *chain = (NAME(stretch)){.image = p->elements, .positions = rows * width, .line = line};
      chain->x = image * p->elements + (row + inside.from) * line + across.from;
      chain->grad = (image * rows + row + inside.from) * width + across.from;
      chain->images = gc_min(p->batch, images - image);
      chain->lines = inside.to - inside.from, chain->n = across.to - across.from;
      chain->skip = width - chain->n;
      chain->add = add || count > 0;
      if (line == width && chain->n == width)
        chain->n *= chain->lines, chain->lines = 1;
    }
  return count;
}

/* Adds what `images` copies, `rows` rows of outputs from row `first` on, give to a block's sums. */
static void NAME(sum_windows)(const gc_weight_pass *p, const gc_weight_block *b,
                              const int64_t *offset, int64_t images, int64_t first, int64_t rows,
                              const REAL *copy, const REAL *grad, bool add, REAL *sum) {
  const gc_conv2d *s = &p->s;
  const int64_t positions = rows * s->ow, depth = b->channels * s->kh * s->kw;
  const int64_t row = b->channels * s->kw, whole = gc_weight_whole(p, b->channels);
  const int64_t step = gc_ceil_div(whole, gc_ceil_div(whole, p->tile)); /* rows of a tile */
  NAME(stretch) chains[GC_CONV2D_CHAINS];
  for (int64_t k = 0, n = 0; k < depth; k += n) {
    n = gc_min(step, whole - k % whole);
    const gc_inside taps = {k / row, (k + n - 1) / row + 1};
    const gc_inside tap = {k / whole % s->kw, 1 + k / whole % s->kw};
    const gc_inside across =
        p->narrow ? gc_outputs_inside(&p->sweep.column, tap, 0, s->ow) : (gc_inside){0, s->ow};
    const int64_t count = NAME(find_chains)(p, taps, across, images, first, rows, add, chains);
    for (int64_t i = 0; i < b->width; i += 2 * LANES) {
      const int64_t vectors = b->width - i > LANES ? 2 : 1;
      NAME(taps_fn) *const even = NAME(even_taps)[vectors - 1][n - 1];
      NAME(taps_fn) *const sum_up = p->narrow ? even : NAME(taps)[vectors - 1][n - 1];
      for (int64_t j = 0; j < count; j++)
        sum_up(&chains[j], p->narrow ? copy + offset[k] : copy,
               p->narrow ? &p->sweep.plane : offset + k, grad + i * images * positions,
               sum + k * b->width + i, b->width);
    }
  }
}

/* n weights of each of some filters, which stand in the columns of `rows`. */
static void NAME(put_weights)(const REAL *rows, int64_t n, int64_t filters, RESULT *to,
                              int64_t depth) {
#ifdef GC_PAIRS
  _Alignas(GC_VECTOR_BYTES) REAL turned[GC_CONV2D_ADDED * (GC_VECTOR_BYTES / sizeof(REAL))];
  NAME(transpose)(rows, LANES, n, filters, turned, GC_CONV2D_ADDED);
  for (int64_t i = 0; i < filters; i++)
    for (int64_t k = 0; k < n; k += LANES)
      NAME(put_results)(*(const NAME(vec) *)(turned + i * GC_CONV2D_ADDED + k),
                        gc_min(LANES, n - k), to + i * depth + k);
#else
  NAME(transpose)(rows, LANES, n, filters, to, depth);
#endif
}

/* The sums of all runs, which lie at `sums`, of some of a block's weights, the same of all its
 * filters. */
static void NAME(add_runs)(const gc_weight_pass *p, const gc_weight_block *b, int64_t from,
                           const REAL *sums, RESULT *out) {
  const gc_conv2d *s = &p->s;
  const int64_t window = s->kh * s->kw, next = s->groups * s->depth * p->filters;
  const int64_t n = gc_min(GC_CONV2D_ADDED, b->channels * window - from);
  _Alignas(GC_VECTOR_BYTES) REAL rows[GC_CONV2D_ADDED * (GC_VECTOR_BYTES / sizeof(REAL))];
  out += (b->group * s->oc + b->filter) * s->depth + b->channel * window + from;
  int64_t row[GC_CONV2D_ADDED];
  for (int64_t k = 0; k < n; k++)
    row[k] = b->width * gc_weight_row(p, b->channels, (from + k) % window, (from + k) / window);
  for (int64_t i = 0; n > 0 && i < b->filters; i += LANES) {
    for (int64_t k = 0; k < n; k++) {
      const REAL *part = sums + row[k] + i;
      double sum[GC_VECTOR_BYTES / sizeof(REAL)] = {0};
      for (int64_t run = 0; run < p->runs; run++, part += next)
        for (int64_t j = 0; j < LANES; j++)
          sum[j] += (double)part[j];
      for (int64_t j = 0; j < LANES; j++)
        rows[k * LANES + j] = (REAL)sum[j];
    }
    NAME(put_weights)(rows, n, gc_min(LANES, b->filters - i), out + i * s->depth, s->depth);
  }
}

static void NAME(sum_block)(const gc_job *job, const gc_weight_pass *p, const REAL *grad,
                            const REAL *image, RESULT *out) {
  const gc_conv2d *s = &p->s;
  const gc_weight_block b = gc_weight_block_of(p, job->task);
  const int64_t last = s->images * (b.run + 1) / p->runs, positions = s->oh * s->ow;
  const int64_t window = s->kh * s->kw;
  int64_t *const offset = job->own;
  REAL *const copy = (REAL *)((char *)job->own + (s->depth * 8 + 63) / 64 * 64);
  LANE_TYPE *const masks = (LANE_TYPE *)(copy + p->images * p->elements);
  REAL *const turned = copy + p->images * p->elements + p->masks;
  REAL *const sum = p->runs > 1 ? (REAL *)job->shared + b.at
                                : turned + p->images * p->sweep.chunk * s->ow * p->width;
  gc_sweep sweep = p->sweep;
  bool add = false;
  sweep.channels = b.channels;
  if (!p->narrow)
    gc_sweep_offsets(&sweep, offset);
  for (int64_t tap = 0; p->narrow && tap < window; tap++) {
    const int64_t at = gc_sweep_offset(&sweep, tap / s->kw, 0, tap % s->kw);
    for (int64_t c = 0; c < b.channels; c++)
      offset[tap * b.channels + c] = at + c * sweep.plane;
  }
  for (int64_t n = s->images * b.run / p->runs; positions && n < last; n += p->images) {
    const int64_t images = gc_min(p->images, last - n);
    for (int64_t first = 0; first < s->oh; first += sweep.chunk, add = true) {
      const int64_t rows = gc_min(sweep.chunk, s->oh - first), count = rows * s->ow;
      for (int64_t i = 0; i < images; i++) {
        const int64_t plane = (n + i) * s->groups + b.group;
        NAME(copy_source)(&sweep, image + (plane * s->c + b.channel) * s->h * s->w, first, rows,
                          copy + i * p->elements, masks);
        NAME(turn_filters)(grad + (plane * s->oc + b.filter) * positions + first * s->ow, positions,
                           b.filters, count, images * count, i * count, turned);
      }
      NAME(sum_windows)(p, &b, offset, images, first, rows, copy, turned, add, sum);
    }
  }
  if (!add)
    memset(sum, 0, (size_t)(b.channels * window * b.width) * sizeof(REAL));
  for (int64_t k = 0; p->runs == 1 && k < b.channels * window; k += GC_CONV2D_ADDED)
    NAME(add_runs)(p, &b, k, sum, out);
}

/* A task of the gradient of the weights of a convolution of shape s. */
static void NAME(run_weight_pass)(const gc_job *job, const gc_conv2d *s, const REAL *grad,
                                  const REAL *image, RESULT *out) {
  const gc_weight_pass p = gc_weight_pass_of(s, GC_CONV2D_ROWS);
  if (job->phase == 0) {
    NAME(sum_block)(job, &p, grad, image, out);
    return;
  }
  const int64_t parts = gc_weight_added(&p), from = job->task % parts * GC_CONV2D_ADDED;
  const gc_weight_block b = gc_weight_block_of(&p, job->task / parts);
  NAME(add_runs)(&p, &b, from, (const REAL *)job->shared + b.at, out);
}

#endif
