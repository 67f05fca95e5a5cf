/* conv2d_pass.h -- a convolution, or the gradient of its image, as products of a matrix of filters
 * with a matrix of windows that is read from a padded copy of the image.
 *
 * Phase 0 prepares what all tasks read: the sweeps, the offsets of the rows of their matrix of
 * windows, and the weights in panels, step after step. */
#ifndef GC_CONV2D_PASS_H
#define GC_CONV2D_PASS_H

#include "../kernel.h"
#include "../matmul/gemm_pack.h"
#include "../matmul/gemm_tile.h"
#include "../type.h"
#include "conv2d_copy.h"
#include "conv2d_crowd.h"
#include "conv2d_pack.h"
#include "conv2d_plan.h"
#include "conv2d_shape.h"
#include "conv2d_tile.h"

/* ---- phase 0 ---- */

static void NAME(prepare)(const gc_job *job, const gc_pass *p, const REAL *source,
                          const REAL *weight) {
  if (job->task >= p->packs) {
    NAME(prepare_crowd)(job, p, source);
    return;
  }
  const int64_t panels = p->s.groups * p->panels;
  const int64_t from = panels * job->task / p->packs, to = panels * (job->task + 1) / p->packs;
  const int64_t group_size = p->s.oc * p->s.depth;
  REAL *const packed = gc_pass_weights(job->shared, p);
  int64_t *const offsets = gc_pass_offsets(job->shared, p), before = 0;
  if (job->task == 0)
    *(gc_pass *)job->shared = *p;
  for (int64_t i = 0; i < p->sweeps; i++) {
    gc_sweep sweep = gc_pass_sweep(&p->s, p->back, i);
    gc_sweep_layout(&sweep, p->chunk, p->s.lanes);
    sweep.offsets = before;
    if (job->task == 0) {
      gc_pass_sweeps(job->shared)[i] = sweep;
      gc_sweep_offsets(&sweep, offsets + before);
    }
    for (int64_t group = from / p->panels; group * p->panels < to; group++)
      NAME(pack_filters)(p, &sweep, weight + group * group_size,
                         gc_max(0, from - group * p->panels),
                         gc_min(p->panels, to - group * p->panels),
                         packed + group * group_size + before * p->filters);
    before += sweep.depth;
  }
}

/* ---- phase 1 ---- */

/* `rows` rows of outputs from row `top` on, from what the copy holds; out: of the first filter,
 * `ld` apart. */
static void NAME(run_sweep)(const gc_pass *p, const gc_sweep *s, const int64_t *offset,
                            const REAL *weight, const REAL *bias, const REAL *copy, int64_t top,
                            int64_t rows, RESULT *out, int64_t ld) {
  const int64_t width = s->column.outputs, stride = s->columns.extent, count = rows * width;
  const int64_t depth = s->channels * s->column.taps; /* of a row tap */
  NAME(spot) spot = {.ld = ld, .n = gc_min(LANES, count)};
  for (int64_t at = 0; at < count; at += 2 * LANES) {
    const int vectors = count - at > LANES ? 2 : 1;
    for (int j = 0; j < vectors; j++) {
      /* The last vector ends with the last output: what it shares with the one before is the same.
       */
      const int64_t first = gc_max(0, gc_min(at + j * LANES, count - LANES));
      spot.from[j] = copy + (stride == width ? first : first / width * stride + first % width);
      spot.to[j] = out + first;
    }
    const int64_t begin = gc_max(0, gc_min(at, count - LANES));
    const int64_t end = gc_min(at + vectors * LANES, count) - 1;
    const gc_inside taps = gc_taps_inside(&s->row, top + begin / width, top + end / width);
    spot.depth = (taps.to - taps.from) * depth;
    spot.offset = offset + taps.from * depth;
    for (int64_t i = 0; i < p->filters; i += p->panel) {
      const int64_t m = gc_min(p->panel, p->filters - i);
      NAME(spots)
      [vectors - 1][m - 1](&spot, weight + i *s->depth + taps.from *depth *m, i, bias);
    }
  }
}

/* `rows` rows of plane c of the image, `apart` elements apart, from the results of `phases` sweeps,
 * `next` elements apart: their elements in turn. */
static void NAME(interleave)(const RESULT *results, int64_t c, int64_t next, int64_t phases,
                             int64_t stride, int64_t rows, int64_t width, RESULT *to,
                             int64_t apart) {
#ifdef GC_PAIRS
  if (phases == 2 && stride == 2 && width % 2 == 0) {
    const RESULT *even = results + c * rows * width / 2, *odd = even + next;
    for (int64_t i = 0; i < rows; i++, even += width / 2, odd += width / 2)
      for (int64_t j = 0; j < width / 2; j++) {
        const uint32_t both = even[j] | (uint32_t)odd[j] << 16;
        memcpy(to + i * apart + 2 * j, &both, sizeof both);
      }
    return;
  }
#else
  if (phases == 2 && stride == 2 && width % LANES == 0 && rows % 2 == 0) {
    /* A vector of each makes two of the image, each within a row. */
    const REAL *const even = results + c * rows * width / 2, *const odd = even + next;
    for (int64_t at = 0, row = 0, column = 0; at < rows * width / 2; at += LANES) {
      const NAME(vec) a = *(const NAME(loose) *)(even + at);
      const NAME(vec) b = *(const NAME(loose) *)(odd + at);
      const NAME(vec) both[2] = {PICK(a, b, LOW), PICK(a, b, HIGH)};
      GC_UNROLL for (int j = 0; j < 2; j++) {
        *(NAME(loose) *)(to + row * apart + column) = both[j];
        column += LANES;
        if (column == width)
          column = 0, row++;
      }
    }
    return;
  }
#endif
  for (int64_t q = 0; q < phases; q++) {
    const int64_t n = gc_ceil_div(width - q, stride);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < n; j++)
        to[i * apart + q + j * stride] = results[q * next + (c * rows + i) * n + j];
  }
}

