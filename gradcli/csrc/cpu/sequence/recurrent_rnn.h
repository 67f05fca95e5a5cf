/* recurrent_rnn.h -- h = f(sum) over a whole sequence, f being tanh, or relu where sizes[1] is not
 * 0. What the input adds to the sums has been computed for all steps before. */

/* sums_x (T, B, H), w (H, H), h0 (B, H) -> y (T, B, H), which may be sums_x itself. */
static int NAME(plan_rnn_forward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  GC_REQUIRE(t[0].ndim == 3, 0, "(steps, batch, hidden)");
  GC_REQUIRE(t[1].ndim == 2, 1, "(hidden, hidden)");
  const gc_recurrent r = NAME(recurrent)(call, &t[0], &t[1]);
  GC_SEQUENCE(0, r, r.hidden);
  GC_STATE_OR_NONE(2, r);
  GC_SEQUENCE(3, r, r.hidden);
  return NAME(plan_recurrent)(call, plan, error, &r, 1, 1, 1, 2);
}

static void NAME(run_rnn_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_recurrent r = NAME(recurrent)(job->call, &t[0], &t[1]);
  if (job->phase == 0) {
    NAME(pack_gates)(job, &r, &t[1]);
    return;
  }
  const int64_t first = job->task * r.rows, m = gc_min(r.rows, r.batch - first);
  const int64_t padded = r.blocks * r.width;
  REAL *before = job->own, *after = before + r.rows * padded;
  REAL *const h = after + r.rows * padded;
  NAME(take_rows)(&t[2], &r, first, m, before);
  for (int64_t step = 0; step < r.steps; step++) {
    const int64_t time = gc_time_of(&r, step);
    for (int64_t block = 0; block < r.blocks; block++) {
      const gc_units u = NAME(units)(&r, block);
      NAME(sum_gate)(job, &r, block, 0, NAME(at_time)(&t[0], time, first, u.first), NULL, before, m,
                     h);
      if (job->call->sizes[1])
        for (int64_t k = 0; k < m * u.width; k++)
          h[k] = h[k] < 0 ? 0 : h[k];
      else
        for (int64_t k = 0; k < m * u.width; k++)
          h[k] = m_tanh(h[k]);
      NAME(give)(h, u.width, m, u.count, NAME(at_time)(&t[3], time, first, u.first));
      NAME(give)(h, u.width, m, u.count, (NAME(lines)){after + u.first, padded});
    }
    REAL *const swap = before;
    before = after;
    after = swap;
  }
}

/* grad of y (T, B, H), y, w, grad of h_n (B, H) -> grads of the sums (T, B, H), and of h0 (1, B,
 * H).
 */
static int NAME(plan_rnn_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  GC_REQUIRE(t[1].ndim == 3, 1, "(steps, batch, hidden)");
  GC_REQUIRE(t[2].ndim == 2, 2, "(hidden, hidden)");
  const gc_recurrent r = NAME(recurrent)(call, &t[1], &t[2]);
  GC_SEQUENCE_OR_NONE(0, r, r.hidden);
  GC_SEQUENCE(1, r, r.hidden);
  GC_STATE_OR_NONE(3, r);
  GC_SEQUENCE(4, r, r.hidden);
  GC_STATES(5, r, 1);
  return NAME(plan_recurrent)(call, plan, error, &r, 2, 1, 1, 2);
}

static void NAME(run_rnn_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_recurrent r = NAME(recurrent)(job->call, &t[1], &t[2]);
  if (job->phase == 0) {
    NAME(pack_units)(job, &r, &t[2]);
    return;
  }
  const int64_t first = job->task * r.rows, m = gc_min(r.rows, r.batch - first);
  const int64_t padded = r.blocks * r.width;
  REAL *const dh = job->own, *const sums = dh + r.rows * padded;
  REAL *const y = sums + r.rows * padded;
  NAME(take_state)(&t[3], &r, first, m, dh);
  for (int64_t step = r.steps; step-- > 0;) {
    const int64_t time = gc_time_of(&r, step);
    for (int64_t block = 0; block < r.blocks; block++) {
      const gc_units u = NAME(units)(&r, block);
      REAL *const own_dh = dh + block * m * r.width;
      NAME(take)(NAME(at_time)(&t[1], time, first, u.first), m, u.count, y, u.width);
      if (!gc_is_left_out(&t[0]))
        NAME(add_lines)(NAME(at_time)(&t[0], time, first, u.first), m, u.count, own_dh, u.width);
      for (int64_t k = 0; k < m * u.width; k++)
        y[k] = own_dh[k] * (job->call->sizes[1] ? y[k] > 0 : 1 - y[k] * y[k]);
      NAME(give)(y, u.width, m, u.count, NAME(at_time)(&t[4], time, first, u.first));
      NAME(give)(y, u.width, m, u.count, (NAME(lines)){sums + u.first, padded});
    }
    NAME(units_from_gates)(job, &r, sums, m, dh, false);
  }
  NAME(give_state)(dh, &r, m, &t[5], 0, first);
}
