/* kernels.h -- every structured kernel, declared once; the tables of all builds and the names that
 * Python sees are made from these rows. (Elementwise kernels are rows of scalar_ops.h.)
 *
 * KERNEL_REAL(name, plan, inputs, outputs, typed_by): built for float and double.
 * KERNEL_ALL(...): built for the integers and bool too.
 * The row `x, p` is the functions plan_p and run_x. `typed_by` is the tensor whose element type
 * picks the build. Tensors stand in the order inputs, outputs; optimizers also read their outputs.
 */

/* clang-format off */

/* copy.h */
KERNEL_ALL(copy, copy, 1, 1, 1)
KERNEL_ALL(fill, fill, 0, 1, 0)

/* softmax.h */
KERNEL_REAL(softmax_forward,  rows, 1, 1, 0)
KERNEL_REAL(softmax_backward, rows, 2, 1, 0)
/* clang-format on */

#undef KERNEL_ALL
#undef KERNEL_REAL
