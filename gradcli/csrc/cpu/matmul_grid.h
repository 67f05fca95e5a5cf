/* matmul_grid.h -- how a matrix product is cut into tasks, by shape and strides alone: blocks of
 * the output, and before them the packing of what several blocks read. */

#ifndef GC_MATMUL_GRID
#define GC_MATMUL_GRID
typedef struct {
  bool flipped; /* a and b below are the call's b^T and a^T, and so is the output */
  int64_t batch, m, n, k;
  int64_t depth, step;        /* of a block of K, of a panel of A */
  int64_t rows, columns;      /* of a block of the output: rows is a number of panels */
  int64_t down, across;       /* blocks of a matrix */
  int64_t blocks, group;      /* of the call, of a task */
  bool share_a, share_b;      /* packed once, in a phase of their own */
  int64_t a_chunk, b_chunk;   /* rows of A, columns of B that a task of that phase packs */
  int64_t a_chunks, b_chunks; /* of all blocks of K of a matrix */
  int64_t a_block, b_block;   /* elements of a block of K, packed */
  int64_t a_matrix, b_matrix; /* elements of a matrix, packed */
  int64_t a_batch, b_batch;   /* matrices: 1 where the whole batch has the same */
} gc_grid;

#define GC_MATMUL_TASK ((double)(1 << 17))  /* multiplications worth a task */
#define GC_MATMUL_BLOCK ((double)(1 << 22)) /* ... of a large product */
#define GC_MATMUL_SHARE ((double)(1 << 20)) /* ... worth a phase of packing */
#define GC_MATMUL_LIMIT ((double)(1 << 24)) /* elements packed in a phase */
enum {
  GC_MATMUL_FEW = 8, /* tasks that keep the threads busy, for a small product */
  GC_MATMUL_MANY = 32,
  GC_MATMUL_WIDTH = 512, /* columns of a block that stays in the second cache */
  GC_MATMUL_CHUNK = 1 << 14
};

/* Halves blocks until there are `wanted`, along the larger side or along the rows or columns first.
 */
typedef enum { GC_LARGER, GC_ROWS_FIRST, GC_COLUMNS_FIRST } gc_first_cut;
static inline void gc_cut_blocks(gc_grid *g, int64_t wanted, gc_first_cut first, int64_t height,
                                 int64_t width) {
  for (;;) {
    const bool tall = g->m >= 2 * g->down * height, wide = g->n >= 2 * g->across * width;
    if (g->batch * g->down * g->across >= wanted || !(tall || wide))
      return;
    const bool wider =
        first == GC_LARGER ? g->n * g->down > g->m * g->across : first == GC_COLUMNS_FIRST;
    if (wide && (wider || !tall))
      g->across *= 2;
    else
      g->down *= 2;
  }
}
#endif

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
    const NAME(matrix) left = NAME(flipped)(b);
    b = NAME(flipped)(a);
    a = left;
    g.m = t[1].shape[2];
    g.n = t[0].shape[1];
  }
  const bool pack_a = !NAME(reads_a)(a, g.n), pack_b = !NAME(reads_b)(b, g.m);
  const double area = (double)g.m * (double)gc_whole(g.n, LANES);
  const double work = area * (double)g.k, all = work * (double)g.batch;
  const double packed = (double)(g.batch * g.k) * (double)(g.m + g.n);
  const bool share = (pack_a || pack_b) && all >= GC_MATMUL_SHARE && packed <= GC_MATMUL_LIMIT;
  int64_t wanted = gc_min(GC_MATMUL_FEW, (int64_t)(all / GC_MATMUL_TASK));
  wanted = gc_max(wanted, gc_min(GC_MATMUL_MANY, (int64_t)(all / GC_MATMUL_BLOCK)));
  g.down = gc_ceil_div(g.m, GC_GEMM_ROWS);
  g.across = gc_ceil_div(g.n, GC_MATMUL_WIDTH);
  const gc_first_cut first = share || pack_a == pack_b ? GC_LARGER
                             : pack_b                  ? GC_COLUMNS_FIRST
                                                       : GC_ROWS_FIRST;
  gc_cut_blocks(&g, wanted, first, GC_TILE_ROWS, TILE_COLUMNS);
  g.depth = NAME(depth_of)(g.k);
  g.rows = gc_ceil_div(g.m, g.down);
  g.step = NAME(step_of)(g.rows);
  g.rows = gc_whole(g.rows, g.step);
  g.columns = gc_whole(gc_ceil_div(g.n, g.across), TILE_COLUMNS);
  g.down = gc_ceil_div(g.m, g.rows);
  g.across = gc_ceil_div(g.n, g.columns);
  g.blocks = g.batch * g.down * g.across;
  g.group = (int64_t)(GC_MATMUL_TASK / (work / (double)(g.down * g.across) * 2 + 1));
  g.group = gc_max(1, g.group);
  g.share_a = share && pack_a && g.across > 1;
  g.share_b = share && pack_b && g.down > 1;
  const int64_t k_blocks = gc_ceil_div(g.k, g.depth), chunk = gc_ceil_div(GC_MATMUL_CHUNK, g.depth);
  if (g.share_a) {
    const int64_t panels = gc_ceil_div(g.m, g.step);
    g.a_chunk = gc_whole(gc_min(chunk, g.m), g.step);
    g.a_chunks = k_blocks * gc_ceil_div(g.m, g.a_chunk);
    g.a_block = panels * PANEL_SIZE(g.step, g.depth);
    g.a_matrix = gc_whole(k_blocks * g.a_block, LANES);
    g.a_batch = t[g.flipped ? 1 : 0].stride[0] == 0 ? 1 : g.batch;
  }
  if (g.share_b) {
    g.b_chunk = gc_whole(gc_min(chunk, g.n), TILE_COLUMNS);
    g.b_chunks = k_blocks * gc_ceil_div(g.n, g.b_chunk);
    g.b_block = gc_whole(g.n, TILE_COLUMNS) * g.depth;
    g.b_matrix = k_blocks * g.b_block;
    g.b_batch = t[g.flipped ? 0 : 1].stride[0] == 0 ? 1 : g.batch;
  }
  return g;
}
