/* i64.c -- the kernels of baseline for int64. */
#include "isa.h"
#ifdef GC_ISA
#include "../i64.h"
#endif
