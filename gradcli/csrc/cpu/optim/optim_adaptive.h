/* optim_adaptive.h -- steps that scale each weight by what its gradients were so far: RMSprop,
 * Adagrad, Adadelta, Adam's relatives, and Lion, which takes their sign. As in optim.h formulas and
 * order are PyTorch's, `hyper` is (learning rate, step from 1), and option 0 is the weight decay.
 */
#ifndef GC_OPTIM_ADAPTIVE_H
#define GC_OPTIM_ADAPTIVE_H

#include "../../maths_shared.h"
#include "../elementwise/maths_base.h"
#include "../kernel.h"
#include "../type.h"
#include "../walk.h"
#include "optim.h"

/* square = alpha square + (1 - alpha) g^2; scale = sqrt(square - mean^2) + eps, where a mean is
 * kept; w -= lr g / scale, or of a sum: sum = momentum sum + g / scale.
 * Options: weight decay, alpha, eps, momentum. */
static void NAME(rmsprop)(const gc_job *job, int32_t at_mean, int32_t at_sum) {
  STEP_HYPER(lr, step);
  const double *options = job->call->options;
  const REAL rate = (REAL)lr, decay = (REAL)options[0];
  const REAL keep = (REAL)options[1], fresh = (REAL)(1 - options[1]), eps = (REAL)options[2];
  const REAL momentum = (REAL)options[3], still = (REAL)(1 - (1 - options[1]));
  BLOCK_OF(job, first, n);
  const REAL *grad = STEP_TENSOR(0);
  REAL *w = STEP_TENSOR(2), *square = STEP_TENSOR(3);
  REAL *mean = at_mean ? STEP_TENSOR(at_mean) : NULL, *sum = at_sum ? STEP_TENSOR(at_sum) : NULL;
  for (int64_t i = 0; i < n; i++) {
    const REAL g = decay != 0 ? grad[i] + decay * w[i] : grad[i];
    REAL spread = square[i] * keep + fresh * g * g;
    square[i] = spread;
    if (mean) {
      const REAL way = g - mean[i];
      mean[i] = fresh < R(0.5) ? mean[i] + fresh * way : g - way * still;
      spread -= mean[i] * mean[i];
    }
    const REAL scale = m_sqrt(spread) + eps;
    if (sum) {
      sum[i] = sum[i] * momentum + g / scale;
      w[i] -= rate * sum[i];
    } else {
      w[i] -= rate * g / scale;
    }
  }
}

static void NAME(run_rmsprop_step)(const gc_job *job) {
  NAME(rmsprop)(job, 0, 0);
}
static void NAME(run_rmsprop_momentum_step)(const gc_job *job) {
  NAME(rmsprop)(job, 0, 4);
}
static void NAME(run_rmsprop_centered_step)(const gc_job *job) {
  NAME(rmsprop)(job, 4, 0);
}
static void NAME(run_rmsprop_centered_momentum_step)(const gc_job *job) {
  NAME(rmsprop)(job, 5, 4);
}

/* sum += g^2; w -= lr / (1 + (step - 1) lr_decay) g / (sqrt(sum) + eps).
 * Options: weight decay, lr_decay, eps. */
static void NAME(run_adagrad_step)(const gc_job *job) {
  STEP_HYPER(lr, step);
  const double *options = job->call->options;
  const REAL rate = (REAL)(lr / (1 + (step - 1) * options[1]));
  const REAL decay = (REAL)options[0], eps = (REAL)options[2];
  BLOCK_OF(job, first, n);
  const REAL *grad = STEP_TENSOR(0);
  REAL *w = STEP_TENSOR(2), *sum = STEP_TENSOR(3);
  for (int64_t i = 0; i < n; i++) {
    const REAL g = decay != 0 ? grad[i] + decay * w[i] : grad[i];
    const REAL squares = sum[i] + g * g;
    sum[i] = squares;
    w[i] -= rate * g / (m_sqrt(squares) + eps);
  }
}

/* square = rho square + (1 - rho) g^2; change = sqrt((changes + eps) / (square + eps)) g;
 * changes = rho changes + (1 - rho) change^2; w -= lr change. Options: weight decay, rho, eps. */
static void NAME(run_adadelta_step)(const gc_job *job) {
  STEP_HYPER(lr, step);
  const double *options = job->call->options;
  const REAL rate = (REAL)lr, decay = (REAL)options[0], eps = (REAL)options[2];
  const REAL keep = (REAL)options[1], fresh = (REAL)(1 - options[1]);
  BLOCK_OF(job, first, n);
  const REAL *grad = STEP_TENSOR(0);
  REAL *w = STEP_TENSOR(2), *square = STEP_TENSOR(3), *changes = STEP_TENSOR(4);
  for (int64_t i = 0; i < n; i++) {
    const REAL g = decay != 0 ? grad[i] + decay * w[i] : grad[i];
    const REAL squares = square[i] * keep + fresh * g * g;
    const REAL change = m_sqrt(changes[i] + eps) / m_sqrt(squares + eps) * g;
    square[i] = squares;
    changes[i] = changes[i] * keep + fresh * change * change;
    w[i] -= rate * change;
  }
}

