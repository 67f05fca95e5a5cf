/* matmul.h -- out (batch, M, N) = a (batch, M, K) b (batch, K, N) + bias (N, or empty). a and b may
 * have any strides: transposed views, and 0 to use one matrix for the whole batch. Each task owns
 * some blocks of the output. matmul_then does one more thing to each block before it leaves the
 * cache. */
#ifndef GC_MATMUL_H
#define GC_MATMUL_H

#include "../elementwise/operands.h"
#include "../elementwise/span.h"
#include "../kernel.h"
#include "../type.h"
#include "gemm.h"
#include "gemm_pack.h"
#include "gemm_tile.h"
#include "matmul_check.h"
#include "matmul_grid.h"

static int NAME(cut_matmul)(const gc_call *call, gc_plan *plan) {
  const gc_grid g = NAME(matmul_grid)(call->tensors);
  plan->worker_bytes = GEMM_SCRATCH;
  if (g.flipped)
    plan->worker_bytes += g.rows * gc_whole(g.columns, LANES) * (int64_t)sizeof(REAL);
  /* Eight multiplications take as long as moving an element. */
  const double moved = (double)g.m * (double)g.k + (double)(g.k + g.m) * (double)g.n;
  const double work = (double)g.batch * (moved + (double)g.m * (double)g.n * (double)g.k / 8);
  plan->work = 1 + (int64_t)(work < GC_MATMUL_MUCH ? work : GC_MATMUL_MUCH);
  return gc_plan_simple(plan, g.blocks ? gc_ceil_div(g.blocks, g.group) : 0);
}

static int NAME(plan_matmul)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_APART(3, 3);
  return NAME(cut_matmul)(call, plan);
}

/* The left (0) or right (1) matrix of the product that is done. */
static NAME(matrix) NAME(matrix_of)(const gc_job *job, const gc_grid *g, int side, int64_t batch) {
  const gc_tensor *t = &job->call->tensors[g->flipped ? 1 - side : side];
  const NAME(matrix)
      x = {(const REAL *)gc_first(t) + batch * t->stride[0], t->stride[1], t->stride[2]};
  return g->flipped ? NAME(flipped)(x) : x;
}

/* One block of the output into c, which has the shape of the output. */
static void NAME(matmul_block)(const gc_job *job, const gc_grid *g, int64_t number, REAL *c,
                               const NAME(then) * then) {
  const int64_t batch = number / (g->down * g->across);
  const int64_t i = number / g->across % g->down * g->rows, j = number % g->across * g->columns;
  const gc_tensor *const bias = &job->call->tensors[2];
  NAME(product)
  p = {.m = gc_min(g->rows, g->m - i), .n = gc_min(g->columns, g->n - j), .k = g->k};
  p.a = NAME(part)(NAME(matrix_of)(job, g, 0, batch), i, 0);
  p.b = NAME(part)(NAME(matrix_of)(job, g, 1, batch), 0, j);
  p.scratch = job->own;
  p.add = bias->shape[0] > 0;
  const REAL *const start = p.add ? (const REAL *)gc_first(bias) + (g->flipped ? i : j) : NULL;
  if (!g->flipped) {
    p.c = c + (batch * g->m + i) * g->n + j;
    p.ldc = g->n;
    p.then = then;
    for (int64_t row = 0; p.add && row < p.m; row++)
      memcpy(p.c + row * p.ldc, start, (size_t)p.n * sizeof(REAL));
    NAME(multiply)(&p);
    return;
  }
  p.c = p.scratch + GEMM_SCRATCH / (int64_t)sizeof(REAL);
  p.ldc = gc_whole(p.n, LANES);
  for (int64_t row = 0; p.add && row < p.m; row++)
    for (int64_t v = 0; v < p.n; v++)
      p.c[row * p.ldc + v] = start[row];
  NAME(multiply)(&p);
  REAL *const to = c + (batch * g->n + j) * g->m + i;
  NAME(transpose)(p.c, p.ldc, p.m, p.n, to, g->m);
  NAME(then_rows)(then, to, g->m, p.n, p.m);
}

/* What a task does, into c, which has the shape of the output. */
static void NAME(matmul_task)(const gc_job *job, REAL *c, const NAME(then) * then) {
  const gc_grid g = NAME(matmul_grid)(job->call->tensors);
  const int64_t end = gc_min(g.blocks, (job->task + 1) * g.group);
  for (int64_t block = job->task * g.group; block < end; block++)
    NAME(matmul_block)(job, &g, block, c, then);
}

static void NAME(run_matmul)(const gc_job *job) {
  NAME(matmul_task)(job, gc_first(&job->call->tensors[3]), NULL);
}

/* ---- out = f(pre) with pre = a b + bias; tensors a, b, bias, kept, pre, out. sizes[0] is the
 * kernel number of f: a unary row of scalar_ops.h, or the _backward of one, pre * slope(kept). The
 * options are f's own. kept is empty for the former, pre may be for both. ---- */

/* What both calls of this kind share (conv2d.h has the other): tensors 3, 4 and 5, the function f.
 */
static int NAME(check_then)(const gc_call *call, int64_t f, gc_error *error) {
  const gc_tensor *t = call->tensors;
  const int64_t spans = sizeof NAME(spans) / sizeof NAME(spans)[0];
  const int32_t kind = f >= 0 && f < spans ? NAME(spans)[f].kind : GC_SPAN_NONE;
  GC_REQUIRE(kind == GC_SPAN_UNARY || kind == GC_SPAN_SLOPE, 5, "a unary kernel by its number");
  GC_REQUIRE(gc_numel(&t[3]) == (kind == GC_SPAN_SLOPE ? gc_numel(&t[5]) : 0), 3,
             "what was kept for a slope, and else nothing");
  GC_APART(4, 4);
  GC_APART(4, 5);
  return GC_OK;
}

/* Where the sums go: to pre where it is wanted, else to the output. */
static REAL *NAME(pre_of)(const gc_call *call) {
  return gc_first(&call->tensors[gc_numel(&call->tensors[4]) ? 4 : 5]);
}

static NAME(then) NAME(then_of)(const gc_call *call, int64_t f) {
  const gc_tensor *t = call->tensors;
  return (NAME(then)){.span = &NAME(spans)[f],
                      .c = NAME(pre_of)(call),
                      .kept = gc_first(&t[3]),
                      .out = gc_first(&t[5]),
                      .p = call->options[0],
                      .q = call->options[1]};
}

static int NAME(plan_matmul_then)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = NAME(check_then)(call, call->sizes[0], error);
  return status ? status : NAME(cut_matmul)(call, plan);
}

static void NAME(run_matmul_then)(const gc_job *job) {
  const NAME(then) then = NAME(then_of)(job->call, job->call->sizes[0]);
  NAME(matmul_task)(job, NAME(pre_of)(job->call), &then);
}

#endif
