/* scalar_ops.h -- the maths of every elementwise op, one row each, for all targets.
 *
 * UNARY(name, forward in x, saved, slope): slope = dy/dx, written in the saved value and nothing
 *   else; makes the kernels `name` and `name_backward`. p and q are the call's two options.
 * UNARY_STEP(name, forward): flat almost everywhere, no slope.
 * UNARY_ANY(name, forward): all element types; the gradient is written with other ops.
 * BINARY(name, forward in a, b): all element types, broadcast; gradient written with other ops.
 * BINARY_WHOLE(name, forward in a, b): integers and bool only, broadcast.
 * BINARY_REAL(name, forward, slope_a, slope_b): slopes in a, b and y; p and q as above.
 * COMPARE(name, truth in a, b): gives bool.
 *
 * NaN in must give NaN out: `x < 0 ? 0 : x` keeps a NaN, `x > 0 ? x : 0` would swallow it.
 * Write R(0.5) for constants that are no integers; m_exp and friends are the target's own.
 *
 * Slopes are read by Python too (engine/ops/elementwise/slopes.py), which computes them with ops:
 * so gradients have gradients. There m_exp is the op exp; a function that is no op stands there
 * once more. */

/* Where a row has no meaning it is nothing. */
#ifndef UNARY
#define UNARY(...)
#endif
#ifndef UNARY_STEP
#define UNARY_STEP(...)
#endif
#ifndef UNARY_ANY
#define UNARY_ANY(...)
#endif
#ifndef BINARY
#define BINARY(...)
#endif
#ifndef BINARY_REAL
#define BINARY_REAL(...)
#endif
#ifndef BINARY_WHOLE
#define BINARY_WHOLE(...)
#endif
#ifndef COMPARE
#define COMPARE(...)
#endif

/* clang-format off */
UNARY(exp,        m_exp(x),                      y, y)
UNARY(log,        m_log(x),                      x, 1 / x)
UNARY(log1p,      m_log1p(x),                    x, 1 / (1 + x))
UNARY(expm1,      m_expm1(x),                    y, y + 1)
UNARY(log2,       m_log2(x),                     x, R(1.4426950408889634) / x)
UNARY(log10,      m_log10(x),                    x, R(0.4342944819032518) / x)
UNARY(exp2,       m_exp2(x),                     y, R(0.6931471805599453) * y)
UNARY(reciprocal, 1 / x,                         y, -y * y)
UNARY(sqrt,       m_sqrt(x),                     y, R(0.5) / y)
UNARY(rsqrt,      1 / m_sqrt(x),                 y, R(-0.5) * y * y * y)
UNARY(sin,        m_sin(x),                      x, m_cos(x))
UNARY(cos,        m_cos(x),                      x, -m_sin(x))
UNARY(tan,        m_tan(x),                      y, 1 + y * y)
UNARY(asin,       m_asin(x),                     x, 1 / m_sqrt((1 - x) * (1 + x)))
UNARY(acos,       m_acos(x),                     x, -1 / m_sqrt((1 - x) * (1 + x)))
UNARY(atan,       m_atan(x),                     x, 1 / (1 + x * x))
UNARY(sinh,       m_sinh(x),                     x, m_cosh(x))
UNARY(cosh,       m_cosh(x),                     x, m_sinh(x))
UNARY(tanh,       m_tanh(x),                     y, 1 - y * y)
UNARY(erf,        m_erf(x),                      x, R(1.1283791670955126) * m_exp(-x * x))
UNARY(erfc,       m_erfc(x),                     x, R(-1.1283791670955126) * m_exp(-x * x))
UNARY(sigmoid,    m_sigmoid(x),                  y, y * (1 - y))
UNARY(relu,       x < 0 ? 0 : x,                 y, y > 0 ? 1 : (y == 0 ? 0 : y))
UNARY(leaky_relu, x < 0 ? p * x : x,             x, x > 0 ? 1 : (x == x ? p : x))
UNARY(elu,        x > 0 ? x : p * m_expm1(x * q), x, x > 0 ? 1 : p * q * m_exp(x * q))
UNARY(selu,       R(1.0507009873554805) * (x > 0 ? x : R(1.6732632423543772) * m_expm1(x)),
                                                 x, R(1.0507009873554805) * (x > 0 ? 1 : R(1.6732632423543772) * m_exp(x)))
UNARY(silu,       x * m_sigmoid(x),              x, m_silu_slope(x))
UNARY(mish,       x * m_mish_share(x),           x, m_mish_slope(x))
UNARY(softplus,   x * p > q ? x : m_log1p(m_exp(x * p)) / p,
                                                 x, x * p > q ? 1 : m_sigmoid(x * p))
UNARY(logsigmoid, (x > 0 ? 0 : x) - m_log1p(m_exp(x < 0 ? x : -x)),
                                                 x, m_sigmoid(-x))
