/* fibers.cpp -- threads of a block as fibers: the switch, the scheduler, barriers and collectives.
 *
 * A thread that never waits costs no switch: a fiber runs one thread after the other until one of
 * them has to wait, and only then does the next fiber begin. */

#include "runner.h"
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>

/* Saves the callee's registers on this stack and its pointer in *save, then goes on where another
 * stack was left. ucontext would do the same with a system call each time. */
extern "C" void gc_switch(void **save, void *load);

#if defined(__x86_64__)
asm(R"(
.text
.globl gc_switch
.hidden gc_switch
.type gc_switch, @function
gc_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size gc_switch, . - gc_switch
)");
enum { SAVED_WORDS = 6 + 2, RETURN_WORD = 6 }; /* what a new stack begins with, and where to go */
#elif defined(__aarch64__)
/* Assembled, but not run yet: no such machine was at hand. */
asm(R"(
.text
.globl gc_switch
.hidden gc_switch
.type gc_switch, %function
gc_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size gc_switch, . - gc_switch
)");
enum { SAVED_WORDS = 20, RETURN_WORD = 11 };
#else
#error "the switch between fibers is not written for this processor"
#endif

namespace gc {

Thread thread;
Dim3 block_index, block_size, grid_size;
Run run;

namespace {

enum { MOST_THREADS = 1024, WARP_LANES = 32, STACK = 128 * 1024, PAGE = 16 * 1024 };
enum State { RUNNABLE, AT_BARRIER, IN_COLLECTIVE, FREE };

struct Fiber {
  void *stack; /* where it was left */
  char *memory;
  State state;
  Thread thread;
  uint generation; /* of the collective it waits for */
};

struct Warp {
  uint arrived;
  uint generation;                /* collectives done */
  uint site;                      /* of the collective that is under way */
  uint first_lane;                /* who came first */
  LaneWords words[2][WARP_LANES]; /* of this collective and of the one before, still being read */
};

Fiber fibers[MOST_THREADS];
Warp warps[MOST_THREADS / WARP_LANES];
Fiber *current; /* NULL: the scheduler runs */
void *scheduler;

/* Of the block that runs. */
const gc_host_kernel *kernel;
void *const *arguments;
uint threads, started, ended, last_ended, waiting, barrier_site, first_waiting;

int order;
char message[512];
bool has_failed;

/* The i-th of `count` things in the order asked for. The prime is larger than any count, so the
 * multiples of it meet every number once; `turn` begins elsewhere. */
uint ordered(uint i, uint count, uint turn) {
  if (order == GC_HOST_REVERSE)
    return count - 1 - i;
  if (order == GC_HOST_SCRAMBLED)
    return (uint)(((uint64_t)i * 2654435761u + turn) % count);
  return i;
}

void to_scheduler() {
  Fiber *const own = current;
  own->thread = thread;
  gc_switch(&own->stack, scheduler);
}

void to_fiber(Fiber &fiber) {
  fiber.state = RUNNABLE;
  current = &fiber;
  thread = fiber.thread;
  gc_switch(&scheduler, fiber.stack);
  current = nullptr;
}

/* Where every fiber begins: threads, until all have been started. */
void fiber_main() {
  while (started < threads) {
    const uint number = ordered(started++, threads, run.block);
    thread = Thread{{number, 0, 0}, number % WARP_LANES, number / WARP_LANES};
    kernel->run(arguments);
    if (copies_on_their_way())
      fail("the thread ended while copies of it were on their way");
    ended++;
    last_ended = number;
  }
  current->state = FREE;
  to_scheduler();
}

/* A fresh stack whose first switch goes to fiber_main. A page below it may not be touched. */
bool prepare(Fiber &fiber) {
  if (!fiber.memory) {
    void *const memory = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      fail("no memory for the stack of a thread");
      return false;
    }
    fiber.memory = (char *)memory;
    mprotect(fiber.memory, PAGE, PROT_NONE);
  }
  void **const top = (void **)(fiber.memory + STACK) - SAVED_WORDS;
  memset(top, 0, SAVED_WORDS * sizeof(void *));
  top[RETURN_WORD] = (void *)fiber_main;
  fiber.stack = top;
  return true;
}

/* Runs every thread up to where it first waits, or to its end; gives the number of fibers. */
uint start_threads() {
  uint count = 0;
  while (started < threads && !has_failed) {
    Fiber &fiber = fibers[count++];
    if (prepare(fiber))
      to_fiber(fiber);
  }
  return count;
}

bool may_go_on(const Fiber &fiber) {
  if (fiber.state == IN_COLLECTIVE)
    return warps[fiber.thread.warp].generation != fiber.generation;
  return fiber.state == RUNNABLE;
}

/* Each fiber that may go on runs to where it next waits; false when there was none. */
bool go_on(uint count) {
  bool any = false;
  for (uint i = 0; i < count && !has_failed; i++) {
    Fiber &fiber = fibers[order == GC_HOST_REVERSE ? count - 1 - i : i];
    if (may_go_on(fiber)) {
      any = true;
      to_fiber(fiber);
    }
  }
  return any;
}

void release_barrier(uint count) {
  waiting = 0;
  run.epoch++;
  for (uint i = 0; i < count; i++)
    if (fibers[i].state == AT_BARRIER)
      fibers[i].state = RUNNABLE;
}

/* Nobody can go on, and not all wait at one barrier. */
void explain_standstill() {
  if (waiting && waiting + ended == threads)
    fail("thread %u ended while thread %u waits at a barrier", last_ended, first_waiting);
  for (uint w = 0; w < threads / WARP_LANES && !has_failed; w++)
    if (warps[w].arrived)
      fail("warp %u: %u of 32 lanes came to a collective, lane %u first; others %s", w,
           warps[w].arrived, warps[w].first_lane,
           waiting ? "wait at a barrier" : "have ended or wait elsewhere");
}

void run_block() {
  started = ended = waiting = 0;
  run.block++;
  run.epoch = 1;
  run.shared_bytes = 0;
  memset(warps, 0, sizeof warps);
  for (uint w = 0; w < MOST_THREADS / WARP_LANES; w++)
    run.warp_epoch[w] = 1;
  const uint count = start_threads();
  while (ended < threads && !has_failed) {
    if (waiting == threads)
      release_barrier(count);
    if (!go_on(count) && !has_failed && waiting < threads)
      explain_standstill();
  }
}

/* The collective is complete when its 32nd lane arrives; that one goes straight on. */
const LaneWords *arrive(const LaneWords &own, uint site, bool orders_memory) {
  Warp &warp = warps[thread.warp];
  if (warp.arrived == 0) {
    warp.site = site;
    warp.first_lane = thread.lane;
  }
  if (warp.site != site)
    fail("lanes of warp %u are in different collectives; lane %u came to another one", thread.warp,
         warp.first_lane);
  LaneWords *const words = warp.words[warp.generation & 1];
  words[thread.lane] = own;
  if (++warp.arrived == WARP_LANES) {
    warp.arrived = 0;
    warp.generation++;
    run.warp_epoch[thread.warp] += orders_memory;
  } else {
    current->generation = warp.generation;
    current->state = IN_COLLECTIVE;
    to_scheduler();
  }
  return words;
}
} // namespace

