/* chain.h -- rows of scalar_ops.h that feed one another, as one call: each block of the tensors
 * goes through all steps while it is in the first cache, and what only the steps see is never
 * written to memory.
 *
 * Tensors 0-4 are inputs, 5-7 outputs, all (rows, n), or (0) where there is none. Outputs are
 * contiguous; along n an input has stride 1, or 0 to repeat one number. sizes[0] counts the steps,
 * the sizes behind it are the steps, in 4-bit fields from the lowest: 4 for the kernel's number, 1
 * for each of four operands, 1 for the result, 1 for the pair of options that are its p and q.
 * Operands and results are slots: the tensors by number, and from 8 on blocks of scratch.
 *
 * In a chain of float a tensor may be bfloat16. The steps see a block of it in scratch, which is
 * widened before them, or rounded behind them. */
#ifndef GC_CHAIN_H
#define GC_CHAIN_H

#include "../bfloat16.h"
#include "../kernel.h"
#include "../type.h"
#include "../walk.h"
#include "halves.h"
#include "operands.h"
#include "span.h"

enum {
  GC_CHAIN_INPUTS = 5,
  GC_CHAIN_TENSORS = GC_MAX_TENSORS,
  GC_CHAIN_SLOTS = 16,
  GC_CHAIN_STEPS = GC_MAX_SIZES - 1,
  GC_CHAIN_CACHE = 16384 /* bytes of all slots of a block */
};

typedef struct {
  int64_t kernel;
  int32_t in[4], out, pair;
} gc_chain_step;

static inline gc_chain_step gc_chain_step_of(int64_t size) {
  gc_chain_step step = {.kernel = size & 0xFFFF,
                        .out = (int32_t)(size >> 32 & 15),
                        .pair = (int32_t)(size >> 36 & 15)};
  for (int32_t k = 0; k < 4; k++)
    step.in[k] = (int32_t)(size >> (16 + 4 * k) & 15);
  return step;
}

static inline int32_t gc_span_operands(int32_t kind) {
  switch (kind) {
  case GC_SPAN_UNARY:
    return 1;
  case GC_SPAN_SLOPE:
  case GC_SPAN_BINARY:
    return 2;
  case GC_SPAN_SLOPE2:
    return 4;
  default:
    return 0;
  }
}

static inline bool gc_chain_has(const gc_call *call, int32_t slot) {
  return call->tensors[slot].ndim == 2;
}

/* Whether the steps see a tensor widened, in a block of scratch. */
static inline bool gc_chain_widens(const gc_call *call, int32_t slot) {
  return gc_chain_has(call, slot) && call->tensors[slot].dtype == GC_BF16;
}

/* Whether two tensors, as gc_check lets them pass, are the same elements. */
static inline bool gc_chain_same(const gc_tensor *a, const gc_tensor *b) {
  return a->ndim == b->ndim && gc_numel(a) > 0 && gc_first(a) == gc_first(b);
}

/* How many blocks of scratch the steps use. */
static inline int32_t gc_chain_step_blocks(const gc_call *call) {
  int32_t count = 0;
  for (int64_t i = 1; i <= call->sizes[0]; i++) {
    const int32_t out = gc_chain_step_of(call->sizes[i]).out;
    if (out >= GC_CHAIN_TENSORS && out - GC_CHAIN_TENSORS >= count)
      count = out - GC_CHAIN_TENSORS + 1;
  }
  return count;
}

/* How many there are: behind those of the steps, one for each tensor that they see widened. */
static inline int32_t gc_chain_blocks(const gc_call *call) {
  int32_t count = gc_chain_step_blocks(call);
  for (int32_t i = 0; i < GC_CHAIN_TENSORS; i++)
    count += gc_chain_widens(call, i);
  return count;
}

/* Elements of a block: so many that all slots together fit the cache. */
static inline int64_t gc_chain_length(const gc_call *call, int64_t size) {
  int64_t slots = gc_chain_blocks(call);
  for (int32_t i = 0; i < GC_CHAIN_TENSORS; i++)
    slots += gc_chain_has(call, i);
  return GC_CHAIN_CACHE / (slots * size) / 64 * 64;
}

