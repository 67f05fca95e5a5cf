/* libcuda.c -- a stand-in for NVIDIA's driver, libcuda.so.1, for tests on machines without a GPU.
 *
 * It runs the host build of the kernels (../host) under the real cuda-bindings, and is stricter
 * than a driver:
 * - Work is queued and runs when something waits for it or asks whether it is done, never before:
 *   a missing wait is seen.
 * - Addresses on the device lie in a range that no program can read or write, and none is given
 *   twice: the host cannot touch device memory, and what was freed stays unusable.
 * - Fresh memory is all 0xff. Pinned memory is read when the copy runs, as a GPU would.
 * - After a kernel failed every call fails, as with a lost device. */

#include "standin.h"
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct module {
  const gc_host_kernel *kernels;
} module;

runner host;
enum status lost;
char complaint[600];
static bool started;
static char contexts[MOST_DEVICES]; /* their addresses */
static _Thread_local char *context;

size_t setting(const char *name, size_t otherwise) {
  const char *text = getenv(name);
  return text && *text ? (size_t)strtoull(text, NULL, 10) : otherwise;
}

size_t memory_of_device(void) {
  return setting("STANDIN_CUDA_MEMORY", (size_t)1 << 30);
}

enum status usable(void) {
  if (!started)
    return NOT_INITIALIZED;
  if (lost)
    return lost;
  return context ? OK : INVALID_CONTEXT;
}

int current_device(void) {
  return context ? (int)(context - contexts) : -1;
}

/* -- the device -- */

static int count_of_devices(void) {
  size_t count = setting("STANDIN_CUDA_DEVICES", 1);
  return count < MOST_DEVICES ? (int)count : MOST_DEVICES;
}

static bool find(void *library, const char *name, void *into) {
  void *symbol = dlsym(library, name);
  memcpy(into, &symbol, sizeof symbol);
  return symbol != NULL;
}

API enum status cuInit(uint flags) {
  (void)flags;
  if (!count_of_devices())
    return NO_DEVICE;
  const char *path = getenv("STANDIN_CUDA_RUNTIME");
  void *runtime = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
  started = runtime && find(runtime, "gc_host_allocate", &host.allocate) &&
            find(runtime, "gc_host_free", &host.release) &&
            find(runtime, "gc_host_launch", &host.launch) &&
            find(runtime, "gc_host_error", &host.error);
  if (!started)
    snprintf(complaint, sizeof complaint, "STANDIN_CUDA_RUNTIME: %s", path ? dlerror() : "not set");
  return started ? OK : NOT_INITIALIZED;
}

API enum status cuDriverGetVersion(int *version) {
  *version = (int)setting("STANDIN_CUDA_VERSION", 13000);
  return OK;
}

API enum status cuDeviceGetCount(int *count) {
  *count = count_of_devices();
  return started ? OK : NOT_INITIALIZED;
}

API enum status cuDeviceGet(int *device, int number) {
  *device = number;
  return number >= 0 && number < count_of_devices() ? OK : INVALID_DEVICE;
}

API enum status cuDeviceGetName(char *name, int room, int device) {
  const char *last = getenv("STANDIN_CUDA_LAST_NAME");
  const bool other = last && device == count_of_devices() - 1;
  snprintf(name, (size_t)room, "%s", other ? last : "stand-in for a GPU");
  return OK;
}

API enum status cuDeviceGetUuid_v2(char *uuid, int device) {
  memset(uuid, device, 16);
  return OK;
}

API enum status cuDeviceTotalMem_v2(size_t *nbytes, int device) {
  (void)device;
  *nbytes = memory_of_device();
  return OK;
}

API enum status cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  const char *capability = getenv("STANDIN_CUDA_CAPABILITY");
  int major = 9, minor = 0;
  if (capability)
    sscanf(capability, "%d.%d", &major, &minor);
  switch (attribute) {
  case 10: /* WARP_SIZE */
    *value = 32;
    return OK;
  case 16: /* MULTIPROCESSOR_COUNT */
    *value = 2;
    return OK;
  case 75:
    *value = major;
    return OK;
  case 76:
    *value = minor;
    return OK;
  case 115: /* MEMORY_POOLS_SUPPORTED */
    *value = setting("STANDIN_CUDA_POOLS", 1) != 0;
    return OK;
  }
  return NOT_SUPPORTED;
}

