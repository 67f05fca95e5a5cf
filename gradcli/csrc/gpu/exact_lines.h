/* exact_lines.h -- sums of lines in two floats. */

/* The sum over all members, for each of them. `high` and `low` are shared, of BDIM.x floats; they
 * may be used again at once. */
FN Exact line_exact(Exact sum, VAL_REF(Lines) lines, uint member, SHP(float) high,
                    SHP(float) low CTX_P) {
  high[TID.x] = sum.high;
  low[TID.x] = sum.low;
  LINE_JOIN({
    const Exact a = {high[TID.x], low[TID.x]}, b = {high[other], low[other]};
    const Exact both = exact_join(a, b);
    high[TID.x] = both.high;
    low[TID.x] = both.low;
  })
  BARRIER();
  const Exact all = {high[LINE_FIRST], low[LINE_FIRST]};
  BARRIER();
  return all;
}

/* What blocks of 256 threads add up in. */
#define SHARED_EXACT                                                                               \
  SHARED(float, high, 256);                                                                        \
  SHARED(float, low, 256)
#define LINE_EXACT(sum) line_exact(sum, lines, member, high, low CTX_A)
