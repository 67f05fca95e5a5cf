/* gemm_pack.h -- copies panels of A and B into the order in which a tile reads them. */

/* Element (i, j) lies at at[i * rs + j * cs]; any strides, so a transposed view costs no copy. */
typedef struct {
  const REAL *at;
  int64_t rs, cs;
} NAME(matrix);

static inline NAME(matrix) NAME(part)(NAME(matrix) x, int64_t i, int64_t j) {
  return (NAME(matrix)){x.at + i * x.rs + j * x.cs, x.rs, x.cs};
}

/* The lower and upper halves of two vectors, their elements in turn. */
#undef LOW
#undef HIGH
#undef LANE_TYPE
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

/* to[k * ldto + i] = from[i * ld + k] for a square of LANES x LANES: interleaving row i with row
 * i + LANES / 2, log2(LANES) times over, is a transposition. */
static inline void NAME(transpose_square)(const REAL *from, int64_t ld, REAL *to, int64_t ldto) {
  enum { N = GC_VECTOR_BYTES / sizeof(REAL) };
  NAME(vec) x[N], y[N];
  GC_UNROLL for (int i = 0; i < N; i++) x[i] = *(const NAME(loose) *)(from + i * ld);
  GC_UNROLL for (int round = 1; round < N; round *= 2) {
    GC_UNROLL for (int i = 0; i < N / 2; i++) {
      y[2 * i] = PICK(x[i], x[i + N / 2], LOW);
      y[2 * i + 1] = PICK(x[i], x[i + N / 2], HIGH);
    }
    GC_UNROLL for (int i = 0; i < N; i++) x[i] = y[i];
  }
  GC_UNROLL for (int i = 0; i < N; i++) * (NAME(loose) *)(to + i * ldto) = x[i];
}

/* Of a panel of n <= width columns the rows from `done` on, filled up with zeros that no one looks
 * at. */
static void NAME(pack_rows)(NAME(matrix) b, int64_t done, int64_t k, int64_t n, int64_t width,
                            REAL *to) {
  for (; done < k; done++) {
    for (int64_t j = 0; j < n; j++)
      to[done * width + j] = b.at[done * b.rs + j * b.cs];
    for (int64_t j = n; j < width; j++)
      to[done * width + j] = 0;
  }
}

/* k x n of B as panels of TILE_COLUMNS, the last one perhaps of LANES, each k rows long. Rows that
 * lie as they should are read whole, one after another: memory likes long reads. */
static void NAME(pack_b)(NAME(matrix) b, int64_t k, int64_t n, REAL *to) {
  const int64_t whole = n / TILE_COLUMNS * TILE_COLUMNS;
  int64_t done = 0;
  if (b.cs == 1) {
    for (; whole && done < k; done++)
      for (int64_t j = 0; j < whole; j += TILE_COLUMNS)
        for (int64_t v = 0; v < TILE_COLUMNS; v += LANES)
          *(NAME(loose) *)(to + j * k + done * TILE_COLUMNS + v) =
              *(const NAME(loose) *)(b.at + done * b.rs + j + v);
  } else if (b.rs == 1) {
    done = k / LANES * LANES;
    for (int64_t j = 0; j < whole; j += LANES)
      for (int64_t at = 0; at < done; at += LANES)
        NAME(transpose_square)(b.at + at + j * b.cs, b.cs,
                               to + j / TILE_COLUMNS * TILE_COLUMNS * k + at * TILE_COLUMNS +
                                   j % TILE_COLUMNS,
                               TILE_COLUMNS);
  }
  for (int64_t j = 0; j < whole; j += TILE_COLUMNS)
    NAME(pack_rows)(NAME(part)(b, 0, j), done, k, TILE_COLUMNS, TILE_COLUMNS, to + j * k);
  if (whole < n)
    NAME(pack_rows)(NAME(part)(b, 0, whole), 0, k, n - whole,
                    n - whole > LANES ? TILE_COLUMNS : LANES, to + whole * k);
}

/* m x k of A, column after column. */
static void NAME(pack_a)(NAME(matrix) a, int64_t m, int64_t k, REAL *to) {
  if (a.rs == 1 && m == GC_TILE_ROWS)
    for (int64_t at = 0; at < k; at++)
      memcpy(to + at * GC_TILE_ROWS, a.at + at * a.cs, GC_TILE_ROWS * sizeof(REAL));
  else
    for (int64_t i = 0; i < m; i++)
      for (int64_t at = 0; at < k; at++)
        to[at * m + i] = a.at[i * a.rs + at * a.cs];
}
