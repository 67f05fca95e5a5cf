/* isa.h -- avx512: x86-64 processors with AVX-512 (F, VL, DQ, BW). */
#ifndef GC_ISA_H
#define GC_ISA_H

#if defined(__x86_64__)
#define GC_ISA avx512
#define GC_TARGET "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma"
#define GC_VECTOR_BYTES 64
#define GC_HAS_FMA
#else
typedef int gc_not_for_this_machine; /* C wants a declaration in every file */
#endif

#endif
