/* run.c -- gc_run: check, plan, cut into tasks, run; and the memory that tensors live in. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tables.h"
#include "threads.h"

/* ---- memory: each block is preceded by a header that remembers its length ---- */

enum { ALIGN = 64 };
static atomic_llong allocated;
static atomic_int fill_on_alloc;

void *gc_alloc(int64_t nbytes) {
  void *block;
  if (nbytes < 0 || nbytes > INT64_MAX - 2 * ALIGN ||
      posix_memalign(&block, ALIGN, (size_t)nbytes + ALIGN) != 0)
    return NULL;
  *(int64_t *)block = nbytes;
  atomic_fetch_add(&allocated, nbytes);
  char *data = (char *)block + ALIGN;
  if (atomic_load(&fill_on_alloc))
    memset(data, 0xFF, (size_t)nbytes); /* NaN as float and double: unwritten output shows */
  return data;
}

void gc_free(void *data) {
  if (!data)
    return;
  void *block = (char *)data - ALIGN;
  atomic_fetch_sub(&allocated, *(int64_t *)block);
  free(block);
}

int64_t gc_allocated(void) {
  return atomic_load(&allocated);
}
void gc_fill_on_alloc(int on) {
  atomic_store(&fill_on_alloc, on);
}

/* ---- scratch: one block that grows to what the largest call needs ---- */

static struct {
  void *data;
  int64_t nbytes;
} scratch;

static void *scratch_of(int64_t nbytes) {
  if (nbytes > scratch.nbytes) {
    free(scratch.data);
    scratch.nbytes = 0;
    scratch.data = NULL;
    if (posix_memalign(&scratch.data, ALIGN, (size_t)nbytes) != 0) {
      scratch.data = NULL;
      return NULL;
    }
    scratch.nbytes = nbytes;
  }
  return scratch.data;
}

static int64_t rounded(int64_t nbytes) {
  return (nbytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- one call ---- */

static pthread_mutex_t report = PTHREAD_MUTEX_INITIALIZER;

void gc_bad_index(const gc_job *job, int tensor, int64_t where, int64_t value, int64_t limit) {
  pthread_mutex_lock(&report);
  gc_error *e = job->error;
  if (e->status == GC_OK || where < e->where)
    *e = (gc_error){
        .status = GC_BAD_INDEX, .tensor = tensor, .where = where, .value = value, .limit = limit};
  pthread_mutex_unlock(&report);
}

typedef struct {
  gc_run_fn run;
  gc_job job;
  int64_t worker_bytes;
  char *own; /* scratch of worker 0; the others follow */
} phase_context;

static void run_task(void *context, int64_t task, int worker) {
  const phase_context *phase = context;
  gc_job job = phase->job;
  job.task = task;
  if (phase->own)
    job.own = phase->own + worker * phase->worker_bytes;
  phase->run(&job);
}

static int run_call(const gc_call *call, gc_error *error) {
  int status = gc_check(call, error);
  if (status)
    return status;
  const gc_kernel *kernel =
      gc_find(call->kernel, call->tensors[gc_rows[call->kernel].typed_by].dtype);
  gc_plan plan = {0};
  status = kernel->plan(call, &plan, error);
  if (status)
    return status;
  const int64_t shared = rounded(plan.shared_bytes), own = rounded(plan.worker_bytes);
  phase_context phase = {.run = kernel->run, .worker_bytes = own};
  phase.job = (gc_job){.call = call, .error = error};
  if (shared + own) {
    char *memory = scratch_of(shared + own * gc_threads());
    if (!memory)
      return gc_refuse(error, GC_NO_MEMORY, 0, "more memory");
    phase.job.shared = memory;
    phase.own = memory + shared;
  }
  for (int32_t p = 0; p < plan.phases && error->status == GC_OK; p++) {
    phase.job.phase = p;
    phase.job.tasks = plan.tasks[p];
    gc_parallel(plan.tasks[p], run_task, &phase);
  }
  return error->status;
}

int gc_run(const gc_call *calls, int64_t n, gc_error *error) {
  gc_lock();
  int status = GC_OK;
  *error = (gc_error){0};
  for (int64_t i = 0; i < n && status == GC_OK; i++) {
    status = run_call(&calls[i], error);
    error->call = i;
  }
  gc_unlock();
  return status;
}
