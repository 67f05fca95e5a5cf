/* program.c -- a program: calls that were checked and planned once, cut into waves, and replayed as
 * often as wanted. Its memory is fixed, so that what was proved when it was made stays true; calls
 * that are moved to another place are proved again. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "tables.h"
#include "threads.h"
#include "waves.h"

struct gc_program {
  gc_call *calls;
  gc_plan *plans;
  gc_block *shared; /* scratch of each call */
  gc_stage *stages;
  gc_wave *waves;
  gc_socket *sockets;
  int64_t ncalls, nwaves, nsockets;
  int64_t worker_bytes;
  int threads; /* that `own` has room for */
  char *own;
  gc_clock *clocks; /* where a call is timed; one a thread */
  int64_t nclocks, timed;
};

static void *array_of(int64_t n, size_t size) {
  return n < 0 ? NULL : calloc((size_t)n + 1, size);
}

/* Every phase of every call once, in waves that rise from 0 without a gap; the phases of a call in
 * waves of their own. */
static int check_parts(const gc_part *parts, int64_t n, const gc_plan *plans, int64_t ncalls,
                       gc_error *error) {
  int32_t *next = array_of(2 * ncalls, sizeof *next); /* phase to come, wave of the one before */
  if (!next)
    return gc_refuse(error, GC_NO_MEMORY, 0, "more memory");
  bool right = true;
  int64_t covered = 0, phases = 0;
  int32_t wave = 0;
  for (int64_t i = 0; i < ncalls; i++)
    phases += plans[i].phases;
  for (int64_t i = 0; i < n && right; i++) {
    const gc_part *p = &parts[i];
    right = p->call >= 0 && p->call < ncalls && p->phase >= 0 && p->phase < plans[p->call].phases &&
            p->phase == next[2 * p->call] && (p->phase == 0 || p->wave > next[2 * p->call + 1]) &&
            (p->wave == wave || (i > 0 && p->wave == wave + 1));
    if (right) {
      wave = p->wave;
      next[2 * p->call]++;
      next[2 * p->call + 1] = wave;
      covered++;
    }
  }
  free(next);
  if (right && covered == phases)
    return GC_OK;
  return gc_refuse(error, GC_BAD_PROGRAM, 0, "every phase of every call once, in rising waves");
}

/* How many tasks there are, by the plans of now. */
static void count_tasks(gc_program *p) {
  for (int64_t i = 0; i < p->nwaves; i++) {
    gc_wave *wave = &p->waves[i];
    int64_t work = 0;
    wave->tasks = 0;
    for (int64_t j = wave->first; j < wave->first + wave->stages; j++) {
      gc_stage *stage = &p->stages[j];
      stage->tasks = p->plans[stage->number].tasks[stage->phase];
      stage->before = wave->tasks;
      wave->tasks += stage->tasks;
      work += p->plans[stage->number].work;
    }
    wave->alone = wave->tasks <= 1 || work < GC_SHARED_WORK;
  }
}

static void fill_stages(gc_program *p, const gc_part *parts, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const int32_t number = parts[i].call;
    const gc_call *call = &p->calls[number];
    const int32_t type = call->tensors[gc_rows[call->kernel].typed_by].dtype;
    if (i == 0 || parts[i].wave != parts[i - 1].wave)
      p->waves[p->nwaves++] = (gc_wave){.first = i};
    p->stages[i] = (gc_stage){.call = call,
                              .number = number,
                              .run = gc_find(call->kernel, type)->run,
                              .shared = p->shared[number].data,
                              .phase = parts[i].phase};
    p->waves[p->nwaves - 1].stages++;
    p->worker_bytes = gc_max(p->worker_bytes, p->plans[number].worker_bytes);
  }
  count_tasks(p);
}

/* Only what is read may lie in somebody else's memory. */
static int fill_sockets(gc_program *p, const gc_port *ports, int64_t n, int64_t ncalls,
                        gc_error *error) {
  for (int64_t i = 0; i < n; i++) {
    const gc_port *port = &ports[i];
    if (port->feed < 0 || port->call < 0 || port->call >= ncalls || port->tensor < 0 ||
        port->tensor >= gc_rows[p->calls[port->call].kernel].inputs)
      return gc_refuse(error, GC_BAD_PROGRAM, 0, "ports that are inputs of its calls");
    void **data = &p->calls[port->call].tensors[port->tensor].data;
    p->sockets[p->nsockets++] = (gc_socket){.feed = port->feed, .data = data, .home = *data};
  }
  return GC_OK;
}

static int compile(gc_program *p, const gc_call *calls, const gc_part *parts, int64_t nparts,
                   const gc_block *shared, gc_error *error) {
  for (int64_t i = 0; i < p->ncalls; i++) {
    p->calls[i] = calls[i];
    p->shared[i] = shared[i];
    error->call = i;
    if (gc_plan_call(&p->calls[i], &p->plans[i], error))
      return error->status;
    if (p->plans[i].shared_bytes > shared[i].nbytes || (uintptr_t)shared[i].data % 64)
      return gc_refuse(error, GC_BAD_PROGRAM, 0, "scratch as the plans ask for, aligned to 64");
  }
  if (check_parts(parts, nparts, p->plans, p->ncalls, error) == GC_OK)
    fill_stages(p, parts, nparts);
  return error->status;
}

