/* norm.h -- layer norm over the last n elements of (rows, n). Both keep the mean and 1 / deviation
 * of every row for the gradient. A weight or bias of no elements is one left out. */

static int NAME(plan_layer_norm)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  GC_REQUIRE(t[0].ndim == 2 && gc_contiguous(&t[0]), 0, "a contiguous (rows, n)");
  const int64_t rows = t[0].shape[0], n = t[0].shape[1];
  for (int32_t i = 1; i < 6; i++)
    GC_REQUIRE(t[i].dtype == t[0].dtype, i, "one element type");
  for (int32_t i = 1; i < 3; i++)
    GC_REQUIRE(gc_is_vector(&t[i], n) || gc_is_vector(&t[i], 0), i, "a vector of n, or of none");
  GC_REQUIRE(gc_same_shape(&t[3], &t[0]) && gc_contiguous(&t[3]), 3, "the shape of x");
  for (int32_t i = 4; i < 6; i++)
    GC_REQUIRE(gc_is_vector(&t[i], rows), i, "a vector of one number for each row");
  return gc_plan_simple(plan, gc_ceil_div(rows, GC_ROWS));
}

/* x, weight, bias -> y, mean, rstd; options[0]: eps */
static void NAME(run_layer_norm)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[0].shape[1], end = gc_min(t[0].shape[0], (job->task + 1) * GC_ROWS);
  const REAL *weight = t[1].shape[0] ? (const REAL *)gc_first(&t[1]) : NULL;
  const REAL *bias = t[2].shape[0] ? (const REAL *)gc_first(&t[2]) : NULL;
  REAL *means = (REAL *)gc_first(&t[4]), *rstds = (REAL *)gc_first(&t[5]);
  for (int64_t row = job->task * GC_ROWS; row < end; row++) {
    const REAL *x = (const REAL *)gc_first(&t[0]) + row * n;
    REAL *y = (REAL *)gc_first(&t[3]) + row * n;
    GC_SUM(sum, n, i, (double)x[i]);
    const double mean = sum / (double)n;
    GC_SUM(squares, n, i, ((double)x[i] - mean) * ((double)x[i] - mean));
    const double rstd = 1 / sqrt(squares / (double)n + job->call->options[0]);
    means[row] = (REAL)mean;
    rstds[row] = (REAL)rstd;
    for (int64_t i = 0; i < n; i++)
      y[i] = (REAL)(((double)x[i] - mean) * rstd);
    if (weight)
      for (int64_t i = 0; i < n; i++)
        y[i] *= weight[i];
    if (bias)
      for (int64_t i = 0; i < n; i++)
        y[i] += bias[i];
  }
}

/* At most GC_MANY groups of rows; each adds its rows up for the gradients of weight and bias. */
static inline int64_t NAME(rows_of_group)(const gc_tensor *x) {
  const int64_t rows = x->shape[0], n = gc_max(1, x->shape[1]);
  return gc_max(1, gc_max(gc_min(rows, GC_BLOCK / n), gc_ceil_div(rows, GC_MANY)));
}

/* x, grad, mean, rstd, weight -> gradients of x, weight and bias */
static int NAME(plan_layer_norm_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  GC_REQUIRE(t[0].ndim == 2 && gc_contiguous(&t[0]), 0, "a contiguous (rows, n)");
  const int64_t rows = t[0].shape[0], n = t[0].shape[1];
  for (int32_t i = 1; i < 8; i++)
    GC_REQUIRE(t[i].dtype == t[0].dtype, i, "one element type");
  GC_REQUIRE(gc_same_shape(&t[1], &t[0]) && gc_contiguous(&t[1]), 1, "the shape of x");
  GC_REQUIRE(gc_is_vector(&t[2], rows), 2, "a vector of one number for each row");
  GC_REQUIRE(gc_is_vector(&t[3], rows), 3, "a vector of one number for each row");
  GC_REQUIRE(gc_is_vector(&t[4], n) || gc_is_vector(&t[4], 0), 4, "a vector of n, or of none");
  GC_REQUIRE(gc_same_shape(&t[5], &t[0]) && gc_contiguous(&t[5]), 5, "the shape of x");
  GC_REQUIRE(gc_is_vector(&t[6], n), 6, "a vector of n");
  GC_REQUIRE(gc_is_vector(&t[7], n), 7, "a vector of n");
  plan->phases = 2;
  plan->tasks[0] = gc_ceil_div(rows, NAME(rows_of_group)(&t[0]));
  plan->tasks[1] = gc_ceil_div(n, GC_WIDTH);
  plan->shared_bytes = 2 * plan->tasks[0] * n * (int64_t)sizeof(double);
  return GC_OK;
}

/* With g = grad * weight and h = (x - mean) * rstd:
 * out = rstd * (g - mean(g) - h * mean(g * h)); h is kept in `out` meanwhile. */
static void NAME(layer_norm_slope)(const REAL *x, const REAL *grad, double mean, double rstd,
                                   const REAL *weight, REAL *out, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    out[i] = (REAL)(((double)x[i] - mean) * rstd);
  double sum, dot;
  if (weight) {
    GC_SUM(weighted, n, i, (double)(grad[i] * weight[i]));
    GC_SUM(projected, n, i, (double)(grad[i] * weight[i]) * (double)out[i]);
    sum = weighted, dot = projected;
  } else {
    GC_SUM(plain, n, i, (double)grad[i]);
    GC_SUM(projected, n, i, (double)grad[i] * (double)out[i]);
    sum = plain, dot = projected;
  }
  const REAL a = (REAL)(sum / (double)n), b = (REAL)(dot / (double)n), scale = (REAL)rstd;
  for (int64_t i = 0; i < n; i++)
    out[i] = scale * ((weight ? grad[i] * weight[i] : grad[i]) - a - out[i] * b);
}

static void NAME(run_layer_norm_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t rows = t[0].shape[0], n = t[0].shape[1], group = NAME(rows_of_group)(&t[0]);
  double *parts = (double *)job->shared;
  if (job->phase == 1) {
    const int64_t groups = gc_ceil_div(rows, group), end = gc_min(n, (job->task + 1) * GC_WIDTH);
    for (int64_t i = job->task * GC_WIDTH; i < end; i++) {
      double weight = 0, bias = 0;
      for (int64_t k = 0; k < groups; k++) {
        weight += parts[2 * k * n + i];
        bias += parts[(2 * k + 1) * n + i];
      }
      ((REAL *)gc_first(&t[6]))[i] = (REAL)weight;
      ((REAL *)gc_first(&t[7]))[i] = (REAL)bias;
    }
    return;
  }
  const REAL *weight = t[4].shape[0] ? (const REAL *)gc_first(&t[4]) : NULL;
  double *dweight = parts + 2 * job->task * n, *dbias = dweight + n;
  for (int64_t i = 0; i < 2 * n; i++)
    dweight[i] = 0;
  const int64_t end = gc_min(rows, (job->task + 1) * group);
  for (int64_t row = job->task * group; row < end; row++) {
    const REAL *x = (const REAL *)gc_first(&t[0]) + row * n;
    const REAL *grad = (const REAL *)gc_first(&t[1]) + row * n;
    const double mean = (double)((const REAL *)gc_first(&t[2]))[row];
    const double rstd = (double)((const REAL *)gc_first(&t[3]))[row];
    for (int64_t i = 0; i < n; i++) {
      dweight[i] += (double)grad[i] * (((double)x[i] - mean) * rstd);
      dbias[i] += (double)grad[i];
    }
    NAME(layer_norm_slope)(x, grad, mean, rstd, weight, (REAL *)gc_first(&t[5]) + row * n, n);
  }
}
