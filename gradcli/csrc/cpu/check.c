/* check.c -- the door: proves that a call stays inside its allocations before any kernel sees it.
 */
#include "tables.h"

int gc_refuse(gc_error *error, int status, int tensor, const char *expected) {
  error->status = status;
  error->tensor = tensor;
  error->expected = expected;
  return status;
}

int64_t gc_dtype_size(int32_t dtype) {
  static const int64_t size[GC_DTYPES] = {4, 8, 4, 8, 1, 1, 2};
  return size[dtype];
}

int64_t gc_numel(const gc_tensor *t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->ndim; d++)
    n *= t->shape[d];
  return n;
}

bool gc_contiguous(const gc_tensor *t) {
  int64_t expected = 1;
  for (int32_t d = t->ndim - 1; d >= 0; d--) {
    if (t->shape[d] == 0)
      return true;
    if (t->shape[d] != 1 && t->stride[d] != expected)
      return false;
    expected *= t->shape[d];
  }
  return true;
}

bool gc_same_shape(const gc_tensor *a, const gc_tensor *b) {
  if (a->ndim != b->ndim)
    return false;
  for (int32_t d = 0; d < a->ndim; d++)
    if (a->shape[d] != b->shape[d])
      return false;
  return true;
}

typedef struct {
  int64_t low, high; /* bytes from the start of the allocation, half open */
} extent;

/* The bytes a tensor can reach; false when the arithmetic overflows or leaves the allocation, or
 * when this is not aligned for its elements. */
static bool reach(const gc_tensor *t, extent *bytes) {
  int64_t low = t->offset, high = t->offset, count = 1;
  for (int32_t d = 0; d < t->ndim; d++) {
    int64_t span;
    if (t->shape[d] < 0 || __builtin_mul_overflow(count, t->shape[d], &count))
      return false;
    if (t->shape[d] == 0)
      continue;
    if (__builtin_mul_overflow(t->shape[d] - 1, t->stride[d], &span) ||
        __builtin_add_overflow(span < 0 ? low : high, span, span < 0 ? &low : &high))
      return false;
  }
  if (count == 0) {
    *bytes = (extent){0, 0};
    return t->offset >= 0;
  }
  const int64_t size = gc_dtype_size(t->dtype);
  if (low < 0 || __builtin_add_overflow(high, 1, &high) ||
      __builtin_mul_overflow(high, size, &high))
    return false;
  *bytes = (extent){low * size, high};
  return t->data != NULL && (uintptr_t)t->data % (uintptr_t)size == 0 && high <= t->nbytes;
}

static bool writes_one_place_twice(const gc_tensor *t) {
  for (int32_t d = 0; d < t->ndim; d++)
    if (t->shape[d] > 1 && t->stride[d] == 0)
      return true;
  return false;
}

static bool same_elements(const gc_tensor *a, const gc_tensor *b) {
  if (a->dtype != b->dtype || a->data != b->data || a->offset != b->offset || !gc_same_shape(a, b))
    return false;
  for (int32_t d = 0; d < a->ndim; d++)
    if (a->shape[d] > 1 && a->stride[d] != b->stride[d])
      return false;
  return true;
}

static bool overlap(const gc_tensor *a, const extent *x, const gc_tensor *b, const extent *y) {
  const char *p = a->data, *q = b->data;
  return x->low < x->high && y->low < y->high && p + x->low < q + y->high &&
         q + y->low < p + x->high;
}

static int check_tensor(const gc_tensor *t, int i, extent *bytes, gc_error *error) {
  if (t->ndim < 0 || t->ndim > GC_MAX_DIMS)
    return gc_refuse(error, GC_BAD_SHAPE, i, "at most 8 dimensions");
  if (t->dtype < 0 || t->dtype >= GC_DTYPES)
    return gc_refuse(error, GC_BAD_DTYPE, i, "a known element type");
  if (!reach(t, bytes))
    return gc_refuse(error, GC_BAD_BOUNDS, i, "aligned elements inside the allocation");
  return GC_OK;
}

/* The sizes that letters of a row's shapes stand for, as far as tensors have shown them. */
typedef struct {
  uint32_t seen;          /* bit i: letter number i */
  const gc_tensor *whole; /* what `*` stands for */
  int64_t size[26];
} letters;

/* Whether a tensor has the dimensions that n characters from `word` on say, and lies in memory as
 * `mark` says. */
