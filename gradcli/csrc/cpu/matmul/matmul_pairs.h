/* matmul_pairs.h -- matmul of bfloat16 where the processor multiplies pairs: out (batch, M, N) = a
 * (batch, M, K) b (batch, K, N) + bias, all bfloat16, summed in float. Two neighbours along K are
 * one element of 32 bits, and half as many of them are multiplied like floats (gemm.h). Where K is
 * not what lies side by side in memory, the first phase puts pairs together.
 *
 * The processor rounds each pair's sum once and takes denormal numbers for 0. */
#ifndef GC_MATMUL_PAIRS_H
#define GC_MATMUL_PAIRS_H

#include "../bfloat16.h"
#include "../kernel.h"
#include "../type.h"
#include "../walk.h"
#include "gemm.h"
#include "gemm_pack.h"
#include "gemm_tile.h"
#include "matmul_check.h"
#include "matmul_grid.h"

#ifdef GC_PAIRS

/* A matrix as lines (rows of a, columns of b) of K numbers, and the same as pairs. */
typedef struct {
  const uint16_t *from;
  int64_t lines, k, pairs, batches;
  int64_t line_step, k_step, batch_step; /* of `from` */
  bool as_it_is;                         /* its memory holds pairs already */
} gc_paired;

static gc_paired NAME(paired_of)(const gc_call *call, int side) {
  const gc_tensor *t = &call->tensors[side];
  const int along = side == 0 ? 2 : 1, line = 3 - along;
  gc_paired x = {.from = gc_first(t), .lines = t->shape[line], .k = t->shape[along]};
  x.pairs = gc_ceil_div(x.k, 2);
  x.line_step = t->stride[line];
  x.k_step = t->stride[along];
  x.batch_step = t->shape[0] > 1 ? t->stride[0] : 0;
  x.batches = x.batch_step ? t->shape[0] : gc_min(t->shape[0], 1);
  const bool even = x.k % 2 == 0 && x.line_step % 2 == 0 && x.batch_step % 2 == 0;
  x.as_it_is = x.k_step == 1 && even && t->offset % 2 == 0;
  return x;
}

static int64_t NAME(pairs_made)(const gc_paired *x) {
  return x->as_it_is ? 0 : x->batches * x->pairs * x->lines;
}

/* The matrix as the product reads it; `made` are its pairs, line beside line. */
static gc_tensor NAME(pairs_tensor)(const gc_paired *x, int side, int64_t batch, void *made) {
  const int along = side == 0 ? 2 : 1, line = 3 - along;
  gc_tensor t = {.data = made, .dtype = GC_F32, .ndim = 3};
  t.shape[0] = batch;
  t.shape[line] = x->lines;
  t.shape[along] = x->pairs;
  t.stride[0] = x->batch_step ? x->pairs * x->lines : 0;
  t.stride[line] = 1;
  t.stride[along] = x->lines;
  if (x->as_it_is) {
    t.data = (void *)(uintptr_t)x->from;
    t.stride[0] = x->batch_step / 2;
    t.stride[line] = x->line_step / 2;
    t.stride[along] = 1;
  }
  return t;
}

typedef struct {
  gc_paired side[2];
  gc_tensor pairs[2];
  int64_t made[2];
  gc_grid grid;
} NAME(course);

static NAME(course) NAME(course_of)(const gc_call *call, char *shared) {
  NAME(course) c;
  for (int side = 0; side < 2; side++) {
    c.side[side] = NAME(paired_of)(call, side);
    c.made[side] = NAME(pairs_made)(&c.side[side]);
    char *const made = shared && side == 1 ? shared + gc_rounded(4 * c.made[0]) : shared;
    c.pairs[side] = NAME(pairs_tensor)(&c.side[side], side, call->tensors[0].shape[0], made);
  }
  c.grid = NAME(matmul_grid)(c.pairs);
  return c;
}

/* Numbers of a block of the output, in its lines of whole vectors; twice, for the turned one. */
static int64_t NAME(block_size)(const gc_grid *g) {
  return gc_max(g->rows * gc_whole(g->columns, LANES), g->columns * gc_whole(g->rows, LANES));
}

static int NAME(plan_matmul)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_APART(3, 3);
  const NAME(course) c = NAME(course_of)(call, NULL);
  const gc_grid *g = &c.grid;
  plan->phases = 2;
  plan->tasks[0] = gc_ceil_div(c.made[0], GC_BLOCK) + gc_ceil_div(c.made[1], GC_BLOCK);
  plan->tasks[1] = g->blocks ? gc_ceil_div(g->blocks, g->group) : 0;
  plan->shared_bytes = gc_rounded(4 * c.made[0]) + gc_rounded(4 * c.made[1]);
  plan->worker_bytes = GEMM_SCRATCH + 2 * (int64_t)sizeof(REAL) * NAME(block_size)(g);
  const double done = (double)g->batch * (double)g->m * (double)g->n * (double)g->k / 8;
  plan->work = 1 + (int64_t)(done < GC_MATMUL_MUCH ? done : GC_MATMUL_MUCH);
  return GC_OK;
}

