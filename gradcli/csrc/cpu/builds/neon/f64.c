/* f64.c -- the kernels of neon for double. */
#include "isa.h"
#ifdef GC_ISA
#include "../f64.h"
#endif
