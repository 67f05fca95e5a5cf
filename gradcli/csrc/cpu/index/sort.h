/* sort.h -- rows put in order, with the places that their elements had, and places found in sorted
 * rows. Sorting is stable; a NaN is larger than every number, and -0 is 0. */
#ifndef GC_SORT_H
#define GC_SORT_H

#include "../kernel.h"
#include "../type.h"
#include "../walk.h"

/* A number as an unsigned key of the same order. */
static inline uint64_t NAME(sort_key)(REAL x, bool descending) {
#if defined(GC_IS_FLOAT)
  uint32_t bits;
  const REAL plain = x + 0; /* -0 becomes 0 */
  memcpy(&bits, &plain, sizeof bits);
  uint64_t key = x != x ? UINT32_MAX : bits >> 31 ? (uint32_t)~bits : bits | (uint32_t)1 << 31;
#elif defined(GC_IS_REAL)
  uint64_t key;
  const REAL plain = x + 0;
  memcpy(&key, &plain, sizeof key);
  key = x != x ? UINT64_MAX : key >> 63 ? ~key : key | (uint64_t)1 << 63;
#else
  /* Counted from the lowest number; bytes have no sign. */
  uint64_t key = (uint64_t)((int64_t)x) - (uint64_t)((int64_t)GC_INT_MIN);
#endif
  const uint64_t top = UINT64_MAX >> (64 - 8 * sizeof(REAL));
  return descending ? top - key : key;
}

typedef struct {
  uint64_t key;
  int64_t at;
} gc_item;

enum { GC_SORT_SHORT = 48, GC_TOP_SHORT = 64 };

/* The first k of n items in order; the later of two equal ones stays behind. */
static void gc_insert(gc_item *top, int64_t *count, int64_t k, gc_item item) {
  int64_t i = *count < k ? (*count)++ : k - 1;
  for (; i > 0 && top[i - 1].key > item.key; i--)
    top[i] = top[i - 1];
  top[i] = item;
}

/* Radix sort by bytes, from the last; a byte that all have in common is left out. Returns where the
 * result is: items or spare. */
static gc_item *gc_sort_items(gc_item *items, gc_item *spare, int64_t n, int bytes) {
  int64_t counts[8][256];
  memset(counts, 0, sizeof counts);
  for (int64_t i = 0; i < n; i++)
    for (int b = 0; b < bytes; b++)
      counts[b][items[i].key >> (8 * b) & 255]++;
  for (int b = 0; b < bytes; b++) {
    if (counts[b][items[0].key >> (8 * b) & 255] == n)
      continue;
    for (int64_t digit = 0, begin = 0; digit < 256; digit++) {
      const int64_t count = counts[b][digit];
      counts[b][digit] = begin;
      begin += count;
    }
    for (int64_t i = 0; i < n; i++)
      spare[counts[b][items[i].key >> (8 * b) & 255]++] = items[i];
    gc_item *const done = spare;
    spare = items;
    items = done;
  }
  return items;
}

/* x (rows, n) -> the first k of each row in order, and their places; sizes[0]: from the largest. */
static int NAME(plan_sort)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *x = &call->tensors[0], *values = &call->tensors[1];
  GC_REQUIRE(values->shape[1] <= x->shape[1], 1, "(rows, k)");
  if (gc_numel(values) == 0)
    return gc_plan_simple(plan, 0);
  const int64_t n = x->shape[1];
  GC_REQUIRE(n <= INT64_MAX / 64, 0, "rows that fit into memory");
  plan->worker_bytes = gc_max(2 * n, GC_TOP_SHORT) * (int64_t)sizeof(gc_item);
  plan->work = gc_numel(x) * 8;
  return gc_plan_simple(plan, gc_ceil_div(x->shape[0], gc_max(1, GC_BLOCK / 8 / n)));
}

static const gc_item *NAME(sorted_row)(const gc_job *job, const REAL *x) {
  const int64_t n = job->call->tensors[0].shape[1], k = job->call->tensors[1].shape[1];
  const bool descending = job->call->sizes[0] != 0;
  gc_item *items = job->own;
  int64_t count = 0;
  if (n <= GC_SORT_SHORT || (k <= GC_TOP_SHORT && k <= n / 8)) {
    for (int64_t i = 0; i < n; i++) {
      const gc_item item = {NAME(sort_key)(x[i], descending), i};
      if (count < k || item.key < items[k - 1].key)
        gc_insert(items, &count, k, item);
    }
    return items;
  }
  for (int64_t i = 0; i < n; i++)
    items[i] = (gc_item){NAME(sort_key)(x[i], descending), i};
  return gc_sort_items(items, items + n, n, (int)sizeof(REAL));
}

static void NAME(run_sort)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[0].shape[1], k = t[1].shape[1];
  const int64_t rows = gc_max(1, GC_BLOCK / 8 / n);
  const int64_t end = gc_min(t[0].shape[0], (job->task + 1) * rows);
  for (int64_t row = job->task * rows; row < end; row++) {
    const REAL *x = (const REAL *)gc_first(&t[0]) + row * n;
    const gc_item *items = NAME(sorted_row)(job, x);
    REAL *values = (REAL *)gc_first(&t[1]) + row * k;
    int64_t *places = (int64_t *)gc_first(&t[2]) + row * k;
    for (int64_t i = 0; i < k; i++) {
      places[i] = items[i].at;
      values[i] = x[items[i].at];
    }
  }
}

/* Rows in ascending order (rows, n) or (1, n), values (rows, m) -> for each the number of elements
 * below it, or with sizes[0] those not above it. A NaN comes behind all. */
static int NAME(plan_searchsorted)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *x = &call->tensors[0], *values = &call->tensors[1];
  GC_REQUIRE(x->shape[0] == 1 || x->shape[0] == values->shape[0], 0, "one row, or as many");
  return gc_plan_simple(plan, gc_ceil_div(gc_numel(values), GC_BLOCK / 4));
}

static void NAME(run_searchsorted)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[0].shape[1], m = t[1].shape[1], count = GC_BLOCK / 4;
  const bool one = t[0].shape[0] == 1, right = job->call->sizes[0] != 0;
  const int64_t end = gc_min(gc_numel(&t[1]), (job->task + 1) * count);
  const REAL *values = (const REAL *)gc_first(&t[1]);
  int64_t *places = (int64_t *)gc_first(&t[2]);
  for (int64_t i = job->task * count; i < end; i++) {
    const REAL *row = (const REAL *)gc_first(&t[0]) + (one ? 0 : i / m * n), v = values[i];
    int64_t low = 0, high = n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (right ? !(row[middle] > v) : !(row[middle] >= v))
        low = middle + 1;
      else
        high = middle;
    }
    places[i] = low;
  }
}

#endif
