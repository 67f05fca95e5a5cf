/* lines.h -- how reductions of (outer, n, inner) along n are cut into tasks: by shape alone. A line
 * is up to GC_WIDTH results that lie side by side in `inner`; few long lines are cut along n too,
 * and their partial results are put together in index order. */
#ifndef GC_LINES_H
#define GC_LINES_H

#include "kernel.h"
#include "walk.h"

enum { GC_WIDTH = 256, GC_MANY = 64 /* tasks are enough to keep all threads busy */, GC_LANES = 8 };

typedef struct {
  int64_t n, inner, results;
  int64_t width, tiles, lines;
  int64_t chunk, chunks; /* how n is cut */
  int64_t group;         /* lines of one task where n is whole */
  int64_t tasks;
} gc_cut;

static inline gc_cut gc_cut_of(const gc_tensor *x) {
  gc_cut c = {.n = x->shape[1], .inner = x->shape[2]};
  c.results = x->shape[0] * c.inner;
  c.width = gc_max(1, gc_min(c.inner, GC_WIDTH));
  c.tiles = gc_ceil_div(c.inner, c.width);
  c.lines = x->shape[0] * c.tiles;
  c.chunk = gc_max(1, c.n);
  if (c.lines < GC_MANY)
    c.chunk = gc_max(GC_BLOCK / c.width, gc_ceil_div(c.n, GC_MANY));
  c.chunks = gc_max(1, gc_ceil_div(c.n, c.chunk));
  c.group = gc_max(1, c.chunks > 1 ? 1 : GC_BLOCK / (c.width * gc_max(1, c.n)));
  c.tasks = gc_ceil_div(c.lines, c.group) * c.chunks;
  return c;
}

/* What one task does: lines first..last - 1, each from `from` to `to`. */
typedef struct {
  int64_t first, last, part, from, to;
} gc_share;

static inline gc_share gc_share_of(const gc_cut *c, int64_t task) {
  gc_share s = {.first = task / c->chunks * c->group, .part = task % c->chunks};
  s.last = gc_min(c->lines, s.first + c->group);
  s.from = s.part * c->chunk;
  s.to = gc_min(c->n, s.from + c->chunk);
  return s;
}

/* One line: where it begins in x, its first result, and how many results it has. */
typedef struct {
  int64_t at, result, width;
} gc_line;

static inline gc_line gc_line_of(const gc_cut *c, int64_t line) {
  const int64_t outer = line / c->tiles, j = line % c->tiles * c->width;
  return (gc_line){.at = outer * c->n * c->inner + j,
                   .result = outer * c->inner + j,
                   .width = gc_min(c->width, c->inner - j)};
}

/* total = sum of `term` over i = 0..n-1, in double, in 8 running sums: they do not wait for each
 * other, and their number never changes, so neither do the bits. */
#define GC_SUM(total, n, i, term)                                                                  \
  double total;                                                                                    \
  do {                                                                                             \
    double lane_[GC_LANES] = {0};                                                                  \
    const int64_t whole_ = (n) - (n) % GC_LANES;                                                   \
    for (int64_t base_ = 0; base_ < whole_; base_ += GC_LANES)                                     \
      for (int64_t k_ = 0; k_ < GC_LANES; k_++) {                                                  \
        const int64_t i = base_ + k_;                                                              \
        lane_[k_] += (term);                                                                       \
      }                                                                                            \
    for (int64_t i = whole_; i < (n); i++)                                                         \
      lane_[i - whole_] += (term);                                                                 \
    total = ((lane_[0] + lane_[4]) + (lane_[1] + lane_[5])) +                                      \
            ((lane_[2] + lane_[6]) + (lane_[3] + lane_[7]));                                       \
  } while (0)

#endif
