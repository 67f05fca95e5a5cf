/* waves.h -- how the threads walk a list of calls together. The list is cut into waves; the tasks
 * of a wave are shared by whoever is there, and whoever ends a wave's last task begins the next
 * one. No thread waits for a thread that came late or was put aside, only for tasks that are under
 * way. */
#ifndef GC_WAVES_H
#define GC_WAVES_H

#include "kernel.h"

/* One phase of one call. */
typedef struct {
  const gc_call *call;
  int64_t number; /* of the call, in its list */
  gc_run_fn run;
  void *shared;
  int64_t tasks, before; /* its own, and those of the wave's earlier stages */
  int32_t phase;
  bool timed;
} gc_stage;

typedef struct {
  int64_t first, stages; /* a stretch of the list of stages */
  int64_t tasks;         /* of all its stages */
  bool alone;            /* too little work to share */
  bool timed;            /* one of its stages is */
} gc_wave;

/* What one worker spent in this wave on stages that are timed. */
typedef struct {
  _Alignas(64) int64_t ns;
} gc_clock;

/* Where a call looks for a tensor that belongs to a feed; `home` when the feed is copied. */
typedef struct {
  int64_t feed;
  void **data;
  void *home;
} gc_socket;

typedef struct {
  const gc_stage *stages;
  const gc_wave *waves;
  int64_t nwaves;
  char *own; /* scratch of worker 0; that of the others follows */
  int64_t worker_bytes;
  const gc_transfer *feeds, *takes;
  int64_t nfeeds, ntakes;
  const gc_socket *sockets;
  int64_t nsockets;
  int64_t first, steps; /* the number of the first step, and how many there are */
  gc_error *error;
  gc_clock *clocks; /* one a worker, where a stage is timed; all 0 between two waves */
  int64_t nclocks;
  int64_t *timed; /* grows by the longest of each wave */
} gc_course;

/* A wave with less work than this costs more to hand out than to do: about two microseconds. */
enum { GC_SHARED_WORK = 1 << 14 };

/* Walks the course `steps` times; returns how many of them were walked to their end. */
int64_t gc_walk_course(const gc_course *course);

#endif
