/* conv2d_weight.h -- the gradients of a convolution's weights and bias. */

#ifndef GC_CONV2D_RUNS
#define GC_CONV2D_RUNS
enum {
  GC_CONV2D_MAX_RUNS = 16,
  GC_CONV2D_PARTIAL = 1 << 21, /* bytes of all runs together */
  GC_CONV2D_BATCH = 1 << 18    /* bytes that the images of a batch take */
};

/* How the images are cut. A run is summed up by itself; of its images `batch` are copied at a time,
 * so that the sums stay in registers while they last. */
typedef struct {
  gc_conv2d s;
  gc_sweep sweep;
  int64_t runs, batch;
  int64_t filters;  /* rounded up to whole vectors */
  int64_t elements; /* of a copy, in whole vectors ... */
  int64_t masks;    /* ... and of its masks */
  int64_t across;   /* rows of the matrix of windows that belong to one row tap */
  int64_t step;     /* rows of a tile; none has rows of two ... */
  int64_t whole;    /* ... runs of so many */
  int64_t block;    /* rows of the matrix of windows that a task of phase 1 adds up */
} gc_weight_pass;

static inline gc_weight_pass gc_weight_pass_of(const gc_conv2d *s, int64_t tile) {
  gc_weight_pass p = {.s = *s, .sweep = gc_sweep_forward(s), .block = 16};
  p.filters = gc_ceil_div(s->oc, s->lanes) * s->lanes;
  const int64_t bytes = s->groups * s->depth * p.filters * s->size;
  p.runs = GC_CONV2D_MAX_RUNS;
  while (p.runs > 1 && p.runs * bytes > GC_CONV2D_PARTIAL)
    p.runs /= 2;
  p.runs = gc_min(p.runs, s->images);
  const int64_t chunk = gc_sweep_chunk(&p.sweep, s);
  gc_sweep_layout(&p.sweep, chunk, s->lanes);
  p.elements = gc_sweep_elements(&p.sweep, s->lanes);
  p.masks = gc_sweep_masks(&p.sweep, s->lanes);
  p.across = s->c * s->kw;
  /* Tiles of one row tap leave out rows of outputs; tiles of few rows would cost more than that. */
  const int64_t whole = 4 * p.across < 3 * tile ? s->depth : p.across;
  p.step = gc_ceil_div(whole, gc_ceil_div(whole, tile));
  p.whole = whole;
  const int64_t image = (p.elements + chunk * s->ow * p.filters) * s->size;
  p.batch = gc_max(1, gc_min(GC_CONV2D_BATCH / image, gc_ceil_div(s->images, gc_max(1, p.runs))));
  p.batch = chunk < s->oh ? 1 : p.batch;
  return p;
}

static inline int64_t gc_weight_blocks(const gc_weight_pass *p) {
  return gc_ceil_div(p->s.depth, p->block);
}
#endif

/* ---- grad_weight^T = the sum over images of windows grad^T; tensors grad, x, grad_weight. Phase 0
 * sums over each of a fixed number of runs of images, phase 1 adds those up in order ---- */

static int NAME(plan_conv2d_grad_weight)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = gc_conv2d_check(call, 1, 2, 0, error);
  if (status)
    return status;
  GC_APART(2, 2);
  if (gc_numel(&call->tensors[2]) == 0)
    return gc_plan_simple(plan, 0);
  const gc_conv2d s = gc_conv2d_shape(call, 1, 2, 0, LANES);
  const gc_weight_pass p = gc_weight_pass_of(&s, GC_CONV2D_ROWS);
  plan->phases = 2;
  plan->tasks[0] = p.runs * s.groups;
  plan->tasks[1] = s.groups * gc_weight_blocks(&p);
  plan->shared_bytes = p.runs * s.groups * s.depth * p.filters * s.size;
  plan->worker_bytes =
      s.depth * 8 + 64 +
      (p.masks + p.batch * (p.elements + p.sweep.chunk * s.ow * p.filters)) * s.size;
  return GC_OK;
}

/* `count` positions of the gradient of all filters into panels of two vectors of filters (or one),
 * in which position follows position; a panel holds `positions`, and these are those from `first`
 * on. */
static void NAME(turn_filters)(const REAL *grad, int64_t ld, int64_t filters, int64_t count,
                               int64_t positions, int64_t first, REAL *to) {
  for (int64_t i = 0; i < filters; i += LANES) {
    const int64_t start = i / (2 * LANES) * (2 * LANES), n = gc_min(LANES, filters - i);
    const int64_t width = filters - start > LANES ? 2 * LANES : LANES;
    REAL *at = to + start * positions + first * width + (i - start);
    int64_t p = 0;
    for (; n == LANES && p + LANES <= count; p += LANES, at += LANES * width)
      NAME(transpose_square)(grad + i * ld + p, ld, at, width);
    for (; p < count; p++, at += width)
      for (int64_t j = 0; j < LANES; j++)
        at[j] = j < n ? grad[(i + j) * ld + p] : 0;
  }
}

/* Adds what `images` copies, `rows` rows of outputs from row `first` on, give to the sums of a
 * run. */