/* Tensors of a chain of this element type: shapes, types and strides. */
static inline int gc_chain_tensors(const gc_call *call, int32_t dtype, gc_error *error) {
  const gc_tensor *t = call->tensors, *like = &t[GC_CHAIN_INPUTS];
  GC_REQUIRE(like->ndim == 2, GC_CHAIN_INPUTS, "(rows, n)");
  for (int32_t i = 0; i < GC_CHAIN_TENSORS; i++) {
    const bool half = dtype == GC_F32 && t[i].dtype == GC_BF16;
    GC_REQUIRE(half || t[i].dtype == dtype, i, "tensors of one element type, or bfloat16");
    if (t[i].ndim == 1 && t[i].shape[0] == 0)
      continue;
    GC_REQUIRE(gc_same_shape(&t[i], like), i, "(rows, n) like the output, or no elements");
    if (i < GC_CHAIN_INPUTS)
      GC_REQUIRE(t[i].shape[1] <= 1 || t[i].stride[1] == 0 || t[i].stride[1] == 1, i,
                 "stride 0 or 1 along n");
    else
      GC_REQUIRE(gc_contiguous(&t[i]), i, "a contiguous tensor");
  }
  return GC_OK;
}

/* A step: its kernel has a span, its operands hold something, and its result has a place. `written`
 * and `over` are sets of slots: those that hold a result, and inputs that one has overwritten. */
static int NAME(check_chain_step)(const gc_call *call, int64_t number, uint32_t *written,
                                  uint32_t *over, gc_error *error) {
  const gc_tensor *t = call->tensors;
  const int64_t size = call->sizes[number];
  const int64_t spans = sizeof NAME(spans) / sizeof NAME(spans)[0];
  GC_REQUIRE(size >= 0 && size >> 40 == 0, 5, "steps of ten fields");
  const gc_chain_step step = gc_chain_step_of(size);
  const int32_t kind = step.kernel < spans ? NAME(spans)[step.kernel].kind : GC_SPAN_NONE;
  const int32_t operands = gc_span_operands(kind);
  GC_REQUIRE(operands > 0, 5, "elementwise kernels in the steps");
  for (int32_t k = 0; k < operands; k++) {
    const int32_t slot = step.in[k];
    const bool input = slot < GC_CHAIN_INPUTS;
    GC_REQUIRE(input ? gc_chain_has(call, slot) : (*written >> slot & 1), 5, "operands that exist");
    GC_REQUIRE((*over >> slot & 1) == 0, slot, "an input that is not overwritten too early");
    const bool dense = !input || t[slot].shape[1] <= 1 || t[slot].stride[1] == 1;
    GC_REQUIRE(dense || kind == GC_SPAN_BINARY || kind == GC_SPAN_SLOPE2, slot, "stride 1");
  }
  const bool scratch = step.out >= GC_CHAIN_TENSORS;
  GC_REQUIRE(scratch || (step.out >= GC_CHAIN_INPUTS && gc_chain_has(call, step.out)), 5,
             "results in outputs or scratch");
  GC_REQUIRE(step.pair < GC_MAX_OPTIONS / 2, 5, "one of four pairs of options");
  *written |= (uint32_t)1 << step.out;
  for (int32_t i = 0; i < GC_CHAIN_INPUTS; i++)
    if (!scratch && gc_chain_has(call, i) && gc_chain_same(&t[i], &t[step.out]))
      *over |= (uint32_t)1 << i;
  return GC_OK;
}