/* Numbers first .. first + n - 1 of the pairs of a matrix, which are (batch, pair, line). */
static void NAME(put_together)(const gc_paired *x, int64_t first, int64_t n, uint32_t *to) {
  for (int64_t at = first, count; at < first + n; at += count) {
    const int64_t line = at % x->lines, pair = at / x->lines % x->pairs;
    const uint16_t *const low = x->from + at / x->lines / x->pairs * x->batch_step +
                                2 * pair * x->k_step + line * x->line_step;
    const uint16_t *const high = low + x->k_step;
    const int64_t step = x->line_step;
    count = gc_min(first + n - at, x->lines - line);
    if (2 * pair + 1 == x->k)
      for (int64_t i = 0; i < count; i++)
        to[at + i] = low[i * step];
    else if (step == 1)
      for (int64_t i = 0; i < count; i++)
        to[at + i] = low[i] | (uint32_t)high[i] << 16;
    else
      for (int64_t i = 0; i < count; i++)
        to[at + i] = low[i * step] | (uint32_t)high[i * step] << 16;
  }
}

static void NAME(make_pairs)(const gc_job *job) {
  const NAME(course) c = NAME(course_of)(job->call, job->shared);
  const int64_t of_a = gc_ceil_div(c.made[0], GC_BLOCK);
  const int side = job->task < of_a ? 0 : 1;
  const int64_t first = (job->task - (side ? of_a : 0)) * GC_BLOCK;
  NAME(put_together)(&c.side[side], first, gc_min(GC_BLOCK, c.made[side] - first),
                     c.pairs[side].data);
}

static NAME(matrix) NAME(pairs_of)(const NAME(course) * c, int side, int64_t batch) {
  const gc_tensor *t = &c->pairs[c->grid.flipped ? 1 - side : side];
  const NAME(matrix) x = {(const REAL *)t->data + batch * t->stride[0], t->stride[1], t->stride[2]};
  return c->grid.flipped ? NAME(flipped)(x) : x;
}

/* What the sums of a block begin with: the bias, along the columns of the output. */
static void NAME(put_bias)(const gc_tensor *bias, bool flipped, int64_t first, REAL *c, int64_t ldc,
                           int64_t rows, int64_t n) {
  const uint16_t *const from = (const uint16_t *)gc_first(bias) + first;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < n; j++)
      c[i * ldc + j] = gc_widened(from[flipped ? i : j]);
}

/* n numbers of whole vectors in memory. */
static void NAME(round_row)(const REAL *from, int64_t n, uint16_t *to) {
  for (int64_t k = 0; k < n; k += LANES) {
    const __m256i half = (__m256i)_mm512_cvtneps_pbh(*(const __m512 *)(from + k));
    if (n - k >= LANES)
      _mm256_storeu_si256((__m256i *)(void *)(to + k), half);
    else
      _mm256_mask_storeu_epi16(to + k, (__mmask16)LANE_BITS(n - k), half);
  }
}

static void NAME(multiply_block)(const gc_job *job, const NAME(course) * x, int64_t number) {
  const gc_grid *g = &x->grid;
  const gc_tensor *const bias = &job->call->tensors[2];
  const int64_t batch = number / (g->down * g->across);
  const int64_t i = number / g->across % g->down * g->rows, j = number % g->across * g->columns;
  const int64_t m = gc_min(g->rows, g->m - i), n = gc_min(g->columns, g->n - j);
  REAL *const scratch = job->own;
  REAL *c = scratch + GEMM_SCRATCH / (int64_t)sizeof(REAL);
  int64_t ldc = gc_whole(n, LANES);
  const bool add = bias->shape[0] > 0;
  if (add)
    NAME(put_bias)(bias, g->flipped, g->flipped ? i : j, c, ldc, m, n);
  NAME(gemm)(m, n, g->k, NAME(part)(NAME(pairs_of)(x, 0, batch), i, 0),
             NAME(part)(NAME(pairs_of)(x, 1, batch), 0, j), c, ldc, add, scratch);
  uint16_t *out = gc_first(&job->call->tensors[3]);
  out += batch * g->m * g->n + (g->flipped ? j * g->m + i : i * g->n + j);
  int64_t rows = m, columns = n, width = g->n;
  if (g->flipped) {
    REAL *const turned = c + NAME(block_size)(g);
    NAME(transpose)(c, ldc, m, n, turned, gc_whole(m, LANES));
    c = turned, ldc = gc_whole(m, LANES), rows = n, columns = m, width = g->m;
  }
  for (int64_t row = 0; row < rows; row++)
    NAME(round_row)(c + row * ldc, columns, out + row * width);
}

static void NAME(run_matmul)(const gc_job *job) {
  if (job->phase == 0) {
    NAME(make_pairs)(job);
    return;
  }
  const NAME(course) x = NAME(course_of)(job->call, job->shared);
  const int64_t end = gc_min(x.grid.blocks, (job->task + 1) * x.grid.group);
  for (int64_t block = job->task * x.grid.group; block < end; block++)
    NAME(multiply_block)(job, &x, block);
}

#endif

#endif