/* The sweeps of one phase of rows, into `waiting`, and from there into the image. */
static void NAME(grad_rows)(const gc_pass *p, void *shared, int64_t down, int64_t first,
                            const REAL *grad, const REAL *weight, REAL *copy, RESULT *image) {
  const gc_conv2d *s = &p->s;
  const int64_t across = gc_phases_across(s);
  const gc_sweep *sweeps = gc_pass_sweeps(shared) + down * across;
  const int64_t rows = gc_min(p->chunk, sweeps->row.outputs - first);
  LANE_TYPE *const masks = (LANE_TYPE *)(copy + p->elements);
  RESULT *const waiting = (RESULT *)(copy + p->elements + p->masks);
  for (int64_t q = 0; rows > 0 && q < across; q++) {
    const gc_sweep *sweep = sweeps + q;
    NAME(copy_source)(sweep, grad, first, rows, copy, masks);
    NAME(run_sweep)(p, sweep, gc_pass_offsets(shared, p) + sweep->offsets,
                    weight + sweep->offsets * p->filters, NULL, copy, first, rows,
                    p->results ? waiting + q * p->results : image + first * s->w,
                    p->results ? rows * sweep->column.outputs : s->h * s->w);
  }
  for (int64_t c = 0; p->results && rows > 0 && c < s->c; c++)
    NAME(interleave)(waiting, c, p->results, across, s->sw, rows, s->w,
                     image + (c * s->h + down + first * s->sh) * s->w, s->sh * s->w);
}

/* ---- a unit: a chunk of rows of one plane of outputs, or of the image ---- */

static void NAME(forward_unit)(const gc_job *job, const NAME(conv_tensors) * c, int64_t unit) {
  const gc_pass *p = job->shared;
  const gc_conv2d *s = &p->s;
  const gc_sweep *sweep = gc_pass_sweeps(job->shared);
  const REAL *weight = gc_pass_weights(job->shared, p);
  const int64_t positions = s->oh * s->ow, plane = unit / p->chunks, group = plane % s->groups;
  const int64_t first = unit % p->chunks * p->chunk, rows = gc_min(p->chunk, s->oh - first);
  RESULT *const to = c->out + plane * s->oc * positions + first * s->ow;
  REAL *const copy = job->own;
  NAME(copy_source)(sweep, c->source + plane * s->c * s->h * s->w, first, rows, copy,
                    (LANE_TYPE *)(copy + p->elements));
  NAME(run_sweep)(p, sweep, gc_pass_offsets(job->shared, p), weight + group * s->oc * s->depth,
                  c->bias ? c->bias + group * s->oc : NULL, copy, first, rows, to, positions);
  NAME(end_rows)(c, to, positions, s->oc, rows * s->ow);
}

static void NAME(back_unit)(const gc_job *job, const NAME(conv_tensors) * c, int64_t unit) {
  const gc_pass *p = job->shared;
  const gc_conv2d *s = &p->s;
  const REAL *weight = gc_pass_weights(job->shared, p);
  const int64_t plane = unit / p->chunks, first = unit % p->chunks * p->chunk;
  for (int64_t down = 0; down < gc_phases_down(s); down++)
    NAME(grad_rows)(p, job->shared, down, first, c->source + plane * s->oc * s->oh * s->ow,
                    weight + plane % s->groups * s->oc * s->depth, job->own,
                    c->out + plane * s->c * s->h * s->w);
}

/* A task of a convolution of shape s, or, where `back`, of the gradient of its image. */
static void NAME(run_pass)(const gc_job *job, const gc_conv2d *s, bool back,
                           const NAME(conv_tensors) * c) {
  if (job->phase == 0) {
    const gc_pass p = gc_pass_of(s, back, GC_CONV2D_ROWS);
    NAME(prepare)(job, &p, c->source, c->weight);
    return;
  }
  const gc_pass *p = job->shared;
  if (p->bunches) {
    NAME(crowd_task)(job, c);
    return;
  }
  const int64_t end = gc_min(p->units, (job->task + 1) * p->each);
  for (int64_t u = job->task * p->each; u < end; u++)
    (back ? NAME(back_unit) : NAME(forward_unit))(job, c, u);
}

#endif
