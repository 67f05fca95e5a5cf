/* blocks.h -- sums and largest numbers over the 32 threads of a warp and the threads of a block,
 * always in the same order: a butterfly in the warp, then the warps one after the other. Every
 * thread gets the result. */

FN float warp_sum(float v) {
  for (uint mask = 16; mask > 0; mask >>= 1)
    v += warp_xor(v, mask);
  return v;
}

/* The largest; NaN where there is one. */
FN float larger(float a, float b) {
  return a != a ? a : (b != b ? b : (a > b ? a : b));
}
FN float warp_max(float v) {
  for (uint mask = 16; mask > 0; mask >>= 1)
    v = larger(v, warp_xor(v, mask));
  return v;
}

/* `part` is shared memory of a float for each warp, at least 32. */
FN float block_sum(float v, SHP(float) part CTX_P) {
  v = warp_sum(v);
  if (LANE == 0)
    part[WARP] = v;
  BARRIER();
  v = LANE < BDIM.x / 32 ? part[LANE] : 0.0f;
  v = warp_sum(v);
  BARRIER();
  return v;
}
FN float block_max(float v, SHP(float) part CTX_P) {
  v = warp_max(v);
  if (LANE == 0)
    part[WARP] = v;
  BARRIER();
  v = LANE < BDIM.x / 32 ? part[LANE] : -INFINITY;
  v = warp_max(v);
  BARRIER();
  return v;
}

/* Over `members` neighbouring threads, a power of two: part of a warp, or else the whole block. */
FN float group_sum(float v, uint members, SHP(float) part CTX_P) {
  if (members > 32)
    return block_sum(v, part CTX_A);
  for (uint mask = members / 2; mask > 0; mask >>= 1)
    v += warp_xor(v, mask);
  return v;
}
FN float group_max(float v, uint members, SHP(float) part CTX_P) {
  if (members > 32)
    return block_max(v, part CTX_A);
  for (uint mask = members / 2; mask > 0; mask >>= 1)
    v = larger(v, warp_xor(v, mask));
  return v;
}

/* A sum that carries what rounding takes away (Knuth's two-sum): nearly as good as one in double.
 */
struct Exact {
  float high, low;
};
FN Exact exact_add(Exact sum, float v) {
  const float high = sum.high + v, back = high - sum.high;
  const float lost = (sum.high - (high - back)) + (v - back);
  const Exact result = {high, sum.low + lost};
  return result;
}
/* sum + a b, with what the product had to round. */
FN Exact exact_dot(Exact sum, float a, float b) {
  const float product = a * b;
  sum = exact_add(sum, product);
  sum.low += ffma(a, b, -product);
  return sum;
}
/* The same whichever of the two comes first, so that all lanes of a warp agree. */
FN Exact exact_join(Exact a, Exact b) {
  const float high = a.high + b.high, back = high - a.high;
  const float lost = (a.high - (high - back)) + (b.high - back);
  const Exact result = {high, lost + (a.low + b.low)};
  return result;
}
/* Its value; an infinity, from which nothing finite can be told apart, stays one. */
FN float exact_value(Exact v) {
  return v.low == v.low ? v.high + v.low : v.high;
}
/* Its value over n, in two floats: what the first one had to round stands in the second. */
FN Exact exact_share(Exact v, float n) {
  const float share = exact_value(v) / n, rest = (ffma(-share, n, v.high) + v.low) / n;
  const Exact result = {share, rest == rest ? rest : 0.0f};
  return result;
}
FN Exact warp_exact(Exact v) {
  for (uint mask = 16; mask > 0; mask >>= 1) {
    const Exact other = {warp_xor(v.high, mask), warp_xor(v.low, mask)};
    v = exact_join(v, other);
  }
  return v;
}

/* `high` and `low` are shared memory of a float for each warp, at least 32. */
FN Exact block_exact(Exact v, SHP(float) high, SHP(float) low CTX_P) {
  v = warp_exact(v);
  if (LANE == 0) {
    high[WARP] = v.high;
    low[WARP] = v.low;
  }
  BARRIER();
  const bool some = LANE < BDIM.x / 32;
  const Exact part = {some ? high[LANE] : 0.0f, some ? low[LANE] : 0.0f};
  v = warp_exact(part);
  BARRIER();
  return v;
}

/* As group_sum. */
FN Exact group_exact(Exact v, uint members, SHP(float) high, SHP(float) low CTX_P) {
  if (members > 32)
    return block_exact(v, high, low CTX_A);
  for (uint mask = members / 2; mask > 0; mask >>= 1) {
    const Exact other = {warp_xor(v.high, mask), warp_xor(v.low, mask)};
    v = exact_join(v, other);
  }
  return v;
}