gc_program *gc_compile(const gc_call *calls, int64_t ncalls, const gc_part *parts, int64_t nparts,
                       const gc_port *ports, int64_t nports, const gc_block *shared,
                       gc_error *error) {
  *error = (gc_error){0};
  gc_program *p = array_of(1, sizeof *p);
  if (p) {
    p->ncalls = ncalls;
    p->calls = array_of(ncalls, sizeof *p->calls);
    p->plans = array_of(ncalls, sizeof *p->plans);
    p->shared = array_of(ncalls, sizeof *p->shared);
    p->stages = array_of(nparts, sizeof *p->stages);
    p->waves = array_of(nparts, sizeof *p->waves);
    p->sockets = array_of(nports, sizeof *p->sockets);
  }
  if (!p || !p->calls || !p->plans || !p->shared || !p->stages || !p->waves || !p->sockets)
    gc_refuse(error, GC_NO_MEMORY, 0, "more memory");
  else if (compile(p, calls, parts, nparts, shared, error) == GC_OK)
    fill_sockets(p, ports, nports, ncalls, error);
  if (error->status == GC_OK)
    return p;
  gc_discard(p);
  return NULL;
}

/* NULL where the call has no such number. */
static int64_t *number_of(gc_call *call, const gc_growth *growth) {
  const int32_t number = growth->number;
  if (growth->tensor < 0)
    return number >= 0 && number < GC_MAX_SIZES ? &call->sizes[number] : NULL;
  if (growth->tensor >= call->ntensors || number < 0 || number > 2 * GC_MAX_DIMS)
    return NULL;
  gc_tensor *t = &call->tensors[growth->tensor];
  if (number == 0)
    return &t->offset;
  return number <= GC_MAX_DIMS ? &t->shape[number - 1] : &t->stride[number - 1 - GC_MAX_DIMS];
}

/* The call as it is to be from now on, if the program has room for it. */
static int replace_call(gc_program *p, int64_t number, const gc_call *call, gc_error *error) {
  gc_plan plan;
  error->call = number;
  if (gc_plan_call(call, &plan, error))
    return error->status;
  if (plan.phases != p->plans[number].phases || plan.shared_bytes > p->shared[number].nbytes ||
      plan.worker_bytes > p->worker_bytes)
    return gc_refuse(error, GC_BAD_PROGRAM, 0, "the phases and scratch of the place compiled for");
  p->calls[number] = *call;
  p->plans[number] = plan;
  return GC_OK;
}

int gc_move_to(gc_program *program, const gc_growth *growths, int64_t n, int64_t place,
               gc_error *error) {
  *error = (gc_error){0};
  gc_lock();
  for (int64_t i = 0; i < n && error->status == GC_OK;) {
    const int32_t number = growths[i].call;
    if (number < 0 || number >= program->ncalls) {
      gc_refuse(error, GC_BAD_PROGRAM, 0, "growths of its own calls");
      break;
    }
    gc_call call = program->calls[number];
    for (; i < n && growths[i].call == number; i++) {
      int64_t *const at = number_of(&call, &growths[i]);
      if (at)
        *at = growths[i].start + place * growths[i].by;
      else
        gc_refuse(error, GC_BAD_PROGRAM, 0, "growths of numbers that calls have");
    }
    if (error->status == GC_OK)
      replace_call(program, number, &call, error);
  }
  count_tasks(program);
  gc_unlock();
  return error->status;
}

/* Not by gc_alloc, which counts the memory of tensors. */
static bool make_clocks(gc_program *p, int64_t n) {
  free(p->clocks);
  p->clocks = aligned_alloc(_Alignof(gc_clock), (size_t)n * sizeof *p->clocks);
  p->nclocks = p->clocks ? n : 0;
  for (int64_t i = 0; i < p->nclocks; i++)
    p->clocks[i].ns = 0;
  return p->clocks != NULL;
}

/* Without memory for its clocks a program goes untimed. */
void gc_time_call(gc_program *program, int64_t call) {
  if (!program->clocks && !make_clocks(program, 1))
    return;
  for (int64_t i = 0; i < program->nwaves; i++) {
    gc_wave *wave = &program->waves[i];
    for (int64_t j = wave->first; j < wave->first + wave->stages; j++)
      if (program->stages[j].number == call)
        program->stages[j].timed = wave->timed = true;
  }
}

int64_t gc_timed(const gc_program *program) {
  return program->timed;
}

/* Scratch for each thread there is now; their number may have changed since the last replay. */
static bool make_room(gc_program *p) {
  const int threads = gc_threads();
  if (p->clocks && threads > p->nclocks && !make_clocks(p, threads))
    return false;
  if (p->worker_bytes == 0 || threads <= p->threads)
    return true;
  gc_free(p->own);
  p->own = gc_alloc(p->worker_bytes * threads);
  p->threads = p->own ? threads : 0;
  return p->own != NULL;
}

int gc_replay(gc_program *program, int64_t first, int64_t steps, const gc_transfer *feeds,
              int64_t nfeeds, const gc_transfer *takes, int64_t ntakes, int64_t *done,
              gc_error *error) {
  *error = (gc_error){0};
  *done = 0;
  gc_lock();
  if (make_room(program)) {
    const gc_course course = {.stages = program->stages,
                              .waves = program->waves,
                              .nwaves = program->nwaves,
                              .own = program->own,
                              .worker_bytes = program->worker_bytes,
                              .feeds = feeds,
                              .nfeeds = nfeeds,
                              .takes = takes,
                              .ntakes = ntakes,
                              .sockets = program->sockets,
                              .nsockets = program->nsockets,
                              .first = first,
                              .steps = steps,
                              .error = error,
                              .clocks = program->clocks,
                              .nclocks = program->nclocks,
                              .timed = &program->timed};
    *done = gc_walk_course(&course);
  } else {
    gc_refuse(error, GC_NO_MEMORY, 0, "more memory");
  }
  gc_unlock();
  return error->status;
}

void gc_discard(gc_program *program) {
  if (!program)
    return;
  free(program->calls);
  free(program->plans);
  free(program->shared);
  free(program->stages);
  free(program->waves);
  free(program->sockets);
  gc_free(program->own);
  free(program->clocks);
  free(program);
}
