/* all_kernels.h -- every kernel for one element type of one instruction set, and their table. The
 * including file says which type (f32.h), and the one that includes that which set (isa.h). */
#ifndef GC_ALL_KERNELS_H
#define GC_ALL_KERNELS_H

#include "target.h"

GC_BEGIN_TARGET

#include "../elementwise/copy.h"
#include "../elementwise/elementwise.h"
#include "../elementwise/finite.h"
#include "../index/gather.h"
#include "../index/index.h"
#include "../index/index_add.h"
#include "../index/sort.h"
#include "../kernel.h"
#include "../random/random_integers.h"
#include "../reduce/extreme.h"
#include "../reduce/prod.h"
#include "../reduce/reduce.h"
#include "../reduce/scan.h"
#include "../type.h"
#ifdef GC_IS_REAL
#include "../ceilings.h"
#include "../conv/affine.h"
#include "../conv/conv2d.h"
#include "../conv/depthwise.h"
#include "../conv/pool2d.h"
#include "../conv/pool2d_adaptive.h"
#include "../conv/resize.h"
#include "../elementwise/chain.h"
#include "../index/index_backward.h"
#include "../loss/loss.h"
#include "../matmul/matmul.h"
#include "../norm/norm.h"
#include "../norm/norm_batch.h"
#include "../norm/norm_group.h"
#include "../norm/softmax.h"
#include "../numerals.h"
#include "../optim/optim.h"
#include "../optim/optim_adaptive.h"
#include "../random/digests.h"
#include "../random/random.h"
#include "../reduce/exact.h"
#include "../reduce/length.h"
#include "../sequence/attention.h"
#include "../sequence/attention_backward.h"
#include "../sequence/recurrent.h"
#include "../sequence/recurrent_cells.h"
#endif

#define ROW(plan, run) {NAME(plan_##plan), NAME(run_##run)},
#define NO_ROW {NULL, NULL},
#ifdef GC_IS_REAL
#define IF_REAL(row) row
#define IF_WHOLE(row) NO_ROW
#else
#define IF_REAL(row) NO_ROW
#define IF_WHOLE(row) row
#endif

const gc_kernel NAME(table)[] = {
#define KERNEL_ALL(name, plan, ...) ROW(plan, name)
#define KERNEL_REAL(name, plan, ...) IF_REAL(ROW(plan, name))
#include "../../kernels.h"
#define UNARY(name, y, saved, slope) IF_REAL(ROW(blocks, unary)) IF_REAL(ROW(blocks, unary))
#define UNARY_STEP(name, y) IF_REAL(ROW(blocks, unary))
#define UNARY_ANY(name, y) ROW(blocks, unary)
#define BINARY(name, y) ROW(blocks, binary)
#define BINARY_REAL(name, y, slope_a, slope_b)                                                     \
  IF_REAL(ROW(blocks, binary)) IF_REAL(ROW(blocks, binary)) IF_REAL(ROW(blocks, binary))
#define BINARY_WHOLE(name, y) IF_WHOLE(ROW(blocks, binary))
#define COMPARE(name, truth) ROW(blocks, binary)
#include "../../scalar_ops.h"
};

GC_END_TARGET

#endif