void barrier(uint site) {
  if (waiting == 0) {
    barrier_site = site;
    first_waiting = thread.tid.x;
  }
  if (barrier_site != site)
    fail("threads of one block wait at different barriers; thread %u came to another one",
         first_waiting);
  waiting++;
  current->state = AT_BARRIER;
  to_scheduler();
}

/* Every lane gets the bits of another. The vendors promise no order of memory with it. */
uint warp_exchange(uint bits, uint from_lane, uint site) {
  if (from_lane >= WARP_LANES)
    fail("a warp has 32 lanes, this asks for number %u", from_lane);
  return arrive(LaneWords{{bits}}, site, false)[from_lane].at[0];
}

const LaneWords *warp_words(const LaneWords &own, uint site) {
  return arrive(own, site, false);
}

void warp_sync(uint site) {
  arrive(LaneWords{}, site, true);
}

void fail(const char *format, ...) {
  if (!has_failed) {
    char text[384];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    snprintf(message, sizeof message, "%s (kernel %s, block %u %u %u, thread %u)", text,
             kernel ? kernel->name : "?", block_index.x, block_index.y, block_index.z,
             thread.tid.x);
  }
  has_failed = true;
  if (current)
    to_scheduler(); /* for good: nobody resumes a fiber of a failed launch */
}

bool run_grid(const gc_host_kernel *which, void *const *given, Dim3 grid, uint block_threads) {
  kernel = which;
  arguments = given;
  threads = block_threads;
  grid_size = grid;
  block_size = Dim3{block_threads, 1, 1};
  run.first_block = run.block + 1;
  const uint blocks = grid.x * grid.y * grid.z;
  for (uint i = 0; i < blocks && !has_failed; i++) {
    const uint number = ordered(i, blocks, run.first_block);
    block_index = Dim3{number % grid.x, number / grid.x % grid.y, number / (grid.x * grid.y)};
    run_block();
  }
  return !has_failed;
}

void expect(const gc_host_kernel *which) {
  kernel = which;
  has_failed = false;
  message[0] = 0;
  block_index = Dim3{0, 0, 0};
  thread = Thread{{0, 0, 0}, 0, 0};
}

const char *what_failed() {
  return message;
}

void set_order(int wanted) {
  order = wanted;
}
} // namespace gc
