/* conv2d_pairs.h -- convolutions of bfloat16 where the processor multiplies pairs, summed in float.
 * What is summed over is paired: two channels of the image for outputs, two filters for the
 * gradient of the image, two images for that of the weights. A pair is one element of 32 bits, and
 * half as many of them are multiplied like floats (conv2d_pass.h, conv2d_weight.h), after a first
 * phase that puts them together. An odd one is paired with zeros. */
#ifndef GC_CONV2D_PAIRS_H
#define GC_CONV2D_PAIRS_H

#include "../bfloat16.h"
#include "../kernel.h"
#include "../matmul/gemm_tile.h"
#include "../matmul/matmul_check.h"
#include "../matmul/matmul_pairs.h"
#include "../type.h"
#include "../walk.h"
#include "conv2d_pass.h"
#include "conv2d_plan.h"
#include "conv2d_shape.h"
#include "conv2d_tile.h"
#include "conv2d_weight.h"

#ifdef GC_PAIRS

/* A contiguous tensor as (batches, k, lines), of which two neighbours along k make a pair. */
static gc_paired NAME(paired_planes)(const gc_tensor *t, int64_t batches, int64_t k) {
  gc_paired x = {.from = gc_first(t), .k = k, .pairs = gc_ceil_div(k, 2), .batches = batches};
  x.lines = batches && k ? gc_numel(t) / (batches * k) : 0;
  x.line_step = 1, x.k_step = x.lines, x.batch_step = k * x.lines;
  return x;
}

/* A call as one on pairs: the shape of that, and its two factors in the order of the tensors. The
 * shared memory holds their pairs and the bias in float before what a pass wants there. */
typedef struct {
  gc_conv2d s;
  gc_paired side[2];
  int64_t at[2], bias, bytes; /* where they lie there, and how much they take */
} NAME(paired_conv);

static NAME(paired_conv) NAME(place_pairs)(NAME(paired_conv) c, int64_t filters) {
  c.s.size = (int64_t)sizeof(REAL);
  c.s.depth = c.s.c * c.s.kh * c.s.kw;
  c.at[1] = gc_rounded(NAME(pairs_made)(&c.side[0]) * c.s.size);
  c.bias = c.at[1] + gc_rounded(NAME(pairs_made)(&c.side[1]) * c.s.size);
  c.bytes = c.bias + gc_rounded(filters * c.s.size);
  return c;
}

static NAME(paired_conv) NAME(paired_forward)(const gc_call *call) {
  const gc_tensor *t = call->tensors;
  NAME(paired_conv) c = {.s = gc_conv2d_shape(call, 0, 1, 3, LANES)};
  c.side[0] = NAME(paired_planes)(&t[0], c.s.images * c.s.groups, c.s.c);
  c.side[1] = NAME(paired_planes)(&t[1], t[1].shape[0], c.s.c);
  c.s.c = gc_ceil_div(c.s.c, 2);
  return NAME(place_pairs)(c, t[2].shape[0]);
}

static NAME(paired_conv) NAME(paired_back)(const gc_call *call) {
  const gc_tensor *t = call->tensors;
  NAME(paired_conv) c = {.s = gc_conv2d_shape(call, 2, 1, 0, LANES)};
  c.side[0] = NAME(paired_planes)(&t[0], c.s.images * c.s.groups, c.s.oc);
  c.side[1] = NAME(paired_planes)(&t[1], c.s.groups, c.s.oc);
  c.s.oc = gc_ceil_div(c.s.oc, 2);
  return NAME(place_pairs)(c, 0);
}

static NAME(paired_conv) NAME(paired_weight)(const gc_call *call) {
  const gc_tensor *t = call->tensors;
  NAME(paired_conv) c = {.s = gc_conv2d_shape(call, 1, 2, 0, LANES)};
  for (int side = 0; side < 2; side++)
    c.side[side] = NAME(paired_planes)(&t[side], 1, c.s.images);
  c.s.images = gc_ceil_div(c.s.images, 2);
  return NAME(place_pairs)(c, 0);
}

/* What a pass plans, behind a phase that makes the pairs. */
static int NAME(plan_pairs)(const NAME(paired_conv) * c, gc_plan *plan) {
  plan->tasks[2] = plan->tasks[1];
  plan->tasks[1] = plan->tasks[0];
  plan->tasks[0] = 1;
  for (int side = 0; side < 2; side++)
    plan->tasks[0] += gc_ceil_div(NAME(pairs_made)(&c->side[side]), GC_BLOCK);
  plan->phases++;
  plan->shared_bytes += c->bytes;
  return GC_OK;
}

