/* norm_batch.h -- batch norm of (N, C, L): every channel over all N and L. A task is a tile of
 * channels and a chunk of samples; the sums of the chunks are put together in order. Where there
 * are enough channels, and none is large, the chunk is all samples: then a task that has summed up
 * its channels goes on with them while they are in the cache. A vector of no elements is one left
 * out.
 */
#ifndef GC_NORM_BATCH_H
#define GC_NORM_BATCH_H

#include "../elementwise/halves.h"
#include "../elementwise/operands.h"
#include "../kernel.h"
#include "../lines.h"
#include "../type.h"
#include "../walk.h"
#include "norm_batch_sums.h"

enum { GC_WHOLE = 8 /* channels are enough */, GC_CHANNEL = 1 << 16 /* elements are not large */ };

typedef struct {
  int64_t N, C, L;
  int64_t width, tiles;  /* channels of a tile */
  int64_t chunk, chunks; /* samples of a chunk */
} gc_channels;

static inline gc_channels gc_channels_of(const gc_tensor *x) {
  gc_channels c = {.N = x->shape[0], .C = x->shape[1], .L = x->shape[2]};
  if (c.L == 0)
    c.N = 0; /* nothing in any of the samples, however many */
  c.width = gc_max(1, gc_min(gc_min(c.C, GC_WIDTH), GC_BLOCK / gc_max(1, c.L)));
  c.tiles = gc_ceil_div(c.C, c.width);
  c.chunk = gc_max(GC_BLOCK / (c.width * gc_max(1, c.L)), gc_ceil_div(c.N, GC_MANY));
  if (c.C >= GC_WHOLE && c.N <= GC_CHANNEL / gc_max(1, c.L)) {
    c.width = gc_max(1, gc_min(gc_min(c.C, GC_WIDTH), GC_BLOCK / gc_max(1, c.N * c.L)));
    c.tiles = gc_ceil_div(c.C, c.width);
    c.chunk = c.N;
  }
  c.chunk = gc_max(1, c.chunk);
  c.chunks = gc_max(1, gc_ceil_div(c.N, c.chunk));
  return c;
}

/* One task: samples from..to - 1 of `width` channels that begin at `first`. */
typedef struct {
  int64_t part, from, to, first, width;
} gc_tile;

static inline gc_tile gc_tile_of(const gc_channels *c, int64_t task) {
  gc_tile tile = {.part = task / c->tiles, .first = task % c->tiles * c->width};
  tile.from = tile.part * c->chunk;
  tile.to = gc_min(c->N, tile.from + c->chunk);
  tile.width = gc_min(c->width, c->C - tile.first);
  return tile;
}

static inline double gc_channel_total(const double *parts, const gc_channels *c, int64_t channel) {
  double total = 0;
  for (int64_t k = 0; k < c->chunks; k++)
    total += parts[k * c->C + channel];
  return total;
}

/* Of a tile: the sums of b and of b * (x - shift), b being grad or, where `own`, x - shift. */
static inline __attribute__((always_inline)) void
NAME(tile_sums)(const bool own, const gc_channels *c, const gc_tile *tile, NAME(numbers) x,
                NAME(numbers) grad, const REAL *shift, double *plain, double *product) {
  const int64_t at = (tile->from * c->C + tile->first) * c->L, apart = c->C * c->L;
  const int64_t rows = gc_max(0, tile->to - tile->from);
  if (c->L == 1)
    NAME(channels_sums)(own, x, grad, at, rows, apart, tile->width, shift, plain, product);
  else
    for (int64_t k = 0; k < tile->width; k++)
      if (x.half || grad.half)
        NAME(channel_sums)(own, true, x, grad, at + k * c->L, rows, apart, c->L, (double)shift[k],
                           plain + k, product + k);
      else
        NAME(channel_sums)(own, false, x, grad, at + k * c->L, rows, apart, c->L, (double)shift[k],
                           plain + k, product + k);
}

/* x, weight, bias -> y, mean, rstd, running_mean, running_var (the last two are read as well);
 * options: eps, momentum */
static int NAME(plan_batch_norm_train)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  const gc_channels c = gc_channels_of(&call->tensors[0]);
  plan->phases = c.chunks > 1 ? 2 : 1;
  plan->tasks[0] = plan->tasks[1] = c.tiles * c.chunks;
  plan->shared_bytes = (2 * c.chunks + 1) * c.C * (int64_t)sizeof(double);
  return GC_OK;
}

