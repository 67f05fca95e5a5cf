/* f64.c -- the kernels of avx512 for double. */
#include "isa.h"
#ifdef GC_ISA
#include "../f64.h"
#endif
