/* places.h -- follows prelude_cuda.h: a call of a collective says where in the text it stands, and
 * that is what lanes must agree on: the same one. */

#define GC_AT_PLACE(call)                                                                          \
  __extension__({                                                                                  \
    const gc::AtPlace gc_at_place(__COUNTER__);                                                    \
    call;                                                                                          \
  })
#define warp_shfl(...) GC_AT_PLACE(warp_shfl(__VA_ARGS__))
#define warp_xor(...) GC_AT_PLACE(warp_xor(__VA_ARGS__))
#define load_matrices(...) GC_AT_PLACE(load_matrices(__VA_ARGS__))
#define load_turned(...) GC_AT_PLACE(load_turned(__VA_ARGS__))
#define mma_bf16(...) GC_AT_PLACE(mma_bf16(__VA_ARGS__))
#define mma_tf32(...) GC_AT_PLACE(mma_tf32(__VA_ARGS__))
