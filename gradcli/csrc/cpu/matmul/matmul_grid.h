/* matmul_grid.h -- how a matrix product is cut into tasks, by shape and strides alone. */
#ifndef GC_MATMUL_GRID_H
#define GC_MATMUL_GRID_H

#include "../kernel.h"
#include "../type.h"
#include "gemm.h"
#include "gemm_pack.h"
#include "gemm_row.h"
#include "gemm_tile.h"

typedef struct {
  bool flipped; /* the transposed product is done: a and b are the call's b^T and a^T */
  int64_t batch, m, n, k;
  int64_t rows, columns; /* of a block of the output */
  int64_t down, across;  /* blocks of a matrix */
  int64_t blocks, group; /* of the call, of a task */
} gc_grid;

/* Multiplications worth a task, an equal share of a small product and of a large one; and enough
 * to say that there are many. */
#define GC_MATMUL_TASK ((double)(1 << 17))
#define GC_MATMUL_SMALL ((double)(1 << 20))
#define GC_MATMUL_LARGE ((double)(1 << 24))
#define GC_MATMUL_MUCH ((double)(1 << 30))
#define GC_MATMUL_WIDTH 512 /* columns of a block that stays in the second cache */

/* Halves blocks until there are `wanted`: along the larger side, or for `narrow` ones, whose
 * columns are packed by each block anew, along the columns and only until there are `enough` along
 * the rows. */
static inline void gc_cut_blocks(gc_grid *g, int64_t wanted, bool narrow, int64_t enough,
                                 int64_t height, int64_t width) {
  for (;;) {
    const int64_t blocks = g->batch * g->down * g->across;
    const bool wide = g->n >= 2 * g->across * width;
    const bool tall = g->m >= 2 * g->down * height && !(narrow && blocks >= enough);
    if (blocks >= wanted || !(tall || wide))
      return;
    if (wide && (narrow || !tall || g->n * g->down > g->m * g->across))
      g->across *= 2;
    else
      g->down *= 2;
  }
}

static inline int64_t gc_between(double x, int64_t low, int64_t high) {
  return x<(double)low ? low : x>(double) high ? high : (int64_t)x;
}

/* About how many vectors go through the processor: transposing one takes 6 steps, copying one 2. */
static double NAME(effort)(NAME(matrix) a, NAME(matrix) b, int64_t m, int64_t n, int64_t k) {
  const int64_t pack_a = NAME(reads_a)(a, n) ? 0 : a.rs == 1 ? 2 : 6;
  const int64_t pack_b = NAME(reads_b)(b, m) ? 0 : b.cs == 1 ? 2 : 6;
  return (double)k * ((double)m * (double)gc_whole(n, LANES) + (double)(pack_a * m + pack_b * n));
}

static gc_grid NAME(matmul_grid)(const gc_tensor *t) {
  gc_grid g = {.batch = t[0].shape[0], .m = t[0].shape[1], .n = t[1].shape[2], .k = t[0].shape[2]};
  if (g.batch * g.m * g.n == 0)
    return g;
  NAME(matrix) a = {NULL, t[0].stride[1], t[0].stride[2]};
  NAME(matrix) b = {NULL, t[1].stride[1], t[1].stride[2]};
  const double turned = NAME(effort)(NAME(flipped)(b), NAME(flipped)(a), g.n, g.m, g.k);
  g.flipped = turned + 8 * (double)g.m * (double)g.n < NAME(effort)(a, b, g.m, g.n, g.k);
  if (g.flipped) {
    b = NAME(flipped)(a);
    g.m = t[1].shape[2];
    g.n = t[0].shape[1];
  }
  const double one = (double)g.m * (double)gc_whole(g.n, LANES) * (double)g.k;
  const double all = one * (double)g.batch;
  const int64_t wanted =
      gc_max(gc_between(all / GC_MATMUL_TASK, 1, 8), gc_between(all / GC_MATMUL_LARGE, 1, 16));
  g.down = gc_ceil_div(g.m, GC_GEMM_ROWS);
  g.across = gc_ceil_div(g.n, GC_MATMUL_WIDTH);
  gc_cut_blocks(&g, wanted, !NAME(reads_b)(b, g.m), gc_between(all / GC_MATMUL_SMALL, 2, 4),
                GC_TILE_ROWS, g.m == 1 && b.cs == 1 ? GC_ROW_VECTORS * LANES : TILE_COLUMNS);
  g.rows = gc_ceil_div(g.m, g.down);
  g.columns = gc_whole(gc_ceil_div(g.n, g.across), TILE_COLUMNS);
  g.down = gc_ceil_div(g.m, g.rows);
  g.across = gc_ceil_div(g.n, g.columns);
  g.blocks = g.batch * g.down * g.across;
  g.group = gc_between(GC_MATMUL_TASK / (one / (double)(g.down * g.across) * 2 + 1), 1, g.blocks);
  return g;
}

#endif
