/* attention_backward.h -- the gradients of q, k and v. The probabilities are computed again, tile
 * by tile, from the logarithms that forward kept. A task owns some tiles of keys of one head, and
 * with them those rows of dk and dv; where heads are few they are cut into several tasks, each with
 * its own part of dq, and a second phase adds the parts in order. */
#ifndef GC_ATTENTION_BACKWARD_H
#define GC_ATTENTION_BACKWARD_H

#include "../elementwise/vectors.h"
#include "../kernel.h"
#include "../matmul/gemm.h"
#include "../matmul/gemm_pack.h"
#include "../matmul/gemm_tile.h"
#include "../reduce/sums.h"
#include "../type.h"
#include "attention.h"

/* How the keys of a head are cut, by shape alone. */
typedef struct {
  int64_t tiles, groups, tiles_of_group;
} gc_key_cut;

static inline gc_key_cut gc_cut_keys(int64_t heads, int64_t keys) {
  gc_key_cut c = {.tiles = gc_max(1, gc_ceil_div(keys, GC_KEYS))};
  const int64_t wanted = gc_min(c.tiles, gc_ceil_div(GC_HEAD_TASKS, gc_max(1, heads)));
  c.tiles_of_group = gc_ceil_div(c.tiles, wanted);
  c.groups = gc_ceil_div(c.tiles, c.tiles_of_group);
  return c;
}

typedef struct {
  REAL *at;
  int64_t ld;
} NAME(rows_out);

/* Where the gradients of one head lie in the last tensor: side by side, as in one row (q, k, v of
 * all heads), or one after the other, each (batch, rows, heads, columns). */
typedef struct {
  NAME(rows_out) q, k, v;
} NAME(head_out);

static NAME(head_out) NAME(head_out_of)(const gc_call *call, const NAME(head) * h, int64_t index) {
  const int64_t heads = call->tensors[0].shape[1], batches = call->tensors[0].shape[0];
  const int64_t batch = index / heads, head = index % heads;
  const int64_t of_q = heads * h->depth, of_v = heads * h->width;
  REAL *all = (REAL *)gc_first(&call->tensors[7]);
  if (call->sizes[1]) {
    const int64_t ld = 2 * of_q + of_v;
    REAL *first = all + batch * h->queries * ld;
    return (NAME(head_out)){{first + head * h->depth, ld},
                            {first + of_q + head * h->depth, ld},
                            {first + 2 * of_q + head * h->width, ld}};
  }
  REAL *k = all + batches * h->queries * of_q, *v = k + batches * h->keys * of_q;
  return (NAME(head_out)){{all + batch * h->queries * of_q + head * h->depth, of_q},
                          {k + batch * h->keys * of_q + head * h->depth, of_q},
                          {v + batch * h->keys * of_v + head * h->width, of_v}};
}

static void NAME(clear_rows)(NAME(rows_out) x, int64_t first, int64_t rows, int64_t columns) {
  for (int64_t i = first; i < first + rows; i++)
    memset(x.at + i * x.ld, 0, (size_t)columns * sizeof(REAL));
}

/* q, k, v, mask, out, logarithms, grad -> all three gradients in one vector. sizes: causal, 1 for
 * gradients side by side; options[0]: scale. */
static int NAME(plan_attention_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  const int status = NAME(check_attention)(call, error);
  if (status)
    return status;
  const int64_t heads = t[0].shape[0] * t[0].shape[1], queries = t[0].shape[2];
  const int64_t keys = t[1].shape[2], depth = t[0].shape[3], width = t[2].shape[3];
  GC_REQUIRE(t[7].shape[0] == heads * (queries * depth + keys * (depth + width)), 7,
             "a vector of as many numbers as q, k and v have");
  GC_REQUIRE(!call->sizes[1] || queries == keys, 1, "as many rows as q");
  if (t[7].shape[0] == 0)
    return gc_plan_simple(plan, 0);
  const gc_key_cut cut = gc_cut_keys(heads, keys);
  plan->phases = cut.groups > 1 ? 2 : 1;
  plan->tasks[0] = heads * cut.groups;
  plan->tasks[1] = heads * gc_ceil_div(queries, GC_QUERIES);
  if (cut.groups > 1)
    plan->shared_bytes = plan->tasks[0] * queries * depth * (int64_t)sizeof(REAL);
  const int64_t of_keys = GC_KEYS * (depth + width), of_tile = GC_QUERIES * (2 * GC_KEYS + depth);
  plan->worker_bytes =
      GEMM_SCRATCH + (of_keys + of_tile + gc_whole(queries, 64)) * (int64_t)sizeof(REAL);
  return GC_OK;
}

