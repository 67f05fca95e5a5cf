/* whole.h -- the range of the whole numbers, and numbers of 64 bits in two arguments of 32. */

#define I64_MAX ((i64)9223372036854775807)

/* A number of 64 bits, as launches give them. */
FN i64 whole_of(uint low, uint high) {
  return (i64)high << 32 | (i64)low;
}

#ifndef GC_IS_REAL
FN REAL NAME(least)() {
  return (REAL)(sizeof(REAL) == 1 ? 0 : (sizeof(REAL) == 4 ? -(i64)2147483648 : -I64_MAX - 1));
}
FN REAL NAME(most)() {
  return (REAL)(sizeof(REAL) == 1 ? 255 : (sizeof(REAL) == 4 ? (i64)2147483647 : I64_MAX));
}
#endif
