/* i32.c -- the kernels of avx2 for int32. */
#include "isa.h"
#ifdef GC_ISA
#include "../i32.h"
#endif
