/* matmul_check.h -- what the plans of all products ask: outputs apart from what is multiplied. */
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

/* For plans. */
#define GC_APART(inputs, out)                                                                      \
  GC_REQUIRE(gc_apart(call->tensors, inputs, out), out, "an output in memory of its own")

#endif
