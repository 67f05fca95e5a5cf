/* softmax.h -- rows of exp(x - max) / sum, and their logarithms, on tensors (outer, n, inner) along
 * n. The maximum goes first, because exp overflows float at 89 and every logit above that would
 * become NaN. A row of -inf alone gives NaN, as 0 / 0 should (and as torch has it). */

static int NAME(plan_rows)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  const int64_t rows = call->tensors[0].shape[0] * call->tensors[0].shape[2];
  return gc_plan_simple(plan, call->tensors[0].shape[1] ? gc_ceil_div(rows, GC_ROWS) : 0);
}

/* The larger of two; of a number and a NaN either, as a NaN shows in the sum of the exponentials.
 */
static inline REAL NAME(larger)(REAL a, REAL b) {
  return a > b ? a : b;
}

/* The largest of n numbers, -inf of none. Compilers do not vectorise it: in what order numbers are
 * compared shows where there are NaNs. */
static inline REAL NAME(largest)(const REAL *x, int64_t n) {
  REAL top = -(REAL)INFINITY;
  if (n < LANES) {
    for (int64_t i = 0; i < n; i++)
      top = NAME(larger)(x[i], top);
    return top;
  }
  NAME(vec) best = *(const NAME(loose) *)(x + n - LANES);
  for (int64_t i = 0; i + LANES < n; i += LANES)
    best = LARGER_OF(*(const NAME(loose) *)(x + i), best);
  return NAME(larger)(NAME(largest_of_each)(best), top);
}

/* The largest of a row; 0 for a row of -inf alone, as -inf - -inf is NaN. */
static REAL NAME(top_of_row)(const REAL *x, int64_t n, int64_t stride) {
  REAL top = stride == 1 ? NAME(largest)(x, n) : x[0];
  for (int64_t i = 1; stride != 1 && i < n; i++)
    top = NAME(larger)(x[i * stride], top);
  return top == -(REAL)INFINITY ? 0 : top;
}

/* y = exp(x - top); returns the sum. What is no normal number of REAL becomes 0. */
static double NAME(exp_row)(const REAL *x, REAL *y, int64_t n, int64_t stride, REAL top) {
  if (stride == 1) {
    for (int64_t i = 0; i < n; i++)
      y[i] = m_exp_normal(x[i] - top);
    return NAME(sum)(y, n);
  }
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    y[i * stride] = m_exp_normal(x[i * stride] - top);
    sum += (double)y[i * stride];
  }
  return sum;
}

/* Calls `row` for each row of the task, with `at` where it begins. */
#define EACH_ROW(job, at, row)                                                                     \
  do {                                                                                             \
    const gc_tensor *t_ = (job)->call->tensors;                                                    \
    const int64_t n_ = t_[0].shape[1], inner_ = t_[0].shape[2], rows_ = t_[0].shape[0] * inner_;   \
    const int64_t end_ = gc_min(rows_, ((job)->task + 1) * GC_ROWS);                               \
    for (int64_t r_ = (job)->task * GC_ROWS; r_ < end_; r_++) {                                    \
      const int64_t at = r_ / inner_ * n_ * inner_ + r_ % inner_;                                  \
      row;                                                                                         \
    }                                                                                              \
  } while (0)

static void NAME(softmax_row)(const REAL *x, REAL *y, int64_t n, int64_t stride) {
  const double sum = NAME(exp_row)(x, y, n, stride, NAME(top_of_row)(x, n, stride));
  const REAL scale = (REAL)(1 / sum);
  for (int64_t i = 0; i < n; i++)
    y[i * stride] *= scale;
}

static void NAME(run_softmax_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const REAL *x = (const REAL *)gc_first(&t[0]);
  REAL *y = (REAL *)gc_first(&t[1]);
  EACH_ROW(job, at, NAME(softmax_row)(x + at, y + at, t[0].shape[1], t[0].shape[2]));
}

static void NAME(log_softmax_row)(const REAL *x, REAL *y, int64_t n, int64_t stride) {
  const REAL top = NAME(top_of_row)(x, n, stride);
  const REAL log_sum = (REAL)log(NAME(exp_row)(x, y, n, stride, top));
  for (int64_t i = 0; i < n; i++)
    y[i * stride] = x[i * stride] - top - log_sum;
}

static void NAME(run_log_softmax_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const REAL *x = (const REAL *)gc_first(&t[0]);
  REAL *y = (REAL *)gc_first(&t[1]);
  EACH_ROW(job, at, NAME(log_softmax_row)(x + at, y + at, t[0].shape[1], t[0].shape[2]));
}

/* y, grad -> y * (grad - sum(y * grad)) */
static void NAME(softmax_slope)(const REAL *y, const REAL *grad, REAL *out, int64_t n,
                                int64_t stride) {
  if (stride == 1) {
    const REAL dot = (REAL)NAME(dot)(y, grad, n);
    for (int64_t i = 0; i < n; i++)
      out[i] = y[i] * (grad[i] - dot);
    return;
  }
  GC_SUM(dot, n, i, (double)y[i * stride] * (double)grad[i * stride]);
  for (int64_t i = 0; i < n; i++)
    out[i * stride] = y[i * stride] * (grad[i * stride] - (REAL)dot);
}

static void NAME(run_softmax_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const REAL *y = (const REAL *)gc_first(&t[0]), *grad = (const REAL *)gc_first(&t[1]);
  REAL *out = (REAL *)gc_first(&t[2]);
  EACH_ROW(job, at, NAME(softmax_slope)(y + at, grad + at, out + at, t[0].shape[1], t[0].shape[2]));
}

/* y, grad -> grad - exp(y) * sum(grad) */
static void NAME(log_softmax_slope)(const REAL *y, const REAL *grad, REAL *out, int64_t n,
                                    int64_t stride) {
  GC_SUM(sum, n, i, (double)grad[i * stride]);
  for (int64_t i = 0; i < n; i++)
    out[i * stride] = grad[i * stride] - m_exp(y[i * stride]) * (REAL)sum;
}

static void NAME(run_log_softmax_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const REAL *y = (const REAL *)gc_first(&t[0]), *grad = (const REAL *)gc_first(&t[1]);
  REAL *out = (REAL *)gc_first(&t[2]);
  EACH_ROW(job, at,
           NAME(log_softmax_slope)(y + at, grad + at, out + at, t[0].shape[1], t[0].shape[2]));
}

#undef EACH_ROW