static int NAME(plan_chain)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int64_t size = (int64_t)sizeof(REAL);
  const int status = gc_chain_tensors(call, size == 4 ? GC_F32 : GC_F64, error);
  if (status)
    return status;
  GC_REQUIRE(call->sizes[0] >= 1 && call->sizes[0] <= GC_CHAIN_STEPS, 5, "1 to 15 steps");
  uint32_t written = 0, over = 0;
  for (int64_t i = 1; i <= call->sizes[0]; i++)
    if (NAME(check_chain_step)(call, i, &written, &over, error))
      return error->status;
  for (int32_t i = GC_CHAIN_INPUTS; i < GC_CHAIN_TENSORS; i++)
    GC_REQUIRE(!gc_chain_has(call, i) || (written >> i & 1), i, "an output that a step writes");
  plan->worker_bytes = gc_chain_blocks(call) * gc_chain_length(call, size) * size;
  return gc_plan_simple(plan, gc_ceil_div(gc_numel(&call->tensors[GC_CHAIN_INPUTS]), GC_BLOCK));
}

/* All steps on the n elements of the slots. */
static void NAME(chain_steps)(const gc_call *call, char *const *slot, const int64_t *element_step,
                              int64_t n) {
  for (int64_t i = 1; i <= call->sizes[0]; i++) {
    const gc_chain_step step = gc_chain_step_of(call->sizes[i]);
    gc_operands o = {.out = slot[step.out],
                     .out_step = 1,
                     .p = call->options[2 * step.pair],
                     .q = call->options[2 * step.pair + 1]};
    for (int32_t k = 0; k < 4; k++) {
      o.in[k] = slot[step.in[k]];
      o.in_step[k] = element_step[step.in[k]];
    }
    NAME(spans)[step.kernel].run(&o, n);
  }
}

static void NAME(run_chain)(const gc_job *job) {
  const gc_call *call = job->call;
  const gc_tensor *t = call->tensors;
  const int64_t size = (int64_t)sizeof(REAL), block = gc_chain_length(call, size);
  const int64_t all = gc_numel(&t[GC_CHAIN_INPUTS]);
  char *slot[GC_CHAIN_SLOTS] = {NULL}, *place[GC_CHAIN_TENSORS] = {NULL};
  int64_t element_step[GC_CHAIN_SLOTS];
  bool plain = true; /* everything is one row */
  for (int32_t i = 0; i < GC_CHAIN_INPUTS; i++)
    plain = plain && (!gc_chain_has(call, i) || gc_contiguous(&t[i]));
  for (int32_t i = 0; i < GC_CHAIN_SLOTS; i++)
    element_step[i] = i < GC_CHAIN_INPUTS && !plain ? t[i].stride[1] : 1;
  char *scratch = job->own;
  for (int32_t i = 0; i < gc_chain_step_blocks(call); i++, scratch += block * size)
    slot[GC_CHAIN_TENSORS + i] = scratch;
  for (int32_t i = 0; i < GC_CHAIN_TENSORS; i++)
    if (gc_chain_widens(call, i))
      slot[i] = scratch, scratch += block * size;
  const int64_t columns = plain ? all : t[GC_CHAIN_INPUTS].shape[1];
  const int64_t end = gc_min(all, (job->task + 1) * GC_BLOCK);
  for (int64_t at = job->task * GC_BLOCK, n; at < end; at += n) {
    const int64_t row = at / columns, column = at % columns;
    n = gc_min(gc_min(end - at, columns - column), block);
    for (int32_t i = 0; i < GC_CHAIN_TENSORS; i++) {
      const bool strided = i < GC_CHAIN_INPUTS && !plain;
      const int64_t away = strided ? row * t[i].stride[0] + column * t[i].stride[1] : at;
      if (!gc_chain_has(call, i))
        continue;
      place[i] = (char *)gc_first(&t[i]) + away * gc_dtype_size(t[i].dtype);
      if (!gc_chain_widens(call, i))
        slot[i] = place[i];
      else if (i < GC_CHAIN_INPUTS)
        NAME(widen_block)((const void *)place[i], element_step[i] ? n : 1, (void *)slot[i]);
    }
    NAME(chain_steps)(call, slot, element_step, n);
    for (int32_t i = GC_CHAIN_INPUTS; i < GC_CHAIN_TENSORS; i++)
      if (gc_chain_widens(call, i))
        NAME(round_block)((const void *)slot[i], n, (void *)place[i]);
  }
}

#endif
