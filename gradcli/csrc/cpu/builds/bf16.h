/* bf16.h -- the kernels of one instruction set that take bfloat16 as it is: those that move it
 * without computing. Whoever else computes widens it first. */
#ifndef GC_BF16_H
#define GC_BF16_H

#define REAL uint16_t
#define GC_TYPE bf16
#define GC_IS_BF16
#include "target.h"

GC_BEGIN_TARGET

#include "../elementwise/copy.h"
#include "../tables.h"

const gc_kernel NAME(table)[GC_STRUCTURED] = {
    [GC_KERNEL_copy] = {NAME(plan_blocks), NAME(run_copy)},
    [GC_KERNEL_fill] = {NAME(plan_blocks), NAME(run_fill)},
};

GC_END_TARGET

#endif