UNARY(softsign,   x / (1 + (x < 0 ? -x : x)),    x, 1 / ((1 + (x < 0 ? -x : x)) * (1 + (x < 0 ? -x : x))))
UNARY(hardswish,  x * m_hardsigmoid(x),          x, x <= -3 ? 0 : (x < 3 ? x / 3 + R(0.5) : (x == x ? 1 : x)))
UNARY(hardsigmoid, m_hardsigmoid(x),             x, x > -3 ? (x < 3 ? 1 / R(6) : 0) : (x == x ? 0 : x))
UNARY(hardtanh,   x < p ? p : (x > q ? q : x),   x, x > p ? (x < q ? 1 : 0) : (x == x ? 0 : x))
UNARY(threshold,  x <= p ? q : x,                x, x <= p ? 0 : 1)
UNARY(gelu,       x * m_normal_cdf(x),           x, m_normal_cdf(x) + x * R(0.3989422804014327) * m_exp_negative(R(-0.5) * x * x))
UNARY(gelu_tanh,  m_gelu_tanh(x),                x, m_gelu_tanh_slope(x))
UNARY(clamp,      x < p ? p : (x > q ? q : x),   x, x < p ? 0 : (x > q ? 0 : 1))

UNARY_STEP(floor, m_floor(x))
UNARY_STEP(ceil,  m_ceil(x))
UNARY_STEP(round, m_rint(x))
UNARY_STEP(trunc, m_trunc(x))
UNARY_STEP(frac,  x - m_trunc(x))
UNARY_STEP(bfloat16, m_bfloat16(x))
UNARY_STEP(sign,  x > 0 ? 1 : (x < 0 ? -1 : x))

UNARY_ANY(neg, -x)
UNARY_ANY(abs, x < 0 ? -x : x)

BINARY(add,     a + b)
BINARY(sub,     a - b)
BINARY(mul,     a * b)
BINARY(maximum, a != a ? a : (b != b ? b : (a > b ? a : b)))
BINARY(minimum, a != a ? a : (b != b ? b : (a < b ? a : b)))

BINARY(remainder,    m_remainder(a, b))
BINARY(fmod,         m_fmod(a, b))
BINARY(floor_divide, m_floor_divide(a, b))

BINARY_REAL(div,   a / b,         1 / b,                            -y / b)
BINARY_REAL(pow,   m_pow(a, b),   b == 0 ? 0 : b * m_pow(a, b - 1), m_pow_slope(a, b, y))
BINARY_REAL(atan2, m_atan2(a, b), m_atan2_slope(b, a),              m_atan2_slope(-a, b))
BINARY_REAL(hypot, m_hypot(a, b), a / y,                            b / y)

BINARY_REAL(lerp,  (p < 0 ? -p : p) < R(0.5) ? a + (b - a) * p : b - (b - a) * q, q, p)
BINARY_REAL(glu,   a * m_sigmoid(b), m_sigmoid(b),                  a * (m_sigmoid(b) * (1 - m_sigmoid(b))))

BINARY_WHOLE(pow_whole,   m_pow_whole(a, b))
BINARY_WHOLE(bitwise_and, a & b)
BINARY_WHOLE(bitwise_or,  a | b)
BINARY_WHOLE(bitwise_xor, a ^ b)

BINARY_REAL(l1,         a < b ? b - a : a - b,          a > b ? 1 : (a < b ? -1 : a - b),     b > a ? 1 : (b < a ? -1 : b - a))
BINARY_REAL(smooth_l1,  m_smooth_l1(a - b, p),          m_smooth_l1_slope(a - b, p),          m_smooth_l1_slope(b - a, p))
BINARY_REAL(huber,      m_huber(a - b, p),              a - b < -p ? -p : (a - b > p ? p : a - b), b - a < -p ? -p : (b - a > p ? p : b - a))
BINARY_REAL(bce,        m_bce(a, b),                    m_bce_slope(a, b),                    m_log_1_plus(-a) - m_log(a))
BINARY_REAL(bce_logits, m_bce_logits(a, b),             m_sigmoid(a) - b,                     -a)
BINARY_REAL(kl,         (b == 0 ? 0 : b * m_log(b)) - a * b, -b,                              m_log(b) + 1 - a)
BINARY_REAL(kl_log,     m_exp(b) * (b - a),             -m_exp(b),                            m_exp(b) * (b - a + 1))

COMPARE(eq, a == b)
COMPARE(ne, a != b)
COMPARE(lt, a < b)
COMPARE(le, a <= b)
COMPARE(gt, a > b)
COMPARE(ge, a >= b)
COMPARE(logical_and, a != 0 && b != 0)
COMPARE(logical_or,  a != 0 || b != 0)
COMPARE(logical_xor, (a != 0) != (b != 0))
/* clang-format on */

#undef UNARY
#undef UNARY_STEP
#undef UNARY_ANY
#undef BINARY
#undef BINARY_REAL
#undef BINARY_WHOLE
#undef COMPARE
