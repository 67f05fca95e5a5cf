/* gather.h -- elements picked and put by an index of their own (gather, scatter), rows put by
 * index, places of what is not 0, and whole-number indices made ready. A bad index is reported with
 * its position and its element is left alone. */
#ifndef GC_GATHER_H
#define GC_GATHER_H

#include "../kernel.h"
#include "../lines.h"
#include "../type.h"
#include "../walk.h"

/* x (outer, n, inner), index (outer, m, inner) -> y[o, j, i] = x[o, index[o, j, i], i]. */
static int NAME(plan_gather)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *y = &call->tensors[2];
  (void)error;
  if (gc_numel(y) == 0)
    return gc_plan_simple(plan, 0);
  const int64_t rows = gc_max(1, GC_BLOCK / y->shape[2]);
  return gc_plan_simple(plan, gc_ceil_div(y->shape[0] * y->shape[1], rows));
}

/* Whether all of them are indices below n: then the loops behind need not ask. */
static inline bool NAME(all_below)(const int64_t *index, int64_t count, int64_t n) {
  uint64_t largest = 0; /* of negative ones the bits are larger than any n */
  for (int64_t i = 0; i < count; i++)
    largest = (uint64_t)index[i] > largest ? (uint64_t)index[i] : largest;
  return largest < (uint64_t)n;
}

static void NAME(run_gather)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[0].shape[1], inner = t[0].shape[2], m = t[1].shape[1];
  const int64_t rows = gc_max(1, GC_BLOCK / inner);
  const int64_t end = gc_min(t[2].shape[0] * m, (job->task + 1) * rows);
  const int64_t *index = (const int64_t *)gc_first(&t[1]);
  const REAL *x = (const REAL *)gc_first(&t[0]);
  REAL *y = (REAL *)gc_first(&t[2]);
  for (int64_t row = job->task * rows; row < end;) {
    const int64_t begin = row / m * n * inner; /* of this outer in x */
    const int64_t stop = gc_min(end, (row / m + 1) * m);
    if (NAME(all_below)(index + row * inner, (stop - row) * inner, n)) {
      if (inner == 1)
        for (; row < stop; row++)
          y[row] = x[begin + index[row]];
      else
        for (; row < stop; row++)
          for (int64_t i = 0, at = row * inner; i < inner; i++, at++)
            y[at] = x[begin + index[at] * inner + i];
    }
    for (; row < stop; row++)
      for (int64_t i = 0; i < inner; i++) {
        const int64_t at = row * inner + i, from = index[at];
        if (from < 0 || from >= n)
          gc_bad_index(job, 1, at, from, n);
        else
          y[at] = x[begin + from * inner + i];
      }
  }
}

/* How scatter cuts (outer, n, inner): into tiles of columns, each with all its n rows. Adding needs
 * a tile in double, so that wide tiles are for short columns. */
typedef struct {
  int64_t width, tiles, group, tasks;
} NAME(put_cut);

static NAME(put_cut) NAME(put_cut_of)(const gc_tensor *out, int64_t m) {
  const int64_t n = out->shape[1], inner = out->shape[2];
  NAME(put_cut) c = {.width = gc_max(1, gc_min(gc_min(inner, GC_WIDTH), 4 * GC_BLOCK / n))};
  c.tiles = gc_ceil_div(inner, c.width);
  c.group = gc_max(1, GC_BLOCK / (n + m) / c.width);
  c.tasks = gc_ceil_div(out->shape[0] * c.tiles, c.group);
  return c;
}

/* Whether so few of n numbers are added to that to carry all of them in double takes longer. */
static inline bool NAME(few_sums)(int64_t inner, int64_t n, int64_t m) {
  return inner == 1 && m <= n / 8;
}

/* A hash table for the sums of m positions has 2^bits slots. */
static inline int NAME(slot_bits)(int64_t m) {
  return 65 - __builtin_clzll((unsigned long long)(m | 1));
}

