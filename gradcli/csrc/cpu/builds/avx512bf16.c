/* avx512bf16.c -- AVX-512 with its products of pairs of bfloat16, twice as fast as those of floats.
 * Everything else is what avx512.c has. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,avx2,fma"))),             \
    apply_to = function)
#else
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,avx2,fma")
#endif
#define GC_ISA avx512bf16
#define GC_VECTOR_BYTES 64
#define GC_HAS_FMA
#define GC_PAIRS
#define GC_PASTE(a, b, c) a##_##b##_##c
#define GC_NAME(a, b, c) GC_PASTE(a, b, c)
#define NAME(f) GC_NAME(f, GC_TYPE, GC_ISA)

#include "../bfloat16.h"
#include "../kernel.h"
#include "../elementwise/operands.h"
#include "../tables.h"
#include "../walk.h"

#define REAL float
#define GC_TYPE pairs
#define GC_IS_FLOAT
#include "../matmul/gemm.h"

#include "../matmul/matmul_pairs.h"

#include "../conv/conv2d_pairs.h"
#undef GC_IS_FLOAT
#undef GC_TYPE
#undef REAL

#define REAL uint16_t
#define GC_TYPE bf16
#include "bfloat16_kernels.h"

extern const gc_kernel table_f32_avx512[], table_f64_avx512[], table_i32_avx512[],
    table_i64_avx512[], table_u8_avx512[];
const gc_isa_table gc_isa_avx512bf16 = {"avx512bf16",     table_f32_avx512, table_f64_avx512,
                                        table_i32_avx512, table_i64_avx512, table_u8_avx512,
                                        NAME(table)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int gc_not_for_this_machine; /* C wants a declaration in every file */
#endif