/* y = (x - mean) * scale + shift of n elements from number `at` on; `half` where x or y is. */
static inline __attribute__((always_inline)) void
NAME(normalise_line)(const bool half, NAME(numbers) x, NAME(numbers) y, int64_t at, int64_t n,
                     REAL mean, REAL scale, REAL shift) {
  REAL room[2][GC_HALVES];
  const int64_t block = half ? GC_HALVES : n;
  x.half &= half, y.half &= half;
  for (int64_t end = at + n, count; at < end; at += count) {
    count = gc_min(block, end - at);
    const REAL *from = NAME(read)(x, at, count, room[0]);
    REAL *to = NAME(place)(y, at, room[1]);
    GC_INDEPENDENT for (int64_t l = 0; l < count; l++) to[l] = (from[l] - mean) * scale + shift;
    NAME(write)(y, at, count, room[1]);
  }
}

/* The same of one element from each of n channels, n <= GC_WIDTH. */
static inline void NAME(normalise_sample)(NAME(numbers) x, NAME(numbers) y, int64_t at, int64_t n,
                                          const REAL *mean, const REAL *scale, const REAL *shift) {
  REAL room[2][GC_WIDTH];
  const REAL *from = NAME(read)(x, at, n, room[0]);
  REAL *to = NAME(place)(y, at, room[1]);
  GC_INDEPENDENT for (int64_t k = 0; k < n; k++) to[k] = (from[k] - mean[k]) * scale[k] + shift[k];
  NAME(write)(y, at, n, room[1]);
}

/* y = (x - mean) * rstd * weight + bias; the vectors begin at the tile's first channel. */
static void NAME(normalise)(const gc_call *call, const gc_channels *c, const gc_tile *tile,
                            const double *mean, const double *rstd, int y_at) {
  const gc_tensor *t = call->tensors;
  const NAME(numbers) x = NAME(numbers_of)(&t[0]), y = NAME(numbers_of)(&t[y_at]);
  const bool half = x.half || y.half;
  REAL m[GC_WIDTH], scale[GC_WIDTH], shift[GC_WIDTH];
  for (int64_t k = 0; k < tile->width; k++) {
    const int64_t at = tile->first + k;
    m[k] = (REAL)mean[k];
    scale[k] = (REAL)(rstd[k] * (t[1].shape[0] ? (double)((const REAL *)gc_first(&t[1]))[at] : 1));
    shift[k] = t[2].shape[0] ? ((const REAL *)gc_first(&t[2]))[at] : 0;
  }
  for (int64_t i = tile->from; i < tile->to; i++) {
    const int64_t at = (i * c->C + tile->first) * c->L;
    if (c->L == 1)
      NAME(normalise_sample)(x, y, at, tile->width, m, scale, shift);
    for (int64_t k = 0; c->L > 1 && k < tile->width; k++)
      if (half)
        NAME(normalise_line)(true, x, y, at + k * c->L, c->L, m[k], scale[k], shift[k]);
      else
        NAME(normalise_line)(false, x, y, at + k * c->L, c->L, m[k], scale[k], shift[k]);
  }
}

/* running = (1 - momentum) * running + momentum * new; the variance as of a sample (n - 1). A batch
 * of nothing teaches nothing. */
static void NAME(keep_running)(const gc_call *call, int64_t at, double mean, double variance,
                               double n) {
  const gc_tensor *t = call->tensors;
  const double momentum = n > 0 ? call->options[1] : 0;
  if (momentum == 0)
    return;
  REAL *running_mean = (REAL *)gc_first(&t[6]), *running_var = (REAL *)gc_first(&t[7]);
  if (t[6].shape[0])
    running_mean[at] = (REAL)((1 - momentum) * (double)running_mean[at] + momentum * mean);
  if (t[7].shape[0])
    running_var[at] =
        (REAL)((1 - momentum) * (double)running_var[at] + momentum * (variance * n / (n - 1)));
}

/* What is taken off before numbers are summed and squared: their first, or 0 for the one that is
 * not finite. Then sums in double lose nothing, however far from 0 a channel lies. */
