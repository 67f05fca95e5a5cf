/* libnccl.c -- a stand-in for NCCL between processes on the stand-in for NVIDIA's driver (../cuda).
 *
 * What is queued runs when the stream comes there: messages go through boxes in shared memory, one
 * for each sender and receiver. Whoever waits in vain ends its process with a word why, for tests
 * shall not wait for ever. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define MOST_RANKS 4
#define BOX 4096    /* bytes: messages of more go in pieces */
#define PATIENCE 20 /* seconds */

enum { OK, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };
enum { FLOAT32 = 7, SUM = 0 };

typedef struct {
  atomic_bool full;
  size_t nbytes;
  char data[BOX];
} box;

typedef struct {
  atomic_int joined;
  box boxes[MOST_RANKS][MOST_RANKS]; /* sender, receiver */
} meeting;

typedef struct {
  char internal[128];
} id;

typedef struct {
  meeting *at;
  int size, rank;
} comm;

typedef struct {
  bool sends;
  int peer;
  const char *place; /* on the device, or the host's own */
  bool on_host;
  size_t nbytes, moved;
} message;

typedef struct {
  comm *of;
  bool begun;
  time_t since; /* when something moved */
  int count;
  message *listed;
  float *sums; /* of an all-reduce: a row for each rank, then to `out` */
  const char *out;
  size_t numbers;
} work;

API long standin_nccl_exchanges; /* that have run and moved something */
static char *(*bytes_on_device)(uint64_t, size_t);
static int (*queue_on)(void *, bool (*)(void *), void *);

static int depth;
static comm *grouped_by;
static void *grouped_on;
static int ngrouped;
static message grouped[256];

static void end(const char *why) {
  fprintf(stderr, "stand-in for NCCL: %s\n", why);
  _exit(70);
}

static char *bytes_of(const message *m) {
  char *at = m->on_host ? (char *)m->place : bytes_on_device((uintptr_t)m->place, m->nbytes);
  if (!at)
    end("a message reaches memory that is not the device's");
  return at;
}

static bool is_first(const work *w, int number) {
  for (int i = 0; i < number; i++) {
    const message *m = &w->listed[i], *mine = &w->listed[number];
    if (m->moved < m->nbytes && m->sends == mine->sends && m->peer == mine->peer)
      return false;
  }
  return true;
}

static bool move(const work *w, message *m) {
  box *b =
      m->sends ? &w->of->at->boxes[w->of->rank][m->peer] : &w->of->at->boxes[m->peer][w->of->rank];
  if (atomic_load(&b->full) == m->sends)
    return false;
  const size_t left = m->nbytes - m->moved, piece = left < BOX ? left : BOX;
  char *at = bytes_of(m) + m->moved;
  if (m->sends) {
    memcpy(b->data, at, piece);
    b->nbytes = piece;
  } else {
    if (b->nbytes != piece)
      end("a message is as long as its receiver does not expect");
    memcpy(at, b->data, piece);
  }
  atomic_store(&b->full, m->sends);
  m->moved += piece;
  return true;
}

/* Move what can be moved; whether all has. */
static bool has_come(void *data) {
  work *w = data;
  for (int i = 0; i < w->count && !w->begun; i++)
    w->listed[i].moved = 0;
  if (!w->begun)
    w->since = time(NULL);
  w->begun = true;
  for (bool open = true; open;) {
    bool moved = false;
    open = false;
    for (int i = 0; i < w->count; i++) {
      message *m = &w->listed[i];
      if (m->moved < m->nbytes && is_first(w, i))
        moved |= move(w, m);
      open |= m->moved < m->nbytes;
    }
    if (moved)
      w->since = time(NULL);
    else if (open && time(NULL) - w->since > PATIENCE)
      end("a rank does not come");
    else if (open)
      return false;
  }
  w->begun = false;
  standin_nccl_exchanges++;
  if (!w->sums)
    return true;
  float *out = (float *)bytes_on_device((uintptr_t)w->out, w->numbers * sizeof *out);
  for (size_t i = 0; i < w->numbers; i++) {
    out[i] = 0;
    for (int rank = 0; rank < w->of->size; rank++)
      out[i] += w->sums[rank * w->numbers + i];
  }
  return true;
}

/* Kept for ever: a graph may run it again at any time. */
static int queue(comm *c, const message *listed, int count, void *stream, work made) {
  work *w = malloc(sizeof *w);
  *w = made;
  w->of = c;
  w->count = count;
  w->listed = malloc((count + 1) * sizeof *listed);
  memcpy(w->listed, listed, count * sizeof *listed);
  return queue_on(stream, has_come, w) ? SYSTEM_ERROR : OK;
}

static size_t size_of(int type) {
  static const size_t sizes[] = {[2] = 4, [4] = 8, [7] = 4, [8] = 8, [9] = 2};
  return type >= 0 && type < 10 ? sizes[type] : 0;
}

