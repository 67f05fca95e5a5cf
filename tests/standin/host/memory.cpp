/* memory.cpp -- device and shared memory: bounds, and a shadow of each element in which races and
 * reads of unset memory show.
 *
 * Two accesses of an element, one of them a write, are a race unless something orders them: the
 * same thread, a barrier between them, or a WARP_SYNC among lanes of one warp. Nothing orders
 * blocks. The shadow knows by whom and when an element was last written, and read since then. */

#include "runner.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>

namespace gc {

/* A block of device memory. Elements of 1, 2, 4 and 8 bytes have shadows of their own, made when
 * the first one is touched: a module does not see one place as two types. */
struct Region {
  char *begin, *end;
  Shadow *shadows[4];
};

namespace {

enum { ALIGNMENT = 256, POISON = 0xff, MOST_SHARED = 48 * 1024, SIZES = 4 };
enum By { NOBODY, ONE_THREAD, LANES, WARPS, BLOCKS }; /* who has read an element */

std::map<uintptr_t, Region> &regions() {
  static std::map<uintptr_t, Region> all;
  return all;
}

Region *region_of(const void *at) {
  auto found = regions().upper_bound((uintptr_t)at);
  if (found == regions().begin())
    return nullptr;
  Region &region = (--found)->second;
  return (const char *)at <= region.end ? &region : nullptr;
}

size_t shadow_bytes(const Region &region, uint log_size) {
  return (((size_t)(region.end - region.begin) >> log_size) + 1) * sizeof(Shadow);
}

/* Zero pages that cost nothing until they are touched. */
Shadow *new_shadows(size_t nbytes) {
  void *const memory = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : (Shadow *)memory;
}

bool ordered_by_warp(const Access &before) {
  return before.thread / 32u == thread.warp && before.warp_epoch != run.warp_epoch[thread.warp];
}

/* Is everything of an earlier access seen by this thread? */
bool ordered(const Access &before) {
  if (before.block != run.block)
    return false;
  return before.epoch != run.epoch || before.thread == thread.tid.x || ordered_by_warp(before);
}

bool reads_are_ordered(const Access &reads) {
  if (reads.by == BLOCKS || reads.block != run.block)
    return false;
  if (reads.epoch != run.epoch)
    return true;
  if (reads.by == WARPS)
    return false;
  return reads.by == LANES ? ordered_by_warp(reads) : ordered(reads);
}

void note(Access &access, By by) {
  access =
      Access{run.block, run.epoch, run.warp_epoch[thread.warp], (ushort)thread.tid.x, (ushort)by};
}

/* Adds a read to those since the last write; those that a barrier has put behind are forgotten. */
void note_read(Access &reads, uint since) {
  const bool none = reads.by == NOBODY || reads.block < since;
  if (!none && (reads.by == BLOCKS || reads.block != run.block))
    reads.by = BLOCKS;
  else if (none || reads.epoch != run.epoch || (reads.by == ONE_THREAD && ordered(reads)))
    note(reads, ONE_THREAD);
  else if (reads.by == WARPS || reads.thread / 32u != thread.warp)
    note(reads, WARPS);
  else
    note(reads, ordered_by_warp(reads) ? ONE_THREAD : LANES);
}

struct Where {
  const char *array; /* the name of a shared one, NULL for a parameter */
  uint parameter;
  i64 element;
  uint since; /* the first block whose accesses count: shared memory is new for each */
};

void report_race(const char *what, const Access &other, bool write, const Where &where) {
  char place[96];
  if (where.array)
    snprintf(place, sizeof place, "shared array %s", where.array);
  else
    snprintf(place, sizeof place, "parameter %u", where.parameter);
  const char *const whose = other.block == run.block ? "a thread of this block" : "another block";
  fail("race: this %s element %lld of %s, which %s %s (last thread %u)", write ? "writes" : "reads",
       where.element, place, whose, what, other.thread);
}

void check_races(Shadow &shadow, bool write, const Where &where) {
  const bool written = shadow.write.by != NOBODY && shadow.write.block >= where.since;
  const bool read = shadow.read.by != NOBODY && shadow.read.block >= where.since;
  if (written && !ordered(shadow.write))
    report_race("writes", shadow.write, write, where);
  else if (write && read && !reads_are_ordered(shadow.read))
    report_race("reads", shadow.read, write, where);
  if (write) {
    note(shadow.write, ONE_THREAD);
    shadow.read.by = NOBODY; /* they are behind this write, which stands for them */
  } else {
    note_read(shadow.read, where.since);
  }
}

Shadow *device_shadow(Region &region, const void *at, uint log_size) {
  Shadow *&shadows = region.shadows[log_size];
  if (!shadows)
    shadows = new_shadows(shadow_bytes(region, log_size));
  if (!shadows) {
    fail("no memory for the shadow of device memory");
    return nullptr;
  }
  return shadows + (((const char *)at - region.begin) >> log_size);
}
} // namespace

i64 touch_bounds(const View &view, const void *at, uint log_size, bool write) {
  const char *const byte = (const char *)at;
  const i64 element = (byte - view.at) / (1 << log_size);
  if (byte < view.begin || byte + (1 << log_size) > view.end)
    fail("out of bounds: %s element %lld of parameter %u, which has %lld",
         write ? "writes" : "reads", element, view.parameter,
         (i64)(view.end - view.at) / (1 << log_size));
  return element;
}

void touch(const View &view, const void *at, uint log_size, bool write) {
  const i64 element = touch_bounds(view, at, log_size, write);
  if (run.races)
    check_races(*device_shadow(*view.region, at, log_size), write,
                Where{nullptr, view.parameter, element, run.first_block});
}

void touch_shared(const SharedArray &array, i64 number, bool write) {
  if (number < 0 || number >= array.count)
    fail("out of bounds: %s element %lld of shared array %s, which has %u",
         write ? "writes" : "reads", number, array.name, array.count);
  if (!run.races)
    return;
  Shadow &shadow = array.shadows[number];
  if (!write && shadow.write.block != run.block)
    fail("unset: reads element %lld of shared array %s, which this block never wrote", number,
         array.name);
  check_races(shadow, write, Where{array.name, 0, number, run.block});
}

void enter_shared(SharedArray &array) {
  if (array.block == run.block)
    return;
  array.block = run.block;
  memset(array.data, POISON, (size_t)array.count * array.size);
  run.shared_bytes += array.count * array.size;
  if (run.shared_bytes > MOST_SHARED)
    fail("shared array %s brings the block to %u bytes of shared memory; CUDA has %d", array.name,
         run.shared_bytes, (int)MOST_SHARED);
}

namespace {
/* Shared memory begins elsewhere for PTX: who forgets to convert an address does not get there. */
constexpr uint WINDOW = 0x12340000u;
SharedPlace last_address; /* whose upper half all addresses of the statement have */
} // namespace

uint shared_address(const SharedArray *array, const void *at) {
  last_address = SharedPlace{array, (char *)at};
  return (uint)(uintptr_t)at - WINDOW;
}

SharedPlace shared_place(uint address) {
  const uintptr_t upper = (uintptr_t)last_address.at >> 32 << 32;
  return {last_address.array, (char *)(upper | (uint)(address + WINDOW))};
}

bool look_up(View &view, char *at, const gc_host_parameter &parameter, uint number) {
  Region *const region = region_of(at);
  if (!region)
    fail("parameter %u points to no device memory", number);
  else if ((uintptr_t)at % parameter.size)
    fail("parameter %u is not aligned to its elements of %u bytes", number, parameter.size);
  else
    view = View{at, region->begin, region->end, region, number};
  return region && (uintptr_t)at % parameter.size == 0;
}
} // namespace gc

extern "C" {

void *gc_host_allocate(size_t nbytes) {
  void *memory = nullptr;
  /* One unit more: where an empty block ends, the next one must not begin. */
  if (posix_memalign(&memory, gc::ALIGNMENT, nbytes + gc::ALIGNMENT))
    return nullptr;
  memset(memory, gc::POISON, nbytes);
  char *const begin = (char *)memory;
  gc::regions()[(uintptr_t)memory] = gc::Region{begin, begin + nbytes, {}};
  return memory;
}

void gc_host_free(void *data) {
  const auto found = gc::regions().find((uintptr_t)data);
  if (found == gc::regions().end())
    return;
  for (uint log_size = 0; log_size < gc::SIZES; log_size++)
    if (found->second.shadows[log_size])
      munmap(found->second.shadows[log_size], gc::shadow_bytes(found->second, log_size));
  gc::regions().erase(found);
  free(data);
}
}