static void NAME(first_of_channels)(const gc_channels *c, const gc_tile *tile, NAME(numbers) x,
                                    REAL *shift) {
  for (int64_t k = 0; k < tile->width; k++) {
    REAL room;
    const REAL first = c->N ? *NAME(read)(x, (tile->first + k) * c->L, 1, &room) : 0;
    shift[k] = first - first == 0 ? first : 0;
  }
}

static void NAME(run_batch_norm_train)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_channels c = gc_channels_of(&t[0]);
  const gc_tile tile = gc_tile_of(&c, job->task);
  const NAME(numbers) x = NAME(numbers_of)(&t[0]);
  const double n = (double)(c.N * c.L);
  double *sums = (double *)job->shared, *squares = sums + c.chunks * c.C;
  REAL *const shift = (REAL *)(squares + c.chunks * c.C) + tile.first;
  double mean[GC_WIDTH], rstd[GC_WIDTH];
  if (job->phase == 0) {
    const int64_t at = tile.part * c.C + tile.first;
    REAL first[GC_WIDTH];
    NAME(first_of_channels)(&c, &tile, x, first);
    if (tile.part == 0)
      memcpy(shift, first, (size_t)tile.width * sizeof(REAL));
    NAME(tile_sums)(true, &c, &tile, x, x, first, sums + at, squares + at);
    if (c.chunks > 1)
      return;
  }
  for (int64_t k = 0; k < tile.width; k++) {
    const int64_t at = tile.first + k;
    const double sum = gc_channel_total(sums, &c, at), square = gc_channel_total(squares, &c, at);
    const double spread = (square - sum * sum / n) / n, variance = spread < 0 ? 0 : spread;
    mean[k] = (double)shift[k] + sum / n;
    rstd[k] = 1 / sqrt(variance + job->call->options[0]);
    if (tile.part == 0) {
      ((REAL *)gc_first(&t[4]))[at] = (REAL)mean[k];
      ((REAL *)gc_first(&t[5]))[at] = (REAL)rstd[k];
      NAME(keep_running)(job->call, at, mean[k], variance, n);
    }
  }
  NAME(normalise)(job->call, &c, &tile, mean, rstd, 3);
}

/* x, weight, bias, running_mean, running_var -> y, mean, rstd; options: eps */
static int NAME(plan_batch_norm_eval)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  const gc_channels c = gc_channels_of(&call->tensors[0]);
  return gc_plan_simple(plan, c.tiles * c.chunks);
}

static void NAME(run_batch_norm_eval)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_channels c = gc_channels_of(&t[0]);
  const gc_tile tile = gc_tile_of(&c, job->task);
  double mean[GC_WIDTH], rstd[GC_WIDTH];
  for (int64_t k = 0; k < tile.width; k++) {
    const int64_t at = tile.first + k;
    mean[k] = (double)((const REAL *)gc_first(&t[3]))[at];
    rstd[k] = 1 / sqrt((double)((const REAL *)gc_first(&t[4]))[at] + job->call->options[0]);
    if (tile.part == 0) {
      ((REAL *)gc_first(&t[6]))[at] = (REAL)mean[k];
      ((REAL *)gc_first(&t[7]))[at] = (REAL)rstd[k];
    }
  }
  NAME(normalise)(job->call, &c, &tile, mean, rstd, 5);
}

/* x, grad, mean, rstd, weight -> gradients of x, weight, bias; sizes[0]: 1 where mean and rstd
 * were those of the batch, and so depend on x */
static int NAME(plan_batch_norm_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  const gc_channels c = gc_channels_of(&call->tensors[0]);
  plan->phases = c.chunks > 1 ? 2 : 1;
  plan->tasks[0] = plan->tasks[1] = c.tiles * c.chunks;
  plan->shared_bytes = 2 * c.chunks * c.C * (int64_t)sizeof(double);
  return GC_OK;
}

/* sum[k] = sum of grad, dot[k] = sum of grad * (x - mean) * rstd */
static void NAME(grad_channels)(const gc_tensor *t, const gc_channels *c, const gc_tile *tile,
                                double *sum, double *dot) {
  const REAL *rstd = (const REAL *)gc_first(&t[3]) + tile->first;
  NAME(tile_sums)(false, c, tile, NAME(numbers_of)(&t[0]), NAME(numbers_of)(&t[1]),
                  (const REAL *)gc_first(&t[2]) + tile->first, sum, dot);
  for (int64_t k = 0; k < tile->width; k++)
    dot[k] *= (double)rstd[k];
}

