/* product.h -- the shape of a batch of matrix products: c = a b + bias. */

struct Product {
  uint batch, m, n, k;
  uint a_i, a_k, a_batch; /* steps in elements */
  uint b_j, b_k, b_batch;
  uint c_i, c_j;
  uint bias, bias_i, bias_j; /* whether there is one, and its steps */
  uint piece;                /* length of a piece of K */
};