typedef struct {
  REAL *scratch;                        /* for gemm */
  REAL *probabilities, *slope, *scaled; /* of a tile: p, its gradient, queries times the scale */
  REAL *keys, *values;                  /* of a tile, as columns */
  REAL *dots;                           /* of the head: each row's product of out and grad */
  NAME(matrix) grad;
  const REAL *logs;
} NAME(backward_own);

static NAME(backward_own)
    NAME(backward_memory)(const gc_job *job, const NAME(head) * h, int64_t index) {
  const gc_tensor *t = job->call->tensors;
  const int64_t batch = index / t[0].shape[1], head = index % t[0].shape[1];
  NAME(backward_own) own = {.scratch = job->own};
  own.dots = own.scratch + GEMM_SCRATCH / (int64_t)sizeof(REAL);
  own.probabilities = own.dots + gc_whole(h->queries, 64);
  own.slope = own.probabilities + GC_QUERIES * GC_KEYS;
  own.keys = own.slope + GC_QUERIES * GC_KEYS;
  own.values = own.keys + GC_KEYS * h->depth;
  own.scaled = own.values + GC_KEYS * h->width;
  own.grad = (NAME(matrix)){NAME(head_at)(&t[6], batch, head), t[6].stride[2], 1};
  own.logs = (const REAL *)gc_first(&t[5]) + index * h->queries;
  const REAL *out = NAME(head_at)(&t[4], batch, head);
  for (int64_t i = 0; i < h->queries; i++) {
    const REAL *y = out + i * t[4].stride[2], *g = own.grad.at + i * own.grad.rs;
    own.dots[i] = (REAL)NAME(dot)(y, g, h->width);
  }
  return own;
}

/* Scores become probabilities, and their gradients those of q k^T: of the scores times the scale.
 */
static void NAME(slope_of_scores)(const NAME(head) * h, NAME(tile_at) t,
                                  const NAME(backward_own) * own) {
  NAME(pad_rows)(h, t, own->probabilities);
  for (int64_t i = 0; i < t.rows; i++) {
    REAL *p = own->probabilities + i * GC_KEYS, *slope = own->slope + i * GC_KEYS;
    const REAL log_sum = own->logs[t.q0 + i], dot = own->dots[t.q0 + i];
    const int64_t seen = NAME(seen)(h, t, i), padded = NAME(padded)(h, t, i);
    for (int64_t j = 0; j < padded; j += LANES) {
      NAME(loose) *const at = (NAME(loose) *)(p + j), *const to = (NAME(loose) *)(slope + j);
      const NAME(vec) y = NAME(exp_each)(*at - log_sum);
      *at = y;
      *to = h->scale * (y * (*to - dot));
    }
    for (int64_t j = seen; j < t.columns; j++)
      p[j] = slope[j] = 0;
  }
}

/* What one tile adds to dq, and to dk and dv; or what it begins them with. */
static void NAME(attention_tile)(const NAME(head) * h, NAME(tile_at) t,
                                 const NAME(backward_own) * own, const NAME(head_out) * out,
                                 bool add_to_q, bool add_to_keys) {
  const NAME(matrix) grad = NAME(part)(own->grad, t.q0, 0);
  const NAME(matrix) p = {own->probabilities, GC_KEYS, 1}, slope = {own->slope, GC_KEYS, 1};
  NAME(scaled_queries)(h, t.q0, t.rows, own->scaled);
  NAME(scores_of)(h, t, own->scaled, own->keys, own->probabilities, own->scratch);
  NAME(gemm)(t.rows, t.columns, h->width, grad, (NAME(matrix)){own->values, GC_KEYS, 1}, own->slope,
             GC_KEYS, false, own->scratch);
  NAME(slope_of_scores)(h, t, own);
  NAME(gemm)(t.columns, h->width, t.rows, NAME(turned)(p), grad, out->v.at + t.k0 * out->v.ld,
             out->v.ld, add_to_keys, own->scratch);
  NAME(gemm)(t.columns, h->depth, t.rows, NAME(turned)(slope), NAME(part)(h->q, t.q0, 0),
             out->k.at + t.k0 * out->k.ld, out->k.ld, add_to_keys, own->scratch);
  NAME(gemm)(t.rows, h->depth, t.columns, slope, NAME(part)(h->k, t.k0, 0),
             out->q.at + t.q0 * out->q.ld, out->q.ld, add_to_q, own->scratch);
}

