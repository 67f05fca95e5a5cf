/* gemm_pack.h -- copies panels of A and B into the order in which a tile reads them. */
#ifndef GC_GEMM_PACK_H
#define GC_GEMM_PACK_H

#include "../kernel.h"
#include "../type.h"
#include "gemm_tile.h"

/* Element (i, j) lies at at[i * rs + j * cs]; any strides, so a transposed view costs no copy. */
typedef struct {
  const REAL *at;
  int64_t rs, cs;
} NAME(matrix);

static inline NAME(matrix) NAME(part)(NAME(matrix) x, int64_t i, int64_t j) {
  return (NAME(matrix)){x.at + i * x.rs + j * x.cs, x.rs, x.cs};
}

static inline NAME(matrix) NAME(flipped)(NAME(matrix) x) {
  return (NAME(matrix)){x.at, x.cs, x.rs};
}

/* The lower and upper halves of two vectors, their elements in turn. */
#ifdef GC_IS_FLOAT
#define LANE_TYPE int32_t
#if GC_VECTOR_BYTES == 64
#define LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif GC_VECTOR_BYTES == 32
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#endif
#else
#define LANE_TYPE int64_t
#if GC_VECTOR_BYTES == 64
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif GC_VECTOR_BYTES == 32
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#else
#define LOW 0, 2
#define HIGH 1, 3
#endif
#endif
#if defined(__clang__)
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (NAME(lanes)){__VA_ARGS__})
#endif
typedef LANE_TYPE NAME(lanes) __attribute__((vector_size(GC_VECTOR_BYTES)));

/* Rows of a square become its columns: interleaving row i with row i + LANES / 2, log2(LANES) times
 * over. */
static inline __attribute__((always_inline)) void NAME(transpose_vectors)(NAME(vec) * x,
                                                                          NAME(vec) * y) {
  enum { N = GC_VECTOR_BYTES / sizeof(REAL) };
  GC_UNROLL for (int round = 1; round < N; round *= 2) {
    GC_UNROLL for (int i = 0; i < N / 2; i++) {
      y[2 * i] = PICK(x[i], x[i + N / 2], LOW);
      y[2 * i + 1] = PICK(x[i], x[i + N / 2], HIGH);
    }
    GC_UNROLL for (int i = 0; i < N; i++) x[i] = y[i];
  }
}

/* to[k * ldto + i] = from[i * ld + k] for a square of LANES x LANES. */
static inline void NAME(transpose_square)(const REAL *from, int64_t ld, REAL *to, int64_t ldto) {
  enum { N = GC_VECTOR_BYTES / sizeof(REAL) };
  NAME(vec) x[N], y[N];
  GC_UNROLL for (int i = 0; i < N; i++) x[i] = *(const NAME(loose) *)(from + i * ld);
  NAME(transpose_vectors)(x, y);
  GC_UNROLL for (int i = 0; i < N; i++) * (NAME(loose) *)(to + i * ldto) = x[i];
}

/* The same from n <= LANES rows; the others are taken to be the last one again. */
static inline void NAME(transpose_rows)(const REAL *from, int64_t ld, int64_t n, REAL *to,
                                        int64_t ldto) {
  enum { N = GC_VECTOR_BYTES / sizeof(REAL) };
  NAME(vec) x[N], y[N];
  GC_UNROLL for (int i = 0; i < N; i++) x[i] =
      *(const NAME(loose) *)(from + (i < n ? i : n - 1) * ld);
  NAME(transpose_vectors)(x, y);
  GC_UNROLL for (int i = 0; i < N; i++) * (NAME(loose) *)(to + i * ldto) = x[i];
}

/* to (n x m) = from (m x n) transposed; up to a whole vector may be read at the end of each row. */
static void NAME(transpose)(const REAL *from, int64_t ld, int64_t m, int64_t n, REAL *to,
                            int64_t ldto) {
  _Alignas(GC_VECTOR_BYTES)
      REAL square[GC_VECTOR_BYTES / sizeof(REAL) * (GC_VECTOR_BYTES / sizeof(REAL))];
  for (int64_t j = 0; j < n; j += LANES)
    for (int64_t i = 0; i < m; i += LANES) {
      const int64_t rows = gc_min(LANES, m - i), columns = gc_min(LANES, n - j);
      REAL *const corner = to + j * ldto + i;
      if (rows == LANES && columns == LANES) {
        NAME(transpose_square)(from + i * ld + j, ld, corner, ldto);
        continue;
      }
      NAME(transpose_rows)(from + i * ld + j, ld, rows, square, LANES);
      for (int64_t row = 0; row < columns; row++)
        if (rows == LANES)
          *(NAME(loose) *)(corner + row * ldto) = *(const NAME(loose) *)(square + row * LANES);
        else
          NAME(store_part)(corner + row * ldto, *(const NAME(vec) *)(square + row * LANES), rows);
    }
}

/* Asks for a line that is read 8 rows from now: rows may lie in different pages, where the
 * processor does not look ahead by itself. Where there is no memory nothing happens. */
#define GC_FETCH(from, row)                                                                        \
  __builtin_prefetch((const void *)((uintptr_t)(from) + (uintptr_t)(8 * (row)) * sizeof(REAL)))

/* ---- B ---- */

/* One panel of n <= width columns, from row `done` on, an element at a time; columns that are not
 * there are zeros that no one looks at. */
static void NAME(pack_rows)(NAME(matrix) b, int64_t done, int64_t k, int64_t n, int64_t width,
                            REAL *to) {
  for (; done < k; done++) {
    for (int64_t j = 0; j < n; j++)
      to[done * width + j] = b.at[done * b.rs + j * b.cs];
    for (int64_t j = n; j < width; j++)
      to[done * width + j] = 0;
  }
}

