/* maths_wide.h -- functions of float that go through double where float would lose digits: angles,
 * atan and powers. No branches and no tables, like maths_float.h; within 2 units in the last place
 * (tests/engine/test_maths.py). */
#ifndef GC_MATHS_WIDE_H
#define GC_MATHS_WIDE_H

#include "../../maths_float.h"
#include "maths_base.h"

#ifdef GC_HAS_FMA
#define WIDE_FMA(a, b, c) __builtin_fma(a, b, c)
#else
#define WIDE_FMA(a, b, c) ((a) * (b) + (c))
#endif

/* The largest angle that these loops reduce: below it, multiples of the first part of pi / 2 are
 * exact in double. Larger ones take the C library's way (special_spans.h). */
#define M_NEAR 1e5f

/* x = n pi / 2 + rest, |rest| < 0.793; the last bits of `quarter` are those of n. */
static inline double NAME(m_rest_of_angle)(float x, uint32_t *quarter) {
  const float round_to_integer = 12582912; /* 1.5 * 2^23 */
  const float shifted = M_FMA(x, 0.636619772f, round_to_integer);
  const double n = (double)(shifted - round_to_integer);
  *quarter = NAME(m_bits)(shifted);
  return ((double)x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11;
}

/* The sine of the angle that lies `more` quarters of a turn further. */
static inline float NAME(m_near_sine)(float x, uint32_t more) {
  uint32_t quarter;
  const float r = (float)NAME(m_rest_of_angle)(x, &quarter), z = r * r;
  quarter += more;
  float p = -0.000195068453f;
  p = M_FMA(p, z, 0.00833210163f);
  p = M_FMA(p, z, -0.166666538f);
  const float sine = M_FMA(p * z, r, r);
  float q = 2.44306702e-05f;
  q = M_FMA(q, z, -0.00138873013f);
  q = M_FMA(q, z, 0.0416666456f);
  const float cosine = M_FMA(q, z * z, M_FMA(-0.5f, z, 1));
  const float size = quarter & 1 ? cosine : sine;
  return NAME(m_from_bits)(NAME(m_bits)(size) ^ (quarter & 2) << 30);
}
static inline float NAME(m_near_sin)(float x) {
  return x == 0 ? x : NAME(m_near_sine)(x, 0); /* the polynomial loses the sign of -0 */
}
static inline float NAME(m_near_cos)(float x) {
  return NAME(m_near_sine)(x, 1);
}

/* sin / cos of the rest, or -cos / sin. */
static inline float NAME(m_near_tan)(float x) {
  uint32_t quarter;
  const double r = NAME(m_rest_of_angle)(x, &quarter), z = r * r;
  double p = 2.71637365421332e-06;
  p = WIDE_FMA(p, z, -0.00019839092764411233);
  p = WIDE_FMA(p, z, 0.0083333284016080724);
  p = WIDE_FMA(p, z, -0.16666666627407872);
  p = WIDE_FMA(p, z, 0.99999999999496714);
  const double sine = p * r;
  double q = 2.436390620322259e-05;
  q = WIDE_FMA(q, z, -0.0013886431110664036);
  q = WIDE_FMA(q, z, 0.041666609853112498);
  q = WIDE_FMA(q, z, -0.49999999534836265);
  q = WIDE_FMA(q, z, 0.99999999993782118);
  const bool odd = quarter & 1;
  const double above = odd ? -q : sine, below = odd ? sine : q;
  return x == 0 ? x : (float)(above / below);
}

#define M_ANGLE(name)                                                                              \
  static inline float NAME(m_##name)(float x) {                                                    \
    return fabsf(x) <= M_NEAR ? NAME(m_near_##name)(x) : name##f(x);                               \
  }
M_ANGLE(sin)
M_ANGLE(cos)
M_ANGLE(tan)
#undef M_ANGLE

/* t p(t^2) for t = |x|; above 1, pi / 2 less that of t = 1 / |x|. */
static inline float NAME(m_atan)(float x) {
  const double size = (double)fabsf(x);
  const bool far = size > 1;
  const double t = (far ? 1 : size) / (far ? size : 1), z = t * t;
  double p = 0.0010911148644184693;
  p = WIDE_FMA(p, z, -0.0071994022703533488);
  p = WIDE_FMA(p, z, 0.022274388580253913);
  p = WIDE_FMA(p, z, -0.044357527025372642);
  p = WIDE_FMA(p, z, 0.067161090889528124);
  p = WIDE_FMA(p, z, -0.087987723930028738);
  p = WIDE_FMA(p, z, 0.11054501219217151);
  p = WIDE_FMA(p, z, -0.1427915962407747);
  p = WIDE_FMA(p, z, 0.19999604635364138);
  p = WIDE_FMA(p, z, -0.33333323935227904);
  p = WIDE_FMA(p, z, 0.99999999962822972);
  const double angle = p * t;
  return copysignf((float)(far ? 1.5707963267948966 - angle : angle), x);
}

/* log2(x) for x > 0. x = 2^n m, m in [sqrt(1/2), sqrt(2)); with s = (m - 1) / (m + 1) the logarithm
 * of m is s p(s^2). */
static inline double NAME(m_wide_log2)(float x) {
  const uint32_t bits_of_root_half = 0x3f3504f3;
  const bool subnormal = x < 1.17549435e-38f;
  const uint32_t bits = NAME(m_bits)(subnormal ? x * 8388608 : x);
  const int32_t power = (int32_t)(bits - bits_of_root_half) >> 23;
  const double m = (double)NAME(m_from_bits)(bits - ((uint32_t)power << 23));
  const double s = (m - 1) / (m + 1), z = s * s;
  double p = 0.28290033639716267;
  p = WIDE_FMA(p, z, 0.31990569226980314);
  p = WIDE_FMA(p, z, 0.41220925229059802);
  p = WIDE_FMA(p, z, 0.57707794236788734);
  p = WIDE_FMA(p, z, 0.96179669411332203);
  p = WIDE_FMA(p, z, 2.8853900817778499);
  return WIDE_FMA(p, s, (double)(subnormal ? power - 23 : power));
}

/* 2^t for |t| <= 200: 2^n p(t - n). */
static inline double NAME(m_wide_exp2)(double t) {
  const double round_to_exponent = 6755399441055744.0 + 1023; /* its last bits are those of 2^n */
  const double shifted = t + round_to_exponent, f = t - (shifted - round_to_exponent);
  double p = 1.3175873911914117e-06;
  p = WIDE_FMA(p, f, 1.5309738108599884e-05);
  p = WIDE_FMA(p, f, 0.00015403851681552533);
  p = WIDE_FMA(p, f, 0.0013333452059446601);
  p = WIDE_FMA(p, f, 0.0096181285429448784);
  p = WIDE_FMA(p, f, 0.055504109393450046);
  p = WIDE_FMA(p, f, 0.24022650698880127);
  p = WIDE_FMA(p, f, 0.69314718054651348);
  p = WIDE_FMA(p, f, 0.99999999999976241);
  uint64_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits <<= 52;
  double scale;
  memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

/* `a` where all bits of `mask` are set, `b` where none is. */
static inline float NAME(m_masked)(uint32_t mask, float a, float b) {
  return NAME(m_from_bits)((NAME(m_bits)(a) & mask) | (NAME(m_bits)(b) & ~mask));
}

/* x^y as C has it: NaN for a root of a negative number, its sign for odd powers, 1 for x = 1 and
 * y = 0 whatever the other is. Squares are products. What depends on y alone is numbers and masks:
 * compilers do not vectorise a choice that is the same for all elements. */
static inline float NAME(m_pow)(float x, float y) {
  const float size = fabsf(x), half = 0.5f * y;
  const bool whole = rintf(y) == y;
  const uint32_t sign_of_odd = whole && rintf(half) != half ? 0x80000000u : 0;
  const uint32_t none = y == 0 ? 0xffffffffu : 0, twice = y == 2 ? 0xffffffffu : 0;
  const float below_0 = whole ? 1 : NAN;
  double logarithm = NAME(m_wide_log2)(size);
  logarithm = size < INFINITY ? logarithm : (double)size; /* infinity and NaN */
  logarithm = size == 0 ? (double)-INFINITY : logarithm;
  double t = size == 1 ? 0 : (double)y * logarithm; /* where y is infinite, too */
  t = t > 200 ? 200 : t;
  t = t < -200 ? -200 : t;
  float power = (float)NAME(m_wide_exp2)(t);
  power = NAME(m_from_bits)(NAME(m_bits)(power) ^ (NAME(m_bits)(x) & sign_of_odd));
  power *= x < 0 && size < INFINITY ? below_0 : 1;
  power = x == 1 ? 1 : NAME(m_masked)(none, 1, power);
  return NAME(m_masked)(twice, x * x, power);
}
#undef WIDE_FMA

#endif
