/* attention.h -- out = softmax(scale q k^T + mask) v for each head, forward. A tile of queries
 * meets one tile of keys after another, with a running maximum and a running sum of each row, so
 * the matrix of all scores never exists; of it only the logarithm of each row's sum is kept, for
 * the gradient (attention_backward.h). q, k, v and out are (batch, heads, rows, columns) with any
 * strides but the last, which is 1: slices of one matrix need no copy.
 *
 * A row in which everything is masked is 0, as in torch, and so is its logarithm: exp(-inf - 0) is
 * the 0 that the gradient needs. */
#ifndef GC_ATTENTION_H
#define GC_ATTENTION_H

#include "../../maths_shared.h"
#include "../elementwise/vectors.h"
#include "../kernel.h"
#include "../matmul/gemm.h"
#include "../matmul/gemm_pack.h"
#include "../matmul/gemm_tile.h"
#include "../norm/softmax.h"
#include "../type.h"

enum {
  GC_QUERIES = 64, /* at most, of a tile */
  GC_KEYS = 128,
  GC_STEP = 16,      /* scores that are handled at once */
  GC_HEAD_TASKS = 16 /* are enough to keep all threads busy */
};

/* Queries of a tile. Where one tile holds all keys a thin one wastes less above the diagonal;
 * otherwise a thick one pays for turning the keys of each tile. */
static inline int64_t gc_query_tile(int64_t keys) {
  return keys > GC_KEYS ? GC_QUERIES : GC_QUERIES / 2;
}

/* Tiles of queries of a task: where heads are many, all, which then share what is made of keys. */
static inline int64_t gc_query_group(int64_t heads, int64_t queries, int64_t keys) {
  return heads < GC_HEAD_TASKS ? 1 : gc_max(1, gc_ceil_div(queries, gc_query_tile(keys)));
}

/* One head of a call. */
typedef struct {
  NAME(matrix) q, k, v;
  int64_t queries, keys, depth, width; /* width: of a row of v */
  const gc_tensor *mask;               /* NULL without one */
  int64_t mask_at;                     /* where this head's mask begins */
  bool causal;                         /* query i sees keys 0..i */
  REAL scale;
} NAME(head);

/* A tile: `rows` queries from q0 on, `columns` keys from k0 on. */
typedef struct {
  int64_t q0, rows, k0, columns;
} NAME(tile_at);

/* What forward and backward ask of q, k, v, the mask and the logarithms. */
static int NAME(check_attention)(const gc_call *call, gc_error *error) {
  const gc_tensor *t = call->tensors, *mask = &t[3];
  for (int32_t i = 0; i < 3; i++)
    GC_REQUIRE(gc_numel(&t[i]) <= (int64_t)1 << 56, i, "at most 2^56 numbers");
  GC_REQUIRE(mask->dtype == GC_BOOL || mask->dtype == t[0].dtype, 3, "bool, or q's element type");
  GC_REQUIRE(t[5].shape[0] == t[0].shape[0] * t[0].shape[1] * t[0].shape[2], 5,
             "a number for each query");
  return GC_OK;
}

static const REAL *NAME(head_at)(const gc_tensor *t, int64_t batch, int64_t head) {
  return (const REAL *)gc_first(t) + batch * t->stride[0] + head * t->stride[1];
}

static NAME(head) NAME(head_of)(const gc_call *call, int64_t index) {
  const gc_tensor *t = call->tensors, *mask = &t[3];
  const int64_t batch = index / t[0].shape[1], head = index % t[0].shape[1];
  return (NAME(head)){
      .q = {NAME(head_at)(&t[0], batch, head), t[0].stride[2], 1},
      .k = {NAME(head_at)(&t[1], batch, head), t[1].stride[2], 1},
      .v = {NAME(head_at)(&t[2], batch, head), t[2].stride[2], 1},
      .queries = t[0].shape[2],
      .keys = t[0].shape[3] + t[2].shape[3] ? t[1].shape[2] : 0, /* of no columns: nothing to see */
      .depth = t[0].shape[3],
      .width = t[2].shape[3],
      .mask = mask->ndim == 4 ? mask : NULL,
      .mask_at = mask->ndim == 4 ? batch * mask->stride[0] + head * mask->stride[1] : 0,
      .causal = call->sizes[0] != 0,
      .scale = (REAL)call->options[0],
  };
}

static inline NAME(matrix) NAME(turned)(NAME(matrix) x) {
  return (NAME(matrix)){x.at, x.cs, x.rs};
}

/* n rows of x as the columns of `to`, which has rows of GC_KEYS. */
static void NAME(turn_rows)(NAME(matrix) x, int64_t n, int64_t columns, REAL *to) {
  const int64_t whole = n / LANES * LANES, wide = columns / LANES * LANES;
  for (int64_t i = 0; i < whole; i += LANES)
    for (int64_t d = 0; d < wide; d += LANES)
      NAME(transpose_square)(x.at + i * x.rs + d, x.rs, to + d * GC_KEYS + i, GC_KEYS);
  for (int64_t i = 0; i < n; i++)
    for (int64_t d = i < whole ? wide : 0; d < columns; d++)
      to[d * GC_KEYS + i] = x.at[i * x.rs + d];
}

