/* gemm.h -- C = A B or C += A B on one thread: for matrix products and convolutions. K is cut into
 * blocks by its length alone, and their sums are added in order; how M and N are cut never shows in
 * the bits. Zeros are multiplied like anything else, so 0 * NaN stays NaN. */
#ifndef GC_GEMM_H
#define GC_GEMM_H

#include "../elementwise/operands.h"
#include "../kernel.h"
#include "../type.h"
#include "gemm_pack.h"
#include "gemm_row.h"
#include "gemm_tile.h"

#define GC_GEMM_DEPTH 256   /* of a block of K: a panel of A stays in the first cache */
#define GC_GEMM_ROWS 264    /* of a block of A, and */
#define GC_GEMM_COLUMNS 256 /* of a strip of B: together they stay in the second */
#define GC_GEMM_DIRECT 4    /* panels up to which packing costs more than it saves, or */
#define GC_GEMM_DIRECT_A 16 /* ... where A lies well */
#define GC_GEMM_DIRECT_B 11 /* ... where B does */
#define GEMM_STRIP (GC_GEMM_DEPTH * GC_GEMM_COLUMNS)
#define GEMM_BLOCK (GC_GEMM_DEPTH * GC_GEMM_ROWS + (GC_GEMM_ROWS / GC_TILE_ROWS + 1) * LANES)
#define GEMM_SCRATCH ((int64_t)sizeof(REAL) * (GEMM_STRIP + GEMM_BLOCK))

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

/* K is cut into blocks of this length, the last one perhaps shorter. */
static inline int64_t NAME(depth_of)(int64_t k) {
  return k ? gc_ceil_div(k, gc_ceil_div(k, GC_GEMM_DEPTH)) : 1;
}

/* Rows of a panel: as many as a tile has, or a few less so that all panels are about as high. */
static inline int64_t NAME(step_of)(int64_t m) {
  return m ? gc_ceil_div(m, gc_ceil_div(m, GC_TILE_ROWS)) : 1;
}

/* Lines that a tile reads one after the other lie in few pages. */
static inline bool NAME(is_near)(int64_t stride) {
  return stride * (int64_t)sizeof(REAL) < 2048;
}

/* Whether the tiles of n columns read A where it lies. Rows 4 KiB apart fall into the same places
 * of the first cache, which holds 8 of them. */
static inline bool NAME(reads_a)(NAME(matrix) a, int64_t n) {
  const bool well = a.cs == 1 ? a.rs * (int64_t)sizeof(REAL) % 4096 != 0 : NAME(is_near)(a.cs);
  return n <= (well ? GC_GEMM_DIRECT_A : 1) * TILE_COLUMNS;
}

/* Whether the tiles of m rows read B where it lies. */
static inline bool NAME(reads_b)(NAME(matrix) b, int64_t m) {
  const int64_t panels = NAME(is_near)(b.rs) ? GC_GEMM_DIRECT_B : GC_GEMM_DIRECT;
  return b.cs == 1 && m <= panels * GC_TILE_ROWS;
}

typedef struct {
  int64_t m, n, k;
  NAME(matrix) a, b;
  REAL *c;
  int64_t ldc;
  bool add;
  const NAME(then) * then;
  REAL *scratch; /* GEMM_SCRATCH bytes, aligned for vectors */
} NAME(product);

/* The rows i .. i + m - 1 and the columns `at` .. at + k - 1 of A, as panels of `step` rows. */
typedef struct {
  NAME(matrix) a;
  int64_t i, m, at, k, step;
  const REAL *packed; /* NULL: the tiles read A where it lies */
} NAME(block);

static NAME(block) NAME(block_of)(const NAME(product) * p, int64_t i, int64_t at, int64_t depth) {
  NAME(block) x = {.a = NAME(part)(p->a, i, at), .i = i, .at = at};
  x.m = gc_min(GC_GEMM_ROWS, p->m - i);
  x.k = gc_min(depth, p->k - at);
  x.step = NAME(step_of)(x.m);
  if (!NAME(reads_a)(x.a, p->n)) {
    REAL *const to = p->scratch + GEMM_STRIP;
    NAME(pack_a)(x.a, x.m, x.k, x.step, PANEL_SIZE(x.step, x.k), to);
    x.packed = to;
  }
  return x;
}

