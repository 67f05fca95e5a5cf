/* runtime.h -- what the kernels' side (pointers.h, cuda_builtins.h) and the runtime's side
 * (fibers.cpp, memory.cpp, ptx.cpp) know of each other.
 *
 * A grid runs block by block; the threads of a block are fibers on one core. So everything is
 * deterministic, and what a GPU would leave to chance is found by book-keeping, not by luck. */

#pragma once
#include <cstddef>
#include <cstdint>

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;
typedef long long i64;

extern "C" {
#include "abi.h"
}

namespace gc {

struct Dim3 {
  uint x, y, z;
};

/* The thread that runs now. */
struct Thread {
  Dim3 tid;
  uint lane, warp;
  uint place = 0; /* in the text: of the collective that it runs */
};

/* One side of what is remembered of an element: its last write, or its reads since then. */
struct Access {
  uint block;      /* number among all blocks ever run; 0: none */
  uint epoch;      /* barriers passed by the block */
  uint warp_epoch; /* WARP_SYNCs passed by the warp */
  ushort thread;
  ushort by; /* of reads: one thread, lanes of one warp, warps, blocks */
};

struct Shadow {
  Access write, read;
};

struct Region; /* a block of device memory */

/* A pointer that a kernel was given, made ready once for all threads of a launch. `at` stands
 * first: unchecked kernels read only that. */
struct View {
  char *at;
  char *begin, *end;
  Region *region;
  uint parameter;
};

/* The memory of a SHARED array. It has no constructor: kernels hold it as a static, and it is zero
 * until a block enters it. */
struct SharedArray {
  const char *name;
  char *data;
  Shadow *shadows;
  uint count, size, block;
};

extern Thread thread;
extern Dim3 block_index, block_size, grid_size;

/* What a lane brings to a collective. */
struct LaneWords {
  uint at[6];
};

void barrier(uint site);
uint warp_exchange(uint bits, uint from_lane, uint site);
const LaneWords *warp_words(const LaneWords &own, uint site); /* of all lanes */
void warp_sync(uint site);

/* Every access of a checked kernel comes through these; log_size is log2 of the element's size.
 * touch_bounds looks for no races, and gives the element's number. */
void touch(const View &view, const void *at, uint log_size, bool write);
i64 touch_bounds(const View &view, const void *at, uint log_size, bool write);
void touch_shared(const SharedArray &array, i64 number, bool write);
/* A thread of a block reaches the declaration; the block's first one poisons the memory. */
void enter_shared(SharedArray &array);

/* Shared memory as PTX has it: addresses of 32 bits, and what is there. The array is NULL where it
 * is not watched. */
struct SharedPlace {
  const SharedArray *array;
  char *at;
};
uint shared_address(const SharedArray *array, const void *at);
SharedPlace shared_place(uint address);

/* Ends the launch with this sentence, and where it happened. Does not return to a kernel. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
} // namespace gc
