/* pool_tsan.c -- many callers, a changing number of threads and a forked child, all at the same
 * thread pool: with single calls, with programs of their own, and with one program that they take
 * turns at, as callers of one captured step do. Built with -fsanitize=thread, which reports every
 * race. Exits 0 when all is right. */
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

enum { CALLERS = 8, ROUNDS = 40, LENGTH = 100000 };

static int kernel_called(const char *name) {
  for (int i = 0; gc_kernel_facts(i); i++)
    if (strcmp(gc_kernel_facts(i)->name, name) == 0)
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
 * step, the sums taken out. */
enum { STEPS = 5, SMALL = 40000, SCRATCH = 1 << 20 };

typedef struct {
  float *x, *y, *z, *s;
  char *scratch;
  gc_program *program;
} world;

static gc_tensor part(float *data, int64_t n) {
  gc_tensor t = vector(data);
  t.nbytes = n * (int64_t)sizeof(float);
  t.shape[0] = n;
  return t;
}

static gc_program *compiled(const world *w) {
  float *const x = w->x, *const y = w->y, *const z = w->z, *const s = w->s;
  gc_error error;
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
  if (gc_plan_call(&calls[3], &plan, &error))
    return NULL;
  for (int p = 0; p < plan.phases; p++)
    parts[3 + p] = (gc_part){3, p, 2 + p};
  const gc_block shared[4] = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {w->scratch, SCRATCH}};
  const gc_port ports[2] = {{0, 0, 0}, {0, 1, 0}};
  return gc_compile(calls, 4, parts, 3 + plan.phases, ports, 2, shared, &error);
}

static world made(void) {
  world w = {.x = gc_alloc(SMALL * sizeof(float)),
             .y = gc_alloc(SMALL * sizeof(float)),
             .z = gc_alloc(SMALL * sizeof(float)),
             .s = gc_alloc(64),
             .scratch = gc_alloc(SCRATCH)};
  w.program = compiled(&w);
  return w;
}

static void discard(world *w) {
  gc_discard(w->program);
  gc_free(w->scratch);
  gc_free(w->s);
  gc_free(w->z);
  gc_free(w->y);
  gc_free(w->x);
}

/* STEPS rows that begin at `start`, and what came of them: 0 when the sums are right. */
static float *rows(float start) {
  float *given = gc_alloc(STEPS * SMALL * sizeof(float));
  for (int i = 0; i < STEPS * SMALL; i++)
    given[i] = start + (float)(i / SMALL) + 0.5f;
  return given;
}

static int judged(const float *given, const float *sums) {
  int wrong = 0;
  for (int i = 0; i < STEPS && !wrong; i++) {
    const double v = (double)given[i * SMALL], right = -v * exp(v) * SMALL;
    wrong = fabs((double)sums[i] - right) > 1e-4 * fabs(right);
  }
  return wrong;
}

static int replayed(const world *w, const gc_transfer *feed, const gc_transfer *take) {
  gc_error error;
  int64_t done = 0;
  return w->program && gc_replay(w->program, 0, STEPS, feed, 1, take, 1, &done, &error) == GC_OK &&
         done == STEPS;
}

enum { ROW = SMALL * sizeof(float) };

/* A program of one's own. `bound`: the rows are read where they lie instead of being copied. */
static int replay(float start, int bound) {
  world w = made();
  float *given = rows(start), sums[STEPS];
  const gc_transfer feed = {bound ? NULL : (char *)w.x, 0, (const char *)given, ROW, ROW};
  const gc_transfer take = {(char *)sums, sizeof(float), (const char *)w.s, 0, sizeof(float)};
  const int wrong = !replayed(&w, &feed, &take) || judged(given, sums);
  gc_free(given);
  discard(&w);
  return wrong;
}

/* The program of all: its transfers are listed once, and aimed anew by whoever has the turn. */
static struct {
  pthread_mutex_t turn;
  world w;
  gc_transfer feed, take;
} common = {.turn = PTHREAD_MUTEX_INITIALIZER};

static int replay_common(float start, int bound) {
  float *given = rows(start), *sums = gc_alloc(STEPS * sizeof(float));
  pthread_mutex_lock(&common.turn);
  common.feed.to = bound ? NULL : (char *)common.w.x;
  common.feed.source = (const char *)given;
  common.take.to = (char *)sums;
  int wrong = !replayed(&common.w, &common.feed, &common.take);
  pthread_mutex_unlock(&common.turn);
  wrong = wrong || judged(given, sums);
  gc_free(sums);
  gc_free(given);
  return wrong;
}

static void make_common(void) {
  common.w = made();
  common.feed = (gc_transfer){.source_step = ROW, .nbytes = ROW};
  common.take = (gc_transfer){
      .to_step = sizeof(float), .source = (const char *)common.w.s, .nbytes = sizeof(float)};
}

static void *caller(void *argument) {
  const int me = *(int *)argument;
  intptr_t wrong = 0;
  for (int round = 0; round < ROUNDS; round++) {
    if (me == 0 && round % 10 == 9)
      gc_set_threads(1 + round / 10);
    wrong += compute((float)me);
    wrong += replay((float)me, round % 2);
    wrong += replay_common((float)me, round % 2);
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
  make_common();
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
  discard(&common.w);
  printf("pool: %d callers, %d rounds, a forked child: %d wrong\n", CALLERS, ROUNDS, (int)wrong);
  return wrong != 0;
}
