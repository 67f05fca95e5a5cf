/* guard.c -- files that are mapped and become shorter while they are read. The system answers a
 * read behind the new end with SIGBUS, which would end the process. Here zero pages take the place
 * of what is gone, and the range remembers it: whoever guards it asks before he believes a number.
 *
 * The handler does nothing but look through a fixed table of atomics and call mmap. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#define _DARWIN_C_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../call.h"
#include "threads.h"

enum { RANGES = 1 << 14 };

/* A range counts while it is LIVE. Its owner alone writes it, between TAKEN and LIVE. */
enum { FREE, TAKEN, LIVE };
typedef struct {
  atomic_int state;
  atomic_uintptr_t first;
  atomic_uintptr_t end;
  atomic_int lost;
} range;

static struct {
  atomic_int handler; /* LIVE: it is installed */
  uintptr_t page;     /* bytes of one */
  struct sigaction before;
  range ranges[RANGES];
} guards;

/* Whether the system itself noticed the fault, so that its address means something. */
static int is_fault(const siginfo_t *info) {
#ifdef __linux__
  return info->si_code > 0;
#else
  return info->si_code != SI_USER && info->si_code != SI_QUEUE;
#endif
}

static range *range_of(uintptr_t at) {
  for (int i = 0; i < RANGES; i++) {
    range *one = &guards.ranges[i];
    if (atomic_load(&one->state) == LIVE && at >= atomic_load(&one->first) &&
        at < atomic_load(&one->end))
      return one;
  }
  return NULL;
}

/* Zero pages from the one that was missed to the end of the range. It is noted before anybody can
 * read a zero. */
static int fill(range *lost, uintptr_t at) {
  const uintptr_t first = at & -guards.page;
  const uintptr_t end = (atomic_load(&lost->end) + guards.page - 1) & -guards.page;
  const int flags = MAP_FIXED | MAP_ANONYMOUS | MAP_PRIVATE | MAP_NORESERVE;
  atomic_store(&lost->lost, 1);
  return mmap((void *)first, end - first, PROT_READ, flags, -1, 0) != MAP_FAILED;
}

/* What would have been done without this handler. */
static void pass_on(int number, siginfo_t *info, void *context) {
  const struct sigaction *before = &guards.before;
  if (before->sa_flags & SA_SIGINFO)
    before->sa_sigaction(number, info, context);
  else if (before->sa_handler == SIG_DFL) {
    sigaction(number, before, NULL); /* the read is tried again, and meets the default */
    if (!is_fault(info))
      raise(number); /* and so does a signal that was sent, as soon as this one ends */
  } else if (before->sa_handler != SIG_IGN)
    before->sa_handler(number);
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
  const int error = errno;
  const uintptr_t at = (uintptr_t)info->si_addr;
  range *lost = is_fault(info) ? range_of(at) : NULL;
  if (!lost || !fill(lost, at))
    pass_on(number, info, context);
  errno = error;
}

static int handle(void) {
  struct sigaction ours;
  memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&ours.sa_mask);
  const long page = sysconf(_SC_PAGESIZE);
  guards.page = (uintptr_t)page;
  return page > 0 && sigaction(SIGBUS, NULL, &guards.before) == 0 &&
         sigaction(SIGBUS, &ours, NULL) == 0;
}

/* The first one who asks installs the handler; whoever comes meanwhile waits. */
static int installed(void) {
  for (int turns = 0;; turns++) {
    int expected = FREE;
    if (atomic_compare_exchange_strong(&guards.handler, &expected, TAKEN)) {
      const int done = handle();
      atomic_store(&guards.handler, done ? LIVE : FREE);
      return done;
    }
    if (expected == LIVE)
      return 1;
    gc_relax(turns);
  }
}

int gc_guard(const void *data, int64_t nbytes) {
  if (!data || nbytes <= 0 || !installed())
    return -1;
  for (int i = 0; i < RANGES; i++) {
    range *one = &guards.ranges[i];
    int expected = FREE;
    if (!atomic_compare_exchange_strong(&one->state, &expected, TAKEN))
      continue;
    atomic_store(&one->lost, 0);
    atomic_store(&one->first, (uintptr_t)data);
    atomic_store(&one->end, (uintptr_t)data + (uintptr_t)nbytes);
    atomic_store(&one->state, LIVE);
    return i;
  }
  return -1;
}

void gc_unguard(int guard) {
  if (guard >= 0 && guard < RANGES)
    atomic_store(&guards.ranges[guard].state, FREE);
}

int gc_guard_lost(int guard) {
  return guard >= 0 && guard < RANGES ? atomic_load(&guards.ranges[guard].lost) : 0;
}

void gc_will_need(const char *data, const int64_t *first, int64_t count, int64_t row,
                  int64_t nbytes) {
  const long page = sysconf(_SC_PAGESIZE);
  if (page <= 0)
    return;
  for (int64_t i = 0; i < count; i++) {
    const uintptr_t at = (uintptr_t)data + (uintptr_t)(first[i] * row);
    const uintptr_t begin = at & -(uintptr_t)page;
    (void)madvise((void *)begin, at + (uintptr_t)nbytes - begin, MADV_WILLNEED);
  }
}
