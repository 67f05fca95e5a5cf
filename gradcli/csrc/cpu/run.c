/* run.c -- gc_run: each call of a list is checked, planned, and walked phase by phase. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tables.h"
#include "threads.h"
#include "waves.h"

/* ---- scratch: one block that grows to what the largest call needs ---- */

static struct {
  void *data;
  int64_t nbytes;
} scratch;

static void *scratch_of(int64_t nbytes) {
  if (nbytes > scratch.nbytes) {
    free(scratch.data);
    scratch.nbytes = 0;
    scratch.data = NULL;
    if (posix_memalign(&scratch.data, 64, (size_t)nbytes) != 0) {
      scratch.data = NULL;
      return NULL;
    }
    scratch.nbytes = nbytes;
  }
  return scratch.data;
}

/* ---- one call ---- */

static pthread_mutex_t report = PTHREAD_MUTEX_INITIALIZER;

static void report_first(const gc_job *job, gc_error found) {
  pthread_mutex_lock(&report);
  if (job->error->status == GC_OK || found.where < job->error->where)
    *job->error = found;
  pthread_mutex_unlock(&report);
}

void gc_bad_index(const gc_job *job, int tensor, int64_t where, int64_t value, int64_t limit) {
  report_first(job, (gc_error){.status = GC_BAD_INDEX,
                               .tensor = tensor,
                               .call = job->number,
                               .where = where,
                               .value = value,
                               .limit = limit});
}

void gc_refuse_number(const gc_job *job, int status, int tensor, int64_t where) {
  report_first(job,
               (gc_error){.status = status, .tensor = tensor, .call = job->number, .where = where});
}

int gc_plan_call(const gc_call *call, gc_plan *plan, gc_error *error) {
  *plan = (gc_plan){0};
  const int status = gc_check(call, error);
  if (status)
    return status;
  const int32_t type = call->tensors[gc_rows[call->kernel].typed_by].dtype;
  if (gc_find(call->kernel, type)->plan(call, plan, error))
    return error->status;
  plan->shared_bytes = gc_rounded(plan->shared_bytes);
  plan->worker_bytes = gc_rounded(plan->worker_bytes);
  for (int32_t i = 0; plan->work == 0 && i < call->ntensors; i++)
    plan->work += gc_numel(&call->tensors[i]);
  return GC_OK;
}

static int run_call(const gc_call *call, gc_error *error) {
  gc_plan plan;
  const int status = gc_plan_call(call, &plan, error);
  if (status)
    return status;
  char *memory = NULL;
  if (plan.shared_bytes + plan.worker_bytes) {
    memory = scratch_of(plan.shared_bytes + plan.worker_bytes * gc_threads());
    if (!memory)
      return gc_refuse(error, GC_NO_MEMORY, 0, "more memory");
  }
  const int32_t type = call->tensors[gc_rows[call->kernel].typed_by].dtype;
  const gc_run_fn run = gc_find(call->kernel, type)->run;
  gc_stage stages[GC_MAX_PHASES];
  gc_wave waves[GC_MAX_PHASES];
  for (int32_t p = 0; p < plan.phases; p++) {
    stages[p] =
        (gc_stage){.call = call, .run = run, .shared = memory, .phase = p, .tasks = plan.tasks[p]};
    waves[p] = (gc_wave){.first = p, .stages = 1, .tasks = plan.tasks[p]};
    waves[p].alone = plan.tasks[p] <= 1 || plan.work < GC_SHARED_WORK;
  }
  const gc_course course = {.stages = stages,
                            .waves = waves,
                            .nwaves = plan.phases,
                            .own = memory ? memory + plan.shared_bytes : NULL,
                            .worker_bytes = plan.worker_bytes,
                            .steps = 1,
                            .error = error};
  gc_walk_course(&course);
  return error->status;
}

int gc_run(const gc_call *calls, int64_t n, gc_error *error) {
  gc_lock();
  int status = GC_OK;
  *error = (gc_error){0};
  for (int64_t i = 0; i < n && status == GC_OK; i++) {
    status = run_call(&calls[i], error);
    error->call = i;
  }
  gc_unlock();
  return status;
}

static _Thread_local gc_error last_error;

const gc_error *gc_last_error(void) {
  return &last_error;
}

