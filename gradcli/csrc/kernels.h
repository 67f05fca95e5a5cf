/* kernels.h -- every structured kernel, declared once; the tables of all builds and what Python
 * knows of a kernel are made from these rows. (Elementwise kernels are rows of scalar_ops.h.)
 *
 * KERNEL_REAL(name, plan, inputs, outputs, typed_by, shapes, facts): built for float and double.
 * KERNEL_ALL(...): built for the integers and bool too.
 * The row `x, p` is the functions plan_p and run_x. `typed_by` is the tensor whose element type
 * picks the build. Tensors stand in the order inputs, outputs. A name is that of an op, and
 * `_forward` or `_backward` where there is something behind the op's.
 *
 * `shapes` has a word for each tensor, and gc_check holds it to that: a letter is a dimension, of
 * one size wherever the letter stands, a digit one of that size; `*` is a whole shape, the same
 * wherever it stands, and `.` any. A capital is the element type: L int64, D float64, U bytes, B
 * bool, X any; else it is that of the build. A `?` behind: or no elements, (0). A tensor is
 * contiguous, but with `~` before it its strides are any, and with `-` only the last must be 1.
 * What words do not say the plan checks. NULL: it checks everything.
 *
 * The facts are fields of gc_facts (call.h says what each means), named as C names them. A row has
 * those that are not 0. OF(i) is the i-th input, or output, as a member of a set; ALL are all.
 */

/* Where a row has no meaning it is nothing. */
#ifndef KERNEL_ALL
#define KERNEL_ALL(...)
#endif
#ifndef KERNEL_REAL
#define KERNEL_REAL(...)
#endif

/* clang-format off */

/* copy.h */
KERNEL_ALL(copy, blocks, 1, 1, 1, "~*X ~*X", .any_strides = 1, .operations = {GC_COUNT_NONE})
KERNEL_ALL(fill, blocks, 0, 1, 0, "~.", .any_strides = 1, .operations = {GC_COUNT_NONE})

/* finite.h */
KERNEL_REAL(require_finite, blocks, 1, 0, 0, ".", .refuses = GC_NOT_FINITE)
KERNEL_ALL(require_nonzero, blocks, 1, 0, 0, ".", .refuses = GC_ZERO)

/* reduce.h, prod.h, length.h, exact.h, extreme.h */
KERNEL_ALL(sum, sum, 1, 1, 0, "oni o1iX")
KERNEL_REAL(mean, sum, 1, 1, 0, "oni o1i")
KERNEL_ALL(prod, sum, 1, 1, 0, "oni o1iX")
KERNEL_REAL(prod_backward, prod_backward, 2, 1, 0, "oni o1i oni")
KERNEL_REAL(length, sum, 1, 1, 0, "oni o1i")
KERNEL_REAL(exact_sum, exact_sum, 2, 1, 0, "n nU? 1D")
KERNEL_REAL(var, var, 1, 2, 0, "oni o1i o1i")
KERNEL_REAL(var_backward, var_backward, 4, 1, 0, "oni o1i o1i o1i oni")
KERNEL_ALL(max_along, extreme, 1, 2, 0, "oni o1i o1iL")
KERNEL_ALL(min_along, extreme, 1, 2, 0, "oni o1i o1iL")
KERNEL_REAL(select_backward, select_backward, 2, 1, 1, "o1iL o1i oni")
KERNEL_REAL(ties_backward, ties_backward, 3, 1, 0, "oni o1i o1i oni")

/* scan.h */
KERNEL_ALL(cumsum, scan, 1, 1, 0, "oni oni")
KERNEL_ALL(cumprod, scan, 1, 1, 0, "oni oni")
KERNEL_REAL(cumprod_backward, scan, 3, 1, 0, "oni oni oni oni")

/* index.h, index_add.h, index_backward.h */
KERNEL_ALL(index_select, index_select, 2, 1, 0, "oni mL omi",
           .gathers = 1, .operations = {GC_COUNT_NONE})
KERNEL_ALL(embedding,    index_select, 2, 1, 0, "oni mL omi",
           .gathers = 1, .operations = {GC_COUNT_NONE})
