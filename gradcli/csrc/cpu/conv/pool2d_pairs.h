/* pool2d_pairs.h -- the pooling that almost every network does, windows of 2 x 2 side by side:
 * whole vectors of windows. The same results as the loops of pool2d.h. */
#ifndef GC_POOL2D_PAIRS_H
#define GC_POOL2D_PAIRS_H

#include "../matmul/gemm_pack.h"
#include "../matmul/gemm_tile.h"
#include "../type.h"
#include "conv2d_copy.h"
#include "pool2d_shape.h"

#ifdef GC_IS_FLOAT
#if GC_VECTOR_BYTES == 64
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif GC_VECTOR_BYTES == 32
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#else
#define ODD 1, 3, 5, 7
#endif
#else
#if GC_VECTOR_BYTES == 64
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#elif GC_VECTOR_BYTES == 32
#define ODD 1, 3, 5, 7
#else
#define ODD 1, 3
#endif
#endif

/* As many places in a plane as a vector has elements. */
typedef int64_t NAME(places)
    __attribute__((vector_size(8 * GC_VECTOR_BYTES / sizeof(REAL)), aligned(8), may_alias));

static _Alignas(64) const LANE_TYPE
    NAME(evens)[16] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};

static inline bool NAME(in_pairs)(const gc_pool2d *s) {
  const bool pairs = s->kh == 2 && s->kw == 2 && s->sh == 2 && s->sw == 2 && s->dh == 1;
  const bool inside = s->ph == 0 && s->pw == 0 && 2 * s->oh <= s->h && 2 * s->ow <= s->w;
  return pairs && s->dw == 1 && inside && s->h * s->w <= INT32_MAX;
}

/* The pixels of LANES windows in one of their two rows: the left ones and the right ones. Of those
 * behind `end` there is nothing to read, and zeros take their place. */
static inline void NAME(take_pairs)(const REAL *row, const REAL *end, NAME(vec) * left,
                                    NAME(vec) * right) {
  REAL line[2 * GC_VECTOR_BYTES / sizeof(REAL)] = {0};
  if (end - row < 2 * LANES) {
    memcpy(line, row, (size_t)(end - row) * sizeof(REAL));
    row = line;
  }
  const NAME(vec) low = *(const NAME(loose) *)row, high = *(const NAME(loose) *)(row + LANES);
  *left = PICK(low, high, EVEN);
  *right = PICK(low, high, ODD);
}

/* The maxima of n <= LANES windows that begin at `row`, whose place in the plane is `place`; there
 * is room for n, or for LANES of them. */
static inline void NAME(max_pairs)(const REAL *row, const REAL *end, int64_t width, int64_t place,
                                   int64_t n, REAL *out, int64_t *index) {
  NAME(vec) pixel[4];
  NAME(take_pairs)(row, end, &pixel[0], &pixel[1]);
  NAME(take_pairs)(row + width, end, &pixel[2], &pixel[3]);
  const int64_t steps[4] = {0, 1, width, width + 1};
  NAME(vec) top = pixel[0];
  const NAME(lanes) at = *(const NAME(lanes) *)NAME(evens) + (LANE_TYPE)place;
  NAME(lanes) best = at;
  GC_UNROLL for (int k = 1; k < 4; k++) {
    /* Greater, or the first NaN. */
    const NAME(lanes) wins = ~(NAME(lanes))(pixel[k] <= top) & (NAME(lanes))(top == top);
    const NAME(lanes) bits = (wins & (NAME(lanes))pixel[k]) | (~wins & (NAME(lanes))top);
    top = (NAME(vec))bits;
    best = (wins & (at + (LANE_TYPE)steps[k])) | (~wins & best);
  }
  if (n == LANES) {
    *(NAME(loose) *)out = top;
    *(NAME(places) *)index = __builtin_convertvector(best, NAME(places));
    return;
  }
  REAL line[GC_VECTOR_BYTES / sizeof(REAL)];
  int64_t where[GC_VECTOR_BYTES / sizeof(REAL)];
  *(NAME(loose) *)line = top;
  *(NAME(places) *)where = __builtin_convertvector(best, NAME(places));
  memcpy(out, line, (size_t)n * sizeof(REAL));
  memcpy(index, where, (size_t)n * sizeof(int64_t));
}

static void NAME(max_pairs_plane)(const gc_pool2d *s, const REAL *x, REAL *out, int64_t *index) {
  const REAL *const end = x + s->h * s->w;
  for (int64_t oh = 0; oh < s->oh; oh++, out += s->ow, index += s->ow)
    for (int64_t ow = 0; ow < s->ow; ow += LANES) {
      const int64_t place = 2 * oh * s->w + 2 * ow;
      const int64_t n = s->oh * s->ow - (oh * s->ow + ow) < LANES ? s->ow - ow : LANES;
      NAME(max_pairs)(x + place, end, s->w, place, n, out + ow, index + ow);
    }
}

#endif