enum { NAME(PUT), NAME(PUT_SUM), NAME(PUT_PRODUCT), NAME(PUT_MAX), NAME(PUT_MIN), NAME(PUT_WAYS) };

/* x (outer, n, inner), index (outer, m, inner), source like the index -> y: x, in which element
 * index[o, j, i] of column (o, i) is replaced by source[o, j, i], or joined with it as sizes[0]
 * says; in the order of j, so that the last of several stays. Sums are carried in double. */
static int NAME(plan_scatter)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *y = &call->tensors[3];
  GC_REQUIRE(call->sizes[0] >= 0 && call->sizes[0] < NAME(PUT_WAYS), 3, "a known way to join");
  if (gc_numel(y) == 0)
    return gc_plan_simple(plan, 0);
  const NAME(put_cut) c = NAME(put_cut_of)(y, call->tensors[1].shape[1]);
  const int64_t n = y->shape[1], m = call->tensors[1].shape[1];
  if (call->sizes[0] == NAME(PUT_SUM))
    plan->worker_bytes = NAME(few_sums)(y->shape[2], n, m)
                             ? (int64_t)(sizeof(int64_t) + sizeof(double)) << NAME(slot_bits)(m)
                             : c.width * n * (int64_t)sizeof(double);
  return gc_plan_simple(plan, c.tasks);
}

#ifdef GC_IS_REAL
typedef double NAME(put_sum);
#define PUT_ADD(a, b) ((a) + (double)(b))
#define PUT_TIMES(a, b) ((a) * (b))
#define PUT_OVER(a, ORDER, b) ((b) != (b) || (b)ORDER(a))
#else
typedef REAL NAME(put_sum);
static inline REAL NAME(put_add)(REAL a, REAL b) { /* around the end, as everywhere */
  REAL sum;
  (void)__builtin_add_overflow(a, b, &sum);
  return sum;
}
static inline REAL NAME(put_times)(REAL a, REAL b) {
  REAL product;
  (void)__builtin_mul_overflow(a, b, &product);
  return product;
}
#define PUT_ADD NAME(put_add)
#define PUT_TIMES NAME(put_times)
#define PUT_OVER(a, ORDER, b) ((b)ORDER(a))
#endif

/* Adds to few of n numbers: each sum has a slot of a hash table, from its first number on. */
static void NAME(put_few)(const gc_job *job, const int64_t *index, const REAL *source, REAL *y,
                          int64_t first, int64_t n, int64_t m) {
  const int bits = NAME(slot_bits)(m);
  const int64_t slots = (int64_t)1 << bits;
  int64_t *row_of = job->own;
  NAME(put_sum) *sum = (NAME(put_sum) *)(row_of + slots);
  memset(row_of, 0xFF, (size_t)slots * sizeof *row_of); /* -1 everywhere */
  for (int64_t j = 0; j < m; j++) {
    const int64_t row = index[j];
    if (row < 0 || row >= n) {
      gc_bad_index(job, 1, first + j, row, n);
      continue;
    }
    uint64_t slot = ((uint64_t)row * 0x9E3779B97F4A7C15u) >> (64 - bits);
    while (row_of[slot] != row && row_of[slot] >= 0)
      slot = (slot + 1) & (uint64_t)(slots - 1);
    const NAME(put_sum) before = row_of[slot] < 0 ? (NAME(put_sum))y[row] : sum[slot];
    row_of[slot] = row;
    sum[slot] = PUT_ADD(before, source[j]);
  }
  for (int64_t slot = 0; slot < slots; slot++)
    if (row_of[slot] >= 0)
      y[row_of[slot]] = (REAL)sum[slot];
}

