/* memory.c -- memory of the stand-in's device, and pinned memory of the host. */

#include "standin.h"
#include <stdlib.h>
#include <sys/mman.h>

#define DEVICE_SPAN ((size_t)1 << 40)
#define ALIGNMENT 256u
#define MOST_PINNED 64

long standin_live_bytes;
static block *blocks; /* sorted, as addresses only grow */
static size_t nblocks, room_for_blocks;
static address next_address, first_address;
static size_t used[MOST_DEVICES], reserved[MOST_DEVICES];
static size_t in_all; /* that is used */
static struct {
  char *at;
  size_t nbytes;
} pinned[MOST_PINNED];
static int npinned;

block *block_of(int device, address at) {
  size_t low = 0, high = nblocks;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (blocks[middle].at <= at)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low)
    return NULL;
  block *b = &blocks[low - 1];
  return b->bytes && b->device == device && at <= b->at + b->nbytes ? b : NULL;
}

char *bytes_at(int device, address at, size_t nbytes) {
  block *b = block_of(device, at);
  return b && nbytes <= b->at + b->nbytes - at ? b->bytes + (at - b->at) : NULL;
}

/* What a library's function on the host may look at (../nccl). */
API char *standin_bytes(address at, size_t nbytes) {
  return bytes_at(current_device(), at, nbytes);
}

/* So many bytes of a device are used now. */
static void use(int device, size_t nbytes) {
  in_all += nbytes - used[device];
  used[device] = nbytes;
  standin_live_bytes = (long)in_all;
}

static enum status take(address *at, size_t nbytes) {
  const int device = current_device();
  if (!nbytes)
    return INVALID_VALUE;
  if (nbytes > memory_of_device() - used[device])
    return OUT_OF_MEMORY;
  if (!first_address) {
    void *span =
        mmap(NULL, DEVICE_SPAN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (span == MAP_FAILED)
      return OUT_OF_MEMORY;
    first_address = next_address = (address)(uintptr_t)span;
  }
  if (nblocks == room_for_blocks) {
    room_for_blocks = room_for_blocks ? 2 * room_for_blocks : 1024;
    blocks = realloc(blocks, room_for_blocks * sizeof *blocks);
  }
  block *b = &blocks[nblocks++];
  *b = (block){.at = next_address, .nbytes = nbytes, .device = device};
  b->bytes = host.allocate(nbytes);
  if (!b->bytes) {
    nblocks--;
    return OUT_OF_MEMORY;
  }
  next_address += (nbytes / ALIGNMENT + 2) * ALIGNMENT; /* a gap follows each block */
  use(device, used[device] + nbytes);
  reserved[device] = used[device] > reserved[device] ? used[device] : reserved[device];
  *at = b->at;
  return OK;
}

void release(block *b) {
  host.release(b->bytes);
  b->bytes = NULL;
}

bool is_pinned(const char *at, size_t nbytes) {
  for (int i = 0; i < npinned; i++)
    if (at >= pinned[i].at && at + nbytes <= pinned[i].at + pinned[i].nbytes)
      return true;
  return false;
}

API enum status cuMemAlloc_v2(address *at, size_t nbytes) {
  NEEDS_CONTEXT();
  return take(at, nbytes);
}

API enum status cuMemFree_v2(address at) {
  NEEDS_CONTEXT();
  const int device = current_device();
  block *b = block_of(device, at);
  if (!b || b->at != at || b->leaving)
    return INVALID_VALUE;
  use(device, used[device] - b->nbytes);
  reserved[device] = used[device];
  release(b);
  return OK;
}

API enum status cuMemAllocAsync(address *at, size_t nbytes, stream *s) {
  NEEDS_CONTEXT();
  if (is_capturing(s))
    return CAPTURE_UNSUPPORTED;
  return take(at, nbytes);
}

API enum status cuMemFreeAsync(address at, stream *s) {
  NEEDS_CONTEXT();
  block *b = block_of(current_device(), at);
  if (!b || b->at != at || b->leaving)
    return INVALID_VALUE;
  enum status queued = push_free(s, at);
  if (!queued) {
    b->leaving = true;
    use(b->device, used[b->device] - b->nbytes);
  }
  return queued;
}

API enum status cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  NEEDS_CONTEXT();
  *total = memory_of_device();
  *free_bytes = *total - reserved[current_device()];
  return OK;
}

API enum status cuDeviceGetDefaultMemPool(void **pool, int device) {
  *pool = &reserved[device];
  return OK;
}

API enum status cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
  (void)pool, (void)value;
  return attribute == 4 ? OK : NOT_SUPPORTED; /* RELEASE_THRESHOLD */
}

API enum status cuMemPoolGetAttribute(void *pool, int attribute, uint64_t *value) {
  const size_t *mine = pool;
  *value = attribute == 5 ? *mine : used[mine - reserved];
  return attribute == 5 || attribute == 7 ? OK : NOT_SUPPORTED;
}

API enum status cuMemPoolTrimTo(void *pool, size_t keep) {
  size_t *mine = pool, least = used[mine - reserved];
  *mine = least > keep ? least : keep < *mine ? keep : *mine;
  return OK;
}

API enum status cuMemHostAlloc(void **at, size_t nbytes, uint flags) {
  (void)flags;
  NEEDS_CONTEXT();
  if (npinned == MOST_PINNED)
    return OUT_OF_MEMORY;
  *at = malloc(nbytes);
  pinned[npinned].at = *at;
  pinned[npinned++].nbytes = nbytes;
  return OK;
}

API enum status cuMemFreeHost(void *at) {
  NEEDS_CONTEXT();
  for (int i = 0; i < npinned; i++)
    if (pinned[i].at == at) {
      free(at);
      pinned[i] = pinned[--npinned];
      return OK;
    }
  return INVALID_VALUE;
}
