/* extreme.h -- maximum and minimum of (outer, n, inner) along n, with the place of the first
 * winner, and their gradients. A NaN wins over every number, and the first NaN stays. */
#ifndef GC_EXTREME_H
#define GC_EXTREME_H

#include "../kernel.h"
#include "../lines.h"
#include "../type.h"
#include "../walk.h"
#ifdef GC_IS_REAL
#include "../elementwise/vectors.h"
#include "../matmul/gemm_pack.h"
#include "../matmul/gemm_tile.h"
#endif

/* x -> values, indices */
static int NAME(plan_extreme)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  const gc_cut c = gc_cut_of(&t[0]);
  GC_REQUIRE(c.n > 0 || c.results == 0, 0, "at least one element to choose from");
  plan->phases = c.chunks > 1 ? 2 : 1;
  plan->tasks[0] = c.tasks;
  plan->tasks[1] = gc_ceil_div(c.results, GC_BLOCK);
  plan->shared_bytes = c.chunks > 1 ? c.chunks * c.results * (int64_t)sizeof(int64_t) : 0;
  return GC_OK;
}

#ifdef GC_IS_REAL
#define IS_NAN(v) ((v) != (v))
#else
#define IS_NAN(v) false
#endif
/* Numbers that are looked at together. */
#define GC_LOOK 64
#define WINS(v, ORDER, best) ((v)ORDER(best) || (IS_NAN(v) && !IS_NAN(best)))

/* The number that wins a row, be it at whichever place, and whether there is a NaN. */
#ifdef GC_IS_REAL
#define TOP_OF_ROW(name, ORDER, FIRST_OF)                                                          \
  static REAL NAME(name##_top)(const REAL *x, int64_t n, bool *nan) {                              \
    NAME(vec) best[4], odd[4] = {{0}};                                                             \
    int64_t i = 0;                                                                                 \
    REAL top = x[0];                                                                               \
    GC_UNROLL for (int k = 0; k < 4; k++) best[k] = SPREAD(top);                                   \
    for (; i + 4 * LANES <= n; i += 4 * LANES)                                                     \
      GC_UNROLL for (int k = 0; k < 4; k++) {                                                      \
        const NAME(vec) v = *(const NAME(loose) *)(x + i + k * LANES);                             \
        best[k] = FIRST_OF(v, best[k]);                                                            \
        odd[k] += v; /* no number where there is a NaN, or where it may be */                      \
      }                                                                                            \
    best[0] = FIRST_OF(FIRST_OF(best[0], best[1]), FIRST_OF(best[2], best[3]));                    \
    odd[0] = (odd[0] + odd[1]) + (odd[2] + odd[3]);                                                \
    GC_UNROLL for (int64_t round = 1; round < LANES; round *= 2) best[0] =                         \
        FIRST_OF(PICK(best[0], best[0], LOW), PICK(best[0], best[0], HIGH));                       \
    const REAL sum = NAME(sum_of_each)(odd[0]);                                                    \
    bool any = sum - sum != 0;                                                                     \
    top = best[0][0] ORDER top ? best[0][0] : top;                                                 \
    for (; i < n; i++) {                                                                           \
      top = x[i] ORDER top ? x[i] : top;                                                           \
      any |= IS_NAN(x[i]);                                                                         \
    }                                                                                              \
    for (i = 0; any && !*nan && i < n; i += GC_LOOK) {                                             \
      int there = 0;                                                                               \
      for (int64_t k = i; k < gc_min(n, i + GC_LOOK); k++)                                         \
        there |= IS_NAN(x[k]);                                                                     \
      *nan |= there;                                                                               \
    }                                                                                              \
    return top;                                                                                    \
  }

/* The places of the winners of COLUMNS lines that lie side by side; false where there is NaN or
 * infinity, or places are no numbers of a lane. */
