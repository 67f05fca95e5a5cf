/* numerals.h -- numbers as people write them, with spaces around: 7, -0.25, +1e-3, .5 and 3. */
#ifndef GC_NUMERALS_H
#define GC_NUMERALS_H

#include "kernel.h"
#include "reduce/nearest.h"
#include "type.h"

enum {
  GC_NUMERAL_DIGITS = 19, /* as many as fit 64 bits */
  GC_NUMERAL_POWER = 19   /* of ten, the largest in 64 bits */
};

/* clang-format off */
static const uint64_t gc_tens[GC_NUMERAL_POWER + 1] = {
    1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u,
    1000000000u, 10000000000u, 100000000000u, 1000000000000u, 10000000000000u,
    100000000000000u, 1000000000000000u, 10000000000000000u, 100000000000000000u,
    1000000000000000000u, 10000000000000000000u,
};
/* clang-format on */

static inline bool gc_is_digit(uint8_t letter) {
  return letter >= '0' && letter <= '9';
}

/* digits * 10^power, rounded once; there is a power of ten for it in the table. */
static inline double gc_decimal(uint64_t digits, int power) {
  const uint64_t tens = gc_tens[power < 0 ? -power : power];
  /* Below 2^53 both are exact, and so only this one operation rounds. */
  if (digits >> 53 == 0 && tens >> 53 == 0)
    return power < 0 ? (double)digits / (double)tens : (double)digits * (double)tens;
  if (power >= 0)
    return gc_nearest((unsigned __int128)digits * tens, false, 0);
  /* At least 2^127 / 10^19: more bits than a double has. */
  const int up = __builtin_clzll(digits | 1);
  const unsigned __int128 above = (unsigned __int128)(digits << up) << 64, quotient = above / tens;
  return gc_nearest(quotient, above != quotient * tens, -64 - up);
}

/* A number that takes the whole of a text; false where it is none, or one of more digits. */
static inline bool gc_numeral(const uint8_t *text, const uint8_t *end, double *value) {
  while (text < end && *text == ' ')
    text++;
  while (text < end && end[-1] == ' ')
    end--;
  const bool negative = text < end && *text == '-';
  text += text < end && (*text == '-' || *text == '+');
  uint64_t digits = 0;
  int count = 0, power = 0, seen = 0;
  for (bool behind = false; text < end && (gc_is_digit(*text) || (*text == '.' && !behind));
       text++) {
    if (*text == '.') {
      behind = true;
      continue;
    }
    digits = 10 * digits + (uint64_t)(*text - '0');
    count += digits != 0; /* zeros in front do not count */
    seen = 1;
    power -= behind;
    if (count > GC_NUMERAL_DIGITS || power < -GC_NUMERAL_POWER)
      return false;
  }
  if (!seen)
    return false;
  if (text < end && (*text == 'e' || *text == 'E')) {
    text++;
    const bool below = text < end && *text == '-';
    text += text < end && (*text == '-' || *text == '+');
    int tens = 0;
    if (text == end)
      return false;
    for (; text < end && gc_is_digit(*text) && tens < 1000; text++)
      tens = 10 * tens + (*text - '0');
    power += below ? -tens : tens;
  }
  if (text < end || power < -GC_NUMERAL_POWER || power > GC_NUMERAL_POWER)
    return false;
  *value = gc_decimal(digits, power) * (negative ? -1 : 1);
  return true;
}

/* y[i] = the number in line i of a text, and odd[i] = whether there is none, or one that is not
 * read here. Only the kernels of floats have the machine's vectors, so y is what picks the build.
 */
static int NAME(plan_read_numerals)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)call;
  (void)error;
  return gc_plan_simple(plan, 1);
}

static void NAME(run_read_numerals)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const uint8_t *text = (const uint8_t *)gc_first(&t[0]), *last = text + t[0].shape[0];
  double *out = (double *)gc_first(&t[1]);
  uint8_t *odd = (uint8_t *)gc_first(&t[2]);
  for (int64_t i = 0; i < t[1].shape[0]; i++) {
    const uint8_t *end = text;
    while (end < last && *end != '\n')
      end++;
    out[i] = NAN;
    odd[i] = !gc_numeral(text, end, &out[i]);
    text = end + (end < last);
  }
}

#endif
