/* gemm_tile.h -- the innermost loop of every matrix product: a tile of m rows and w vectors of C is
 * kept in registers while k runs. Each element of C has one accumulator that sees k in rising
 * order, so its bits do not depend on where in which tile it lies. */

/* GC_TILE_ROWS x GC_TILE_VECTORS accumulators, w vectors of B and a broadcast element of A fill the
 * register file: 32 registers with AVX-512 and on Arm, 16 elsewhere. */
#ifndef GC_TILE_ROWS
#if GC_VECTOR_BYTES == 64 || defined(__aarch64__)
#define GC_TILE_ROWS 12
#else
#define GC_TILE_ROWS 6
#endif
#define GC_TILE_VECTORS 2
#if defined(__clang__)
#define GC_UNROLL _Pragma("unroll")
#else
#define GC_UNROLL _Pragma("GCC unroll 16")
#endif
#if defined(GC_HAS_FMA) && defined(__x86_64__)
#include <immintrin.h>
#elif defined(GC_HAS_FMA) && defined(__aarch64__)
#include <arm_neon.h>
#endif
#endif

#define LANES ((int64_t)(GC_VECTOR_BYTES / sizeof(REAL)))
#define TILE_COLUMNS (GC_TILE_VECTORS * LANES)

typedef REAL NAME(vec) __attribute__((vector_size(GC_VECTOR_BYTES)));
/* The same anywhere in memory. */
typedef REAL NAME(loose)
    __attribute__((vector_size(GC_VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

/* MADD(a, b, c) = a * b + c, rounded once where the processor can. */
#undef MADD
#if !defined(GC_HAS_FMA)
#define MADD(a, b, c) ((a) * (b) + (c))
#elif defined(__x86_64__) && GC_VECTOR_BYTES == 64 && defined(GC_IS_FLOAT)
#define MADD(a, b, c) _mm512_fmadd_ps(a, b, c)
#elif defined(__x86_64__) && GC_VECTOR_BYTES == 64
#define MADD(a, b, c) _mm512_fmadd_pd(a, b, c)
#elif defined(__x86_64__) && defined(GC_IS_FLOAT)
#define MADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#elif defined(__x86_64__)
#define MADD(a, b, c) _mm256_fmadd_pd(a, b, c)
#elif defined(GC_IS_FLOAT)
#define MADD(a, b, c) ((NAME(vec))vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#else
#define MADD(a, b, c) ((NAME(vec))vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#endif

/* Element (i, k) of A lies at a[i * rs + k * cs]; row k of B at b + k * ldb, w vectors wide; row i
 * of C at c + i * ldc, n <= w vectors of it are written: C = A B, or C += A B. */
typedef void NAME(tile_fn)(int64_t k, const REAL *a, int64_t rs, int64_t cs, const REAL *b,
                           int64_t ldb, REAL *c, int64_t ldc, int64_t n, bool add);

static inline __attribute__((always_inline)) void NAME(tile)(const int m, const int w, int64_t k,
                                                             const REAL *a, int64_t rs, int64_t cs,
                                                             const REAL *b, int64_t ldb, REAL *c,
                                                             int64_t ldc, int64_t n, bool add) {
  NAME(vec) sum[GC_TILE_ROWS][GC_TILE_VECTORS], row[GC_TILE_VECTORS];
  GC_UNROLL for (int i = 0; i < m; i++) GC_UNROLL for (int j = 0; j < w; j++) sum[i][j] =
      (NAME(vec)){0};
  /* One pointer for three rows: x86 adds 0, rs or 2 * rs to it for free. */
  const REAL *rows[(GC_TILE_ROWS + 2) / 3];
  GC_UNROLL for (int i = 0; i < m; i += 3) rows[i / 3] = a + i * rs;
  for (int64_t at = 0; at < k; at++) {
    GC_UNROLL for (int j = 0; j < w; j++) row[j] = *(const NAME(loose) *)(b + j * LANES);
    GC_UNROLL for (int i = 0; i < m; i++) {
      const NAME(vec) x = rows[i / 3][i % 3 * rs] - (NAME(vec)){0};
      GC_UNROLL for (int j = 0; j < w; j++) sum[i][j] = MADD(x, row[j], sum[i][j]);
    }
    GC_UNROLL for (int i = 0; i < m; i += 3) rows[i / 3] += cs;
    b += ldb;
  }
  if (n == w * LANES) {
    GC_UNROLL for (int i = 0; i < m; i++) GC_UNROLL for (int j = 0; j < w; j++) {
      REAL *const to = c + i * ldc + j * LANES;
      if (add)
        sum[i][j] += *(const NAME(loose) *)to;
      *(NAME(loose) *)to = sum[i][j];
    }
    return;
  }
  GC_UNROLL for (int i = 0; i < m; i++) {
    _Alignas(GC_VECTOR_BYTES) REAL line[GC_TILE_VECTORS * GC_VECTOR_BYTES / sizeof(REAL)] = {0};
    GC_UNROLL for (int j = 0; j < w; j++) * (NAME(vec) *)(line + j * LANES) = sum[i][j];
    for (int64_t j = 0; j < n; j++)
      c[i * ldc + j] = add ? c[i * ldc + j] + line[j] : line[j];
  }
}

#define TILE(m, w)                                                                                 \
  static void NAME(tile_##m##_##w)(int64_t k, const REAL *a, int64_t rs, int64_t cs,               \
                                   const REAL *b, int64_t ldb, REAL *c, int64_t ldc, int64_t n,    \
                                   bool add) {                                                     \
    NAME(tile)(m, w, k, a, rs, cs, b, ldb, c, ldc, n, add);                                        \
  }
#define TILES_1_TO_6(X, w) X(1, w) X(2, w) X(3, w) X(4, w) X(5, w) X(6, w)
#if GC_TILE_ROWS == 12
#define TILES(X, w) TILES_1_TO_6(X, w) X(7, w) X(8, w) X(9, w) X(10, w) X(11, w) X(12, w)
#else
#define TILES(X, w) TILES_1_TO_6(X, w)
#endif
TILES(TILE, 1)
TILES(TILE, 2)

#define TILE_ENTRY(m, w) NAME(tile_##m##_##w),
/* [vectors - 1][rows - 1] */
static NAME(tile_fn) *const
    NAME(tiles)[GC_TILE_VECTORS][GC_TILE_ROWS] = {{TILES(TILE_ENTRY, 1)}, {TILES(TILE_ENTRY, 2)}};