static bool has_shape(const gc_tensor *t, const char *word, int64_t n, char mark, letters *l) {
  if (*word == '.' || *word == '*') {
    l->whole = *word == '*' && !l->whole ? t : l->whole;
    return (*word == '.' || t == l->whole || gc_same_shape(t, l->whole)) &&
           (mark == '~' || gc_contiguous(t));
  }
  if (t->ndim != n)
    return false;
  bool dense = mark != '~';
  int64_t next = 1; /* the stride of a dense dimension */
  for (int64_t d = n - 1; d >= 0; d--) {
    const int64_t size = t->shape[d];
    const int letter = word[d] - 'a';
    if (letter >= 0 && !(l->seen >> letter & 1)) {
      l->seen |= (uint32_t)1 << letter;
      l->size[letter] = size;
    } else if (size != (letter < 0 ? word[d] - '0' : l->size[letter])) {
      return false;
    }
    if (dense && size > 1 && t->stride[d] != next)
      return false;
    dense = dense && size > 0 && mark != '-';
    next *= size;
  }
  return true;
}

static bool has_type(const gc_tensor *t, char mark, int32_t usual, bool widens) {
  if (mark < 'A' || mark > 'Z')
    return t->dtype == usual || (widens && usual == GC_F32 && t->dtype == GC_BF16);
  return mark == 'X' || t->dtype == (mark == 'B'   ? GC_BOOL
                                     : mark == 'D' ? GC_F64
                                     : mark == 'L' ? GC_I64
                                                   : GC_U8);
}

/* Each tensor is what its word says (kernels.h). */
static int check_shapes(const gc_call *call, const gc_facts *row, gc_error *error) {
  const char *word = row->shapes;
  const int32_t typed = call->tensors[row->typed_by].dtype;
  const int32_t usual = typed == GC_BF16 && row->widens ? GC_F32 : typed;
  letters l;
  l.seen = 0, l.whole = NULL; /* the sizes wait for their letters */
  for (int32_t i = 0; word && i < call->ntensors; i++) {
    const gc_tensor *t = &call->tensors[i];
    const char strides = *word;
    word += strides == '~' || strides == '-';
    const char *end = word;
    while (*end >= 'a' || (*end > ' ' && *end < '?'))
      end++;
    const int64_t n = end - word;
    const char type = *end;
    end += type >= 'A' && type <= 'Z';
    const bool left_out = *end == '?' && t->ndim == 1 && t->shape[0] == 0;
    if (!has_type(t, type, usual, row->widens >> i & 1))
      return gc_refuse(error, GC_BAD_SHAPE, i, "another element type");
    if (!left_out && !has_shape(t, word, n, strides, &l))
      return gc_refuse(error, GC_BAD_SHAPE, i, "another shape or other strides");
    end += *end == '?';
    word = end + 1; /* behind the last word it is not read */
  }
  return GC_OK;
}

int gc_check(const gc_call *call, gc_error *error) {
  *error = (gc_error){0};
  if (call->kernel < 0 || call->kernel >= gc_kernel_count())
    return gc_refuse(error, GC_BAD_CALL, 0, "a known kernel");
  const gc_facts *row = &gc_rows[call->kernel];
  if (call->ntensors != row->inputs + row->outputs)
    return gc_refuse(error, GC_BAD_CALL, 0, "another number of tensors");
  extent bytes[GC_MAX_TENSORS];
  for (int i = 0; i < call->ntensors; i++) {
    const int status = check_tensor(&call->tensors[i], i, &bytes[i], error);
    if (status)
      return status;
  }
  for (int o = row->inputs; o < call->ntensors; o++) {
    const gc_tensor *out = &call->tensors[o];
    if (writes_one_place_twice(out))
      return gc_refuse(error, GC_OVERLAP, o, "an output whose elements are all distinct");
    for (int i = 0; i < o; i++) {
      /* Reading exactly what it overwrites is what an in-place elementwise call does. */
      const gc_tensor *other = &call->tensors[i];
      if (overlap(other, &bytes[i], out, &bytes[o]) &&
          !(i < row->inputs && same_elements(other, out)))
        return gc_refuse(error, GC_OVERLAP, o, "an output in memory of its own");
    }
  }
  if (!gc_find(call->kernel, call->tensors[row->typed_by].dtype)->run)
    return gc_refuse(error, GC_BAD_DTYPE, row->typed_by, "another element type");
  return check_shapes(call, row, error);
}