/* What the gradients of each channel's elements are made of. */
typedef struct {
  NAME(numbers) x, grad, out;
  REAL mean[GC_WIDTH], back[GC_WIDTH], slope[GC_WIDTH], scale[GC_WIDTH];
} NAME(backward);

/* The gradient of n elements of x from number `at` on, which are of channel k. */
static inline __attribute__((always_inline)) void
NAME(backward_line)(const bool half, const NAME(backward) * b, int64_t k, int64_t at, int64_t n) {
  REAL room[3][GC_HALVES];
  NAME(numbers) x = b->x, grad = b->grad, out = b->out;
  x.half &= half, grad.half &= half, out.half &= half;
  const REAL mean = b->mean[k], back = b->back[k], slope = b->slope[k], scale = b->scale[k];
  const int64_t block = half ? GC_HALVES : n;
  for (int64_t end = at + n, count; at < end; at += count) {
    count = gc_min(block, end - at);
    const REAL *from = NAME(read)(x, at, count, room[0]);
    const REAL *g = NAME(read)(grad, at, count, room[1]);
    REAL *to = NAME(place)(out, at, room[2]);
    GC_INDEPENDENT for (int64_t l = 0; l < count; l++) to[l] =
        (g[l] - back - (from[l] - mean) * slope) * scale;
    NAME(write)(out, at, count, room[2]);
  }
}

/* The same of one element from each of n channels, n <= GC_WIDTH. */
static inline void NAME(backward_sample)(const NAME(backward) * b, int64_t at, int64_t n) {
  REAL room[3][GC_WIDTH];
  const REAL *from = NAME(read)(b->x, at, n, room[0]);
  const REAL *g = NAME(read)(b->grad, at, n, room[1]);
  REAL *to = NAME(place)(b->out, at, room[2]);
  GC_INDEPENDENT for (int64_t k = 0; k < n; k++) to[k] =
      (g[k] - b->back[k] - (from[k] - b->mean[k]) * b->slope[k]) * b->scale[k];
  NAME(write)(b->out, at, n, room[2]);
}

static void NAME(run_batch_norm_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_channels c = gc_channels_of(&t[0]);
  const gc_tile tile = gc_tile_of(&c, job->task);
  double *sums = (double *)job->shared, *dots = sums + c.chunks * c.C;
  if (job->phase == 0) {
    const int64_t at = tile.part * c.C + tile.first;
    NAME(grad_channels)(t, &c, &tile, sums + at, dots + at);
    if (c.chunks > 1)
      return;
  }
  const bool training = job->call->sizes[0] != 0;
  const double n = (double)(c.N * c.L);
  NAME(backward)
  b = {.x = NAME(numbers_of)(&t[0]),
       .grad = NAME(numbers_of)(&t[1]),
       .out = NAME(numbers_of)(&t[5])};
  const bool half = b.x.half || b.grad.half || b.out.half;
  for (int64_t k = 0; k < tile.width; k++) {
    const int64_t at = tile.first + k;
    const double sum = gc_channel_total(sums, &c, at), dot = gc_channel_total(dots, &c, at);
    const double rstd = (double)((const REAL *)gc_first(&t[3]))[at];
    const double weight = t[4].shape[0] ? (double)((const REAL *)gc_first(&t[4]))[at] : 1;
    b.mean[k] = ((const REAL *)gc_first(&t[2]))[at];
    b.back[k] = training ? (REAL)(sum / n) : 0;
    b.slope[k] = training ? (REAL)(dot / n * rstd) : 0;
    b.scale[k] = (REAL)(rstd * weight);
    if (tile.part == 0) {
      ((REAL *)gc_first(&t[6]))[at] = (REAL)dot;
      ((REAL *)gc_first(&t[7]))[at] = (REAL)sum;
    }
  }
  for (int64_t i = tile.from; i < tile.to; i++) {
    const int64_t at = (i * c.C + tile.first) * c.L;
    if (c.L == 1)
      NAME(backward_sample)(&b, at, tile.width);
    for (int64_t k = 0; c.L > 1 && k < tile.width; k++)
      if (half)
        NAME(backward_line)(true, &b, k, at + k * c.L, c.L);
      else
        NAME(backward_line)(false, &b, k, at + k * c.L, c.L);
  }
}

#endif
