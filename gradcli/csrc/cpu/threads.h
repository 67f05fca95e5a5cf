/* threads.h -- a pool of threads that share the tasks of one kernel call. */
#ifndef GC_THREADS_H
#define GC_THREADS_H

#include <stdint.h>

/* Calls work(context, task, worker) once for every task; worker < gc_threads(). */
void gc_parallel(int64_t tasks, void (*work)(void *context, int64_t task, int worker),
                 void *context);

/* One caller at a time; also keeps a fork from copying a half-done call. */
void gc_lock(void);
void gc_unlock(void);

#endif