KERNEL_ALL(where,  blocks,   3, 1, 1, "~*B ~* ~* ~*", .operations = {GC_COUNT_NONE})
KERNEL_ALL(arange, blocks,   0, 1, 0, ".", .operations = {GC_COUNT_NONE})
KERNEL_ALL(tril,   triangle, 1, 1, 0, "brc brc", .operations = {GC_COUNT_NONE})
KERNEL_ALL(triu,   triangle, 1, 1, 0, "brc brc", .operations = {GC_COUNT_NONE})
KERNEL_ALL(index_add, index_add, 3, 1, 0, "oni mL omi oni")
KERNEL_REAL(index_select_backward, index_grad, 2, 1, 0, "omi mL oni")

/* gather.h */
KERNEL_ALL(gather,     gather,     2, 1, 0, "oni omiL omi")
KERNEL_ALL(scatter,    scatter,    3, 1, 0, "oni omiL omi oni")
KERNEL_ALL(index_copy, index_copy, 3, 1, 0, "~oni mL ~omi ~oni")
KERNEL_ALL(flat_index, flat_index, 2, 1, 2, "mL? mL mL", .from_end = 1)
KERNEL_ALL(nonzero,    nonzero,    1, 1, 0, ". pdL")

/* sort.h */
KERNEL_ALL(sort,         sort,         1, 2, 0, "rn rk rkL")
KERNEL_ALL(searchsorted, searchsorted, 2, 1, 0, "sn rm rmL")

/* random.h, random_integers.h, digests.h */
KERNEL_REAL(uniform, random, 1, 1, 1, "3L .", .draws = 1)
KERNEL_REAL(normal,  random, 1, 1, 1, "3L .", .draws = 1)
KERNEL_REAL(uniform_at, uniform_at, 2, 1, 2, "3L nL nk", .draws = 1)
KERNEL_REAL(dropout_forward,  dropout,      2, 2, 0, "* 3L * *U", .draws = 1)
KERNEL_REAL(dropout_backward, dropout_grad, 2, 1, 0, "* *U *", .draws = 1)
KERNEL_ALL(randint,  random_integers, 1, 1, 1, "3L .L")
KERNEL_ALL(randperm, randperm,        1, 1, 1, "3L nL")
KERNEL_REAL(digest_numbers, digest_numbers, 1, 1, 1, "kU nD")

/* numerals.h */
KERNEL_REAL(read_numerals, read_numerals, 1, 2, 1, "kU nD nU")

/* optim.h, optim_adaptive.h */
KERNEL_REAL(sgd_step,          blocks, 2, 1, 0, "* 2D *", .updates = ALL)
KERNEL_REAL(sgd_momentum_step, blocks, 2, 2, 0, "* 2D * *", .updates = ALL)
KERNEL_REAL(adam_step,         blocks, 2, 3, 0, "* 2D * * *", .updates = ALL)
KERNEL_REAL(rmsprop_step,                   blocks, 2, 2, 0, "* 2D * *", .updates = ALL)
KERNEL_REAL(rmsprop_momentum_step,          blocks, 2, 3, 0, "* 2D * * *", .updates = ALL)
KERNEL_REAL(rmsprop_centered_step,          blocks, 2, 3, 0, "* 2D * * *", .updates = ALL)
KERNEL_REAL(rmsprop_centered_momentum_step, blocks, 2, 4, 0, "* 2D * * * *", .updates = ALL)
KERNEL_REAL(adagrad_step,      blocks, 2, 2, 0, "* 2D * *", .updates = ALL)
KERNEL_REAL(adadelta_step,     blocks, 2, 3, 0, "* 2D * * *", .updates = ALL)
KERNEL_REAL(lion_step,         blocks, 2, 2, 0, "* 2D * *", .updates = ALL)
KERNEL_REAL(amsgrad_step,      blocks, 2, 4, 0, "* 2D * * * *", .updates = ALL)
KERNEL_REAL(radam_step,        blocks, 2, 3, 0, "* 2D * * *", .updates = ALL)
KERNEL_REAL(nadam_step,        nadam, 2, 4, 0, "* 2D * * * .D", .updates = ALL)
KERNEL_REAL(sum_squares, sum_squares, 1, 1, 0, ". .D")
KERNEL_REAL(clip_factor, clip_factor, 1, 2, 0, ".D .D .D")
KERNEL_REAL(scale_by,    scale_by,    1, 1, 1, ".D .", .updates = ALL)

