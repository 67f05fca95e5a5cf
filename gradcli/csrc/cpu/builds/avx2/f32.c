/* f32.c -- the kernels of avx2 for float. */
#include "isa.h"
#ifdef GC_ISA
#include "../f32.h"
#endif
