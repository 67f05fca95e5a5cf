/* conv2d.h -- convolution and its gradients. sizes: stride 2, padding 2 (above and left), dilation
 * 2, groups. */
#ifndef GC_CONV2D_H
#define GC_CONV2D_H

#include "../kernel.h"
#include "../lines.h"
#include "../matmul/gemm.h"
#include "../matmul/gemm_tile.h"
#include "../matmul/matmul.h"
#include "../matmul/matmul_check.h"
#include "../type.h"
#include "conv2d_pass.h"
#include "conv2d_plan.h"
#include "conv2d_shape.h"
#include "conv2d_tile.h"
#include "conv2d_weight.h"

/* ---- out = x * weight + bias; tensors x, weight, bias (OC, or empty), out ---- */

static int NAME(check_forward)(const gc_call *call, int32_t out, gc_error *error) {
  GC_APART(3, out);
  return gc_conv2d_check(call, 0, 1, out, error);
}

static int NAME(cut_forward)(const gc_call *call, int32_t out, gc_plan *plan) {
  if (gc_numel(&call->tensors[out]) == 0)
    return gc_plan_simple(plan, 0);
  const gc_conv2d s = gc_conv2d_shape(call, 0, 1, out, LANES);
  const gc_pass p = gc_pass_of(&s, false, GC_CONV2D_ROWS);
  return gc_pass_plan(&p, plan);
}

static int NAME(plan_conv2d_forward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = NAME(check_forward)(call, 3, error);
  return status ? status : NAME(cut_forward)(call, 3, plan);
}

/* A task, into `out`, which has the shape of tensor `last`. */
static void NAME(forward_task)(const gc_job *job, int32_t last, REAL *out,
                               const NAME(then) * then) {
  const gc_tensor *t = job->call->tensors;
  const gc_conv2d s = gc_conv2d_shape(job->call, 0, 1, last, LANES);
  const NAME(conv_tensors) c = {.source = gc_first(&t[0]),
                                .weight = gc_first(&t[1]),
                                .bias = t[2].shape[0] ? gc_first(&t[2]) : NULL,
                                .out = out,
                                .then = then};
  NAME(run_pass)(job, &s, false, &c);
}

static void NAME(run_conv2d_forward)(const gc_job *job) {
  NAME(forward_task)(job, 3, gc_first(&job->call->tensors[3]), NULL);
}

/* ---- out = f(pre) with pre = x * weight + bias; tensors x, weight, bias, kept, pre, out. sizes[8]
 * is the kernel number of f; kept, pre and the options are those of matmul_then ---- */

static int NAME(plan_conv2d_forward_then)(const gc_call *call, gc_plan *plan, gc_error *error) {
  int status = NAME(check_forward)(call, 5, error);
  if (!status)
    status = NAME(check_then)(call, call->sizes[8], error);
  return status ? status : NAME(cut_forward)(call, 5, plan);
}

static void NAME(run_conv2d_forward_then)(const gc_job *job) {
  const NAME(then) then = NAME(then_of)(job->call, job->call->sizes[8]);
  NAME(forward_task)(job, 5, NAME(pre_of)(job->call), &then);
}

/* ---- the gradient of x; tensors grad, weight, grad_x ---- */

static int NAME(plan_conv2d_grad_input)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = gc_conv2d_check(call, 2, 1, 0, error);
  if (status)
    return status;
  GC_APART(2, 2);
  if (gc_numel(&call->tensors[2]) == 0)
    return gc_plan_simple(plan, 0);
  const gc_conv2d s = gc_conv2d_shape(call, 2, 1, 0, LANES);
  const gc_pass p = gc_pass_of(&s, true, GC_CONV2D_ROWS);
  return gc_pass_plan(&p, plan);
}

static void NAME(run_conv2d_grad_input)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_conv2d s = gc_conv2d_shape(job->call, 2, 1, 0, LANES);
  const NAME(conv_tensors)
      c = {.source = gc_first(&t[0]), .weight = gc_first(&t[1]), .out = gc_first(&t[2])};
  NAME(run_pass)(job, &s, true, &c);
}

/* ---- the gradient of the weights; tensors grad, x, grad_weight ---- */

static int NAME(plan_conv2d_grad_weight)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = gc_conv2d_check(call, 1, 2, 0, error);
  if (status)
    return status;
  GC_APART(2, 2);
  if (gc_numel(&call->tensors[2]) == 0)
    return gc_plan_simple(plan, 0);
  const gc_conv2d s = gc_conv2d_shape(call, 1, 2, 0, LANES);
  return NAME(plan_weight_pass)(&s, plan);
}

static void NAME(run_conv2d_grad_weight)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_conv2d s = gc_conv2d_shape(job->call, 1, 2, 0, LANES);
  NAME(run_weight_pass)(job, &s, gc_first(&t[0]), gc_first(&t[1]), gc_first(&t[2]));
}

/* ---- grad_bias = the sums of grad over images and positions; tensors grad, grad_bias ---- */

static int NAME(plan_conv2d_grad_bias)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  return gc_plan_simple(plan, call->tensors[1].shape[0]);
}

static void NAME(run_conv2d_grad_bias)(const gc_job *job) {
  const gc_tensor *grad = &job->call->tensors[0];
  const int64_t positions = grad->shape[2] * grad->shape[3], filters = grad->shape[1];
  const int64_t images = positions ? grad->shape[0] : 0;
  double total = 0;
  for (int64_t n = 0; n < images; n++) {
    const REAL *plane = (const REAL *)gc_first(grad) + (n * filters + job->task) * positions;
    GC_SUM(sum, positions, i, (double)plane[i]);
    total += sum;
  }
  ((REAL *)gc_first(&job->call->tensors[1]))[job->task] = (REAL)total;
}

#endif
