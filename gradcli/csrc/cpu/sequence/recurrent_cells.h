/* recurrent_cells.h -- LSTM, GRU and the plain recurrent layer over a whole sequence, as cells of
 * recurrent.h. What the input adds to the gates has been computed for all steps before. */
#ifndef GC_RECURRENT_CELLS_H
#define GC_RECURRENT_CELLS_H

#include "../../maths_shared.h"
#include "../kernel.h"
#include "../type.h"
#include "recurrent.h"

static const gc_cell gc_lstm = {
    .gates = 4, .states = 2, .h0 = 2, .y = 5, .w = 3, .slopes = 4, .blocks = {5, 6}};
static const gc_cell gc_gru = {
    .gates = 3, .states = 1, .h0 = 3, .y = 6, .w = 4, .slopes = 4, .blocks = {5, 5}};
static const gc_cell gc_rnn = {
    .gates = 1, .states = 1, .h0 = 2, .y = 3, .w = 2, .slopes = 1, .blocks = {1, 1}};

/* The functions of kernels.h; the last slope of a gru is that of what r scales. */
#define CELL(name, last, add)                                                                      \
  static int NAME(plan_##name##_forward)(const gc_call *call, gc_plan *plan, gc_error *error) {    \
    return NAME(plan_cell)(call, plan, error, &gc_##name, false);                                  \
  }                                                                                                \
  static int NAME(plan_##name##_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {   \
    return NAME(plan_cell)(call, plan, error, &gc_##name, true);                                   \
  }                                                                                                \
  static void NAME(run_##name##_forward)(const gc_job *job) {                                      \
    NAME(cell_forward)(job, gc_##name, NAME(name##_forward));                                      \
  }                                                                                                \
  static void NAME(run_##name##_backward)(const gc_job *job) {                                     \
    NAME(cell_backward)(job, gc_##name, last, add, NAME(name##_backward));                         \
  }

/* ---- LSTM: gates_x (T, B, 4H), w (4H, H), h0, c0 (B, H) -> gates (T, B, 4H), which may be gates_x
 * itself, in the order i, f, g, o; y (T, B, H); c (T + 1, B, H) in the order of work, from c0 on.
 * Backward: grad of y, gates, c, w, grads of h_n and c_n -> grads of the gates' sums, and of h0 and
 * c0 (2, B, H). ---- */

/* i, f, g, o, one after another, n numbers each, from their sums; then c = f c + i g and
 * h = o tanh(c). */
static void NAME(lstm_units)(REAL *restrict gates, REAL *restrict c, REAL *restrict h, int64_t n) {
  REAL *const g = gates + 2 * n, *const o = gates + 3 * n;
  for (int64_t k = 0; k < 2 * n; k++)
    gates[k] = m_sigmoid(gates[k]);
  for (int64_t k = 0; k < n; k++)
    g[k] = m_tanh(g[k]);
  for (int64_t k = 0; k < n; k++)
    o[k] = m_sigmoid(o[k]);
  for (int64_t k = 0; k < n; k++) {
    c[k] = gates[n + k] * c[k] + gates[k] * gates[2 * n + k];
    h[k] = gates[3 * n + k] * m_tanh(c[k]);
  }
}

static void NAME(lstm_forward)(const NAME(unit_block) * b) {
  for (int64_t g = 0; g < 4; g++)
    NAME(sum_gate)(b, g, true, 0, b->gates + g * b->n);
  NAME(lstm_units)(b->gates, b->c, b->h, b->n);
  for (int64_t g = 0; g < 4; g++)
    NAME(give_units)(b, b->gates + g * b->n, NAME(gate_of)(b, 4, g));
}

/* `gates` holds i, f, g, o, n numbers each, and becomes the gradients of their sums; dc, the
 * gradient of c, becomes that of c before. */
static void NAME(lstm_slopes)(REAL *restrict gates, const REAL *restrict c,
                              const REAL *restrict c_before, const REAL *restrict dh,
                              REAL *restrict dc, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const REAL i = gates[k], f = gates[n + k], g = gates[2 * n + k], o = gates[3 * n + k];
    const REAL y = m_tanh(c[k]), slope = dc[k] + dh[k] * o * (1 - y * y);
    gates[k] = slope * g * i * (1 - i);
    gates[n + k] = slope * c_before[k] * f * (1 - f);
    gates[2 * n + k] = slope * i * (1 - g * g);
    gates[3 * n + k] = dh[k] * y * o * (1 - o);
    dc[k] = slope * f;
  }
}

static void NAME(lstm_backward)(const NAME(unit_block) * b) {
  REAL *const c = b->gates + 4 * b->n, *const c_before = c + b->n;
  NAME(take_units)(b, NAME(state_of)(b, 2, b->step + 1), c);
  NAME(take_units)(b, NAME(state_of)(b, 2, b->step), c_before);
  NAME(lstm_slopes)(b->gates, c, c_before, b->h, b->c, b->n);
}

CELL(lstm, 3, false)

/* ---- GRU: gates_x (T, B, 3H), w (3H, H), bias (3H), h0 (B, H) -> gates (T, B, 3H), which may be
 * gates_x itself, in the order r, z, n; what r scales (T, B, H) in the order of work; y (T, B, H).
 * Backward: grad of y, gates, what r scales, the states before each step (T, B, H), w, grad of h_n
 * -> grads of the sums of r, z and n and of what r scales (T, B, 4H), and of h0 (1, B, H). ---- */

/* `gates` holds the sums of r and z, what r scales, and what the input adds to n, n numbers each;
 * h the state before. r and z become themselves, the last n = tanh(last + r * scaled), and
 * h = n + z (h - n). */
static void NAME(gru_units)(REAL *restrict gates, REAL *restrict h, int64_t n) {
  for (int64_t k = 0; k < 2 * n; k++)
    gates[k] = m_sigmoid(gates[k]);
  for (int64_t k = 0; k < n; k++) {
    const REAL fresh = m_tanh(gates[3 * n + k] + gates[k] * gates[2 * n + k]);
    gates[3 * n + k] = fresh;
    h[k] = fresh + gates[n + k] * (h[k] - fresh);
  }
}

static void NAME(gru_forward)(const NAME(unit_block) * b) {
  REAL *const scaled = b->gates + 2 * b->n, *const fresh = scaled + b->n;
  for (int64_t g = 0; g < 3; g++)
    NAME(sum_gate)(b, g, g < 2, 2, b->gates + g * b->n);
  NAME(give_units)(b, scaled, NAME(state_of)(b, 5, b->step));
  NAME(take_units)(b, NAME(gate_of)(b, 0, 2), fresh);
  NAME(take_units)(b, (NAME(lines)){b->before + b->units.first, b->r->blocks * b->r->width}, b->h);
  NAME(gru_units)(b->gates, b->h, b->n);
  for (int64_t g = 0; g < 3; g++)
    NAME(give_units)(b, g < 2 ? b->gates + g * b->n : fresh, NAME(gate_of)(b, 4, g));
}

/* `gates` holds r, z, n and what r scales, n numbers each, and becomes their gradients (of r, z and
 * n before the activation); dh, the gradient of h, becomes what goes to h before past the gates. */
static void NAME(gru_slopes)(REAL *restrict gates, const REAL *restrict h_before, REAL *restrict dh,
                             int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const REAL r = gates[k], z = gates[n + k], fresh = gates[2 * n + k], scaled = gates[3 * n + k];
    const REAL slope = dh[k] * (1 - z) * (1 - fresh * fresh);
    gates[k] = slope * scaled * r * (1 - r);
    gates[n + k] = dh[k] * (h_before[k] - fresh) * z * (1 - z);
    gates[2 * n + k] = slope;
    gates[3 * n + k] = slope * r;
    dh[k] *= z;
  }
}

static void NAME(gru_backward)(const NAME(unit_block) * b) {
  REAL *const scaled = b->gates + 3 * b->n, *const h_before = scaled + b->n;
  NAME(take_units)(b, NAME(state_of)(b, 2, b->step), scaled);
  NAME(take_units)(b, NAME(gate_of)(b, 3, 0), h_before);
  NAME(gru_slopes)(b->gates, h_before, b->h, b->n);
}

CELL(gru, 3, true)

/* ---- The plain one: h = f(sum), f being tanh, or relu where sizes[1] is not 0. sums_x (T, B, H),
 * w (H, H), h0 (B, H) -> y (T, B, H), which may be sums_x itself. Backward: grad of y, y, w, grad
 * of h_n -> grads of the sums, and of h0 (1, B, H). ---- */

static void NAME(rnn_forward)(const NAME(unit_block) * b) {
  REAL *const h = b->h;
  NAME(sum_gate)(b, 0, true, 0, h);
  if (b->job->call->sizes[1])
    for (int64_t k = 0; k < b->n; k++)
      h[k] = h[k] < 0 ? 0 : h[k];
  else
    for (int64_t k = 0; k < b->n; k++)
      h[k] = m_tanh(h[k]);
}

static void NAME(rnn_backward)(const NAME(unit_block) * b) {
  REAL *const y = b->gates, *const dh = b->h;
  for (int64_t k = 0; k < b->n; k++)
    y[k] = dh[k] * (b->job->call->sizes[1] ? y[k] > 0 : 1 - y[k] * y[k]);
}

CELL(rnn, 0, false)

#undef CELL

#endif
