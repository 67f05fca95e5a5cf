/* probe.c -- where two threads run at this moment: the time of a spinning barrier, a rate of fma.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define LANES 8
#define CHAINS 10
#define BATCHES 8
#define PATIENCE 0.008 /* seconds; on a busy machine one thread may have to wait for a core */

typedef float lanes __attribute__((vector_size(4 * LANES)));

static _Alignas(64) atomic_int arrived;
static _Alignas(64) atomic_int turn;
static _Alignas(64) atomic_int late;
static int crossings, additions;
static double deadline, barrier_seconds, fma_seconds[2];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void barrier(int *mine) {
  int seen = 0;
  *mine ^= 1;
  if (atomic_fetch_add_explicit(&arrived, 1, memory_order_acq_rel) == 1) {
    atomic_store_explicit(&arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&turn, *mine, memory_order_release);
    return;
  }
  while (atomic_load_explicit(&turn, memory_order_acquire) != *mine) {
    if (++seen % 4096 == 0 && (atomic_load(&late) || now() > deadline)) {
      atomic_store(&late, 1);
      return;
    }
  }
}

static float multiply_and_add(int rounds) {
  lanes sums[CHAINS], scale, step, total = {0};
  for (int l = 0; l < LANES; l++) {
    scale[l] = 0.999f;
    step[l] = 0.001f;
  }
  for (int c = 0; c < CHAINS; c++) {
    sums[c] = step * (float)c;
  }
  for (int r = 0; r < rounds; r++) {
    for (int c = 0; c < CHAINS; c++) {
      sums[c] = sums[c] * scale + step;
    }
  }
  for (int c = 0; c < CHAINS; c++) {
    total += sums[c];
  }
  return total[0];
}

static void *half(void *argument) {
  int me = argument != 0, mine = 0;
  volatile float sink;
  for (int b = 0; b < BATCHES && !atomic_load(&late); b++) {
    double began = now();
    for (int i = 0; i < crossings && !atomic_load_explicit(&late, memory_order_relaxed); i++) {
      barrier(&mine);
    }
    double seconds = now() - began;
    if (!me && seconds < barrier_seconds && !atomic_load(&late)) {
      barrier_seconds = seconds;
    }
  }
  double began = now();
  sink = multiply_and_add(additions);
  fma_seconds[me] = now() - began;
  (void)sink;
  return 0;
}

/* Nanoseconds a barrier (of the fastest batch; 1e9 where none ended in time), and billions of
 * operations a second of both threads together. Gives 0, or 1 where no thread could be made. */
int probe(int barriers, int rounds, double *nanoseconds, double *gflops) {
  static int other = 1;
  pthread_t thread;
  crossings = barriers;
  additions = rounds;
  barrier_seconds = barriers;
  deadline = now() + PATIENCE;
  atomic_store(&arrived, 0);
  atomic_store(&turn, 0);
  atomic_store(&late, 0);
  if (pthread_create(&thread, 0, half, &other)) {
    return 1;
  }
  half(0);
  pthread_join(thread, 0);
  double slower = fma_seconds[0] > fma_seconds[1] ? fma_seconds[0] : fma_seconds[1];
  *nanoseconds = barrier_seconds / barriers * 1e9;
  *gflops = 2.0 * 2.0 * CHAINS * LANES * rounds / slower * 1e-9;
  return 0;
}