/* chain.h */
KERNEL_REAL(chain, chain, 5, 3, 0, NULL, .widens = ALL, .operations = {GC_COUNT_CHAIN})

/* softmax.h */
KERNEL_REAL(softmax_forward, rows, 1, 1, 0, "oni oni")
KERNEL_REAL(softmax_backward, rows, 2, 1, 0, "oni oni oni")
KERNEL_REAL(log_softmax_forward, rows, 1, 1, 0, "oni oni")
KERNEL_REAL(log_softmax_backward, rows, 2, 1, 0, "oni oni oni")

/* norm.h, norm_batch.h, norm_group.h */
KERNEL_REAL(layer_norm, layer_norm, 3, 3, 0, "rn n? n? rn r r")
KERNEL_REAL(layer_norm_backward, layer_norm_backward, 5, 3, 0, "rn rn r r n? rn n n")
KERNEL_REAL(batch_norm_train, batch_norm_train, 3, 5, 0, "ncl c? c? ncl c c c? c?",
            .widens = OF(0) | OF(3), .updates = OF(3) | OF(4))
KERNEL_REAL(batch_norm_eval, batch_norm_eval, 5, 3, 0, "ncl c? c? c c ncl c c",
            .widens = OF(0) | OF(5))
/* Of two samples the gradient is a difference of numbers nearly equal; the CPU's float32 is as far
 * off. */
KERNEL_REAL(batch_norm_backward, batch_norm_backward, 5, 3, 0, "ncl ncl c c c? ncl c c",
            .widens = OF(0) | OF(1) | OF(5), .bound = 1e-5)
KERNEL_REAL(group_norm, group_norm, 3, 3, 0, "ncl c? c? ncl ng ng")
KERNEL_REAL(group_norm_backward, group_norm_backward, 5, 3, 0, "ncl ncl ng ng c? ncl c c")

/* loss.h */
KERNEL_REAL(cross_entropy, cross_entropy, 3, 3, 0, "oci o1iL c? . o2i 1")
KERNEL_REAL(cross_entropy_backward, cross_entropy_backward, 6, 1, 0, "oci o1iL c? o2i 1 . oci")
KERNEL_REAL(mse, mse, 2, 1, 0, "n n m")
KERNEL_REAL(mse_backward, mse_backward, 3, 1, 0, "n n m n")

/* matmul.h */
KERNEL_REAL(matmul, matmul, 3, 1, 0, "~bmk ~bkn n? bmn",
            .product = 1, .operations = {GC_COUNT_MATMUL, 3, 0}, .matrices = OF(0) | OF(1))
KERNEL_REAL(matmul_then, matmul_then, 4, 2, 0, "~bmk ~bkn n? bmn? bmn? bmn",
            .then_of = "matmul", .row_size = 0,
            .operations = {GC_COUNT_MATMUL, 5, 0}, .matrices = OF(0) | OF(1))

/* attention.h, attention_backward.h */
KERNEL_REAL(attention_forward, attention, 4, 2, 0, "-bhqd -bhkd -bhkw ~bhqkX? -bhqw l",
            .operations = {GC_COUNT_ATTENTION, 1, 1}, .rows = OF(0) | OF(1) | OF(2))
/* The scores again; then the gradients of scores and v, and of q and k. */
KERNEL_REAL(attention_backward, attention_backward, 7, 1, 0,
            "-bhqd -bhkd -bhkw ~bhqkX? -bhqw l -bhqw g",
            .operations = {GC_COUNT_ATTENTION, 3, 2},
            .rows = OF(0) | OF(1) | OF(2) | OF(4) | OF(6))

/* recurrent_cells.h */
KERNEL_REAL(lstm_forward, lstm_forward, 4, 3, 0, "-tbg gh bh? bh? -tbg -tbh sbh",
            .operations = {GC_COUNT_STEPS, 0, 1}, .in_place = OF(0))
