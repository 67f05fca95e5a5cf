/* matmul.h -- out (batch, M, N) = a (batch, M, K) b (batch, K, N) + bias (N, or empty). a and b may
 * have any strides: transposed views, and 0 to use one matrix for the whole batch. Each task owns
 * some blocks of the output. matmul_then does one more thing to each block before it leaves the
 * cache. */

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
  return gc_matmul_grid(t[0].shape[0], t[0].shape[1], t[1].shape[2], t[0].shape[2], GC_TILE_ROWS,
                        TILE_COLUMNS);
}

/* Whether an output lies apart from the inputs: it holds sums before all of those have been read.
 */
static bool NAME(apart)(const gc_tensor *t, int32_t inputs, int32_t out) {
  for (int32_t i = 0; i < inputs; i++)
    if (gc_numel(&t[i]) && gc_numel(&t[out]) && gc_first(&t[i]) == gc_first(&t[out]))
      return false;
  return true;
}

/* Checks a, b and bias, and the output number `out`. */
static int NAME(check_matmul)(const gc_call *call, int32_t out, gc_error *error) {
  const gc_tensor *t = call->tensors;
  const int32_t each[4] = {0, 1, 2, out};
  for (int32_t i = 0; i < 4; i++) {
    const gc_tensor *one = &t[each[i]];
    GC_REQUIRE(one->ndim == (i == 2 ? 1 : 3), each[i], "(batch, rows, columns); bias: (columns)");
    GC_REQUIRE(one->dtype == t[0].dtype, each[i], "tensors of one element type");
  }
  GC_REQUIRE(t[1].shape[0] == t[0].shape[0], 1, "the same batch");
  GC_REQUIRE(t[1].shape[1] == t[0].shape[2], 1, "as many rows as the left matrix has columns");
  GC_REQUIRE(t[2].shape[0] == 0 || t[2].shape[0] == t[1].shape[2], 2, "a bias for each column");
  GC_REQUIRE(gc_contiguous(&t[2]), 2, "a contiguous tensor");
  GC_REQUIRE(t[out].shape[0] == t[0].shape[0] && t[out].shape[1] == t[0].shape[1] &&
                 t[out].shape[2] == t[1].shape[2],
             out, "(batch, rows of the left, columns of the right)");
  GC_REQUIRE(gc_contiguous(&t[out]), out, "a contiguous tensor");
  GC_REQUIRE(NAME(apart)(t, 3, out), out, "an output in memory of its own");
  return GC_OK;
}

static int NAME(cut_matmul)(const gc_call *call, gc_plan *plan) {
  const gc_grid g = NAME(matmul_grid)(call->tensors);
  plan->worker_bytes = GEMM_SCRATCH;
  return gc_plan_simple(plan, gc_ceil_div(g.all, g.group));
}

static int NAME(plan_matmul)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = NAME(check_matmul)(call, 3, error);
  return status ? status : NAME(cut_matmul)(call, plan);
}

static NAME(matrix) NAME(matrix_of)(const gc_tensor *t, int64_t batch) {
  return (NAME(matrix)){(const REAL *)gc_first(t) + batch * t->stride[0], t->stride[1],
                        t->stride[2]};
}

/* The blocks of a task, into c, which has the shape of the output. */
static void NAME(matmul_blocks)(const gc_job *job, REAL *c, const NAME(then) * then) {
  const gc_tensor *t = job->call->tensors;
  const gc_grid g = NAME(matmul_grid)(t);
  const int64_t m = t[0].shape[1], n = t[1].shape[2];
  const bool biased = t[2].shape[0] > 0;
  const int64_t end = gc_min(g.all, (job->task + 1) * g.group);
  for (int64_t block = job->task * g.group; block < end; block++) {
    const int64_t batch = block / (g.down * g.across);
    const int64_t i = block / g.across % g.down * g.rows, j = block % g.across * g.columns;
    const int64_t rows = gc_min(g.rows, m - i), columns = gc_min(g.columns, n - j);
    REAL *const to = c + (batch * m + i) * n + j;
    for (int64_t row = 0; biased && row < rows; row++)
      memcpy(to + row * n, (const REAL *)gc_first(&t[2]) + j, (size_t)columns * sizeof(REAL));
    NAME(gemm_then)(rows, columns, t[0].shape[2], NAME(part)(NAME(matrix_of)(&t[0], batch), i, 0),
                    NAME(part)(NAME(matrix_of)(&t[1], batch), 0, j), to, n, biased, then, job->own);
  }
}

static void NAME(run_matmul)(const gc_job *job) {
  NAME(matmul_blocks)(job, gc_first(&job->call->tensors[3]), NULL);
}

/* ---- out = f(pre) with pre = a b + bias; tensors a, b, bias, kept, pre, out. sizes[0] is the
 * kernel number of f: a unary row of scalar_ops.h, or the _backward of one, pre * slope(kept). The
 * options are f's own. kept is empty for the former, pre may be for both. ---- */

static int NAME(plan_matmul_then)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  const int status = NAME(check_matmul)(call, 5, error);
  if (status)
    return status;
  const int64_t f = call->sizes[0], spans = sizeof NAME(spans) / sizeof NAME(spans)[0];
  const int32_t kind = f >= 0 && f < spans ? NAME(spans)[f].kind : GC_SPAN_NONE;
  GC_REQUIRE(kind == GC_SPAN_UNARY || kind == GC_SPAN_SLOPE, 5, "a unary kernel in sizes[0]");
  for (int32_t i = 3; i < 5; i++) {
    const bool whole = gc_same_shape(&t[i], &t[5]) && gc_contiguous(&t[i]);
    GC_REQUIRE(t[i].dtype == t[0].dtype, i, "tensors of one element type");
    GC_REQUIRE(whole || gc_numel(&t[i]) == 0, i, "the output's shape, or nothing");
  }
  GC_REQUIRE(gc_numel(&t[3]) == (kind == GC_SPAN_SLOPE ? gc_numel(&t[5]) : 0), 3,
             "what was kept for a slope, and else nothing");
  GC_REQUIRE(NAME(apart)(t, 4, 4) && NAME(apart)(t, 4, 5), 5, "an output in memory of its own");
  return NAME(cut_matmul)(call, plan);
}

static void NAME(run_matmul_then)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  REAL *const out = gc_first(&t[5]), *const c = gc_numel(&t[4]) ? gc_first(&t[4]) : out;
  const NAME(then) then = {.span = &NAME(spans)[job->call->sizes[0]],
                           .c = c,
                           .kept = gc_first(&t[3]),
                           .out = out,
                           .p = job->call->options[0],
                           .q = job->call->options[1]};
  NAME(matmul_blocks)(job, c, &then);
}
