/* memory.c -- the memory that tensors live in: aligned blocks, each behind a header that remembers
 * its length. A large block that nobody uses any more is kept for the next one of its size, because
 * fresh pages from the system cost more than many a kernel that fills them. What is kept and what
 * is in use are together never more than was once in use at the same time. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* madvise */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "kernel.h"
#include "threads.h"

#if defined(__SANITIZE_ADDRESS__)
#define KEEPS 0 /* so that the sanitizer sees who uses a block that was given back */
#elif defined(__has_feature)
#define KEEPS !__has_feature(address_sanitizer)
#else
#define KEEPS 1
#endif

/* Rooms from 2^FIRST bytes on are kept; there are 2^STEPS sizes from one power of two to the next.
 */
enum { ALIGN = 64, PAGE = 1 << 21 /* a large page */, FIRST = 16, STEPS = 3, LAST = 62 };
enum { CLASSES = (LAST - FIRST + 1) << STEPS, NEAR = 2 /* classes above that serve as well */ };

typedef struct block {
  int64_t nbytes; /* as asked for */
  int64_t room;   /* that there is */
  struct block *next;
} block;

static struct {
  pthread_mutex_t door;
  int64_t used, kept, most; /* bytes of rooms in use, kept, and the most ever in use */
  block *free[CLASSES];
} rooms = {.door = PTHREAD_MUTEX_INITIALIZER};
static atomic_llong allocated;
static atomic_int fill_on_alloc;

void gc_lock_rooms(void) {
  pthread_mutex_lock(&rooms.door);
}
void gc_unlock_rooms(void) {
  pthread_mutex_unlock(&rooms.door);
}

/* The room for so many bytes, and which class that is; -1 for what is not kept. */
static int class_of(int64_t nbytes, int64_t *room) {
  *room = nbytes;
  if (!KEEPS || nbytes < (int64_t)1 << FIRST || nbytes >= (int64_t)1 << (LAST - 1))
    return -1;
  int power = 63 - __builtin_clzll((unsigned long long)nbytes);
  const int64_t step = (int64_t)1 << (power - STEPS);
  *room = (nbytes + step - 1) & -step;
  power = 63 - __builtin_clzll((unsigned long long)*room);
  return ((power - FIRST) << STEPS) + (int)((*room >> (power - STEPS)) & ((1 << STEPS) - 1));
}

/* Asks for large pages where a block holds whole ones: a step walks over more memory than the
 * processor can remember the small pages of. It is a wish, and refusing it harms nobody. */
static void wish_large_pages(char *data, int64_t nbytes) {
#ifdef MADV_HUGEPAGE
  const uintptr_t before = (uintptr_t)data % PAGE, skip = before ? PAGE - before : 0;
  const int64_t whole = (nbytes - (int64_t)skip) / PAGE;
  if (whole > 0)
    (void)madvise(data + skip, (size_t)whole * PAGE, MADV_HUGEPAGE);
#else
  (void)data;
  (void)nbytes;
#endif
}

/* Gives kept blocks back to the system, the largest first, until no more than `limit` are kept. */
static void give_back(int64_t limit) {
  for (int c = CLASSES - 1; c >= 0 && rooms.kept > limit; c--)
    while (rooms.free[c] && rooms.kept > limit) {
      block *gone = rooms.free[c];
      rooms.free[c] = gone->next;
      rooms.kept -= gone->room;
      free(gone);
    }
}

static block *take_kept(int class) {
  for (int c = class; c <= class + NEAR && c < CLASSES; c++)
    if (rooms.free[c]) {
      block *found = rooms.free[c];
      rooms.free[c] = found->next;
      rooms.kept -= found->room;
      return found;
    }
  return NULL;
}

static block *fresh(int64_t room) {
  void *memory;
  if (posix_memalign(&memory, ALIGN, (size_t)room + ALIGN) != 0)
    return NULL;
  block *made = memory;
  made->room = room;
  wish_large_pages((char *)memory + ALIGN, room);
  return made;
}

/* A room that is kept or fresh; while it is made, others wait. */
static block *room_of(int class, int64_t room) {
  gc_lock_rooms();
  block *found = take_kept(class);
  if (!found) {
    give_back(gc_max(rooms.most - rooms.used - room, 0));
    found = fresh(room);
    if (!found) {
      give_back(0);
      found = fresh(room);
    }
  }
  if (found) {
    rooms.used += found->room;
    rooms.most = gc_max(rooms.most, rooms.used);
  }
  gc_unlock_rooms();
  return found;
}

void *gc_alloc(int64_t nbytes) {
  if (nbytes < 0 || nbytes > INT64_MAX - 2 * ALIGN)
    return NULL;
  int64_t room;
  const int class = class_of(nbytes, &room);
  block *made = class < 0 ? fresh(room) : room_of(class, room);
  if (!made)
    return NULL;
  made->nbytes = nbytes;
  atomic_fetch_add(&allocated, nbytes);
  char *data = (char *)made + ALIGN;
  if (atomic_load(&fill_on_alloc))
    memset(data, 0xFF, (size_t)nbytes); /* NaN as float and double: unwritten output shows */
  return data;
}

void gc_free(void *data) {
  if (!data)
    return;
  block *old = (block *)(void *)((char *)data - ALIGN);
  atomic_fetch_sub(&allocated, old->nbytes);
  int64_t room;
  if (class_of(old->nbytes, &room) < 0) {
    free(old);
    return;
  }
  const int class = class_of(old->room, &room);
  gc_lock_rooms();
  rooms.used -= old->room;
  rooms.kept += old->room;
  old->next = rooms.free[class];
  rooms.free[class] = old;
  gc_unlock_rooms();
}

void gc_trim(void) {
  gc_lock_rooms();
  give_back(0);
  rooms.most = rooms.used;
  gc_unlock_rooms();
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

int64_t gc_allocated(void) {
  return atomic_load(&allocated);
}

int64_t gc_kept(void) {
  gc_lock_rooms();
  const int64_t kept = rooms.kept;
  gc_unlock_rooms();
  return kept;
}

void gc_fill_on_alloc(int on) {
  atomic_store(&fill_on_alloc, on);
}
