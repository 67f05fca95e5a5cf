/* moments.h -- Adam's averages, and those of its relatives: m of g and v of g^2. */

struct Adam {
  float decay, decoupled, eps;
  float fresh1, keep1, log1; /* 1 - beta1, 1 - (1 - beta1), log beta1 */
  float fresh2, keep2, log2; /* 1 - beta2, beta2, log beta2 */
};

/* 1 - beta^step without what it would lose where beta^step is near 1. */
FN float adam_share(float log_beta, float step) {
  return -NAME(m_expm1)(step * log_beta);
}

/* w, which a decoupled decay makes smaller at once ... */
FN float adam_old(VAL_REF(Adam) adam, float w, float rate) {
  return adam.decoupled != 0 ? w * (1 - rate * adam.decay) : w;
}

/* ... and the gradient, which the other one is added to. */
FN float adam_grad(VAL_REF(Adam) adam, float grad, float old) {
  return adam.decoupled == 0 && adam.decay != 0 ? grad + adam.decay * old : grad;
}

/* lerp(m, g, 1 - beta1), from the nearer end */
FN float adam_mean(VAL_REF(Adam) adam, float g, float m) {
  const float way = g - m;
  return adam.fresh1 < 0.5f ? m + adam.fresh1 * way : g - way * adam.keep1;
}

FN float adam_square(VAL_REF(Adam) adam, float g, float v) {
  return v * adam.keep2 + adam.fresh2 * g * g;
}