/* dq of one tile of queries: the parts of all groups, added in order. */
static void NAME(add_groups)(const gc_job *job, const gc_key_cut *cut) {
  const int64_t tiles = gc_ceil_div(job->call->tensors[0].shape[2], GC_QUERIES);
  const int64_t index = job->task / tiles, first = job->task % tiles * GC_QUERIES;
  const NAME(head) h = NAME(head_of)(job->call, index);
  const NAME(rows_out) to = NAME(head_out_of)(job->call, &h, index).q;
  const int64_t end = gc_min(h.queries, first + GC_QUERIES), part = h.queries * h.depth;
  const REAL *parts = (const REAL *)job->shared + index * cut->groups * part;
  for (int64_t i = first; i < end; i++)
    for (int64_t d = 0; d < h.depth; d++) {
      REAL sum = 0;
      for (int64_t g = 0; g < cut->groups; g++)
        sum += parts[g * part + i * h.depth + d];
      to.at[i * to.ld + d] = sum;
    }
}

static void NAME(run_attention_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_key_cut cut = gc_cut_keys(t[0].shape[0] * t[0].shape[1], t[1].shape[2]);
  if (job->phase == 1) {
    NAME(add_groups)(job, &cut);
    return;
  }
  const int64_t index = job->task / cut.groups, group = job->task % cut.groups;
  const NAME(head) h = NAME(head_of)(job->call, index);
  const NAME(backward_own) own = NAME(backward_memory)(job, &h, index);
  NAME(head_out) out = NAME(head_out_of)(job->call, &h, index);
  if (cut.groups > 1)
    out.q = (NAME(rows_out)){(REAL *)job->shared + job->task * h.queries * h.depth, h.depth};
  const int64_t first = group * cut.tiles_of_group * GC_KEYS;
  const int64_t end = gc_min(h.keys, first + cut.tiles_of_group * GC_KEYS);
  const int64_t step = gc_query_tile(h.keys);
  const int64_t blind = h.causal ? gc_min(h.queries, first / step * step) : 0;
  NAME(clear_rows)(out.q, 0, first < end ? blind : h.queries, h.depth);
  for (int64_t k0 = first; k0 < end; k0 += GC_KEYS) {
    const int64_t keys = gc_min(GC_KEYS, h.keys - k0);
    NAME(turn_rows)(NAME(part)(h.k, k0, 0), keys, h.depth, own.keys);
    NAME(turn_rows)(NAME(part)(h.v, k0, 0), keys, h.width, own.values);
    /* From the last queries down, as those see the most keys: what they leave out nobody sees. */
    int64_t seen = 0;
    const int64_t low = h.causal ? k0 / step * step : 0;
    for (int64_t q0 = (h.queries - 1) / step * step; q0 >= low; q0 -= step) {
      NAME(tile_at) tile = {.q0 = q0, .rows = gc_min(step, h.queries - q0), .k0 = k0};
      tile.columns = NAME(keys_of_tile)(&h, q0, tile.rows, k0);
      NAME(attention_tile)(&h, tile, &own, &out, k0 > first, seen > 0);
      seen = gc_max(seen, tile.columns);
    }
    NAME(clear_rows)(out.k, k0 + seen, keys - seen, h.depth);
    NAME(clear_rows)(out.v, k0 + seen, keys - seen, h.width);
  }
}

#endif
