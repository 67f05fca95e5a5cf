/* random.h -- uniform and normal numbers and dropout. Which bits an element gets depends on seed,
 * step, draw and its position alone (random_philox.h), so tasks may be cut anywhere between fills.
 */
#ifndef GC_RANDOM_H
#define GC_RANDOM_H

#include "../../maths_shared.h"
#include "../elementwise/copy.h"
#include "../elementwise/maths_base.h"
#include "../kernel.h"
#include "../type.h"
#include "../walk.h"
#include "random_philox.h"

#ifdef GC_IS_FLOAT
enum { NAME(per_fill) = GC_FILL_WORDS }; /* numbers of one fill */
#else
enum { NAME(per_fill) = GC_FILL_PAIRS };
#endif

/* In [0, 1): 24 bits of one word for float, 53 bits of two for double. */
static inline void NAME(random_units)(const gc_fill *fill, REAL *out) {
  for (int64_t i = 0; i < NAME(per_fill); i++)
#ifdef GC_IS_FLOAT
    out[i] = (float)(int32_t)(fill->word[i / GC_FILL_BLOCKS][i % GC_FILL_BLOCKS] >> 8) * 0x1p-24f;
#else
    out[i] = (double)(int64_t)(gc_random_64(fill, i) >> 11) * 0x1p-53;
#endif
}

static int NAME(plan_random)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = gc_plan_random(call, 0, 1, error);
  if (status)
    return status;
  return gc_plan_simple(plan, gc_ceil_div(gc_numel(&call->tensors[1]), GC_BLOCK));
}

/* Runs `body` once a fill: `u` holds its units, `v` takes the numbers; v is then copied out. */
#define RANDOM_FILLS(body)                                                                         \
  const gc_philox philox = gc_philox_of(job->call, 0);                                             \
  const int64_t first = job->task * GC_BLOCK;                                                      \
  const int64_t end = gc_min(gc_numel(&job->call->tensors[1]), first + GC_BLOCK);                  \
  REAL *out = (REAL *)gc_first(&job->call->tensors[1]);                                            \
  for (int64_t at = first; at < end; at += NAME(per_fill)) {                                       \
    gc_fill fill;                                                                                  \
    REAL u[NAME(per_fill)], v[NAME(per_fill)];                                                     \
    gc_philox_fill(&philox, at / NAME(per_fill), &fill);                                           \
    NAME(random_units)(&fill, u);                                                                  \
    body;                                                                                          \
    memcpy(out + at, v, (size_t)gc_min(NAME(per_fill), end - at) * sizeof(REAL));                  \
  }

/* low + (high - low) u; where that rounds up to high, it is low. Options: low, high. */
static void NAME(run_uniform)(const gc_job *job) {
  const REAL low = (REAL)job->call->options[0], high = (REAL)job->call->options[1];
  RANDOM_FILLS({
    for (int64_t i = 0; i < NAME(per_fill); i++) {
      v[i] = low + (high - low) * u[i];
      v[i] = v[i] >= high ? low : v[i];
    }
  })
}

/* ---- state, draws (n) -> u (n, k): row i holds the first k units of draw number draws[i] ---- */

static int NAME(plan_uniform_at)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  const int status = gc_plan_random(call, 0, 2, error);
  if (status)
    return status;
  GC_REQUIRE(t[2].shape[1] <= NAME(per_fill), 2, "at most 128 numbers of a draw");
  return gc_plan_simple(plan, gc_ceil_div(t[1].shape[0], GC_ROWS));
}

static void NAME(run_uniform_at)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const int64_t n = t[1].shape[0], k = t[2].shape[1];
  const int64_t *draws = (const int64_t *)gc_first(&t[1]);
  REAL *out = (REAL *)gc_first(&t[2]);
  for (int64_t i = job->task * GC_ROWS; i < gc_min(n, (job->task + 1) * GC_ROWS); i++) {
    if (draws[i] < 0 || draws[i] > UINT32_MAX) {
      gc_bad_index(job, 1, i, draws[i], (int64_t)UINT32_MAX + 1);
      continue;
    }
    gc_philox philox = gc_philox_of(job->call, 0);
    gc_fill fill;
    REAL u[NAME(per_fill)];
    philox.counter[1] += (uint32_t)draws[i];
    gc_philox_fill(&philox, 0, &fill);
    NAME(random_units)(&fill, u);
    memcpy(out + i * k, u, (size_t)k * sizeof(REAL));
  }
}

/* sin and cos of a whole turn times u, u in [0, 1). In float: the nearest quarter turn is taken
 * off, what is left lies within an eighth of a turn. */
