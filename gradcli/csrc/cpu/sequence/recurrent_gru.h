/* recurrent_gru.h -- GRU over a whole sequence. Gates stand in the order r, z, n; what the input
 * adds to them has been computed for all steps before. */

/* gates_x (T, B, 3H), w (3H, H), bias (3H), h0 (B, H) -> gates (T, B, 3H), which may be gates_x
 * itself, what r scales (T, B, H) in the order of work, and y (T, B, H). */
static int NAME(plan_gru_forward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  GC_REQUIRE(t[0].ndim == 3, 0, "(steps, batch, 3 * hidden)");
  GC_REQUIRE(t[1].ndim == 2, 1, "(3 * hidden, hidden)");
  const gc_recurrent r = NAME(recurrent)(call, &t[0], &t[1]);
  GC_SEQUENCE(0, r, 3 * r.hidden);
  GC_REQUIRE(gc_is_left_out(&t[2]) || gc_is_vector(&t[2], 3 * r.hidden), 2, "a bias for each gate");
  GC_STATE_OR_NONE(3, r);
  GC_SEQUENCE(4, r, 3 * r.hidden);
  GC_STATES(5, r, r.steps);
  GC_SEQUENCE(6, r, r.hidden);
  return NAME(plan_recurrent)(call, plan, error, &r, 1, 3, 5, 2);
}

/* `gates` holds the sums of r and z, what r scales, and what the input adds to n, n numbers each;
 * h the state before. r and z become themselves, the last n = tanh(last + r * scaled), and
 * h = n + z (h - n). */
static void NAME(gru_units)(REAL *restrict gates, REAL *restrict h, int64_t n) {
  for (int64_t k = 0; k < 2 * n; k++)
    gates[k] = m_sigmoid(gates[k]);
  for (int64_t k = 0; k < n; k++) {
    const REAL made = m_tanh(gates[3 * n + k] + gates[k] * gates[2 * n + k]);
    gates[3 * n + k] = made;
    h[k] = made + gates[n + k] * (h[k] - made);
  }
}

static void NAME(run_gru_forward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_recurrent r = NAME(recurrent)(job->call, &t[0], &t[1]);
  if (job->phase == 0) {
    NAME(pack_gates)(job, &r, &t[1]);
    return;
  }
  const int64_t first = job->task * r.rows, m = gc_min(r.rows, r.batch - first);
  const int64_t padded = r.blocks * r.width;
  REAL *before = job->own, *after = before + r.rows * padded;
  REAL *const gates = after + r.rows * padded;
  NAME(take_rows)(&t[3], &r, first, m, before);
  for (int64_t step = 0; step < r.steps; step++) {
    const int64_t time = gc_time_of(&r, step);
    for (int64_t block = 0; block < r.blocks; block++) {
      const gc_units u = NAME(units)(&r, block);
      const int64_t n = m * u.width, last = 2 * r.hidden + u.first;
      REAL *const scaled = gates + 2 * n, *const made = gates + 3 * n, *const h = gates + 4 * n;
      for (int64_t g = 0; g < 3; g++) {
        const NAME(lines) input = NAME(at_time)(&t[0], time, first, g * r.hidden + u.first);
        const NAME(lines) nothing = {NULL, 0};
        NAME(sum_gate)(job, &r, block, g, g < 2 ? input : nothing, &t[2], before, m, gates + g * n);
      }
      NAME(give)(scaled, u.width, m, u.count, NAME(at_time)(&t[5], step, first, u.first));
      NAME(take)(NAME(at_time)(&t[0], time, first, last), m, u.count, made, u.width);
      NAME(take)((NAME(lines)){before + u.first, padded}, m, u.count, h, u.width);
      NAME(gru_units)(gates, h, n);
      for (int64_t g = 0; g < 2; g++)
        NAME(give)(gates + g * n, u.width, m, u.count,
                   NAME(at_time)(&t[4], time, first, g * r.hidden + u.first));
      NAME(give)(made, u.width, m, u.count, NAME(at_time)(&t[4], time, first, last));
      NAME(give)(h, u.width, m, u.count, NAME(at_time)(&t[6], time, first, u.first));
      NAME(give)(h, u.width, m, u.count, (NAME(lines)){after + u.first, padded});
    }
    REAL *const swap = before;
    before = after;
    after = swap;
  }
}