API enum status cuDevicePrimaryCtxRetain(void **retained, int device) {
  *retained = &contexts[device];
  return started ? OK : NOT_INITIALIZED;
}

API enum status cuCtxGetCurrent(void **current) {
  *current = context;
  return OK;
}

API enum status cuCtxSetCurrent(void *retained) {
  context = retained;
  return OK;
}

/* -- modules -- */

static const char *key_in(const char *text, size_t length) {
  static const char mark[] = "gc_key_";
  const char *found = memmem(text, length, mark, sizeof mark - 1);
  return found ? found + sizeof mark - 1 : NULL;
}

/* The hash that an image carries: in a table of names of a cubin, in the text of PTX. */
static bool read_key(const void *image, char *key, size_t room) {
  const char *found = NULL, *bytes = image;
  Elf64_Ehdr head;
  if (memcmp(bytes, ELFMAG, SELFMAG)) {
    found = key_in(bytes, strlen(bytes));
  } else {
    memcpy(&head, bytes, sizeof head);
    for (int i = 0; i < head.e_shnum && !found; i++) {
      Elf64_Shdr section;
      memcpy(&section, bytes + head.e_shoff + (size_t)i * head.e_shentsize, sizeof section);
      if (section.sh_type == SHT_STRTAB)
        found = key_in(bytes + section.sh_offset, section.sh_size);
    }
  }
  size_t n = found ? strspn(found, "0123456789abcdef") : 0;
  if (!n || n >= room)
    return false;
  memcpy(key, found, n);
  key[n] = 0;
  return true;
}

API enum status cuModuleLoadData(module **made, const void *image) {
  NEEDS_CONTEXT();
  char key[80], path[4096];
  if (!read_key(image, key, sizeof key))
    return INVALID_IMAGE;
  const char *folder = getenv("STANDIN_CUDA_KERNELS");
  snprintf(path, sizeof path, "%s/%s.so", folder ? folder : ".", key);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const gc_host_kernel *(*kernels)(void);
  if (!library || !find(library, "gc_host_kernels", &kernels)) {
    snprintf(complaint, sizeof complaint, "no host build: %s", dlerror());
    return NO_BINARY;
  }
  *made = malloc(sizeof **made);
  (*made)->kernels = kernels();
  return OK;
}

API enum status cuModuleGetFunction(const gc_host_kernel **kernel, const module *m,
                                    const char *name) {
  for (const gc_host_kernel *k = m->kernels; k; k = k->next)
    if (!strcmp(k->name, name)) {
      *kernel = k;
      return OK;
    }
  return NOT_FOUND;
}

/* -- words, and how the symbols are found -- */

static const struct {
  enum status status;
  const char *name, *text;
} words[] = {
    {OK, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
};

API enum status cuGetErrorName(enum status status, const char **name) {
  *name = NULL;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (words[i].status == status)
      *name = words[i].name;
  return *name ? OK : INVALID_VALUE;
}

API enum status cuGetErrorString(enum status status, const char **text) {
  static char said[800];
  *text = NULL;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (words[i].status == status)
      *text = words[i].text;
  bool more = status == ILLEGAL_ADDRESS || status == NO_BINARY || status == NOT_INITIALIZED;
  if (*text && more && *complaint) {
    snprintf(said, sizeof said, "%s: %s", *text, complaint);
    *text = said;
  }
  return *text ? OK : INVALID_VALUE;
}

/* NVRTC asks for this one, and crashes where it is missing. */
API enum status cuGetExportTable(const void **table, const void *id) {
  (void)id;
  *table = NULL;
  return NOT_FOUND;
}

API enum status cuGetProcAddress_v2(const char *symbol, void **found, int version, uint64_t flags,
                                    int *why) {
  (void)version, (void)flags;
  static const char *const endings[] = {"_v2", ""};
  Dl_info self;
  *found = NULL;
  void *library =
      dladdr((const void *)words, &self) ? dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
  for (int i = 0; library && i < 2 && !*found; i++) {
    char name[200];
    snprintf(name, sizeof name, "%s%s", symbol, endings[i]);
    *found = dlsym(library, name);
  }
  if (why)
    *why = *found ? 0 : 1;
  return *found ? OK : NOT_FOUND;
}
