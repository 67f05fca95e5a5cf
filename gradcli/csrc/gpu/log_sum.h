/* log_sum.h -- the largest of a row and the sum of exp(x - largest) in one pass over it: where a
 * larger one comes, what was summed so far is made smaller. In two floats, as the sum is mostly 1
 * and a little, and its logarithm that little. */

struct LogSum {
  float top;
  Exact sum;
};

/* -inf adds nothing. An infinity leaves NaN, as inf - inf is; NaN stays. */
FN LogSum NAME(log_sum_add)(LogSum all, float v) {
  if (v > all.top) {
    const float scale = NAME(m_exp_normal)(all.top - v);
    const Exact before = {all.sum.high * scale, all.sum.low * scale};
    const LogSum next = {v, exact_add(before, 1 + (v - v))};
    return next;
  }
  if (v != -INFINITY)
    all.sum = exact_add(all.sum, NAME(m_exp_normal)(v - all.top));
  return all;
}

FN LogSum NAME(log_sum_join)(LogSum a, LogSum b) {
  const float top = a.top > b.top ? a.top : b.top;
  const float of_a = a.top == -INFINITY ? 1.0f : NAME(m_exp_normal)(a.top - top);
  const float of_b = b.top == -INFINITY ? 1.0f : NAME(m_exp_normal)(b.top - top);
  const Exact sum_a = {a.sum.high * of_a, a.sum.low * of_a};
  const Exact sum_b = {b.sum.high * of_b, b.sum.low * of_b};
  const LogSum both = {top, exact_join(sum_a, sum_b)};
  return both;
}

/* log(high + low) */
FN float NAME(log_of)(Exact sum) {
  return NAME(m_log)(sum.high) + (sum.low == 0 ? 0.0f : sum.low / sum.high);
}

/* That of the elements of a line that are this thread's. */
FN LogSum NAME(log_sum_of)(DEV(const float) x, Line line) {
  LogSum all = {-INFINITY, {0.0f, 0.0f}};
  EACH_OF_LINE(line, i) {
    all = NAME(log_sum_add)(all, x[line_at(line, i)]);
  }
  return all;
}

/* That of all members of a line, for each of them; `tops`, `highs` and `lows` are shared, of BDIM.x
 * floats; they may be used again at once. */
FN LogSum NAME(line_log_sum)(LogSum all, Line line, SHP(float) tops, SHP(float) highs,
                             SHP(float) lows CTX_P) {
  tops[TID.x] = all.top;
  highs[TID.x] = all.sum.high;
  lows[TID.x] = all.sum.low;
  LINE_JOIN(line, other, {
    const LogSum a = {tops[TID.x], {highs[TID.x], lows[TID.x]}};
    const LogSum b = {tops[other], {highs[other], lows[other]}};
    const LogSum both = NAME(log_sum_join)(a, b);
    tops[TID.x] = both.top;
    highs[TID.x] = both.sum.high;
    lows[TID.x] = both.sum.low;
  })
  BARRIER();
  const uint first = line_first(line CTX_A);
  const LogSum sum = {tops[first], {highs[first], lows[first]}};
  BARRIER();
  return sum;
}
