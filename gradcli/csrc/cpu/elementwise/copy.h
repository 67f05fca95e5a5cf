/* copy.h -- copy between any strides and element types; fill with one value. This is the only
 * kernel that turns a view into contiguous memory, so that no other kernel needs a strided twin. */

/* The plan of all that goes over blocks of elements, one a task. */
static int NAME(plan_blocks)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  return gc_plan_simple(plan, gc_ceil_div(gc_numel(&call->tensors[0]), GC_BLOCK));
}

/* Out of range is undefined in C; here it is the nearest value, and NaN is 0. */
#if defined(GC_IS_BF16)
#define FROM_REAL(x) gc_rounded_half((float)(x))
#define FROM_WHOLE(x) gc_rounded_half((float)(x))
#elif defined(GC_IS_REAL)
#define FROM_REAL(x) ((REAL)(x))
#define FROM_WHOLE(x) ((REAL)(x))
#else
static inline REAL NAME(from_real)(double x) {
  if (x != x)
    return 0;
  return x <= GC_INT_LOW ? GC_INT_MIN : (x >= GC_INT_HIGH ? GC_INT_MAX : (REAL)x);
}
#define FROM_REAL(x) NAME(from_real)((double)(x))
#define FROM_WHOLE(x) ((REAL)(x))
#endif
#define FROM_HALF(x) FROM_REAL(gc_widened(x))
#define TRUTH(x) ((REAL)((x) != 0))
#define TRUTH_OF_HALF(x) TRUTH(gc_widened(x))
#define AS_IT_IS(x) (x)

#define COPY_SPAN(FROM, convert)                                                                   \
  do {                                                                                             \
    const FROM *in = (const FROM *)gc_first(&t[0]) + w.offset[0];                                  \
    if (si == 1 && so == 1)                                                                        \
      for (int64_t i = 0; i < n; i++)                                                              \
        out[i] = convert(in[i]);                                                                   \
    else                                                                                           \
      for (int64_t i = 0; i < n; i++)                                                              \
        out[i * so] = convert(in[i * si]);                                                         \
  } while (0)

#define COPY_CASE(label, FROM, convert)                                                            \
  label:                                                                                           \
  COPY_SPAN(FROM, convert);                                                                        \
  break;
#define COPY_CASES(from_real, from_half, from_whole)                                               \
  COPY_CASE(case GC_F32, float, from_real)                                                         \
  COPY_CASE(case GC_F64, double, from_real)                                                        \
  COPY_CASE(case GC_BF16, uint16_t, from_half)                                                     \
  COPY_CASE(case GC_I32, int32_t, from_whole)                                                      \
  COPY_CASE(case GC_I64, int64_t, from_whole)                                                      \
  COPY_CASE(default, uint8_t, from_whole)

static void NAME(run_copy)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_tensor *const operands[2] = {&t[0], &t[1]};
  BLOCK_OF(job, first, count);
  gc_walk w;
  gc_walk_begin(&w, operands, 2, first, count);
  const int64_t si = w.stride[0][w.ndim - 1], so = w.stride[1][w.ndim - 1];
  for (int64_t n; (n = gc_walk_span(&w)) > 0; gc_walk_advance(&w, n)) {
    REAL *out = (REAL *)gc_first(&t[1]) + w.offset[1];
#ifdef GC_IS_BF16
    switch (t[0].dtype) { COPY_CASES(FROM_REAL, AS_IT_IS, FROM_WHOLE) }
#else
    if (t[1].dtype == GC_BOOL)
      switch (t[0].dtype) { COPY_CASES(TRUTH, TRUTH_OF_HALF, TRUTH) }
    else
      switch (t[0].dtype) { COPY_CASES(FROM_REAL, FROM_HALF, FROM_WHOLE) }
#endif
  }
}

#undef COPY_CASES
#undef COPY_CASE
#undef COPY_SPAN
#undef FROM_HALF
#undef FROM_WHOLE
#undef AS_IT_IS
#undef TRUTH
#undef TRUTH_OF_HALF

/* The value is options[0], or for integers sizes[0], where a double would lose digits. */
static void NAME(run_fill)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_tensor *const operands[1] = {&t[0]};
#if defined(GC_IS_REAL) || defined(GC_IS_BF16)
  const REAL value = FROM_REAL(job->call->options[0]);
#else
  const REAL value = (REAL)job->call->sizes[0];
#endif
  BLOCK_OF(job, first, count);
  gc_walk w;
  gc_walk_begin(&w, operands, 1, first, count);
  const int64_t so = w.stride[0][w.ndim - 1];
  for (int64_t n; (n = gc_walk_span(&w)) > 0; gc_walk_advance(&w, n)) {
    REAL *out = (REAL *)gc_first(&t[0]) + w.offset[0];
    for (int64_t i = 0; i < n; i++)
      out[i * so] = value;
  }
}

#undef FROM_REAL
