/* walk.h -- walks a broadcast or strided shape in row-major order, in spans along the last
 * dimension. Neighbouring dimensions that lie one behind the other in all operands are merged
 * first, so that contiguous tensors of any rank are one long span. */
#ifndef GC_WALK_H
#define GC_WALK_H

#include "kernel.h"

enum { GC_WALK_MAX = 5, GC_BLOCK = 16384, GC_ROWS = 64 /* elements, or rows, of one task */ };

/* The block of elements that one task of a contiguous kernel does. */
#define BLOCK_OF(job, first, count)                                                                \
  const int64_t first = (job)->task * GC_BLOCK;                                                    \
  const int64_t count = gc_min(GC_BLOCK, gc_numel(&(job)->call->tensors[0]) - first)

typedef struct {
  int32_t operands, ndim;
  int64_t shape[GC_MAX_DIMS];
  int64_t stride[GC_WALK_MAX][GC_MAX_DIMS];
  int64_t at[GC_MAX_DIMS];     /* where the next span begins */
  int64_t offset[GC_WALK_MAX]; /* ... in each operand, in elements */
  int64_t left;                /* elements still to do */
} gc_walk;

static inline bool gc_walk_mergeable(const gc_walk *w, int32_t outer, const gc_tensor *const *t,
                                     int32_t inner) {
  for (int32_t k = 0; k < w->operands; k++)
    if (w->stride[k][outer] != t[k]->stride[inner] * t[k]->shape[inner])
      return false;
  return true;
}

/* All operands have the same shape; strides may be anything. */
static inline void gc_walk_begin(gc_walk *w, const gc_tensor *const *t, int32_t operands,
                                 int64_t first, int64_t count) {
  w->operands = operands;
  w->ndim = 0;
  for (int32_t d = 0; d < t[0]->ndim; d++) {
    if (t[0]->shape[d] == 1)
      continue;
    const bool merge = w->ndim > 0 && gc_walk_mergeable(w, w->ndim - 1, t, d);
    if (!merge)
      w->shape[w->ndim++] = 1;
    w->shape[w->ndim - 1] *= t[0]->shape[d];
    for (int32_t k = 0; k < operands; k++)
      w->stride[k][w->ndim - 1] = t[k]->stride[d];
  }
  if (w->ndim == 0) {
    w->shape[w->ndim++] = 1;
    for (int32_t k = 0; k < operands; k++)
      w->stride[k][0] = 0;
  }
  for (int32_t k = 0; k < operands; k++)
    w->offset[k] = 0;
  for (int32_t d = w->ndim - 1; d >= 0; d--) {
    w->at[d] = first % w->shape[d];
    first /= w->shape[d];
    for (int32_t k = 0; k < operands; k++)
      w->offset[k] += w->at[d] * w->stride[k][d];
  }
  w->left = count;
}

/* Length of the next span, 0 at the end; its elements start at w->offset[k], w->stride[k][last]. */
static inline int64_t gc_walk_span(const gc_walk *w) {
  return gc_min(w->left, w->shape[w->ndim - 1] - w->at[w->ndim - 1]);
}

static inline void gc_walk_advance(gc_walk *w, int64_t span) {
  int32_t d = w->ndim - 1;
  w->left -= span;
  w->at[d] += span;
  for (int32_t k = 0; k < w->operands; k++)
    w->offset[k] += span * w->stride[k][d];
  while (d > 0 && w->at[d] == w->shape[d]) {
    for (int32_t k = 0; k < w->operands; k++)
      w->offset[k] += w->stride[k][d - 1] - w->shape[d] * w->stride[k][d];
    w->at[d--] = 0;
    w->at[d]++;
  }
}

/* How many whole spans, rows of the last two dimensions, lie there one stride apart. */
static inline int64_t gc_walk_rows(const gc_walk *w, int64_t span) {
  const int32_t last = w->ndim - 1;
  if (last == 0 || span != w->shape[last])
    return 1;
  return gc_min(w->left / span, w->shape[last - 1] - w->at[last - 1]);
}

static inline void gc_walk_advance_rows(gc_walk *w, int64_t span, int64_t rows) {
  const int32_t d = w->ndim - 2;
  if (rows > 1) {
    w->left -= (rows - 1) * span;
    w->at[d] += rows - 1;
    for (int32_t k = 0; k < w->operands; k++)
      w->offset[k] += (rows - 1) * w->stride[k][d];
  }
  gc_walk_advance(w, span);
}

#endif
