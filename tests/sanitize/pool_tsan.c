/* pool_tsan.c -- many callers, a changing number of threads and a forked child, all at the same
 * thread pool, with single calls and with programs; built with -fsanitize=thread, which reports
 * every race. Exits 0 when all is right. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../gradcli/csrc/call.h"

enum { CALLERS = 3, ROUNDS = 40, LENGTH = 100000 };

static int kernel_called(const char *name) {
  for (int i = 0; i < gc_kernel_count(); i++)
    if (strcmp(gc_kernel_name(i), name) == 0)
      return i;
  return -1;
}

static gc_tensor vector(float *data) {
  return (gc_tensor){.data = data,
                     .nbytes = LENGTH * (int64_t)sizeof(float),
                     .dtype = GC_F32,
                     .ndim = 1,
                     .shape = {LENGTH},
                     .stride = {1}};
}

/* exp then neg, as a list of two calls; 0 when the numbers are right. */
static int compute(float start) {
  float *x = gc_alloc(LENGTH * sizeof(float)), *y = gc_alloc(LENGTH * sizeof(float));
  for (int i = 0; i < LENGTH; i++)
    x[i] = start + (float)i / LENGTH;
  gc_call calls[2] = {{.kernel = kernel_called("exp"), .ntensors = 2},
                      {.kernel = kernel_called("neg"), .ntensors = 2}};
  calls[0].tensors[0] = vector(x);
  calls[0].tensors[1] = calls[1].tensors[0] = calls[1].tensors[1] = vector(y);
  gc_error error;
  int wrong = gc_run(calls, 2, &error) != GC_OK;
  for (int i = 0; i < LENGTH && !wrong; i++)
    wrong = fabs((double)y[i] + exp((double)x[i])) > 1e-5 * exp((double)x[i]);
  gc_free(x);
  gc_free(y);
  return wrong;
}

/* A program of three waves: y = exp(x) and z = -x, y *= z, s = sum(y); replayed with other x each
 * step, the sums taken out. 0 when the numbers are right. */
enum { STEPS = 5, SMALL = 40000 };

static gc_tensor part(float *data, int64_t n) {
  gc_tensor t = vector(data);
  t.nbytes = n * (int64_t)sizeof(float);
  t.shape[0] = n;
  return t;
}

static gc_program *compiled(float *x, float *y, float *z, float *s, gc_error *error) {
  gc_call calls[4] = {{.kernel = kernel_called("exp"), .ntensors = 2},
                      {.kernel = kernel_called("neg"), .ntensors = 2},
                      {.kernel = kernel_called("mul"), .ntensors = 3},
                      {.kernel = kernel_called("sum"), .ntensors = 2}};
  calls[0].tensors[0] = calls[1].tensors[0] = part(x, SMALL);
  calls[0].tensors[1] = calls[2].tensors[0] = calls[2].tensors[2] = part(y, SMALL);
  calls[1].tensors[1] = calls[2].tensors[1] = part(z, SMALL);
  calls[3].tensors[0] = (gc_tensor){.data = y,
                                    .nbytes = SMALL * sizeof(float),
                                    .dtype = GC_F32,
                                    .ndim = 3,
                                    .shape = {1, SMALL, 1},
                                    .stride = {SMALL, 1, 1}};
  calls[3].tensors[1] = (gc_tensor){.data = s,
                                    .nbytes = sizeof(float),
                                    .dtype = GC_F32,
                                    .ndim = 3,
                                    .shape = {1, 1, 1},
                                    .stride = {1, 1, 1}};
  gc_part parts[8] = {{0, 0, 0}, {1, 0, 0}, {2, 0, 1}};
  gc_plan plan;
  if (gc_plan_call(&calls[3], &plan, error))
    return NULL;
  for (int p = 0; p < plan.phases; p++)
    parts[3 + p] = (gc_part){3, p, 2 + p};
  static _Alignas(64) char scratch[3][1 << 20];
  static int64_t next;
  gc_block shared[4] = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
  shared[3] = (gc_block){scratch[__atomic_fetch_add(&next, 1, __ATOMIC_SEQ_CST) % 3], 1 << 20};
  const gc_port ports[2] = {{0, 0, 0}, {0, 1, 0}};
  return gc_compile(calls, 4, parts, 3 + plan.phases, ports, 2, shared, error);
}

/* `bound`: the rows are read where they lie instead of being copied to x. */
static int replay(float start, int bound) {
  float *x = gc_alloc(SMALL * sizeof(float)), *y = gc_alloc(SMALL * sizeof(float));
  float *z = gc_alloc(SMALL * sizeof(float)), *s = gc_alloc(64);
  float *given = gc_alloc(STEPS * SMALL * sizeof(float)), sums[STEPS];
  for (int i = 0; i < STEPS * SMALL; i++)
    given[i] = start + (float)(i / SMALL) + 0.5f;
  gc_error error;
  gc_program *program = compiled(x, y, z, s, &error);
  const gc_transfer feed = {bound ? NULL : (char *)x, 0, (const char *)given, SMALL * sizeof(float),
                            SMALL * sizeof(float)};
  const gc_transfer take = {(char *)sums, sizeof(float), (const char *)s, 0, sizeof(float)};
  int64_t done = 0;
  int wrong = !program ||
              gc_replay(program, 0, STEPS, &feed, 1, &take, 1, &done, &error) != GC_OK ||
              done != STEPS;
  for (int i = 0; i < STEPS && !wrong; i++) {
    const double v = (double)given[i * SMALL], right = -v * exp(v) * SMALL;
    wrong = fabs((double)sums[i] - right) > 1e-4 * fabs(right);
  }
  gc_discard(program);
  gc_free(given);
  gc_free(s);
  gc_free(z);
  gc_free(y);
  gc_free(x);
  return wrong;
}

static void *caller(void *argument) {
  const int me = *(int *)argument;
  intptr_t wrong = 0;
  for (int round = 0; round < ROUNDS; round++) {
    if (me == 0 && round % 10 == 9)
      gc_set_threads(1 + round / 10);
    wrong += compute((float)me);
    wrong += replay((float)me, round % 2);
  }
  return (void *)wrong;
}

static int forked(void) {
  const pid_t child = fork();
  if (child == 0)
    _exit(compute(0.5f));
  int status = 1;
  return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

int main(void) {
  gc_set_threads(4);
  pthread_t threads[CALLERS];
  int numbers[CALLERS];
  for (int i = 0; i < CALLERS; i++) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, caller, &numbers[i]);
  }
  intptr_t wrong = 0;
  for (int i = 0; i < CALLERS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    wrong += (intptr_t)result;
  }
  wrong += forked();
  printf("pool: %d callers, %d rounds, a forked child: %d wrong\n", CALLERS, ROUNDS, (int)wrong);
  return wrong != 0;
}
