/* conv2d_pack.h -- the weights of a sweep in panels of filters: of filter after filter the weights
 * of each step lie together. */
#ifndef GC_CONV2D_PACK_H
#define GC_CONV2D_PACK_H

#include "../kernel.h"
#include "../matmul/gemm_pack.h"
#include "../matmul/gemm_tile.h"
#include "../type.h"
#include "conv2d_plan.h"
#include "conv2d_shape.h"

enum { GC_CONV2D_WINDOW = 64 /* taps whose places are kept on the stack */ };

/* Where a sweep has the first channel's weights of each tap (-1: nowhere), and where those of its
 * row tap end; both in steps. */
typedef struct {
  bool falling;
  int64_t window, first[GC_CONV2D_WINDOW], end[GC_CONV2D_WINDOW];
} gc_places;

static inline int64_t gc_weight_tap(const gc_conv2d *s, const gc_sweep *sweep, int64_t t,
                                    int64_t u) {
  return (sweep->row.first + t * sweep->row.next) * s->kw + sweep->column.first +
         u * sweep->column.next;
}

static inline void gc_find_places(const gc_conv2d *s, const gc_sweep *sweep, gc_places *to) {
  const int64_t line = sweep->channels * sweep->column.taps;
  for (int64_t tap = 0; tap < to->window; tap++)
    to->first[tap] = -1;
  for (int64_t t = 0; t < sweep->row.taps; t++)
    for (int64_t u = 0; u < sweep->column.taps; u++) {
      const int64_t tap = gc_weight_tap(s, sweep, t, u);
      to->first[tap] = t * line + u, to->end[tap] = (t + 1) * line;
    }
}

/* Columns q .. q + n - 1 of rows `next` apart as rows of a square; `safe` elements may be read of
 * each. */
static inline void NAME(turn_square)(const REAL *from, int64_t next, int64_t rows, int64_t q,
                                     int64_t safe, int64_t n, REAL *square) {
  if (q + LANES <= safe) {
    NAME(transpose_rows)(from + q, next, rows, square, LANES);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < rows; j++)
      square[i * LANES + j] = from[j * next + q + i];
}

/* One square: weights of filters first .. first + rows - 1 of m for the taps from `tap` on, which
 * belong to step `step` and, after the last tap, to one `apart` steps later. Vectors write past a
 * step, into those of this row tap that are written later. */
static inline void NAME(put_square)(const REAL *square, int64_t n, const gc_places *places,
                                    int64_t tap, int64_t step, int64_t apart, int64_t m,
                                    int64_t first, REAL *packed) {
  /* The gradient of the image meets the taps in falling order, and those of one channel at a time.
   */
  for (int64_t i = places->falling ? n - 1 : 0; i >= 0 && i < n; i += places->falling ? -1 : 1) {
    const int64_t own = places->falling ? tap + i : tap;
    if (places->first[own] >= 0) {
      const int64_t place = (places->first[own] + step) * m + first;
      const NAME(vec) x = *(const NAME(vec) *)(square + i * LANES);
      if (place + LANES <= places->end[own] * m)
        *(NAME(loose) *)(packed + place) = x;
      else
        NAME(store_part)(packed + place, x, gc_min(LANES, m - first));
    }
    if (!places->falling && ++tap == places->window)
      tap = 0, step += apart;
  }
}

/* `columns` weights of each of m filters, `next` apart, those of one channel after the other, which
 * begin at step `step`, the next channel's `apart` steps later. */
static void NAME(pack_panel_of)(const REAL *from, int64_t next, int64_t m, int64_t columns,
                                int64_t safe, const gc_places *places, int64_t step, int64_t apart,
                                REAL *packed) {
  _Alignas(GC_VECTOR_BYTES)
      REAL square[GC_VECTOR_BYTES / sizeof(REAL) * (GC_VECTOR_BYTES / sizeof(REAL))] = {0};
  const int64_t squares = gc_ceil_div(columns, LANES);
  for (int64_t i = 0; i < squares; i++) {
    const int64_t q = (places->falling ? squares - 1 - i : i) * LANES;
    const int64_t n = gc_min(LANES, columns - q);
    const int64_t tap = q % places->window, channel = q / places->window;
    for (int64_t rows = m, first; rows > 0; rows = first) {
      first = (rows - 1) / LANES * LANES; /* the last filters first, as they write too far */
      NAME(turn_square)(from + first * next, next, rows - first, q, safe, n, square);
      NAME(put_square)(square, n, places, tap, step + channel * apart, apart, m, first, packed);
    }
  }
}

/* The same an element at a time. */
static void NAME(pack_steps)(const gc_pass *p, const gc_sweep *sweep, const REAL *weight, int64_t m,
                             REAL *at) {
  const gc_conv2d *s = &p->s;
  const int64_t window = s->kh * s->kw, filter = p->back ? window : s->depth;
  const int64_t channel = p->back ? s->depth : window;
  for (int64_t t = 0; t < sweep->row.taps; t++)
    for (int64_t c = 0; c < sweep->channels; c++)
      for (int64_t u = 0; u < sweep->column.taps; u++, at += m) {
        const REAL *w = weight + c * channel + gc_weight_tap(s, sweep, t, u);
        for (int64_t j = 0; j < m; j++)
          at[j] = w[j * filter];
      }
}

/* Panels from .. to - 1 of one group's weights for one sweep. A filter's weights lie in one piece,
 * or, for the gradient of the image, those of one of its channels. */
static void NAME(pack_filters)(const gc_pass *p, const gc_sweep *sweep, const REAL *weight,
                               int64_t from, int64_t to, REAL *packed) {
  const gc_conv2d *s = &p->s;
  const int64_t window = s->kh * s->kw, filter = p->back ? window : s->depth;
  const int64_t columns = filter, pieces = p->back ? s->oc : 1;
  const REAL *const end = weight + s->oc * s->depth;
  /* Of several sweeps each has but a few of the taps. */
  const bool turn =
      p->sweeps == 1 && window <= GC_CONV2D_WINDOW && columns >= LANES / 4 && p->panel > 1;
  gc_places places;
  places.window = window, places.falling = p->back;
  if (turn)
    gc_find_places(s, sweep, &places);
  for (int64_t i = from * p->panel; i < gc_min(to * p->panel, p->filters); i += p->panel) {
    const int64_t m = gc_min(p->panel, p->filters - i);
    REAL *const at = packed + i * sweep->depth;
    if (!turn)
      NAME(pack_steps)(p, sweep, weight + i * filter, m, at);
    for (int64_t c = 0; turn && c < pieces; c++) {
      const REAL *const w = weight + i * filter + c * s->depth;
      for (int64_t j = 0; p->back && j < m * filter; j += 64 / (int64_t)sizeof(REAL))
        GC_FETCH(w + j, s->depth);
      NAME(pack_panel_of)(w, filter, m, columns, end - w - (m - 1) * filter, &places,
                          c * sweep->column.taps, sweep->column.taps, at);
    }
  }
}

#endif
