/* element.h -- numbers as they lie in memory: float32, or bfloat16 in 16 bits. */

#ifdef GC_IS_BF16
FN float number_of(ushort bits) {
  return u2f((uint)bits << 16);
}
/* To the nearest, of two the even one. */
FN ushort element_of(float x) {
  const uint bits = f2u(x), rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return (ushort)((x == x ? rounded : 0x7fc00000u) >> 16);
}
#else
FN float number_of(float x) {
  return x;
}
FN float element_of(float x) {
  return x;
}
#endif