/* How many keys of a tile its row i sees. */
static inline int64_t NAME(seen)(const NAME(head) * h, NAME(tile_at) t, int64_t i) {
  return h->causal ? gc_max(0, gc_min(t.columns, t.q0 + i + 1 - t.k0)) : t.columns;
}

/* The same in whole steps. */
static inline int64_t NAME(padded)(const NAME(head) * h, NAME(tile_at) t, int64_t i) {
  return gc_whole(NAME(seen)(h, t, i), GC_STEP);
}

/* What lies between is -inf, so that loops over a row have no end that is shorter than a vector. It
 * is done for all rows at once: a vector that was just written in pieces is slow to read. */
static void NAME(pad_rows)(const NAME(head) * h, NAME(tile_at) t, REAL *scores) {
  for (int64_t i = 0; i < t.rows; i++)
    for (int64_t j = NAME(seen)(h, t, i); j < NAME(padded)(h, t, i); j++)
      scores[i * GC_KEYS + j] = -(REAL)INFINITY;
}

/* The keys from k0 on that any of these queries sees, at most one tile of them. */
static inline int64_t NAME(keys_of_tile)(const NAME(head) * h, int64_t q0, int64_t rows,
                                         int64_t k0) {
  const int64_t end = h->causal ? gc_min(h->keys, q0 + rows) : h->keys;
  return gc_max(0, gc_min(GC_KEYS, end - k0));
}

/* Queries of a tile times the scale, side by side. */
static void NAME(scaled_queries)(const NAME(head) * h, int64_t q0, int64_t rows, REAL *to) {
  for (int64_t i = 0; i < rows; i++) {
    const REAL *from = h->q.at + (q0 + i) * h->q.rs;
    for (int64_t d = 0; d < h->depth; d++)
      to[i * h->depth + d] = h->scale * from[d];
  }
}

static void NAME(add_mask)(const NAME(head) * h, NAME(tile_at) t, REAL *scores) {
  const gc_tensor *mask = h->mask;
  const int64_t step = mask->stride[3];
  for (int64_t i = 0; i < t.rows; i++) {
    const int64_t at = h->mask_at + (t.q0 + i) * mask->stride[2] + t.k0 * step;
    REAL *row = scores + i * GC_KEYS;
    if (mask->dtype == GC_BOOL) {
      const uint8_t *shown = (const uint8_t *)gc_first(mask) + at;
      for (int64_t j = 0; j < t.columns; j++)
        row[j] = shown[j * step] ? row[j] : -(REAL)INFINITY;
    } else {
      const REAL *more = (const REAL *)gc_first(mask) + at;
      for (int64_t j = 0; j < t.columns; j++)
        row[j] += more[j * step];
    }
  }
}

/* Rows of GC_KEYS scores, from the keys as columns; what a row does not see is left as it is. */
static void NAME(scores_of)(const NAME(head) * h, NAME(tile_at) t, const REAL *queries,
                            const REAL *keys, REAL *scores, REAL *scratch) {
  NAME(gemm)(t.rows, t.columns, h->depth, (NAME(matrix)){queries, h->depth, 1},
             (NAME(matrix)){keys, GC_KEYS, 1}, scores, GC_KEYS, false, scratch);
  if (h->mask)
    NAME(add_mask)(h, t, scores);
}

/* q, k, v, mask -> out, the logarithm of the sum of each row's exponentials. sizes[0]: causal;
 * options[0]: scale. */
static int NAME(plan_attention)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  const int status = NAME(check_attention)(call, error);
  if (status)
    return status;
  const int64_t heads = t[0].shape[0] * t[0].shape[1], rows = t[0].shape[2];
  if (rows)
    plan->worker_bytes =
        GEMM_SCRATCH + GC_QUERIES * (int64_t)sizeof(double) +
        (GC_QUERIES * (GC_KEYS + 1 + t[0].shape[3] + t[2].shape[3]) + GC_KEYS * t[0].shape[3]) *
            (int64_t)sizeof(REAL);
  const int64_t keys = t[1].shape[2];
  const int64_t group = gc_query_tile(keys) * gc_query_group(heads, rows, keys);
  return gc_plan_simple(plan, heads * gc_ceil_div(rows, group));
}

typedef struct {
  REAL *scratch;                      /* for gemm */
  REAL *queries, *scores, *out, *top; /* of a tile; top: each row's largest score so far */
  REAL *keys;                         /* of a tile, as columns */
  int64_t keys_at;                    /* ... which begins here; -1: none yet */
  double *sum;                        /* of the exponentials so far */
} NAME(attention_own);

static NAME(attention_own) NAME(attention_memory)(const gc_job *job, const NAME(head) * h) {
  NAME(attention_own) own = {.sum = job->own, .keys_at = -1};
  own.scratch = (REAL *)(own.sum + GC_QUERIES);
  own.scores = own.scratch + GEMM_SCRATCH / (int64_t)sizeof(REAL);
  own.top = own.scores + GC_QUERIES * GC_KEYS;
  own.keys = own.top + GC_QUERIES;
  own.queries = own.keys + GC_KEYS * h->depth;
  own.out = own.queries + GC_QUERIES * h->depth;
  return own;
}

