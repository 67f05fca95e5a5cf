/* recurrent.h -- what layers with a memory share. w (gates * H, H) takes the hidden state of one
 * step into the gates of the next. The batch is cut into tasks, so that all steps of one task
 * follow each other without waiting for the others; w is packed once a call for all of them. The
 * hidden units are done in blocks that are as wide as a tile of a matrix product: the gates of a
 * block lie side by side in scratch, and what is done to them is done while they are in the first
 * cache.
 *
 * Inputs and outputs with a time dimension are (T, B, n) with any strides over T and B. An input of
 * no elements is one left out: 0. */

#ifndef GC_RECURRENT_SIZES
#define GC_RECURRENT_SIZES
enum {
  GC_RECURRENT_TASKS = 4,         /* wanted, where the batch is small */
  GC_RECURRENT_ROWS = 8,          /* of a task, where w stays in the second cache */
  GC_RECURRENT_MANY = 24,         /* ... and where it does not */
  GC_RECURRENT_NEAR = 768 * 1024, /* bytes of the second cache that w may take */
  GC_RECURRENT_GATES = 4          /* at most */
};

typedef struct {
  int64_t steps, batch, hidden, gates;
  int64_t rows;  /* of the batch, in one task */
  int64_t width; /* columns of a block of hidden units; the last one may be narrower */
  int64_t blocks;
  bool reverse; /* from the last step to the first */
} gc_recurrent;

/* The hidden units of one block, in `width` columns. */
typedef struct {
  int64_t first, count, width;
} gc_units;

/* The state after step number `step`, in the order of work, is that of this time. */
static inline int64_t gc_time_of(const gc_recurrent *r, int64_t step) {
  return r->reverse ? r->steps - 1 - step : step;
}

static inline bool gc_is_left_out(const gc_tensor *t) {
  return t->ndim == 1 && t->shape[0] == 0;
}
static inline bool gc_is_sequence(const gc_tensor *t, const gc_recurrent *r, int64_t n) {
  return t->ndim == 3 && t->shape[0] == r->steps && t->shape[1] == r->batch && t->shape[2] == n &&
         (t->stride[2] == 1 || n <= 1);
}
static inline bool gc_is_state(const gc_tensor *t, const gc_recurrent *r) {
  return t->ndim == 2 && t->shape[0] == r->batch && t->shape[1] == r->hidden && gc_contiguous(t);
}
static inline bool gc_is_states(const gc_tensor *t, const gc_recurrent *r, int64_t times) {
  return t->ndim == 3 && t->shape[0] == times && t->shape[1] == r->batch &&
         t->shape[2] == r->hidden && gc_contiguous(t);
}

/* For plans: call->tensors[i] as one of these. */
#define GC_SEQUENCE(i, r, n)                                                                       \
  GC_REQUIRE(gc_is_sequence(&call->tensors[i], &(r), n), i, "(steps, batch, n) in rows")
#define GC_SEQUENCE_OR_NONE(i, r, n)                                                               \
  GC_REQUIRE(gc_is_left_out(&call->tensors[i]) || gc_is_sequence(&call->tensors[i], &(r), n), i,   \
             "(steps, batch, n) in rows, or nothing")
#define GC_STATES(i, r, n)                                                                         \
  GC_REQUIRE(gc_is_states(&call->tensors[i], &(r), n), i, "a contiguous (times, batch, hidden)")
#define GC_STATE_OR_NONE(i, r)                                                                     \
  GC_REQUIRE(gc_is_left_out(&call->tensors[i]) || gc_is_state(&call->tensors[i], &(r)), i,         \
             "a contiguous (batch, hidden), or nothing")
#endif

/* Rows of n numbers, `row` apart. */
typedef struct {
  REAL *at;
  int64_t row;
} NAME(lines);

/* `like` (T, B, ...) tells steps and batch, w (gates * H, H) the rest. */
static gc_recurrent NAME(recurrent)(const gc_call *call, const gc_tensor *like,
                                    const gc_tensor *w) {
  gc_recurrent r = {.steps = like->shape[0], .batch = like->shape[1], .hidden = w->shape[1]};
  r.gates = r.hidden ? w->shape[0] / r.hidden : 0;
  r.reverse = call->sizes[0] != 0;
  r.width = r.hidden > LANES ? TILE_COLUMNS : LANES;
  r.blocks = gc_ceil_div(r.hidden, r.width);
  const bool near = r.gates * r.hidden * r.hidden * (int64_t)sizeof(REAL) <= GC_RECURRENT_NEAR;
  const int64_t fair = gc_ceil_div(r.batch, GC_RECURRENT_TASKS);
  r.rows = gc_max(2, gc_min(fair, near ? GC_RECURRENT_ROWS : GC_RECURRENT_MANY));
  return r;
}

