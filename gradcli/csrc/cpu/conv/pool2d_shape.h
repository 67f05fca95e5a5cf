/* pool2d_shape.h -- the shape of a pooling call and its plan, and where its windows lie. */
#ifndef GC_POOL2D_SHAPE_H
#define GC_POOL2D_SHAPE_H

#include "../kernel.h"

enum { GC_POOL2D_WORK = 1 << 14 /* elements worth a task */ };

typedef struct {
  int64_t planes, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw;
  int64_t group; /* planes of a task */
} gc_pool2d;

static inline gc_pool2d gc_pool2d_shape(const gc_call *call, int32_t big, int32_t small) {
  const int64_t *x = call->tensors[big].shape, *y = call->tensors[small].shape;
  const int64_t *size = call->sizes;
  gc_pool2d s = {.planes = x[0], .h = x[1], .w = x[2], .oh = y[1], .ow = y[2]};
  s.kh = size[0], s.kw = size[1], s.sh = size[2], s.sw = size[3];
  s.ph = size[4], s.pw = size[5], s.dh = size[6], s.dw = size[7];
  s.group = gc_max(1, GC_POOL2D_WORK / gc_max(1, gc_max(s.h * s.w, s.oh * s.ow)));
  return s;
}

static inline int gc_pool2d_check(const gc_call *call, gc_error *error) {
  for (int32_t i = 0; i < call->ntensors; i++)
    GC_REQUIRE(call->tensors[i].shape[1] <= INT32_MAX && call->tensors[i].shape[2] <= INT32_MAX, i,
               "dimensions below 2^31");
  return GC_OK;
}

/* Part of a window may lie outside the plane, so that any number of outputs is safe. */
static inline int gc_pool2d_plan(const gc_call *call, int32_t big, int32_t small, gc_plan *plan,
                                 gc_error *error) {
  const int status = gc_pool2d_check(call, error);
  if (status)
    return status;
  for (int i = 0; i < 8; i++)
    GC_REQUIRE(call->sizes[i] >= (i / 2 != 2) && call->sizes[i] <= INT32_MAX, big,
               "window, stride and dilation of at least 1 and padding of at least 0");
  const gc_pool2d s = gc_pool2d_shape(call, big, small);
  const bool nothing = s.h * s.w == 0 && s.oh * s.ow == 0;
  return gc_plan_simple(plan, nothing ? 0 : gc_ceil_div(s.planes, s.group));
}

/* Where a window of n pixels `step` apart that begins at `begin` meets [0, length). */
typedef struct {
  int64_t from, to;
} gc_range;

static inline gc_range gc_window(int64_t begin, int64_t n, int64_t step, int64_t length) {
  const int64_t end = gc_min(length, begin + (n - 1) * step + 1);
  return (gc_range){begin < 0 ? begin + gc_ceil_div(-begin, step) * step : begin, end};
}

#endif
