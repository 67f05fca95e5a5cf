/* conv2d_tile.h -- the innermost loops of convolutions: tiles of C = A B as in gemm_tile.h, but the
 * rows of the matrix of windows lie at offsets in a copy of the image. Each accumulator sees its
 * terms in rising order, so that its bits do not depend on where in which tile it lies. */
#ifndef GC_CONV2D_TILE_H
#define GC_CONV2D_TILE_H

#include "../matmul/gemm_tile.h"
#include "../type.h"

#if GC_VECTOR_BYTES == 64 || defined(__aarch64__)
#define GC_CONV2D_ROWS 12
#define GC_CONV2D_TILES(X, w)                                                                      \
  X(1, w) X(2, w) X(3, w) X(4, w) X(5, w) X(6, w) X(7, w) X(8, w) X(9, w) X(10, w) X(11, w) X(12, w)
#else
#define GC_CONV2D_ROWS 6
#define GC_CONV2D_TILES(X, w) X(1, w) X(2, w) X(3, w) X(4, w) X(5, w) X(6, w)
#endif

/* Results are numbers like those that are multiplied; where those are pairs of bfloat16
 * (conv2d_pairs.h), the sums are floats, and each is rounded once. */
#ifdef GC_PAIRS
#define RESULT uint16_t
#else
#define RESULT REAL
#endif

/* n results of a vector. */
static inline void NAME(put_results)(NAME(vec) x, int64_t n, RESULT *to) {
#ifdef GC_PAIRS
  const __m256i half = (__m256i)_mm512_cvtneps_pbh((__m512)x);
  if (n < LANES)
    _mm256_mask_storeu_epi16(to, (__mmask16)LANE_BITS(n), half);
  else
    _mm256_storeu_si256((__m256i *)(void *)to, half);
#else
  if (n < LANES)
    NAME(store_part)(to, x, n);
  else
    *(NAME(loose) *)to = x;
#endif
}

/* A vector of results as numbers. */
static inline NAME(vec) NAME(take_results)(const RESULT *from) {
#ifdef GC_PAIRS
  const __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)from);
  return (NAME(vec))_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
#else
  return *(const NAME(loose) *)from;
#endif
}

/* ---- m filters at w vectors of positions: the weights of step k lie at weight[k * m], what they
 * meet at from[j][offset[k]]; the sums of filter i, and its bias, go to to[j] + i * ld; of the last
 * vector n elements are wanted ---- */

typedef struct {
  int64_t depth;
  const int64_t *offset;
  const REAL *from[2];
  RESULT *to[2];
  int64_t ld, n;
} NAME(spot);

typedef void NAME(spot_fn)(const NAME(spot) *, const REAL *weight, int64_t at, const REAL *bias);

/* The sums of filter i. */
static inline __attribute__((always_inline)) void
NAME(put_spot)(const int w, const NAME(spot) * s, NAME(vec) * sum, int64_t i, const REAL *bias) {
  const REAL start = bias ? bias[i] : 0;
  GC_UNROLL for (int j = 0; j < w; j++) {
    if (bias)
      sum[j] += start - (NAME(vec)){0};
    NAME(put_results)(sum[j], j == w - 1 ? s->n : LANES, s->to[j] + i * s->ld);
  }
}

static inline __attribute__((always_inline)) void NAME(spot_tile)(const int m, const int w,
                                                                  const NAME(spot) * s,
                                                                  const REAL *weight, int64_t at,
                                                                  const REAL *bias) {
  NAME(vec) sum[GC_CONV2D_ROWS][2], row[2];
  GC_UNROLL for (int i = 0; i < m; i++) GC_UNROLL for (int j = 0; j < w; j++) sum[i][j] =
      (NAME(vec)){0};
  const int64_t *offset = s->offset, *const end = offset + s->depth;
  const REAL *const from = s->from[0], *const from_1 = s->from[1];
  for (; offset < end; offset++, weight += m) {
    row[0] = *(const NAME(loose) *)(from + *offset);
    if (w > 1)
      row[1] = *(const NAME(loose) *)(from_1 + *offset);
    GC_UNROLL for (int i = 0; i < m; i++) {
      const NAME(vec) x = SPREAD(weight[i]);
      GC_UNROLL for (int j = 0; j < w; j++) sum[i][j] = MADD(x, row[j], sum[i][j]);
    }
  }
  GC_UNROLL for (int i = 0; i < m; i++) NAME(put_spot)(w, s, sum[i], at + i, bias);
}

#define SPOT(m, w)                                                                                 \
  static void NAME(spot_##m##_##w)(const NAME(spot) * s, const REAL *weight, int64_t at,           \
                                   const REAL *bias) {                                             \
    NAME(spot_tile)(m, w, s, weight, at, bias);                                                    \
  }
GC_CONV2D_TILES(SPOT, 1)
GC_CONV2D_TILES(SPOT, 2)
#define SPOT_ENTRY(m, w) NAME(spot_##m##_##w),
/* [vectors - 1][filters - 1] */
static NAME(spot_fn) *const NAME(spots)[2][GC_CONV2D_ROWS] = {{GC_CONV2D_TILES(SPOT_ENTRY, 1)},
                                                              {GC_CONV2D_TILES(SPOT_ENTRY, 2)}};

/* ---- m rows of the matrix of windows by w vectors of filters, summed over positions: the rows lie
 * at x + offset[i], and go on for `lines` of n positions, `line` apart, of each of `images` images,
 * `image` apart; what they meet follows at grad, vector after vector, `positions` an image ---- */

typedef struct {
  int64_t x, grad; /* where it begins, grad in positions */
  int64_t images, image, positions, lines, line, n;
  int64_t skip; /* positions left out behind each line, for rows that lie equally far apart */
  bool add;     /* to what is there already */
} NAME(stretch);