KERNEL_REAL(lstm_backward, lstm_backward, 6, 2, 0, "-tbh? -tbg sbh gh bh? bh? -tbg 2bh",
            .operations = {GC_COUNT_STEPS, 1, 3}, .in_place = OF(1))
KERNEL_REAL(gru_forward, gru_forward, 4, 3, 0, "-tbg gh g? bh? -tbg tbh -tbh",
            .operations = {GC_COUNT_STEPS, 0, 1}, .in_place = OF(0))
KERNEL_REAL(gru_backward, gru_backward, 6, 2, 0, "-tbh? -tbg tbh -tbh gh bh? -tbs 1bh",
            .operations = {GC_COUNT_STEPS, 1, 4})
/* A thousand steps, each of which hands the roundings of the one before on. */
KERNEL_REAL(rnn_forward, rnn_forward, 3, 1, 0, "-tbh hh bh? -tbh",
            .operations = {GC_COUNT_STEPS, 0, 1}, .in_place = OF(0), .bound = 1e-5)
KERNEL_REAL(rnn_backward, rnn_backward, 4, 2, 0, "-tbh? -tbh hh bh? -tbh 1bh",
            .operations = {GC_COUNT_STEPS, 1, 2}, .in_place = OF(1))

/* conv2d.h, conv2d_weight.h */
KERNEL_REAL(conv2d_forward, conv2d_forward, 3, 1, 0, "nchw kdij k? nkyx",
            .product = 1, .operations = {GC_COUNT_FILTERS, 3, 1})
KERNEL_REAL(conv2d_forward_then, conv2d_forward_then, 4, 2, 0, "nchw kdij k? nkyx? nkyx? nkyx",
            .then_of = "conv2d_forward", .row_size = 8, .operations = {GC_COUNT_FILTERS, 5, 1})
KERNEL_REAL(conv2d_grad_input, conv2d_grad_input, 2, 1, 0, "nkyx kdij nchw",
            .product = 1, .operations = {GC_COUNT_FILTERS, 0, 1})
KERNEL_REAL(conv2d_grad_weight, conv2d_grad_weight, 2, 1, 0, "nkyx nchw kdij",
            .product = 1, .operations = {GC_COUNT_FILTERS, 0, 2})
/* A wave of a thousand numbers around 1 that adds up to 0.0004. */
KERNEL_REAL(conv2d_grad_bias, conv2d_grad_bias, 1, 1, 0, "nkyx k", .bound = 1e-4)

/* depthwise.h */
KERNEL_REAL(depthwise_grad_weight, depthwise_grad_weight, 2, 1, 0, "nkyx nchw k1ij",
            .operations = {GC_COUNT_FILTERS, 0, 2})

/* pool2d.h */
KERNEL_REAL(max_pool2d_forward, max_pool2d_forward, 1, 2, 0, "phw pyx pyxL")
KERNEL_REAL(max_pool2d_backward, max_pool2d_backward, 2, 1, 0, "pyx pyxL phw")
KERNEL_REAL(avg_pool2d_forward, avg_pool2d_forward, 1, 1, 0, "phw pyx")
KERNEL_REAL(avg_pool2d_backward, avg_pool2d_backward, 1, 1, 0, "pyx phw")

/* affine.h */
KERNEL_REAL(affine, affine, 2, 1, 0, "nchw n6 nchw")

/* pool2d_adaptive.h */
KERNEL_REAL(adaptive_avg_pool2d_forward, adaptive_forward, 1, 1, 0, "phw pyx")
KERNEL_REAL(adaptive_avg_pool2d_backward, adaptive_backward, 1, 1, 0, "pyx phw")
KERNEL_REAL(adaptive_max_pool2d_forward, adaptive_forward, 1, 2, 0, "phw pyx pyxL")

/* resize.h */
KERNEL_REAL(resize_forward, resize_forward, 1, 1, 0, "phw pyx")
KERNEL_REAL(resize_backward, resize_backward, 1, 1, 0, "pyx phw")

/* ceilings.h */
KERNEL_REAL(fma_rate, fma_rate, 1, 1, 0, "2 n")
KERNEL_REAL(copy_rate, copy_rate, 1, 1, 0, "rn rn")
/* clang-format on */

#undef KERNEL_ALL
#undef KERNEL_REAL