/* One tile: for each row of indices, and each column, `join` with the element `to` stands for. */
#define PUT_EACH(target, join)                                                                     \
  if (inner == 1 && NAME(all_below)(index, m, n))                                                  \
    for (int64_t at = 0, i = 0; at < m; at++) {                                                    \
      const int64_t row = index[at];                                                               \
      target;                                                                                      \
      join;                                                                                        \
    }                                                                                              \
  else                                                                                             \
    for (int64_t j = 0; j < m; j++)                                                                \
      for (int64_t i = 0; i < width; i++) {                                                        \
        const int64_t at = j * inner + i, row = index[at];                                         \
        if (row < 0 || row >= n)                                                                   \
          gc_bad_index(job, 1, first + at, row, n);                                                \
        else {                                                                                     \
          target;                                                                                  \
          join;                                                                                    \
        }                                                                                          \
      }

/* x, index, source and y begin at the tile; `first` is the position of its first index. */
static void NAME(put_tile)(const gc_job *job, const int64_t *index, const REAL *source, REAL *y,
                           int64_t first, int64_t width) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[3].shape[1], inner = t[3].shape[2], m = t[1].shape[1];
  switch (job->call->sizes[0]) {
  case NAME(PUT_SUM): {
    if (NAME(few_sums)(inner, n, m)) {
      NAME(put_few)(job, index, source, y, first, n, m);
      break;
    }
    NAME(put_sum) *sum = job->own;
    const int64_t rows = width == inner ? 1 : n, columns = width == inner ? n * width : width;
    for (int64_t row = 0; row < rows; row++)
      for (int64_t i = 0; i < columns; i++)
        sum[row * width + i] = (NAME(put_sum))y[row * inner + i];
    PUT_EACH(NAME(put_sum) *to = &sum[row * width + i], *to = PUT_ADD(*to, source[at]))
    for (int64_t row = 0; row < rows; row++)
      for (int64_t i = 0; i < columns; i++)
        y[row * inner + i] = (REAL)sum[row * width + i];
    break;
  }
  case NAME(PUT_PRODUCT):
    PUT_EACH(REAL *to = &y[row * inner + i], *to = (REAL)PUT_TIMES(*to, source[at]))
    break;
  case NAME(PUT_MAX):
    PUT_EACH(REAL *to = &y[row * inner + i], if (PUT_OVER(*to, >, source[at])) *to = source[at])
    break;
  case NAME(PUT_MIN):
    PUT_EACH(REAL *to = &y[row * inner + i], if (PUT_OVER(*to, <, source[at])) *to = source[at])
    break;
  default:
    PUT_EACH(REAL *to = &y[row * inner + i], *to = source[at])
  }
}

#undef PUT_EACH
#undef PUT_ADD
#undef PUT_TIMES
#undef PUT_OVER

static void NAME(run_scatter)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[3].shape[1], inner = t[3].shape[2], m = t[1].shape[1];
  const NAME(put_cut) c = NAME(put_cut_of)(&t[3], m);
  const int64_t end = gc_min(t[3].shape[0] * c.tiles, (job->task + 1) * c.group);
  for (int64_t tile = job->task * c.group; tile < end; tile++) {
    const int64_t outer = tile / c.tiles, column = tile % c.tiles * c.width;
    const int64_t width = gc_min(c.width, inner - column), at = outer * n * inner + column;
    const REAL *x = (const REAL *)gc_first(&t[0]) + at;
    REAL *y = (REAL *)gc_first(&t[3]) + at;
    /* A tile of whole rows is one row of them all. */
    const int64_t rows = width == inner ? 1 : n, columns = width == inner ? n * width : width;
    for (int64_t row = 0; row < rows && x != y; row++)
      memcpy(y + row * inner, x + row * inner, (size_t)columns * sizeof(REAL));
    const int64_t from = outer * m * inner + column;
    const int64_t *index = m ? (const int64_t *)gc_first(&t[1]) + from : NULL;
    const REAL *source = m ? (const REAL *)gc_first(&t[2]) + from : NULL;
    NAME(put_tile)(job, index, source, y, from, width);
  }
}