/* w *= 1 - lr decay; w -= lr sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g.
 * Options: weight decay, beta1, beta2. The sign of 0 is 0, of NaN NaN. */
static void NAME(run_lion_step)(const gc_job *job) {
  STEP_HYPER(lr, step);
  const double *options = job->call->options;
  const REAL rate = (REAL)lr, shrink = (REAL)(1 - lr * options[0]);
  const REAL keep1 = (REAL)options[1], fresh1 = (REAL)(1 - options[1]);
  const REAL keep2 = (REAL)options[2], fresh2 = (REAL)(1 - options[2]);
  BLOCK_OF(job, first, n);
  const REAL *grad = STEP_TENSOR(0);
  REAL *w = STEP_TENSOR(2), *m = STEP_TENSOR(3);
  for (int64_t i = 0; i < n; i++) {
    const REAL g = grad[i], way = m[i] * keep1 + fresh1 * g;
    const REAL sign = way > 0 ? 1 : (way < 0 ? -1 : way);
    m[i] = m[i] * keep2 + fresh2 * g;
    w[i] = w[i] * shrink - rate * sign;
  }
}

/* Adam that divides by the largest v so far. */
static void NAME(run_amsgrad_step)(const gc_job *job) {
  ADAM_OPTIONS;
  const REAL rate = (REAL)(lr * root / (1 - pow(beta1, step))), eps = (REAL)(options[3] * root);
  BLOCK_OF(job, first, n);
  REAL *top = STEP_TENSOR(5);
  ADAM_ELEMENTS({
    top[i] = square < top[i] ? top[i] : square;
    w[i] = old - rate * mean / (m_sqrt(top[i]) + eps);
  })
}

/* Adam with the variance of its scale rectified, and no scale at all while that has none:
 * w -= lr / (1 - beta1^step) m [rect root / (sqrt(v) + eps)]. */
static void NAME(run_radam_step)(const gc_job *job) {
  ADAM_OPTIONS;
  const double power = pow(beta2, step), most = 2 / (1 - beta2) - 1;
  const double now = most - 2 * step * power / (1 - power);
  const bool scaled = now > 5;
  const double rect =
      scaled ? sqrt((now - 4) * (now - 2) * most / ((most - 4) * (most - 2) * now)) : 1;
  const REAL rate = (REAL)(lr / (1 - pow(beta1, step)) * (scaled ? rect * root : 1));
  const REAL eps = (REAL)options[3];
  BLOCK_OF(job, first, n);
  ADAM_ELEMENTS(w[i] = old - rate * mean / (scaled ? m_sqrt(square) + eps : 1))
}

/* Adam with Nesterov's look ahead: mu(t) = beta1 (1 - 0.96^(t momentum_decay) / 2), and the product
 * of all mu so far is kept, float64 (1), in the last tensor.
 * w -= lr ((1 - mu) g / (1 - product) + mu' m / (1 - product mu')) / (sqrt(v / root^2) + eps).
 * Options: weight decay, beta1, beta2, eps, decoupled, momentum_decay. */
static int NAME(plan_nadam)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_REQUIRE(gc_numel(&call->tensors[5]) == 1, 5, "one float64");
  plan->phases = 2;
  plan->tasks[0] = 1;
  plan->tasks[1] = gc_ceil_div(gc_numel(&call->tensors[0]), GC_BLOCK);
  return GC_OK;
}

static double NAME(nadam_mu)(const double *options, double step) {
  return options[1] * (1 - 0.5 * pow(0.96, step * options[5]));
}

static void NAME(run_nadam_step)(const gc_job *job) {
  ADAM_OPTIONS;
  double *product = (double *)gc_first(&job->call->tensors[5]);
  const double mu = NAME(nadam_mu)(options, step), next = NAME(nadam_mu)(options, step + 1);
  if (job->phase == 0) {
    *product *= mu;
    return;
  }
  const REAL of_grad = (REAL)(lr * (1 - mu) / (1 - *product) * root);
  const REAL of_mean = (REAL)(lr * next / (1 - *product * next) * root);
  const REAL eps = (REAL)(options[3] * root);
  BLOCK_OF(job, first, n);
  ADAM_ELEMENTS(w[i] = old - (of_grad * g + of_mean * mean) / (m_sqrt(square) + eps))
}

#undef ADAM_OPTIONS
#undef ADAM_ELEMENTS
#undef STEP_HYPER
#undef STEP_TENSOR

#endif