/* x = exp(x - top) for whole steps; returns their sum. */
static inline REAL NAME(exp_steps)(REAL *x, int64_t n, REAL top) {
  NAME(vec) sum = {0};
  for (int64_t j = 0; j < n; j += LANES) {
    NAME(loose) *const at = (NAME(loose) *)(x + j);
    const NAME(vec) y = NAME(exp_each)(*at - top);
    *at = y;
    sum += y;
  }
  return NAME(sum_of_each)(sum);
}

/* Scores become exponentials, under the largest score that each row has seen. What was summed up
 * under a smaller one shrinks. */
static void NAME(take_scores)(const NAME(head) * h, NAME(tile_at) t,
                              const NAME(attention_own) * own) {
  REAL tops[GC_QUERIES];
  NAME(pad_rows)(h, t, own->scores);
  for (int64_t i = 0; i < t.rows; i++)
    tops[i] = NAME(largest)(own->scores + i * GC_KEYS, NAME(padded)(h, t, i));
  for (int64_t i = 0; i < t.rows; i++) {
    REAL *row = own->scores + i * GC_KEYS, *out = own->out + i * h->width;
    const int64_t padded = NAME(padded)(h, t, i);
    const REAL before = own->top[i], top = NAME(larger)(tops[i], before);
    const REAL base = top == -(REAL)INFINITY ? 0 : top;
    if (t.k0 > 0 && base != before) {
      const REAL shrink = m_exp_normal(before - base);
      own->sum[i] *= (double)shrink;
      for (int64_t d = 0; d < h->width; d++)
        out[d] *= shrink;
    }
    own->top[i] = top;
    own->sum[i] += (double)NAME(exp_steps)(row, padded, base);
    for (int64_t j = padded; j < t.columns; j++)
      row[j] = 0;
  }
}

static void NAME(write_attention)(const gc_job *job, const NAME(head) * h, NAME(tile_at) t,
                                  int64_t head, const NAME(attention_own) * own) {
  const gc_tensor *out = &job->call->tensors[4];
  REAL *logs = (REAL *)gc_first(&job->call->tensors[5]) + head * h->queries + t.q0;
  REAL *to = (REAL *)gc_first(out) + head / out->shape[1] * out->stride[0] +
             head % out->shape[1] * out->stride[1] + t.q0 * out->stride[2];
  for (int64_t i = 0; i < t.rows; i++) {
    const bool hidden = own->sum[i] == 0;
    const REAL factor = hidden ? 0 : (REAL)(1 / own->sum[i]);
    for (int64_t d = 0; d < h->width; d++)
      to[i * out->stride[2] + d] = factor * own->out[i * h->width + d];
    logs[i] = hidden ? 0 : own->top[i] + m_log((REAL)own->sum[i]);
  }
}

static void NAME(attend)(const gc_job *job, const NAME(head) * h, int64_t head, NAME(tile_at) t,
                         NAME(attention_own) * own) {
  NAME(scaled_queries)(h, t.q0, t.rows, own->queries);
  for (int64_t i = 0; i < t.rows; i++) {
    own->top[i] = -(REAL)INFINITY;
    own->sum[i] = 0;
  }
  if (h->keys == 0)
    memset(own->out, 0, (size_t)(t.rows * h->width) * sizeof(REAL));
  for (; (t.columns = NAME(keys_of_tile)(h, t.q0, t.rows, t.k0)) > 0; t.k0 += GC_KEYS) {
    if (own->keys_at != t.k0)
      NAME(turn_rows)(NAME(part)(h->k, t.k0, 0), gc_min(GC_KEYS, h->keys - t.k0), h->depth,
                      own->keys);
    own->keys_at = t.k0;
    NAME(scores_of)(h, t, own->queries, own->keys, own->scores, own->scratch);
    NAME(take_scores)(h, t, own);
    NAME(gemm)(t.rows, h->width, t.columns, (NAME(matrix)){own->scores, GC_KEYS, 1},
               NAME(part)(h->v, t.k0, 0), own->out, h->width, t.k0 > 0, own->scratch);
  }
  NAME(write_attention)(job, h, t, head, own);
}

static void NAME(run_attention_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t rows = t[0].shape[2], step = gc_query_tile(t[1].shape[2]);
  const int64_t group = step * gc_query_group(t[0].shape[0] * t[0].shape[1], rows, t[1].shape[2]);
  const int64_t tasks = gc_ceil_div(rows, group), head = job->task / tasks;
  const NAME(head) h = NAME(head_of)(job->call, head);
  NAME(attention_own) own = NAME(attention_memory)(job, &h);
  const int64_t first = job->task % tasks * group, end = gc_min(rows, first + group);
  for (int64_t q0 = first; q0 < end; q0 += step)
    NAME(attend)(job, &h, head, (NAME(tile_at)){.q0 = q0, .rows = gc_min(step, end - q0)}, &own);
}

#endif