static void NAME(sum_windows)(const gc_weight_pass *p, const int64_t *offset, int64_t images,
                              int64_t first, int64_t rows, const REAL *copy, const REAL *grad,
                              bool add, REAL *sum) {
  const gc_conv2d *s = &p->s;
  const int64_t count = rows * s->ow, line = p->sweep.columns.extent;
  NAME(stretch) part = {.images = images, .image = p->elements, .positions = count, .add = add};
  for (int64_t k = 0, n = 0; k < s->depth; k += n) {
    n = gc_min(p->step, p->whole - k % p->whole);
    const gc_inside taps = {k / p->across, (k + n - 1) / p->across + 1};
    const gc_inside inside = gc_outputs_inside(&p->sweep.row, taps, first, rows);
    part.lines = inside.to - inside.from, part.line = line, part.n = s->ow;
    if (line == s->ow)
      part.n *= part.lines, part.lines = 1;
    for (int64_t i = 0; i < p->filters; i += 2 * LANES) {
      const int64_t vectors = p->filters - i > LANES ? 2 : 1;
      const REAL *from = grad + i * images * count + inside.from * s->ow * vectors * LANES;
      NAME(taps)
      [vectors - 1][n - 1](&part, copy + inside.from *line, offset + k, from,
                           sum + k *p->filters + i, p->filters);
    }
  }
}

static void NAME(weight_run)(const gc_job *job, const gc_weight_pass *p) {
  const gc_tensor *t = job->call->tensors;
  const gc_conv2d *s = &p->s;
  const int64_t run = job->task / s->groups, group = job->task % s->groups;
  const int64_t last = s->images * (run + 1) / p->runs, positions = s->oh * s->ow;
  int64_t *const offset = job->own;
  REAL *const copy = (REAL *)((char *)job->own + (s->depth * 8 + 63) / 64 * 64);
  LANE_TYPE *const masks = (LANE_TYPE *)(copy + p->batch * p->elements);
  REAL *const turned = copy + p->batch * p->elements + p->masks;
  REAL *const sum = (REAL *)job->shared + job->task * s->depth * p->filters;
  bool add = false;
  gc_sweep_offsets(&p->sweep, offset);
  for (int64_t n = s->images * run / p->runs; positions && n < last; n += p->batch) {
    const int64_t images = gc_min(p->batch, last - n);
    for (int64_t first = 0; first < s->oh; first += p->sweep.chunk, add = true) {
      const int64_t rows = gc_min(p->sweep.chunk, s->oh - first), count = rows * s->ow;
      for (int64_t i = 0; i < images; i++) {
        const int64_t plane = (n + i) * s->groups + group;
        NAME(copy_source)(&p->sweep, (const REAL *)gc_first(&t[1]) + plane * s->c * s->h * s->w,
                          first, rows, copy + i * p->elements, masks);
        NAME(turn_filters)((const REAL *)gc_first(&t[0]) + plane * s->oc * positions +
                               first * s->ow,
                           positions, s->oc, count, images * count, i * count, turned);
      }
      NAME(sum_windows)(p, offset, images, first, rows, copy, turned, add, sum);
    }
  }
  if (!add)
    memset(sum, 0, (size_t)(s->depth * p->filters) * sizeof(REAL));
}

/* Some rows of the matrix of windows, all filters of a group. */
static void NAME(add_runs)(const gc_job *job, const gc_weight_pass *p) {
  const gc_conv2d *s = &p->s;
  const int64_t blocks = gc_weight_blocks(p), group = job->task / blocks;
  const int64_t from = job->task % blocks * p->block, to = gc_min(s->depth, from + p->block);
  const int64_t size = s->depth * p->filters, runs = gc_min(p->runs, s->images);
  REAL *const out = (REAL *)gc_first(&job->call->tensors[2]) + group * s->oc * s->depth;
  for (int64_t k = from; k < to; k++) {
    const int64_t row = k / p->across, column = k % p->across;
    const int64_t at = (column / s->kw * s->kh + row) * s->kw + column % s->kw;
    for (int64_t i = 0; i < s->oc; i += LANES) {
      double sum[GC_VECTOR_BYTES / sizeof(REAL)] = {0};
      for (int64_t run = 0; run < runs; run++) {
        const REAL *part =
            (const REAL *)job->shared + (run * s->groups + group) * size + k * p->filters + i;
        for (int64_t j = 0; j < LANES; j++)
          sum[j] += (double)part[j];
      }
      for (int64_t j = 0; j < gc_min(LANES, s->oc - i); j++)
        out[(i + j) * s->depth + at] = (REAL)sum[j];
    }
  }
}

static void NAME(run_conv2d_grad_weight)(const gc_job *job) {
  const gc_conv2d s = gc_conv2d_shape(job->call, 1, 2, 0, LANES);
  const gc_weight_pass p = gc_weight_pass_of(&s, GC_CONV2D_ROWS);
  if (job->phase == 0)
    NAME(weight_run)(job, &p);
  else
    NAME(add_runs)(job, &p);
}

/* ---- grad_bias = the sums of grad over images and positions; tensors grad, grad_bias ---- */

static int NAME(plan_conv2d_grad_bias)(const gc_call *call, gc_plan *plan, gc_error *error) {
  (void)error;
  return gc_plan_simple(plan, call->tensors[1].shape[0]);
}

static void NAME(run_conv2d_grad_bias)(const gc_job *job) {
  const gc_tensor *grad = &job->call->tensors[0];
  const int64_t positions = grad->shape[2] * grad->shape[3], filters = grad->shape[1];
  const int64_t images = positions ? grad->shape[0] : 0;
  double total = 0;
  for (int64_t n = 0; n < images; n++) {
    const REAL *plane = (const REAL *)gc_first(grad) + (n * filters + job->task) * positions;
    GC_SUM(sum, positions, i, (double)plane[i]);
    total += sum;
  }
  ((REAL *)gc_first(&job->call->tensors[1]))[job->task] = (REAL)total;
}