/* One panel whose rows lie in one piece. A last vector that is not full is read whole as long as
 * what follows it is still this matrix. */
static void NAME(pack_panel)(NAME(matrix) b, int64_t k, int64_t n, int64_t width, REAL *to) {
  const int64_t safe = b.rs < n ? 0 : gc_max(0, k - gc_ceil_div(width - n, b.rs));
  for (int64_t at = 0; at < safe; at++)
    for (int64_t v = 0; v < width; v += LANES)
      *(NAME(loose) *)(to + at * width + v) = *(const NAME(loose) *)(b.at + at * b.rs + v);
  NAME(pack_rows)(b, safe, k, n, width, to);
}

/* One panel whose columns lie in one piece. */
static void NAME(pack_turned)(NAME(matrix) b, int64_t k, int64_t n, int64_t width, REAL *to) {
  const int64_t whole = k / LANES * LANES;
  for (int64_t j = 0; j < width; j += LANES)
    for (int64_t at = 0; at < whole; at += LANES)
      if (j + LANES <= n)
        NAME(transpose_square)(b.at + at + j * b.cs, b.cs, to + at * width + j, width);
      else
        NAME(transpose_rows)(b.at + at + j * b.cs, b.cs, n - j, to + at * width + j, width);
  NAME(pack_rows)(b, whole, k, n, width, to);
}

/* k x n of B as panels of TILE_COLUMNS, the last one perhaps of LANES, each k rows long. Rows that
 * lie as they should are read whole, one after another: memory likes long reads. */
static void NAME(pack_b)(NAME(matrix) b, int64_t k, int64_t n, REAL *to) {
  int64_t j = 0;
  if (b.cs == 1) {
    const int64_t whole = n / TILE_COLUMNS * TILE_COLUMNS;
    for (int64_t at = 0; whole && at < k; at++)
      for (j = 0; j < whole; j += TILE_COLUMNS)
        for (int64_t v = 0; v < TILE_COLUMNS; v += LANES) {
          const REAL *const from = b.at + at * b.rs + j + v;
          GC_FETCH(from, b.rs);
          *(NAME(loose) *)(to + j * k + at * TILE_COLUMNS + v) = *(const NAME(loose) *)from;
        }
    j = whole;
  }
  for (; j < n; j += TILE_COLUMNS) {
    const int64_t columns = gc_min(TILE_COLUMNS, n - j);
    const int64_t width = columns > LANES ? TILE_COLUMNS : LANES;
    const NAME(matrix) panel = NAME(part)(b, 0, j);
    if (b.cs == 1)
      NAME(pack_panel)(panel, k, columns, width, to + j * k);
    else if (b.rs == 1)
      NAME(pack_turned)(panel, k, columns, width, to + j * k);
    else
      NAME(pack_rows)(panel, 0, k, columns, width, to + j * k);
  }
}

/* ---- A: m x k as panels of `step` rows, `size` elements apart, each column after column. Vectors
 * write past a panel's column, into the next one, which is written after it; behind each panel is
 * room for what its last column writes too far. ---- */

#define PANEL_SIZE(step, k) ((step) * (k) + LANES)

/* Columns from `done` on, an element at a time. */
static void NAME(pack_columns)(NAME(matrix) a, int64_t done, int64_t k, int64_t rows, REAL *to) {
  for (int64_t at = done; at < k; at++)
    for (int64_t i = 0; i < rows; i++)
      to[at * rows + i] = a.at[i * a.rs + at * a.cs];
}

/* A panel of rows that lie in one piece. Its last rows come first: what their vectors write too far
 * belongs to the first rows. */
static void NAME(pack_a_turned)(NAME(matrix) a, int64_t k, int64_t rows, REAL *to) {
  const int64_t whole = k / LANES * LANES;
  for (int64_t at = 0; at < whole; at += LANES)
    for (int64_t n = rows, i; n > 0; n = i) {
      i = (n - 1) / LANES * LANES;
      NAME(transpose_rows)(a.at + i * a.rs + at, a.rs, n - i, to + at * rows + i, rows);
    }
  NAME(pack_columns)(a, whole, k, rows, to);
}

/* All panels of columns that lie in one piece, a long column at a time. */
static void NAME(pack_a_straight)(NAME(matrix) a, int64_t m, int64_t k, int64_t step, int64_t size,
                                  REAL *to) {
  const int64_t vectors = gc_whole(step, LANES);
  for (int64_t at = 0; at < k; at++) {
    const REAL *from = a.at + at * a.cs;
    REAL *column = to + at * step;
    int64_t left = m;
    for (; left >= vectors; left -= step, from += step, column += size) {
      GC_FETCH(from, a.cs);
      for (int64_t v = 0; v < step; v += LANES)
        *(NAME(loose) *)(column + v) = *(const NAME(loose) *)(from + v);
    }
    for (; left > 0; left -= step, from += step, column += size) {
      const int64_t rows = gc_min(step, left);
      column -= at * (step - rows); /* a lower panel has shorter columns */
      for (int64_t v = 0; v < rows; v++)
        column[v] = from[v];
    }
  }
}

static void NAME(pack_a)(NAME(matrix) a, int64_t m, int64_t k, int64_t step, int64_t size,
                         REAL *to) {
  if (a.rs == 1) {
    NAME(pack_a_straight)(a, m, k, step, size, to);
    return;
  }
  for (int64_t i = 0; i < m; i += step, to += size)
    if (a.cs == 1)
      NAME(pack_a_turned)(NAME(part)(a, i, 0), k, gc_min(step, m - i), to);
    else
      NAME(pack_columns)(NAME(part)(a, i, 0), 0, k, gc_min(step, m - i), to);
}

#endif
