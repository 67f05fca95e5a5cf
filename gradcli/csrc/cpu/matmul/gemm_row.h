/* gemm_row.h -- one row of A times a strip of B. There is nothing to reuse, so B is read where it
 * lies, in the order in which memory likes it; sums are carried in the order in which tiles do. */
#ifndef GC_GEMM_ROW_H
#define GC_GEMM_ROW_H

#include "../kernel.h"
#include "../type.h"
#include "gemm_pack.h"
#include "gemm_tile.h"

#if GC_VECTOR_BYTES == 64 || defined(__aarch64__)
#define GC_ROW_VECTORS 16
#else
#define GC_ROW_VECTORS 8
#endif

/* n <= LANES elements from anywhere. */
static inline NAME(vec) NAME(load_some)(const REAL *from, int64_t n) {
  if (n == LANES)
    return *(const NAME(loose) *)from;
  return NAME(load_part)(from, n);
}

static inline void NAME(put_sums)(const NAME(vec) * sum, int64_t n, REAL *c, bool add) {
  for (int64_t j = 0; j < n; j += LANES) {
    const int64_t part = gc_min(LANES, n - j);
    NAME(vec) x = sum[j / LANES];
    if (add)
      x += NAME(load_some)(c + j, part);
    if (part == LANES)
      *(NAME(loose) *)(c + j) = x;
    else
      NAME(store_part)(c + j, x, part);
  }
}

/* `vectors` vectors of C, all but perhaps the last of them full, where rows of B lie in one piece.
 */
static inline __attribute__((always_inline)) void NAME(row_straight)(const int vectors, int64_t k,
                                                                     const REAL *a, int64_t step,
                                                                     NAME(matrix) b, int64_t n,
                                                                     REAL *c, bool add) {
  NAME(vec) sum[GC_ROW_VECTORS];
  GC_UNROLL for (int v = 0; v < vectors; v++) sum[v] = (NAME(vec)){0};
  const int64_t last = (vectors - 1) * LANES;
  for (int64_t at = 0; at < k; at++) {
    const NAME(vec) x = SPREAD(a[at * step]);
    const REAL *const row = b.at + at * b.rs;
    GC_UNROLL for (int v = 0; v < vectors - 1; v++) {
      GC_FETCH(row + v * LANES, b.rs);
      sum[v] = MADD(x, *(const NAME(loose) *)(row + v * LANES), sum[v]);
    }
    const NAME(vec) rest = NAME(load_some)(row + last, n - last);
    sum[vectors - 1] = MADD(x, rest, sum[vectors - 1]);
  }
  NAME(put_sums)(sum, n, c, add);
}

/* n <= LANES elements of C, where columns of B lie in one piece: squares of B are transposed. */
static void NAME(row_turned)(int64_t k, const REAL *a, int64_t step, NAME(matrix) b, int64_t n,
                             REAL *c, bool add) {
  enum { N = GC_VECTOR_BYTES / sizeof(REAL) };
  NAME(vec) sum = {0}, x[N], y[N];
  int64_t at = 0;
  for (; at + N <= k; at += N) {
    GC_UNROLL for (int i = 0; i < N; i++) x[i] =
        *(const NAME(loose) *)(b.at + at + (i < n ? i : n - 1) * b.cs);
    NAME(transpose_vectors)(x, y);
    GC_UNROLL for (int i = 0; i < N; i++) sum = MADD(SPREAD(a[(at + i) * step]), x[i], sum);
  }
  for (; at < k; at++) {
    _Alignas(GC_VECTOR_BYTES) REAL column[N] = {0};
    for (int64_t i = 0; i < n; i++)
      column[i] = b.at[at + i * b.cs];
    sum = MADD(SPREAD(a[at * step]), *(const NAME(vec) *)column, sum);
  }
  NAME(put_sums)(&sum, n, c, add);
}

static void NAME(row_strip)(int64_t k, const REAL *a, int64_t step, NAME(matrix) b, int64_t n,
                            REAL *c, bool add) {
  int64_t j = 0;
  if (b.cs == 1) {
    for (; j + GC_ROW_VECTORS * LANES <= n; j += GC_ROW_VECTORS * LANES)
      NAME(row_straight)(GC_ROW_VECTORS, k, a, step, NAME(part)(b, 0, j), GC_ROW_VECTORS * LANES,
                         c + j, add);
    for (; j + 4 * LANES <= n; j += 4 * LANES)
      NAME(row_straight)(4, k, a, step, NAME(part)(b, 0, j), 4 * LANES, c + j, add);
    for (; j < n; j += LANES)
      NAME(row_straight)(1, k, a, step, NAME(part)(b, 0, j), gc_min(LANES, n - j), c + j, add);
    return;
  }
  for (; j < n; j += LANES)
    NAME(row_turned)(k, a, step, NAME(part)(b, 0, j), gc_min(LANES, n - j), c + j, add);
}

#endif
