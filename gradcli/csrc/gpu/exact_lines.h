/* exact_lines.h -- sums of lines in two floats. */

/* The sum over all members, for each of them. `high` and `low` are shared, of BDIM.x floats; they
 * may be used again at once. */
FN Exact line_exact(Exact sum, Line line, SHP(float) high, SHP(float) low CTX_P) {
  high[TID.x] = sum.high;
  low[TID.x] = sum.low;
  LINE_JOIN(line, other, {
    const Exact a = {high[TID.x], low[TID.x]}, b = {high[other], low[other]};
    const Exact both = exact_join(a, b);
    high[TID.x] = both.high;
    low[TID.x] = both.low;
  })
  BARRIER();
  const uint first = line_first(line CTX_A);
  const Exact all = {high[first], low[first]};
  BARRIER();
  return all;
}

/* What a block of n threads adds up in. */
#define SHARED_EXACT(high, low, n)                                                                 \
  SHARED(float, high, n);                                                                          \
  SHARED(float, low, n)
