/* extreme.h -- maximum and minimum of (outer, n, inner) along n, with the place of the first
 * winner, and their gradients. A NaN wins over every number, and the first NaN stays. */

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
#ifndef GC_LOOK
#define GC_LOOK 64
#endif
#define WINS(v, ORDER, best) ((v)ORDER(best) || (IS_NAN(v) && !IS_NAN(best)))

#define EXTREME(name, ORDER)                                                                       \
  /* Of numbers that lie side by side: first which number wins, then where it is. */               \
  static int64_t NAME(name##_of_row)(const REAL *x, int64_t from, int64_t to) {                    \
    REAL best[GC_LOOK], top = x[from];                                                             \
    int nan = IS_NAN(top);                                                                         \
    int64_t i = from;                                                                              \
    for (int64_t k = 0; k < GC_LOOK; k++)                                                          \
      best[k] = top;                                                                               \
    for (; i + GC_LOOK <= to; i += GC_LOOK)                                                        \
      for (int64_t k = 0; k < GC_LOOK; k++) {                                                      \
        const REAL v = x[i + k];                                                                   \
        best[k] = v ORDER best[k] ? v : best[k];                                                   \
        nan |= IS_NAN(v);                                                                          \
      }                                                                                            \
    for (; i < to; i++) {                                                                          \
      best[0] = x[i] ORDER best[0] ? x[i] : best[0];                                               \
      nan |= IS_NAN(x[i]);                                                                         \
    }                                                                                              \
    for (int64_t k = 0; k < GC_LOOK; k++)                                                          \
      top = best[k] ORDER top ? best[k] : top;                                                     \
    for (i = from; i + GC_LOOK <= to; i += GC_LOOK) {                                              \
      int there = 0;                                                                               \
      for (int64_t k = 0; k < GC_LOOK; k++)                                                        \
        there |= nan ? IS_NAN(x[i + k]) : x[i + k] == top;                                         \
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
    REAL best[GC_WIDTH];                                                                           \
    for (int64_t j = 0; j < width; j++) {                                                          \
      best[j] = x[from * inner + j];                                                               \
      where[j] = from;                                                                             \
    }                                                                                              \
    for (int64_t i = from + 1; i < to; i++)                                                        \
      for (int64_t j = 0; j < width; j++) {                                                        \
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

EXTREME(max_along, >)
EXTREME(min_along, <)

#undef EXTREME
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
    for (int64_t j = 0; j < line.width; j++) {
      const REAL y = ((const REAL *)gc_first(&t[1]))[line.result + j];
      int64_t count = 0;
      if (job->phase == 1)
        for (int64_t k = 0; k < c.chunks; k++)
          count += counts[k * c.results + line.result + j];
      const REAL part = (REAL)((double)grad[j] / (double)gc_max(1, count));
      for (int64_t i = s.from; i < s.to; i++) {
        const REAL v = x[i * c.inner + j];
        const bool wins = v == y || (v != v && y != y);
        count += wins;
        if (job->phase == 1)
          out[i * c.inner + j] = wins ? part : 0;
      }
      if (job->phase == 0)
        counts[s.part * c.results + line.result + j] = count;
    }
  }
}
#endif
