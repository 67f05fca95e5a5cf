/* recurrent.h -- what layers with a memory share: how their work is cut, their walk over the steps,
 * and the products in it; recurrent_cells.h has what makes an LSTM, a GRU and a plain one of it.
 *
 * w (gates * H, H) takes the hidden state of one step into the gates of the next. The batch is cut
 * into tasks, so that all steps of one task follow each other without waiting for the others; w is
 * packed once a call for all of them. The hidden units are done in blocks that are as wide as a
 * tile of a matrix product: the gates of a block lie side by side in scratch, and what is done to
 * them is done while they are in the first cache.
 *
 * Inputs and outputs with a time dimension are (T, B, n) with any strides over T and B. An input of
 * no elements is one left out: 0. */
#ifndef GC_RECURRENT_H
#define GC_RECURRENT_H

#include "../kernel.h"
#include "../matmul/gemm_pack.h"
#include "../matmul/gemm_tile.h"
#include "../type.h"

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

/* A cell: its gates, the states that go from step to step (h, or h and c), and where the tensors of
 * its calls stand. A forward call has what the input adds to the gates, and w, and then h0 and so
 * on; c comes behind y. A backward call has the gradient of y, the gates and what else forward
 * computed, c being the first of that; behind w the gradients of the last states, and the outputs:
 * the gradients of the gates' sums, and of the first states. */
typedef struct {
  int32_t gates, states;
  int32_t h0, y;     /* of a forward call */
  int32_t w, slopes; /* of a backward call; slopes: gates of its first output */
  int32_t blocks[2]; /* of numbers of a block of units that a task has, forward and backward */
} gc_cell;

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

