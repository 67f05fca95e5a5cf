/* queue.c -- streams that run nothing before somebody waits or asks, graphs of what was captured,
 * events. */

#include "standin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_ARGS 64

long standin_launches, standin_graph_launches, standin_kernels_run, standin_events;

enum kind { LAUNCH, COPY_IN, COPY_OUT, COPY, FREE, EVENT, GRAPH, LIBRARY };
enum outcome { FAILED, DONE, WAITS };

typedef struct graph graph;
typedef struct op {
  struct op *next;
  enum kind kind;
  int device; /* whose memory it reaches */
  const gc_host_kernel *kernel;
  uint grid[3], threads;
  char *args; /* the values, one after another */
  address to, from;
  char *host; /* a COPY_OUT's end; a COPY_IN's source, owned unless pinned */
  bool owned;
  size_t nbytes;
  struct event *event;
  graph *replayed;
  struct op *at; /* of a GRAPH that has begun: what runs next */
  bool begun;
  bool (*come)(void *); /* of a LIBRARY: whether it has come to its end; moves it on */
  void *data;
} op;

struct stream {
  int device;
  op *first, *last;
  bool capturing, spoilt;
  graph *captured;
};

struct graph {
  op *first, *last;
  int device;
  int holders;
};

typedef struct event {
  stream *on;
  bool passed;
} event;

static bool failed(const char *why) {
  snprintf(complaint, sizeof complaint, "%s", why);
  return false;
}

static bool is_pointer(const gc_host_kernel *k, uint i) {
  return k->parameters[i].kind == 'r' || k->parameters[i].kind == 'w';
}

static size_t bytes_of(const gc_host_kernel *k, uint i) {
  return is_pointer(k, i) ? sizeof(address) : k->parameters[i].size;
}

static bool run_kernel(const op *o) {
  const gc_host_kernel *k = o->kernel;
  void *pointers[MOST_ARGS], *places[MOST_ARGS];
  char *value = o->args;
  for (uint i = 0; i < k->nparameters; value += bytes_of(k, i++)) {
    places[i] = value;
    if (is_pointer(k, i)) {
      address at;
      memcpy(&at, value, sizeof at);
      const block *b = block_of(o->device, at);
      if (!b) {
        snprintf(complaint, sizeof complaint,
                 "%s: argument %u is no memory of device %d, or was freed", k->name, i, o->device);
        return false;
      }
      pointers[i] = b->bytes + (at - b->at);
      places[i] = &pointers[i];
    }
  }
  standin_kernels_run++;
  return !host.launch(k, places, o->grid[0], o->grid[1], o->grid[2], o->threads) ||
         failed(host.error());
}

static enum outcome run_on(op *graph);

static bool run_copy(const op *o) {
  char *to = o->kind == COPY_OUT ? o->host : bytes_at(o->device, o->to, o->nbytes);
  const char *from = o->kind == COPY_IN ? o->host : bytes_at(o->device, o->from, o->nbytes);
  if (!to || !from)
    return failed("a copy reaches memory that is not, or no longer, the device's");
  memmove(to, from, o->nbytes);
  return true;
}

static enum outcome run(op *o) {
  switch (o->kind) {
  case LAUNCH:
    return run_kernel(o);
  case COPY_IN:
  case COPY_OUT:
  case COPY:
    return run_copy(o);
  case FREE:
    release(block_of(o->device, o->to));
    return DONE;
  case EVENT:
    o->event->passed = true;
    return DONE;
  case GRAPH:
    return run_on(o);
  case LIBRARY:
    return o->come(o->data) ? DONE : WAITS;
  }
  return FAILED;
}

static enum outcome run_on(op *graph) {
  if (!graph->begun)
    graph->at = graph->replayed->first;
  graph->begun = true;
  for (; graph->at; graph->at = graph->at->next) {
    const enum outcome come = run(graph->at);
    if (come != DONE)
      return come;
  }
  return DONE;
}

static void let_go(graph *g);

