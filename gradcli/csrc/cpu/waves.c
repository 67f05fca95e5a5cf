/* waves.c -- walking a course of waves. Each worker has a lane of a wave's tasks, which it takes
 * first: what it wrote in the wave before is still in its cache. Then it helps in the other lanes.
 * Which worker does a task never changes the result. */
#define _POSIX_C_SOURCE 200809L
#include "waves.h"

#include <stdatomic.h>
#include <time.h>

#include "threads.h"

enum { MAX_LANES = 16 };

/* `ticket`: the wave's turn in the upper half, how many tasks of the lane are still to be taken in
 * the lower. Taking one is a compare-and-swap, so that it can only be of the turn that was read. */
typedef struct {
  _Alignas(64) atomic_ullong ticket;
} lane;

typedef struct {
  const gc_course *course;
  int64_t wave, step; /* written by the one thread that is between two waves */
  int lanes;
  _Alignas(64) atomic_uint turn; /* counts the waves that were handed out */
  atomic_int ended;
  _Alignas(64) atomic_llong left; /* tasks of this wave that are not done yet */
  lane lane[MAX_LANES];
} walk;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void do_task(const walk *w, int64_t task, int worker) {
  const gc_course *course = w->course;
  const gc_wave *wave = &course->waves[w->wave];
  const gc_stage *stage = &course->stages[wave->first];
  while (task >= stage->before + stage->tasks)
    stage++;
  const gc_job job = {
      .call = stage->call,
      .number = stage->number,
      .phase = stage->phase,
      .task = task - stage->before,
      .tasks = stage->tasks,
      .shared = stage->shared,
      .own = course->own ? course->own + worker * course->worker_bytes : NULL,
      .error = course->error,
  };
  if (!stage->timed) {
    stage->run(&job);
    return;
  }
  const int64_t began = now();
  stage->run(&job);
  course->clocks[worker].ns += now() - began;
}

/* A wave has ended: so long it waited for its stages that are timed. */
static void read_clocks(const gc_course *course) {
  int64_t longest = 0;
  for (int64_t i = 0; i < course->nclocks; i++) {
    longest = gc_max(longest, course->clocks[i].ns);
    course->clocks[i].ns = 0;
  }
  *course->timed += longest;
}

static void transfer(const gc_transfer *list, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n; i++)
    if (list[i].to)
      memcpy(list[i].to + step * list[i].to_step, list[i].source + step * list[i].source_step,
             (size_t)list[i].nbytes);
}

/* What comes with this step: copied into the program's memory, or looked at where it lies. */
static void feed(const gc_course *course, int64_t step) {
  transfer(course->feeds, course->nfeeds, step);
  for (int64_t i = 0; i < course->nsockets; i++) {
    const gc_socket *socket = &course->sockets[i];
    if (socket->feed >= course->nfeeds)
      continue;
    const gc_transfer *from = &course->feeds[socket->feed];
    if (!from->to)
      *socket->data = (void *)(from->source + step * from->source_step);
  }
}

/* The first task of a lane; that of lane `lanes` is the number of tasks. */
static int64_t lane_start(const walk *w, int64_t tasks, int number) {
  return tasks * number / w->lanes;
}

static void hand_out(walk *w) {
  const int64_t tasks = w->course->waves[w->wave].tasks;
  const unsigned turn = atomic_load_explicit(&w->turn, memory_order_relaxed) + 1;
  atomic_store_explicit(&w->left, tasks, memory_order_relaxed);
  for (int i = 0; i < w->lanes; i++) {
    const int64_t n = lane_start(w, tasks, i + 1) - lane_start(w, tasks, i);
    atomic_store_explicit(&w->lane[i].ticket, (unsigned long long)turn << 32 | (unsigned)n,
                          memory_order_release);
  }
  atomic_store_explicit(&w->turn, turn, memory_order_release);
}

/* Between two waves: does what is too small to share, until there is a wave to hand out or the
 * course has ended. One thread at a time is here. */
static void advance(walk *w, int worker) {
  const gc_course *course = w->course;
  for (;;) {
    if (w->wave >= 0 && course->waves[w->wave].timed)
      read_clocks(course);
    if (course->error->status != GC_OK)
      break;
    if (++w->wave == course->nwaves) {
      transfer(course->takes, course->ntakes, w->step);
      w->step++;
      w->wave = -1;
      if (w->step == course->first + course->steps)
        break;
    }
    if (w->wave == -1) {
      feed(course, w->step);
      continue;
    }
    const gc_wave *wave = &course->waves[w->wave];
    if (!wave->alone && w->lanes > 1) {
      hand_out(w);
      return;
    }
    for (int64_t task = 0; task < wave->tasks; task++)
      do_task(w, task, worker);
  }
  atomic_store_explicit(&w->ended, 1, memory_order_release);
}

/* Takes and does one task of a lane; false when there is none. */
static bool take(walk *w, int from, int worker) {
  unsigned long long ticket = atomic_load_explicit(&w->lane[from].ticket, memory_order_acquire);
  do {
    if ((ticket & UINT32_MAX) == 0)
      return false;
  } while (!atomic_compare_exchange_weak_explicit(&w->lane[from].ticket, &ticket, ticket - 1,
                                                  memory_order_acq_rel, memory_order_acquire));
  const int64_t tasks = w->course->waves[w->wave].tasks;
  do_task(w, lane_start(w, tasks, from + 1) - (int64_t)(ticket & UINT32_MAX), worker);
  if (atomic_fetch_sub_explicit(&w->left, 1, memory_order_acq_rel) == 1)
    advance(w, worker);
  return true;
}

static void help(void *context, int worker) {
  walk *w = context;
  for (int turns = 0; !atomic_load_explicit(&w->ended, memory_order_acquire); turns++) {
    const unsigned turn = atomic_load_explicit(&w->turn, memory_order_acquire);
    for (int i = 0; i < w->lanes; i++)
      while (take(w, (worker + i) % w->lanes, worker))
        turns = 0;
    if (atomic_load_explicit(&w->turn, memory_order_acquire) == turn)
      gc_relax(turns);
  }
}

int64_t gc_walk_course(const gc_course *course) {
  if (course->steps <= 0)
    return 0;
  const int threads = gc_threads();
  walk w = {.course = course, .wave = -1, .step = course->first};
  w.lanes = threads < MAX_LANES ? threads : MAX_LANES;
  feed(course, w.step);
  advance(&w, 0);
  if (!atomic_load(&w.ended))
    gc_team(help, &w);
  for (int64_t i = 0; i < course->nsockets; i++)
    *course->sockets[i].data = course->sockets[i].home;
  return w.step - course->first;
}
