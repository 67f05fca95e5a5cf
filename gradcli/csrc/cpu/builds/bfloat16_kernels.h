/* bfloat16_kernels.h -- the kernels of one instruction set that take bfloat16 as it is: those that
 * move it without computing, and products where the processor multiplies pairs (avx512bf16.c).
 * Whoever else computes widens it first. */

#define GC_IS_BF16
#include "../elementwise/copy.h"
#undef GC_IS_BF16

#ifdef GC_PAIRS
#define PAIRED(kernel)                                                                             \
  [GC_KERNEL_##kernel] = {GC_NAME(plan_##kernel, pairs, GC_ISA),                                   \
                          GC_NAME(run_##kernel, pairs, GC_ISA)}
#endif

static const gc_kernel NAME(table)[GC_STRUCTURED] = {
    [GC_KERNEL_copy] = {NAME(plan_blocks), NAME(run_copy)},
    [GC_KERNEL_fill] = {NAME(plan_blocks), NAME(run_fill)},
#ifdef GC_PAIRS
    PAIRED(matmul),
    PAIRED(conv2d_forward),
    PAIRED(conv2d_grad_input),
    PAIRED(conv2d_grad_weight),
#endif
};