static void discard(op *o) {
  if (o->owned)
    free(o->host);
  if (o->kind == GRAPH)
    let_go(o->replayed);
  free(o->args);
  free(o);
}

static void let_go(graph *g) {
  if (--g->holders)
    return;
  for (op *o = g->first, *next; o; o = next) {
    next = o->next;
    discard(o);
  }
  free(g);
}

/* Run what a stream holds, up to an event or all of it; who does not wait for others may see
 * NOT_READY. */
static enum status drain(stream *s, const event *until, bool waits) {
  while (s->first && !(until && until->passed)) {
    op *o = s->first;
    const enum outcome come = lost ? DONE : run(o);
    if (come == WAITS && !waits)
      return NOT_READY;
    if (come == WAITS) {
      usleep(200);
      continue;
    }
    if (come == FAILED)
      lost = ILLEGAL_ADDRESS;
    s->first = o->next;
    if (!s->first)
      s->last = NULL;
    discard(o);
  }
  return lost;
}

static enum status push(stream *s, op made) {
  if (!s) /* the default stream cannot be captured: nothing of ours uses it */
    return INVALID_HANDLE;
  if (s->device != current_device() || (made.kind == GRAPH && made.replayed->device != s->device))
    return INVALID_HANDLE;
  if (s->capturing && made.kind != LAUNCH && made.kind != COPY && made.kind != LIBRARY) {
    s->spoilt = true;
    return CAPTURE_UNSUPPORTED;
  }
  op *o = malloc(sizeof *o);
  *o = made;
  o->device = s->device;
  op **first = s->capturing ? &s->captured->first : &s->first;
  op **last = s->capturing ? &s->captured->last : &s->last;
  if (*last)
    (*last)->next = o;
  else
    *first = o;
  *last = o;
  return OK;
}

bool is_capturing(const stream *s) {
  return s && s->capturing;
}

enum status push_free(stream *s, address at) {
  return push(s, (op){.kind = FREE, .to = at});
}

API enum status cuMemcpyHtoDAsync_v2(address to, const void *from, size_t nbytes, stream *s) {
  NEEDS_CONTEXT();
  if (!bytes_at(current_device(), to, nbytes))
    return INVALID_VALUE;
  op o = {.kind = COPY_IN, .to = to, .nbytes = nbytes, .owned = !is_pinned(from, nbytes)};
  if (o.owned) {
    o.host = malloc(nbytes);
    memcpy(o.host, from, nbytes);
  } else {
    memcpy(&o.host, &from, sizeof from); /* never written through */
  }
  return push(s, o);
}

API enum status cuMemcpyDtoHAsync_v2(void *to, address from, size_t nbytes, stream *s) {
  NEEDS_CONTEXT();
  if (!bytes_at(current_device(), from, nbytes))
    return INVALID_VALUE;
  return push(s, (op){.kind = COPY_OUT, .from = from, .host = to, .nbytes = nbytes});
}

API enum status cuMemcpyDtoDAsync_v2(address to, address from, size_t nbytes, stream *s) {
  NEEDS_CONTEXT();
  if (!bytes_at(current_device(), to, nbytes) || !bytes_at(current_device(), from, nbytes))
    return INVALID_VALUE;
  return push(s, (op){.kind = COPY, .to = to, .from = from, .nbytes = nbytes});
}

API enum status cuLaunchKernel(const gc_host_kernel *k, uint grid_x, uint grid_y, uint grid_z,
                               uint threads, uint threads_y, uint threads_z, uint shared, stream *s,
                               void **args, void **extra) {
  NEEDS_CONTEXT();
  if (!grid_x || !grid_y || !grid_z || grid_x > INT32_MAX || grid_y > 65535 || grid_z > 65535)
    return INVALID_VALUE;
  if (!threads || threads > k->most_threads || threads_y != 1 || threads_z != 1 || shared ||
      extra || k->nparameters > MOST_ARGS)
    return INVALID_VALUE;
  size_t nbytes = 0;
  for (uint i = 0; i < k->nparameters; i++)
    nbytes += bytes_of(k, i);
  op o = {.kind = LAUNCH, .kernel = k, .grid = {grid_x, grid_y, grid_z}, .threads = threads};
  o.args = malloc(nbytes ? nbytes : 1);
  char *at = o.args;
  for (uint i = 0; i < k->nparameters; at += bytes_of(k, i++))
    memcpy(at, args[i], bytes_of(k, i));
  standin_launches++;
  return push(s, o);
}

