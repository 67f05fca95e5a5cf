/* all_kernels.h -- every kernel for one element type (REAL) of one instruction set, and their
 * table. Each file uses what stands above it. */

#ifdef GC_IS_REAL
#include "../elementwise/maths.h"
#include "../../maths_loss.h"
#else
#include "../../maths_whole.h"
#endif
#include "../elementwise/span.h"
#include "../elementwise/elementwise.h"
#include "../elementwise/copy.h"
#include "../elementwise/finite.h"
#include "../index/gather.h"
#include "../index/index.h"
#include "../index/index_add.h"
#include "../random/random_integers.h"
#include "../index/sort.h"

/* What sums and products of this type are carried in, and what they end as. */
#ifdef GC_IS_REAL
#define ACC double
#define OUT REAL
#else
#define ACC int64_t
#define OUT int64_t
#endif

#ifdef GC_IS_REAL
#include "../reduce/sums.h"
#endif
#include "../reduce/reduce.h"
#include "../reduce/prod.h"
#include "../reduce/scan.h"
#ifdef GC_IS_REAL
#include "../matmul/gemm.h"
#include "../elementwise/vectors.h"
#endif
#include "../reduce/extreme.h"
#ifdef GC_IS_REAL
#include "../reduce/length.h"
#include "../reduce/nearest.h"
#include "../reduce/exact.h"
#include "../numerals.h"
#include "../elementwise/halves.h"
#include "../elementwise/chain.h"
#include "../index/index_backward.h"
#include "../optim/optim.h"
#include "../optim/optim_adaptive.h"
#include "../random/random.h"
#include "../random/digests.h"
#include "../norm/softmax.h"
#include "../loss/loss.h"
#include "../norm/norm.h"
#include "../norm/norm_batch.h"
#include "../norm/norm_group.h"
#include "../ceilings.h"
#include "../matmul/matmul.h"
#include "../sequence/attention.h"
#include "../sequence/attention_backward.h"
#include "../sequence/recurrent.h"
#include "../sequence/recurrent_cells.h"
#include "../conv/conv2d.h"
#include "../conv/affine.h"
#include "../conv/pool2d.h"
#include "../conv/depthwise.h"
#include "../conv/pool2d_adaptive.h"
#include "../conv/resize.h"
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

#undef ROW
#undef NO_ROW
#undef IF_REAL
#undef IF_WHOLE
#undef ACC
#undef OUT
#include "../elementwise/maths_end.h"

/* What the including file has said of this element type. */
#undef GC_INT_HIGH
#undef GC_INT_LOW
#undef GC_INT_MAX
#undef GC_INT_MIN
#undef GC_IS_FLOAT
#undef GC_TYPE
#undef REAL
