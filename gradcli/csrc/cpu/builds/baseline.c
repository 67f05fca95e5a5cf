/* baseline.c -- the kernels for any processor, with what the compiler assumes by itself. */
#define GC_ISA baseline
#define GC_VECTOR_BYTES 16
#include "isa_kernels.h"
