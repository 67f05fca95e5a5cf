/* kernel.h -- what a CPU kernel is: a plan (checks shapes, cuts the work into tasks) and a run
 * (does one task). Tasks depend on the shapes and never on the number of threads, so neither do the
 * bits. */
#ifndef GC_KERNEL_H
#define GC_KERNEL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../call.h"

enum { GC_MAX_PHASES = 3 }; /* the length of gc_plan.tasks */

typedef struct {
  const gc_call *call;
  int64_t number; /* of the call, in its list */
  int32_t phase;
  int64_t task;
  int64_t tasks; /* of this phase */
  void *shared;  /* 64-byte aligned, not cleared */
  void *own;     /* likewise */
  gc_error *error;
} gc_job;

typedef int (*gc_plan_fn)(const gc_call *call, gc_plan *plan, gc_error *error);
typedef void (*gc_run_fn)(const gc_job *job);

typedef struct {
  gc_plan_fn plan;
  gc_run_fn run;
} gc_kernel;

/* For plans: refuse a call, saying which tensor should have been what. */
int gc_refuse(gc_error *error, int status, int tensor, const char *expected);
#define GC_REQUIRE(condition, tensor, expected)                                                    \
  do {                                                                                             \
    if (!(condition))                                                                              \
      return gc_refuse(error, GC_BAD_SHAPE, tensor, expected);                                     \
  } while (0)

/* For runs: report a bad index, or a number that is not finite or 0 where it must not be
 * (`status`); of several the one at the lowest position wins. */
void gc_bad_index(const gc_job *job, int tensor, int64_t where, int64_t value, int64_t limit);
void gc_refuse_number(const gc_job *job, int status, int tensor, int64_t where);

int64_t gc_dtype_size(int32_t dtype);
int64_t gc_numel(const gc_tensor *t);
bool gc_contiguous(const gc_tensor *t);
bool gc_same_shape(const gc_tensor *a, const gc_tensor *b);
static inline void *gc_first(const gc_tensor *t) {
  /* Offset 0 of no elements: NULL + 0 is undefined in C, so it is not computed. */
  return t->offset ? (char *)t->data + t->offset * gc_dtype_size(t->dtype) : t->data;
}

static inline int64_t gc_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static inline int64_t gc_max(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static inline int64_t gc_ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
static inline int64_t gc_whole(int64_t n, int64_t unit) {
  return gc_ceil_div(n, unit) * unit;
}

/* memcpy of a line. Where `to` lies a little further in its page than `from`, AMD's processors take
 * up to 20 times as long for the one instruction by which C libraries copy long lines. */
static inline void gc_copy_line(void *to, const void *from, int64_t nbytes) {
  enum { PAGE = 4096, LITTLE = 64, LONG = 512 };
  const uintptr_t ahead = ((uintptr_t)to - (uintptr_t)from) % PAGE;
  int64_t at = 0;
  if (nbytes >= LONG && ahead > 0 && ahead < LITTLE)
    for (; at + LITTLE <= nbytes; at += LITTLE) {
      char piece[LITTLE];
      memcpy(piece, (const char *)from + at, LITTLE);
      memcpy((char *)to + at, piece, LITTLE);
    }
  memcpy((char *)to + at, (const char *)from + at, (size_t)(nbytes - at));
}

/* The next multiple of the alignment of scratch. */
static inline int64_t gc_rounded(int64_t nbytes) {
  return gc_ceil_div(nbytes, 64) * 64;
}

/* One phase of `tasks` equal tasks and no scratch: most kernels. */
static inline int gc_plan_simple(gc_plan *plan, int64_t tasks) {
  plan->phases = 1;
  plan->tasks[0] = tasks;
  return GC_OK;
}

#endif
