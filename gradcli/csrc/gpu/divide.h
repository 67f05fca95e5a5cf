/* divide.h -- division by a number that the host knew: a multiplication and a shift, for dividends
 * below 2^31. */

struct Divisor {
  uint by, magic, shift;
};

FN uint quotient(uint n, Divisor d) {
  return d.by == 1 ? n : umulhi(n, d.magic) >> d.shift;
}
