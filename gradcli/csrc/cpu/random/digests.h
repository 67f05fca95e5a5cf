/* digests.h -- BLAKE2b (RFC 7693) of many short texts that differ in the number at their end: an
 * order that depends on nothing but them. */
#ifndef GC_DIGESTS_H
#define GC_DIGESTS_H

#include "../kernel.h"
#include "../type.h"

enum {
  GC_DIGEST_LANES = 8, /* texts at once, a word of each in a vector */
  GC_DIGEST_TASK = 1024,
  GC_DIGEST_TEXT = 108 /* bytes before the number; with its 20 digits they are one block */
};
typedef uint64_t gc_digest_words __attribute__((vector_size(8 * GC_DIGEST_LANES)));

static const uint64_t gc_blake2b_start[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u};
static const uint8_t gc_blake2b_turns[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

#define GC_BLAKE2B_TURNED(x, by) ((x) >> (by) | (x) << (64 - (by)))
#define GC_BLAKE2B_MIX(a, b, c, d, x, y)                                                           \
  do {                                                                                             \
    v[a] += v[b] + text[x];                                                                        \
    v[d] = GC_BLAKE2B_TURNED(v[d] ^ v[a], 32);                                                     \
    v[c] += v[d];                                                                                  \
    v[b] = GC_BLAKE2B_TURNED(v[b] ^ v[c], 24);                                                     \
    v[a] += v[b] + text[y];                                                                        \
    v[d] = GC_BLAKE2B_TURNED(v[d] ^ v[a], 16);                                                     \
    v[c] += v[d];                                                                                  \
    v[b] = GC_BLAKE2B_TURNED(v[b] ^ v[c], 63);                                                     \
  } while (0)

/* The first words of the digests, of 16 bytes each, of texts that are one block. */
static inline void gc_blake2b(const gc_digest_words *text, const gc_digest_words *length,
                              gc_digest_words *word) {
  gc_digest_words v[16];
  for (int i = 0; i < 8; i++)
    v[i] = v[i + 8] = (gc_digest_words){0} + gc_blake2b_start[i];
  v[0] ^= 0x01010010u; /* 16 bytes, no key, no tree */
  *word = v[0];
  v[12] ^= *length;
  v[14] = ~v[14]; /* the last block */
  for (int turn = 0; turn < 12; turn++) {
    const uint8_t *s = gc_blake2b_turns[turn % 10];
    GC_BLAKE2B_MIX(0, 4, 8, 12, s[0], s[1]);
    GC_BLAKE2B_MIX(1, 5, 9, 13, s[2], s[3]);
    GC_BLAKE2B_MIX(2, 6, 10, 14, s[4], s[5]);
    GC_BLAKE2B_MIX(3, 7, 11, 15, s[6], s[7]);
    GC_BLAKE2B_MIX(0, 5, 10, 15, s[8], s[9]);
    GC_BLAKE2B_MIX(1, 6, 11, 12, s[10], s[11]);
    GC_BLAKE2B_MIX(2, 7, 8, 13, s[12], s[13]);
    GC_BLAKE2B_MIX(3, 4, 9, 14, s[14], s[15]);
  }
  *word ^= v[0] ^ v[8];
}

/* Puts the digits of a number behind the first `length` bytes of one lane; returns where they end.
 */
static inline int64_t gc_digest_number(gc_digest_words *text, int lane, int64_t length,
                                       uint64_t number) {
  int64_t digits = 1;
  for (uint64_t rest = number / 10; rest; rest /= 10)
    digits++;
  for (int64_t at = length + digits - 1; at >= length; at--, number /= 10)
    text[at / 8][lane] |= ('0' + number % 10) << (8 * (at % 8));
  return length + digits;
}

/* y[i] = the first 8 bytes of BLAKE2b, of 16, of a text and then i in decimals, as an int64 of the
 * same order. y is of doubles by name, for only the kernels of floats have the machine's vectors.
 */
static int NAME(plan_digest_numbers)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_REQUIRE(call->tensors[0].shape[0] <= GC_DIGEST_TEXT, 0, "at most 108 bytes");
  const int64_t count = call->tensors[1].shape[0];
  plan->work = gc_min(count, INT64_MAX / 64) * 64;
  return gc_plan_simple(plan, gc_ceil_div(count, GC_DIGEST_TASK));
}

static void NAME(run_digest_numbers)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t begin = t[0].shape[0], first = job->task * GC_DIGEST_TASK;
  const int64_t end = gc_min(t[1].shape[0], first + GC_DIGEST_TASK);
  const uint8_t *prefix = (const uint8_t *)gc_first(&t[0]);
  int64_t *out = (int64_t *)gc_first(&t[1]);
  gc_digest_words same[16] = {{0}};
  for (int64_t at = 0; at < begin; at++)
    same[at / 8] |= (uint64_t)prefix[at] << (8 * (at % 8));
  for (int64_t i = first; i < end; i += GC_DIGEST_LANES) {
    gc_digest_words text[16], length = {0}, word;
    memcpy(text, same, sizeof text);
    for (int lane = 0; lane < GC_DIGEST_LANES; lane++)
      length[lane] = (uint64_t)gc_digest_number(text, lane, begin, (uint64_t)(i + lane));
    gc_blake2b(text, &length, &word);
    for (int lane = 0; lane < gc_min(GC_DIGEST_LANES, end - i); lane++)
      out[i + lane] = (int64_t)(__builtin_bswap64(word[lane]) ^ (uint64_t)1 << 63);
  }
}

#endif