static inline void NAME(random_turn)(REAL u, REAL *sine, REAL *cosine) {
#ifdef GC_IS_FLOAT
  const int32_t quarter = (int32_t)(u * 4 + 0.5f);
  const float f = u * 4 - (float)quarter, z = f * f;
  float s = -0.00468860613f, c = 0.000893477583f;
  s = M_FMA(s, z, 0.0797134042f);
  s = M_FMA(s, z, -0.645966709f);
  s = M_FMA(s, z, 1.57079637f) * f;
  c = M_FMA(c, z, -0.0208552405f);
  c = M_FMA(c, z, 0.253668517f);
  c = M_FMA(c, z, -1.23370051f);
  c = M_FMA(c, z, 1);
  const float a = quarter & 1 ? c : s, b = quarter & 1 ? s : c;
  *sine = quarter & 2 ? -a : a;
  *cosine = (quarter + 1) & 2 ? -b : b;
#else
  *sine = sin(6.283185307179586 * u);
  *cosine = cos(6.283185307179586 * u);
#endif
}

/* Box-Muller: numbers i and i + 64 of a fill make a pair. 1 - u is in (0, 1], so its log is finite.
 * Options: mean, standard deviation. */
static void NAME(run_normal)(const gc_job *job) {
  const REAL mean = (REAL)job->call->options[0], deviation = (REAL)job->call->options[1];
  RANDOM_FILLS({
    for (int64_t half = 0; half < NAME(per_fill); half += 2 * GC_FILL_BLOCKS)
      for (int64_t i = half; i < half + GC_FILL_BLOCKS; i++) {
        REAL sine;
        REAL cosine;
        const REAL radius = m_sqrt(-2 * m_log(1 - u[i]));
        NAME(random_turn)(u[i + GC_FILL_BLOCKS], &sine, &cosine);
        v[i] = mean + deviation * radius * cosine;
        v[i + GC_FILL_BLOCKS] = mean + deviation * radius * sine;
      }
  })
}

/* ---- dropout: x, state -> y, kept (bytes 0 and 1) ---- */

static int NAME(plan_dropout)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const int status = gc_plan_random(call, 1, 0, error);
  if (status)
    return status;
  GC_REQUIRE(call->options[0] >= 0 && call->options[0] <= 1, 0, "a probability");
  return NAME(plan_blocks)(call, plan, error);
}

static int NAME(plan_dropout_grad)(const gc_call *call, gc_plan *plan, gc_error *error) {
  GC_REQUIRE(call->options[0] >= 0 && call->options[0] <= 1, 0, "a probability");
  return NAME(plan_blocks)(call, plan, error);
}

static inline REAL NAME(dropout_scale)(const gc_job *job) {
  const double p = job->call->options[0];
  return p < 1 ? (REAL)(1 / (1 - p)) : 0;
}

/* y = x / (1 - p) where the element is kept, else 0 x, which is NaN where x is not finite. An
 * element is dropped with probability p rounded to 32 bits, for float and double alike. */
static void NAME(run_dropout_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_philox philox = gc_philox_of(job->call, 1);
  const REAL scale = NAME(dropout_scale)(job);
  const uint32_t below = (uint32_t)fmin(job->call->options[0] * 0x1p32, 0xFFFFFFFF);
  BLOCK_OF(job, first, count);
  for (int64_t at = first; at < first + count; at += GC_FILL_WORDS) {
    const int64_t n = gc_min(GC_FILL_WORDS, first + count - at);
    const REAL *x = (const REAL *)gc_first(&t[0]) + at;
    REAL *y = (REAL *)gc_first(&t[2]) + at;
    uint8_t *kept = (uint8_t *)gc_first(&t[3]) + at;
    gc_fill fill;
    uint32_t bits[GC_FILL_WORDS];
    gc_philox_fill(&philox, at / GC_FILL_WORDS, &fill);
    memcpy(bits, fill.word, sizeof bits);
    for (int64_t i = 0; i < n; i++) {
      kept[i] = bits[i] >= below;
      y[i] = x[i] * (bits[i] >= below ? scale : 0);
    }
  }
}

static void NAME(run_dropout_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const REAL scale = NAME(dropout_scale)(job);
  BLOCK_OF(job, first, n);
  const REAL *grad = (const REAL *)gc_first(&t[0]) + first;
  const uint8_t *kept = (const uint8_t *)gc_first(&t[1]) + first;
  REAL *out = (REAL *)gc_first(&t[2]) + first;
  for (int64_t i = 0; i < n; i++)
    out[i] = grad[i] * (kept[i] ? scale : 0);
}

#undef RANDOM_FILLS

#endif
