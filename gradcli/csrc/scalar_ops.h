/* scalar_ops.h -- the maths of every elementwise op, one row each, for all targets.
 *
 * UNARY(name, forward in x, saved, slope): slope = dy/dx, written in the saved value and nothing
 *   else; makes the kernels `name` and `name_backward`. p and q are the call's two options.
 * UNARY_STEP(name, forward): flat almost everywhere, no slope.
 * UNARY_ANY(name, forward): all element types; the gradient is written with other ops.
 * BINARY(name, forward in a, b): all element types, broadcast; gradient written with other ops.
 * BINARY_REAL(name, forward, slope_a, slope_b): slopes in a, b and y.
 * COMPARE(name, truth in a, b): gives bool.
 *
 * NaN in must give NaN out: `x < 0 ? 0 : x` keeps a NaN, `x > 0 ? x : 0` would swallow it.
 * Write R(0.5) for constants that are no integers; m_exp and friends are the target's own. */

/* clang-format off */
UNARY(exp,        m_exp(x),                      y, y)
UNARY(log,        m_log(x),                      x, 1 / x)
UNARY(sqrt,       m_sqrt(x),                     y, R(0.5) / y)
UNARY(rsqrt,      1 / m_sqrt(x),                 y, R(-0.5) * y * y * y)
UNARY(sin,        m_sin(x),                      x, m_cos(x))
UNARY(cos,        m_cos(x),                      x, -m_sin(x))
UNARY(tanh,       m_tanh(x),                     y, 1 - y * y)
UNARY(sigmoid,    m_sigmoid(x),                  y, y * (1 - y))
UNARY(relu,       x < 0 ? 0 : x,                 y, y > 0 ? 1 : (y == 0 ? 0 : y))
UNARY(leaky_relu, x < 0 ? p * x : x,             x, x > 0 ? 1 : (x == x ? p : x))
UNARY(gelu,       R(0.5) * x * (1 + m_erf(x * R(0.7071067811865476))),
                                                 x, R(0.5) * (1 + m_erf(x * R(0.7071067811865476)))
                                                      + x * R(0.3989422804014327) * m_exp(R(-0.5) * x * x))
UNARY(gelu_tanh,  m_gelu_tanh(x),                x, m_gelu_tanh_slope(x))
UNARY(clamp,      x < p ? p : (x > q ? q : x),   x, x < p ? 0 : (x > q ? 0 : 1))

UNARY_STEP(floor, m_floor(x))
UNARY_STEP(ceil,  m_ceil(x))
UNARY_STEP(sign,  x > 0 ? 1 : (x < 0 ? -1 : x))

UNARY_ANY(neg, -x)
UNARY_ANY(abs, x < 0 ? -x : x)

BINARY(add,     a + b)
BINARY(sub,     a - b)
BINARY(mul,     a * b)
BINARY(maximum, a != a ? a : (b != b ? b : (a > b ? a : b)))
BINARY(minimum, a != a ? a : (b != b ? b : (a < b ? a : b)))

BINARY_REAL(div, a / b,      1 / b,                            -y / b)
BINARY_REAL(pow, m_pow(a, b), b == 0 ? 0 : b * m_pow(a, b - 1), m_pow_slope(a, b, y))

COMPARE(eq, a == b)
COMPARE(ne, a != b)
COMPARE(lt, a < b)
COMPARE(le, a <= b)
COMPARE(gt, a > b)
COMPARE(ge, a >= b)
/* clang-format on */

#undef UNARY
#undef UNARY_STEP
#undef UNARY_ANY
#undef BINARY
#undef BINARY_REAL
#undef COMPARE
