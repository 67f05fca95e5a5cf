/* gemm.h -- C = A B or C += A B on one thread: for matrix products and convolutions. K is cut into
 * blocks by its length alone, and their sums are added in order; how M and N are cut never shows in
 * the bits. Zeros are multiplied like anything else, so 0 * NaN stays NaN. */

#include "gemm_tile.h"

#include "gemm_pack.h"

#ifndef GC_GEMM_DEPTH
#define GC_GEMM_DEPTH 256   /* of a block of K: a panel of A stays in the first cache */
#define GC_GEMM_COLUMNS 256 /* of a block of B: it stays in the second */
#define GC_GEMM_DIRECT 4    /* panels up to which packing costs more than it saves */
#endif
#define GEMM_SCRATCH ((int64_t)sizeof(REAL) * GC_GEMM_DEPTH * (GC_GEMM_COLUMNS + GC_TILE_ROWS))

/* What is done to elements of C when all of K is in them: out = f(C), or C * slope(kept). `c`,
 * `kept` and `out` are whole tensors of one shape, so that an element lies equally far into each.
 */
typedef struct {
  const gc_span *span; /* NULL: nothing */
  const REAL *c, *kept;
  REAL *out;
  double p, q;
} NAME(then);

static void NAME(then_rows)(const NAME(then) * then, const REAL *c, int64_t ldc, int64_t rows,
                            int64_t n) {
  if (!then || !then->span)
    return;
  const bool whole = ldc == n;
  for (int64_t i = 0; i < (whole ? 1 : rows); i++, c += ldc) {
    const int64_t at = c - then->c;
    gc_operands o = {.in = {c}, .out = then->out + at, .p = then->p, .q = then->q};
    if (then->span->kind == GC_SPAN_SLOPE)
      o.in[0] = then->kept + at, o.in[1] = c;
    then->span->run(&o, whole ? rows * n : n);
  }
}

/* One block: n <= GC_GEMM_COLUMNS, k <= GC_GEMM_DEPTH; `then` where it is the last of K. */
static void NAME(gemm_block)(int64_t m, int64_t n, int64_t k, NAME(matrix) a, NAME(matrix) b,
                             REAL *c, int64_t ldc, bool add, const NAME(then) * then,
                             REAL *scratch) {
  const int64_t panels = gc_ceil_div(m, GC_TILE_ROWS), step = gc_ceil_div(m, panels);
  const bool a_as_it_is = n <= (a.cs == 1 ? GC_GEMM_DIRECT : 1) * TILE_COLUMNS;
  /* A tile reads whole vectors, so that only the last few columns must be packed. */
  const int64_t b_as_it_is = b.cs == 1 && panels <= GC_GEMM_DIRECT ? n / LANES * LANES : 0;
  const int64_t first = b_as_it_is / TILE_COLUMNS * TILE_COLUMNS; /* column that is packed */
  REAL *const panel = scratch + GC_GEMM_DEPTH * GC_GEMM_COLUMNS;
  if (b_as_it_is < n)
    NAME(pack_b)(NAME(part)(b, 0, first), k, n - first, scratch);
  for (int64_t i = 0; i < m; i += step) {
    const int64_t rows = gc_min(step, m - i);
    NAME(matrix) x = NAME(part)(a, i, 0);
    if (!a_as_it_is) {
      NAME(pack_a)(x, rows, k, panel);
      x = (NAME(matrix)){panel, 1, rows};
    }
    for (int64_t j = 0; j < n; j += TILE_COLUMNS) {
      const int64_t columns = gc_min(TILE_COLUMNS, n - j), vectors = columns > LANES ? 2 : 1;
      const bool direct = j + columns <= b_as_it_is;
      NAME(tiles)
      [vectors - 1][rows - 1](k, x.at, x.rs, x.cs, direct ? b.at + j : scratch + (j - first) *k,
                              direct ? b.rs : vectors *LANES, c + i *ldc + j, ldc, columns, add);
    }
    NAME(then_rows)(then, c + i * ldc, ldc, rows, n);
  }
}

/* scratch: GEMM_SCRATCH bytes, aligned for vectors. */
static void NAME(gemm_then)(int64_t m, int64_t n, int64_t k, NAME(matrix) a, NAME(matrix) b,
                            REAL *c, int64_t ldc, bool add, const NAME(then) * then,
                            REAL *scratch) {
  if (m == 0 || n == 0)
    return;
  if (k == 0) {
    for (int64_t i = 0; !add && i < m; i++)
      memset(c + i * ldc, 0, (size_t)n * sizeof(REAL));
    NAME(then_rows)(then, c, ldc, m, n);
  }
  const int64_t blocks = gc_ceil_div(k, GC_GEMM_DEPTH);
  const int64_t depth = blocks ? gc_ceil_div(k, blocks) : 0;
  for (int64_t j = 0; j < n; j += GC_GEMM_COLUMNS)
    for (int64_t at = 0; at < k; at += depth)
      NAME(gemm_block)(m, gc_min(GC_GEMM_COLUMNS, n - j), gc_min(depth, k - at),
                       NAME(part)(a, 0, at), NAME(part)(b, at, j), c + j, ldc, add || at > 0,
                       at + depth < k ? NULL : then, scratch);
}

static void NAME(gemm)(int64_t m, int64_t n, int64_t k, NAME(matrix) a, NAME(matrix) b, REAL *c,
                       int64_t ldc, bool add, REAL *scratch) {
  NAME(gemm_then)(m, n, k, a, b, c, ldc, add, NULL, scratch);
}
