/* all_kernels.h -- every kernel for one element type (REAL) of one instruction set, and their
 * table. */

#ifdef GC_IS_REAL
#include "maths.h"

#include "../maths_loss.h"
#else
#include "../maths_whole.h"
#endif

#include "span.h"

#include "elementwise.h"

#include "copy.h"
#include "finite.h"
#include "gather.h"
#include "index.h"
#include "random_integers.h"
#include "sort.h"

#include "reduce.h"

#include "extreme.h"

#include "scan.h"

#ifdef GC_IS_REAL
#include "gemm.h"

#include "sums.h"

#include "length.h"
#include "vectors.h"

#include "chain.h"
#include "index_backward.h"
#include "optim.h"

#include "optim_adaptive.h"
#include "random.h"
#include "softmax.h"

#include "loss.h"
#include "norm.h"

#include "norm_batch.h"

#include "norm_group.h"

#include "ceilings.h"
#include "matmul.h"

#include "attention.h"

#include "attention_backward.h"
#include "recurrent.h"

#include "recurrent_gru.h"
#include "recurrent_lstm.h"
#include "recurrent_rnn.h"

#include "conv2d.h"

#include "affine.h"
#include "pool2d.h"

#include "depthwise.h"
#include "pool2d_adaptive.h"
#include "resize.h"
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
#define KERNEL_ALL(name, plan, inputs, outputs, typed_by) ROW(plan, name)
#define KERNEL_REAL(name, plan, inputs, outputs, typed_by) IF_REAL(ROW(plan, name))
#include "../kernels.h"
#define UNARY(name, y, saved, slope) IF_REAL(ROW(unary, unary)) IF_REAL(ROW(unary, unary))
#define UNARY_STEP(name, y) IF_REAL(ROW(unary, unary))
#define UNARY_ANY(name, y) ROW(unary, unary)
#define BINARY(name, y) ROW(binary, binary)
#define BINARY_REAL(name, y, slope_a, slope_b)                                                     \
  IF_REAL(ROW(binary, binary)) IF_REAL(ROW(binary, binary)) IF_REAL(ROW(binary, binary))
#define BINARY_WHOLE(name, y) IF_WHOLE(ROW(binary, binary))
#define COMPARE(name, truth) ROW(compare, binary)
#include "../scalar_ops.h"
};

#undef ROW
#undef NO_ROW
#undef IF_REAL
#undef IF_WHOLE
#include "maths_end.h"
