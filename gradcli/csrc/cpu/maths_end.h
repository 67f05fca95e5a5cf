/* maths_end.h -- forgets the names of maths.h, so that the next element type can define them. */
#undef R
#undef M_NAME
#undef M_FMA
#undef m_exp
#undef m_log
#undef m_sqrt
#undef m_sin
#undef m_cos
#undef m_tanh
#undef m_erf
#undef m_floor
#undef m_ceil
#undef m_pow
#undef m_sigmoid
#undef m_pow_slope
#undef m_gelu_tanh_slope
