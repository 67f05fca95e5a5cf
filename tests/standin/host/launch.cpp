/* launch.cpp -- the C door of the runtime: settings, and launches whose arguments are looked at. */

#include "runner.h"

namespace {

enum { MOST_PARAMETERS = 31 }; /* Metal has no more buffers */

bool fits(const gc_host_kernel &kernel, gc::Dim3 grid, uint threads) {
  if (threads == 0 || threads % 32 || threads > kernel.most_threads)
    gc::fail("%u threads a block: it must be a multiple of 32, at most %u", threads,
             kernel.most_threads);
  else if (!grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535)
    gc::fail("a grid of %u %u %u blocks", grid.x, grid.y, grid.z);
  else if (kernel.nparameters > MOST_PARAMETERS)
    gc::fail("%u parameters: more than %d", kernel.nparameters, (int)MOST_PARAMETERS);
  else
    return true;
  return false;
}
} // namespace

extern "C" {

void gc_host_configure(int order, int races) {
  gc::set_order(order);
  gc::run.races = races != 0;
}

int gc_host_launch(const gc_host_kernel *kernel, void *const *arguments, uint grid_x, uint grid_y,
                   uint grid_z, uint threads) {
  gc::expect(kernel);
  const gc::Dim3 grid = {grid_x, grid_y, grid_z};
  if (!fits(*kernel, grid, threads))
    return 1;
  gc::View views[MOST_PARAMETERS];
  void *ready[MOST_PARAMETERS];
  for (uint i = 0; i < kernel->nparameters; i++) {
    const gc_host_parameter &parameter = kernel->parameters[i];
    ready[i] = arguments[i];
    if (parameter.kind != 'r' && parameter.kind != 'w')
      continue;
    if (!gc::look_up(views[i], *(char *const *)arguments[i], parameter, i))
      return 1;
    ready[i] = &views[i];
  }
  return gc::run_grid(kernel, ready, grid, threads) ? 0 : 1;
}

const char *gc_host_error(void) {
  return gc::what_failed();
}
}
