/* affine.h -- images read at places of their own: x (n, c, h, w), maps (n, 6) -> y (n, c, h, w).
 * y[i, j] is x at row m0 i + m1 j + m2 and column m3 i + m4 j + m5, weighed bilinearly between the
 * four pixels around it; outside lie zeros. A task owns one image. */
#ifndef GC_AFFINE_H
#define GC_AFFINE_H

#include "../kernel.h"
#include "../type.h"

static int NAME(plan_affine)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  GC_REQUIRE(t[0].shape[2] <= 1 << 24 && t[0].shape[3] <= 1 << 24, 0, "at most 2^24 rows, columns");
  return gc_plan_simple(plan, gc_numel(&t[0]) ? t[0].shape[0] : 0);
}

/* Where one pixel comes from: the four around it, -1 outside, and their weights. */
typedef struct {
  int64_t at[4];
  REAL weight[4];
} NAME(affine_place);

/* False where all four lie outside, as for a place that is no number. */
static inline bool NAME(affine_find)(REAL row, REAL column, int64_t h, int64_t w,
                                     NAME(affine_place) * p) {
  if (!(row > -1 && row < (REAL)h && column > -1 && column < (REAL)w))
    return false;
  const int64_t top = (int64_t)(row + 1) - 1, left = (int64_t)(column + 1) - 1;
  const REAL down = row - (REAL)top, right = column - (REAL)left;
  for (int64_t k = 0; k < 4; k++) {
    const int64_t r = top + k / 2, c = left + k % 2;
    p->at[k] = r >= 0 && r < h && c >= 0 && c < w ? r * w + c : -1;
    p->weight[k] = (k / 2 ? down : 1 - down) * (k % 2 ? right : 1 - right);
  }
  return true;
}

/* Whether whole pixels are moved: a shift, with or without a flip in each direction. */
static inline bool NAME(affine_whole)(const REAL *m) {
  const REAL most = 0x1p24;
  return m[1] == 0 && m[3] == 0 && (m[0] == 1 || m[0] == -1) && (m[4] == 1 || m[4] == -1) &&
         m[2] > -most && m[2] < most && m[5] > -most && m[5] < most &&
         (REAL)(int64_t)m[2] == m[2] && (REAL)(int64_t)m[5] == m[5];
}

/* One plane of such a map: y[i, j] = x[down i + top, right j + left]. */
static void NAME(affine_move)(const REAL *x, REAL *y, int64_t h, int64_t w, const REAL *m) {
  const int64_t down = (int64_t)m[0], top = (int64_t)m[2];
  const int64_t right = (int64_t)m[4], left = (int64_t)m[5];
  const int64_t from = gc_max(0, right > 0 ? -left : left - w + 1);
  const int64_t to = gc_min(w, right > 0 ? w - left : left + 1);
  for (int64_t i = 0; i < h; i++, y += w) {
    const int64_t row = down * i + top;
    memset(y, 0, (size_t)w * sizeof(REAL));
    if (row < 0 || row >= h || from >= to)
      continue;
    const REAL *source = x + row * w;
    if (right > 0)
      memcpy(y + from, source + (left + from), (size_t)(to - from) * sizeof(REAL));
    else
      for (int64_t j = from; j < to; j++)
        y[j] = source[left - j];
  }
}

static void NAME(run_affine)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t c = t[0].shape[1], h = t[0].shape[2], w = t[0].shape[3], image = job->task;
  const REAL *x = (const REAL *)gc_first(&t[0]) + image * c * h * w;
  const REAL *m = (const REAL *)gc_first(&t[1]) + image * 6;
  REAL *y = (REAL *)gc_first(&t[2]) + image * c * h * w;
  if (NAME(affine_whole)(m)) {
    for (int64_t plane = 0; plane < c; plane++)
      NAME(affine_move)(x + plane * h * w, y + plane * h * w, h, w, m);
    return;
  }
  for (int64_t at = 0; at < h * w; at++) {
    const REAL i = (REAL)(at / w), j = (REAL)(at % w);
    const REAL row = m[0] * i + m[1] * j + m[2], column = m[3] * i + m[4] * j + m[5];
    NAME(affine_place) place;
    const bool inside = NAME(affine_find)(row, column, h, w, &place);
    for (int64_t plane = 0; plane < c; plane++) {
      REAL sum = row != row || column != column ? (REAL)NAN : 0;
      for (int32_t k = 0; inside && k < 4; k++)
        if (place.at[k] >= 0 && place.weight[k] != 0)
          sum += place.weight[k] * x[plane * h * w + place.at[k]];
      y[plane * h * w + at] = sum;
    }
  }
}

#endif
