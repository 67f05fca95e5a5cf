/* bfloat16.h -- the upper half of a float, as a type of storage: 8 bits of exponent, 7 of mantissa.
 * Nothing is computed in it: it is widened, which is exact, and rounded. */
#ifndef GC_BFLOAT16_H
#define GC_BFLOAT16_H

#include <stdint.h>
#include <string.h>

static inline float gc_widened(uint16_t half) {
  const uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* To nearest, ties to even; what is too large becomes infinity, and NaN a quiet NaN. */
static inline uint16_t gc_rounded_half(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t nearest = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const uint32_t quiet = bits >> 16 | 0x40u;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : nearest);
}

#endif
