/* isa.h -- neon: 64-bit Arm processors. */
#ifndef GC_ISA_H
#define GC_ISA_H

#if defined(__aarch64__)
#define GC_ISA neon
#define GC_VECTOR_BYTES 16
#define GC_HAS_FMA
#else
typedef int gc_not_for_this_machine; /* C wants a declaration in every file */
#endif

#endif
