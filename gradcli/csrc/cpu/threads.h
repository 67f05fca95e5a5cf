/* threads.h -- a pool of threads that come to help with a job while it lasts. */
#ifndef GC_THREADS_H
#define GC_THREADS_H

/* Calls help(context, worker) on this thread (worker 0) and on every thread of the pool that comes
 * before the first returns; worker < gc_threads(). Returns when all have left. */
void gc_team(void (*help)(void *context, int worker), void *context);

/* One caller at a time; also keeps a fork from copying a half-done call. */
void gc_lock(void);
void gc_unlock(void);

/* What memory.c keeps for tensors to come; taken behind gc_lock where both are. */
void gc_lock_rooms(void);
void gc_unlock_rooms(void);

/* A moment for another thread; after many in vain, for another process. */
void gc_relax(int turns);

#endif
