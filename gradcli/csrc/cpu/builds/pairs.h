/* pairs.h -- products of bfloat16 where the processor multiplies pairs of it (avx512bf16), twice as
 * fast as floats. A pair is an element that looks like a float. */
#ifndef GC_PAIRS_H
#define GC_PAIRS_H

#define REAL float
#define GC_TYPE pairs
#define GC_IS_FLOAT
#include "target.h"

GC_BEGIN_TARGET

#include "../conv/conv2d_pairs.h"
#include "../matmul/matmul_pairs.h"
#include "../tables.h"

#ifdef GC_PAIRS
#define PAIRED(kernel) [GC_KERNEL_##kernel] = {NAME(plan_##kernel), NAME(run_##kernel)}
const gc_kernel NAME(table)[GC_STRUCTURED] = {
    PAIRED(matmul),
    PAIRED(conv2d_forward),
    PAIRED(conv2d_grad_input),
    PAIRED(conv2d_grad_weight),
};
#endif

GC_END_TARGET

#endif