#define COLUMNS (4 * LANES)
#define OF_COLUMNS(name, ORDER, FIRST_OF)                                                          \
  static bool NAME(name##_columns)(const REAL *x, int64_t from, int64_t to, int64_t inner,         \
                                   int64_t *where) {                                               \
    NAME(vec) best[4], odd[4] = {{0}};                                                             \
    NAME(lanes) at[4] = {{0}};                                                                     \
    if (to > INT32_MAX)                                                                            \
      return false;                                                                                \
    GC_UNROLL for (int k = 0; k < 4; k++) {                                                        \
      best[k] = *(const NAME(loose) *)(x + from * inner + k * LANES);                              \
      odd[k] = best[k];                                                                            \
    }                                                                                              \
    for (int64_t i = from + 1; i < to; i++) {                                                      \
      const NAME(lanes) here = (NAME(lanes)){0} + (LANE_TYPE)(i - from);                           \
      GC_UNROLL for (int k = 0; k < 4; k++) {                                                      \
        const NAME(vec) v = *(const NAME(loose) *)(x + i * inner + k * LANES);                     \
        const NAME(lanes) wins = v ORDER best[k];                                                  \
        at[k] = (wins & here) | (~wins & at[k]);                                                   \
        best[k] = FIRST_OF(v, best[k]);                                                            \
        odd[k] += v;                                                                               \
      }                                                                                            \
    }                                                                                              \
    for (int64_t k = 0; k < COLUMNS; k++) {                                                        \
      const REAL sum = odd[k / LANES][k % LANES];                                                  \
      if (sum - sum != 0)                                                                          \
        return false;                                                                              \
      where[k] = from + at[k / LANES][k % LANES];                                                  \
    }                                                                                              \
    return true;                                                                                   \
  }
#else
#define COLUMNS GC_WIDTH
#define OF_COLUMNS(name, ORDER, FIRST_OF)                                                          \
  static bool NAME(name##_columns)(const REAL *x, int64_t from, int64_t to, int64_t inner,         \
                                   int64_t *where) {                                               \
    (void)x, (void)from, (void)to, (void)inner, (void)where;                                       \
    return false;                                                                                  \
  }
#define TOP_OF_ROW(name, ORDER, FIRST_OF)                                                          \
  static REAL NAME(name##_top)(const REAL *x, int64_t n, bool *nan) {                              \
    REAL best[GC_LOOK], top = x[0];                                                                \
    int64_t i = 0;                                                                                 \
    for (int64_t k = 0; k < GC_LOOK; k++)                                                          \
      best[k] = top;                                                                               \
    for (; i + GC_LOOK <= n; i += GC_LOOK)                                                         \
      for (int64_t k = 0; k < GC_LOOK; k++)                                                        \
        best[k] = x[i + k] ORDER best[k] ? x[i + k] : best[k];                                     \
    for (; i < n; i++)                                                                             \
      top = x[i] ORDER top ? x[i] : top;                                                           \
    for (int64_t k = 0; k < GC_LOOK; k++)                                                          \
      top = best[k] ORDER top ? best[k] : top;                                                     \
    (void)nan;                                                                                     \
    return top;                                                                                    \
  }
#endif

