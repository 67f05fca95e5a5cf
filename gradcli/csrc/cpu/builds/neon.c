/* neon.c -- the kernels for 64-bit Arm processors. */
#if defined(__aarch64__)
#define GC_ISA neon
#define GC_VECTOR_BYTES 16
#define GC_HAS_FMA
#include "isa_kernels.h"
#else
typedef int gc_not_for_this_machine; /* C wants a declaration in every file */
#endif
