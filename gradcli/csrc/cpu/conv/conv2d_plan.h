/* conv2d_plan.h -- how a convolution, or the gradient of its image, is cut into tasks: what those
 * of one call have in common, and what they multiply (conv2d_pass.h). */
#ifndef GC_CONV2D_PLAN_H
#define GC_CONV2D_PLAN_H

#include "../kernel.h"
#include "../matmul/gemm.h"
#include "../type.h"
#include "conv2d_shape.h"
#include "conv2d_tile.h"

enum {
  GC_CONV2D_WORK = 1 << 18,   /* products worth a task */
  GC_CONV2D_TASKS = 32,       /* enough to keep all threads busy */
  GC_CONV2D_PACKED = 1 << 14, /* weights worth a task of their own */
  GC_CONV2D_NARROW = 8,       /* columns of outputs where those that meet padding count */
  GC_CONV2D_LOW = 64,         /* rows of narrow pictures with their padding, at most */
  GC_CONV2D_BUNCH = 16,       /* images of narrow pictures that are done at a time, at most */
  GC_CONV2D_CROWD = 11 << 16  /* bytes of them that stay in the second cache */
};

/* What the tasks of one call have in common. A unit is a chunk of rows of one group of an image. */
typedef struct {
  gc_conv2d s;
  bool back;      /* the gradient of the image: from the output's to it, by several sweeps */
  int64_t sweeps; /* one for each phase of the stride */
  int64_t filters, panels, panel;
  int64_t chunk, chunks;
  int64_t units, each, tasks; /* units of a task */
  int64_t packs;              /* tasks of phase 0 */
  int64_t elements;           /* of the largest copy, in whole vectors ... */
  int64_t masks;              /* ... and of the masks of its bands */
  int64_t results;            /* of one sweep's results that wait for the others, or 0 */
  int64_t offsets;            /* of all sweeps */
  int64_t bunches;            /* of images that narrow pictures are done by, or 0 ... */
  int64_t blocks;             /* ... and of panels; a task has one of each */
  int64_t copy;               /* elements that a bunch takes */
} gc_pass;

static inline gc_sweep gc_pass_sweep(const gc_conv2d *s, bool back, int64_t i) {
  const int64_t across = back ? gc_phases_across(s) : 1;
  return back ? gc_sweep_back(s, i / across, i % across) : gc_sweep_forward(s);
}

static inline void gc_pass_tasks(gc_pass *p) {
  const gc_conv2d *s = &p->s;
  const double products = (double)p->chunk * (double)(p->back ? s->w : s->ow) * (double)s->oc *
                          (double)s->depth / (double)(p->back ? s->sw : 1);
  p->units = s->images * s->groups * p->chunks;
  p->each = products < 1 ? GC_CONV2D_WORK : 1 + (int64_t)(GC_CONV2D_WORK / products);
  p->each = gc_max(1, gc_min(p->each, p->units / GC_CONV2D_TASKS));
  p->tasks = gc_ceil_div(p->units, p->each);
  p->packs = gc_ceil_div(s->groups * s->oc * s->depth, GC_CONV2D_PACKED);
  p->packs = gc_max(1, gc_min(p->packs, s->groups * p->panels));
}

/* Rows of a column of a copy of narrow pictures. */
static inline int64_t gc_crowd_rows(const gc_sweep *s) {
  return s->row.outputs + gc_reach(&s->row);
}

/* Narrow pictures are done several images at a time (conv2d_crowd.h), as many as GC_CONV2D_CROWD
 * bytes hold, where those fill vectors. */
static inline void gc_pass_crowd(gc_pass *p) {
  const gc_conv2d *s = &p->s;
  const gc_sweep sweep = gc_pass_sweep(s, p->back, 0);
  if (p->sweeps > 1 || sweep.row.step > 1 || sweep.column.step > 1 || s->kw < 2 ||
      gc_min(sweep.channels, p->filters) < 16 || gc_crowd_rows(&sweep) > GC_CONV2D_LOW ||
      gc_max(sweep.column.outputs, sweep.column.length) > GC_CONV2D_NARROW)
    return;
  const int64_t image = sweep.channels * sweep.column.length * gc_crowd_rows(&sweep);
  const int64_t most = gc_min(GC_CONV2D_BUNCH, GC_CONV2D_CROWD / (image * s->size));
  const int64_t bunches = most ? gc_ceil_div(s->images, most) : s->images;
  const int64_t images = gc_ceil_div(s->images, bunches);
  if (s->images / bunches < 4 || s->images / bunches * sweep.row.outputs < s->lanes)
    return;
  p->bunches = bunches;
  p->blocks = gc_min(p->panels, gc_ceil_div(GC_CONV2D_TASKS, bunches * s->groups));
  p->tasks = bunches * s->groups * p->blocks;
  p->copy = gc_whole(image * images, s->lanes) + s->lanes;
  p->elements = p->masks = 0;
  p->results = p->panel * sweep.row.outputs * sweep.column.outputs * images + s->lanes;
}

