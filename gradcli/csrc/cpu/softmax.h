/* softmax.h -- rows of exp(x - max) / sum, on tensors (outer, n, inner) along n. The maximum goes
 * first, because exp overflows float at 89 and every logit above that would become NaN. */

static int NAME(plan_rows)(const gc_call *call, gc_plan *plan, gc_error *error) {
  for (int32_t i = 0; i < call->ntensors; i++) {
    GC_REQUIRE(call->tensors[i].ndim == 3, i, "(outer, n, inner)");
    GC_REQUIRE(gc_contiguous(&call->tensors[i]), i, "a contiguous tensor");
    GC_REQUIRE(gc_same_shape(&call->tensors[i], &call->tensors[0]), i, "tensors of one shape");
  }
  const int64_t rows = call->tensors[0].shape[0] * call->tensors[0].shape[2];
  return gc_plan_simple(plan, call->tensors[0].shape[1] ? gc_ceil_div(rows, GC_ROWS) : 0);
}

static void NAME(softmax_row)(const REAL *x, REAL *y, int64_t n, int64_t stride) {
  REAL top = x[0];
  for (int64_t i = 1; i < n; i++) {
    const REAL v = x[i * stride];
    top = v > top || v != v ? v : top;
  }
  if (top == -(REAL)INFINITY)
    top = 0; /* a row of -inf alone: exp(-inf - -inf) would hide what happened behind the NaN */
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += (double)(y[i * stride] = m_exp(x[i * stride] - top));
  const REAL scale = (REAL)(1 / sum);
  for (int64_t i = 0; i < n; i++)
    y[i * stride] *= scale;
}

static void NAME(run_softmax_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[0].shape[1], inner = t[0].shape[2], rows = t[0].shape[0] * inner;
  const int64_t end = gc_min(rows, (job->task + 1) * GC_ROWS);
  for (int64_t row = job->task * GC_ROWS; row < end; row++) {
    const int64_t at = row / inner * n * inner + row % inner;
    NAME(softmax_row)((const REAL *)gc_first(&t[0]) + at, (REAL *)gc_first(&t[1]) + at, n, inner);
  }
}

/* y, grad -> y * (grad - sum(y * grad)) */
static void NAME(run_softmax_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[0].shape[1], inner = t[0].shape[2], rows = t[0].shape[0] * inner;
  const int64_t end = gc_min(rows, (job->task + 1) * GC_ROWS);
  for (int64_t row = job->task * GC_ROWS; row < end; row++) {
    const int64_t at = row / inner * n * inner + row % inner;
    const REAL *y = (const REAL *)gc_first(&t[0]) + at, *grad = (const REAL *)gc_first(&t[1]) + at;
    REAL *out = (REAL *)gc_first(&t[2]) + at;
    double dot = 0;
    for (int64_t i = 0; i < n; i++)
      dot += (double)y[i * inner] * (double)grad[i * inner];
    for (int64_t i = 0; i < n; i++)
      out[i * inner] = y[i * inner] * (grad[i * inner] - (REAL)dot);
  }
}