static gc_units NAME(units)(const gc_recurrent *r, int64_t block) {
  const int64_t first = block * r->width, count = gc_min(r->width, r->hidden - first);
  return (gc_units){first, count, count > LANES ? TILE_COLUMNS : LANES};
}

/* For plans: w and the element types; `scratch`: blocks of (rows, width) that a task works in,
 * beside `whole` rows of all hidden units. Phase 0 packs w. */
static int NAME(plan_recurrent)(const gc_call *call, gc_plan *plan, gc_error *error,
                                const gc_recurrent *r, int32_t w, int64_t gates, int64_t scratch,
                                int64_t whole) {
  for (int32_t i = 0; i < call->ntensors; i++)
    GC_REQUIRE(call->tensors[i].dtype == call->tensors[0].dtype, i, "one element type");
  GC_REQUIRE(r->gates == gates && call->tensors[w].shape[0] == gates * r->hidden &&
                 gc_contiguous(&call->tensors[w]),
             w, "a contiguous (gates * hidden, hidden) of at least one hidden unit");
  GC_REQUIRE(r->steps > 0, 0, "at least one step");
  const int64_t size = (int64_t)sizeof(REAL), padded = r->blocks * r->width;
  plan->phases = 2;
  plan->tasks[0] = r->batch ? r->blocks : 0;
  plan->tasks[1] = gc_ceil_div(r->batch, r->rows);
  plan->shared_bytes = gates * r->hidden * padded * size;
  plan->worker_bytes = r->rows * (whole * padded + scratch * r->width) * size;
  return GC_OK;
}

/* A sequence from hidden unit j on, at one time, for the rows of the batch from `first` on. */
static NAME(lines) NAME(at_time)(const gc_tensor *t, int64_t time, int64_t first, int64_t j) {
  return (NAME(lines)){(REAL *)gc_first(t) + time * t->stride[0] + first * t->stride[1] + j,
                       t->stride[1]};
}
/* The same of a state (B, H). */
static NAME(lines) NAME(of_state)(const gc_tensor *t, int64_t first, int64_t j) {
  return (NAME(lines)){(REAL *)gc_first(t) + first * t->shape[1] + j, t->shape[1]};
}

/* Asks for m rows of n numbers, which are needed after some arithmetic. */
static void NAME(ask)(NAME(lines) from, int64_t m, int64_t n) {
  const int64_t line = 64 / (int64_t)sizeof(REAL);
  for (int64_t i = 0; i < m; i++, from.at += from.row)
    for (int64_t j = 0; j < n; j += line)
      __builtin_prefetch(from.at + j);
}

/* m rows of n numbers into m rows of `width`; the rest of a row becomes 0. */
static void NAME(take)(NAME(lines) from, int64_t m, int64_t n, REAL *to, int64_t width) {
  for (int64_t i = 0; i < m; i++, from.at += from.row, to += width) {
    if (n == TILE_COLUMNS)
      GC_UNROLL for (int64_t v = 0; v < TILE_COLUMNS; v += LANES) * (NAME(loose) *)(to + v) =
          *(const NAME(loose) *)(from.at + v);
    else
      for (int64_t j = 0; j < width; j++)
        to[j] = j < n ? from.at[j] : 0;
  }
}

/* ... added to what is there. */
static void NAME(add_lines)(NAME(lines) from, int64_t m, int64_t n, REAL *to, int64_t width) {
  for (int64_t i = 0; i < m; i++, from.at += from.row, to += width) {
    if (n == TILE_COLUMNS)
      GC_UNROLL for (int64_t v = 0; v < TILE_COLUMNS; v += LANES) * (NAME(loose) *)(to + v) +=
          *(const NAME(loose) *)(from.at + v);
    else
      for (int64_t j = 0; j < n; j++)
        to[j] += from.at[j];
  }
}

/* m rows of n numbers out of m rows of `width`. */
static void NAME(give)(const REAL *from, int64_t width, int64_t m, int64_t n, NAME(lines) to) {
  for (int64_t i = 0; i < m; i++, from += width, to.at += to.row) {
    if (n == TILE_COLUMNS)
      GC_UNROLL for (int64_t v = 0; v < TILE_COLUMNS; v += LANES) * (NAME(loose) *)(to.at + v) =
          *(const NAME(loose) *)(from + v);
    else
      for (int64_t j = 0; j < n; j++)
        to.at[j] = from[j];
  }
}

/* A state in scratch, block after block; 0 where it is left out. */
static void NAME(take_state)(const gc_tensor *t, const gc_recurrent *r, int64_t first, int64_t m,
                             REAL *to) {
  for (int64_t block = 0; block < r->blocks; block++, to += m * r->width) {
    const gc_units u = NAME(units)(r, block);
    if (gc_is_left_out(t))
      memset(to, 0, (size_t)(m * u.width) * sizeof(REAL));
    else
      NAME(take)(NAME(of_state)(t, first, u.first), m, u.count, to, u.width);
  }
}

