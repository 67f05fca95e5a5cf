/* elementwise.h -- calls of the rows of scalar_ops.h. Unary kernels take contiguous tensors; binary
 * ones take any strides, 0 included (that is how broadcasting arrives here). Their loops are in
 * span.h. */
#ifndef GC_ELEMENTWISE_H
#define GC_ELEMENTWISE_H

#include "../kernel.h"
#include "../type.h"
#include "../walk.h"
#include "operands.h"
#include "span.h"

static void NAME(run_unary)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int32_t inputs = job->call->ntensors - 1;
  BLOCK_OF(job, first, n);
  gc_operands o = {.p = job->call->options[0], .q = job->call->options[1]};
  for (int32_t k = 0; k < inputs; k++)
    o.in[k] = (const REAL *)gc_first(&t[k]) + first;
  o.out = (REAL *)gc_first(&t[inputs]) + first;
  NAME(spans)[job->call->kernel].run(&o, n);
}

static void NAME(run_binary)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int32_t inputs = job->call->ntensors - 1;
  const int64_t out_size = gc_dtype_size(t[inputs].dtype);
  const gc_span *span = &NAME(spans)[job->call->kernel];
  BLOCK_OF(job, first, count);
  const gc_tensor *operands[GC_WALK_MAX] = {NULL};
  for (int32_t k = 0; k <= inputs; k++)
    operands[k] = &t[k];
  gc_walk w;
  gc_walk_begin(&w, operands, inputs + 1, first, count);
  gc_operands o = {.p = job->call->options[0], .q = job->call->options[1]};
  for (int32_t k = 0; k < inputs; k++)
    o.in_step[k] = w.stride[k][w.ndim - 1];
  o.out_step = w.stride[inputs][w.ndim - 1];
  const int32_t above = w.ndim > 1 ? w.ndim - 2 : 0;
  for (int64_t n; (n = gc_walk_span(&w)) > 0;) {
    const int64_t rows = gc_walk_rows(&w, n);
    for (int32_t k = 0; k < inputs; k++)
      o.in[k] = (const REAL *)gc_first(&t[k]) + w.offset[k];
    o.out = (char *)gc_first(&t[inputs]) + w.offset[inputs] * out_size;
    span->run(&o, n);
    for (int64_t row = 1; row < rows; row++) {
      for (int32_t k = 0; k < inputs; k++)
        o.in[k] = (const REAL *)o.in[k] + w.stride[k][above];
      o.out = (char *)o.out + w.stride[inputs][above] * out_size;
      span->run(&o, n);
    }
    gc_walk_advance_rows(&w, n, rows);
  }
}

#endif
