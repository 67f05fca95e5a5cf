/* bfloat16.h -- the upper half of a float, as a type of storage (ushort). */

FN float widened(ushort bits) {
  return u2f((uint)bits << 16);
}

/* To nearest, ties to even; NaN becomes a quiet one. */
FN ushort rounded_half(float x) {
  const uint bits = f2u(x);
  const uint nearest = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const uint quiet = bits >> 16 | 0x40u;
  return (ushort)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : nearest);
}
