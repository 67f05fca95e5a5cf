/* gemm_tile.h -- the innermost loop of every matrix product: a tile of m rows and w vectors of C is
 * kept in registers while k runs. Each element of C has one accumulator that sees k in rising
 * order, so its bits do not depend on where in which tile it lies. */
#ifndef GC_GEMM_TILE_H
#define GC_GEMM_TILE_H

#include "../type.h"

/* GC_TILE_ROWS x GC_TILE_VECTORS accumulators, w vectors of B and a broadcast element of A fill the
 * register file: 32 registers with AVX-512 and on Arm, 16 elsewhere. */
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

#define LANES ((int64_t)(GC_VECTOR_BYTES / sizeof(REAL)))
#define TILE_COLUMNS (GC_TILE_VECTORS * LANES)

typedef REAL NAME(vec) __attribute__((vector_size(GC_VECTOR_BYTES)));
/* The same anywhere in memory. */
typedef REAL NAME(loose)
    __attribute__((vector_size(GC_VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

/* MADD(a, b, c) = a * b + c, rounded once where the processor can. SPREAD(x): x in every lane.
 * Pairs of bfloat16 (matmul_pairs.h) look like floats, and no arithmetic may be done with what they
 * look like. */
#if defined(GC_PAIRS)
#define SPREAD(x) ((NAME(vec))_mm512_set1_ps(x))
#else
#define SPREAD(x) ((x) - (NAME(vec)){0})
#endif
#if defined(GC_PAIRS)
#define MADD(a, b, c) ((NAME(vec))_mm512_dpbf16_ps((__m512)(c), (__m512bh)(a), (__m512bh)(b)))
#elif !defined(GC_HAS_FMA)
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

/* PART_LOAD(from, n) and PART_STORE(to, x, n): n elements of a vector, where there are masks. */
#if defined(GC_HAS_FMA) && defined(__x86_64__) && GC_VECTOR_BYTES == 64
#define LANE_BITS(n) ((1u << (n)) - 1)
#ifdef GC_IS_FLOAT
#define PART_LOAD(from, n) _mm512_maskz_loadu_ps((__mmask16)LANE_BITS(n), from)
#define PART_STORE(to, x, n) _mm512_mask_storeu_ps(to, (__mmask16)LANE_BITS(n), x)
#else
#define PART_LOAD(from, n) _mm512_maskz_loadu_pd((__mmask8)LANE_BITS(n), from)
#define PART_STORE(to, x, n) _mm512_mask_storeu_pd(to, (__mmask8)LANE_BITS(n), x)
#endif
#elif defined(GC_HAS_FMA) && defined(__x86_64__)
#ifdef GC_IS_FLOAT
#define LANE_MASK(n)                                                                               \
  _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define PART_LOAD(from, n) _mm256_maskload_ps(from, LANE_MASK(n))
#define PART_STORE(to, x, n) _mm256_maskstore_ps(to, LANE_MASK(n), x)
#else
#define LANE_MASK(n) _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3))
#define PART_LOAD(from, n) _mm256_maskload_pd(from, LANE_MASK(n))
#define PART_STORE(to, x, n) _mm256_maskstore_pd(to, LANE_MASK(n), x)
#endif
#endif

/* The first n < LANES elements of a vector in memory. */
static inline NAME(vec) NAME(load_part)(const REAL *from, int64_t n) {
#ifdef PART_LOAD
  return (NAME(vec))PART_LOAD(from, n);
#else
  _Alignas(GC_VECTOR_BYTES) REAL line[GC_VECTOR_BYTES / sizeof(REAL)] = {0};
  for (int64_t j = 0; j < n; j++)
    line[j] = from[j];
  return *(const NAME(vec) *)line;
#endif
}

static inline void NAME(store_part)(REAL *to, NAME(vec) x, int64_t n) {
#ifdef PART_STORE
  PART_STORE(to, x, n);
#else
  _Alignas(GC_VECTOR_BYTES) REAL line[GC_VECTOR_BYTES / sizeof(REAL)];
  *(NAME(vec) *)line = x;
  for (int64_t j = 0; j < n; j++)
    to[j] = line[j];
#endif
}

/* Element (i, k) of A lies at a[i * rs + k * cs]; row k of B at b + k * ldb, w vectors wide; row i
 * of C at c + i * ldc, n elements of it are written, which fill all but the last of w vectors:
 * C = A B, or C += A B. */
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
      const NAME(vec) x = SPREAD(rows[i / 3][i % 3 * rs]);
      GC_UNROLL for (int j = 0; j < w; j++) sum[i][j] = MADD(x, row[j], sum[i][j]);
    }
    GC_UNROLL for (int i = 0; i < m; i += 3) rows[i / 3] += cs;
    b += ldb;
  }
  GC_UNROLL for (int i = 0; i < m; i++) GC_UNROLL for (int j = 0; j < w; j++) {
    REAL *const to = c + i * ldc + j * LANES;
    if (j < w - 1 || n == w * LANES) {
      if (add)
        sum[i][j] += *(const NAME(loose) *)to;
      *(NAME(loose) *)to = sum[i][j];
    } else {
      if (add)
        sum[i][j] += NAME(load_part)(to, n - j * LANES);
      NAME(store_part)(to, sum[i][j], n - j * LANES);
    }
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

#endif