/* A call out of its parts; `fresh`, if there is one, behind the others. */
static int run_parts(int32_t kernel, const gc_tensor *const *tensors, int32_t ntensors,
                     const gc_tensor *fresh, const int64_t *sizes, int32_t nsizes,
                     const double *options, int32_t noptions) {
  last_error = (gc_error){.status = GC_BAD_CALL};
  const int32_t all = ntensors + (fresh != NULL);
  if (ntensors < 0 || all > GC_MAX_TENSORS || nsizes < 0 || nsizes > GC_MAX_SIZES || noptions < 0 ||
      noptions > GC_MAX_OPTIONS)
    return GC_BAD_CALL;
  gc_call call = {.kernel = kernel, .ntensors = all};
  for (int32_t i = 0; i < ntensors; i++)
    call.tensors[i] = *tensors[i];
  if (fresh)
    call.tensors[ntensors] = *fresh;
  for (int32_t i = 0; i < nsizes; i++)
    call.sizes[i] = sizes[i];
  for (int32_t i = 0; i < noptions; i++)
    call.options[i] = options[i];
  return gc_run(&call, 1, &last_error);
}

int gc_run_kernel(int32_t kernel, const gc_tensor *const *tensors, int32_t ntensors,
                  const int64_t *sizes, int32_t nsizes, const double *options, int32_t noptions) {
  return run_parts(kernel, tensors, ntensors, NULL, sizes, nsizes, options, noptions);
}

gc_tensor *gc_run_new(int32_t kernel, const gc_tensor *const *tensors, int32_t ntensors,
                      const int64_t *sizes, int32_t nsizes, const double *options, int32_t noptions,
                      int32_t dtype, int32_t ndim, const int64_t *shape) {
  gc_tensor *result = gc_tensor_new(dtype, ndim, shape);
  if (result && run_parts(kernel, tensors, ntensors, result, sizes, nsizes, options, noptions)) {
    gc_tensor_free(result);
    return NULL;
  }
  return result;
}

/* The shape to which both are repeated; false where they do not fit. */
static bool shape_of_both(const gc_tensor *a, const gc_tensor *b, gc_tensor *both) {
  both->ndim = (int32_t)gc_max(a->ndim, b->ndim);
  if (both->ndim > GC_MAX_DIMS || gc_min(a->ndim, b->ndim) < 0)
    return false;
  for (int32_t d = 0; d < both->ndim; d++) {
    const int32_t i = d - both->ndim + a->ndim, j = d - both->ndim + b->ndim;
    const int64_t m = i < 0 ? 1 : a->shape[i], n = j < 0 ? 1 : b->shape[j];
    if (m != n && m != 1 && n != 1)
      return false;
    both->shape[d] = m == 1 ? n : m;
  }
  return true;
}

/* A tensor repeated to that shape. */
static gc_tensor repeated(const gc_tensor *t, const gc_tensor *like) {
  gc_tensor r = *t;
  const int32_t more = like->ndim - t->ndim;
  for (int32_t d = 0; d < like->ndim; d++) {
    const bool there = d >= more && t->shape[d - more] == like->shape[d];
    r.stride[d] = there ? t->stride[d - more] : 0;
    r.shape[d] = like->shape[d];
  }
  r.ndim = like->ndim;
  return r;
}

gc_tensor *gc_map_new(int32_t kernel, int32_t dtype, const gc_tensor *a, const gc_tensor *b) {
  if (!b)
    return gc_run_new(kernel, &a, 1, NULL, 0, NULL, 0, dtype, a->ndim, a->shape);
  last_error = (gc_error){.status = GC_BAD_SHAPE};
  gc_tensor both;
  if (!shape_of_both(a, b, &both))
    return NULL;
  const gc_tensor first = repeated(a, &both), second = repeated(b, &both);
  const gc_tensor *const tensors[2] = {&first, &second};
  return gc_run_new(kernel, tensors, 2, NULL, 0, NULL, 0, dtype, both.ndim, both.shape);
}

/* The same elements as a batch of one matrix of these sizes. */
static gc_tensor as_batch(const gc_tensor *t, int64_t rows, int64_t row_stride, int64_t columns,
                          int64_t stride) {
  gc_tensor batch = *t;
  batch.ndim = 3;
  batch.shape[0] = batch.stride[0] = 1;
  batch.shape[1] = rows, batch.stride[1] = row_stride;
  batch.shape[2] = columns, batch.stride[2] = stride;
  return batch;
}

