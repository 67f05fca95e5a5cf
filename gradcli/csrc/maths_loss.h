/* maths_loss.h -- what the losses of scalar_ops.h are made of: d = a - b; or a is the probability
 * of 1, or its logit, and b the target. As in torch logarithms end at -100, and what a slope is
 * divided by at 1e-12 in float. */
#ifndef GC_MATHS_LOSS_H
#define GC_MATHS_LOSS_H

#include "maths_shared.h"

/* log(1 + x): what 1 + x lost by rounding is made up for by the quotient; vectorises. */
static inline REAL NAME(m_log_1_plus)(REAL x) {
  const REAL u = 1 + x;
  return u == 1 ? x : m_log(u) * (x / (u - 1));
}

static inline REAL NAME(m_huber)(REAL d, REAL delta) {
  const REAL size = d < 0 ? -d : d;
  return size <= delta ? R(0.5) * d * d : delta * (size - R(0.5) * delta);
}

static inline REAL NAME(m_smooth_l1)(REAL d, REAL beta) {
  const REAL size = d < 0 ? -d : d;
  return size < beta ? R(0.5) * d * d / beta : size - R(0.5) * beta;
}
static inline REAL NAME(m_smooth_l1_slope)(REAL d, REAL beta) {
  return d <= -beta ? -1 : (d >= beta ? 1 : d / beta);
}

static inline REAL NAME(m_bce)(REAL a, REAL b) {
  const REAL yes = m_log(a), no = NAME(m_log_1_plus)(-a);
  return (b - 1) * (no < -100 ? -100 : no) - b * (yes < -100 ? -100 : yes);
}
static inline REAL NAME(m_bce_slope)(REAL a, REAL b) {
  const REAL spread = (1 - a) * a;
  return (a - b) / (spread < R(1e-12f) ? R(1e-12f) : spread);
}

/* An infinite logit costs nothing where the target agrees with it, and infinity elsewhere. */
static inline REAL NAME(m_bce_logits)(REAL a, REAL b) {
  const REAL size = a < 0 ? -a : a, share = a < 0 ? b : 1 - b;
  const REAL finite = ((a < 0 ? 0 : a) - a * b) + NAME(m_log_1_plus)(m_exp(-size));
  return size == (REAL)INFINITY ? (share == 0 ? 0 : size * share) : finite;
}

#define m_log_1_plus NAME(m_log_1_plus)
#define m_huber NAME(m_huber)
#define m_smooth_l1 NAME(m_smooth_l1)
#define m_smooth_l1_slope NAME(m_smooth_l1_slope)
#define m_bce NAME(m_bce)
#define m_bce_slope NAME(m_bce_slope)
#define m_bce_logits NAME(m_bce_logits)

#endif
