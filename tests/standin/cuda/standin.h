/* standin.h -- what the files of the stand-in for NVIDIA's driver share.
 *
 * STANDIN_CUDA_RUNTIME is the library that runs host builds of kernels (../host). A module is found
 * by the symbol gc_key_<hash> in its image: its host build is $STANDIN_CUDA_KERNELS/<hash>.so.
 * Further variables: STANDIN_CUDA_MEMORY (bytes of each device), STANDIN_CUDA_DEVICES (their
 * number), STANDIN_CUDA_CAPABILITY ("9.0"), STANDIN_CUDA_POOLS ("0": without memory pools),
 * STANDIN_CUDA_VERSION ("12040": a driver for CUDA 12.4), STANDIN_CUDA_LAST_NAME (of the device
 * with the highest number). */

#pragma once
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../host/abi.h"

#define MOST_DEVICES 8
#define API __attribute__((visibility("default")))

typedef uint64_t address; /* on the device */
typedef unsigned int uint;

enum status {
  OK = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NO_BINARY = 209,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  NOT_SUPPORTED = 801,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
};

/* What tests count. */
extern API long standin_launches, standin_graph_launches, standin_kernels_run, standin_live_bytes,
    standin_events;

/* What runs host builds: the functions of abi.h. */
typedef struct {
  void *(*allocate)(size_t);
  void (*release)(void *);
  int (*launch)(const gc_host_kernel *, void *const *, uint, uint, uint, uint);
  const char *(*error)(void);
} runner;

typedef struct block {
  address at;
  size_t nbytes;
  int device;
  char *bytes;  /* NULL: freed */
  bool leaving; /* a free is queued */
} block;

typedef struct stream stream;

extern runner host;
extern enum status lost;    /* what every call answers after a kernel failed */
extern char complaint[600]; /* why */

/* A number from the environment. */
size_t setting(const char *name, size_t otherwise);
size_t memory_of_device(void);

/* The device whose context this thread has. Each has its own memory and streams, and none reaches
 * another's. */
int current_device(void);

/* Started, not lost, and a context in this thread: otherwise why not. */
enum status usable(void);

#define NEEDS_CONTEXT()                                                                            \
  do {                                                                                             \
    enum status found_ = usable();                                                                 \
    if (found_)                                                                                    \
      return found_;                                                                               \
  } while (0)

/* memory.c: the living block of a device with this address in it or at its end, and bytes of one.
 */
block *block_of(int device, address at);
char *bytes_at(int device, address at, size_t nbytes);
void release(block *b);
bool is_pinned(const char *at, size_t nbytes);

/* queue.c */
bool is_capturing(const stream *s);
enum status push_free(stream *s, address at);
