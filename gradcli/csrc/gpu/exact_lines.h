/* exact_lines.h -- sums of lines in two floats. */

/* The sum over all members; right in member 0. `high` and `low` are shared, of BDIM.x floats. */
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
  const Exact all = {high[TID.x], low[TID.x]};
  return all;
}