typedef void NAME(taps_fn)(const NAME(stretch) *, const REAL *x, const int64_t *offset,
                           const REAL *grad, REAL *c, int64_t ldc);

static inline __attribute__((always_inline)) void NAME(put_taps)(const int m, const int w,
                                                                 const NAME(stretch) * s,
                                                                 NAME(vec) (*sum)[2], REAL *c,
                                                                 int64_t ldc) {
  GC_UNROLL for (int i = 0; i < m; i++) GC_UNROLL for (int j = 0; j < w; j++) {
    REAL *const to = c + i * ldc + j * LANES;
    if (s->add)
      sum[i][j] += *(const NAME(loose) *)to;
    *(NAME(loose) *)to = sum[i][j];
  }
}

static inline __attribute__((always_inline)) void
NAME(taps_tile)(const int m, const int w, const NAME(stretch) * s, const REAL *x,
                const int64_t *offset, const REAL *grad, REAL *c, int64_t ldc) {
  NAME(vec) sum[GC_CONV2D_ROWS][2], row[2];
  GC_UNROLL for (int i = 0; i < m; i++) GC_UNROLL for (int j = 0; j < w; j++) sum[i][j] =
      (NAME(vec)){0};
  for (int64_t image = 0; image < s->images; image++) {
    const REAL *g = grad + (s->grad + image * s->positions) * w * LANES;
    for (int64_t line = 0; line < s->lines; line++) {
      /* Counted up to 0, so that the end needs no register. */
      const REAL *const end = x + s->x + image * s->image + line * s->line + s->n;
      const REAL *rows[GC_CONV2D_ROWS];
      GC_UNROLL for (int i = 0; i < m; i++) rows[i] = end + offset[i];
      for (int64_t p = -s->n; p < 0; p++, g += w * LANES) {
        GC_UNROLL for (int j = 0; j < w; j++) row[j] = *(const NAME(loose) *)(g + j * LANES);
        GC_UNROLL for (int i = 0; i < m; i++) {
          const NAME(vec) v = SPREAD(rows[i][p]);
          GC_UNROLL for (int j = 0; j < w; j++) sum[i][j] = MADD(v, row[j], sum[i][j]);
        }
      }
    }
  }
  NAME(put_taps)(m, w, s, sum, c, ldc);
}

#define TAPS_BY(tile, m, w)                                                                        \
  static void NAME(tile##_##m##_##w)(const NAME(stretch) * s, const REAL *x,                       \
                                     const int64_t *offset, const REAL *grad, REAL *c,             \
                                     int64_t ldc) {                                                \
    NAME(tile##_tile)(m, w, s, x, offset, grad, c, ldc);                                           \
  }
#define TAPS(m, w) TAPS_BY(taps, m, w)
GC_CONV2D_TILES(TAPS, 1)
GC_CONV2D_TILES(TAPS, 2)
#define TAPS_ENTRY(m, w) NAME(taps_##m##_##w),
/* [vectors - 1][rows - 1] */
static NAME(taps_fn) *const NAME(taps)[2][GC_CONV2D_ROWS] = {{GC_CONV2D_TILES(TAPS_ENTRY, 1)},
                                                             {GC_CONV2D_TILES(TAPS_ENTRY, 2)}};

/* ---- the same where row i lies at x + i * offset[0]: short lines begin with little ado, as there
 * is one pointer for three rows, to which x86 adds 0, once or twice the distance for free ---- */

static inline __attribute__((always_inline)) void
NAME(even_tile)(const int m, const int w, const NAME(stretch) * s, const REAL *x,
                const int64_t *offset, const REAL *grad, REAL *c, int64_t ldc) {
  NAME(vec) sum[GC_CONV2D_ROWS][2], row[2];
  GC_UNROLL for (int i = 0; i < m; i++) GC_UNROLL for (int j = 0; j < w; j++) sum[i][j] =
      (NAME(vec)){0};
  const int64_t apart = offset[0], n = s->n, next = s->line - n, skip = s->skip * w * LANES;
  for (int64_t image = 0; image < s->images; image++) {
    const REAL *g = grad + (s->grad + image * s->positions) * w * LANES;
    const REAL *rows[(GC_CONV2D_ROWS + 2) / 3];
    GC_UNROLL for (int i = 0; i < m; i += 3) rows[i / 3] = x + s->x + image * s->image + i * apart;
    for (int64_t line = s->lines; line > 0; line--, g += skip) {
      for (int64_t p = n; p > 0; p--, g += w * LANES) {
        GC_UNROLL for (int j = 0; j < w; j++) row[j] = *(const NAME(loose) *)(g + j * LANES);
        GC_UNROLL for (int i = 0; i < m; i++) {
          const NAME(vec) v = SPREAD(rows[i / 3][i % 3 * apart]);
          GC_UNROLL for (int j = 0; j < w; j++) sum[i][j] = MADD(v, row[j], sum[i][j]);
        }
        GC_UNROLL for (int i = 0; i < m; i += 3) rows[i / 3]++;
      }
      GC_UNROLL for (int i = 0; i < m; i += 3) rows[i / 3] += next;
    }
  }
  NAME(put_taps)(m, w, s, sum, c, ldc);
}

#define EVEN_TAPS(m, w) TAPS_BY(even, m, w)
GC_CONV2D_TILES(EVEN_TAPS, 1)
GC_CONV2D_TILES(EVEN_TAPS, 2)
#define EVEN_ENTRY(m, w) NAME(even_##m##_##w),
static NAME(taps_fn) *const NAME(even_taps)[2][GC_CONV2D_ROWS] = {{GC_CONV2D_TILES(EVEN_ENTRY, 1)},
                                                                  {GC_CONV2D_TILES(EVEN_ENTRY, 2)}};

#endif
