/* matmul_check.h -- what the plans of all matrix products refuse, whatever they multiply. */
#ifndef GC_MATMUL_CHECK_H
#define GC_MATMUL_CHECK_H

#include "../kernel.h"

/* Whether an output lies apart from the inputs: it holds sums before all of those have been read.
 */
static inline bool gc_apart(const gc_tensor *t, int32_t inputs, int32_t out) {
  for (int32_t i = 0; i < inputs; i++)
    if (gc_numel(&t[i]) && gc_numel(&t[out]) && gc_first(&t[i]) == gc_first(&t[out]))
      return false;
  return true;
}

/* Checks a, b and bias, and the output number `out`. */
static inline int gc_check_matmul(const gc_call *call, int32_t out, gc_error *error) {
  const gc_tensor *t = call->tensors;
  const int32_t each[4] = {0, 1, 2, out};
  for (int32_t i = 0; i < 4; i++) {
    const gc_tensor *one = &t[each[i]];
    GC_REQUIRE(one->ndim == (i == 2 ? 1 : 3), each[i], "(batch, rows, columns); bias: (columns)");
    GC_REQUIRE(one->dtype == t[0].dtype, each[i], "tensors of one element type");
  }
  GC_REQUIRE(t[1].shape[0] == t[0].shape[0], 1, "the same batch");
  GC_REQUIRE(t[1].shape[1] == t[0].shape[2], 1, "as many rows as the left matrix has columns");
  GC_REQUIRE(t[2].shape[0] == 0 || t[2].shape[0] == t[1].shape[2], 2, "a bias for each column");
  GC_REQUIRE(gc_contiguous(&t[2]), 2, "a contiguous tensor");
  GC_REQUIRE(t[out].shape[0] == t[0].shape[0] && t[out].shape[1] == t[0].shape[1] &&
                 t[out].shape[2] == t[1].shape[2],
             out, "(batch, rows of the left, columns of the right)");
  GC_REQUIRE(gc_contiguous(&t[out]), out, "a contiguous tensor");
  GC_REQUIRE(gc_apart(t, 3, out), out, "an output in memory of its own");
  return GC_OK;
}

#endif
