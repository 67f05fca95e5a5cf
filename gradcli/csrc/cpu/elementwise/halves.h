/* halves.h -- blocks of bfloat16 as numbers of the build, for kernels of float that take it as it
 * is (the fact `widens`). */
#ifndef GC_HALVES_H
#define GC_HALVES_H

#include "../bfloat16.h"
#include "../kernel.h"
#include "../type.h"

#define GC_HALVES 256 /* elements of a block that is widened in the first cache */

static inline void NAME(widen_block)(const uint16_t *from, int64_t n, REAL *to) {
  for (int64_t i = 0; i < n; i++)
    to[i] = (REAL)gc_widened(from[i]);
}

static inline void NAME(round_block)(const REAL *from, int64_t n, uint16_t *to) {
  for (int64_t i = 0; i < n; i++)
    to[i] = gc_rounded_half((float)from[i]);
}

/* What a kernel reads, or writes: a tensor's elements, of bfloat16 where `half`. */
typedef struct {
  void *data;
  bool half;
} NAME(numbers);

static inline NAME(numbers) NAME(numbers_of)(const gc_tensor *t) {
  return (NAME(numbers)){gc_first(t), t->dtype == GC_BF16};
}

/* The numbers at `x`, which are the build's own. */
static inline NAME(numbers) NAME(numbers_at)(const REAL *x) {
  return (NAME(numbers)){(void *)(uintptr_t)x, false};
}

/* n elements from number `at` on: where they lie, or widened into `room`. */
static inline const REAL *NAME(read)(NAME(numbers) x, int64_t at, int64_t n, REAL *room) {
  if (!x.half)
    return (const REAL *)x.data + at;
  NAME(widen_block)((const uint16_t *)x.data + at, n, room);
  return room;
}

/* Where elements from number `at` on are written first, and what puts n of them into their place.
 */
static inline REAL *NAME(place)(NAME(numbers) x, int64_t at, REAL *room) {
  return x.half ? room : (REAL *)x.data + at;
}
static inline void NAME(write)(NAME(numbers) x, int64_t at, int64_t n, const REAL *room) {
  if (x.half)
    NAME(round_block)(room, n, (uint16_t *)x.data + at);
}

#endif
