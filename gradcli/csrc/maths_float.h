/* maths_float.h -- rounding to bfloat16, exp, expm1, log, log1p, tanh, erf and the normal
 * distribution for float: no branches and no tables, so that the loops which call them vectorise.
 * All but the last are at most 2 units in the last place from the true value, over all floats
 * (tests/engine/test_maths.py measures it). The polynomials are minimax fits of our own, each
 * coefficient rounded to float before the next ones were fitted.
 *
 * A select reads `x > hi ? hi : x`: written this way round it keeps a NaN. m_bits and m_from_bits,
 * the float's bits as a whole number and back, are the target's. */
#ifndef GC_MATHS_FLOAT_H
#define GC_MATHS_FLOAT_H

#include "cpu/elementwise/maths_base.h"

/* The nearest bfloat16, of two the even one: the upper half of the bits. */
static inline float NAME(m_bfloat16)(float x) {
  const uint32_t bits = NAME(m_bits)(x);
  const uint32_t nearest = bits + 0x7fffu + (bits >> 16 & 1u);
  return NAME(m_from_bits)((x == x ? nearest : bits | 0x400000u) & 0xffff0000u);
}

/* x = n ln 2 + r, |r| <= ln 2 / 2: exp(r) = 1 + r + r^2 q(r). */
static inline float NAME(m_exp_part)(float x, float n) {
  const float r = M_FMA(n, 2.12194440e-4f, M_FMA(n, -0.693359375f, x));
  float q = 0.00138190319f;
  q = M_FMA(q, r, 0.00836871564f);
  q = M_FMA(q, r, 0.0416682884f);
  q = M_FMA(q, r, 0.166665211f);
  q = M_FMA(q, r, 0.49999994f);
  return M_FMA(q, r * r, r);
}
static inline float NAME(m_exp_rest)(float x, float n) {
  return 1 + NAME(m_exp_part)(x, n);
}

/* exp(x) = 2^n exp(r). 2^n goes on in two factors, one of them 2^63 or 2^-63: it is no float itself
 * where exp(x) is near the largest float or below the smallest normal one. */
static inline float NAME(m_exp)(float x) {
  /* 1.5 * 2^23, whose last bit counts ones, + 127, so that the last bits are those of a power. The
   * sum is even, so that ties are rounded as without it. */
  const float round_to_exponent = x < 0 ? 12582912 + 127 + 63 : 12582912 + 127 - 63;
  x = x > 89 ? 89 : x;
  x = x < -104 ? -104 : x;
  const float shifted = M_FMA(x, 1.44269504f, round_to_exponent), n = shifted - round_to_exponent;
  const float scale = NAME(m_from_bits)(NAME(m_bits)(shifted) << 23);
  return NAME(m_exp_rest)(x, n) * scale * (x < 0 ? 1.08420217e-19f : 9.22337204e18f);
}

/* The same of what is not above 0. */
static inline float NAME(m_exp_negative)(float x) {
  const float round_to_exponent = 12582912 + 127 + 63;
  x = x < -104 ? -104 : x;
  const float shifted = M_FMA(x, 1.44269504f, round_to_exponent), n = shifted - round_to_exponent;
  const float scale = NAME(m_from_bits)(NAME(m_bits)(shifted) << 23);
  return NAME(m_exp_rest)(x, n) * scale * 1.08420217e-19f;
}

/* exp of what is from -88 to 89: 2^n is made at once, and is 0 or infinity at the ends. */
static inline float NAME(m_exp_within)(float x) {
  const float round_to_exponent = 12582912 + 127;
  const float shifted = M_FMA(x, 1.44269504f, round_to_exponent), n = shifted - round_to_exponent;
  return NAME(m_exp_rest)(x, n) * NAME(m_from_bits)(NAME(m_bits)(shifted) << 23);
}

/* exp where it is a normal float, as softmax and the like want it: 0 below -87.7, infinity above
 * 88.4. */
static inline float NAME(m_exp_normal)(float x) {
  x = x > 89 ? 89 : x;
  return NAME(m_exp_within)(x < -88 ? -88 : x);
}

/* 2^n e^r - 1 = 2^n (e^r - 1) + (2^n - 1); half of it, because 2^128 is no float. */
static inline float NAME(m_expm1)(float x) {
  const float round_to_exponent = 12582912 + 126; /* its last bits are those of 2^(n - 1) */
  x = x > 89 ? 89 : x;
  x = x < -20 ? -20 : x;
  const float shifted = M_FMA(x, 1.44269504f, round_to_exponent), n = shifted - round_to_exponent;
  const float scale = NAME(m_from_bits)(NAME(m_bits)(shifted) << 23);
  return 2 * M_FMA(scale, NAME(m_exp_part)(x, n), scale - 0.5f);
}