/* How index_copy cuts y: into tiles of columns, and those into stripes of rows. Each stripe looks
 * at all indices, so that only wide ones have several. */
typedef struct {
  int64_t tiles, stripes, height;
} NAME(copy_cut);

static NAME(copy_cut) NAME(copy_cut_of)(const gc_tensor *y, int64_t m) {
  enum { WIDE = 8 * GC_WIDTH, STRIPES = 16 };
  const int64_t n = y->shape[1], width = gc_min(WIDE, y->shape[2]);
  NAME(copy_cut) c = {.tiles = gc_ceil_div(y->shape[2], WIDE)};
  const int64_t wanted = gc_min(gc_min(STRIPES, width / STRIPES), (n + m) / (GC_BLOCK / width));
  c.height = gc_ceil_div(n, gc_max(1, wanted));
  c.stripes = gc_ceil_div(n, c.height);
  return c;
}

/* x (outer, n, inner), indices (m), source (outer, m, inner) -> y: x, with row indices[j] replaced
 * by row j of the source, in the order of j; any strides. Where y is x, the rest is not touched,
 * and nothing where an index is bad. */
static int NAME(plan_index_copy)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *y = &call->tensors[3];
  (void)error;
  if (gc_numel(y) == 0)
    return gc_plan_simple(plan, 0);
  const NAME(copy_cut) c = NAME(copy_cut_of)(y, call->tensors[1].shape[0]);
  return gc_plan_simple(plan, y->shape[0] * c.tiles * c.stripes);
}

/* Elements of one row, of any strides. */
static inline void NAME(copy_row)(const REAL *from, int64_t step, REAL *to, int64_t stride,
                                  int64_t n) {
  if (step == 1 && stride == 1 && n > 4)
    gc_copy_line(to, from, n * (int64_t)sizeof(REAL));
  else
    for (int64_t i = 0; i < n; i++)
      to[i * stride] = from[i * step];
}

static void NAME(run_index_copy)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors, *x = &t[0], *source = &t[2], *y = &t[3];
  const int64_t m = t[1].shape[0], n = y->shape[1];
  const NAME(copy_cut) c = NAME(copy_cut_of)(y, m);
  const int64_t outer = job->task / c.stripes / c.tiles;
  const int64_t column = job->task / c.stripes % c.tiles * 8 * GC_WIDTH;
  const int64_t width = gc_min(8 * GC_WIDTH, y->shape[2] - column);
  const int64_t top = job->task % c.stripes * c.height, end = gc_min(n, top + c.height);
  const int64_t *indices = (const int64_t *)gc_first(&t[1]);
  const REAL *old = (const REAL *)gc_first(x) + outer * x->stride[0] + column * x->stride[2];
  REAL *out = (REAL *)gc_first(y) + outer * y->stride[0] + column * y->stride[2];
  for (int64_t row = top; row < end && old != out; row++)
    NAME(copy_row)(old + row * x->stride[1], x->stride[2], out + row * y->stride[1], y->stride[2],
                   width);
  if (m == 0)
    return;
  if (!NAME(all_below)(indices, m, n)) {
    for (int64_t j = 0; j < m; j++)
      if (indices[j] < 0 || indices[j] >= n)
        gc_bad_index(job, 1, j, indices[j], n);
    return;
  }
  const REAL *from =
      (const REAL *)gc_first(source) + outer * source->stride[0] + column * source->stride[2];
  for (int64_t j = 0; j < m; j++)
    if (indices[j] >= top && indices[j] < end)
      NAME(copy_row)(from + j * source->stride[1], source->stride[2],
                     out + indices[j] * y->stride[1], y->stride[2], width);
}