gc_tensor *gc_product_new(int32_t kernel, const gc_tensor *a, const gc_tensor *b,
                          const gc_tensor *bias) {
  last_error = (gc_error){.status = GC_BAD_CALL};
  if (a->ndim < 1 || a->ndim > 2 || b->ndim < 1 || b->ndim > 2)
    return NULL;
  const bool row = a->ndim == 1, column = b->ndim == 1;
  const int64_t m = row ? 1 : a->shape[0], n = column ? 1 : b->shape[1];
  const int64_t shape[2] = {row ? n : m, n};
  gc_tensor *result = gc_tensor_new(a->dtype, 2 - row - column, shape);
  if (!result)
    return NULL;
  const gc_tensor left = as_batch(a, m, row ? 1 : a->stride[0], a->shape[!row], a->stride[!row]);
  const gc_tensor right = as_batch(b, b->shape[0], b->stride[0], n, column ? 1 : b->stride[1]);
  const gc_tensor out = as_batch(result, m, n, n, 1);
  const gc_tensor nothing = {.dtype = a->dtype, .ndim = 1, .stride = {1}};
  const gc_tensor *const tensors[4] = {&left, &right, bias ? bias : &nothing, &out};
  if (run_parts(kernel, tensors, 4, NULL, NULL, 0, NULL, 0)) {
    gc_tensor_free(result);
    return NULL;
  }
  return result;
}

/* Vectors of places along the first dimensions of x as one into all of them. */
static gc_tensor *flat_places(int32_t kernel, const gc_tensor *x, const gc_tensor *const *indices,
                              int32_t n) {
  const gc_tensor nothing = {.dtype = GC_I64, .ndim = 1, .stride = {1}};
  gc_tensor *flat = NULL;
  for (int32_t d = 0; d < n; d++) {
    const gc_tensor *const tensors[2] = {flat ? flat : &nothing, indices[d]};
    gc_tensor *next =
        gc_run_new(kernel, tensors, 2, &x->shape[d], 1, NULL, 0, GC_I64, 1, &indices[d]->shape[0]);
    if (flat)
      gc_tensor_free(flat);
    if (!next)
      return NULL;
    flat = next;
  }
  return flat;
}

/* The same elements, contiguous, as one batch of rows. */
static gc_tensor as_rows(const gc_tensor *t, int64_t rows, int64_t inner) {
  gc_tensor batch = *t;
  const int64_t shape[3] = {1, rows, inner}, stride[3] = {1, inner, 1};
  batch.ndim = 3;
  memcpy(batch.shape, shape, sizeof shape);
  memcpy(batch.stride, stride, sizeof stride);
  return batch;
}

gc_tensor *gc_pick_new(int32_t flat, int32_t select, const gc_tensor *x,
                       const gc_tensor *const *indices, int32_t n) {
  last_error = (gc_error){.status = GC_BAD_CALL};
  if (n < 1 || n > x->ndim || !gc_contiguous(x))
    return NULL;
  for (int32_t d = 0; d < n; d++)
    if (indices[d]->ndim != 1 || indices[d]->dtype != GC_I64 ||
        indices[d]->shape[0] != indices[0]->shape[0])
      return NULL;
  int64_t shape[GC_MAX_DIMS] = {indices[0]->shape[0]}, rows = 1, inner = 1;
  for (int32_t d = 0; d < n; d++)
    rows *= x->shape[d];
  for (int32_t d = n; d < x->ndim; d++)
    inner *= shape[d - n + 1] = x->shape[d];
  gc_tensor *places = flat_places(flat, x, indices, n);
  if (!places)
    return NULL;
  gc_tensor *result = gc_tensor_new(x->dtype, x->ndim - n + 1, shape);
  if (result) {
    const gc_tensor source = as_rows(x, rows, inner), out = as_rows(result, shape[0], inner);
    const gc_tensor *const tensors[3] = {&source, places, &out};
    if (run_parts(select, tensors, 3, NULL, NULL, 0, NULL, 0)) {
      gc_tensor_free(result);
      result = NULL;
    }
  }
  gc_tensor_free(places);
  return result;
}
