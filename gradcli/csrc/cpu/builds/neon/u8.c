/* u8.c -- the kernels of neon for bytes and bool. */
#include "isa.h"
#ifdef GC_ISA
#include "../u8.h"
#endif
