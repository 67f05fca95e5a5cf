/* nearest.h -- numbers of more bits than a double has, rounded to the nearest one. */
#ifndef GC_NEAREST_H
#define GC_NEAREST_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* (digits + rest) * 2^power, where the rest is less than 1 and `more` says that it is not 0; of two
 * that are equally near the even one. Below 2^-1022 the digits must fit as they are. */
static inline double gc_nearest(unsigned __int128 digits, bool more, int power) {
  const uint64_t high = (uint64_t)(digits >> 64), low = (uint64_t)digits;
  const int bits = high ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll(low | 1);
  const int drop = bits > 53 ? bits - 53 : 0;
  uint64_t kept = (uint64_t)(digits >> drop);
  if (drop) {
    const unsigned __int128 half = (unsigned __int128)1 << (drop - 1),
                            rest = digits & (2 * half - 1);
    kept += rest > half || (rest == half && (more || kept % 2));
  }
  return ldexp((double)kept, power + drop);
}

#endif