/* x = 2^n (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); log(x) = n ln 2 + f - f^2 / 2 + f^3 p(f). */
static inline float NAME(m_log)(float x) {
  const uint32_t bits_of_root_half = 0x3f3504f3;
  const bool subnormal = x < 1.17549435e-38f;
  const float normal = subnormal ? x * 8388608 : x;
  const uint32_t bits = NAME(m_bits)(normal);
  const int32_t power = (int32_t)(bits - bits_of_root_half) >> 23;
  const float f = NAME(m_from_bits)(bits - ((uint32_t)power << 23)) - 1;
  const float n = (float)(subnormal ? power - 23 : power);
  float p = 0.0674954057f;
  p = M_FMA(p, f, -0.116701834f);
  p = M_FMA(p, f, 0.118834712f);
  p = M_FMA(p, f, -0.124062084f);
  p = M_FMA(p, f, 0.142203629f);
  p = M_FMA(p, f, -0.166679904f);
  p = M_FMA(p, f, 0.200020716f);
  p = M_FMA(p, f, -0.250000089f);
  p = M_FMA(p, f, 0.333333135f);
  const float square = f * f, small = M_FMA(p, f * square, n * -2.12194440e-4f);
  float y = M_FMA(n, 0.693359375f, f + M_FMA(-0.5f, square, small));
  y = x < INFINITY ? y : x; /* infinity and NaN */
  y = x < 0 ? NAN : y;
  return x == 0 ? -INFINITY : y;
}

/* Near 0: x + x^3 p(x^2). Elsewhere: 1 - 2 / (exp(2 |x|) + 1), with the sign of x. */
static inline float NAME(m_tanh)(float x) {
  const float size = fabsf(x), z = x * x;
  float p = 0.00215763575f;
  p = M_FMA(p, z, -0.00819508638f);
  p = M_FMA(p, z, 0.0217087492f);
  p = M_FMA(p, z, -0.053948462f);
  p = M_FMA(p, z, 0.133332223f);
  p = M_FMA(p, z, -0.333333313f);
  const float near = M_FMA(p * z, x, x);
  const float far = 1 - 2 / (NAME(m_exp)(2 * size) + 1);
  return copysignf(size < 0.625f ? near : far, x); /* near loses the sign of -0 */
}

/* Near 0: x + x p(x^2). Elsewhere: 1 - exp(-q(|x|)), q the polynomial of -log(1 - erf); erf is 1 in
 * float from 3.92 on. */
static inline float NAME(m_erf)(float x) {
  const float size = fabsf(x), z = x * x;
  float p = 7.98823967e-05f;
  p = M_FMA(p, z, -0.000804756477f);
  p = M_FMA(p, z, 0.0051922109f);
  p = M_FMA(p, z, -0.0268556643f);
  p = M_FMA(p, z, 0.112836249f);
  p = M_FMA(p, z, -0.376126289f);
  p = M_FMA(p, z, 0.128379166f);
  const float near = M_FMA(p, x, x), t = size > 4 ? 4 : size;
  float q = 2.1496282e-05f;
  q = M_FMA(q, t, -0.000439099182f);
  q = M_FMA(q, t, 0.00419354951f);
  q = M_FMA(q, t, -0.0251787771f);
  q = M_FMA(q, t, 0.108372197f);
  q = M_FMA(q, t, 0.633262813f);
  q = M_FMA(q, t, 1.12955678f);
  q = M_FMA(q, t, -0.000183444223f);
  const float far = 1 - NAME(m_exp_within)(-q); /* q is at most 17 */
  return size < 0.95f ? near : copysignf(far, x);
}

/* The normal distribution's share below x. Below -|x| it is exp(-q(|x|)), q the polynomial of its
 * logarithm: within 7e-9 of the true value, and 5e-6 of it down to -5. */
static inline float NAME(m_normal_cdf)(float x) {
  const float size = fabsf(x);
  float q = 2.2343501e-08f;
  q = M_FMA(q, size, -6.4145524e-07f);
  q = M_FMA(q, size, 7.943431e-06f);
  q = M_FMA(q, size, -5.411704e-05f);
  q = M_FMA(q, size, 0.00019491125f);
  q = M_FMA(q, size, 2.9515588e-06f);
  q = M_FMA(q, size, -0.004824038f);
  q = M_FMA(q, size, 0.036358085f);
  q = M_FMA(q, size, 0.31830433f);
  q = M_FMA(q, size, 0.797885f);
  q = M_FMA(q, size, 0.6931472f);
  const float below = NAME(m_exp_within)(q > 88 ? -88 : -q); /* exp_within(-88) is 0 */
  return x > 0 ? 1 - below : below;
}

/* log(1 + x): what is lost in rounding 1 + x is small, and as much of the result as of 1 + x. */
static inline float NAME(m_log1p)(float x) {
  const float u = 1 + x, lost = x - (u - 1);
  const float y = NAME(m_log)(u) + lost / u;
  return u > 0 && u < INFINITY ? y : NAME(m_log)(u);
}

#endif