/* ... and out of it, into state number `time` of (times, B, H). */
static void NAME(give_state)(const REAL *from, const gc_recurrent *r, int64_t m, const gc_tensor *t,
                             int64_t time, int64_t first) {
  for (int64_t block = 0; block < r->blocks; block++, from += m * r->width) {
    const gc_units u = NAME(units)(r, block);
    NAME(give)(from, u.width, m, u.count, NAME(at_time)(t, time, first, u.first));
  }
}

/* A state (m, hidden) in scratch, row after row; 0 where it is left out. */
static void NAME(take_rows)(const gc_tensor *t, const gc_recurrent *r, int64_t first, int64_t m,
                            REAL *to) {
  const size_t row = (size_t)r->hidden * sizeof(REAL);
  for (int64_t i = 0; i < m; i++, to += r->blocks * r->width)
    if (gc_is_left_out(t))
      memset(to, 0, row);
    else
      memcpy(to, NAME(of_state)(t, first + i, 0).at, row);
}

/* One block of c (m, width) = a (m, k) times a packed panel, or += that. */
static void NAME(block_product)(int64_t m, int64_t k, NAME(matrix) a, const REAL *panel, REAL *c,
                                int64_t width, bool add) {
  const int64_t tiles = gc_ceil_div(m, GC_TILE_ROWS), step = gc_ceil_div(m, tiles);
  for (int64_t i = 0; i < m; i += step)
    NAME(tiles)
  [width / LANES - 1][gc_min(step, m - i) - 1](k, a.at + i *a.rs, a.rs, a.cs, panel, width,
                                               c + i *width, width, width, add);
}

/* The panels of one block of units lie one after another in shared scratch: in a forward call one
 * (hidden, width) for each gate, in a backward call one (gates * hidden, width) for all. */
static const REAL *NAME(panels)(const gc_job *job, const gc_recurrent *r, int64_t block) {
  return (const REAL *)job->shared + block * r->gates * r->hidden * r->width;
}

/* Phase 0 of a forward call. */
static void NAME(pack_gates)(const gc_job *job, const gc_recurrent *r, const gc_tensor *w) {
  const gc_units u = NAME(units)(r, job->task);
  REAL *to = (REAL *)job->shared + job->task * r->gates * r->hidden * r->width;
  for (int64_t g = 0; g < r->gates; g++, to += r->hidden * u.width) {
    const REAL *from = (const REAL *)gc_first(w) + (g * r->hidden + u.first) * r->hidden;
    NAME(pack_b)((NAME(matrix)){from, 1, r->hidden}, r->hidden, u.count, to);
  }
}

/* Phase 0 of a backward call. */
static void NAME(pack_units)(const gc_job *job, const gc_recurrent *r, const gc_tensor *w) {
  const gc_units u = NAME(units)(r, job->task);
  REAL *to = (REAL *)job->shared + job->task * r->gates * r->hidden * r->width;
  NAME(pack_b)((NAME(matrix)){(const REAL *)gc_first(w) + u.first, r->hidden, 1},
               r->gates * r->hidden, u.count, to);
}

/* What one gate of one block of units sums up before its activation: the hidden state of the step
 * before (row after row) times w, the part of the input and the bias, where there are such. */
static void NAME(sum_gate)(const gc_job *job, const gc_recurrent *r, int64_t block, int64_t gate,
                           NAME(lines) input, const gc_tensor *bias, const REAL *before, int64_t m,
                           REAL *to) {
  const gc_units u = NAME(units)(r, block);
  const NAME(matrix) a = {before, r->blocks * r->width, 1};
  if (input.at)
    NAME(ask)(input, m, u.count);
  NAME(block_product)(m, r->hidden, a, NAME(panels)(job, r, block) + gate * r->hidden * u.width, to,
                      u.width, false);
  if (input.at)
    NAME(add_lines)(input, m, u.count, to, u.width);
  if (bias && !gc_is_left_out(bias)) {
    REAL *const first = (REAL *)gc_first(bias) + gate * r->hidden + u.first;
    NAME(add_lines)((NAME(lines)){first, 0}, m, u.count, to, u.width);
  }
}

/* dh, block after block, = the gradients of all gates' sums (m rows, gates * hidden) times w, or +=
 * that. */
static void NAME(units_from_gates)(const gc_job *job, const gc_recurrent *r, const REAL *sums,
                                   int64_t m, REAL *dh, bool add) {
  const NAME(matrix) a = {sums, r->gates * r->blocks * r->width, 1};
  for (int64_t block = 0; block < r->blocks; block++, dh += m * r->width)
    NAME(block_product)(m, r->gates * r->hidden, a, NAME(panels)(job, r, block), dh,
                        NAME(units)(r, block).width, add);
}