/* The same of indices of which negative ones count from the end. */
static inline bool NAME(all_within)(const int64_t *index, int64_t count, int64_t n) {
  uint64_t largest = 0;
  for (int64_t i = 0; i < count; i++) {
    const uint64_t distance = (uint64_t)(index[i] < 0 ? ~index[i] : index[i]);
    largest = distance > largest ? distance : largest;
  }
  return largest < (uint64_t)n;
}

/* Indices (m) into several dimensions become one into all: y = before * sizes[0] + index, with
 * negative ones counted from the end; `before` has no elements for the first dimension. */
static int NAME(plan_flat_index)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  GC_REQUIRE(call->sizes[0] >= 0 && call->sizes[0] <= INT64_MAX / 2, 1, "a size");
  return gc_plan_simple(plan, gc_ceil_div(t[1].shape[0], GC_BLOCK));
}

static void NAME(run_flat_index)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t first = job->task * GC_BLOCK, size = job->call->sizes[0];
  const int64_t end = gc_min(first + GC_BLOCK, t[1].shape[0]);
  const int64_t *before = t[0].shape[0] ? (const int64_t *)gc_first(&t[0]) : NULL;
  const int64_t *index = (const int64_t *)gc_first(&t[1]);
  int64_t *y = (int64_t *)gc_first(&t[2]);
  if (NAME(all_within)(index + first, end - first, size)) {
    for (int64_t i = first; i < end; i++)
      y[i] = index[i] + (index[i] < 0 ? size : 0);
    for (int64_t i = first; before && i < end; i++)
      y[i] = (int64_t)((uint64_t)before[i] * (uint64_t)size + (uint64_t)y[i]);
    return;
  }
  for (int64_t i = first; i < end; i++) {
    y[i] = 0;
    if (index[i] < -size || index[i] >= size)
      gc_bad_index(job, 1, i, index[i], size);
    else { /* unsigned: what Python did not check may leave the range, and is refused behind */
      const uint64_t front = before ? (uint64_t)before[i] * (uint64_t)size : 0;
      y[i] = (int64_t)(front + (uint64_t)(index[i] + (index[i] < 0 ? size : 0)));
    }
  }
}

/* x -> for each element that is not 0, in order, its place (count, ndim). Phase 0 counts in blocks,
 * phase 1 writes; a count that does not fit is cut or leaves zeros. */
static int NAME(plan_nonzero)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *x = &call->tensors[0], *places = &call->tensors[1];
  GC_REQUIRE(x->ndim > 0 && places->shape[1] == x->ndim, 1, "places of (count, ndim)");
  plan->phases = 2;
  plan->tasks[0] = plan->tasks[1] = gc_ceil_div(gc_numel(x), GC_BLOCK);
  plan->shared_bytes = plan->tasks[0] * (int64_t)sizeof(int64_t);
  return GC_OK;
}

static void NAME(write_place)(const gc_tensor *x, int64_t at, int64_t *place) {
  for (int32_t d = x->ndim - 1; d >= 0; d--) {
    place[d] = at % x->shape[d];
    at /= x->shape[d];
  }
}

static void NAME(run_nonzero)(const gc_job *job) {
  const gc_tensor *x = &job->call->tensors[0], *places = &job->call->tensors[1];
  BLOCK_OF(job, first, n);
  const REAL *in = (const REAL *)gc_first(x) + first;
  int64_t *counts = job->shared, found = 0;
  if (job->phase == 0) {
    for (int64_t i = 0; i < n; i++)
      found += in[i] != 0;
    counts[job->task] = found;
    return;
  }
  for (int64_t task = 0; task < job->task; task++)
    found += counts[task];
  int64_t *out = (int64_t *)gc_first(places);
  for (int64_t i = 0; i < n && found < places->shape[0]; i++)
    if (in[i] != 0)
      NAME(write_place)(x, first + i, out + found++ * x->ndim);
  if (job->task == job->tasks - 1)
    for (; found < places->shape[0]; found++)
      memset(out + found * x->ndim, 0, (size_t)x->ndim * sizeof *out);
}

#endif
