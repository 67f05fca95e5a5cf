/* random_philox.h -- Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"):
 * a block cipher over a counter, so that number i of draw d at step s needs no numbers before it.
 *
 * Key: the 64 bits of state[0] (the seed, mixed with the purpose). Counter: (block, draw, state[1]
 * = step). One fill is 64 blocks; word w of its block b stands at [w][b], which is the order of the
 * numbers in a tensor. */
#ifndef GC_RANDOM_PHILOX_H
#define GC_RANDOM_PHILOX_H

#include "../kernel.h"
#include "../walk.h"

enum {
  GC_FILL_BLOCKS = 64,
  GC_FILL_WORDS = 4 * GC_FILL_BLOCKS,
  GC_FILL_PAIRS = 2 * GC_FILL_BLOCKS
};

typedef struct {
  uint32_t key[2];
  uint32_t counter[4]; /* [0] is the block */
} gc_philox;

typedef struct {
  uint32_t word[4][GC_FILL_BLOCKS];
} gc_fill;

/* One round on counter c with round key k. */
#define GC_PHILOX_ROUND(c0, c1, c2, c3, k0, k1)                                                    \
  do {                                                                                             \
    const uint64_t even = (uint64_t)(c0) * 0xD2511F53u, odd = (uint64_t)(c2) * 0xCD9E8D57u;        \
    c0 = (uint32_t)(odd >> 32) ^ c1 ^ (k0);                                                        \
    c1 = (uint32_t)odd;                                                                            \
    c2 = (uint32_t)(even >> 32) ^ c3 ^ (k1);                                                       \
    c3 = (uint32_t)even;                                                                           \
  } while (0)

/* The 64 blocks of fill number `fill`. */
static inline void gc_philox_fill(const gc_philox *philox, int64_t fill, gc_fill *out) {
  const uint32_t first = philox->counter[0] + (uint32_t)(fill * GC_FILL_BLOCKS);
  const uint32_t draw = philox->counter[1], low = philox->counter[2], high = philox->counter[3];
  const uint32_t key0 = philox->key[0], key1 = philox->key[1];
  for (uint32_t b = 0; b < GC_FILL_BLOCKS; b++) {
    uint32_t c0 = first + b, c1 = draw, c2 = low, c3 = high, k0 = key0, k1 = key1;
    for (int round = 0; round < 10; round++) {
      GC_PHILOX_ROUND(c0, c1, c2, c3, k0, k1);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    out->word[0][b] = c0;
    out->word[1][b] = c1;
    out->word[2][b] = c2;
    out->word[3][b] = c3;
  }
}

/* state: int64 (seed, step, first draw); the draw is sizes[0] after the first. */
static inline gc_philox gc_philox_of(const gc_call *call, int32_t state) {
  const int64_t *at = (const int64_t *)gc_first(&call->tensors[state]);
  const uint64_t seed = (uint64_t)at[0], step = (uint64_t)at[1];
  const uint32_t draw = (uint32_t)((uint64_t)at[2] + (uint64_t)call->sizes[0]);
  return (gc_philox){{(uint32_t)seed, (uint32_t)(seed >> 32)},
                     {0, draw, (uint32_t)step, (uint32_t)(step >> 32)}};
}

static inline uint64_t gc_random_64(const gc_fill *fill, int64_t i) {
  const int64_t b = i % GC_FILL_BLOCKS, pair = i / GC_FILL_BLOCKS;
  return (uint64_t)fill->word[2 * pair][b] << 32 | fill->word[2 * pair + 1][b];
}

/* A whole number below n: the high half of bits * n. Off from uniform by n / 2^64 at most. */
static inline uint64_t gc_random_below(uint64_t bits, uint64_t n) {
  return (uint64_t)(((unsigned __int128)bits * n) >> 64);
}

/* What every plan of random.h asks of the tensor that it fills, and of its draw. */
static inline int gc_plan_random(const gc_call *call, int32_t state, int32_t filled,
                                 gc_error *error) {
  GC_REQUIRE(gc_numel(&call->tensors[filled]) <= (int64_t)1 << 33, filled,
             "at most 2^33 random numbers");
  GC_REQUIRE(call->sizes[0] >= 0 && call->sizes[0] <= UINT32_MAX, state, "a draw below 2^32");
  return GC_OK;
}

#endif