/* The result is not empty. */
static inline gc_pass gc_pass_of(const gc_conv2d *s, bool back, int64_t tile) {
  gc_pass p = {.s = *s, .back = back, .sweeps = 1, .filters = back ? s->c : s->oc};
  if (back)
    p.sweeps = gc_phases_down(s) * gc_phases_across(s);
  p.panels = gc_ceil_div(p.filters, tile);
  p.panel = gc_ceil_div(p.filters, p.panels);
  int64_t outputs = 0, width = 0;
  for (int64_t i = 0; i < p.sweeps; i++) {
    const gc_sweep sweep = gc_pass_sweep(s, back, i);
    const int64_t chunk = gc_sweep_chunk(&sweep, s);
    p.chunk = i ? gc_min(p.chunk, chunk) : chunk;
    outputs = gc_max(outputs, sweep.row.outputs);
    width = gc_max(width, sweep.column.outputs);
    p.offsets += sweep.depth;
  }
  for (int64_t i = 0; i < p.sweeps; i++) {
    gc_sweep sweep = gc_pass_sweep(s, back, i);
    gc_sweep_layout(&sweep, p.chunk, s->lanes);
    p.elements = gc_max(p.elements, gc_sweep_elements(&sweep, s->lanes));
    p.masks = gc_max(p.masks, gc_sweep_masks(&sweep, s->lanes));
  }
  p.chunks = gc_ceil_div(outputs, p.chunk);
  p.results = p.sweeps > 1 ? p.filters * p.chunk * width : 0;
  gc_pass_tasks(&p);
  gc_pass_crowd(&p);
  return p;
}

/* Shared memory: the pass, its sweeps, their offsets, the weights of all groups. */
static inline gc_sweep *gc_pass_sweeps(void *shared) {
  return (gc_sweep *)((char *)shared + (sizeof(gc_pass) + 63) / 64 * 64);
}
static inline int64_t *gc_pass_offsets(void *shared, const gc_pass *p) {
  return (int64_t *)(gc_pass_sweeps(shared) + p->sweeps);
}
static inline void *gc_pass_weights(void *shared, const gc_pass *p) {
  return gc_pass_offsets(shared, p) + p->offsets;
}

static inline int gc_pass_plan(const gc_pass *p, gc_plan *plan) {
  const gc_conv2d *s = &p->s;
  const int64_t across = p->bunches ? 1 : p->back && p->results ? gc_phases_across(s) : 0;
  plan->phases = 2;
  plan->tasks[0] = p->packs + p->bunches * s->groups;
  plan->tasks[1] = p->tasks;
  plan->shared_bytes = (int64_t)sizeof(gc_pass) + 64 + p->sweeps * (int64_t)sizeof(gc_sweep) +
                       p->offsets * 8 +
                       s->groups * (s->oc * s->depth + p->bunches * p->copy) * s->size;
  plan->worker_bytes = (p->elements + p->masks + across * p->results) * s->size;
  return GC_OK;
}

/* What is multiplied, and where the results go. `bias` and `then` may be NULL. */
typedef struct {
  const REAL *source, *weight, *bias;
  RESULT *out;
  const NAME(then) * then;
} NAME(conv_tensors);

/* What is done to results that are still in the cache. */
static inline void NAME(end_rows)(const NAME(conv_tensors) * c, const RESULT *from, int64_t ld,
                                  int64_t rows, int64_t n) {
#ifdef GC_PAIRS
  (void)c, (void)from, (void)ld, (void)rows, (void)n;
#else
  NAME(then_rows)(c->then, from, ld, rows, n);
#endif
}

#endif
