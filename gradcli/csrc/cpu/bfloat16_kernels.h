/* bfloat16_kernels.h -- the kernels of one instruction set that move bfloat16 without computing;
 * whoever computes widens it first. */

#define GC_IS_BF16
#include "copy.h"
#undef GC_IS_BF16

static const gc_kernel NAME(table)[GC_STRUCTURED] = {
    [GC_KERNEL_copy] = {NAME(plan_copy), NAME(run_copy)},
    [GC_KERNEL_fill] = {NAME(plan_fill), NAME(run_fill)},
};
