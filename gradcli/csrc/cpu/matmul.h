/* matmul.h -- out (batch, M, N) = a (batch, M, K) b (batch, K, N) + bias (N, or empty). a and b may
 * have any strides: transposed views, and 0 to use one matrix for the whole batch. Each task owns
 * some blocks of the output. */

#ifndef GC_MATMUL_GRID
#define GC_MATMUL_GRID
/* A block of the output is small enough that the threads find several, and large enough that
 * packing its share of a and b stays a small part of the work. */
typedef struct {
  int64_t rows, columns;     /* of a block */
  int64_t down, across, all; /* blocks of a matrix, and of the call */
  int64_t group;             /* blocks of a task */
} gc_grid;

enum {
  GC_MATMUL_TASKS = 8,
  GC_MATMUL_ROWS = 240,
  GC_MATMUL_WORK = 1 << 17 /* multiplications worth a task */
};

static inline int64_t gc_whole(int64_t n, int64_t unit) {
  return gc_ceil_div(n, unit) * unit;
}

static inline gc_grid gc_matmul_grid(int64_t batch, int64_t m, int64_t n, int64_t k,
                                     int64_t tile_rows, int64_t tile_columns) {
  gc_grid g = {.rows = m, .columns = gc_min(n, GC_GEMM_COLUMNS)};
  if (m > GC_MATMUL_ROWS) /* of one size, or the last task would be a short one */
    g.rows = gc_whole(gc_ceil_div(m, gc_ceil_div(m, GC_MATMUL_ROWS)), tile_rows);
  for (;;) {
    g.down = g.rows ? gc_ceil_div(m, g.rows) : 0;
    g.across = g.columns ? gc_ceil_div(n, g.columns) : 0;
    g.all = batch * g.down * g.across;
    const double work = (double)g.rows * (double)gc_whole(g.columns, tile_columns / 2) * (double)k;
    const bool wide = g.columns > tile_columns, tall = g.rows > tile_rows;
    if (g.all >= GC_MATMUL_TASKS || work < 2 * GC_MATMUL_WORK || !(wide || tall)) {
      g.group = work * 2 < GC_MATMUL_WORK ? (int64_t)(GC_MATMUL_WORK / (work + 1)) : 1;
      return g;
    }
    if (wide && (!tall || g.columns >= g.rows))
      g.columns = gc_whole(gc_ceil_div(g.columns, 2), tile_columns);
    else
      g.rows = gc_whole(gc_ceil_div(g.rows, 2), tile_rows);
  }
}
#endif

static gc_grid NAME(matmul_grid)(const gc_tensor *t) {
  return gc_matmul_grid(t[3].shape[0], t[3].shape[1], t[3].shape[2], t[0].shape[2], GC_TILE_ROWS,
                        TILE_COLUMNS);
}

static int NAME(plan_matmul)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  for (int32_t i = 0; i < 4; i++) {
    GC_REQUIRE(t[i].ndim == (i == 2 ? 1 : 3), i, "(batch, rows, columns), and bias (columns)");
    GC_REQUIRE(t[i].dtype == t[0].dtype, i, "tensors of one element type");
  }
  GC_REQUIRE(t[1].shape[0] == t[0].shape[0], 1, "the same batch");
  GC_REQUIRE(t[1].shape[1] == t[0].shape[2], 1, "as many rows as the left matrix has columns");
  GC_REQUIRE(t[2].shape[0] == 0 || t[2].shape[0] == t[1].shape[2], 2, "a bias for each column");
  GC_REQUIRE(gc_contiguous(&t[2]), 2, "a contiguous tensor");
  GC_REQUIRE(t[3].shape[0] == t[0].shape[0] && t[3].shape[1] == t[0].shape[1] &&
                 t[3].shape[2] == t[1].shape[2],
             3, "(batch, rows of the left, columns of the right)");
  GC_REQUIRE(gc_contiguous(&t[3]), 3, "a contiguous tensor");
  const gc_grid g = NAME(matmul_grid)(t);
  plan->worker_bytes = GEMM_SCRATCH;
  return gc_plan_simple(plan, gc_ceil_div(g.all, g.group));
}

static NAME(matrix) NAME(matrix_of)(const gc_tensor *t, int64_t batch) {
  return (NAME(matrix)){(const REAL *)gc_first(t) + batch * t->stride[0], t->stride[1],
                        t->stride[2]};
}

static void NAME(run_matmul)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_grid g = NAME(matmul_grid)(t);
  const int64_t m = t[3].shape[1], n = t[3].shape[2];
  const bool biased = t[2].shape[0] > 0;
  const int64_t end = gc_min(g.all, (job->task + 1) * g.group);
  for (int64_t block = job->task * g.group; block < end; block++) {
    const int64_t batch = block / (g.down * g.across);
    const int64_t i = block / g.across % g.down * g.rows, j = block % g.across * g.columns;
    const int64_t rows = gc_min(g.rows, m - i), columns = gc_min(g.columns, n - j);
    REAL *c = (REAL *)gc_first(&t[3]) + (batch * m + i) * n + j;
    for (int64_t row = 0; biased && row < rows; row++)
      memcpy(c + row * n, (const REAL *)gc_first(&t[2]) + j, (size_t)columns * sizeof(REAL));
    NAME(gemm)(rows, columns, t[0].shape[2], NAME(part)(NAME(matrix_of)(&t[0], batch), i, 0),
               NAME(part)(NAME(matrix_of)(&t[1], batch), 0, j), c, n, biased, job->own);
  }
}
