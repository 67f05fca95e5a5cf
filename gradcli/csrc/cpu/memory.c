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

/* A header; the data lie right behind it. */
typedef struct block {
  int64_t nbytes; /* as asked for */
  int64_t room;   /* that there is */
  struct block *next;
  void *start;      /* of what the system gave */
  gc_tensor tensor; /* the contiguous tensor that the data are, of blocks made as one */
} block;
_Static_assert(sizeof(block) % ALIGN == 0, "data would not be aligned");

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
      free(gone->start);
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
  char *start = malloc((size_t)room + sizeof(block) + ALIGN); /* quicker than posix_memalign */
  if (!start)
    return NULL;
  block *header = (block *)(void *)(start + (ALIGN - (uintptr_t)start % ALIGN));
  header->start = start;
  header->room = room;
  wish_large_pages((char *)(header + 1), room);
  return header;
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

static block *block_of(int64_t nbytes) {
  if (nbytes < 0 || nbytes > INT64_MAX - (int64_t)sizeof(block) - ALIGN)
    return NULL;
  int64_t room;
  const int class = class_of(nbytes, &room);
  block *header = class < 0 ? fresh(room) : room_of(class, room);
  if (!header)
    return NULL;
  header->nbytes = nbytes;
  atomic_fetch_add(&allocated, nbytes);
  if (atomic_load(&fill_on_alloc))
    memset(header + 1, 0xFF, (size_t)nbytes); /* NaN as float and double: unwritten output shows */
  return header;
}

void *gc_alloc(int64_t nbytes) {
  block *header = block_of(nbytes);
  return header ? header + 1 : NULL;
}

gc_tensor *gc_tensor_new(int32_t dtype, int32_t ndim, const int64_t *shape) {
  if (dtype < 0 || dtype >= GC_DTYPES || ndim < 0 || ndim > GC_MAX_DIMS)
    return NULL;
  gc_tensor tensor = {.dtype = dtype, .ndim = ndim};
  int64_t numel = 1, step = 1;
  for (int32_t d = ndim - 1; d >= 0; d--) {
    tensor.shape[d] = shape[d];
    tensor.stride[d] = step;
    if (shape[d] < 0 || __builtin_mul_overflow(numel, shape[d], &numel) ||
        __builtin_mul_overflow(step, gc_max(shape[d], 1), &step))
      return NULL;
  }
  if (__builtin_mul_overflow(numel, gc_dtype_size(dtype), &tensor.nbytes))
    return NULL;
  block *header = block_of(tensor.nbytes);
  if (!header)
    return NULL;
  tensor.data = header + 1;
  header->tensor = tensor;
  return &header->tensor;
}

void gc_free(void *data) {
  if (!data)
    return;
  block *old = (block *)data - 1;
  atomic_fetch_sub(&allocated, old->nbytes);
  int64_t room;
  if (class_of(old->nbytes, &room) < 0) {
    free(old->start);
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

void gc_tensor_free(gc_tensor *tensor) {
  gc_free(tensor->data);
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
