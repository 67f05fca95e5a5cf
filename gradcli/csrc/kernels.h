/* kernels.h -- every structured kernel, declared once; the tables of all builds and what Python
 * knows of a kernel are made from these rows. (Elementwise kernels are rows of scalar_ops.h.)
 *
 * KERNEL_REAL(name, plan, inputs, outputs, typed_by, facts): built for float and double.
 * KERNEL_ALL(...): built for the integers and bool too.
 * The row `x, p` is the functions plan_p and run_x. `typed_by` is the tensor whose element type
 * picks the build. Tensors stand in the order inputs, outputs. A name is that of an op, and
 * `_forward` or `_backward` where there is something behind the op's.
 *
 * The facts are fields of gc_facts (call.h says what each means), named as C names them. A row has
 * those that are not 0. OF(i) is the i-th input, or output, as a member of a set; ALL are all.
 */

/* clang-format off */

/* copy.h */
KERNEL_ALL(copy, copy, 1, 1, 1, .any_strides = 1, .operations = {GC_COUNT_NONE})
KERNEL_ALL(fill, fill, 0, 1, 0, .any_strides = 1, .operations = {GC_COUNT_NONE})

/* finite.h */
KERNEL_REAL(require_finite, require, 1, 0, 0, .refuses = GC_NOT_FINITE)
KERNEL_ALL(require_nonzero, require, 1, 0, 0, .refuses = GC_ZERO)

/* reduce.h, length.h, extreme.h */
KERNEL_ALL(sum, sum, 1, 1, 0)
KERNEL_REAL(mean, sum, 1, 1, 0)
KERNEL_REAL(length, sum, 1, 1, 0)
KERNEL_REAL(var, var, 1, 2, 0)
KERNEL_REAL(var_backward, var_backward, 4, 1, 0)
KERNEL_ALL(max_along, extreme, 1, 2, 0)
KERNEL_ALL(min_along, extreme, 1, 2, 0)
KERNEL_REAL(select_backward, select_backward, 2, 1, 1)
KERNEL_REAL(ties_backward, ties_backward, 3, 1, 0)

/* scan.h */
KERNEL_ALL(cumsum, scan, 1, 1, 0)
KERNEL_ALL(cumprod, scan, 1, 1, 0)
KERNEL_REAL(cumprod_backward, scan, 3, 1, 0)

/* index.h, index_backward.h */
KERNEL_ALL(index_select, index_select, 2, 1, 0, .gathers = 1, .operations = {GC_COUNT_NONE})
KERNEL_ALL(embedding,    index_select, 2, 1, 0, .gathers = 1, .operations = {GC_COUNT_NONE})
KERNEL_ALL(where,  where,    3, 1, 1, .operations = {GC_COUNT_NONE})
KERNEL_ALL(arange, arange,   0, 1, 0, .operations = {GC_COUNT_NONE})
KERNEL_ALL(tril,   triangle, 1, 1, 0, .operations = {GC_COUNT_NONE})
KERNEL_ALL(triu,   triangle, 1, 1, 0, .operations = {GC_COUNT_NONE})
KERNEL_REAL(index_select_backward, index_grad, 2, 1, 0)

/* gather.h */
KERNEL_ALL(gather,     gather,     2, 1, 0)
KERNEL_ALL(scatter,    scatter,    3, 1, 0)
KERNEL_ALL(index_copy, index_copy, 3, 1, 0)
KERNEL_ALL(flat_index, flat_index, 2, 1, 2, .from_end = 1)
KERNEL_ALL(nonzero,    nonzero,    1, 1, 0)

/* sort.h */
KERNEL_ALL(sort,         sort,         1, 2, 0)
KERNEL_ALL(searchsorted, searchsorted, 2, 1, 0)

/* random.h, random_integers.h */
KERNEL_REAL(uniform, random, 1, 1, 1, .draws = 1)
KERNEL_REAL(normal,  random, 1, 1, 1, .draws = 1)
KERNEL_REAL(uniform_at, uniform_at, 2, 1, 2, .draws = 1)
KERNEL_REAL(dropout_forward,  dropout,      2, 2, 0, .draws = 1)
KERNEL_REAL(dropout_backward, dropout_grad, 2, 1, 0, .draws = 1)
KERNEL_ALL(randint,  random_integers, 1, 1, 1)
KERNEL_ALL(randperm, randperm,        1, 1, 1)

