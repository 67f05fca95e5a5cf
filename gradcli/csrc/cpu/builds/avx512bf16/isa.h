/* isa.h -- avx512bf16: x86-64 processors with AVX-512 and its products of pairs of bfloat16. All
 * else is what avx512 has. */
#ifndef GC_ISA_H
#define GC_ISA_H

#if defined(__x86_64__)
#define GC_ISA avx512bf16
#define GC_TARGET "avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,avx2,fma"
#define GC_VECTOR_BYTES 64
#define GC_HAS_FMA
#define GC_PAIRS
#else
typedef int gc_not_for_this_machine; /* C wants a declaration in every file */
#endif

#endif
