/* call.h -- a call is data: which kernel, its tensors, its sizes and options. gc_run() takes a list
 * of calls and is the only way to a kernel; gc_check() proves at that door that every reachable
 * byte lies inside its allocation. The build hands this text to cffi without the lines
 * of the preprocessor, so it stays plain: declarations only, no macros. */
#ifndef GC_CALL_H
#define GC_CALL_H

#include <stdint.h>

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

/* One call out of its parts, through the same door; gc_last_error() says what it refused in this
 * thread. */
int gc_run_kernel(int32_t kernel, const gc_tensor *const *tensors, int32_t ntensors,
                  const int64_t *sizes, int32_t nsizes, const double *options, int32_t noptions);
const gc_error *gc_last_error(void);
/* The same with a fresh contiguous tensor behind the others, which it gives; NULL where the call is
 * refused or memory is short. */
gc_tensor *gc_run_new(int32_t kernel, const gc_tensor *const *tensors, int32_t ntensors,
                      const int64_t *sizes, int32_t nsizes, const double *options, int32_t noptions,
                      int32_t dtype, int32_t ndim, const int64_t *shape);
/* An elementwise kernel; the result has the shape to which a and b are repeated. b may be NULL. */
gc_tensor *gc_map_new(int32_t kernel, int32_t dtype, const gc_tensor *a, const gc_tensor *b);
/* The product of a matrix or row with a matrix or column, by the kernel that takes batches of
 * matrices; bias may be NULL. */
gc_tensor *gc_product_new(int32_t kernel, const gc_tensor *a, const gc_tensor *b,
                          const gc_tensor *bias);
/* x[indices[0], indices[1], ...] of a contiguous x, by n vectors of places along its first
 * dimensions, by the kernels flat_index and index_select. */
gc_tensor *gc_pick_new(int32_t flat, int32_t select, const gc_tensor *x,
                       const gc_tensor *const *indices, int32_t n);
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
/* A number of a call that depends on a place, such as that of a step in its sequence:
 * start + place * by. Of a tensor, 0 is its offset, 1 + i its shape[i] and 9 + i its stride[i];
 * with tensor -1 it is sizes[number]. Those of one call stand side by side. */
typedef struct {
  int32_t call;
  int32_t tensor;
  int32_t number;
  int64_t start, by;
} gc_growth;

/* Sets these numbers for the replays that follow. Each call is checked as when it was compiled, and
 * keeps its phases and its scratch. */
int gc_move_to(gc_program *program, const gc_growth *growths, int64_t n, int64_t place,
               gc_error *error);
void gc_discard(gc_program *program);
/* From now on replays time this call. gc_timed: nanoseconds for which the calls that are timed kept
 * the steps from going on, all replays together: of each wave the most that one thread spent. */
void gc_time_call(gc_program *program, int64_t call);
int64_t gc_timed(const gc_program *program);

/* How the floating-point operations of a call are counted, from the shapes of two of its tensors,
 * t and u. */
enum {
  GC_COUNT_LARGEST,   /* one for each element of its largest tensor */
  GC_COUNT_NONE,      /* numbers are moved, not computed */
  GC_COUNT_MATMUL,    /* t is a product, and u its first factor */
  GC_COUNT_FILTERS,   /* 2 for each pair of an element of t and a weight of one filter of u */
  GC_COUNT_STEPS,     /* 2 for each weight of u, in each step of each sample of t */
  GC_COUNT_ATTENTION, /* for each query and key: t rows of keys multiplied, and u of values */
  GC_COUNT_CHAIN      /* one for each step and element */
};

enum {
  GC_OWN_LOOPS, /* a row of kernels.h */
  GC_UNARY,     /* f(x); the others are rows of scalar_ops.h too */
  GC_SLOPE,     /* of what f saved and the incoming gradient */
  GC_BINARY,    /* f(a, b), which broadcast */
  GC_SLOPE_OF_2 /* of a, b, y and the incoming gradient */
};

/* What a kernel is. A field that a row does not name is 0. Sets of tensors are bits: bit i of a set
 * of inputs, or of outputs, is the i-th of them. */
typedef struct {
  const char *name;
  int32_t inputs;
  int32_t outputs;
  int32_t typed_by;   /* the tensor whose element type picks the build */
  const char *shapes; /* a word for each tensor (kernels.h); NULL: its plan checks them */

  int32_t updates;     /* outputs that it reads before it overwrites them */
  int32_t in_place;    /* inputs over which its first output may lie: each task writes where it
                          has read, in the last phase */
  int32_t any_strides; /* 1: of all tensors; other kernels take contiguous ones, but for these */
  int32_t matrices;    /* inputs that it reads as fast along rows or columns */
  int32_t rows;        /* inputs of which only the last dimension must have stride 1 */
  int32_t gathers;     /* 1: of its first input it reads as many elements as it writes */

  int32_t operations[3]; /* GC_COUNT_..., t, u */
  int32_t product;       /* 1: multiplies matrices. Where tensor cores, or pairs on a CPU, do that
                            they take bfloat16, if all tensors are of it */
  int32_t widens;        /* tensors (bit i: tensor i) that float32's build takes in bfloat16 too */
  int32_t draws;         /* 1: random numbers, others for each element type */
  double bound;          /* how far a GPU's float32 may be off, as a share of the largest number; 0:
                            as far as its family's */

  const char *then_of; /* the kernel that this one is, with a row of scalar_ops.h behind it ... */
  int32_t row_size;    /* ... whose number is this one of the sizes */
  int32_t refuses;     /* GC_NOT_FINITE or GC_ZERO; 0: a bad index */
  int32_t from_end;    /* 1: an index below 0 counts from the end */

  int32_t kind;        /* GC_OWN_LOOPS, ... */
  const char *saved;   /* unary: "x" or "y", what the slope is written in */
  const char *formula; /* the row's own text */
  const char *slope[2];
} gc_facts;

const gc_facts *gc_kernel_facts(int kernel); /* NULL past the last one */
int gc_kernel_built(int kernel, int dtype);

int gc_set_threads(int threads); /* returns how many really run */
int gc_threads(void);
int gc_set_isa(const char *name); /* "baseline", "avx2", ...: 1 when this machine has it */
const char *gc_isa(void);

void *gc_alloc(int64_t nbytes); /* 64-byte aligned; NULL when there is no memory */
void gc_free(void *data);
/* A contiguous tensor with memory of its own, contents undefined; NULL when there is no memory. */
gc_tensor *gc_tensor_new(int32_t dtype, int32_t ndim, const int64_t *shape);
void gc_tensor_free(gc_tensor *tensor);
void gc_trim(void);            /* free memory goes back to the system, where it can */
int64_t gc_allocated(void);    /* bytes now held through gc_alloc */
int64_t gc_kept(void);         /* bytes that nobody holds, for blocks to come */
void gc_fill_on_alloc(int on); /* tests: fresh memory is filled with NaN patterns */

/* Memory in which a file is mapped: where that has become shorter, zeros are read, and it is noted.
 * The number of the guard; -1 where no more fit. Take it off before the file is unmapped. */
int gc_guard(const void *data, int64_t nbytes);
void gc_unguard(int guard);
int gc_guard_lost(int guard); /* 1 where zeros were read */
/* Asks for stretches of such memory to be read soon: nbytes each, from data + first[i] * row on. It
 * is advice, and may be refused. */
void gc_will_need(const char *data, const int64_t *first, int64_t count, int64_t row,
                  int64_t nbytes);

#endif
