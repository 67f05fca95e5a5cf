/* pool_tsan.c -- many callers, a changing number of threads and a forked child, all at the same
 * thread pool; built with -fsanitize=thread, which reports every race. Exits 0 when all is right.
 */
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

static void *caller(void *argument) {
  const int me = *(int *)argument;
  intptr_t wrong = 0;
  for (int round = 0; round < ROUNDS; round++) {
    if (me == 0 && round % 10 == 9)
      gc_set_threads(1 + round / 10);
    wrong += compute((float)me);
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