/* For stand-ins of libraries, which have kernels of their own on a GPU. */
API enum status standin_queue(stream *s, bool (*come)(void *), void *data) {
  NEEDS_CONTEXT();
  return push(s, (op){.kind = LIBRARY, .come = come, .data = data});
}

API enum status cuStreamCreate(stream **made, uint flags) {
  NEEDS_CONTEXT();
  *made = calloc(1, sizeof **made);
  (*made)->device = current_device();
  return flags == 1 ? OK : NOT_SUPPORTED; /* NON_BLOCKING: not tied to the default stream */
}

static enum status drain_all(stream *s, bool waits) {
  if (s->capturing) {
    s->spoilt = true;
    return CAPTURE_UNSUPPORTED;
  }
  return drain(s, NULL, waits);
}

API enum status cuStreamSynchronize(stream *s) {
  NEEDS_CONTEXT();
  return drain_all(s, true);
}

API enum status cuStreamQuery(stream *s) {
  NEEDS_CONTEXT();
  return drain_all(s, false);
}

API enum status cuStreamBeginCapture_v2(stream *s, int mode) {
  NEEDS_CONTEXT();
  (void)mode;
  if (!s || s->capturing)
    return CAPTURE_UNSUPPORTED;
  s->capturing = true;
  s->spoilt = false;
  s->captured = calloc(1, sizeof *s->captured);
  s->captured->holders = 1;
  s->captured->device = s->device;
  return OK;
}

API enum status cuStreamEndCapture(stream *s, graph **made) {
  if (!s->capturing)
    return INVALID_VALUE;
  s->capturing = false;
  *made = s->spoilt ? NULL : s->captured;
  if (s->spoilt)
    let_go(s->captured);
  return s->spoilt ? CAPTURE_INVALIDATED : OK;
}

API enum status cuGraphInstantiateWithFlags(graph **made, graph *g, uint64_t flags) {
  NEEDS_CONTEXT();
  g->holders++;
  *made = g;
  return flags ? NOT_SUPPORTED : OK;
}

API enum status cuGraphLaunch(graph *g, stream *s) {
  NEEDS_CONTEXT();
  enum status queued = push(s, (op){.kind = GRAPH, .replayed = g});
  if (!queued) {
    g->holders++;
    standin_graph_launches++;
  }
  return queued;
}

API enum status cuGraphDestroy(graph *g) {
  let_go(g);
  return OK;
}

API enum status cuGraphExecDestroy(graph *g) {
  let_go(g);
  return OK;
}

API enum status cuEventCreate(event **made, uint flags) {
  NEEDS_CONTEXT();
  *made = calloc(1, sizeof **made);
  standin_events++;
  (*made)->passed = true;                 /* one that was never recorded is not waited for */
  return flags == 2 ? OK : NOT_SUPPORTED; /* DISABLE_TIMING: there is no clock here */
}

API enum status cuEventRecord(event *e, stream *s) {
  NEEDS_CONTEXT();
  if (!e->passed)
    return NOT_SUPPORTED; /* a driver would forget the first place; ours never means that */
  enum status queued = push(s, (op){.kind = EVENT, .event = e});
  if (!queued) {
    e->on = s;
    e->passed = false;
  }
  return queued;
}

API enum status cuEventSynchronize(event *e) {
  NEEDS_CONTEXT();
  return e->passed ? OK : drain(e->on, e, true);
}

API enum status cuEventQuery(event *e) {
  NEEDS_CONTEXT();
  return e->passed ? OK : drain(e->on, e, false);
}