/* optim.h, optim_adaptive.h */
KERNEL_REAL(sgd_step,          step, 2, 1, 0, .updates = ALL)
KERNEL_REAL(sgd_momentum_step, step, 2, 2, 0, .updates = ALL)
KERNEL_REAL(adam_step,         step, 2, 3, 0, .updates = ALL)
KERNEL_REAL(rmsprop_step,                   step, 2, 2, 0, .updates = ALL)
KERNEL_REAL(rmsprop_momentum_step,          step, 2, 3, 0, .updates = ALL)
KERNEL_REAL(rmsprop_centered_step,          step, 2, 3, 0, .updates = ALL)
KERNEL_REAL(rmsprop_centered_momentum_step, step, 2, 4, 0, .updates = ALL)
KERNEL_REAL(adagrad_step,      step, 2, 2, 0, .updates = ALL)
KERNEL_REAL(adadelta_step,     step, 2, 3, 0, .updates = ALL)
KERNEL_REAL(lion_step,         step, 2, 2, 0, .updates = ALL)
KERNEL_REAL(amsgrad_step,      step, 2, 4, 0, .updates = ALL)
KERNEL_REAL(radam_step,        step, 2, 3, 0, .updates = ALL)
KERNEL_REAL(nadam_step,        nadam, 2, 4, 0, .updates = ALL)
KERNEL_REAL(sum_squares, sum_squares, 1, 1, 0)
KERNEL_REAL(clip_factor, clip_factor, 1, 2, 0)
KERNEL_REAL(scale_by,    scale_by,    1, 1, 1, .updates = ALL)

/* chain.h */
KERNEL_REAL(chain, chain, 5, 3, 0, .operations = {GC_COUNT_CHAIN})

/* softmax.h */
KERNEL_REAL(softmax_forward, rows, 1, 1, 0)
KERNEL_REAL(softmax_backward, rows, 2, 1, 0)
KERNEL_REAL(log_softmax_forward, rows, 1, 1, 0)
KERNEL_REAL(log_softmax_backward, rows, 2, 1, 0)

/* norm.h, norm_batch.h, norm_group.h */
KERNEL_REAL(layer_norm, layer_norm, 3, 3, 0)
KERNEL_REAL(layer_norm_backward, layer_norm_backward, 5, 3, 0)
KERNEL_REAL(batch_norm_train, batch_norm_train, 3, 5, 0, .updates = OF(3) | OF(4))
KERNEL_REAL(batch_norm_eval, batch_norm_eval, 5, 3, 0)
/* Of two samples the gradient is a difference of numbers nearly equal; the CPU's float32 is as far
 * off. */
KERNEL_REAL(batch_norm_backward, batch_norm_backward, 5, 3, 0, .bound = 1e-5)
KERNEL_REAL(group_norm, group_norm, 3, 3, 0)
KERNEL_REAL(group_norm_backward, group_norm_backward, 5, 3, 0)

/* loss.h */
KERNEL_REAL(cross_entropy, cross_entropy, 3, 3, 0)
KERNEL_REAL(cross_entropy_backward, cross_entropy_backward, 6, 1, 0)
KERNEL_REAL(mse, mse, 2, 1, 0)
KERNEL_REAL(mse_backward, mse_backward, 3, 1, 0)

/* matmul.h */
KERNEL_REAL(matmul, matmul, 3, 1, 0,
            .product = 1, .operations = {GC_COUNT_MATMUL, 3, 0}, .matrices = OF(0) | OF(1))
KERNEL_REAL(matmul_then, matmul_then, 4, 2, 0,
            .then_of = "matmul", .row_size = 0,
            .operations = {GC_COUNT_MATMUL, 5, 0}, .matrices = OF(0) | OF(1))

/* attention.h, attention_backward.h */
KERNEL_REAL(attention_forward, attention, 4, 2, 0,
            .operations = {GC_COUNT_ATTENTION, 1, 1}, .rows = OF(0) | OF(1) | OF(2))
