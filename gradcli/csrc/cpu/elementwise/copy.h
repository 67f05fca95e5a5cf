/* copy.h -- copy between any strides and element types; fill with one value. This is the only
 * kernel that turns a view into contiguous memory, so that no other kernel needs a strided twin. */
#ifndef GC_COPY_H
#define GC_COPY_H

#include "../bfloat16.h"
#include "../kernel.h"
#include "../type.h"
#include "../walk.h"

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

/* out[r * so + c] = in[c * si + r]: reads whole pieces of the lines of `in`, since lines that lie a
 * power of two apart drive each other out of the first cache. */
static void NAME(copy_transposed)(const REAL *in, int64_t si, REAL *out, int64_t so, int64_t rows,
                                  int64_t columns) {
  enum { SIDE = 16 };
  for (int64_t c = 0; c < columns; c += SIDE)
    for (int64_t r = 0; r < rows; r += SIDE) {
      const int64_t high = gc_min(SIDE, rows - r), wide = gc_min(SIDE, columns - c);
      const REAL *from = in + c * si + r;
      REAL *to = out + r * so + c, tile[SIDE][SIDE];
      if (high == SIDE && wide == SIDE) {
        for (int64_t k = 0; k < SIDE; k++)
          memcpy(tile[k], from + k * si, sizeof tile[k]);
        for (int64_t j = 0; j < SIDE; j++)
          for (int64_t k = 0; k < SIDE; k++)
            to[j * so + k] = tile[k][j];
      } else {
        for (int64_t j = 0; j < high; j++)
          for (int64_t k = 0; k < wide; k++)
            to[j * so + k] = from[k * si + j];
      }
    }
}

/* Elements of the same type from any stride to neighbours. */
static void NAME(copy_span)(const REAL *in, int64_t si, REAL *out, int64_t n) {
  if (si == 1)
    gc_copy_line(out, in, n * (int64_t)sizeof(REAL));
  else if (si == -1)
    for (int64_t i = 0; i < n; i++)
      out[i] = in[-i];
  else if (si == 0)
    for (int64_t i = 0; i < n; i++)
      out[i] = in[0];
  else
    for (int64_t i = 0; i < n; i++)
      out[i] = in[i * si];
}

/* A copy between equal types, where the last dimension of the output is dense. Whole rows whose
 * elements are neighbours in the input along the dimension before are transposed in tiles. */
static void NAME(copy_same)(const gc_tensor *t, gc_walk *w) {
  const int32_t last = w->ndim - 1;
  const int64_t si = w->stride[0][last];
  const int64_t next_in = last > 0 ? w->stride[0][last - 1] : 0;
  const int64_t next_out = last > 0 ? w->stride[1][last - 1] : 0;
  const bool transposed = last > 0 && si != 0 && si != 1 && next_in == 1;
  const REAL *const first_in = (const REAL *)gc_first(&t[0]);
  REAL *const first_out = (REAL *)gc_first(&t[1]);
  for (int64_t n; (n = gc_walk_span(w)) > 0;) {
    const REAL *in = first_in + w->offset[0];
    REAL *out = first_out + w->offset[1];
    const int64_t rows = gc_walk_rows(w, n);
    if (transposed && rows > 1)
      NAME(copy_transposed)(in, si, out, next_out, rows, n);
    else
      for (int64_t row = 0; row < rows; row++)
        NAME(copy_span)(in + row * next_in, si, out + row * next_out, n);
    gc_walk_advance_rows(w, n, rows);
  }
}

static void NAME(run_copy)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_tensor *const operands[2] = {&t[0], &t[1]};
  BLOCK_OF(job, first, count);
  gc_walk w;
  gc_walk_begin(&w, operands, 2, first, count);
  const int64_t si = w.stride[0][w.ndim - 1], so = w.stride[1][w.ndim - 1];
  if (t[0].dtype == t[1].dtype && t[0].dtype != GC_BOOL && so == 1) {
    NAME(copy_same)(t, &w);
    return;
  }
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

#endif