/* Phase 0 packs w. */
static int NAME(plan_cell)(const gc_call *call, gc_plan *plan, gc_error *error, const gc_cell *cell,
                           bool back) {
  const gc_tensor *t = call->tensors;
  const int32_t w = back ? cell->w : 1, c = back ? 2 : cell->y + 1, out = w + 1 + cell->states;
  const gc_recurrent r = NAME(recurrent)(call, &t[back], &t[w]);
  GC_REQUIRE(r.gates == cell->gates && t[w].shape[0] == r.gates * r.hidden, w,
             "(gates * hidden, hidden) of at least one hidden unit");
  GC_REQUIRE(r.steps > 0, 0, "at least one step");
  GC_REQUIRE(cell->states == 1 || t[c].shape[0] == r.steps + 1, c, "(steps + 1, batch, hidden)");
  GC_REQUIRE(!back || t[out].shape[2] == cell->slopes * r.hidden, out,
             "(steps, batch, gates * hidden)");
  const int64_t size = (int64_t)sizeof(REAL), padded = r.blocks * r.width;
  const int64_t whole = back ? cell->states + r.gates : cell->states + 1;
  plan->phases = 2;
  plan->tasks[0] = r.batch ? r.blocks : 0;
  plan->tasks[1] = gc_ceil_div(r.batch, r.rows);
  plan->shared_bytes = r.gates * r.hidden * padded * size;
  plan->worker_bytes = r.rows * (whole * padded + cell->blocks[back] * r.width) * size;
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

/* A block of units at one step, for m rows of the batch from `first` on: what a cell is given. */
typedef struct {
  const gc_job *job;
  const gc_recurrent *r;
  int64_t first, m, step, time, block;
  gc_units units;
  int64_t n;    /* numbers of the block: m rows of its width */
  REAL *gates;  /* n of each gate, one after another, and scratch behind them */
  REAL *h, *c;  /* forward the states, backward their gradients */
  REAL *before; /* forward: h of the step before, row after row */
  int64_t at;   /* of the block's units in a state in scratch */
} NAME(unit_block);

/* The block's units of a gate in tensor number `tensor`. */
static NAME(lines) NAME(gate_of)(const NAME(unit_block) * b, int32_t tensor, int64_t gate) {
  return NAME(at_time)(&b->job->call->tensors[tensor], b->time, b->first,
                       gate * b->r->hidden + b->units.first);
}
/* The same of states (times, B, H), which stand in the order of work. */
static NAME(lines) NAME(state_of)(const NAME(unit_block) * b, int32_t tensor, int64_t step) {
  return NAME(at_time)(&b->job->call->tensors[tensor], step, b->first, b->units.first);
}
static void NAME(take_units)(const NAME(unit_block) * b, NAME(lines) from, REAL *to) {
  NAME(take)(from, b->m, b->units.count, to, b->units.width);
}
static void NAME(give_units)(const NAME(unit_block) * b, const REAL *from, NAME(lines) to) {
  NAME(give)(from, b->units.width, b->m, b->units.count, to);
}

/* What one gate sums up before its activation: the hidden state of the step before times w, the
 * part of the input and the bias (a number of a tensor), where there are such. */
static void NAME(sum_gate)(const NAME(unit_block) * b, int64_t gate, bool input, int32_t bias,
                           REAL *to) {
  const gc_recurrent *r = b->r;
  const gc_units u = b->units;
  const NAME(lines) from = NAME(gate_of)(b, 0, gate);
  const NAME(matrix) a = {b->before, r->blocks * r->width, 1};
  if (input)
    NAME(ask)(from, b->m, u.count);
  NAME(block_product)(b->m, r->hidden, a,
                      NAME(panels)(b->job, r, b->block) + gate * r->hidden * u.width, to, u.width,
                      false);
  if (input)
    NAME(add_lines)(from, b->m, u.count, to, u.width);
  const gc_tensor *t = &b->job->call->tensors[bias];
  if (bias && !gc_is_left_out(t)) {
    REAL *const first = (REAL *)gc_first(t) + gate * r->hidden + u.first;
    NAME(add_lines)((NAME(lines)){first, 0}, b->m, u.count, to, u.width);
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

static void NAME(go_to)(NAME(unit_block) * b, int64_t block) {
  b->block = block;
  b->units = NAME(units)(b->r, block);
  b->n = b->m * b->units.width;
  b->at = block * b->m * b->r->width;
}

/* All steps of a task forward; `units` computes h of a block of units, and whatever else the call
 * gives but that. */
static inline __attribute__((always_inline)) void
NAME(cell_forward)(const gc_job *job, gc_cell cell, void (*units)(const NAME(unit_block) *)) {
  const gc_tensor *t = job->call->tensors;
  const gc_recurrent r = NAME(recurrent)(job->call, &t[0], &t[1]);
  if (job->phase == 0) {
    NAME(pack_gates)(job, &r, &t[1]);
    return;
  }
  const int64_t first = job->task * r.rows, m = gc_min(r.rows, r.batch - first);
  const int64_t padded = r.blocks * r.width, whole = r.rows * padded;
  REAL *before = job->own, *after = before + whole, *const c = after + whole;
  NAME(unit_block) b = {.job = job, .r = &r, .first = first, .m = m};
  b.gates = after + cell.states * whole;
  NAME(take_rows)(&t[cell.h0], &r, first, m, before);
  if (cell.states > 1) {
    NAME(take_state)(&t[cell.h0 + 1], &r, first, m, c);
    NAME(give_state)(c, &r, m, &t[cell.y + 1], 0, first);
  }
  for (b.step = 0; b.step < r.steps; b.step++) {
    b.time = gc_time_of(&r, b.step);
    b.before = before;
    for (int64_t block = 0; block < r.blocks; block++) {
      NAME(go_to)(&b, block);
      b.h = b.gates + (cell.blocks[0] - 1) * b.n;
      b.c = cell.states > 1 ? c + b.at : NULL;
      units(&b);
      NAME(give_units)(&b, b.h, NAME(gate_of)(&b, cell.y, 0));
      NAME(give_units)(&b, b.h, (NAME(lines)){after + b.units.first, padded});
    }
    if (cell.states > 1)
      NAME(give_state)(c, &r, m, &t[cell.y + 1], b.step + 1, first);
    REAL *const swap = before;
    before = after;
    after = swap;
  }
}

/* ... and backward; `units` turns the gates, as forward gave them, into the gradients of their
 * sums, and those of h and c into what goes past the gates. Through w went slope number `last` of
 * the last gate; `add` says that something goes past them. */
static inline __attribute__((always_inline)) void
NAME(cell_backward)(const gc_job *job, gc_cell cell, int64_t last, bool add,
                    void (*units)(const NAME(unit_block) *)) {
  const gc_tensor *t = job->call->tensors;
  const gc_recurrent r = NAME(recurrent)(job->call, &t[1], &t[cell.w]);
  if (job->phase == 0) {
    NAME(pack_units)(job, &r, &t[cell.w]);
    return;
  }
  const int64_t first = job->task * r.rows, m = gc_min(r.rows, r.batch - first);
  const int64_t padded = r.blocks * r.width, whole = r.rows * padded;
  const int32_t end = cell.w + 1, out = end + cell.states;
  REAL *const dh = job->own, *const dc = dh + whole, *const sums = dh + cell.states * whole;
  NAME(unit_block) b = {.job = job, .r = &r, .first = first, .m = m};
  b.gates = sums + cell.gates * whole;
  NAME(take_state)(&t[end], &r, first, m, dh);
  if (cell.states > 1)
    NAME(take_state)(&t[end + 1], &r, first, m, dc);
  for (b.step = r.steps; b.step-- > 0;) {
    b.time = gc_time_of(&r, b.step);
    for (int64_t block = 0; block < r.blocks; block++) {
      NAME(go_to)(&b, block);
      b.h = dh + b.at;
      b.c = cell.states > 1 ? dc + b.at : NULL;
      for (int64_t g = 0; g < cell.gates; g++)
        NAME(take_units)(&b, NAME(gate_of)(&b, 1, g), b.gates + g * b.n);
      if (!gc_is_left_out(&t[0]))
        NAME(add_lines)(NAME(gate_of)(&b, 0, 0), m, b.units.count, b.h, b.units.width);
      units(&b);
      for (int64_t g = 0; g < cell.slopes; g++)
        NAME(give_units)(&b, b.gates + g * b.n, NAME(gate_of)(&b, out, g));
      for (int64_t g = 0; g < cell.gates; g++)
        NAME(give_units)(&b, b.gates + (g + 1 < cell.gates ? g : last) * b.n,
                         (NAME(lines)){sums + g * r.hidden + b.units.first, cell.gates * padded});
    }
    NAME(units_from_gates)(job, &r, sums, m, dh, add);
  }
  NAME(give_state)(dh, &r, m, &t[out + 1], 0, first);
  if (cell.states > 1)
    NAME(give_state)(dc, &r, m, &t[out + 1], 1, first);
}

#endif
