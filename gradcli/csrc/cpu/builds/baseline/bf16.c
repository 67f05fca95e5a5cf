/* bf16.c -- the kernels of baseline for bfloat16. */
#include "isa.h"
#ifdef GC_ISA
#include "../bf16.h"
#endif
