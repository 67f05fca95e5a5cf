/* runner.h -- what the parts of the runtime know of each other, and kernels do not. */

#pragma once
#include "runtime.h"

namespace gc {

/* What the shadows of memory are held against. */
struct Run {
  uint block; /* number of the block among all that ever ran, so old shadows need no clearing */
  uint first_block; /* of this launch */
  uint epoch;       /* barriers the block has passed */
  uint warp_epoch[32];
  uint shared_bytes; /* of the block's arrays */
  bool races;        /* are looked for */
};
extern Run run;

/* fibers.cpp */
void set_order(int order);
void expect(const gc_host_kernel *kernel); /* forgets an error; the next one names this kernel */
bool run_grid(const gc_host_kernel *kernel, void *const *arguments, Dim3 grid, uint threads);
const char *what_failed();

/* ptx.cpp: whether the thread that runs has begun copies that it did not wait for. */
bool copies_on_their_way();

/* memory.cpp: what a kernel is told of a pointer; false where that may not be passed. */
bool look_up(View &view, char *at, const gc_host_parameter &parameter, uint number);
} // namespace gc
