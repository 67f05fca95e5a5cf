/* threads.c -- the pool: workers spin briefly for the next job, then sleep. Own threads instead of
 * OpenMP, because libgomp hangs in a forked child of a process that used it. */
#define _POSIX_C_SOURCE 200809L
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../call.h"

enum { MAX_THREADS = 256, SPINS = 4000, OPEN = 1 << 16 };

static struct {
  pthread_mutex_t caller; /* held during a whole gc_run */
  pthread_mutex_t door;   /* guards sleeping */
  pthread_cond_t wake;
  int wanted;  /* threads asked for, the caller included */
  int started; /* workers running */
  int sleepers;
  pthread_t thread[MAX_THREADS];
  atomic_int quit;
  atomic_uint generation;
  atomic_int state; /* OPEN while a job accepts workers, plus the number of workers inside */
  void (*help)(void *, int);
  void *context;
} pool = {.caller = PTHREAD_MUTEX_INITIALIZER,
          .door = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .wanted = 1};

void gc_relax(int turns) {
  if (turns >= SPINS) {
    sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void sleep_until(unsigned seen) {
  pthread_mutex_lock(&pool.door);
  pool.sleepers++;
  while (atomic_load(&pool.generation) == seen && !atomic_load(&pool.quit))
    pthread_cond_wait(&pool.wake, &pool.door);
  pool.sleepers--;
  pthread_mutex_unlock(&pool.door);
}

/* Enter the open job; false when it closed before this worker came. */
static bool enter(void) {
  int state = atomic_load(&pool.state);
  while (state & OPEN)
    if (atomic_compare_exchange_weak(&pool.state, &state, state + 1))
      return true;
  return false;
}

static void *worker_main(void *argument) {
  const int worker = (int)(intptr_t)argument;
  unsigned seen = 0;
  while (!atomic_load(&pool.quit)) {
    for (int i = 0; i < SPINS && atomic_load(&pool.generation) == seen; i++)
      gc_relax(0);
    if (atomic_load(&pool.generation) == seen)
      sleep_until(seen);
    seen = atomic_load(&pool.generation);
    if (enter()) {
      pool.help(pool.context, worker);
      atomic_fetch_sub(&pool.state, 1);
    }
  }
  return NULL;
}

static void wake_all(void) {
  pthread_mutex_lock(&pool.door);
  if (pool.sleepers)
    pthread_cond_broadcast(&pool.wake);
  pthread_mutex_unlock(&pool.door);
}

static void stop_workers(void) {
  atomic_store(&pool.quit, 1);
  wake_all();
  for (int i = 0; i < pool.started; i++)
    pthread_join(pool.thread[i], NULL);
  pool.started = 0;
  atomic_store(&pool.quit, 0);
}

/* Nobody may hold a lock when a process forks: no thread of the child could let go of it. A program
 * takes memory while it holds the first lock, so here too that one comes first. */
static void before_fork(void) {
  gc_lock();
  gc_lock_rooms();
}

static void in_parent(void) {
  gc_unlock_rooms();
  gc_unlock();
}

/* In a forked child the workers do not exist: forget them, and start anew when first needed. */
static void in_child(void) {
  gc_unlock_rooms();
  pool.started = 0;
  pool.sleepers = 0;
  atomic_store(&pool.state, 0);
  pthread_mutex_init(&pool.door, NULL);
  pthread_cond_init(&pool.wake, NULL);
  pthread_mutex_init(&pool.caller, NULL);
}

static void start_workers(void) {
  static bool fork_handled;
  if (!fork_handled)
    fork_handled = pthread_atfork(before_fork, in_parent, in_child) == 0;
  while (pool.started < pool.wanted - 1) {
    void *worker = (void *)(intptr_t)(pool.started + 1);
    if (pthread_create(&pool.thread[pool.started], NULL, worker_main, worker) != 0) {
      pool.wanted = pool.started + 1; /* the caller learns it from gc_threads() */
      return;
    }
    pool.started++;
  }
}

void gc_lock(void) {
  pthread_mutex_lock(&pool.caller);
}
void gc_unlock(void) {
  pthread_mutex_unlock(&pool.caller);
}

int gc_threads(void) {
  return pool.wanted;
}

int gc_set_threads(int threads) {
  gc_lock();
  stop_workers();
  pool.wanted = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
  start_workers();
  const int running = pool.wanted;
  gc_unlock();
  return running;
}

void gc_team(void (*help)(void *context, int worker), void *context) {
  if (pool.wanted == 1) {
    help(context, 0);
    return;
  }
  start_workers();
  pool.help = help;
  pool.context = context;
  atomic_store(&pool.state, OPEN);
  atomic_fetch_add(&pool.generation, 1);
  wake_all();
  help(context, 0);
  atomic_fetch_and(&pool.state, ~OPEN);
  for (int turns = 0; atomic_load(&pool.state) != 0; turns++)
    gc_relax(turns);
}
