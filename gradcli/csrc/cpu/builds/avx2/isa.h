/* isa.h -- avx2: x86-64 processors with AVX2 and FMA. */
#ifndef GC_ISA_H
#define GC_ISA_H

#if defined(__x86_64__)
#define GC_ISA avx2
#define GC_TARGET "avx2,fma"
#define GC_VECTOR_BYTES 32
#define GC_HAS_FMA
#else
typedef int gc_not_for_this_machine; /* C wants a declaration in every file */
#endif

#endif