/* The scores again; then the gradients of scores and v, and of q and k. */
KERNEL_REAL(attention_backward, attention_backward, 7, 1, 0,
            .operations = {GC_COUNT_ATTENTION, 3, 2},
            .rows = OF(0) | OF(1) | OF(2) | OF(4) | OF(6))

/* recurrent_lstm.h, recurrent_gru.h, recurrent_rnn.h */
KERNEL_REAL(lstm_forward, lstm_forward, 4, 3, 0,
            .operations = {GC_COUNT_STEPS, 0, 1}, .in_place = OF(0))
KERNEL_REAL(lstm_backward, lstm_backward, 6, 2, 0,
            .operations = {GC_COUNT_STEPS, 1, 3}, .in_place = OF(1))
KERNEL_REAL(gru_forward, gru_forward, 4, 3, 0,
            .operations = {GC_COUNT_STEPS, 0, 1}, .in_place = OF(0))
KERNEL_REAL(gru_backward, gru_backward, 6, 2, 0,
            .operations = {GC_COUNT_STEPS, 1, 4})
/* A thousand steps, each of which hands the roundings of the one before on. */
KERNEL_REAL(rnn_forward, rnn_forward, 3, 1, 0,
            .operations = {GC_COUNT_STEPS, 0, 1}, .in_place = OF(0), .bound = 1e-5)
KERNEL_REAL(rnn_backward, rnn_backward, 4, 2, 0,
            .operations = {GC_COUNT_STEPS, 1, 2}, .in_place = OF(1))

/* conv2d.h, conv2d_weight.h */
KERNEL_REAL(conv2d_forward, conv2d_forward, 3, 1, 0,
            .product = 1, .operations = {GC_COUNT_FILTERS, 3, 1})
KERNEL_REAL(conv2d_forward_then, conv2d_forward_then, 4, 2, 0,
            .then_of = "conv2d_forward", .row_size = 8, .operations = {GC_COUNT_FILTERS, 5, 1})
KERNEL_REAL(conv2d_grad_input, conv2d_grad_input, 2, 1, 0,
            .product = 1, .operations = {GC_COUNT_FILTERS, 0, 1})
KERNEL_REAL(conv2d_grad_weight, conv2d_grad_weight, 2, 1, 0,
            .product = 1, .operations = {GC_COUNT_FILTERS, 0, 2})
/* A wave of a thousand numbers around 1 that adds up to 0.0004. */
KERNEL_REAL(conv2d_grad_bias, conv2d_grad_bias, 1, 1, 0, .bound = 1e-4)

/* depthwise.h */
KERNEL_REAL(depthwise_grad_weight, depthwise_grad_weight, 2, 1, 0,
            .operations = {GC_COUNT_FILTERS, 0, 2})

/* pool2d.h */
KERNEL_REAL(max_pool2d_forward, max_pool2d_forward, 1, 2, 0)
KERNEL_REAL(max_pool2d_backward, max_pool2d_backward, 2, 1, 0)
KERNEL_REAL(avg_pool2d_forward, avg_pool2d_forward, 1, 1, 0)
KERNEL_REAL(avg_pool2d_backward, avg_pool2d_backward, 1, 1, 0)

/* affine.h */
KERNEL_REAL(affine, affine, 2, 1, 0)

/* pool2d_adaptive.h */
KERNEL_REAL(adaptive_avg_pool2d_forward, adaptive_avg_forward, 1, 1, 0)
KERNEL_REAL(adaptive_avg_pool2d_backward, adaptive_avg_backward, 1, 1, 0)
KERNEL_REAL(adaptive_max_pool2d_forward, adaptive_max_forward, 1, 2, 0)

/* resize.h */
KERNEL_REAL(resize_forward, resize_forward, 1, 1, 0)
KERNEL_REAL(resize_backward, resize_backward, 1, 1, 0)

/* ceilings.h */
KERNEL_REAL(fma_rate, fma_rate, 1, 1, 0)
KERNEL_REAL(copy_rate, copy_rate, 1, 1, 0)
/* clang-format on */

#undef KERNEL_ALL
#undef KERNEL_REAL