/* grad of y (T, B, H), gates, scaled, the states before each step (T, B, H), w, grad of h_n (B, H)
 * -> grads of the sums of r, z and n and of what r scales (T, B, 4H), and of h0 (1, B, H). */
static int NAME(plan_gru_backward)(const gc_call *call, gc_plan *plan, gc_error *error) {
  const gc_tensor *t = call->tensors;
  GC_REQUIRE(t[1].ndim == 3, 1, "(steps, batch, 3 * hidden)");
  GC_REQUIRE(t[4].ndim == 2, 4, "(3 * hidden, hidden)");
  const gc_recurrent r = NAME(recurrent)(call, &t[1], &t[4]);
  GC_SEQUENCE_OR_NONE(0, r, r.hidden);
  GC_SEQUENCE(1, r, 3 * r.hidden);
  GC_STATES(2, r, r.steps);
  GC_SEQUENCE(3, r, r.hidden);
  GC_STATE_OR_NONE(5, r);
  GC_SEQUENCE(6, r, 4 * r.hidden);
  GC_STATES(7, r, 1);
  return NAME(plan_recurrent)(call, plan, error, &r, 4, 3, 5, 4);
}

/* `gates` holds r, z, n and what r scales, n numbers each, and becomes their gradients (of r, z and
 * n before the activation); dh, the gradient of h, becomes what goes to h before past the gates. */
static void NAME(gru_units_backward)(REAL *restrict gates, const REAL *restrict h_before,
                                     REAL *restrict dh, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const REAL r = gates[k], z = gates[n + k], made = gates[2 * n + k], scaled = gates[3 * n + k];
    const REAL slope = dh[k] * (1 - z) * (1 - made * made);
    gates[k] = slope * scaled * r * (1 - r);
    gates[n + k] = dh[k] * (h_before[k] - made) * z * (1 - z);
    gates[2 * n + k] = slope;
    gates[3 * n + k] = slope * r;
    dh[k] *= z;
  }
}

static void NAME(run_gru_backward)(const gc_job *job) {
  const gc_tensor *t = job->call->tensors;
  const gc_recurrent r = NAME(recurrent)(job->call, &t[1], &t[4]);
  if (job->phase == 0) {
    NAME(pack_units)(job, &r, &t[4]);
    return;
  }
  const int64_t first = job->task * r.rows, m = gc_min(r.rows, r.batch - first);
  const int64_t padded = r.blocks * r.width;
  REAL *const dh = job->own, *const sums = dh + r.rows * padded;
  REAL *const gates = sums + r.rows * 3 * padded;
  NAME(take_state)(&t[5], &r, first, m, dh);
  for (int64_t step = r.steps; step-- > 0;) {
    const int64_t time = gc_time_of(&r, step);
    for (int64_t block = 0; block < r.blocks; block++) {
      const gc_units u = NAME(units)(&r, block);
      const int64_t n = m * u.width;
      REAL *const h_before = gates + 4 * n, *const own_dh = dh + block * m * r.width;
      for (int64_t g = 0; g < 3; g++)
        NAME(take)(NAME(at_time)(&t[1], time, first, g * r.hidden + u.first), m, u.count,
                   gates + g * n, u.width);
      NAME(take)(NAME(at_time)(&t[2], step, first, u.first), m, u.count, gates + 3 * n, u.width);
      NAME(take)(NAME(at_time)(&t[3], time, first, u.first), m, u.count, h_before, u.width);
      if (!gc_is_left_out(&t[0]))
        NAME(add_lines)(NAME(at_time)(&t[0], time, first, u.first), m, u.count, own_dh, u.width);
      NAME(gru_units_backward)(gates, h_before, own_dh, n);
      for (int64_t g = 0; g < 4; g++)
        NAME(give)(gates + g * n, u.width, m, u.count,
                   NAME(at_time)(&t[6], time, first, g * r.hidden + u.first));
      for (int64_t g = 0; g < 3; g++) /* through w went what r scales, in the place of n */
        NAME(give)(gates + (g < 2 ? g : 3) * n, u.width, m, u.count,
                   (NAME(lines)){sums + g * r.hidden + u.first, 3 * padded});
    }
    NAME(units_from_gates)(job, &r, sums, m, dh, true);
  }
  NAME(give_state)(dh, &r, m, &t[7], 0, first);
}