#define EXTREME(name, ORDER, FIRST_OF)                                                             \
  TOP_OF_ROW(name, ORDER, FIRST_OF)                                                                \
  OF_COLUMNS(name, ORDER, FIRST_OF)                                                                \
  /* Of numbers that lie side by side: first which number wins, then where it is. */               \
  static int64_t NAME(name##_of_row)(const REAL *x, int64_t from, int64_t to) {                    \
    bool nan = false;                                                                              \
    const REAL top = NAME(name##_top)(x + from, to - from, &nan);                                  \
    int64_t i = from;                                                                              \
    for (; !nan && i + GC_LOOK <= to; i += GC_LOOK) {                                              \
      int there = 0;                                                                               \
      for (int64_t k = 0; k < GC_LOOK; k++)                                                        \
        there |= x[i + k] == top;                                                                  \
      if (there)                                                                                   \
        break;                                                                                     \
    }                                                                                              \
    while (nan ? !IS_NAN(x[i]) : x[i] != top)                                                      \
      i++;                                                                                         \
    return i;                                                                                      \
  }                                                                                                \
  static void NAME(name##_line)(const REAL *x, int64_t from, int64_t to, int64_t width,            \
                                int64_t inner, int64_t *where) {                                   \
    if (inner == 1) {                                                                              \
      where[0] = NAME(name##_of_row)(x, from, to);                                                 \
      return;                                                                                      \
    }                                                                                              \
    int64_t from_j = 0;                                                                            \
    while (from_j + COLUMNS <= width &&                                                            \
           NAME(name##_columns)(x + from_j, from, to, inner, where + from_j))                      \
      from_j += COLUMNS;                                                                           \
    REAL best[GC_WIDTH];                                                                           \
    for (int64_t j = from_j; j < width; j++) {                                                     \
      best[j] = x[from * inner + j];                                                               \
      where[j] = from;                                                                             \
    }                                                                                              \
    for (int64_t i = from + 1; i < to; i++)                                                        \
      for (int64_t j = from_j; j < width; j++) {                                                   \
        const REAL v = x[i * inner + j];                                                           \
        const bool wins = WINS(v, ORDER, best[j]);                                                 \
        best[j] = wins ? v : best[j];                                                              \
        where[j] = wins ? i : where[j];                                                            \
      }                                                                                            \
  }                                                                                                \
  /* The winner of the chunks' winners; the earlier one keeps its place. */                        \
  static int64_t NAME(name##_of_chunks)(const REAL *x, const gc_cut *c, const int64_t *parts,      \
                                        int64_t result) {                                          \
    const REAL *from = x + result / c->inner * c->n * c->inner + result % c->inner;                \
    int64_t where = parts[result];                                                                 \
    for (int64_t k = 1; k < c->chunks; k++) {                                                      \
      const int64_t other = parts[k * c->results + result];                                        \
      if (WINS(from[other * c->inner], ORDER, from[where * c->inner]))                             \
        where = other;                                                                             \
    }                                                                                              \
    return where;                                                                                  \
  }                                                                                                \
  static void NAME(run_##name)(const gc_job *job) {                                                \
    const gc_tensor *t = job->call->tensors;                                                       \
    const gc_cut c = gc_cut_of(&t[0]);                                                             \
    const REAL *x = (const REAL *)gc_first(&t[0]);                                                 \
    REAL *values = (REAL *)gc_first(&t[1]);                                                        \
    int64_t *indices = (int64_t *)gc_first(&t[2]), *parts = (int64_t *)job->shared;                \
    if (job->phase == 1) {                                                                         \
      const int64_t end = gc_min(c.results, (job->task + 1) * GC_BLOCK);                           \
      for (int64_t r = job->task * GC_BLOCK; r < end; r++) {                                       \
        indices[r] = NAME(name##_of_chunks)(x, &c, parts, r);                                      \
        values[r] = x[(r / c.inner * c.n + indices[r]) * c.inner + r % c.inner];                   \
      }                                                                                            \
      return;                                                                                      \
    }                                                                                              \
    const gc_share s = gc_share_of(&c, job->task);                                                 \
    for (int64_t l = s.first; l < s.last; l++) {                                                   \
      const gc_line line = gc_line_of(&c, l);                                                      \
      int64_t *where = c.chunks > 1 ? parts + s.part * c.results : indices;                        \
      where += line.result;                                                                        \
      NAME(name##_line)(x + line.at, s.from, s.to, line.width, c.inner, where);                    \
      if (c.chunks == 1)                                                                           \
        for (int64_t j = 0; j < line.width; j++)                                                   \
          values[line.result + j] = x[line.at + where[j] * c.inner + j];                           \
    }                                                                                              \
  }

EXTREME(max_along, >, LARGER_OF)
EXTREME(min_along, <, SMALLER_OF)

#undef EXTREME
#undef TOP_OF_ROW
#undef OF_COLUMNS
#undef COLUMNS
#undef WINS
#undef IS_NAN

#ifdef GC_IS_REAL
/* indices, grad -> grad at the chosen places and 0 elsewhere */
static int NAME(plan_select_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  return gc_plan_simple(plan, gc_cut_of(&call->tensors[2]).tasks);
}

static void NAME(run_select_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_cut c = gc_cut_of(&t[2]);
  const gc_share s = gc_share_of(&c, job->task);
  for (int64_t l = s.first; l < s.last; l++) {
    const gc_line line = gc_line_of(&c, l);
    const int64_t *where = (const int64_t *)gc_first(&t[0]) + line.result;
    const REAL *grad = (const REAL *)gc_first(&t[1]) + line.result;
    REAL *out = (REAL *)gc_first(&t[2]) + line.at;
    for (int64_t j = 0; j < line.width; j++)
      if (where[j] < 0 || where[j] >= c.n)
        gc_bad_index(job, 0, line.result + j, where[j], c.n);
    for (int64_t i = s.from; i < s.to; i++)
      for (int64_t j = 0; j < line.width; j++)
        out[i * c.inner + j] = where[j] == i ? grad[j] : 0;
  }
}

/* x, y, grad -> grad shared evenly by all x that equal the winner y (all NaN, where y is NaN) */
static int NAME(plan_ties_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  const gc_cut c = gc_cut_of(&call->tensors[0]);
  plan->phases = 2;
  plan->tasks[0] = plan->tasks[1] = c.tasks;
  plan->shared_bytes = c.chunks * c.results * (int64_t)sizeof(int64_t);
  return GC_OK;
}

#define TIES(v, y) ((v) == (y) || ((v) != (v) && (y) != (y)))
/* Phase 0 counts the winners of each chunk, phase 1 shares the gradient among them. */
static void NAME(run_ties_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_cut c = gc_cut_of(&t[0]);
  const gc_share s = gc_share_of(&c, job->task);
  int64_t *counts = (int64_t *)job->shared;
  for (int64_t l = s.first; l < s.last; l++) {
    const gc_line line = gc_line_of(&c, l);
    const REAL *x = (const REAL *)gc_first(&t[0]) + line.at;
    const REAL *grad = (const REAL *)gc_first(&t[2]) + line.result;
    REAL *out = (REAL *)gc_first(&t[3]) + line.at;
    const REAL *y = (const REAL *)gc_first(&t[1]) + line.result;
    int64_t count[GC_WIDTH] = {0};
    REAL part[GC_WIDTH];
    if (job->phase == 0) {
      if (c.inner == 1)
        for (int64_t i = s.from; i < s.to; i++)
          count[0] += TIES(x[i], y[0]);
      else
        for (int64_t i = s.from; i < s.to; i++)
          for (int64_t j = 0; j < line.width; j++)
            count[j] += TIES(x[i * c.inner + j], y[j]);
      memcpy(counts + s.part * c.results + line.result, count, (size_t)line.width * sizeof *counts);
      continue;
    }
    for (int64_t k = 0; k < c.chunks; k++)
      for (int64_t j = 0; j < line.width; j++)
        count[j] += counts[k * c.results + line.result + j];
    for (int64_t j = 0; j < line.width; j++)
      part[j] = (REAL)((double)grad[j] / (double)gc_max(1, count[j]));
    if (c.inner == 1)
      for (int64_t i = s.from; i < s.to; i++)
        out[i] = TIES(x[i], y[0]) ? part[0] : 0;
    else
      for (int64_t i = s.from; i < s.to; i++)
        for (int64_t j = 0; j < line.width; j++)
          out[i * c.inner + j] = TIES(x[i * c.inner + j], y[j]) ? part[j] : 0;
  }
}
#undef TIES
#endif

#endif
