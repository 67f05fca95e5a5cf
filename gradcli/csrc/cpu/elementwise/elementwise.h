/* elementwise.h -- calls of the rows of scalar_ops.h. Unary kernels take contiguous tensors; binary
 * ones take any strides, 0 included (that is how broadcasting arrives here). Their loops are in
 * span.h. */

static int NAME(plan_unary)(const gc_call *call, gc_plan *plan, gc_error *error) {
  for (int32_t i = 0; i < call->ntensors; i++) {
    GC_REQUIRE(gc_contiguous(&call->tensors[i]), i, "a contiguous tensor");
    GC_REQUIRE(gc_same_shape(&call->tensors[i], &call->tensors[0]), i, "tensors of one shape");
    GC_REQUIRE(call->tensors[i].dtype == call->tensors[0].dtype, i, "one element type");
  }
  return gc_plan_simple(plan, gc_ceil_div(gc_numel(&call->tensors[0]), GC_BLOCK));
}

static int NAME(plan_broadcast)(const gc_call *call, gc_plan *plan, gc_error *error) {
  for (int32_t i = 1; i < call->ntensors; i++)
    GC_REQUIRE(gc_same_shape(&call->tensors[i], &call->tensors[0]), i, "tensors of one shape");
  for (int32_t i = 1; i + 1 < call->ntensors; i++)
    GC_REQUIRE(call->tensors[i].dtype == call->tensors[0].dtype, i, "one element type");
  return gc_plan_simple(plan, gc_ceil_div(gc_numel(&call->tensors[0]), GC_BLOCK));
}

static int NAME(plan_binary)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int32_t out = call->ntensors - 1;
  GC_REQUIRE(call->tensors[out].dtype == call->tensors[0].dtype, out, "one element type");
  return NAME(plan_broadcast)(call, plan, error);
}

static int NAME(plan_compare)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_REQUIRE(call->tensors[2].dtype == GC_BOOL, 2, "bool for the truth");
  return NAME(plan_broadcast)(call, plan, error);
}

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
  for (int64_t n; (n = gc_walk_span(&w)) > 0; gc_walk_advance(&w, n)) {
    for (int32_t k = 0; k < inputs; k++)
      o.in[k] = (const REAL *)gc_first(&t[k]) + w.offset[k];
    o.out = (char *)gc_first(&t[inputs]) + w.offset[inputs] * out_size;
    span->run(&o, n);
  }
}
