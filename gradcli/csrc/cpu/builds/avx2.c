/* avx2.c -- the kernels for x86-64 processors with AVX2 and FMA. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define GC_ISA avx2
#define GC_VECTOR_BYTES 32
#define GC_HAS_FMA
#include "isa_kernels.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int gc_not_for_this_machine; /* C wants a declaration in every file */
#endif