API int ncclGetVersion(int *version) {
  *version = 22803;
  return OK;
}

API int ncclGetUniqueId(id *made) {
  static int count;
  memset(made, 0, sizeof *made);
  snprintf(made->internal, sizeof made->internal, "/standin-nccl-%d-%d", getpid(), count++);
  const int file = shm_open(made->internal, O_CREAT | O_EXCL | O_RDWR, 0600);
  return file < 0 || ftruncate(file, sizeof(meeting)) || close(file) ? SYSTEM_ERROR : OK;
}

API int ncclCommInitRank(comm **made, int size, id at, int rank) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!driver || size > MOST_RANKS)
    return INVALID_USAGE;
  *(void **)&bytes_on_device = dlsym(driver, "standin_bytes");
  *(void **)&queue_on = dlsym(driver, "standin_queue");
  const int file = shm_open(at.internal, O_RDWR, 0600);
  if (file < 0 || !bytes_on_device || !queue_on)
    return SYSTEM_ERROR;
  void *shared = mmap(NULL, sizeof(meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (shared == MAP_FAILED)
    return SYSTEM_ERROR;
  *made = malloc(sizeof **made);
  **made = (comm){.at = shared, .size = size, .rank = rank};
  if (atomic_fetch_add(&(*made)->at->joined, 1) == size - 1)
    shm_unlink(at.internal);
  for (int waited = 0; atomic_load(&(*made)->at->joined) < size; waited++) {
    if (waited == 100 * PATIENCE)
      return SYSTEM_ERROR;
    usleep(10000);
  }
  return OK;
}

API int ncclGroupStart(void) {
  depth++;
  return OK;
}

API int ncclGroupEnd(void) {
  if (--depth || !ngrouped)
    return depth < 0 ? INVALID_USAGE : OK;
  const int count = ngrouped;
  ngrouped = 0;
  return queue(grouped_by, grouped, count, grouped_on, (work){0});
}

static int add(message m, comm *c, void *stream) {
  if (m.peer < 0 || m.peer >= c->size || m.peer == c->rank || !m.nbytes || ngrouped == 256)
    return INVALID_ARGUMENT;
  if (!depth)
    return queue(c, &m, 1, stream, (work){0});
  grouped_by = c;
  grouped_on = stream;
  grouped[ngrouped++] = m;
  return OK;
}

API int ncclSend(const void *from, size_t count, int type, int peer, comm *c, void *stream) {
  const message m = {.sends = true, .peer = peer, .place = from, .nbytes = count * size_of(type)};
  return add(m, c, stream);
}

API int ncclRecv(void *to, size_t count, int type, int peer, comm *c, void *stream) {
  return add((message){.peer = peer, .place = to, .nbytes = count * size_of(type)}, c, stream);
}

/* In place alone: the own share lies where it belongs. */
API int ncclAllGather(const void *from, void *to, size_t count, int type, comm *c, void *stream) {
  const size_t nbytes = count * size_of(type);
  message listed[2 * MOST_RANKS];
  int n = 0;
  if (!nbytes || (const char *)from != (const char *)to + c->rank * nbytes)
    return INVALID_ARGUMENT;
  for (int rank = 0; rank < c->size; rank++)
    if (rank != c->rank) {
      const char *theirs = (const char *)to + rank * nbytes;
      listed[n++] = (message){.sends = true, .peer = rank, .place = from, .nbytes = nbytes};
      listed[n++] = (message){.peer = rank, .place = theirs, .nbytes = nbytes};
    }
  return queue(c, listed, n, stream, (work){0});
}

API int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, comm *c,
                      void *stream) {
  if (type != FLOAT32 || op != SUM || !count)
    return INVALID_ARGUMENT;
  const size_t nbytes = count * sizeof(float);
  work w = {.sums = calloc(c->size, nbytes), .out = to, .numbers = count};
  message listed[3 * MOST_RANKS];
  int n = 0;
  for (int rank = 0; rank < c->size; rank++) {
    const char *row = (const char *)(w.sums + rank * count);
    listed[n++] = (message){.sends = true, .peer = rank, .place = from, .nbytes = nbytes};
    listed[n++] = (message){.peer = rank, .place = row, .on_host = true, .nbytes = nbytes};
  }
  return queue(c, listed, n, stream, w);
}

API const char *ncclGetErrorString(int status) {
  static const char *const words[] = {[OK] = "no error",
                                      [SYSTEM_ERROR] = "unhandled system error",
                                      [INVALID_ARGUMENT] = "invalid argument",
                                      [INVALID_USAGE] = "invalid usage"};
  return status >= 0 && status <= INVALID_USAGE && words[status] ? words[status] : "unknown error";
}
