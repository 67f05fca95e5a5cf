/* pairs.c -- the kernels of avx512bf16 for pairs of bfloat16. */
#include "isa.h"
#ifdef GC_ISA
#include "../pairs.h"
#endif
