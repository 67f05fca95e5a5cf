/* recurrent_lstm.h -- LSTM over a whole sequence. Gates stand in the order i, f, g, o; what the
 * input adds to them has been computed for all steps before. */

/* gates_x (T, B, 4H), w (4H, H), h0, c0 (B, H) -> gates (T, B, 4H), which may be gates_x
 * itself, y (T, B, H), and c (T + 1, B, H) in the order of work, from c0 on. */
static int NAME(plan_lstm_forward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  GC_REQUIRE(t[0].ndim == 3, 0, "(steps, batch, 4 * hidden)");
  GC_REQUIRE(t[1].ndim == 2, 1, "(4 * hidden, hidden)");
  const gc_recurrent r = NAME(recurrent)(call, &t[0], &t[1]);
  GC_SEQUENCE(0, r, 4 * r.hidden);
  GC_STATE_OR_NONE(2, r);
  GC_STATE_OR_NONE(3, r);
  GC_SEQUENCE(4, r, 4 * r.hidden);
  GC_SEQUENCE(5, r, r.hidden);
  GC_STATES(6, r, r.steps + 1);
  return NAME(plan_recurrent)(call, plan, error, &r, 1, 4, 5, 3);
}

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

static void NAME(run_lstm_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_recurrent r = NAME(recurrent)(job->call, &t[0], &t[1]);
  if (job->phase == 0) {
    NAME(pack_gates)(job, &r, &t[1]);
    return;
  }
  const int64_t first = job->task * r.rows, m = gc_min(r.rows, r.batch - first);
  const int64_t whole = r.rows * r.blocks * r.width;
  REAL *before = job->own, *after = before + whole, *const c = after + whole;
  REAL *const gates = c + whole;
  NAME(take_rows)(&t[2], &r, first, m, before);
  NAME(take_state)(&t[3], &r, first, m, c);
  NAME(give_state)(c, &r, m, &t[6], 0, first);
  for (int64_t step = 0; step < r.steps; step++) {
    const int64_t time = gc_time_of(&r, step);
    for (int64_t block = 0; block < r.blocks; block++) {
      const gc_units u = NAME(units)(&r, block);
      const int64_t n = m * u.width;
      REAL *const h = gates + 4 * n;
      for (int64_t g = 0; g < 4; g++)
        NAME(sum_gate)(job, &r, block, g, NAME(at_time)(&t[0], time, first, g * r.hidden + u.first),
                       NULL, before, m, gates + g * n);
      NAME(lstm_units)(gates, c + block * m * r.width, h, n);
      for (int64_t g = 0; g < 4; g++)
        NAME(give)(gates + g * n, u.width, m, u.count,
                   NAME(at_time)(&t[4], time, first, g * r.hidden + u.first));
      NAME(give)(h, u.width, m, u.count, NAME(at_time)(&t[5], time, first, u.first));
      NAME(give)(h, u.width, m, u.count, (NAME(lines)){after + u.first, r.blocks * r.width});
    }
    NAME(give_state)(c, &r, m, &t[6], step + 1, first);
    REAL *const swap = before;
    before = after;
    after = swap;
  }
}

/* grad of y (T, B, H), gates, c, w, grads of h_n and c_n (B, H) -> grads of the gates before their
 * activation (T, B, 4H), and of h0 and c0 (2, B, H). */
static int NAME(plan_lstm_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  GC_REQUIRE(t[1].ndim == 3, 1, "(steps, batch, 4 * hidden)");
  GC_REQUIRE(t[3].ndim == 2, 3, "(4 * hidden, hidden)");
  const gc_recurrent r = NAME(recurrent)(call, &t[1], &t[3]);
  GC_SEQUENCE_OR_NONE(0, r, r.hidden);
  GC_SEQUENCE(1, r, 4 * r.hidden);
  GC_STATES(2, r, r.steps + 1);
  GC_STATE_OR_NONE(4, r);
  GC_STATE_OR_NONE(5, r);
  GC_SEQUENCE(6, r, 4 * r.hidden);
  GC_STATES(7, r, 2);
  return NAME(plan_recurrent)(call, plan, error, &r, 3, 4, 6, 6);
}

/* `gates` holds i, f, g, o, n numbers each, and becomes the gradients of their sums; dc, the
 * gradient of c, becomes that of c before. */
static void NAME(lstm_units_backward)(REAL *restrict gates, const REAL *restrict c,
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

static void NAME(run_lstm_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_recurrent r = NAME(recurrent)(job->call, &t[1], &t[3]);
  if (job->phase == 0) {
    NAME(pack_units)(job, &r, &t[3]);
    return;
  }
  const int64_t first = job->task * r.rows, m = gc_min(r.rows, r.batch - first);
  const int64_t whole = r.rows * r.blocks * r.width;
  REAL *const dh = job->own, *const dc = dh + whole, *const sums = dc + whole;
  REAL *const gates = sums + 4 * whole;
  NAME(take_state)(&t[4], &r, first, m, dh);
  NAME(take_state)(&t[5], &r, first, m, dc);
  for (int64_t step = r.steps; step-- > 0;) {
    const int64_t time = gc_time_of(&r, step);
    for (int64_t block = 0; block < r.blocks; block++) {
      const gc_units u = NAME(units)(&r, block);
      const int64_t n = m * u.width;
      REAL *const c = gates + 4 * n, *const c_before = c + n, *own_dh = dh + block * m * r.width;
      for (int64_t g = 0; g < 4; g++)
        NAME(take)(NAME(at_time)(&t[1], time, first, g * r.hidden + u.first), m, u.count,
                   gates + g * n, u.width);
      NAME(take)(NAME(at_time)(&t[2], step + 1, first, u.first), m, u.count, c, u.width);
      NAME(take)(NAME(at_time)(&t[2], step, first, u.first), m, u.count, c_before, u.width);
      if (!gc_is_left_out(&t[0]))
        NAME(add_lines)(NAME(at_time)(&t[0], time, first, u.first), m, u.count, own_dh, u.width);
      NAME(lstm_units_backward)(gates, c, c_before, own_dh, dc + block * m * r.width, n);
      for (int64_t g = 0; g < 4; g++) {
        const int64_t column = g * r.hidden + u.first;
        NAME(give)(gates + g * n, u.width, m, u.count, NAME(at_time)(&t[6], time, first, column));
        NAME(give)(gates + g * n, u.width, m, u.count,
                   (NAME(lines)){sums + column, 4 * r.blocks * r.width});
      }
    }
    NAME(units_from_gates)(job, &r, sums, m, dh, false);
  }
  NAME(give_state)(dh, &r, m, &t[7], 0, first);
  NAME(give_state)(dc, &r, m, &t[7], 1, first);
}
