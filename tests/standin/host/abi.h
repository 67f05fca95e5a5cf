/* abi.h -- what a host build of GPU kernels offers to those who run them: Python through cffi,
 * which reads this very text, and stand-ins for a vendor's library. So it stays plain: declarations
 * only, no macros.
 *
 * A module (the kernels of one text) has gc_host_kernels; everything else is the runtime's, one
 * library for all modules. One launch runs at a time. */

/* A parameter: 'r' a pointer to what is only read, 'w' a pointer, 'u' a uint, 'i' an int, 'f' a
 * float, 's' a struct. */
typedef struct {
  char kind;
  unsigned int size; /* bytes: of the value, or of an element behind the pointer */
} gc_host_parameter;

typedef struct gc_host_kernel {
  const struct gc_host_kernel *next;
  const char *name;
  unsigned int most_threads; /* of a block, as the kernel promised */
  unsigned int nparameters;
  const gc_host_parameter *parameters;
  void (*run)(void *const *arguments); /* one thread; the runtime calls it */
} gc_host_kernel;

const gc_host_kernel *gc_host_kernels(void); /* the first of a module's list */

/* Memory that kernels may touch: its bytes are 0xff, its ends are watched. NULL: there is none. */
void *gc_host_allocate(size_t nbytes);
void gc_host_free(void *data);

enum { GC_HOST_FORWARD, GC_HOST_REVERSE, GC_HOST_SCRAMBLED };

/* The order in which blocks and threads run, and whether races and reads of unset shared memory are
 * looked for. */
void gc_host_configure(int order, int races);

/* Runs a kernel to its end; arguments[i] points at the value of parameter i, for a pointer at the
 * pointer. 0, or 1 and a sentence in gc_host_error. */
int gc_host_launch(const gc_host_kernel *kernel, void *const *arguments, unsigned int grid_x,
                   unsigned int grid_y, unsigned int grid_z, unsigned int threads);
const char *gc_host_error(void);