/* A block of A times a strip of B, the columns j .. j + n - 1. */
static void NAME(gemm_strip)(const NAME(product) * p, const NAME(block) * x, int64_t j, int64_t n) {
  const NAME(matrix) b = NAME(part)(p->b, x->at, j);
  /* A tile reads whole vectors, so that only the last few columns must be packed. */
  const int64_t as_it_is = NAME(reads_b)(b, x->m) ? n / LANES * LANES : 0;
  const int64_t first = as_it_is / TILE_COLUMNS * TILE_COLUMNS; /* column that is packed */
  if (as_it_is < n)
    NAME(pack_b)(NAME(part)(b, 0, first), x->k, n - first, p->scratch);
  for (int64_t i = 0, panel = 0; i < x->m; i += x->step, panel++) {
    const int64_t rows = gc_min(x->step, x->m - i);
    REAL *const c = p->c + (x->i + i) * p->ldc + j;
    NAME(matrix) a = NAME(part)(x->a, i, 0);
    if (x->packed)
      a = (NAME(matrix)){x->packed + panel * PANEL_SIZE(x->step, x->k), 1, rows};
    for (int64_t v = 0; v < n; v += TILE_COLUMNS) {
      const int64_t columns = gc_min(TILE_COLUMNS, n - v), vectors = columns > LANES ? 2 : 1;
      const bool direct = v + columns <= as_it_is;
      NAME(tiles)
      [vectors -
          1][rows - 1](x->k, a.at, a.rs, a.cs, direct ? b.at + v : p->scratch + (v - first) *x->k,
                       direct ? b.rs : vectors *LANES, c + v, p->ldc, columns, p->add || x->at > 0);
    }
    if (x->at + x->k == p->k)
      NAME(then_rows)(p->then, c, p->ldc, rows, n);
  }
}

/* A product of one row, a stretch of columns after the other. */
static void NAME(multiply_row)(const NAME(product) * p, int64_t depth) {
  const int64_t width = p->b.cs == 1 ? GC_ROW_VECTORS * LANES : LANES;
  for (int64_t j = 0; j < p->n; j += width) {
    const int64_t n = gc_min(width, p->n - j);
    for (int64_t at = 0; at < p->k; at += depth)
      NAME(row_strip)(gc_min(depth, p->k - at), p->a.at + at * p->a.cs, p->a.cs,
                      NAME(part)(p->b, at, j), n, p->c + j, p->add || at > 0);
    NAME(then_rows)(p->then, p->c + j, p->ldc, 1, n);
  }
}

static void NAME(multiply)(const NAME(product) * p) {
  if (p->m == 0 || p->n == 0)
    return;
  if (p->k == 0) {
    for (int64_t i = 0; !p->add && i < p->m; i++)
      memset(p->c + i * p->ldc, 0, (size_t)p->n * sizeof(REAL));
    NAME(then_rows)(p->then, p->c, p->ldc, p->m, p->n);
    return;
  }
  const int64_t depth = NAME(depth_of)(p->k);
  if (p->m == 1 && (p->b.cs == 1 || p->b.rs == 1)) {
    NAME(multiply_row)(p, depth);
    return;
  }
  for (int64_t i = 0; i < p->m; i += GC_GEMM_ROWS)
    for (int64_t at = 0; at < p->k; at += depth) {
      const NAME(block) x = NAME(block_of)(p, i, at, depth);
      for (int64_t j = 0; j < p->n; j += GC_GEMM_COLUMNS)
        NAME(gemm_strip)(p, &x, j, gc_min(GC_GEMM_COLUMNS, p->n - j));
    }
}

/* scratch: GEMM_SCRATCH bytes, aligned for vectors. */
static void NAME(gemm)(int64_t m, int64_t n, int64_t k, NAME(matrix) a, NAME(matrix) b, REAL *c,
                       int64_t ldc, bool add, REAL *scratch) {
  const NAME(product) p = {
      .m = m, .n = n, .k = k, .a = a, .b = b, .c = c, .ldc = ldc, .add = add, .scratch = scratch};
  NAME(multiply)(&p);
}

#endif
