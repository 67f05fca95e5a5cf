/* carry.h -- what a sum or a product is carried in: two floats, or int64. In memory it is one or
 * two numbers of the type PART. */

#ifdef GC_IS_REAL
#define CARRY Exact
#define PART float
FN void NAME(keep_carry)(DEV(float) parts, uint i, Exact carry) {
  parts[2 * i] = carry.high;
  parts[2 * i + 1] = carry.low;
}
FN Exact NAME(kept_carry)(DEV(const float) parts, uint i) {
  const Exact carry = {parts[2 * i], parts[2 * i + 1]};
  return carry;
}
FN Exact NAME(carry_of)(float x) {
  const Exact made = {x, 0.0f};
  return made;
}
FN Exact NAME(carry_sum)(Exact a, Exact b) {
  return exact_join(a, b);
}
FN Exact NAME(carry_product)(Exact a, Exact b) {
  const float high = a.high * b.high, lost = ffma(a.high, b.high, -high);
  const Exact made = {high, lost + (a.high * b.low + a.low * b.high)};
  return made;
}
FN float NAME(carry_value)(Exact a) {
  return exact_value(a);
}
#else
#define CARRY i64
#define PART i64
FN void NAME(keep_carry)(DEV(i64) parts, uint i, i64 carry) {
  parts[i] = carry;
}
FN i64 NAME(kept_carry)(DEV(const i64) parts, uint i) {
  return parts[i];
}
FN i64 NAME(carry_of)(REAL x) {
  return (i64)x;
}
FN i64 NAME(carry_sum)(i64 a, i64 b) {
  return a + b;
}
FN i64 NAME(carry_product)(i64 a, i64 b) {
  return a * b;
}
FN REAL NAME(carry_value)(i64 a) {
  return (REAL)a;
}
#endif