static void NAME(make_conv_pairs)(const gc_job *job, const NAME(paired_conv) * c,
                                  const gc_tensor *bias) {
  int64_t task = job->task - 1;
  if (task < 0) {
    const uint16_t *const from = bias ? gc_first(bias) : NULL;
    REAL *const to = (REAL *)((char *)job->shared + c->bias);
    for (int64_t i = 0; bias && i < bias->shape[0]; i++)
      to[i] = gc_widened(from[i]);
    return;
  }
  const int64_t first_side = gc_ceil_div(NAME(pairs_made)(&c->side[0]), GC_BLOCK);
  const int side = task >= first_side;
  const int64_t first = (task - (side ? first_side : 0)) * GC_BLOCK;
  NAME(put_together)(&c->side[side], first,
                     gc_min(GC_BLOCK, NAME(pairs_made)(&c->side[side]) - first),
                     (uint32_t *)(void *)((char *)job->shared + c->at[side]));
}

/* The job of a later phase, as the pass has it. */
static gc_job NAME(job_behind)(const gc_job *job, const NAME(paired_conv) * c) {
  gc_job behind = *job;
  behind.phase--;
  behind.shared = (char *)job->shared + c->bytes;
  return behind;
}

static void NAME(run_paired)(const gc_job *job, const NAME(paired_conv) * c, bool back,
                             const gc_tensor *bias, const gc_tensor *out) {
  if (job->phase == 0) {
    NAME(make_conv_pairs)(job, c, bias);
    return;
  }
  const char *const shared = job->shared;
  const NAME(conv_tensors)
      tensors = {.source = (const REAL *)shared,
                 .weight = (const REAL *)(shared + c->at[1]),
                 .bias = bias && bias->shape[0] ? (const REAL *)(shared + c->bias) : NULL,
                 .out = gc_first(out)};
  const gc_job behind = NAME(job_behind)(job, c);
  NAME(run_pass)(&behind, &c->s, back, &tensors);
}

/* ---- out = x * weight + bias; tensors x, weight, bias (OC, or empty), out ---- */

static int NAME(plan_conv2d_forward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_APART(3, 3);
  const int status = gc_conv2d_check(call, 0, 1, 3, error);
  if (status)
    return status;
  if (gc_numel(&call->tensors[3]) == 0)
    return gc_plan_simple(plan, 0);
  const NAME(paired_conv) c = NAME(paired_forward)(call);
  const gc_pass p = gc_pass_of(&c.s, false, GC_CONV2D_ROWS);
  gc_pass_plan(&p, plan);
  return NAME(plan_pairs)(&c, plan);
}

static void NAME(run_conv2d_forward)(const gc_job *job) {
  const NAME(paired_conv) c = NAME(paired_forward)(job->call);
  NAME(run_paired)(job, &c, false, &job->call->tensors[2], &job->call->tensors[3]);
}

/* ---- the gradient of x; tensors grad, weight, grad_x ---- */

static int NAME(plan_conv2d_grad_input)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = gc_conv2d_check(call, 2, 1, 0, error);
  if (status)
    return status;
  GC_APART(2, 2);
  if (gc_numel(&call->tensors[2]) == 0)
    return gc_plan_simple(plan, 0);
  const NAME(paired_conv) c = NAME(paired_back)(call);
  const gc_pass p = gc_pass_of(&c.s, true, GC_CONV2D_ROWS);
  gc_pass_plan(&p, plan);
  return NAME(plan_pairs)(&c, plan);
}

static void NAME(run_conv2d_grad_input)(const gc_job *job) {
  const NAME(paired_conv) c = NAME(paired_back)(job->call);
  NAME(run_paired)(job, &c, true, NULL, &job->call->tensors[2]);
}

/* ---- the gradient of the weights; tensors grad, x, grad_weight ---- */

static int NAME(plan_conv2d_grad_weight)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = gc_conv2d_check(call, 1, 2, 0, error);
  if (status)
    return status;
  GC_APART(2, 2);
  if (gc_numel(&call->tensors[2]) == 0)
    return gc_plan_simple(plan, 0);
  const NAME(paired_conv) c = NAME(paired_weight)(call);
  NAME(plan_weight_pass)(&c.s, plan);
  return NAME(plan_pairs)(&c, plan);
}

static void NAME(run_conv2d_grad_weight)(const gc_job *job) {
  const NAME(paired_conv) c = NAME(paired_weight)(job->call);
  if (job->phase == 0) {
    NAME(make_conv_pairs)(job, &c, NULL);
    return;
  }
  const gc_job behind = NAME(job_behind)(job, &c);
  const char *const shared = job->shared;
  NAME(run_weight_pass)(&behind, &c.s, (const REAL *)shared, (const REAL *)(shared + c.at[1]),
                        gc_first(&job->call->tensors[2]));
}

#endif

#endif
