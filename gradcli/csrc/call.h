/* call.h -- a call is data: which kernel, its tensors, its sizes and options. gc_run() takes a list
 * of calls and is the only way to a kernel; gc_check() proves at that door that every reachable
 * byte lies inside its allocation. The build hands this very text to cffi, so it stays plain:
 * declarations only, no macros. */

enum { GC_MAX_DIMS = 8, GC_MAX_TENSORS = 8, GC_MAX_SIZES = 16, GC_MAX_OPTIONS = 8 };

enum { GC_F32, GC_F64, GC_I32, GC_I64, GC_U8, GC_BOOL, GC_BF16, GC_DTYPES };

typedef struct {
  void *data;     /* start of the allocation */
  int64_t nbytes; /* its length */
  int64_t offset; /* first element, counted in elements */
  int32_t dtype;
  int32_t ndim;
  int64_t shape[8];
  int64_t stride[8]; /* in elements; 0 repeats */
} gc_tensor;

typedef struct {
  int32_t kernel; /* index into the table of kernels */
  int32_t ntensors;
  int64_t sizes[16];
  double options[8];
  gc_tensor tensors[8]; /* inputs first, then outputs */
} gc_call;

enum {
  GC_OK,
  GC_BAD_CALL,   /* no such kernel, wrong number of tensors */
  GC_BAD_DTYPE,  /* this kernel is not built for this element type */
  GC_BAD_BOUNDS, /* a tensor reaches outside its allocation */
  GC_BAD_SHAPE,  /* tensors do not fit together */
  GC_BAD_INDEX,  /* a value used as an index is out of range */
  GC_OVERLAP,    /* an output shares memory with another tensor */
  GC_NO_MEMORY,
  GC_NOT_FINITE, /* a number that had to be finite is not: `where` says which */
  GC_ZERO,       /* a number that had to be another is 0: `where` says which */
  GC_BAD_PROGRAM /* parts that do not cover the calls in order */
};

typedef struct {
  int32_t status;
  int32_t tensor;       /* which tensor of the call */
  int64_t call;         /* which call of the list */
  int64_t where;        /* GC_BAD_INDEX: position of the bad value ... */
  int64_t value;        /* ... the value ... */
  int64_t limit;        /* ... and what it must stay below */
  const char *expected; /* GC_BAD_SHAPE: what the kernel wanted */
} gc_error;

int gc_run(const gc_call *calls, int64_t n, gc_error *error);
int gc_check(const gc_call *call, gc_error *error);

/* What a kernel makes of a call: its phases, and the tasks and scratch of each. */
typedef struct {
  int32_t phases;       /* all tasks of a phase end before the next phase begins */
  int64_t tasks[3];     /* 0: nothing to do */
  int64_t shared_bytes; /* scratch that all tasks see */
  int64_t worker_bytes; /* scratch of each thread for itself */
  int64_t work;         /* about how much there is to do, in elements moved */
} gc_plan;

int gc_plan_call(const gc_call *call, gc_plan *plan, gc_error *error); /* checks it too */

/* A program: calls that are checked once and then replayed. Its parts are the phases of the calls;
 * those of one wave run at the same time, and a wave ends before the next begins. */
typedef struct {
  int32_t call;
  int32_t phase;
  int32_t wave;
} gc_part;

typedef struct {
  void *data;
  int64_t nbytes;
} gc_block;

/* Step i copies nbytes from `source + i * source_step` to `to + i * to_step`. A feed without `to`
 * is read where it lies, through its ports. */
typedef struct {
  char *to;
  int64_t to_step;
  const char *source;
  int64_t source_step;
  int64_t nbytes;
} gc_transfer;

/* A tensor of a call whose memory is that of a feed. */
typedef struct {
  int32_t feed;
  int32_t call;
  int32_t tensor;
} gc_port;

typedef struct gc_program gc_program;

/* shared[i]: scratch of call i, as its plan wants it. NULL and an error when something is wrong. */
gc_program *gc_compile(const gc_call *calls, int64_t ncalls, const gc_part *parts, int64_t nparts,
                       const gc_port *ports, int64_t nports, const gc_block *shared,
                       gc_error *error);
/* Runs the steps with the numbers first .. first + steps - 1. Before each the feeds are copied,
 * after it the takes. `done` counts the whole steps. */
int gc_replay(gc_program *program, int64_t first, int64_t steps, const gc_transfer *feeds,
              int64_t nfeeds, const gc_transfer *takes, int64_t ntakes, int64_t *done,
              gc_error *error);
void gc_discard(gc_program *program);

int gc_kernel_count(void);
const char *gc_kernel_name(int kernel);
int gc_kernel_built(int kernel, int dtype);
int gc_kernel_inputs(int kernel);        /* the rest of its tensors are outputs */
const char *gc_kernel_saved(int kernel); /* "x", "y" or "": what a unary slope is written in */
const char *gc_kernel_formula(int kernel);
const char *gc_kernel_slope(int kernel);

int gc_set_threads(int threads); /* returns how many really run */
int gc_threads(void);
int gc_set_isa(const char *name); /* "baseline", "avx2", ...: 1 when this machine has it */
const char *gc_isa(void);

void *gc_alloc(int64_t nbytes); /* 64-byte aligned; NULL when there is no memory */
void gc_free(void *data);
void gc_trim(void);            /* free memory goes back to the system, where it can */
int64_t gc_allocated(void);    /* bytes now held through gc_alloc */
int64_t gc_kept(void);         /* bytes that nobody holds, for blocks to come */
void gc_fill_on_alloc(int on); /* tests: fresh memory is filled with NaN patterns */
